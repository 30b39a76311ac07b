import { type ExpandedWriteSet, expandWriteSet, startOf } from '../conflict-map/index.js';
import type { RequestedEntry, WriteSetRequest } from '../entry.js';
import { locksOfLease } from '../held-locks.js';
import { type KeyBinding, runScope } from '../key-binding.js';
import { endsAt, isLive, isPast, type Lease, leaseEntry, queueEnd, underLockDelay } from '../lease.js';
import type { Lock } from '../locks.js';
import { type Asker, holdersInTheWay, MAX_BLOCKERS, type Obstacle, ownHolder, waitersAhead } from '../obstacles.js';
import { Queue } from '../queue.js';
import type { Refusal } from '../refusal.js';
import type { Run } from '../run.js';
import { type Micros, SECOND } from '../time.js';
import {
  alreadyHeld,
  closedAfterLoss,
  deadlock,
  endedWaiting,
  gone,
  held,
  limitRefusal,
  notYet,
  waiterLimit,
} from './acquire-refusals.js';
import type { Decision } from './decision.js';
import { endPastLeases, openLocalKinds } from './ending.js';
import {
  closedEntry,
  enforcedLocks,
  entriesWithToken,
  grantTimes,
  grantWaiters,
  lookAgain,
  MAX_PAST_ENDED,
  maxTtlOf,
  overInTheWay,
  pastInTheWay,
  refuseDeadlocked,
} from './granting.js';
import { keyReused } from './idempotency.js';
import { ownRun, runRefusal } from './run-guard.js';

/** How long a place in the queue outlives the last sign of its caller. */
export const ATTACHED_FOR: Micros = 10 * SECOND;

export interface AcquireCommand {
  readonly principal: string;
  /** Of the principal: live leases of all its runs; null: no bound of its own (R1). */
  readonly maxLiveLeases: number | null;
  readonly runId: string;
  readonly request: WriteSetRequest;
  readonly ttl: Micros | null;
  readonly wait: Micros;
  readonly idempotencyKey: string;
  readonly fingerprint: string;
  readonly purpose: string;
  /** The caller's correlation id, if it gave one. */
  readonly requestIds: readonly string[];
  /** By which a refusal is found as well: the call's own id. */
  readonly callId: string;
  /** Random; used if this call makes a lease. */
  readonly freshLeaseId: string;
}

export type AcquireDecision =
  | { readonly kind: 'lease'; readonly leaseId: string }
  | {
      readonly kind: 'waiting';
      readonly leaseId: string;
      readonly attachment: number;
      readonly place: number;
      readonly refusal: Refusal;
    }
  | { readonly kind: 'refusal'; readonly refusal: Refusal };

/** AcquireWriteSet: all of it or nothing, the same key the same lease (P1, P6, P9). */
export function decideAcquire(decision: Decision, command: AcquireCommand): AcquireDecision {
  const run = ownRun(decision, command.runId, command.principal);
  const binding = decision.key(runScope(run.runId), command.idempotencyKey);
  if (binding !== undefined) return repeat(decision, command, binding);
  const considered = consider(decision, command, run);
  if (considered.kind === 'granted') return grant(decision, command, run, considered.writeSet, considered.asker);
  if (considered.kind === 'queue') return enqueue(decision, command, run, considered);
  recordRefusal(decision, command, considered.refusal);
  return { kind: 'refusal', refusal: considered.refusal };
}

/** PreviewWriteSet: the same decision; nothing it emits is kept by the caller. The lease has no id and no tokens. */
export function previewAcquire(
  decision: Decision,
  command: AcquireCommand,
): { lease: Lease | null; refusal: Refusal | null } {
  const run = ownRun(decision, command.runId, command.principal);
  const considered = consider(decision, command, run);
  if (considered.kind !== 'granted') return { lease: null, refusal: considered.refusal };
  const lease = grantedLease(decision, command, run, considered.writeSet, considered.asker);
  const entries = lease.entries.map((entry) => ({ ...entry, token: 0 }));
  return {
    lease: { ...lease, leaseId: '', entries, grantedAt: null, expiresAt: null, maxExpiresAt: null },
    refusal: null,
  };
}

type Considered =
  | { readonly kind: 'granted'; readonly writeSet: ExpandedWriteSet; readonly asker: Asker }
  | { readonly kind: 'queue'; readonly writeSet: ExpandedWriteSet; readonly refusal: Refusal; readonly ahead: number }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

