import { locksOfLease } from './held-locks.js';
import { isLive, isPast, type Lease } from './lease.js';
import { holdersInTheWay } from './obstacles.js';
import type { Asker } from './queue.js';
import { liveLeasesOf, type State } from './state.js';
import type { Micros } from './time.js';

/** A request, and the run of a lease that it waits for. */
interface Wait {
  readonly waiting: Lease;
  readonly holder: string;
}

interface Step {
  readonly runId: string;
  readonly next: Iterator<Wait, undefined>;
  /** The request by which it waits for the next step. */
  by: Lease | null;
}

/**
 * Requests of which each waits for what the run of the next one holds, the last for the first; null:
 * from these runs none are found. A depth-first search over runs that both hold and wait, each met once. Places in the
 * queue close no cycle: a run passes whoever waits for it.
 */
export function heldCycle(state: State, now: Micros, runIds: Iterable<string>): Lease[] | null {
  if (state.waitingLeases === 0) return null;
  const waitingOf = (runId: string): Lease[] => {
    const live = [...liveLeasesOf(state, runId)].filter((lease) => !isPast(lease, now));
    return live.every((lease) => lease.state === 'waiting') ? [] : live.filter((lease) => lease.state === 'waiting');
  };
  const waits = function* (runId: string): Iterator<Wait, undefined> {
    for (const waiting of waitingOf(runId)) {
      const asker: Asker = { runId, order: 0, leaseId: waiting.leaseId };
      for (const { lease } of holdersInTheWay(state, locksOfLease(waiting), asker))
        if (isLive(lease, now)) yield { waiting, holder: lease.runId };
    }
  };
  const met = new Set<string>();
  for (const first of runIds) {
    if (met.has(first)) continue;
    met.add(first);
    const path: Step[] = [{ runId: first, by: null, next: waits(first) }];
    for (let step = path.at(-1); step !== undefined; step = path.at(-1)) {
      const { value, done } = step.next.next();
      if (done === true) {
        path.pop();
        continue;
      }
      step.by = value.waiting;
      if (met.has(value.holder)) {
        const back = path.findIndex(({ runId }) => runId === value.holder);
        if (back >= 0) return path.slice(back).flatMap(({ by }) => by ?? []);
      } else {
        met.add(value.holder);
        path.push({ runId: value.holder, by: null, next: waits(value.holder) });
      }
    }
  }
  return null;
}

/** The runs of the cycle from one of its requests on, that one first and last. */
export function runsOfCycle(cycle: readonly Lease[], from: Lease): string[] {
  const start = cycle.indexOf(from);
  return [...cycle.slice(start), ...cycle.slice(0, start), from].map(({ runId }) => runId);
}
