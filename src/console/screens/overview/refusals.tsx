import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { Answer } from '../../api/shapes.js';
import { databaseNow } from '../../clock.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { Spark } from '../../parts/spark.js';
import { type Column, Table } from '../../parts/table.js';
import { Reason } from '../../parts/text.js';
import { REFUSAL_KINDS, type ReasonCount, refusalsByReason } from '../../pure/refusals.js';
import { Link } from '../../router.js';

type Events = Answer<'ListEventsResponse'>;

const HOUR_MS = 3_600_000;
const PIECES = 24;
const REST_MS = 5_000;
const SHOWN = 8;
const KINDS = new Set<string>(REFUSAL_KINDS);
const KIND_OF = {
  acquire: 'acquire_refused',
  renewal: 'renewals_refused',
  credential: 'credentials_refused',
  write: 'checks_denied',
} as const;
const WHAT = { acquire: 'requests', renewal: 'renewals', credential: 'credentials', write: 'writes' } as const;

/** What was refused in the last hour, and whether it grows. */
export function Refusals() {
  const { value, problem } = useData(
    'refusals',
    (signal) =>
      get<Events>('/v1/events', {
        signal,
        query: { kinds: [...REFUSAL_KINDS], newest_first: 'true', page_size: '1000' },
      }),
    { restMs: REST_MS, touchedBy: ({ kind }) => KINDS.has(kind) },
  );
  const now = databaseNow();
  const counts = refusalsByReason(value?.events ?? [], now - HOUR_MS, now, PIECES);
  return (
    <Panel
      title="Refusals"
      about={value?.nextPageToken ? 'The newest 1,000 events of the last hour.' : 'In the last hour, by reason.'}
    >
      <ReadProblem problem={problem} stale={value !== undefined} />
      {value !== undefined && counts.length === 0 && <Nothing>Nothing was refused in the last hour.</Nothing>}
      {counts.length > 0 && (
        <Table columns={COLUMNS} rows={counts.slice(0, SHOWN)} keyOf={({ what, reason }) => `${what} ${reason}`} />
      )}
    </Panel>
  );
}

const COLUMNS: readonly Column<ReasonCount>[] = [
  {
    name: 'Reason',
    cell: ({ reason, what }) => (
      <>
        <Reason code={reason} />
        <div class="aside">{WHAT[what]}</div>
      </>
    ),
  },
  {
    name: 'Last hour',
    fit: 'tight',
    cell: ({ buckets, total }) => <Spark values={buckets} label={`${total} in the last hour`} />,
  },
  {
    name: 'Times',
    fit: 'number',
    cell: ({ what, reason, total }) => (
      <Link to="/log" query={{ kind: KIND_OF[what], reason }} class="id" title="These events in the log">
        {total.toLocaleString('en')}
      </Link>
    ),
  },
];