const refused = (refusal: Refusal): Considered => ({ kind: 'refused', refusal });

function consider(decision: Decision, command: AcquireCommand, run: Run): Considered {
  const notNow = runRefusal(run, decision.now, 'acquire');
  if (notNow !== null) return refused(notNow);
  const expanded = expandWriteSet(decision.state.map, command.request, run.allowed, decision.bounds);
  noteUnmatched(decision, expanded.ok ? expanded.writeSet.unmatched : expanded.unmatched);
  if (!expanded.ok) return refused(expanded.refusal);
  const { writeSet } = expanded;
  const notBefore = writeSet.notBefore ?? 0;
  const isEarly = notBefore > decision.now;
  if (isEarly && (command.wait <= 0 || notBefore >= decision.now + command.wait))
    return refused(notYet(notBefore, decision.now));
  const limit = limitRefusal(decision, run, command.maxLiveLeases);
  if (limit !== null) return refused(limit);
  const asker: Asker = { runId: run.runId, order: Number.POSITIVE_INFINITY, leaseId: command.freshLeaseId };
  const locks = enforcedLocks(writeSet);
  const own = ownHolder(decision.state, locks, asker, decision.now);
  if (own !== null) return refused(alreadyHeld(own, writeSet));
  openLocalKinds(decision);
  const queue = new Queue(decision);
  // What is over by its time ends first, so that those who waited for it go first (P9).
  const past = [...pastInTheWay(decision, writeSet, MAX_PAST_ENDED), ...overInTheWay(decision, locks, asker, queue)];
  if (past.length > 0) endPastLeases(decision, past);
  const obstacles = [...obstaclesNow(decision, locks, asker, queue)];
  const isClosed = closedEntry(decision, writeSet.entries) !== undefined;
  if (obstacles.length === 0 && !isEarly && !isClosed) {
    if (notBefore > 0) decision.relyOnPast(notBefore);
    return { kind: 'granted', writeSet, asker };
  }
  const grantable = isEarly ? [] : grantableNow(decision, command, run, queue);
  const inTheWay = notNowRefusal(decision, writeSet.entries, obstacles, notBefore, grantable);
  if (command.wait <= 0) return refused(inTheWay);
  const cycle = deadlockCycle(decision, locks, asker, queue);
  if (cycle !== null) return refused(deadlock(inTheWay, cycle));
  const full = waiterLimit(decision, run);
  if (full !== null) return refused(full);
  return {
    kind: 'queue',
    writeSet,
    refusal: inTheWay,
    ahead: obstacles.filter((o) => o.lease.state === 'waiting').length,
  };
}

/** Holders and lock delays first, then those ahead in the queue; waiters that wait for the asker's own run are passed. */
function* obstaclesNow(decision: Decision, locks: readonly Lock[], asker: Asker, queue: Queue): Iterable<Obstacle> {
  let holders = 0;
  for (const obstacle of holdersInTheWay(decision.state, locks, asker)) {
    yield obstacle;
    holders += 1;
    if (holders >= MAX_BLOCKERS) break;
  }
  for (const obstacle of waitersAhead(decision.state, locks, asker, queue)) {
    if (!queue.runsWaitingFor(asker.runId).has(obstacle.lease.runId)) yield obstacle;
  }
}

/** Why a request cannot be granted yet: who stands in the way, what lost history closed, and the start of its resource set. */
function notNowRefusal(
  decision: Decision,
  entries: ExpandedWriteSet['entries'],
  obstacles: readonly Obstacle[],
  notBefore: Micros,
  grantable: readonly RequestedEntry[],
): Refusal {
  const { state, now } = decision;
  const { localKindsFrom } = state;
  const closed = closedEntry(decision, entries);
  const isLoss = localKindsFrom !== null && closed !== undefined;
  const inTheWay =
    isLoss && obstacles.every(({ lease }) => underLockDelay(lease))
      ? closedAfterLoss(closed, localKindsFrom, now, grantable)
      : held(state.map, entries, obstacles, now, grantable);
  if (notBefore <= now) return inTheWay;
  const early = notYet(notBefore, now);
  if (obstacles.length === 0 && !isLoss) return early;
  const { blockers, resource } = inTheWay;
  return { ...early, blockers, resource, retryAfter: Math.max(early.retryAfter ?? 0, inTheWay.retryAfter ?? 0) };
}

