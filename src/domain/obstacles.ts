import { isPartOf } from './delegation.js';
import { locksOfLease } from './held-locks.js';
import { endsAt, isLive, type Lease, type LeaseEntry, underLockDelay } from './lease.js';
import { keySubject, type Lock } from './locks.js';
import { INCOMPATIBLE, type Mode } from './modes.js';
import type { Asker, Queue } from './queue.js';
import type { Blocker } from './refusal.js';
import type { State } from './state.js';
import type { Micros } from './time.js';

/** A lease, what is left of one under lock delay, or a waiting request, that a lock would meet. */
export interface Obstacle {
  readonly lease: Lease;
  /** The requested lock that meets it. */
  readonly lock: Lock;
  readonly theirMode: Mode;
}

/** How many obstacles a refusal names; who stands in the way is found in no particular order. */
export const MAX_BLOCKERS = 16;

/**
 * Leases of other runs that hold an incompatible lock, live, expired and under lock delay, each once. A lease and what
 * holds a part of it are in nobody's way to each other (P1, delegation).
 */
export function* holdersInTheWay(state: State, locks: readonly Lock[], asker: Asker): Iterable<Obstacle> {
  const seen = new Set<string>();
  const delegatedFrom = partAskedOf(state, asker);
  for (const lock of locks) {
    for (const theirMode of INCOMPATIBLE[lock.mode]) {
      if (state.held[theirMode].isEmpty) continue;
      for (const holder of state.held[theirMode].holders(lock.key)) {
        if (holder.runId === asker.runId || seen.has(holder.leaseId)) continue;
        seen.add(holder.leaseId);
        const lease = state.leases.get(holder.leaseId);
        if (lease === undefined || isPartOf(state, lease, asker.leaseId)) continue;
        if (!isPartOf(state, { delegatedFrom }, lease.leaseId)) yield { lease, lock, theirMode };
      }
    }
  }
}

/** The lease that a part is asked of; empty: none is. */
function partAskedOf(state: State, { delegatedFrom, leaseId }: Asker): string {
  return delegatedFrom ?? state.leases.get(leaseId)?.delegatedFrom ?? '';
}

/**
 * Waiting requests of other runs that stand ahead in the queue and ask for an incompatible lock, each once. None for what
 * asks for a part of a lease: the whole keeps them waiting as it is.
 */
export function* waitersAhead(state: State, locks: readonly Lock[], asker: Asker, queue: Queue): Iterable<Obstacle> {
  const meetings = meetingsInQueue(state, locks, asker, queue);
  const seen = new Set<string>();
  for (const { lock, theirMode } of meetings) {
    for (const lease of queue.ahead(theirMode, lock.key, asker.order)) {
      if (lease.runId === asker.runId || seen.has(lease.leaseId)) continue;
      // In one line nobody is met twice.
      if (meetings.length > 1) seen.add(lease.leaseId);
      yield { lease, lock, theirMode };
    }
  }
}

/** How many there are of them, besides those that the asker passes. */
export function countAhead(state: State, locks: readonly Lock[], asker: Asker, queue: Queue): number {
  const passed = queue.passedBy(asker);
  let count = 0;
  for (const { lease } of waitersAhead(state, locks, asker, queue)) if (!passed.has(lease.runId)) count += 1;
  return count;
}

/** The locks that others wait for too, each with the modes in which they do. */
function meetingsInQueue(state: State, locks: readonly Lock[], asker: Asker, queue: Queue): Omit<Obstacle, 'lease'>[] {
  const meetings: Omit<Obstacle, 'lease'>[] = [];
  if (state.waitingLeases === 0 || partAskedOf(state, asker) !== '') return meetings;
  for (const lock of locks)
    for (const theirMode of INCOMPATIBLE[lock.mode])
      if (!queue.isEmpty(theirMode, lock.key)) meetings.push({ lock, theirMode });
  return meetings;
}

/** What of its own a run meets: besides the incompatible, optimistic writes that cover the same resource. */
const IN_ITS_OWN_WAY: Readonly<Record<Mode, readonly Mode[]>> = {
  ...INCOMPATIBLE,
  IO: [...INCOMPATIBLE.IO, 'O'],
  O: [...INCOMPATIBLE.O, 'O', 'IO'],
};

/**
 * A live lease of the asking run itself that holds the same write, or something incompatible, on what is asked for. Two
 * resources that a `conflicts` rule ties exclude each other's writers of different runs only: one run may hold both.
 */
export function ownHolder(state: State, locks: readonly Lock[], asker: Asker, now: Micros): Obstacle | null {
  for (const lock of locks) {
    if (lock.rule !== '') continue;
    for (const theirMode of IN_ITS_OWN_WAY[lock.mode]) {
      if (state.held[theirMode].isEmpty) continue;
      for (const holder of state.held[theirMode].holders(lock.key)) {
        if (holder.runId !== asker.runId || holder.leaseId === asker.leaseId) continue;
        const lease = state.leases.get(holder.leaseId);
        if (lease !== undefined && isLive(lease, now)) return { lease, lock, theirMode };
      }
    }
  }
  return null;
}

/** The obstacle as a refusal names it. */
export function blockerOf(
  obstacle: Obstacle,
  requested: readonly { readonly resource: string; readonly impliedBy: string }[],
): Blocker {
  const { lease, lock } = obstacle;
  const theirs = theirEntry(obstacle);
  const mine = requested[lock.entry];
  const rule = lock.rule || theirs?.impliedBy || mine?.impliedBy || '';
  return {
    leaseId: lease.leaseId,
    runId: lease.runId,
    purpose: lease.purpose,
    resource: theirs?.resource ?? keySubject(lock.key),
    access: theirs?.access ?? 'write',
    scope: theirs?.scope ?? 'exact',
    expiresAt: lease.state === 'active' ? endsAt(lease) : null,
    lockDelayUntil: underLockDelay(lease) ? endsAt(lease) : null,
    inDoubtSince: null,
    waiting: lease.state === 'waiting',
    rule,
    resolver: theirs?.resolver ?? '',
    requestedResource: mine?.resource ?? '',
  };
}

function theirEntry({ lease, lock, theirMode }: Obstacle): LeaseEntry | undefined {
  const theirs = locksOfLease(lease).find((candidate) => candidate.key === lock.key && candidate.mode === theirMode);
  return theirs === undefined ? undefined : lease.entries[theirs.entry];
}
