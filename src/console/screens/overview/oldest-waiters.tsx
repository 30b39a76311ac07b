import { useWaiters } from '../../api/waiters.js';
import { FirstResource, LeaseOfRun } from '../../parts/cells.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { type Column, Table } from '../../parts/table.js';
import { Foreign, RunLink, When } from '../../parts/text.js';
import type { Waiter } from '../../pure/waits.js';
import { Link } from '../../router.js';

const SHOWN = 6;

/** Who has waited longest, and for whom. */
export function OldestWaiters() {
  const { value, problem } = useWaiters();
  const waiters = [...(value?.waiters ?? [])].sort((a, b) => compare(a.since, b.since));
  return (
    <Panel
      title="Oldest waiters"
      count={value === undefined ? undefined : `${waiters.length}${value.complete ? '' : '+'}`}
      about="Requests in the queue, the one that has waited longest first."
      actions={
        <Link to="/live" query={{ view: 'waiting' }}>
          Who waits for whom
        </Link>
      }
    >
      <ReadProblem problem={problem} stale={value !== undefined} />
      {value !== undefined && waiters.length === 0 && <Nothing>Nobody waits.</Nothing>}
      {waiters.length > 0 && (
        <Table columns={COLUMNS} rows={waiters.slice(0, SHOWN)} keyOf={({ leaseId }) => leaseId} />
      )}
    </Panel>
  );
}

/** What is not known comes last. */
const compare = (a: string, b: string): number => (a === b ? 0 : a === '' ? 1 : b === '' ? -1 : a < b ? -1 : 1);

const COLUMNS: readonly Column<Waiter>[] = [
  {
    name: 'Request',
    fit: 'tight',
    cell: ({ leaseId, runId }) => <LeaseOfRun leaseId={leaseId} runId={runId} />,
  },
  {
    name: 'Wants, and waits for',
    cell: ({ resources, waitsFor: [first, ...others] }) => (
      <>
        <FirstResource names={resources} />
        <div class="aside">
          {first === undefined ? (
            'next in turn'
          ) : (
            <>
              waits for {first.runId === '' ? 'another' : <RunLink id={first.runId} />} <Foreign text={first.purpose} />
              {others.length > 0 && ` and ${others.length} more`}
            </>
          )}
        </div>
      </>
    ),
  },
  { name: 'Since', fit: 'tight', cell: ({ since }) => <When at={since} absent="–" /> },
];
