import { decideRevokeCredentials, type RevokeCredentialsCommand } from '../domain/decide/revoke-credentials.js';
import type { Micros } from '../domain/time.js';
import type { At, CallContext } from './api.js';
import { type Deps, engineOf, hasRole, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/** RevokeCredential: when it returns, no check allows what was out (P3). */
export async function revokeCredential(
  deps: Deps,
  context: CallContext,
  input: { readonly subject: RevokeCredentialsCommand['subject']; readonly reason: string },
): Promise<At<{ effectiveAt: Micros }>> {
  const { subject, reason } = input;
  const checks = new FieldChecks();
  if (subject.kind === 'jti') checks.printable('jti', subject.jti, true);
  else if (subject.kind === 'lease') checks.printable('lease_id', subject.leaseId, true);
  else checks.id('run_id', subject.runId);
  checks.text('reason', reason, 1_024, true);
  checks.done();
  const engine = await engineOf(deps, context);
  const principal = hasRole(context, 'operator', 'admin') ? null : context.principal.name;
  const ids = requestIds(context.requestId);
  return engine.submit(context.principal.name, (decision) =>
    decideRevokeCredentials(decision, { principal, subject, reason, requestIds: ids }),
  );
}
