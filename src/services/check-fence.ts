import { MAX_CREDENTIAL_BYTES } from '../auth/credentials.js';
import { type CheckFacts, type CredentialView, checkFence as decideCheck } from '../domain/check-fence.js';
import { type ConflictMap, isTracked, kindOf, observes, resolveResource } from '../domain/conflict-map/index.js';
import { type CredentialScope, credentialReason, scopeFor } from '../domain/credential.js';
import { decideAdmitWrites, knownAdmissions, type TrackedWrite } from '../domain/decide/admit-writes.js';
import type { Decision, View } from '../domain/decide/decision.js';
import { isResourceInDoubt } from '../domain/doubt.js';
import { Fault } from '../domain/fault.js';
import type { FenceVerdict } from '../domain/fence.js';
import { deniesWrites } from '../domain/freeze.js';
import type { Lease } from '../domain/lease.js';
import { type Micros, SECOND } from '../domain/time.js';
import type { Answer, NamespaceEngine } from '../engine/namespace-engine.js';
import { randomId } from '../engine/random-id.js';
import { monotonicMicros } from '../platform/clock.js';
import type { At, CallContext, CheckedFence, CheckFenceInput } from './api.js';
import { grantsOf, presentedOf } from './credential-claims.js';
import type { Verified } from './credentials.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/** Times that a tracked check is decided anew because a repetition of it came between. */
const MAX_ROUNDS = 5;

/**
 * CheckFence: linearizable, all writes of one request together; a denial is recorded after the answer (P3, P4, C10). What
 * it allows of tracked actions is in the log before the answer (R4).
 */
export async function checkFence(deps: Deps, context: CallContext, input: CheckFenceInput): Promise<At<CheckedFence>> {
  const arrivedAt = monotonicMicros();
  checkFields(input);
  const engine = await engineOf(deps, context);
  const lookBy = (presented: Verified | null) => (view: View) =>
    decide(deps, view, presented, context.principal.name, input);
  const read = async (presented: Verified | null) => ({ presented, answer: await engine.read(lookBy(presented)) });
  const verified = await readCredential(deps, context, input.credential ?? '');
  const { presented, answer } = await (verified === null ? read(null) : deps.credentials.decideBy(verified, read));
  const admitted = async (): Promise<Answer<Decided>> => {
    const letInNow = await letIn(engine, lookBy(presented), context, input);
    if (presented === null) return letInNow;
    // A key that was retired meanwhile counts for nothing. What it let in stays open: who repeats a check may know of it.
    const decideAnew = async (known: Verified) => (known === presented ? letInNow : (await read(known)).answer);
    return deps.credentials.decideBy(presented, decideAnew);
  };
  const { value, revision, now } = isUnadmitted(answer.value) ? await admitted() : answer;
  deps.metrics.checked(monotonicMicros() - arrivedAt);
  return { value: answerTo(deps, engine.namespace, context, input, value), revision, now };
}

/** What the target is told; a denial is noted, and recorded after the answer. */
export function answerTo(
  deps: Deps,
  namespace: string,
  context: CallContext,
  input: CheckFenceInput,
  decided: Decided,
): CheckedFence {
  if (decided.verdict.results.some((result) => result.reason !== 'ok'))
    recordDenials(deps, namespace, context, input, decided);
  return decided.tracked === null ? decided.verdict : withAdmissions(decided, input);
}

/** Whether it is allowed once it is in the log, and is not yet. */
export const isUnadmitted = ({ tracked }: Decided): boolean => tracked !== null && tracked.admissionIds === null;

/**
 * Appends the admissions, on a verdict of the same moment. Where it turns out that none are needed, as the check is denied
 * now, or a repetition of it was faster, it is read again: at a time that the database confirms, as an append would.
 */
async function letIn(
  engine: NamespaceEngine,
  look: (view: View) => Decided,
  context: CallContext,
  input: CheckFenceInput,
): Promise<Answer<Decided>> {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { value, revision, now } = await engine.submit(context.principal.name, (decision) => {
      const decidedAt = decision.now;
      const decided = look(decision);
      return isUnadmitted(decided) ? { decidedAt, admitted: admit(decision, decided, context, input) } : null;
    });
    if (value !== null) return { value: asOf(value.admitted, now - value.decidedAt), revision, now };
    const read = await engine.read(look);
    if (!isUnadmitted(read.value)) return read;
  }
  throw new Fault('unavailable', 'TOO_BUSY', 'The same check is made again and again; nothing was let in. Try again.');
}

/** What is left counts from the time that the append read, as the target counts it from when it asked. */
function asOf(decided: Decided, elapsed: Micros): Decided {
  const { verdict: found } = decided;
  return found.validFor === null
    ? decided
    : { ...decided, verdict: { ...found, validFor: Math.max(0, found.validFor - elapsed) } };
}

function admit(decision: Decision, decided: Decided, context: CallContext, input: CheckFenceInput): Decided {
  const { lease, credential, tracked } = decided;
  const run = lease === undefined ? undefined : decision.run(lease.runId);
  if (lease === undefined || run === undefined || tracked === null) throw new Error('nothing to let in');
  const { requestId } = input;
  const admissionIds = decideAdmitWrites(decision, {
    lease,
    run,
    target: context.principal.name,
    requestId,
    credentialEnds: credential?.expiresAt ?? null,
    writes: tracked.writes,
    requestIds: [...new Set(requestIds(requestId, context.requestId))],
  });
  return { ...decided, tracked: { ...tracked, admissionIds } };
}