/** The runs of the cycle that waiting for these locks would close, the asker first and last; null: none. */
function deadlockCycle(decision: Decision, locks: readonly Lock[], asker: Asker, queue: Queue): string[] | null {
  const waiting = queue.runsWaitingFor(asker.runId);
  if (waiting.size === 0) return null;
  for (const { lease } of holdersInTheWay(decision.state, locks, asker)) {
    if (!isLive(lease, decision.now) || !waiting.has(lease.runId)) continue;
    const cycle = [asker.runId];
    for (let runId: string | undefined = lease.runId; runId !== undefined; runId = waiting.get(runId))
      cycle.push(runId);
    return cycle;
  }
  return null;
}

function grant(
  decision: Decision,
  command: AcquireCommand,
  run: Run,
  writeSet: ExpandedWriteSet,
  asker: Asker,
): AcquireDecision {
  const lease = grantedLease(decision, command, run, writeSet, asker);
  decision.relyOnFuture(run.authorityEndsAt);
  decision.emit(
    { kind: 'lease_granted', lease, fingerprint: command.fingerprint },
    concerning(command, lease),
    lease.grantedAt ?? undefined,
  );
  grantWaiters(decision, refuseDeadlocked(decision, run));
  return { kind: 'lease', leaseId: lease.leaseId };
}

function grantedLease(
  decision: Decision,
  command: AcquireCommand,
  run: Run,
  writeSet: ExpandedWriteSet,
  asker: Asker,
): Lease {
  const token = decision.nextToken();
  const ttl = Math.min(command.ttl ?? writeSet.ttl, maxTtlOf(writeSet, run));
  return {
    ...newLease(command, run, writeSet, ttl, token),
    state: 'active',
    request: null,
    entries: entriesWithToken(decision, writeSet, asker, token),
    progressAt: token,
    grantedAt: token,
    ...grantTimes(token, ttl, writeSet, run),
  };
}

function enqueue(
  decision: Decision,
  command: AcquireCommand,
  run: Run,
  considered: Extract<Considered, { kind: 'queue' }>,
): AcquireDecision {
  const { writeSet } = considered;
  const now = decision.now;
  const lease: Lease = {
    ...newLease(command, run, writeSet, command.ttl ?? writeSet.ttl, now),
    waiting: {
      queuedAt: 0,
      waitsUntil: now + command.wait,
      attachedUntil: now + ATTACHED_FOR,
      attachment: 1,
      attached: true,
    },
  };
  decision.emit({ kind: 'lease_queued', lease, fingerprint: command.fingerprint }, concerning(command, lease));
  return {
    kind: 'waiting',
    leaseId: lease.leaseId,
    attachment: 1,
    place: considered.ahead + 1,
    refusal: considered.refusal,
  };
}

function newLease(command: AcquireCommand, run: Run, writeSet: ExpandedWriteSet, ttl: Micros, now: Micros): Lease {
  return {
    leaseId: command.freshLeaseId,
    runId: run.runId,
    idempotencyKey: command.idempotencyKey,
    state: 'waiting',
    generation: 1,
    request: command.request,
    purpose: command.purpose,
    entries: writeSet.entries.map((entry) => leaseEntry(entry, 0, null)),
    ruleLocks: writeSet.ruleLocks,
    requestedTtl: command.ttl,
    ttl,
    createdAt: now,
    grantedAt: null,
    expiresAt: null,
    maxExpiresAt: null,
    maxTtl: maxTtlOf(writeSet, run),
    progressWindow: writeSet.progressWindow,
    progressMarker: null,
    progressAt: null,
    claimBy: null,
    credentialsUntil: null,
    waiting: null,
    endReason: null,
    endedAt: null,
    endRefusal: null,
    lockDelay: null,
  };
}

function concerning(command: AcquireCommand, lease: Lease) {
  return {
    runId: lease.runId,
    leaseId: lease.leaseId,
    resources: lease.entries.map((entry) => entry.resource),
    requestIds: command.requestIds,
  };
}

/** The same key again: the same lease, the same place, or how it ended (P6). */
function repeat(decision: Decision, command: AcquireCommand, binding: KeyBinding): AcquireDecision {
  if (binding.use === 'tombstone') {
    return { kind: 'refusal', refusal: gone('The run released this key before anything was granted by it.') };
  }
  if (binding.fingerprint !== command.fingerprint) throw keyReused(command.idempotencyKey);
  const lease = decision.lease(binding.leaseId);
  if (lease === undefined) return { kind: 'refusal', refusal: gone('What was granted by this key ended long ago.') };
  if (lease.state === 'active') return repeatActive(decision, lease);
  if (lease.state === 'waiting') return reattach(decision, lease);
  return outcomeOf(lease);
}

