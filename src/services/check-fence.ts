import { MAX_CREDENTIAL_BYTES } from '../auth/credentials.js';
import { type CheckFacts, type CredentialView, checkFence as decideCheck } from '../domain/check-fence.js';
import { type ConflictMap, kindOf, observes, resolveResource } from '../domain/conflict-map/index.js';
import { type CredentialScope, credentialReason, scopeFor } from '../domain/credential.js';
import type { View } from '../domain/decide/decision.js';
import type { FenceVerdict } from '../domain/fence.js';
import type { Lease } from '../domain/lease.js';
import { SECOND } from '../domain/time.js';
import { monotonicMicros } from '../platform/clock.js';
import type { At, CallContext, CheckFenceInput } from './api.js';
import { grantsOf, presentedOf } from './credential-claims.js';
import type { Verified } from './credentials.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/** CheckFence: linearizable, all writes of one request together; a denial is recorded after the answer (P3, P4, C10). */
export async function checkFence(deps: Deps, context: CallContext, input: CheckFenceInput): Promise<At<FenceVerdict>> {
  const arrivedAt = monotonicMicros();
  checkFields(input);
  const engine = await engineOf(deps, context);
  const presented = await readCredential(deps, context, input.credential ?? '');
  const { value, revision, now } = await engine.read((view) => {
    const leaseId = presented === null ? input.leaseId : leaseIdOf(presented);
    const lease = leaseId === null ? undefined : view.lease(leaseId);
    const credential = presented === null ? null : lookAt(deps, view, lease, presented, input);
    return {
      verdict: verdict(deps, view, lease, credential, context.principal.name, input),
      // Of an unknown lease no run is known: a target must not be able to write into the history of any it names.
      runId: lease?.runId ?? '',
      map: view.state.map,
    };
  });
  deps.metrics.checked(monotonicMicros() - arrivedAt);
  if (value.verdict.results.some((result) => result.reason !== 'ok'))
    recordDenials(deps, engine.namespace, context, input, value);
  return { value: value.verdict, revision, now };
}

function checkFields(input: CheckFenceInput): void {
  const checks = new FieldChecks();
  const { credential = '', presenter = null } = input;
  if ((credential === '') === (input.leaseId === ''))
    checks.reject('lease_id', 'give exactly one of lease_id and credential');
  checks.printable('lease_id', input.leaseId, false);
  // What is larger still cannot have come in a header; up to there the verdict says so.
  if (credential.length > 4 * MAX_CREDENTIAL_BYTES)
    checks.reject('credential', `must be at most ${MAX_CREDENTIAL_BYTES} bytes`);
  if (presenter !== null) checks.thumbprint('presenter', presenter.thumbprint);
  checks.printable('presenter_run_id', input.presenterRunId, false);
  if (input.writes.length < 1 || input.writes.length > 256) checks.reject('writes', 'must be 1 to 256');
  input.writes.forEach((write, index) => {
    const field = `writes[${index}]`;
    if (write.resource === '') checks.reject(`${field}.resource`, 'is required');
    else checks.text(`${field}.resource`, write.resource, 2_048);
    checks.action(`${field}.action`, write.action);
    if (write.observedVersion !== null) checks.text(`${field}.observed_version`, write.observedVersion, 256);
  });
  checks.printable('request_id', input.requestId, false);
  checks.done();
}

/** The credential as the calling target may take it; null: none was presented. */
async function readCredential(deps: Deps, context: CallContext, token: string): Promise<Verified | null> {
  if (token === '') return null;
  const verified = await deps.credentials.verify(token);
  return verified.ok && verified.claims.aud !== context.principal.name
    ? { ok: false, reason: 'wrong_audience' }
    : verified;
}

const leaseIdOf = (presented: Verified): string | null => (presented.ok ? (presented.claims.lease_id ?? null) : null);

/** What the credential is worth at this head and time, apart from its lease. */
function lookAt(
  deps: Deps,
  view: View,
  lease: Lease | undefined,
  presented: Verified,
  input: CheckFenceInput,
): CredentialView {
  if (!presented.ok) return { reason: presented.reason, grants: [], expiresAt: null };
  const credential = presentedOf(presented.claims);
  const { map, namespace, revocations } = view.state;
  const { maxClockSkew } = deps;
  const presenter = input.presenter ?? null;
  const reason = credentialReason(credential, { namespace, now: view.now, maxClockSkew, revocations, presenter });
  const scopeNow = (): CredentialScope =>
    lease === undefined ? { grants: [], proposals: [] } : scopeFor(map, lease, presented.claims.aud);
  return { reason, grants: grantsOf(presented.claims, scopeNow), expiresAt: credential.expiresAt * SECOND };
}

function verdict(
  deps: Deps,
  view: View,
  lease: Lease | undefined,
  credential: CredentialView | null,
  target: string,
  input: CheckFenceInput,
): FenceVerdict {
  const { map } = view.state;
  const facts: CheckFacts = {
    now: view.now,
    maxClockSkew: deps.maxClockSkew,
    lease,
    run: lease === undefined ? undefined : view.run(lease.runId),
    pathOf: (resource) => pathOf(map, resource),
    observes: (resource) => observes(map, resource),
    ownedByCaller: (resource) => {
      const owners = kindOf(map, resource)?.ownerService ?? [];
      return owners.length === 0 || owners.includes(target);
    },
  };
  const { presenterRunId, writes } = input;
  return decideCheck(facts, { presenterRunId, writes, ...(credential === null ? {} : { credential }) });
}

function pathOf(map: ConflictMap, resource: string): string | null {
  const resolved = resolveResource(map, resource);
  return resolved.ok ? resolved.resource : null;
}

interface Decided {
  readonly verdict: FenceVerdict;
  readonly runId: string;
  readonly map: ConflictMap;
}

function recordDenials(
  deps: Deps,
  namespace: string,
  context: CallContext,
  input: CheckFenceInput,
  { verdict, runId, map }: Decided,
): void {
  const ids = requestIds(input.requestId, context.requestId);
  const target = context.principal.name;
  const presentedRun = input.presenterRunId === runId ? '' : input.presenterRunId;
  input.writes.forEach(({ resource, action }, index) => {
    const result = verdict.results[index];
    if (result === undefined || result.reason === 'ok') return;
    const { reason, observedOnly } = result;
    deps.metrics.denied(namespace, reason);
    if (reason === 'future_token') deps.futureTokens.note(target, resource);
    deps.denials.note(namespace, { reason, resource, action, runId, presentedRun, target, observedOnly }, ids);
    const path = pathOf(map, resource);
    if (path !== null && kindOf(map, path) === null) deps.denials.noteUnmatched(namespace, path);
  });
}
