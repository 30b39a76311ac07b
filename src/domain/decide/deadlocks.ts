import { cycleText, heldCycle } from '../deadlock.js';
import type { Lease } from '../lease.js';
import type { Decision } from './decision.js';
import { endLeases } from './ending.js';

export interface Deadlocked {
  readonly lease: Lease;
  readonly reason: string;
}

/** Ends the newest request of every cycle of runs that wait for what the next one holds, as its acquire would have been refused (P9). */
export function endDeadlocked(decision: Decision, why: string, requestIds: readonly string[]): Deadlocked[] {
  const { state } = decision;
  const find = () =>
    heldCycle(
      state,
      decision.now,
      [...state.leases.values()].filter((lease) => lease.state === 'waiting').map(({ runId }) => runId),
    );
  const ended: Deadlocked[] = [];
  for (let cycle = find(); cycle !== null; cycle = find()) {
    const lease = cycle.reduce((a, b) => ((a.waiting?.queuedAt ?? 0) > (b.waiting?.queuedAt ?? 0) ? a : b));
    const reason = `${why}: ${cycleText(cycle, lease)}.`;
    endLeases(decision, [lease], 'refused', reason, requestIds);
    ended.push({ lease, reason });
  }
  return ended;
}
