import { pathNamed } from '../domain/conflict-map/index.js';
import { leaseNotFound } from '../domain/decide/run-guard.js';
import { touches } from '../domain/decide/runs.js';
import { isPast, type Lease, type LeaseState, underLockDelay } from '../domain/lease.js';
import { delayedLeases, liveLeasesOf, type State } from '../domain/state.js';
import type { Micros } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import { leaseBytes } from './answer-size.js';
import type { At, CallContext, Page, Paged } from './api.js';
import { type Deps, engineOf, hasRole } from './deps.js';
import { FieldChecks } from './fields.js';
import { fitting, pagesOf } from './pages.js';

const pages = pagesOf('leases');

/** Rows of the projections looked at for one page, when most do not match. */
const MAX_SCANNED = 10_000;
const SCAN_PAGE = 1_000;

/** Whether a caller may see leases and runs of others. */
export function seesAll(context: CallContext): boolean {
  return hasRole(context, 'operator', 'admin', 'auditor');
}

/** GetLease: one lease, live or ended; a runner sees those of its own runs. */
export async function getLease(deps: Deps, context: CallContext, input: { leaseId: string }): Promise<At<Lease>> {
  const checks = new FieldChecks();
  checks.printable('lease_id', input.leaseId, true);
  checks.done();
  const engine = await engineOf(deps, context);
  return engine.read((view) => {
    const lease = view.lease(input.leaseId);
    const mine =
      lease !== undefined && (seesAll(context) || view.run(lease.runId)?.principal === context.principal.name);
    if (lease === undefined || !mine) throw leaseNotFound(input.leaseId);
    return lease;
  });
}

interface LeaseQuery {
  readonly runId: string;
  readonly resource: string;
  readonly states: readonly LeaseState[];
  readonly lockDelayed: boolean;
  readonly page: Page;
}

/** ListLeases: live ones, and those under lock delay, from memory at a confirmed head; ended ones from the projections. */
export async function listLeases(deps: Deps, context: CallContext, query: LeaseQuery): Promise<At<Paged<Lease>>> {
  const checks = new FieldChecks();
  checks.printable('run_id', query.runId, false);
  checks.text('resource', query.resource, 2_048);
  checks.done();
  const { size, after } = pages.asked(query.page);
  const engine = await engineOf(deps, context);
  if (query.states.includes('ended')) return listEnded(engine, context, query);
  return engine.read((view) => {
    const visible = visibleTo(context, query, view);
    const principal = (lease: Lease): string | undefined => view.state.runs.get(lease.runId)?.principal;
    const rows = [...candidates(view.state, query.runId, seesAll(context) ? null : context.principal.name)]
      .filter((lease) => lease.leaseId > after && visible(lease, principal(lease)))
      .sort((a, b) => (a.leaseId < b.leaseId ? -1 : 1));
    return pagedLeases(rows, size);
  });
}

/** Whether a lease of a run of the principal is asked for, and may be told. */
function visibleTo(
  context: CallContext,
  query: LeaseQuery,
  { state, now }: { readonly state: State; readonly now: Micros },
): (lease: Lease, principal: string | undefined) => boolean {
  const states: readonly LeaseState[] = query.states.length === 0 ? ['waiting', 'active'] : query.states;
  const resource = query.resource === '' ? '' : pathNamed(state.map, 'resource', query.resource);
  return (lease, principal) =>
    (seesAll(context) || principal === context.principal.name) &&
    (states.includes(lease.state) || (query.lockDelayed && underLockDelay(lease) && !isPast(lease, now))) &&
    (query.runId === '' || lease.runId === query.runId) &&
    (resource === '' || lease.entries.some((entry) => touches(entry.resource, resource)));
}

/** Live leases of the run, or of every run of the principal, or all; and whatever is under lock delay. */
function* candidates(state: State, runId: string, principal: string | null): Iterable<Lease> {
  if (runId === '' && principal === null) {
    yield* state.leases.values();
    return;
  }
  yield* delayedLeases(state);
  if (runId !== '') yield* liveLeasesOf(state, runId);
  else for (const run of state.runs.values()) if (run.principal === principal) yield* liveLeasesOf(state, run.runId);
}

function pagedLeases(rows: readonly Lease[], size: number): Paged<Lease> {
  return pages.cut(rows, Math.min(size, fitting(rows, leaseBytes)), (lease) => lease.leaseId);
}

async function listEnded(engine: NamespaceEngine, context: CallContext, query: LeaseQuery): Promise<At<Paged<Lease>>> {
  const { size, after } = pages.asked(query.page);
  const { value: visible, revision, now } = await engine.read((view) => visibleTo(context, query, view));
  const rows: Lease[] = [];
  let afterId = after;
  for (let scanned = 0; rows.length <= size; scanned += SCAN_PAGE) {
    // A page that took too long to fill ends where the scan stopped, and says that there is more.
    if (scanned >= MAX_SCANNED) {
      const page = pagedLeases(rows, rows.length);
      return { value: page.nextToken === '' ? { ...page, nextToken: pages.token(afterId) } : page, revision, now };
    }
    const found = await engine.store.listLeases(engine.namespace, {
      ...(query.runId === '' ? {} : { runId: query.runId }),
      states: query.states,
      afterId,
      limit: SCAN_PAGE,
    });
    const principals = await principalsOf(engine, found);
    rows.push(...found.filter((lease) => visible(lease, principals.get(lease.runId))));
    const last = found[found.length - 1];
    if (last === undefined || found.length < SCAN_PAGE) break;
    afterId = last.leaseId;
  }
  return { value: pagedLeases(rows, size), revision, now };
}

async function principalsOf(engine: NamespaceEngine, leases: readonly Lease[]): Promise<Map<string, string>> {
  const runIds = [...new Set(leases.map((lease) => lease.runId))];
  const { records } = await engine.store.loadRuns(engine.namespace, runIds);
  return new Map(records.map((run) => [run.runId, run.principal]));
}
