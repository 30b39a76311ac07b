import { type ExpandedWriteSet, expandWriteSet, startOf } from '../conflict-map/index.js';
import type { WriteSetRequest } from '../entry.js';
import { frozenAmong } from '../freeze.js';
import { locksOfLease } from '../held-locks.js';
import { type KeyBinding, runScope } from '../key-binding.js';
import { endsAt, isLive, isPast, type Lease, leaseEntry, queueEnd } from '../lease.js';
import type { Lock } from '../locks.js';
import { countAhead, holdersInTheWay } from '../obstacles.js';
import { type Asker, Queue } from '../queue.js';
import type { Refusal } from '../refusal.js';
import type { Run } from '../run.js';
import type { State } from '../state.js';
import { type Micros, SECOND } from '../time.js';
import { deadlock, endedWaiting, gone, heldByItself, limitRefusal, notYet, waiterLimit } from './acquire-refusals.js';
import type { Decision } from './decision.js';
import { believedUntil, delegationRefusal, notYetSuspended, withinParent } from './delegating.js';
import { endPastLeases, openLocalKinds } from './ending.js';
import { thawPast } from './freezes.js';
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
import { firstDoubts, grantableNow, notNowRefusal, obstaclesNow } from './not-now.js';
import { rehearsalRefusal } from './rehearsals.js';
import { ownRun, runRefusal, withReason } from './run-guard.js';
import { settleParent } from './settle-parent.js';

/** How long a place in the queue is kept for a caller that was answered and is to call again, at the least. */
export const KEPT_FOR: Micros = 10 * SECOND;
/**
 * How long a place on which a call hangs outlives the last word of the call's replica, at the least. Up to 5 s of it are
 * over when that replica is gone, and its callers have to find another one.
 */
export const ATTACHED_FOR: Micros = 20 * SECOND;
/** Where more wait, places are kept the longer: after an outage all come back at once, and each must get its turn (F5). */
const MANY = 1_000;

export function keptFor(state: State): Micros {
  return atLeast(KEPT_FOR, state);
}

export function attachedFor(state: State): Micros {
  return atLeast(ATTACHED_FOR, state);
}

/** Divided first, since `least` is a multiple of MANY: a time is in whole microseconds, however many wait. */
function atLeast(least: Micros, { waitingLeases }: State): Micros {
  return (least / MANY) * Math.max(MANY, waitingLeases);
}

export interface AcquireCommand {
  readonly principal: string;
  /** Of the principal: live leases of all its runs; null: no bound of its own (R1). */
  readonly maxLiveLeases: number | null;
  readonly runId: string;
  readonly request: WriteSetRequest;
  /** The lease of the parent run that a part is asked of. Empty: of none. */
  readonly delegatedFrom: string;
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
    }
  | { readonly kind: 'refusal'; readonly refusal: Refusal };

/** AcquireWriteSet: all of it or nothing, the same key the same lease (P1, P6, P9). */
export function decideAcquire(decision: Decision, command: AcquireCommand): AcquireDecision {
  const run = ownRun(decision, command.runId, command.principal);
  const binding = decision.key(runScope(run.runId), command.idempotencyKey);
  if (binding !== undefined) return repeat(decision, command, binding);
  const considered = consider(decision, command, run);
  if (considered.kind === 'granted') return grant(decision, command, run, considered.writeSet, considered.asker);
  if (considered.kind === 'queue') return enqueue(decision, command, run, considered.writeSet);
  recordRefusal(decision, command, considered.refusal);
  return { kind: 'refusal', refusal: withReason(considered.refusal, run) };
}

/** PreviewWriteSet: the same decision; nothing it emits is kept by the caller. The lease has no id and no tokens. */
export function previewAcquire(
  decision: Decision,
  command: AcquireCommand,
): { lease: Lease | null; refusal: Refusal | null } {
  const run = ownRun(decision, command.runId, command.principal);
  const considered = consider(decision, command, run);
  if (considered.kind !== 'granted') return { lease: null, refusal: withReason(considered.refusal, run) };
  const lease = grantedLease(decision, command, run, considered.writeSet, considered.asker);
  const entries = lease.entries.map((entry) => ({ ...entry, token: 0 }));
  return {
    lease: { ...lease, leaseId: '', entries, grantedAt: null, expiresAt: null, maxExpiresAt: null },
    refusal: null,
  };
}

type Considered =
  | { readonly kind: 'granted'; readonly writeSet: ExpandedWriteSet; readonly asker: Asker }
  | { readonly kind: 'queue'; readonly writeSet: ExpandedWriteSet; readonly refusal: Refusal }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

const refused = (refusal: Refusal): { readonly kind: 'refused'; readonly refusal: Refusal } => ({
  kind: 'refused',
  refusal,
});

