import { type ExpandedWriteSet, expandWriteSet } from '../conflict-map/index.js';
import { heldCycle, runsOfCycle } from '../deadlock.js';
import { doubtsInTheWay } from '../doubt.js';
import type { ExpandedEntry } from '../entry.js';
import { freezesOver, frozenAmong } from '../freeze.js';
import { locksOfLease } from '../held-locks.js';
import { byPlace, type Holder, holderOf } from '../holder-index.js';
import {
  isFreeByTime,
  isLive,
  isPast,
  type Lease,
  type LeaseEntry,
  leaseEntry,
  queueEnd,
  underLockDelay,
} from '../lease.js';
import { type Lock, locksOf } from '../locks.js';
import { INCOMPATIBLE, type Mode } from '../modes.js';
import { holdersInTheWay, ownHolder, waitersAhead } from '../obstacles.js';
import { type Asker, Queue } from '../queue.js';
import type { Refusal, RefusalKind } from '../refusal.js';
import type { Run } from '../run.js';
import { type Micros, SECOND } from '../time.js';
import { deadlocked, heldByItself, notYet } from './acquire-refusals.js';
import type { Decision } from './decision.js';
import { believedUntil, delegationRefusal, withinParent } from './delegating.js';
import { endPast, endRefused } from './end-one.js';
import { rehearsalRefusal, unrehearsed } from './rehearsals.js';
import { runGone, runRefusal } from './run-guard.js';
import { settleParent } from './settle-parent.js';

/** A grant to a request nobody hangs on must be claimed within this long. */
export const CLAIM_WITHIN: Micros = 10 * SECOND;

/** Longest ttl of a lease on the write set: the kinds' and the contract's (R1). */
export function maxTtlOf(writeSet: Pick<ExpandedWriteSet, 'maxTtl'>, run: Run): Micros {
  return Math.min(writeSet.maxTtl, run.maxTtl ?? Number.POSITIVE_INFINITY);
}

/** The times of a grant made now: never past the kinds' max hold, the end of authority (P5), or the progress window. */
export function grantTimes(
  now: Micros,
  ttl: Micros,
  writeSet: Pick<ExpandedWriteSet, 'maxHold' | 'progressWindow'>,
  run: Run,
): { expiresAt: Micros; maxExpiresAt: Micros } {
  const maxExpiresAt = Math.min(now + writeSet.maxHold, run.authorityEndsAt);
  const progressEnd = writeSet.progressWindow === null ? Number.POSITIVE_INFINITY : now + writeSet.progressWindow;
  return { maxExpiresAt, expiresAt: Math.min(now + ttl, maxExpiresAt, progressEnd) };
}

/** What of a write set is granted. */
type Granting = Pick<ExpandedWriteSet, 'entries' | 'ruleLocks' | 'observedRefusals'>;

/**
 * Entries with their token. An entry of an `observe` kind that meets another run's lock is granted
 * without a lock, and carries the refusal that `enforce` would have given (C14).
 */
export function entriesWithToken(
  decision: Decision,
  writeSet: Granting,
  asker: Asker,
  token: Micros,
  queue: Queue = new Queue(decision),
): LeaseEntry[] {
  const refused = observedRefusals(decision, writeSet, asker, queue);
  return writeSet.entries.map((entry, index) =>
    leaseEntry(entry, entry.access === 'read' ? 0 : token, refused.get(index) ?? null),
  );
}

/** What `enforce` would have refused about `observe` entries: by the map, or because of what there is now. */
function observedRefusals(decision: Decision, writeSet: Granting, asker: Asker, queue: Queue): Map<number, string> {
  const refused = new Map<number, string>(writeSet.observedRefusals.map(({ entry, refusal }) => [entry, refusal.kind]));
  writeSet.entries.forEach((entry, index) => {
    if (entry.mode !== 'observe' || refused.has(index)) return;
    const rules = writeSet.ruleLocks.filter((lock) => lock.entry === index);
    const kind = refusedNow(decision, entry, locksOf([entry], rules), asker, queue);
    if (kind !== null) refused.set(index, kind);
  });
  return refused;
}

/** Asked in the order in which a request of an enforced kind is. */
function refusedNow(
  decision: Decision,
  entry: ExpandedEntry,
  locks: readonly Lock[],
  asker: Asker,
  queue: Queue,
): RefusalKind | null {
  if (unrehearsed(decision, entry, asker.runId) !== null) return 'rehearsal_required';
  if (ownHolder(decision.state, locks, asker, decision.now) !== null) return 'already_held';
  if (freezesOver(decision.state.freezes, entry).length > 0) return 'frozen';
  if (!isFree(decision, locks, asker, queue)) return whyNotFree(decision, locks, asker, queue);
  return isClosed(decision, entry) ? 'lock_delay' : null;
}

