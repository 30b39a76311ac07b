import { get } from '../../api/client.js';
import { useData } from '../../api/data.js';
import type { Answer, UnmatchedResource } from '../../api/shapes.js';
import { Nothing, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { type Column, Table } from '../../parts/table.js';
import { Resource, When } from '../../parts/text.js';
import { Link } from '../../router.js';

type UnmatchedPage = Answer<'ListUnmatchedResourcesResponse'>;

const SHOWN = 8;
const REST_MS = 5_000;

/** What runs and targets ask about, and the map does not describe. */
export function Unmatched() {
  const { value, problem } = useData(
    'unmatched',
    (signal) => get<UnmatchedPage>('/v1/conflict-map/unmatched', { signal, query: { page_size: '1000' } }),
    { restMs: REST_MS, touchedBy: ({ kind }) => kind === 'resources_unmatched' || kind === 'conflict_map_put' },
  );
  const resources = [...(value?.resources ?? [])].sort((a, b) => Number(b.times ?? 0) - Number(a.times ?? 0));
  return (
    <Panel
      title="Not in the conflict map"
      count={value === undefined ? undefined : `${resources.length}${value.nextPageToken ? '+' : ''}`}
      about="Asked for or checked, and of no kind."
      actions={<Link to="/map">Conflict map</Link>}
    >
      <ReadProblem problem={problem} stale={value !== undefined} />
      {value !== undefined && resources.length === 0 && <Nothing>All that was asked for is of a kind.</Nothing>}
      {resources.length > 0 && (
        <Table columns={COLUMNS} rows={resources.slice(0, SHOWN)} keyOf={({ resource }) => resource} />
      )}
    </Panel>
  );
}

const COLUMNS: readonly Column<UnmatchedResource>[] = [
  { name: 'Resource', cell: ({ resource }) => <Resource name={resource} /> },
  { name: 'Last seen', fit: 'tight', cell: ({ lastSeenAt }) => <When at={lastSeenAt} /> },
  { name: 'Times', fit: 'number', cell: ({ times }) => Number(times ?? 0).toLocaleString('en') },
];
