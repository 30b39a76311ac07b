import { locksOfLease } from './held-locks.js';
import { endsAt, isPast, type Lease, type LeaseEntry } from './lease.js';
import { keySubject, type Lock } from './locks.js';
import { INCOMPATIBLE, type Mode } from './modes.js';
import type { Blocker } from './refusal.js';
import type { State } from './state.js';
import type { Micros } from './time.js';

/** A lease, or a waiting request, that a lock would meet. */
export interface Obstacle {
  readonly lease: Lease;
  /** The requested lock that meets it. */
  readonly lock: Lock;
  readonly theirMode: Mode;
}

/** Who asks: its run, and its place in the queue (Infinity for a request that has none). */
export interface Asker {
  readonly runId: string;
  readonly order: number;
  readonly leaseId: string;
}

/** How many obstacles a refusal names; who stands in the way is found in no particular order. */
export const MAX_BLOCKERS = 16;

/** Active leases of other runs that hold an incompatible lock, live and expired ones, each once. */
export function* holdersInTheWay(state: State, locks: readonly Lock[], asker: Asker): Iterable<Obstacle> {
  const seen = new Set<string>();
  for (const lock of locks) {
    for (const theirMode of INCOMPATIBLE[lock.mode]) {
      for (const holder of state.held[theirMode].holders(lock.key)) {
        if (holder.runId === asker.runId || seen.has(holder.leaseId)) continue;
        seen.add(holder.leaseId);
        const lease = state.leases.get(holder.leaseId);
        if (lease !== undefined) yield { lease, lock, theirMode };
      }
    }
  }
}

/** Waiting requests of other runs that stand ahead in the queue and ask for an incompatible lock. */
export function* waitersAhead(state: State, locks: readonly Lock[], asker: Asker): Iterable<Obstacle> {
  if (state.waitingLeases === 0) return;
  const seen = new Set<string>();
  for (const lock of locks) {
    for (const theirMode of INCOMPATIBLE[lock.mode]) {
      for (const holder of state.queued[theirMode].holders(lock.key)) {
        if (holder.runId === asker.runId || holder.order >= asker.order || seen.has(holder.leaseId)) continue;
        seen.add(holder.leaseId);
        const lease = state.leases.get(holder.leaseId);
        if (lease !== undefined) yield { lease, lock, theirMode };
      }
    }
  }
}

/** What else of its own a run meets besides the incompatible: optimistic writes that cover the same resource. */
const SAME_WRITE: Readonly<Record<Mode, readonly Mode[]>> = { IS: [], IX: [], IO: ['O'], S: [], X: [], O: ['O', 'IO'] };

/** A live lease of the asking run itself that holds the same write, or something incompatible. */
export function ownHolder(state: State, locks: readonly Lock[], asker: Asker, now: Micros): Obstacle | null {
  for (const lock of locks) {
    const modes: readonly Mode[] = [...INCOMPATIBLE[lock.mode], ...SAME_WRITE[lock.mode]];
    for (const theirMode of modes) {
      for (const holder of state.held[theirMode].holders(lock.key)) {
        if (holder.runId !== asker.runId || holder.leaseId === asker.leaseId) continue;
        const lease = state.leases.get(holder.leaseId);
        if (lease !== undefined && !isPast(lease, now)) return { lease, lock, theirMode };
      }
    }
  }
  return null;
}

/** Runs that hold, or wait ahead for, what this waiting request asks for. */
function* waitedFor(state: State, waiting: Lease, now: Micros): Iterable<string> {
  const locks = locksOfLease(waiting);
  const asker: Asker = { runId: waiting.runId, order: waiting.waiting?.queuedAt ?? 0, leaseId: waiting.leaseId };
  for (const { lease } of holdersInTheWay(state, locks, asker)) if (!isPast(lease, now)) yield lease.runId;
  for (const { lease } of waitersAhead(state, locks, asker)) yield lease.runId;
}

/**
 * The runs by which `from` waits, directly or through others, for `target`; null when it does not. A
 * depth-first search over waiting requests, each run visited once (P9).
 */
export function waitChain(state: State, from: string, target: string, now: Micros): string[] | null {
  if (state.waitingLeases === 0) return null;
  const visited = new Set<string>([from]);
  const path: { runId: string; next: Iterator<string> }[] = [{ runId: from, next: successors(state, from, now) }];
  while (path.length > 0) {
    const step = path[path.length - 1] as (typeof path)[number];
    const { value, done } = step.next.next();
    if (done === true) {
      path.pop();
    } else if (value === target) {
      return [...path.map((p) => p.runId), target];
    } else if (!visited.has(value)) {
      visited.add(value);
      path.push({ runId: value, next: successors(state, value, now) });
    }
  }
  return null;
}

function* successors(state: State, runId: string, now: Micros): Iterator<string> {
  for (const holder of [...state.leasesOfRun.holders(runId)]) {
    const lease = state.leases.get(holder.leaseId);
    if (lease?.state === 'waiting') yield* waitedFor(state, lease, now);
  }
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
    expiresAt: lease.state === 'waiting' ? null : endsAt(lease),
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
