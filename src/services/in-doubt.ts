import { type Admission, isInDoubt, isOpen } from '../domain/admission.js';
import { pathNamed } from '../domain/conflict-map/index.js';
import { touches } from '../domain/decide/runs.js';
import { decideSettleInDoubt } from '../domain/decide/settle-in-doubt.js';
import type { At, CallContext, Page, Paged } from './api.js';
import { type Deps, engineOf, hasRole, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';
import { pagesOf } from './pages.js';
import { seesAll } from './read-leases.js';
import { unresolvedOf } from './run-view.js';

const pages = pagesOf('in-doubt');

interface InDoubtQuery {
  readonly runId: string;
  readonly resource: string;
  readonly includeOpen: boolean;
  readonly page: Page;
}

/** ListInDoubt: from memory, at a confirmed head. A target sees what it was let in for, a runner what is of its runs. */
export async function listInDoubt(
  deps: Deps,
  context: CallContext,
  query: InDoubtQuery,
): Promise<At<Paged<Admission>>> {
  const checks = new FieldChecks();
  checks.printable('run_id', query.runId, false);
  checks.text('resource', query.resource, 2_048);
  checks.done();
  const { size, after } = pages.asked(query.page);
  const engine = await engineOf(deps, context);
  const { name } = context.principal;
  return engine.read(({ state }) => {
    const resource = query.resource === '' ? '' : pathNamed(state.map, 'resource', query.resource);
    const mine = ({ target, runId }: Admission): boolean =>
      seesAll(context) ||
      (hasRole(context, 'target') && target === name) ||
      (hasRole(context, 'runner') && state.runs.get(runId)?.principal === name);
    const wanted = (admission: Admission): boolean =>
      (query.includeOpen ? isOpen(admission) : isInDoubt(admission)) &&
      (query.runId === '' || admission.runId === query.runId) &&
      (resource === '' || touches(admission.resource, resource));
    const rows = [...state.admissions.values()]
      .filter((admission) => admission.admissionId > after && wanted(admission) && mine(admission))
      .sort((a, b) => (a.admissionId < b.admissionId ? -1 : 1));
    return pages.cut(rows, size, ({ admissionId }) => admissionId);
  });
}

interface Settlement {
  readonly admissionId: string;
  readonly happened: boolean;
  readonly newVersion: string | null;
  readonly reason: string;
}

export interface Settled {
  readonly settledNow: boolean;
  readonly runId: string;
  /** Of the same run; bounded by what a run may have open. */
  readonly stillOpen: readonly Admission[];
}

/** SettleInDoubt: what an operator has found out; who and why are in the log. */
export async function settleInDoubt(deps: Deps, context: CallContext, input: Settlement): Promise<At<Settled>> {
  const checks = new FieldChecks();
  checks.id('admission_id', input.admissionId);
  checks.text('reason', input.reason, 1_024, true);
  if (input.newVersion !== null) {
    checks.text('new_version', input.newVersion, 256);
    if (!input.happened) checks.reject('new_version', 'a write that did not happen made no version');
  }
  checks.done();
  const engine = await engineOf(deps, context);
  const command = { ...input, requestIds: requestIds(context.requestId) };
  return engine.submit(context.principal.name, (decision) => {
    const { settledNow } = decideSettleInDoubt(decision, command);
    const runId = decision.admission(input.admissionId)?.runId ?? '';
    return { settledNow, runId, stillOpen: unresolvedOf(decision.state, runId) };
  });
}
