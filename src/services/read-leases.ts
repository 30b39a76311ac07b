import { leaseNotFound } from '../domain/decide/run-guard.js';
import { touches } from '../domain/decide/runs.js';
import type { Lease, LeaseState } from '../domain/lease.js';
import { liveLeasesOf, type State } from '../domain/state.js';
import type { At, CallContext, Page, Paged } from './api.js';
import { type Deps, engineOf, hasRole } from './deps.js';
import { paged, pageOf } from './fields.js';

/** Rows of the projections looked at for one page, when most do not match. */
const MAX_SCANNED = 10_000;

/** Whether a caller may see leases and runs of others. */
export function seesAll(context: CallContext): boolean {
  return hasRole(context, 'operator', 'admin', 'auditor');
}

/** GetLease: one lease, live or ended; a runner sees those of its own runs. */
export async function getLease(deps: Deps, context: CallContext, input: { leaseId: string }): Promise<At<Lease>> {
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
  readonly page: Page;
}

/** ListLeases: live ones from memory at a confirmed head, ended ones from the projections. */
export async function listLeases(deps: Deps, context: CallContext, query: LeaseQuery): Promise<At<Paged<Lease>>> {
  const { size, after } = pageOf(query.page);
  const engine = await engineOf(deps, context);
  const states: readonly LeaseState[] = query.states.length === 0 ? ['waiting', 'active'] : query.states;
  const visible = (lease: Lease, principal: string | undefined): boolean =>
    (seesAll(context) || principal === context.principal.name) &&
    states.includes(lease.state) &&
    (query.runId === '' || lease.runId === query.runId) &&
    (query.resource === '' || lease.entries.some((entry) => touches(entry.resource, query.resource)));
  if (states.includes('ended')) return listEnded(deps, context, query, visible);
  return engine.read((view) => {
    const principal = (lease: Lease): string | undefined => view.state.runs.get(lease.runId)?.principal;
    const rows = [...candidates(view.state, query.runId)]
      .filter((lease) => lease.leaseId > after && visible(lease, principal(lease)))
      .sort((a, b) => (a.leaseId < b.leaseId ? -1 : 1));
    return paged(rows, size, (lease) => lease.leaseId);
  });
}

function candidates(state: State, runId: string): Iterable<Lease> {
  return runId === '' ? state.leases.values() : liveLeasesOf(state, runId);
}

async function listEnded(
  deps: Deps,
  context: CallContext,
  query: LeaseQuery,
  visible: (lease: Lease, principal: string | undefined) => boolean,
): Promise<At<Paged<Lease>>> {
  const { size, after } = pageOf(query.page);
  const engine = await engineOf(deps, context);
  const { revision, now } = await engine.read(() => null);
  const rows: Lease[] = [];
  let afterId = after;
  for (let scanned = 0; rows.length <= size && scanned < MAX_SCANNED; ) {
    const found = await deps.store.listLeases(engine.namespace, {
      ...(query.runId === '' ? {} : { runId: query.runId }),
      states: query.states,
      afterId,
      limit: 1_000,
    });
    scanned += found.length;
    const runs = await engine.read(
      (view) => new Map(found.map((lease) => [lease.leaseId, view.run(lease.runId)?.principal])),
    );
    rows.push(...found.filter((lease) => visible(lease, runs.value.get(lease.leaseId))));
    const last = found[found.length - 1];
    if (last === undefined || found.length < 1_000) break;
    afterId = last.leaseId;
  }
  return { value: paged(rows, size, (lease) => lease.leaseId), revision, now };
}
