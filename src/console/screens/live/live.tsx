import { useMemo } from 'preact/hooks';
import { useLeases } from '../../api/leases.js';
import type { Lease } from '../../api/shapes.js';
import { useRested } from '../../clock.js';
import { Page, Panel } from '../../parts/page.js';
import { ReadProblem } from '../../parts/problem.js';
import { Tabs } from '../../parts/tabs.js';
import { filtered, type LeaseFilter } from '../../pure/lease-filter.js';
import { counted } from '../../pure/words.js';
import { useNamespace, useParameter } from '../../router.js';
import { Filters } from './filters.js';
import { LeaseTimeline } from './lease-timeline.js';
import { LeaseTree } from './lease-tree.js';
import { Waiting } from './waiting.js';
import './live.css';

const VIEWS = [
  ['tree', 'By resource'],
  ['timeline', 'By expiry'],
  ['waiting', 'Who waits'],
] as const;

type View = (typeof VIEWS)[number][0];

/** How long somebody must have stopped typing before ten thousand leases are looked through. */
const REST_MS = 150;

/** Who may write what, right now. */
export function Live() {
  const namespace = useNamespace();
  const [named, setView] = useParameter('view');
  const view: View = VIEWS.find(([name]) => name === named)?.[0] ?? 'tree';
  const table = useLeases(namespace);
  const filter = useFilter();
  const shown = useMemo(() => filtered(table.leases, filter), [table.leases, filter]);
  return (
    <Page title="Live" about="Leases and waiting requests, as they are.">
      <Filters />
      <Panel
        title={whatIsShown(shown, filter)}
        about={aboutOf(shown.length, table.leases.length, table.loading, table.complete)}
        actions={
          <Tabs label="Views" tabs={VIEWS} chosen={view} onChoose={(next) => setView(next === 'tree' ? '' : next)} />
        }
      >
        <ReadProblem problem={table.problem} stale={table.leases.length > 0} />
        {view === 'tree' && <LeaseTree leases={shown} loading={table.loading} filtered={shown !== table.leases} />}
        {view === 'timeline' && <LeaseTimeline leases={shown} />}
        {view === 'waiting' && <Waiting leases={shown} />}
      </Panel>
    </Page>
  );
}

/** A request in the queue is no lease yet. */
function whatIsShown(shown: readonly Lease[], filter: LeaseFilter): string {
  const waiting = shown.filter(({ state }) => state === 'LEASE_STATE_WAITING').length;
  const requests = counted(waiting, 'waiting request');
  if (filter.state === 'waiting') return requests;
  const leases = counted(shown.length - waiting, 'lease');
  return waiting === 0 ? leases : `${leases} and ${requests}`;
}

function aboutOf(shown: number, all: number, loading: boolean, complete: boolean): string {
  if (loading) return 'Reading…';
  const cut = complete ? '' : ' The namespace has more than are read here; the filters are about those that were.';
  return shown === all ? `All of the namespace.${cut}` : `Of ${all.toLocaleString('en')} in the namespace.${cut}`;
}

/** What the address says, one and the same object while it says the same. */
function useFilter(): LeaseFilter {
  const [resource] = useParameter('resource');
  const [run] = useParameter('run');
  const [purpose] = useParameter('purpose');
  const [state] = useParameter('state');
  const known = state === 'held' || state === 'waiting' ? state : '';
  const wanted = useRested(JSON.stringify({ resource, run, purpose, state: known }), REST_MS);
  return useMemo(() => JSON.parse(wanted) as LeaseFilter, [wanted]);
}
