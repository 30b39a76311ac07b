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

/** Ends leases and lock delays whose time has come, then grants whoever waited for them. */
export function endPastLeases(decision: Decision, leases: readonly Lease[]): void {
  const freed = freedBy(decision, leases);
  for (const lease of leases) endPast(decision, lease);
  grantWaiters(decision, freed);
}

/**
 * What lost history had closed is open again; whoever waited for it goes first. Recorded with the identity, where a
 * replica that starts looks for it.
 */
export function openLocalKinds(decision: Decision): void {
  const { localKindsFrom, identity, leases, revision } = decision.state;
  if (localKindsFrom === null || localKindsFrom > decision.now || identity === null) return;
  decision.relyOnPast(localKindsFrom);
  decision.emit({
    kind: 'database_identified',
    identity,
    lostHistory: false,
    why: 'Credentials of the lost time are dead: kinds that are validated locally are open again.',
    continuesFrom: { revision, hash: '' },
    localKindsFrom: null,
  });
  if (decision.state.waitingLeases === 0) return;
  const waiting = [...leases.values()].filter((lease) => lease.state === 'waiting');
  grantWaiters(decision, waiting.flatMap(locksOfLease));
}

function freedBy(decision: Decision, leases: readonly Lease[]): Lock[] {
  return decision.state.waitingLeases === 0 ? [] : leases.flatMap(locksOfLease);
}

/** Runs that come into a state together, and how what they hold then ends; null: it does not. */
export interface RunChange {
  readonly runs: readonly Run[];
  readonly state: RunState;
  readonly reason: string;
  readonly endReason: EndReason | null;
}

/** Puts runs into their states; an end ends all that they hold and wait for, before anybody is granted any of it. */
export function changeRunStates(
  decision: Decision,
  changes: readonly RunChange[],
  requestIds: readonly string[] = [],
): void {
  const held = changes.map(({ runs, state, reason, endReason }) =>
    enterState(decision, runs, state, reason, endReason, requestIds),
  );
  const freed = freedBy(decision, held.flat());
  changes.forEach(({ endReason, reason }, index) => {
    if (endReason === null) return;
    for (const lease of held[index] ?? []) endOne(decision, lease, endReason, reason);
  });
  grantWaiters(decision, freed);
}

/** The change alone; returns what an end is to end. */
export function enterState(
  decision: Decision,
  runs: readonly Run[],
  state: RunState,
  reason: string,
  endReason: EndReason | null,
  requestIds: readonly string[] = [],
): Lease[] {
  const blockCause = state === 'blocked' ? 'reported' : null;
  const endedAt = endReason === null ? null : decision.now;
  for (const { runId } of runs) {
    decision.emit({ kind: 'run_state_changed', runId, state, reason, blockCause, endedAt }, { runId, requestIds });
  }
  return endReason === null ? [] : runs.flatMap((run) => [...liveLeasesOf(decision.state, run.runId)]);
}
