import {
  type AcquireCommand,
  type AcquireDecision,
  decideAcquire,
  describeWaiting,
  endOfWait,
  keptFor,
} from '../domain/decide/acquire.js';
import type { View } from '../domain/decide/decision.js';
import type { Lease } from '../domain/lease.js';
import { MILLISECOND, type Micros, SECOND } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import { randomId } from '../engine/random-id.js';
import type { AcquireInput, AcquireOutcome, At, CallContext, WaitingPlace } from './api.js';
import { type Deps, engineOf, fingerprint, requestIds } from './deps.js';
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
  const { engine, decided, command } = await askForWriteSet(deps, context, input);
  if (decided.kind === 'decided') return decided.answer;
  const answer = await waitForGrant(deps, engine, context, command.wait, decided);
  return withCredentials(deps, engine, context, answer, input.audiences);
}

/** What came of asking: an answer, or a place in the queue that somebody is to attach to. */
export interface AskedForWriteSet {
  readonly engine: NamespaceEngine;
  readonly command: AcquireCommand;
  readonly decided:
    | { readonly kind: 'decided'; readonly answer: At<AcquireOutcome> }
    | Extract<AcquireDecision, { kind: 'waiting' }>;
}

/** Grants, queues or refuses, and waits for nothing. */
export async function askForWriteSet(deps: Deps, context: CallContext, input: AcquireInput): Promise<AskedForWriteSet> {
  checkInput(deps, input, { withKey: true });
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
  const answered = (outcome: AcquireOutcome): AskedForWriteSet => {
    const answer = { value: outcome, revision, now };
    return { engine, command, decided: { kind: 'decided', answer } };
  };
  if (decided.kind === 'refusal') return answered({ kind: 'refusal', refusal: decided.refusal });
  if (decided.kind === 'waiting') return { engine, command, decided };
  if (lease === undefined) throw new Error('a grant without a lease');
  return answered({ kind: 'lease', lease, credentials: await signed(deps, engine.namespace, issued, now) });
}

/** A grant after a wait brings the credentials that were asked for. */
export async function withCredentials(
  deps: Deps,
  engine: NamespaceEngine,
  context: CallContext,
  answer: At<AcquireOutcome>,
  audiences: readonly string[],
): Promise<At<AcquireOutcome>> {
  if (answer.value.kind !== 'lease') return answer;
  const credentials = await issueForLease(deps, engine, context, answer.value.lease, audiences);
  return { ...answer, value: { ...answer.value, credentials } };
}

/** Throws with all that is wrong, also what was found before. */
export function checkInput(
  deps: Deps,
  input: AcquireInput,
  {
    withKey,
    checks = new FieldChecks(),
    within = '',
  }: { readonly withKey: boolean; readonly checks?: FieldChecks; readonly within?: string },
): void {
  checks.id(`${within}run_id`, input.runId);
  checks.printable(`${within}delegated_from`, input.delegatedFrom, false);
  checks.writeSet(within, input, deps.bounds.maxEntries);
  if (input.ttl !== null) checks.between(`${within}ttl`, input.ttl, 1 * SECOND, MAX_TTL);
  checks.between(`${within}wait`, input.wait, 0, MAX_WAIT);
  if (withKey) checks.printable('idempotency_key', input.idempotencyKey, true);
  checks.text(`${within}purpose`, input.purpose, 1_024);
  checks.printable(`${within}request_id`, input.requestId, false);
  checkAudiences(checks, input.audiences, `${within}audiences`);
  checks.done();
}

export function toCommand(context: CallContext, input: AcquireInput): AcquireCommand {
  const { entries, task, resourceSet, ttl, purpose, delegatedFrom } = input;
  return {
    principal: context.principal.name,
    maxLiveLeases: context.principal.ceiling?.maxLiveLeases ?? null,
    runId: input.runId,
    request: { entries, task, resourceSet },
    delegatedFrom,
    ttl,
    wait: input.wait,
    idempotencyKey: input.idempotencyKey,
    // As it always was for what is a part of no lease: keys that are bound stay good.
    fingerprint: fingerprint({
      ...(delegatedFrom === '' ? {} : { delegatedFrom }),
      entries,
      purpose,
      resourceSet,
      task,
      ttl,
    }),
    purpose,
    requestIds: requestIds(input.requestId),
    callId: context.requestId,
    freshLeaseId: randomId(),
  };
}

/** Hangs on the waiting request until it is settled, the block is over, or the caller or this replica goes. */
export async function waitForGrant(
  deps: Deps,
  engine: NamespaceEngine,
  context: CallContext,
  wait: Micros,
  waiting: Extract<AcquireDecision, { kind: 'waiting' }>,
): Promise<At<AcquireOutcome>> {
  const { leaseId, attachment } = waiting;
  deps.installation.attach(engine.namespace, leaseId, attachment);
  const block = Math.min(
    wait,
    MAX_BLOCK,
    context.deadlineMs === null ? MAX_BLOCK : context.deadlineMs * MILLISECOND - DEADLINE_MARGIN,
  );
  try {
    await settled(deps, engine, context.signal, { leaseId, attachment, blockMs: block / MILLISECOND });
  } finally {
    await deps.installation.detach(engine.namespace, leaseId, attachment);
  }
  return tell(deps, engine, leaseId);
}

/** Resolves when the request is not waiting any more, another call took its place over, time is up, or somebody goes. */
function settled(
  deps: Deps,
  engine: NamespaceEngine,
  signal: AbortSignal,
  waits: { readonly leaseId: string; readonly attachment: number; readonly blockMs: number },
): Promise<void> {
  return new Promise((resolve) => {
    const stops: (() => void)[] = [];
    const finish = (): void => {
      for (const stop of stops.splice(0)) stop();
      resolve();
    };
    const timer = setTimeout(finish, Math.max(0, waits.blockMs));
    signal.addEventListener('abort', finish);
    stops.push(
      () => clearTimeout(timer),
      () => signal.removeEventListener('abort', finish),
      engine.onSettled(waits.leaseId, waits.attachment, finish),
      deps.leaving.onLeave(finish),
    );
    if (signal.aborted || deps.leaving.hasLeft) finish();
  });
}

/** What has become of a waiting request, at a confirmed head. */
export async function tell(deps: Deps, engine: NamespaceEngine, leaseId: string): Promise<At<AcquireOutcome>> {
  return engine.read((view): AcquireOutcome => {
    const lease = view.lease(leaseId);
    if (lease?.state === 'waiting') return { kind: 'waiting', waiting: placeOf(view, lease, deps) };
    if (lease !== undefined && lease.grantedAt !== null) return { kind: 'lease', lease, credentials: [] };
    return { kind: 'refusal', refusal: endOfWait(view.preview('system', deps.bounds), lease) };
  });
}

function placeOf(view: View, lease: Lease, deps: Deps): WaitingPlace {
  const decision = view.preview('system', deps.bounds);
  const { refusal, ahead } = describeWaiting(decision, lease);
  return {
    leaseId: lease.leaseId,
    place: ahead + 1,
    refusal,
    callAgainWithin: keptFor(view.state),
    waitsUntil: lease.waiting?.waitsUntil ?? view.now,
  };
}
