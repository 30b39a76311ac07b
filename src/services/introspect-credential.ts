import type { CredentialClaims } from '../auth/credentials.js';
import { inNamespace } from '../auth/principal.js';
import { leaseReason } from '../domain/check-fence.js';
import { credentialReason } from '../domain/credential.js';
import type { View } from '../domain/decide/decision.js';
import { hasEnded } from '../domain/run.js';
import type { At, CallContext, Introspection } from './api.js';
import { confirmationOf, presentedOf } from './credential-claims.js';
import type { Deps } from './deps.js';
import { FieldChecks } from './fields.js';

const UNKNOWN: At<Introspection> = { value: { active: false }, revision: 0, now: 0 };

/** IntrospectCredential: RFC 7662, linearizably; what the caller may not know is not active. */
export async function introspectCredential(
  deps: Deps,
  context: CallContext,
  input: { readonly token: string },
): Promise<At<Introspection>> {
  const checks = new FieldChecks();
  if (input.token === '') checks.reject('token', 'is required');
  checks.done();
  const verified = await deps.credentials.verify(input.token);
  const visible = verified.ok && maySee(context, verified.claims);
  deps.metrics.introspected(visible ? 'known' : 'unknown');
  if (!verified.ok || !visible) return UNKNOWN;
  const engine = await deps.installation.open(verified.claims.namespace);
  return deps.credentials.decideBy(verified, async (known) => {
    if (!known.ok) return UNKNOWN;
    const { claims } = known;
    return engine.read((view): Introspection => {
      if (!counts(deps, view, claims)) return { active: false };
      const tokenType = claims.cnf !== undefined && 'jkt' in claims.cnf ? 'DPoP' : 'Bearer';
      return { active: true, claims: { ...claims, token_type: tokenType } };
    });
  });
}

function maySee(context: CallContext, claims: CredentialClaims): boolean {
  // The call names no namespace; the token does.
  const { name, roles } = inNamespace(context.principal, claims.namespace);
  if (roles.has('operator') || roles.has('admin') || roles.has('auditor')) return true;
  return (roles.has('target') && claims.aud === name) || (roles.has('runner') && claims.client_id === name);
}

/** As a check of it would be begun; who presents it is for the target to compare with `cnf`. */
function counts(deps: Deps, view: View, claims: CredentialClaims): boolean {
  const credential = presentedOf(claims);
  const { now } = view;
  const facts = {
    namespace: view.state.namespace,
    now,
    maxClockSkew: deps.maxClockSkew,
    revocations: view.state.revocations,
    presenter: confirmationOf(claims),
  };
  if (credentialReason(credential, facts) !== 'ok') return false;
  const run = view.run(credential.runId);
  if (credential.leaseId !== null) return leaseReason({ lease: view.lease(credential.leaseId), run, now }, '') === 'ok';
  return run !== undefined && !hasEnded(run) && run.state !== 'stopping' && run.authorityEndsAt > now;
}
