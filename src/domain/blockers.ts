import { expandForQuestion } from './conflict-map/expand.js';
import type { View } from './decide/decision.js';
import { blockerOfDoubt, doubtsInTheWay } from './doubt.js';
import { isFreeByTime } from './lease.js';
import { locksOf } from './locks.js';
import { blockerOf, holdersInTheWay, type Obstacle, waitersAhead } from './obstacles.js';
import { Queue } from './queue.js';
import type { Blocker } from './refusal.js';

/** What stands in the way of a write; bounded. */
export interface Blockers {
  /** Holders by resource, then the queue in its order. */
  readonly blockers: readonly Blocker[];
  /** There are more than are told. */
  readonly more: boolean;
}

/**
 * Whoever holds, keeps closed by a lock delay or by a write in doubt, or waits for, something that a run which wanted the resource alone, with everything below it, would
 * meet: by its id, or by a rule of the conflict map on another one. The most that can be asked for meets everybody who
 * counts, optimistic writers and stable readers too.
 */
export function findBlockers(view: View, resource: string, most: number): Blockers {
  const { state, now } = view;
  const entry = { resource, access: 'write', scope: 'subtree', actions: [], observedVersion: null } as const;
  const { writeSet } = expandForQuestion(state.map, { entries: [entry], task: null, resourceSet: null });
  const entries = writeSet.entries.map((one) => (one.impliedBy === '' ? { ...one, exclusive: true } : one));
  const locks = locksOf(entries, writeSet.ruleLocks);
  const anybody = { runId: '', leaseId: '', order: Number.POSITIVE_INFINITY };
  const met = (obstacles: Iterable<Obstacle>): Obstacle[] => {
    const live: Obstacle[] = [];
    for (const obstacle of obstacles) {
      if (isFreeByTime(obstacle.lease, now)) continue;
      live.push(obstacle);
      if (live.length > most) break;
    }
    return live;
  };
  const holders = met(holdersInTheWay(state, locks, anybody)).map((obstacle) => blockerOf(obstacle, entries));
  const doubted: Blocker[] = [];
  for (const doubt of doubtsInTheWay(state, locks)) {
    doubted.push(blockerOfDoubt(state.map, doubt, entries));
    if (doubted.length > most) break;
  }
  const waiters = met(waitersAhead(state, locks, anybody, new Queue({ state, now }, true)));
  const all = [
    ...[...holders, ...doubted].sort((a, b) => (a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : 0)),
    ...waiters.sort((a, b) => placeOf(a) - placeOf(b)).map((obstacle) => blockerOf(obstacle, entries)),
  ];
  return { blockers: all.slice(0, most), more: all.length > most };
}

const placeOf = ({ lease }: Obstacle): number => lease.waiting?.queuedAt ?? 0;
