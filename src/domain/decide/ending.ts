import { withDelegated } from '../delegation.js';
import { locksOfLease } from '../held-locks.js';
import type { EndReason, Lease } from '../lease.js';
import type { Lock } from '../locks.js';
import type { EndedRunState, Run, RunState } from '../run.js';
import { liveLeasesOf, type State } from '../state.js';
import type { Decision } from './decision.js';
import { endOne, endPast } from './end-one.js';
import { grantWaiters, lookAgainAtAll } from './granting.js';

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
  const { localKindsFrom, identity, revision } = decision.state;
  if (localKindsFrom === null || localKindsFrom > decision.now || identity === null) return;
  decision.relyOnPast(localKindsFrom);
  decision.emit({
    kind: 'database_identified',
    identity,
    lostHistory: false,
    why: 'Views and credentials of the lost time are dead: kinds whose targets do not ask are open again.',
    continuesFrom: { revision, hash: '' },
    localKindsFrom: null,
  });
  lookAgainAtAll(decision);
}

/** With what holds a part of them: it ends as well. */
export function freedBy(decision: Decision, leases: readonly Lease[]): Lock[] {
  return decision.state.waitingLeases === 0 ? [] : withDelegated(decision.state, leases).flatMap(locksOfLease);
}

/** Runs that come into a state together, and how what they hold then ends; null: it does not. */
export type RunChange = { readonly runs: readonly Run[]; readonly reason: string } & (
  | { readonly state: RunState; readonly endReason: null }
  | { readonly state: EndedRunState; readonly endReason: EndReason }
);

/** Puts runs into their states; an end ends all that they hold and wait for, before anybody is granted any of it. */
export function changeRunStates(
  decision: Decision,
  changes: readonly RunChange[],
  requestIds: readonly string[] = [],
): void {
  const held = changes.map((change) => enterState(decision, change, requestIds));
  const freed = freedBy(decision, held.flat());
  const ends = changes.flatMap(({ endReason, reason }, index) =>
    endReason === null ? [] : (held[index] ?? []).map((lease) => ({ lease, endReason, reason })),
  );
  // What holds a part ends with the whole, so that nothing comes back to a lease that is about to end.
  for (const isPart of [false, true])
    for (const { lease, endReason, reason } of ends)
      if ((lease.delegatedFrom !== '') === isPart) endOne(decision, lease, endReason, reason);
  grantWaiters(decision, freed);
}

/** The change alone; returns what an end is to end. An end with outcomes open is no end yet: the run is stopping (R4). */
export function enterState(decision: Decision, change: RunChange, requestIds: readonly string[] = []): Lease[] {
  const { runs, state, reason, endReason } = change;
  // The newest first: children have ended when it comes to their parent.
  for (const run of [...runs].sort((a, b) => b.createdAt - a.createdAt)) {
    const { runId, parentRunId } = run;
    // What only an operator lifts stays so, where one says again that it is blocked.
    const blockCause = state === 'blocked' ? (run.blockCause ?? 'reported') : null;
    const comes =
      change.endReason === null
        ? ({ state, endedAt: null, endsAs: null } as const)
        : endOf(decision, runId, change.state);
    decision.emit({ kind: 'run_state_changed', runId, reason, blockCause, ...comes }, { runId, requestIds });
    if (comes.endedAt !== null) endIfResolved(decision, parentRunId);
  }
  return endReason === null ? [] : runs.flatMap((run) => [...liveLeasesOf(decision.state, run.runId)]);
}

function endOf(decision: Decision, runId: string, state: EndedRunState) {
  return isUnresolved(decision.state, runId)
    ? ({ state: 'stopping', endedAt: null, endsAs: state } as const)
    : { state, endedAt: decision.now, endsAs: null };
}

/** Whether the outcome of a write is not known that the run, or one below it, was let in for. */
function isUnresolved(state: State, runId: string): boolean {
  return state.openWritesOf.get(runId) !== undefined || state.childrenOf.get(runId) !== undefined;
}

/** A run that is stopping has ended once nothing is open any more; then perhaps the one above it (R4). */
export function endIfResolved(decision: Decision, runId: string, requestIds: readonly string[] = []): void {
  const run = decision.state.runs.get(runId);
  if (run?.state !== 'stopping' || run.endsAs === null || isUnresolved(decision.state, runId)) return;
  decision.emit(
    {
      kind: 'run_state_changed',
      runId,
      state: run.endsAs,
      reason: run.stateReason,
      blockCause: null,
      endedAt: decision.now,
      endsAs: null,
    },
    { runId, requestIds },
  );
  endIfResolved(decision, run.parentRunId, requestIds);
}
