import { usePages } from '../../api/pages.js';
import type { Answer, Lease, LeaseEntry } from '../../api/shapes.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ReadMore } from '../../parts/read-more.js';
import { type Column, Table } from '../../parts/table.js';
import { Countdown, LeaseLink, Reason, Resource, State, When } from '../../parts/text.js';
import { access, endReason, leaseState } from '../../pure/words.js';

type Leases = Answer<'ListLeasesResponse'>;

const ALL = ['LEASE_STATE_ACTIVE', 'LEASE_STATE_WAITING', 'LEASE_STATE_ENDED'];
const RANK = new Map(ALL.map((state, rank) => [state, rank]));

/** What the run holds, waits for, and held lately: tokens by resource. */
export function RunLeases({ runId }: { readonly runId: string }) {
  const pages = usePages<Lease>(
    '/v1/leases',
    { run_id: runId, states: ALL },
    {
      rowsOf: (page) => (page as Leases).leases ?? [],
      touchedBy: (event) => event.runId === runId,
    },
  );
  const leases = [...pages.rows].sort((a, b) => (RANK.get(a.state ?? '') ?? 0) - (RANK.get(b.state ?? '') ?? 0));
  return (
    <Panel title="Leases and tokens" count={pages.loading ? undefined : leases.length}>
      {!pages.loading && leases.length === 0 && (
        <Nothing>It holds nothing, waits for nothing, and held nothing lately.</Nothing>
      )}
      {leases.length > 0 && <Table columns={COLUMNS} rows={leases} keyOf={({ leaseId }) => leaseId} />}
      <ReadMore pages={pages} what="leases" />
    </Panel>
  );
}

const COLUMNS: readonly Column<Lease>[] = [
  { name: 'Lease', fit: 'tight', cell: ({ leaseId }) => <LeaseLink id={leaseId} /> },
  { name: 'State', fit: 'tight', cell: (lease) => <Ending lease={lease} /> },
  {
    name: 'Resources and tokens',
    cell: ({ entries = [] }) => (
      <ul class="entries">
        {entries.map((entry, index) => (
          <Entry key={`${entry.resource} ${index}`} entry={entry} />
        ))}
      </ul>
    ),
  },
];

function Entry({ entry }: { readonly entry: LeaseEntry }) {
  const { resource = '', actions = [], fencingToken = '0', impliedBy, suspended } = entry;
  return (
    <li>
      <span>
        <Resource name={resource} />{' '}
        <span class="aside">
          {access(entry.access)}
          {actions.length > 0 && `: ${actions.join(', ')}`}
          {impliedBy && `, by ${impliedBy}`}
        </span>
        {suspended === true && <span class="tone-warn"> suspended</span>}
      </span>
      <span class="mono">{fencingToken === '0' ? '–' : fencingToken}</span>
    </li>
  );
}

function Ending({ lease }: { readonly lease: Lease }) {
  return (
    <>
      <State code={leaseState(lease.state)} />
      <div class="aside">
        {lease.endedAt ? (
          <>
            <Reason code={endReason(lease.endReason)} /> <When at={lease.endedAt} />
          </>
        ) : (
          <Countdown until={lease.expiresAt} />
        )}
      </div>
    </>
  );
}