/** Whether an entry of a view or local kind cannot be had yet, because grants of a lost history may still be believed (P3). */
function isClosed(decision: Decision, entry: ExpandedEntry): boolean {
  return decision.state.localKindsFrom !== null && entry.validation !== 'introspect' && entry.access !== 'read';
}

/** The first enforced entry that is closed in this way; undefined: none is. */
export function closedEntry(decision: Decision, entries: readonly ExpandedEntry[]): ExpandedEntry | undefined {
  if (decision.state.localKindsFrom === null) return undefined;
  return entries.find((entry) => entry.mode === 'enforce' && isClosed(decision, entry));
}

/** The locks that can refuse: those of entries in `enforce` mode. */
export function enforcedLocks(writeSet: Pick<ExpandedWriteSet, 'entries' | 'ruleLocks'>): Lock[] {
  const observing = writeSet.entries.some((entry) => entry.mode === 'observe');
  if (!observing) return locksOf(writeSet.entries, writeSet.ruleLocks);
  return locksOf(
    writeSet.entries.map((entry) => (entry.mode === 'enforce' ? entry : { ...entry, access: 'read' as const })),
    writeSet.ruleLocks.filter((lock) => writeSet.entries[lock.entry]?.mode === 'enforce'),
  );
}

/**
 * More expired leases than this in the way of one request, or of those granted together, are ended by
 * the sweeper first, so that no append is large because a subtree is.
 */
export const MAX_PAST_ENDED = 500;

/** One look at those who wait: nobody joins the queue meanwhile. */
interface Pass {
  readonly queue: Queue;
  /** How many leases and places that are over by their time it may still end; the sweeper ends the rest. */
  endsLeft: number;
  /** Keys, each with a mode, that a run was granted on the way so that whoever waits for one like that waits on. */
  readonly taken: Map<string, string>;
}

/** Requests that may go now, for one reason. */
interface Waiters {
  /** First come first. */
  readonly requests: readonly Holder[];
  /** The mode and the freed key that they wait for; null: it is something else. */
  readonly freed: string | null;
}

/**
 * Grants every waiting request that the freed locks make room for, in the order of the queue among
 * conflicting ones (P9). Each is decided again on the map and the run as they are now.
 */
export function grantWaiters(decision: Decision, freed: readonly Lock[]): void {
  if (decision.state.waitingLeases === 0 || freed.length === 0) return;
  settle(decision, waitersFor(decision, freed));
}

/**
 * Looks at waiting requests again, for what no freed lock tells: that the start of a resource set has come,
 * or that a run may pass now whom it could not when it came, since that one has come to wait for it.
 */
export function lookAgain(decision: Decision, leases: readonly Lease[]): void {
  if (leases.length === 0) return;
  settle(decision, [{ requests: leases.map(holderOf).sort(byPlace), freed: null }]);
}

/** The same of everybody who waits. */
export function lookAgainAtAll(decision: Decision): void {
  if (decision.state.waitingLeases === 0) return;
  lookAgain(
    decision,
    [...decision.state.leases.values()].filter((lease) => lease.state === 'waiting'),
  );
}

function settle(decision: Decision, first: readonly Waiters[]): void {
  const pass: Pass = { queue: new Queue(decision), endsLeft: MAX_PAST_ENDED, taken: new Map() };
  let found = first;
  while (found.length > 0) {
    const more: Lock[] = [];
    let lookedAt = '';
    for (const [{ leaseId, runId }, { freed }] of inOrder(found)) {
      // Of a long queue behind one resource only the runs are compared once its first has it. A reason that is left is
      // enough to look: a place that is over makes room there for those behind it.
      if (leaseId === lookedAt || isTaken(pass, freed, runId)) continue;
      lookedAt = leaseId;
      const waiting = decision.state.leases.get(leaseId);
      if (waiting?.state !== 'waiting') continue;
      more.push(...settleWaiter(decision, waiting, pass));
      const after = decision.state.leases.get(leaseId);
      if (after?.state === 'active') noteTaken(pass, after);
    }
    // A waiter that left the queue without a grant makes room for those behind it.
    found = more.length === 0 ? [] : waitersFor(decision, more);
  }
}

/** Each request, once for each of the reasons for which it may go. */
function* inOrder(found: readonly Waiters[]): Iterable<readonly [Holder, Waiters]> {
  const [only] = found;
  if (only !== undefined && found.length === 1) {
    for (const request of only.requests) yield [request, only];
    return;
  }
  const all = found.flatMap((waiters) => waiters.requests.map((request) => [request, waiters] as const));
  yield* all.sort(([a], [b]) => byPlace(a, b));
}

