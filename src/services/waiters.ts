import { pathNamed } from '../domain/conflict-map/index.js';
import { describeWaiting, keptFor } from '../domain/decide/acquire.js';
import type { View } from '../domain/decide/decision.js';
import { touches } from '../domain/decide/runs.js';
import type { Lease } from '../domain/lease.js';
import { Queue } from '../domain/queue.js';
import type { At, CallContext, Page, Paged, Waiter } from './api.js';
import { type Deps, engineOf } from './deps.js';
import { FieldChecks } from './fields.js';
import { pagesOf } from './pages.js';
import { seesAll } from './read-leases.js';

const pages = pagesOf('waiters');

interface WaiterQuery {
  readonly runId: string;
  readonly resource: string;
  readonly page: Page;
}

/** Of those ahead of the waiters of one page, altogether: in a long queue each stands behind all before it. */
const MAX_AHEAD = 20_000;

/** Leases that wait, the longest first, with whom they wait for; a runner sees those of its own runs. */
export async function listWaiters(deps: Deps, context: CallContext, query: WaiterQuery): Promise<At<Paged<Waiter>>> {
  const checks = new FieldChecks();
  checks.printable('run_id', query.runId, false);
  checks.text('resource', query.resource, 2_048);
  checks.done();
  const { size, after } = pages.asked(query.page);
  const engine = await engineOf(deps, context);
  return engine.read((view) => {
    const decision = view.preview('system', deps.bounds);
    const queue = new Queue(decision);
    const rows = waiting(view, context, query).filter((lease) => placeIn(lease) > after);
    const items: Waiter[] = [];
    let ahead = 0;
    for (const lease of rows) {
      if (items.length === size || ahead > MAX_AHEAD) break;
      const described = describeWaiting(decision, lease, queue);
      ahead += described.ahead;
      items.push({
        lease,
        waitingSince: lease.createdAt,
        place: {
          leaseId: lease.leaseId,
          place: described.ahead + 1,
          refusal: described.refusal,
          callAgainWithin: keptFor(view.state),
          waitsUntil: lease.waiting?.waitsUntil ?? view.now,
        },
      });
    }
    const last = items[items.length - 1];
    const nextToken = last === undefined || items.length === rows.length ? '' : pages.token(placeIn(last.lease));
    return { items, nextToken };
  });
}

function waiting({ state }: View, context: CallContext, { runId, resource }: WaiterQuery): Lease[] {
  const path = resource === '' ? '' : pathNamed(state.map, 'resource', resource);
  if (state.waitingLeases === 0) return [];
  const all = seesAll(context);
  return [...state.leases.values()]
    .filter(
      (lease) =>
        lease.state === 'waiting' &&
        (all || state.runs.get(lease.runId)?.principal === context.principal.name) &&
        (runId === '' || lease.runId === runId) &&
        (path === '' || lease.entries.some((entry) => touches(entry.resource, path))),
    )
    .sort((a, b) => (placeIn(a) < placeIn(b) ? -1 : 1));
}

/** By the time that it has waited, and then by its id; as text, in the same order. */
function placeIn({ createdAt, leaseId }: Lease): string {
  return `${String(createdAt).padStart(17, '0')} ${leaseId}`;
}
