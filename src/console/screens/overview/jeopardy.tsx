import { useMemo } from 'preact/hooks';
import { useLeases } from '../../api/leases.js';
import type { Lease } from '../../api/shapes.js';
import { databaseNow, useSecond } from '../../clock.js';
import { FirstResource, LeaseOfRun } from '../../parts/cells.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { type Column, Table } from '../../parts/table.js';
import { Countdown } from '../../parts/text.js';
import { byExpiry } from '../../pure/lease-filter.js';
import { millisOf } from '../../pure/moments.js';
import { Link, useNamespace } from '../../router.js';

const NEAR_MS = 15_000;
const SHOWN = 6;

/** Leases that end soon unless somebody renews them. */
export function Jeopardy() {
  const { leases, loading, problem } = useLeases(useNamespace());
  useSecond();
  const sorted = useMemo(() => byExpiry(leases), [leases]);
  const now = databaseNow();
  const left = (at: string | undefined) => (millisOf(at) ?? 0) - now;
  const begin = sorted.findIndex(({ expiresAt }) => left(expiresAt) > 0);
  const live = begin < 0 ? [] : sorted.slice(begin);
  const end = live.findIndex(({ expiresAt }) => left(expiresAt) > NEAR_MS);
  const near = end < 0 ? live.length : end;
  return (
    <Panel
      title="Jeopardy"
      count={loading ? undefined : near}
      about="Leases that end within 15 s unless they are renewed."
      actions={
        <Link to="/live" query={{ view: 'timeline' }}>
          Timeline
        </Link>
      }
    >
      <ReadProblem problem={problem} stale={!loading} />
      {!loading && near === 0 && <Nothing>No lease is about to end.</Nothing>}
      {near > 0 && (
        <Table columns={COLUMNS} rows={live.slice(0, Math.min(near, SHOWN))} keyOf={({ leaseId }) => leaseId} />
      )}
    </Panel>
  );
}

const COLUMNS: readonly Column<Lease>[] = [
  {
    name: 'Lease',
    fit: 'tight',
    cell: ({ leaseId, runId }) => <LeaseOfRun leaseId={leaseId} runId={runId} />,
  },
  {
    name: 'Resources',
    cell: ({ entries = [] }) => <FirstResource names={entries.map(({ resource }) => resource)} />,
  },
  { name: 'Left', fit: 'number', cell: ({ expiresAt }) => <Countdown until={expiresAt} /> },
];