/** A request that its run may make, whoever holds what it asks for. */
export interface Admissible {
  readonly kind: 'admissible';
  readonly writeSet: ExpandedWriteSet;
  readonly asker: Asker;
  /** Those that can refuse. */
  readonly locks: readonly Lock[];
  /** Start of the resource set it names; 0: none. */
  readonly notBefore: Micros;
}

/** What speaks against a request, whoever holds what it asks for: its run, the map, the contract, the bounds. */
export function admissible(
  decision: Decision,
  command: AcquireCommand,
  run: Run,
): Admissible | { readonly kind: 'refused'; readonly refusal: Refusal } {
  const notNow = runRefusal(run, decision.now, 'acquire');
  if (notNow !== null) return refused(notNow);
  const expanded = expandWriteSet(decision.state.map, command.request, run.allowed, decision.bounds);
  noteUnmatched(decision, expanded.ok ? expanded.writeSet.unmatched : expanded.unmatched);
  if (!expanded.ok) return refused(expanded.refusal);
  const { writeSet } = expanded;
  const unrehearsed = rehearsalRefusal(decision, writeSet.entries, run.runId);
  if (unrehearsed !== null) return refused(unrehearsed);
  const notBefore = writeSet.notBefore ?? 0;
  if (notBefore > decision.now && (command.wait <= 0 || notBefore >= decision.now + command.wait))
    return refused(notYet({ resourceSet: command.request.resourceSet, notBefore }, decision.now));
  const limit = limitRefusal(decision, run, command.maxLiveLeases);
  if (limit !== null) return refused(limit);
  const { delegatedFrom, freshLeaseId: leaseId } = command;
  const noPart = delegationRefusal(decision, run, delegatedFrom, writeSet);
  if (noPart !== null) return refused(noPart);
  const asker: Asker = { runId: run.runId, order: Number.POSITIVE_INFINITY, leaseId, delegatedFrom };
  return { kind: 'admissible', writeSet, asker, locks: enforcedLocks(writeSet), notBefore };
}

function consider(decision: Decision, command: AcquireCommand, run: Run): Considered {
  const asked = admissible(decision, command, run);
  if (asked.kind === 'refused') return asked;
  const { writeSet, asker, locks, notBefore } = asked;
  const isEarly = notBefore > decision.now;
  openLocalKinds(decision);
  thawPast(decision);
  const queue = new Queue(decision);
  // What is over by its time ends first, so that those who waited for it go first (P9).
  const past = [...pastInTheWay(decision, writeSet, MAX_PAST_ENDED), ...overInTheWay(decision, locks, asker, queue)];
  if (past.length > 0) endPastLeases(decision, past);
  const own = heldByItself(decision, writeSet.entries, locks, asker);
  if (own !== null) return refused(own);
  const obstacles = [...obstaclesNow(decision, locks, asker, queue)];
  const doubts = firstDoubts(decision, locks);
  const isClosed = closedEntry(decision, writeSet.entries) !== undefined;
  const isFrozen = frozenAmong(decision.state.freezes, writeSet.entries) !== null;
  const isFree = obstacles.length === 0 && doubts.length === 0 && !isEarly && !isClosed && !isFrozen;
  const believed = believedUntil(decision, command.delegatedFrom, writeSet);
  if (isFree && believed === null) {
    if (notBefore > 0) decision.relyOnPast(notBefore);
    return { kind: 'granted', writeSet, asker };
  }
  const grantable = isEarly ? [] : grantableNow(decision, command.request.entries, run, asker, queue);
  const start = { resourceSet: command.request.resourceSet, notBefore };
  const inTheWay =
    isFree && believed !== null
      ? notYetSuspended(believed, decision.now)
      : notNowRefusal(decision, writeSet.entries, { obstacles, doubts }, start, grantable);
  if (command.wait <= 0) return refused(inTheWay);
  const cycle = deadlockCycle(decision, locks, asker, queue);
  if (cycle !== null) return refused(deadlock(inTheWay, cycle));
  const full = waiterLimit(decision, run);
  if (full !== null) return refused(full);
  return { kind: 'queue', writeSet, refusal: inTheWay };
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
  settleParent(decision, lease.delegatedFrom);
  grantWaiters(decision, refuseDeadlocked(decision, run));
  return { kind: 'lease', leaseId: lease.leaseId };
}

export function grantedLease(
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
    ...withinParent(decision, command.delegatedFrom, grantTimes(token, ttl, writeSet, run)),
  };
}

function enqueue(decision: Decision, command: AcquireCommand, run: Run, writeSet: ExpandedWriteSet): AcquireDecision {
  const lease = queuedLease(decision, command, run, writeSet);
  decision.emit({ kind: 'lease_queued', lease, fingerprint: command.fingerprint }, concerning(command, lease));
  settleParent(decision, lease.delegatedFrom);
  return { kind: 'waiting', leaseId: lease.leaseId, attachment: 1 };
}

