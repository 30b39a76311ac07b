import { randomBytes } from 'node:crypto';
import type { Principal } from '../auth/principal.js';
import type { Confirmation } from '../domain/credential.js';
import type { Decision } from '../domain/decide/decision.js';
import { decideIssueCredentials, type IssueDecision } from '../domain/decide/issue-credentials.js';
import { SECOND } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import type { At, AudienceCredential, CallContext, IssueCredentialInput, IssuedCredential } from './api.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/** Audiences of one acquire. */
const MAX_AUDIENCES = 16;

/** IssueCredential: decided on the log, signed once that is acknowledged (C9, P10). */
export async function issueCredential(
  deps: Deps,
  context: CallContext,
  input: IssueCredentialInput,
): Promise<At<AudienceCredential>> {
  const checks = new FieldChecks();
  checks.id('run_id', input.runId);
  if (input.leaseId !== null) checks.printable('lease_id', input.leaseId, true);
  checks.printable('audience', input.audience, true);
  if (input.confirmation !== null) checks.confirmation('confirmation', input.confirmation);
  checks.printable('request_id', input.requestId, false);
  checks.done();
  await canIssue(deps, [input.audience]);
  const engine = await engineOf(deps, context);
  const issuer = issuerFor(deps, context, [input.audience], requestIds(input.requestId, context.requestId));
  const boundTo = input.confirmation ?? certificateOf(context.principal);
  const { value, revision, now } = await engine.submit(context.principal.name, (decision) =>
    issuer(decision, input.runId, input.leaseId, boundTo),
  );
  const [outcome] = await signed(deps, engine.namespace, value, now);
  if (outcome === undefined) throw new Error('an audience without outcome');
  return { value: outcome, revision, now };
}

/** Throws a Fault when nothing could be signed: before anything is decided. */
export async function canIssue(deps: Deps, audiences: readonly string[]): Promise<void> {
  if (audiences.length > 0) await deps.credentials.ring.signer();
}

/** What is wrong with the audiences of an acquire. */
export function checkAudiences(checks: FieldChecks, audiences: readonly string[], field: string): void {
  if (audiences.length > MAX_AUDIENCES) checks.reject(field, `must be at most ${MAX_AUDIENCES}`);
  audiences.forEach((audience, index) => checks.printable(`${field}[${index}]`, audience, true));
  if (new Set(audiences).size < audiences.length) checks.reject(field, 'must name each target once');
}

/** Decides inside a command. The random ids are drawn once, however often it is decided. */
export function issuerFor(deps: Deps, context: CallContext, audiences: readonly string[], ids: readonly string[]) {
  const wanted = audiences.map((audience) => ({ audience, jti: randomBytes(16).toString('base64url') }));
  return (decision: Decision, runId: string, leaseId: string | null, boundTo: Confirmation | null): IssueDecision[] =>
    decideIssueCredentials(decision, {
      principal: context.principal.name,
      runId,
      leaseId,
      wanted,
      boundTo,
      maxClockSkew: deps.maxClockSkew,
      requestIds: ids,
    });
}

/** Credentials for a lease that was granted while its call waited. */
export async function issueForLease(
  deps: Deps,
  engine: NamespaceEngine,
  context: CallContext,
  lease: { readonly runId: string; readonly leaseId: string },
  audiences: readonly string[],
): Promise<readonly AudienceCredential[]> {
  if (audiences.length === 0) return [];
  const issuer = issuerFor(deps, context, audiences, requestIds(context.requestId));
  const { value, now } = await engine.submit(context.principal.name, (decision) =>
    issuer(decision, lease.runId, lease.leaseId, certificateOf(context.principal)),
  );
  return signed(deps, engine.namespace, value, now);
}

/** The certificate of the session binds without being asked to: whoever steals the token lacks its key. */
export function certificateOf({ certificateThumbprint }: Principal): Confirmation | null {
  return certificateThumbprint === undefined ? null : { kind: 'x5t#S256', thumbprint: certificateThumbprint };
}

/** Signs what was decided and acknowledged, and counts. */
export function signed(
  deps: Deps,
  namespace: string,
  decided: readonly IssueDecision[],
  now: number,
): Promise<AudienceCredential[]> {
  return Promise.all(
    decided.map(async (one): Promise<AudienceCredential> => {
      if (one.kind === 'refusal') {
        deps.metrics.credentialRefused(namespace, one.refusal.kind);
        return { audience: one.audience, credential: null, refusal: one.refusal };
      }
      const { credential } = one;
      const issued: IssuedCredential = {
        token: await deps.credentials.sign(credential, namespace),
        jti: credential.jti,
        audience: credential.audience,
        expiresAt: credential.expiresAt * SECOND,
        expiresIn: credential.expiresAt * SECOND - now,
        tokenType: credential.boundTo?.kind === 'jkt' ? 'DPoP' : 'Bearer',
        boundTo: credential.boundTo,
      };
      deps.metrics.credentialIssued(namespace);
      return { audience: one.audience, credential: issued, refusal: null };
    }),
  );
}
