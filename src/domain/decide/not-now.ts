import { type ExpandedWriteSet, expandWriteSet } from '../conflict-map/index.js';
import { type Doubt, doubtsInTheWay } from '../doubt.js';
import type { RequestedEntry } from '../entry.js';
import { frozenAmong } from '../freeze.js';
import { underLockDelay } from '../lease.js';
import type { Lock } from '../locks.js';
import { holdersInTheWay, MAX_BLOCKERS, type Obstacle, waitersAhead } from '../obstacles.js';
import type { Asker, Queue } from '../queue.js';
import type { Refusal } from '../refusal.js';
import type { Run } from '../run.js';
import { closedAfterLoss, frozen, held, inDoubt, notYet, type Start } from './acquire-refusals.js';
import type { Decision } from './decision.js';
import { closedEntry, enforcedLocks } from './granting.js';

/**
 * Holders and lock delays first, then those ahead in the queue: of each as many as a refusal names, in the order of the
 * locks that they meet. Waiters that wait for the asker's own run are passed.
 */
export function* obstaclesNow(
  decision: Decision,
  locks: readonly Lock[],
  asker: Asker,
  queue: Queue,
): Iterable<Obstacle> {
  let holders = 0;
  for (const obstacle of holdersInTheWay(decision.state, locks, asker)) {
    yield obstacle;
    holders += 1;
    if (holders >= MAX_BLOCKERS) break;
  }
  let waiters = 0;
  let passed: ReturnType<Queue['passedBy']> | undefined;
  for (const obstacle of waitersAhead(decision.state, locks, asker, queue)) {
    passed ??= queue.passedBy(asker);
    if (passed.has(obstacle.lease.runId)) continue;
    yield obstacle;
    waiters += 1;
    if (waiters >= MAX_BLOCKERS) return;
  }
}

/** As many as a refusal names. */
export function firstDoubts(decision: Decision, locks: readonly Lock[]): Doubt[] {
  const doubts: Doubt[] = [];
  for (const doubt of doubtsInTheWay(decision.state, locks)) {
    doubts.push(doubt);
    if (doubts.length >= MAX_BLOCKERS) break;
  }
  return doubts;
}

/** Why a request cannot be granted yet: what is frozen, who or what stands in the way, what lost history closed, and the start of its resource set. */
export function notNowRefusal(
  decision: Decision,
  entries: ExpandedWriteSet['entries'],
  { obstacles, doubts }: { readonly obstacles: readonly Obstacle[]; readonly doubts: readonly Doubt[] },
  start: Start,
  grantable: readonly RequestedEntry[],
): Refusal {
  const { state, now } = decision;
  const { localKindsFrom } = state;
  const closed = closedEntry(decision, entries);
  const isLoss = localKindsFrom !== null && closed !== undefined;
  const unfrozen =
    doubts.length > 0
      ? inDoubt(state.map, entries, doubts, obstacles, grantable)
      : isLoss && obstacles.every(({ lease }) => underLockDelay(lease))
        ? closedAfterLoss(closed, localKindsFrom, now, grantable)
        : held(state.map, entries, obstacles, now, grantable);
  const stopped = frozenAmong(state.freezes, entries);
  const inTheWay = stopped === null ? unfrozen : frozen(stopped, unfrozen, now);
  if (start.notBefore <= now) return inTheWay;
  const early = notYet(start, now);
  if (obstacles.length === 0 && doubts.length === 0 && !isLoss && stopped === null) return early;
  const { blockers, resource, freezes } = inTheWay;
  return {
    ...early,
    blockers,
    resource,
    freezes,
    retryAfter: Math.max(early.retryAfter ?? 0, inTheWay.retryAfter ?? 0),
  };
}

/** The requested entries that could be granted one by one now; none for a request of one entry. */
export function grantableNow(
  decision: Decision,
  entries: readonly RequestedEntry[],
  run: Run,
  asker: Asker,
  queue: Queue,
): RequestedEntry[] {
  if (entries.length < 2) return [];
  return entries.filter((entry) => {
    const alone = expandWriteSet(
      decision.state.map,
      { entries: [entry], task: null, resourceSet: null },
      run.allowed,
      decision.bounds,
    );
    if (!alone.ok || closedEntry(decision, alone.writeSet.entries) !== undefined) return false;
    if (frozenAmong(decision.state.freezes, alone.writeSet.entries) !== null) return false;
    const locks = enforcedLocks(alone.writeSet);
    for (const _ of obstaclesNow(decision, locks, asker, queue)) return false;
    for (const _ of doubtsInTheWay(decision.state, locks)) return false;
    return true;
  });
}