function isTaken({ taken }: Pass, freed: string | null, runId: string): boolean {
  const by = freed === null ? undefined : taken.get(freed);
  return by !== undefined && by !== runId;
}

function noteTaken({ taken }: Pass, granted: Lease): void {
  for (const { key, mode } of locksOfLease(granted))
    for (const theirs of INCOMPATIBLE[mode]) taken.set(theirs + key, granted.runId);
}

function waitersFor(decision: Decision, freed: readonly Lock[]): Waiters[] {
  const found: Waiters[] = [];
  const visited = new Set<string>();
  for (const { key, mode: freedMode } of freed) {
    for (const mode of INCOMPATIBLE[freedMode] as readonly Mode[]) {
      if (visited.has(mode + key)) continue;
      visited.add(mode + key);
      const requests = decision.state.queued[mode].inOrder(key);
      if (requests.length > 0) found.push({ requests, freed: mode + key });
    }
  }
  return found;
}

function isLiveLease({ state, now }: Decision, leaseId: string): boolean {
  const lease = state.leases.get(leaseId);
  return lease !== undefined && isLive(lease, now);
}

/** Grants a waiting request, refuses it, or leaves it; returns the locks it gave up in the queue. */
function settleWaiter(decision: Decision, waiting: Lease, pass: Pass): Lock[] {
  const now = decision.now;
  const place = waiting.waiting;
  if (place === null || waiting.request === null) return [];
  const isOver = queueEnd(place, now) !== null;
  const run = decision.run(waiting.runId);
  if (isOver || (run !== undefined && run.authorityEndsAt <= now)) {
    if (pass.endsLeft <= 0) return [];
    pass.endsLeft -= 1;
  }
  if (isOver) {
    endPast(decision, waiting);
    return locksOfLease(waiting);
  }
  if (run === undefined) return refuseWaiting(decision, waiting, runGone());
  const notNow = runRefusal(run, now, 'acquire');
  if (notNow !== null) {
    if (run.authorityEndsAt <= now) decision.relyOnPast(run.authorityEndsAt);
    return refuseWaiting(decision, waiting, notNow);
  }
  const asker: Asker = { runId: run.runId, order: place.queuedAt, leaseId: waiting.leaseId };
  if (!isFree(decision, locksOfLease(waiting), asker, pass.queue)) return [];
  const expanded = expandWriteSet(decision.state.map, waiting.request, run.allowed, decision.bounds);
  if (!expanded.ok) return refuseWaiting(decision, waiting, expanded.refusal);
  const notRehearsed = rehearsalRefusal(decision, expanded.writeSet.entries, run.runId);
  if (notRehearsed !== null) return refuseWaiting(decision, waiting, notRehearsed);
  const { delegatedFrom } = waiting;
  // Of a parent whose time has come the end is written with its own.
  if (delegatedFrom !== '' && !isLiveLease(decision, delegatedFrom)) return [];
  const noPart = delegationRefusal(decision, run, delegatedFrom, expanded.writeSet);
  if (noPart !== null) return refuseWaiting(decision, waiting, noPart);
  if (believedUntil(decision, delegatedFrom, expanded.writeSet) !== null) return [];
  const notBefore = expanded.writeSet.notBefore ?? 0;
  if (notBefore > now)
    return notBefore < place.waitsUntil
      ? []
      : refuseWaiting(decision, waiting, notYet({ ...waiting.request, notBefore }, now));
  if (closedEntry(decision, expanded.writeSet.entries) !== undefined) return [];
  if (frozenAmong(decision.state.freezes, expanded.writeSet.entries) !== null) return [];
  const locks = enforcedLocks(expanded.writeSet);
  const own = heldByItself(decision, expanded.writeSet.entries, locks, asker);
  if (own !== null) return refuseWaiting(decision, waiting, own);
  if (!isFree(decision, locks, asker, pass.queue)) return [];
  const past = pastInTheWay(decision, expanded.writeSet, pass.endsLeft + 1);
  if (past.length > pass.endsLeft) return [];
  pass.endsLeft -= past.length;
  for (const lease of past) endPast(decision, lease);
  // Their ends, those of the run's own leases too, may have put in doubt what is asked for.
  for (const _ of doubtsInTheWay(decision.state, locks)) return past.flatMap(locksOfLease);
  if (notBefore > 0) decision.relyOnPast(notBefore);
  grantWaiting(decision, waiting, run, expanded.writeSet, asker, pass.queue);
  return [...locksOfLease(waiting), ...past.flatMap(locksOfLease), ...refuseDeadlocked(decision, run)];
}

/**
 * A grant that passes a waiter can make the run hold what that one needs, while the run itself waits
 * for it by another request: that request is refused, which it would have been now (P9). Returns the
 * locks it gave up in the queue.
 */