/** What has come of a request that waits no more. */
function outcomeOf(lease: Lease): AcquireDecision {
  if (lease.grantedAt !== null) return { kind: 'lease', leaseId: lease.leaseId };
  return { kind: 'refusal', refusal: endedWaiting(lease) };
}

function repeatActive(decision: Decision, lease: Lease): AcquireDecision {
  if (isPast(lease, decision.now)) endPastLeases(decision, [lease]);
  else if (lease.claimBy !== null) {
    decision.relyOnFuture(endsAt(lease));
    decision.emit({ kind: 'lease_claimed', leaseId: lease.leaseId }, { runId: lease.runId, leaseId: lease.leaseId });
  }
  return { kind: 'lease', leaseId: lease.leaseId };
}

function reattach(decision: Decision, lease: Lease): AcquireDecision {
  const place = lease.waiting;
  const now = decision.now;
  if (place === null) throw new Error(`lease ${lease.leaseId.slice(0, 8)}… waits without a place in the queue`);
  if (queueEnd(place, now) !== null) {
    endPastLeases(decision, [lease]);
    return outcomeOf(decision.lease(lease.leaseId) ?? lease);
  }
  const attachment = place.attachment + 1;
  decision.emit(
    {
      kind: 'lease_attached',
      attachments: [{ leaseId: lease.leaseId, attachedUntil: now + ATTACHED_FOR, attachment, attached: true }],
    },
    { runId: lease.runId, leaseId: lease.leaseId },
  );
  lookAgain(decision, [lease]);
  const after = decision.lease(lease.leaseId) ?? lease;
  if (after.state !== 'waiting') return outcomeOf(after);
  const { refusal, ahead } = describeWaiting(decision, after);
  return { kind: 'waiting', leaseId: lease.leaseId, attachment, place: ahead + 1, refusal };
}

/** Whom a waiting request waits for, as a refusal, and how many conflicting requests stand ahead. */
export function describeWaiting(decision: Decision, lease: Lease): { refusal: Refusal; ahead: number } {
  const asker: Asker = { runId: lease.runId, order: lease.waiting?.queuedAt ?? 0, leaseId: lease.leaseId };
  const obstacles = [...obstaclesNow(decision, locksOfLease(lease), asker, new Queue(decision))];
  return {
    refusal: notNowRefusal(decision, lease.entries, obstacles, startOf(decision.state.map, lease.request), []),
    ahead: obstacles.filter((o) => o.lease.state === 'waiting').length,
  };
}

function recordRefusal(decision: Decision, command: AcquireCommand, refusal: Refusal): void {
  decision.emit(
    {
      kind: 'acquire_refused',
      refusal: refusal.kind,
      message: refusal.message,
      purpose: command.purpose,
      blockers: refusal.blockers.map((blocker) => blocker.leaseId),
    },
    {
      runId: command.runId,
      resources: [...new Set(command.request.entries.map((entry) => entry.resource))],
      requestIds: [...new Set([...command.requestIds, command.callId])].filter((id) => id !== ''),
    },
  );
}

/** Resources that no kind matches are counted for the report (C14). */
function noteUnmatched(decision: Decision, unmatched: readonly string[]): void {
  if (unmatched.length === 0) return;
  decision.emit(
    { kind: 'resources_unmatched', counts: unmatched.map((resource) => ({ resource, times: 1 })) },
    { resources: unmatched },
  );
}

/** The requested entries that could be granted one by one now; none for a request of one entry. */
function grantableNow(decision: Decision, command: AcquireCommand, run: Run, queue: Queue): RequestedEntry[] {
  const { entries } = command.request;
  if (entries.length < 2) return [];
  const asker: Asker = { runId: run.runId, order: Number.POSITIVE_INFINITY, leaseId: command.freshLeaseId };
  return entries.filter((entry) => {
    const alone = expandWriteSet(
      decision.state.map,
      { entries: [entry], task: null, resourceSet: null },
      run.allowed,
      decision.bounds,
    );
    if (!alone.ok || closedEntry(decision, alone.writeSet.entries) !== undefined) return false;
    for (const _ of obstaclesNow(decision, enforcedLocks(alone.writeSet), asker, queue)) return false;
    return true;
  });
}
