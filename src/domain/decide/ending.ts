import { locksOfLease } from '../held-locks.js';
import type { EndReason, Lease } from '../lease.js';
import type { Lock } from '../locks.js';
import type { Run, RunState } from '../run.js';
import { liveLeasesOf } from '../state.js';
import type { Decision } from './decision.js';
import { endOne, endPast } from './end-one.js';
import { grantWaiters } from './granting.js';

/** Ends live leases and waiting requests, then grants whoever waited for them, in the same append (P9). */
export function endLeases(
  decision: Decision,
  leases: readonly Lease[],
  endReason: EndReason,
  reason: string,
  requestIds: readonly string[] = [],
): void {
  const freed = freedBy(decision, leases);
  for (const lease of leases) endOne(decision, lease, endReason, reason, requestIds);
  grantWaiters(decision, freed);
}

/** Ends leases whose time has come, then grants whoever waited for them. */
export function endPastLeases(decision: Decision, leases: readonly Lease[]): void {
  const freed = freedBy(decision, leases);
  for (const lease of leases) endPast(decision, lease);
  grantWaiters(decision, freed);
}

function freedBy(decision: Decision, leases: readonly Lease[]): Lock[] {
  return decision.state.waitingLeases === 0 ? [] : leases.flatMap(locksOfLease);
}

/** Puts a run into a state; an end ends all that it holds and waits for. */
export function changeRunState(
  decision: Decision,
  run: Run,
  state: RunState,
  reason: string,
  endReason: EndReason | null,
  requestIds: readonly string[] = [],
): void {
  decision.emit(
    {
      kind: 'run_state_changed',
      runId: run.runId,
      state,
      reason,
      blockCause: state === 'blocked' ? 'reported' : null,
      endedAt: endReason === null ? null : decision.now,
    },
    { runId: run.runId, requestIds },
  );
  if (endReason !== null) endLeases(decision, [...liveLeasesOf(decision.state, run.runId)], endReason, reason);
}
