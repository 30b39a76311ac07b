import { decideRelease } from '../domain/decide/release.js';
import type { At, CallContext, ReleaseInput, ReleaseOutcome } from './api.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/** ReleaseLease: ends a lease of the caller's run; when it returns, no check allows the token (P3). */
export async function releaseLease(deps: Deps, context: CallContext, input: ReleaseInput): Promise<At<ReleaseOutcome>> {
  const checks = new FieldChecks();
  checks.id('run_id', input.runId);
  if (input.leaseId === null && input.acquireKey === null) checks.reject('lease', 'give lease_id or acquire_key');
  if (input.leaseId !== null) checks.printable('lease_id', input.leaseId, true);
  if (input.acquireKey !== null) checks.printable('acquire_key', input.acquireKey, true);
  checks.done();
  const engine = await engineOf(deps, context);
  const command = { principal: context.principal.name, requestIds: requestIds(context.requestId), ...input };
  return engine.submit(context.principal.name, (decision) => decideRelease(decision, command));
}
