import type { View } from '../domain/decide/decision.js';
import { decideRenew } from '../domain/decide/renew.js';
import { noticesOf } from '../domain/notices.js';
import { SECOND } from '../domain/time.js';
import { checkAnswerFits } from './answer-size.js';
import type { At, CallContext, RenewalOutcome, RenewInput } from './api.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/** RenewLeases: extends leases of one run, each decided for itself. */
export async function renewLeases(
  deps: Deps,
  context: CallContext,
  input: RenewInput,
): Promise<At<readonly RenewalOutcome[]>> {
  const checks = new FieldChecks();
  checks.id('run_id', input.runId);
  if (input.renewals.length < 1 || input.renewals.length > 1_000) checks.reject('renewals', 'must be 1 to 1,000');
  const named = new Set<string>();
  input.renewals.forEach((renewal, index) => {
    const field = `renewals[${index}]`;
    checks.printable(`${field}.lease_id`, renewal.leaseId, true);
    if (named.has(renewal.leaseId)) checks.reject(`${field}.lease_id`, 'is in the request twice');
    named.add(renewal.leaseId);
    if (renewal.ttl !== null) checks.between(`${field}.ttl`, renewal.ttl, 1 * SECOND, 3_600 * SECOND);
    if (renewal.progressMarker !== null) checks.text(`${field}.progress_marker`, renewal.progressMarker, 256);
  });
  checks.done();
  const engine = await engineOf(deps, context);
  const ids = requestIds(context.requestId);
  const answer = await engine.submit(context.principal.name, (decision) => {
    const command = { principal: context.principal.name, requestIds: ids, ...input };
    const results = decideRenew(decision, command).map(({ leaseId, refusal }) => ({
      leaseId,
      refusal,
      lease: refusal === null ? (decision.lease(leaseId) ?? null) : null,
    }));
    // What is thrown here leaves nothing of the decision.
    if (results.length > 1) checkAnswerFits(results.flatMap(({ lease }) => lease ?? []));
    return withNotices(decision, results);
  });
  for (const { refusal } of answer.value) if (refusal !== null) deps.metrics.refused(engine.namespace, refusal.kind);
  return answer;
}

function withNotices(view: View, results: readonly Omit<RenewalOutcome, 'notices'>[]): RenewalOutcome[] {
  const renewed = results.flatMap(({ lease }) => (lease === null ? [] : [lease]));
  const notices = noticesOf(view, renewed);
  return results.map((result) => ({ ...result, notices: result.lease === null ? [] : (notices.shift() ?? []) }));
}