/** What is decided at this moment, by the credential where one was presented. */
export function decide(
  deps: Deps,
  view: View,
  presented: Verified | null,
  target: string,
  input: CheckFenceInput,
): Decided {
  const leaseId = presented === null ? input.leaseId : leaseIdOf(presented);
  const lease = leaseId === null ? undefined : view.lease(leaseId);
  const credential = presented === null ? null : lookAt(deps, view, lease, presented, input);
  const found = verdict(deps, view, lease, credential, target, input);
  return {
    verdict: found,
    // Of an unknown lease no run is known: a target must not be able to write into the history of any it names.
    runId: lease?.runId ?? '',
    map: view.state.map,
    lease,
    credential,
    tracked: view.state.map.tracks && found.allowed ? trackedOf(view, found, lease, target, input) : null,
  };
}

/** What of an allowed check is covered by the lease and of a tracked action; null: nothing is. */
function trackedOf(
  { state }: View,
  { results }: FenceVerdict,
  lease: Lease | undefined,
  target: string,
  { writes: asked, requestId }: CheckFenceInput,
): Tracked | null {
  if (lease === undefined) return null;
  const { map } = state;
  const writes = asked.flatMap((write, index): IndexedWrite[] => {
    const path = pathOf(map, write.resource);
    const hold = results[index]?.hold ?? null;
    if (path === null || hold === null || !isTracked(map, path, write.action)) return [];
    return [
      { ...write, resource: path, token: hold.token, index, field: `writes[${index}]`, freshAdmissionId: randomId() },
    ];
  });
  if (writes.length === 0) return null;
  const known = knownAdmissions(state, { lease, target, requestId, writes });
  return { writes, admissionIds: known?.map(({ admissionId }) => admissionId) ?? null };
}

/** Each admission at the place of its write in the request. */
function withAdmissions({ verdict: decided, tracked }: Decided, input: CheckFenceInput): CheckedFence {
  const admissionIds = input.writes.map(() => '');
  tracked?.writes.forEach(({ index }, at) => {
    admissionIds[index] = tracked.admissionIds?.[at] ?? '';
  });
  return { ...decided, admissionIds };
}

export function checkFields(input: CheckFenceInput): void {
  const checks = new FieldChecks();
  const { credential = '', presenter = null } = input;
  if ((credential === '') === (input.leaseId === ''))
    checks.reject('lease_id', 'give exactly one of lease_id and credential');
  checks.printable('lease_id', input.leaseId, false);
  // What is larger still cannot have come in a header; up to there the verdict says so.
  if (credential.length > 4 * MAX_CREDENTIAL_BYTES)
    checks.reject('credential', `must be at most ${MAX_CREDENTIAL_BYTES} bytes`);
  if (presenter !== null) checks.confirmation('presenter', presenter);
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

/** Most checks are made while nothing is in doubt. */
const NEVER = (): boolean => false;

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
    frozen: (resource) => deniesWrites(view.state.freezes, resource, view.now),
    inDoubt: view.state.inDoubt === 0 ? NEVER : (resource) => isResourceInDoubt(view.state, resource, lease),
  };
  const { presenterRunId, writes } = input;
  return decideCheck(facts, { presenterRunId, writes, ...(credential === null ? {} : { credential }) });
}

function pathOf(map: ConflictMap, resource: string): string | null {
  const resolved = resolveResource(map, resource);
  return resolved.ok ? resolved.resource : null;
}

export interface Decided {
  readonly verdict: FenceVerdict;
  readonly runId: string;
  readonly map: ConflictMap;
  readonly lease: Lease | undefined;
  readonly credential: CredentialView | null;
  /** Null: nothing that is allowed is tracked. */
  readonly tracked: Tracked | null;
}

type IndexedWrite = TrackedWrite & { readonly index: number };

interface Tracked {
  readonly writes: readonly IndexedWrite[];
  /** In the order of these writes; null: they are not let in yet. */
  readonly admissionIds: readonly string[] | null;
}

function recordDenials(
  deps: Deps,
  namespace: string,
  context: CallContext,
  input: CheckFenceInput,
  { verdict, runId, lease, map }: Decided,
): void {
  const ids = requestIds(input.requestId, context.requestId);
  const target = context.principal.name;
  const presentedRun = input.presenterRunId === runId ? '' : input.presenterRunId;
  const leaseId = lease?.leaseId ?? '';
  input.writes.forEach(({ resource, action }, index) => {
    const result = verdict.results[index];
    if (result === undefined || result.reason === 'ok') return;
    const { reason, observedOnly } = result;
    deps.metrics.denied(namespace, reason);
    if (reason === 'future_token') deps.futureTokens.note(target, resource);
    const denial = { reason, resource, action, runId, leaseId, presentedRun, target, observedOnly };
    deps.denials.note(namespace, denial, ids);
    const path = pathOf(map, resource);
    if (path !== null && kindOf(map, path) === null) deps.denials.noteUnmatched(namespace, path);
  });
}