export function refuseDeadlocked(decision: Decision, { runId }: Run): Lock[] {
  const freed: Lock[] = [];
  const find = () => heldCycle(decision.state, decision.now, [runId]);
  for (let cycle = find(); cycle !== null; cycle = find()) {
    const own = cycle.find((lease) => lease.runId === runId);
    if (own === undefined) break;
    const why = 'Another grant to its run closed a cycle of runs that wait for each other';
    const runs = runsOfCycle(cycle, own);
    endRefused(decision, own, deadlocked(why, runs), `${why}: ${runs.join(' → ')}.`);
    freed.push(...locksOfLease(own));
  }
  return freed;
}

/** Expired leases and lock delays, of the run itself too, that a grant would be made over. */
export function pastInTheWay(
  decision: Decision,
  writeSet: Pick<ExpandedWriteSet, 'entries' | 'ruleLocks'>,
  atMost: number,
): Lease[] {
  const anybody: Asker = { runId: '', order: 0, leaseId: '' };
  const locks = locksOf(writeSet.entries, writeSet.ruleLocks);
  const past: Lease[] = [];
  for (const { lease } of holdersInTheWay(decision.state, locks, anybody)) {
    if (isPast(lease, decision.now)) past.push(lease);
    if (past.length >= atMost) break;
  }
  return past;
}

function refuseWaiting(decision: Decision, waiting: Lease, refusal: Refusal): Lock[] {
  endRefused(decision, waiting, refusal);
  return locksOfLease(waiting);
}

/** Places in the way of a new request that nobody came back for, or whose wait is over. */
export function overInTheWay(decision: Decision, locks: readonly Lock[], asker: Asker, queue: Queue): Lease[] {
  const over: Lease[] = [];
  for (const { lease } of waitersAhead(decision.state, locks, asker, queue)) {
    if (lease.waiting !== null && queueEnd(lease.waiting, decision.now) !== null) over.push(lease);
    if (over.length >= MAX_PAST_ENDED) break;
  }
  return over;
}

/**
 * No live lease of another run, nothing of one under lock delay, nothing in doubt, and nobody conflicting ahead, save
 * those who wait for the asker's own run.
 */
export function isFree(
  decision: Decision,
  locks: readonly Lock[],
  asker: Asker,
  queue: Queue = new Queue(decision),
): boolean {
  const { state, now } = decision;
  for (const _ of doubtsInTheWay(state, locks)) return false;
  for (const { lease } of holdersInTheWay(state, locks, asker)) if (!isFreeByTime(lease, now)) return false;
  let passed = 0;
  for (const { lease } of waitersAhead(state, locks, asker, queue)) {
    const passes = passed === 0 ? queue.passes(asker, lease.runId) : queue.passedBy(asker).has(lease.runId);
    if (!passes) return false;
    passed += 1;
  }
  return true;
}

function whyNotFree(
  decision: Decision,
  locks: readonly Lock[],
  asker: Asker,
  queue: Queue,
): 'in_doubt' | 'held' | 'lock_delay' {
  for (const _ of doubtsInTheWay(decision.state, locks)) return 'in_doubt';
  for (const { lease } of holdersInTheWay(decision.state, locks, asker)) if (!underLockDelay(lease)) return 'held';
  for (const _ of waitersAhead(decision.state, locks, asker, queue)) return 'held';
  return 'lock_delay';
}

function grantWaiting(
  decision: Decision,
  waiting: Lease,
  run: Run,
  writeSet: ExpandedWriteSet,
  asker: Asker,
  queue: Queue,
): void {
  const token = decision.nextToken();
  const maxTtl = maxTtlOf(writeSet, run);
  const ttl = Math.min(waiting.requestedTtl ?? writeSet.ttl, maxTtl);
  const lease: Lease = {
    ...waiting,
    state: 'active',
    generation: 1,
    request: null,
    entries: entriesWithToken(decision, writeSet, asker, token, queue),
    ruleLocks: writeSet.ruleLocks,
    ttl,
    maxTtl,
    progressWindow: writeSet.progressWindow,
    progressAt: token,
    grantedAt: token,
    ...withinParent(decision, waiting.delegatedFrom, grantTimes(token, ttl, writeSet, run)),
    claimBy: waiting.waiting?.attached === true ? null : token + CLAIM_WITHIN,
    waiting: null,
  };
  decision.relyOnFuture(run.authorityEndsAt);
  decision.emit(
    { kind: 'lease_granted', lease, fingerprint: null },
    { runId: lease.runId, leaseId: lease.leaseId, resources: lease.entries.map((entry) => entry.resource) },
    token,
  );
  settleParent(decision, lease.delegatedFrom);
}
