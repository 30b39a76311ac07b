import { useState } from 'preact/hooks';
import { SettleInDoubt } from '../../acts/settle-in-doubt.js';
import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { Answer, OpenWrite } from '../../api/shapes.js';
import { OpenWrites } from '../../parts/open-writes.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { Reason } from '../../parts/text.js';
import { useMay } from '../../principal.js';

type InDoubtWrites = Answer<'ListInDoubtResponse'>;

const TOUCHING = new Set(['writes_admitted', 'writes_reported', 'doubt_settled', 'lease_ended', 'run_state_changed']);

/** Writes that somebody must find out about: until then nobody gets their resources. */
export function InDoubt() {
  const may = useMay();
  const [settling, setSettling] = useState<OpenWrite | null>(null);
  const { value, problem } = useData(
    'in doubt',
    (signal) => get<InDoubtWrites>('/v1/in-doubt', { signal, query: { page_size: '200' } }),
    { touchedBy: ({ kind }) => TOUCHING.has(kind) },
  );
  const writes = value?.writes ?? [];
  return (
    <Panel
      title="In doubt"
      count={value === undefined ? undefined : `${writes.length}${value.nextPageToken ? '+' : ''}`}
      class={writes.length > 0 ? 'urgent' : ''}
      about={
        writes.length > 0 && (
          <>
            Their leases ended while they were under way. Nobody gets these resources before it is known what became of
            them (<Reason code="IN_DOUBT" />
            ).
          </>
        )
      }
    >
      <ReadProblem problem={problem} stale={value !== undefined} />
      {value !== undefined && writes.length === 0 && <Nothing>No write has an unknown outcome.</Nothing>}
      {writes.length > 0 && (
        <OpenWrites writes={writes} {...(may('LeaseService/SettleInDoubt') && { onSettle: setSettling })} />
      )}
      {settling !== null && <SettleInDoubt write={settling} onClose={() => setSettling(null)} />}
    </Panel>
  );
}