/** A request that takes its place in the queue now. */
export function queuedLease(decision: Decision, command: AcquireCommand, run: Run, writeSet: ExpandedWriteSet): Lease {
  const { now } = decision;
  return {
    ...newLease(command, run, writeSet, command.ttl ?? writeSet.ttl, now),
    waiting: {
      queuedAt: 0,
      waitsUntil: now + command.wait,
      attachedUntil: now + attachedFor(decision.state),
      attachment: 1,
      attached: true,
    },
  };
}

function newLease(command: AcquireCommand, run: Run, writeSet: ExpandedWriteSet, ttl: Micros, now: Micros): Lease {
  return {
    leaseId: command.freshLeaseId,
    runId: run.runId,
    idempotencyKey: command.idempotencyKey,
    delegatedFrom: command.delegatedFrom,
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
    takeOver: null,
  };
}

export function concerning(
  command: AcquireCommand,
  lease: Pick<Lease, 'runId' | 'leaseId'> & { readonly entries: readonly { readonly resource: string }[] },
) {
  return {
    runId: lease.runId,
    leaseId: lease.leaseId,
    resources: lease.entries.map((entry) => entry.resource),
    requestIds: command.requestIds,
  };
}

/** The same key again: the same lease, the same place, or how it ended (P6). */
export function repeat(decision: Decision, command: AcquireCommand, binding: KeyBinding): AcquireDecision {
  if (binding.use === 'tombstone') {
    return { kind: 'refusal', refusal: gone('The run released this key before anything was granted by it.') };
  }
  if (binding.fingerprint !== command.fingerprint) throw keyReused(command.idempotencyKey);
  const lease = decision.lease(binding.leaseId);
  if (lease === undefined) return { kind: 'refusal', refusal: gone('What was granted by this key ended long ago.') };
  if (lease.state === 'active') return repeatActive(decision, lease);
  if (lease.state === 'waiting') return reattach(decision, lease);
  return outcomeOf(decision, lease);
}

/** What has come of a request that waits no more. */
function outcomeOf(decision: Decision, lease: Lease): AcquireDecision {
  if (lease.grantedAt !== null) return { kind: 'lease', leaseId: lease.leaseId };
  return { kind: 'refusal', refusal: endOfWait(decision, lease) };
}

/** How a waiting request ended without a grant; when its time ran out, also who or what is in the way now. */
export function endOfWait(decision: Decision, lease: Lease | undefined): Refusal {
  const ended = endedWaiting(lease);
  if (lease === undefined || ended.kind !== 'wait_timeout') return ended;
  const { refusal } = describeWaiting(decision, { ...lease, state: 'waiting' });
  const { message, resource, blockers, freezes, retryAfter } = refusal;
  if (resource === '') return ended;
  return { ...ended, message: `${ended.message} ${message}`, resource, blockers, freezes, retryAfter };
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
    return outcomeOf(decision, decision.lease(lease.leaseId) ?? lease);
  }
  const attachment = place.attachment + 1;
  const attachedUntil = now + attachedFor(decision.state);
  decision.emit(
    {
      kind: 'lease_attached',
      attachments: [{ leaseId: lease.leaseId, attachedUntil, attachment, attached: true }],
    },
    { runId: lease.runId, leaseId: lease.leaseId },
  );
  lookAgain(decision, [lease]);
  const after = decision.lease(lease.leaseId) ?? lease;
  return after.state === 'waiting'
    ? { kind: 'waiting', leaseId: lease.leaseId, attachment }
    : outcomeOf(decision, after);
}

/** Whom a waiting request waits for, as a refusal, and how many conflicting requests stand ahead. Several can share a queue. */
export function describeWaiting(
  decision: Decision,
  lease: Lease,
  queue = new Queue(decision),
): { refusal: Refusal; ahead: number } {
  const { runId, leaseId, delegatedFrom } = lease;
  const asker: Asker = { runId, order: lease.waiting?.queuedAt ?? 0, leaseId, delegatedFrom };
  const locks = locksOfLease(lease);
  const obstacles = [...obstaclesNow(decision, locks, asker, queue)];
  const inTheWay = { obstacles, doubts: firstDoubts(decision, locks) };
  const start = {
    resourceSet: lease.request?.resourceSet ?? null,
    notBefore: startOf(decision.state.map, lease.request),
  };
  return {
    refusal: notNowRefusal(decision, lease.entries, inTheWay, start, []),
    ahead: countAhead(decision.state, locks, asker, queue),
  };
}

export function recordRefusal(decision: Decision, command: AcquireCommand, refusal: Refusal): void {
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
export function noteUnmatched(decision: Decision, unmatched: readonly string[]): void {
  if (unmatched.length === 0) return;
  decision.emit(
    { kind: 'resources_unmatched', counts: unmatched.map((resource) => ({ resource, times: 1 })) },
    { resources: unmatched },
  );
}
