import { useState } from 'preact/hooks';
import { SettleInDoubt } from '../../acts/settle-in-doubt.js';
import { StopRun } from '../../acts/stop-run.js';
import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import { usePages } from '../../api/pages.js';
import type { Answer, LogEvent, OpenWrite, Run } from '../../api/shapes.js';
import { Events } from '../../parts/events.js';
import { OpenWrites } from '../../parts/open-writes.js';
import { Nothing, Page, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { Copy, Foreign, State } from '../../parts/text.js';
import { useMay } from '../../principal.js';
import { TELLING_KINDS } from '../../pure/event-words.js';
import { hasEnded, runState, shortId } from '../../pure/words.js';
import { Contract } from './contract.js';
import { RunLeases } from './run-leases.js';

type EventsPage = Answer<'ListEventsResponse'>;

/** One run: what it may do, what it does, and how to end it. */
export function RunScreen({ id }: { readonly id: string }) {
  const may = useMay();
  const [stopping, setStopping] = useState(false);
  const { value, problem } = useData(`run ${id}`, (signal) => get<{ run?: Run }>(`/v1/runs/${id}`, { signal }), {
    touchedBy: ({ runId, kind }) => runId === id || kind === 'database_identified',
  });
  const run = value?.run;
  const events = usePages<LogEvent>(
    may('AuditService/ListEvents') ? '/v1/events' : null,
    { run_id: id, newest_first: 'true', kinds: TELLING_KINDS },
    {
      rowsOf: (page) => (page as EventsPage).events ?? [],
      touchedBy: ({ runId }) => runId === id,
    },
  );
  const state = runState(run?.state);
  return (
    <Page
      title={`Run ${shortId(id)}`}
      heading={
        <>
          Run <span class="mono">{id}</span> <Copy text={id} label="the run's id" />
        </>
      }
      about={run !== undefined && <Foreign text={run.purpose || 'No purpose was given.'} class="clamped" />}
      actions={
        run !== undefined &&
        may('RunService/StopRun') &&
        !hasEnded(state) && (
          <button type="button" class="end" onClick={() => setStopping(true)}>
            {state === 'STOPPING' ? 'Stop again…' : 'Stop this run…'}
          </button>
        )
      }
    >
      <ReadProblem problem={problem} stale={value !== undefined} />
      {run !== undefined && (
        <>
          <Standing run={run} />
          <Unresolved run={run} />
          <Contract run={run} />
          <RunLeases runId={id} />
        </>
      )}
      {may('AuditService/ListEvents') && (
        <Panel title="What it did, and what it was refused" about="Newest first.">
          <Events pages={events} without="run" nothing="The log has nothing of this run." />
        </Panel>
      )}
      {stopping && run !== undefined && <StopRun run={run} onClose={() => setStopping(false)} />}
    </Page>
  );
}

/** Whether it may still write: the first thing that one wants to know. That a run is over is no alarm. */
function Standing({ run }: { readonly run: Run }) {
  const state = runState(run.state);
  const may = run.mayWrite === true;
  const over = hasEnded(state);
  const tone = may ? 'good' : over ? 'idle' : state === 'STOPPING' ? 'bad' : 'warn';
  return (
    <div class={`note tone-${tone}`}>
      <p>
        <State code={state} />
        {' · '}
        <strong>{may ? 'It may write now.' : over ? 'It is over, and writes no more.' : 'It may not write.'}</strong>{' '}
        {runState(run.endsAs) !== '' &&
          `It comes to ${runState(run.endsAs).toLowerCase()} once every outcome is known.`}
      </p>
      {run.stateReason && (
        <p>
          <Foreign text={run.stateReason} />
        </p>
      )}
    </div>
  );
}

function Unresolved({ run }: { readonly run: Run }) {
  const may = useMay();
  const [settling, setSettling] = useState<OpenWrite | null>(null);
  const writes = run.openWrites ?? [];
  return (
    <Panel title="Unresolved" count={run.openWriteCount ?? writes.length} class={writes.length > 0 ? 'urgent' : ''}>
      {writes.length === 0 ? (
        <Nothing>The outcome of every write that was let in is known.</Nothing>
      ) : (
        <OpenWrites
          writes={writes}
          withRun={false}
          {...(may('LeaseService/SettleInDoubt') && { onSettle: setSettling })}
        />
      )}
      {settling !== null && <SettleInDoubt write={settling} onClose={() => setSettling(null)} />}
    </Panel>
  );
}
