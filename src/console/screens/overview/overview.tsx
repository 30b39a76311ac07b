import { useState } from 'preact/hooks';
import { FreezePattern } from '../../acts/freeze.js';
import { StopRuns } from '../../acts/stop-runs.js';
import { Page } from '../../parts/page.js';
import { useMay } from '../../principal.js';
import { useNamespace } from '../../router.js';
import { Frozen } from './frozen.js';
import { InDoubt } from './in-doubt.js';
import { Jeopardy } from './jeopardy.js';
import { Numbers } from './numbers.js';
import { OldestWaiters } from './oldest-waiters.js';
import { Refusals } from './refusals.js';
import { StuckRuns } from './stuck-runs.js';
import { Unmatched } from './unmatched.js';
import './overview.css';

/** What is stuck, first; then what is going on. */
export function Overview() {
  const may = useMay();
  const namespace = useNamespace();
  const [act, setAct] = useState<'stop' | 'freeze' | null>(null);
  const close = () => setAct(null);
  return (
    <Page
      title="Overview"
      about={
        <>
          What needs a person in <strong>{namespace}</strong>, and what is going on.
        </>
      }
      actions={
        <>
          {may('LeaseService/Freeze') && (
            <button type="button" onClick={() => setAct('freeze')}>
              Freeze…
            </button>
          )}
          {may('RunService/StopRuns') && (
            <button type="button" class="end" onClick={() => setAct('stop')}>
              Stop runs…
            </button>
          )}
        </>
      }
    >
      <Numbers />
      {may('LeaseService/ListInDoubt') && <InDoubt />}
      <StuckRuns />
      {may('LeaseService/ListFreezes') && <Frozen onFreeze={() => setAct('freeze')} />}
      <div class="columns">
        <Jeopardy />
        <OldestWaiters />
      </div>
      <div class="columns">
        {may('AuditService/ListEvents') && <Refusals />}
        {may('ConflictMapService/ListUnmatchedResources') && <Unmatched />}
      </div>
      {act === 'stop' && <StopRuns onClose={close} />}
      {act === 'freeze' && <FreezePattern onClose={close} />}
    </Page>
  );
}
