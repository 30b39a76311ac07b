import { heldCycle, runsOfCycle } from '../deadlock.js';
import { locksOfLease } from '../held-locks.js';
import { deadlocked } from './acquire-refusals.js';
import type { Decision } from './decision.js';
import { endRefused } from './end-one.js';
import { grantWaiters } from './granting.js';

/** Ends the newest request of every cycle of runs that wait for what the next one holds, as its acquire would have been refused (P9). */
export function endDeadlocked(decision: Decision, why: string, requestIds: readonly string[]): void {
  const { state } = decision;
  const find = () =>
    heldCycle(
      state,
      decision.now,
      [...state.leases.values()].filter((lease) => lease.state === 'waiting').map(({ runId }) => runId),
    );
  for (let cycle = find(); cycle !== null; cycle = find()) {
    const lease = cycle.reduce((a, b) => ((a.waiting?.queuedAt ?? 0) > (b.waiting?.queuedAt ?? 0) ? a : b));
    const runs = runsOfCycle(cycle, lease);
    endRefused(decision, lease, deadlocked(why, runs), `${why}: ${runs.join(' → ')}.`, requestIds);
    grantWaiters(decision, locksOfLease(lease));
  }
}
