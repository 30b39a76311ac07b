import {
  type AcquireCommand,
  type AcquireDecision,
  ATTACHED_FOR,
  decideAcquire,
  describeWaiting,
  previewAcquire,
} from '../domain/decide/acquire.js';
import { endedWaiting } from '../domain/decide/acquire-refusals.js';
import type { View } from '../domain/decide/decision.js';
import { runNotFound } from '../domain/decide/run-guard.js';
import type { Lease } from '../domain/lease.js';
import type { Refusal } from '../domain/refusal.js';
import { MILLISECOND, type Micros, SECOND } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import type { AcquireInput, AcquireOutcome, At, CallContext, WaitingPlace } from './api.js';
import { type Deps, engineOf, fingerprint, hasRole, randomId, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';
import { canIssue, certificateOf, checkAudiences, issueForLease, issuerFor, signed } from './issue-credential.js';

/** The longest a call blocks before it answers `waiting`. */
const MAX_BLOCK: Micros = 20 * SECOND;
/** Left of the caller's deadline for the answer to travel. */
const DEADLINE_MARGIN: Micros = 1 * SECOND;
const MAX_WAIT: Micros = 3_600 * SECOND;
const MAX_TTL: Micros = 3_600 * SECOND;

/** AcquireWriteSet: grants, queues or refuses; blocks while the request waits and its caller does. */
export async function acquireWriteSet(
  deps: Deps,
  context: CallContext,
  input: AcquireInput,
): Promise<At<AcquireOutcome>> {
  checkInput(deps, input, true);
  const engine = await engineOf(deps, context);
  const command = toCommand(context, input);
  const { audiences } = input;
  await canIssue(deps, audiences);
  const issuer = issuerFor(deps, context, audiences, requestIds(input.requestId));
  const { value, revision, now } = await engine.submit(context.principal.name, (decision) => {
    const decided = decideAcquire(decision, command);
    if (decided.kind !== 'lease') return { decided, lease: undefined, issued: [] };
    // In the append that grants, or proves that the grant lives on: one round trip, one time.
    const { leaseId } = decided;
    const issued =
      audiences.length === 0 ? [] : issuer(decision, input.runId, leaseId, certificateOf(context.principal));
    return { decided, lease: decision.lease(leaseId), issued };
  });
  const { decided, lease, issued } = value;
  if (decided.kind === 'refusal') return { value: { kind: 'refusal', refusal: decided.refusal }, revision, now };
  if (decided.kind === 'lease' && lease !== undefined) {
    const credentials = await signed(deps, engine.namespace, issued, now);
    return { value: { kind: 'lease', lease, credentials }, revision, now };
  }
  const waiting = decided as Extract<AcquireDecision, { kind: 'waiting' }>;
  const answer = await waitForGrant(deps, engine, context, command, waiting);
  if (answer.value.kind !== 'lease') return answer;
  const credentials = await issueForLease(deps, engine, context, answer.value.lease, audiences);
  return { ...answer, value: { ...answer.value, credentials } };
}

function checkInput(deps: Deps, input: AcquireInput, withKey: boolean): void {
  const checks = new FieldChecks();
  checks.id('run_id', input.runId);
  checks.writeSet('', input, deps.bounds.maxEntries);
  if (input.ttl !== null) checks.between('ttl', input.ttl, 1 * SECOND, MAX_TTL);
  checks.between('wait', input.wait, 0, MAX_WAIT);
  if (withKey) checks.printable('idempotency_key', input.idempotencyKey, true);
  checks.text('purpose', input.purpose, 1_024);
  checks.printable('request_id', input.requestId, false);
  checkAudiences(checks, input.audiences);
  checks.done();
}

function toCommand(context: CallContext, input: AcquireInput): AcquireCommand {
  const { entries, task, resourceSet, ttl, purpose } = input;
  return {
    principal: context.principal.name,
    maxLiveLeases: context.principal.ceiling?.maxLiveLeases ?? null,
    runId: input.runId,
    request: { entries, task, resourceSet },
    ttl,
    wait: input.wait,
    idempotencyKey: input.idempotencyKey,
    fingerprint: fingerprint({ entries, task, resourceSet, ttl, purpose }),
    purpose,
    requestIds: requestIds(input.requestId),
    callId: context.requestId,
    freshLeaseId: randomId(),
  };
}

/** Hangs on the waiting request until it is settled, the block is over, or the caller has gone. */
async function waitForGrant(
  deps: Deps,
  engine: NamespaceEngine,
  context: CallContext,
  command: AcquireCommand,
  waiting: Extract<AcquireDecision, { kind: 'waiting' }>,
): Promise<At<AcquireOutcome>> {
  const { leaseId, attachment } = waiting;
  deps.replica.attach(engine.namespace, leaseId, attachment);
  const block = Math.min(
    command.wait,
    MAX_BLOCK,
    context.deadlineMs === null ? MAX_BLOCK : context.deadlineMs * MILLISECOND - DEADLINE_MARGIN,
  );
  try {
    await settled(engine, leaseId, attachment, block / MILLISECOND, context.signal);
  } finally {
    await deps.replica.detach(engine.namespace, leaseId, attachment);
  }
  return tell(deps, engine, leaseId);
}

/** Resolves when the request is not waiting any more, another call took its place over, or time is up. */
function settled(
  engine: NamespaceEngine,
  leaseId: string,
  attachment: number,
  blockMs: number,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      stopListening();
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const stopListening = engine.onSettled(leaseId, attachment, finish);
    const timer = setTimeout(finish, Math.max(0, blockMs));
    signal.addEventListener('abort', finish);
    if (signal.aborted) finish();
  });
}

/** What has become of a waiting request, at a confirmed head. */
async function tell(deps: Deps, engine: NamespaceEngine, leaseId: string): Promise<At<AcquireOutcome>> {
  return engine.read((view): AcquireOutcome => {
    const lease = view.lease(leaseId);
    if (lease?.state === 'waiting') return { kind: 'waiting', waiting: placeOf(view, lease, deps) };
    if (lease !== undefined && lease.grantedAt !== null) return { kind: 'lease', lease, credentials: [] };
    return { kind: 'refusal', refusal: endedWaiting(lease) };
  });
}

function placeOf(view: View, lease: Lease, deps: Deps): WaitingPlace {
  const decision = view.preview('system', deps.bounds);
  const { refusal, ahead } = describeWaiting(decision, lease);
  return {
    leaseId: lease.leaseId,
    place: ahead + 1,
    refusal,
    callAgainWithin: ATTACHED_FOR,
    waitsUntil: lease.waiting?.waitsUntil ?? view.now,
  };
}

/** PreviewWriteSet: the same decision on an overlay that is thrown away. */
export async function previewWriteSet(
  deps: Deps,
  context: CallContext,
  input: AcquireInput,
): Promise<At<{ lease: Lease | null; refusal: Refusal | null }>> {
  checkInput(deps, input, false);
  const engine = await engineOf(deps, context);
  const asOperator = hasRole(context, 'operator', 'admin');
  return engine.read((view) => {
    const run = view.run(input.runId);
    if (run === undefined || (run.principal !== context.principal.name && !asOperator)) throw runNotFound(input.runId);
    const command = { ...toCommand(context, input), principal: run.principal };
    const decision = view.preview(context.principal.name, deps.bounds);
    return previewAcquire(decision, command);
  });
}
