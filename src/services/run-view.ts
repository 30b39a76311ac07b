import type { Admission } from '../domain/admission.js';
import type { View } from '../domain/decide/decision.js';
import { isPast } from '../domain/lease.js';
import { isOver, type Run } from '../domain/run.js';
import { descendantsOf, liveLeasesOf, openWritesOf, type State } from '../domain/state.js';
import type { RunView } from './api.js';

/** A run with what its leases say about it: what is still going on, and whether it may still write (R5). */
export function runView(view: View, run: Run): RunView {
  let liveLeases = 0;
  let waitingRequests = 0;
  for (const lease of liveLeasesOf(view.state, run.runId)) {
    if (lease.state === 'waiting') waitingRequests += 1;
    else if (!isPast(lease, view.now)) liveLeases += 1;
  }
  const over = isOver(run) || run.authorityEndsAt <= view.now;
  const openWrites = unresolvedOf(view.state, run.runId);
  return { run, liveLeases, waitingRequests, mayWrite: !over && liveLeases > 0, openWrites };
}

/** Writes of the run, and of runs below it, whose outcome is not known (R4). */
export function unresolvedOf(state: State, runId: string): Admission[] {
  if (state.openWrites === 0) return [];
  const below = descendantsOf(state, runId).flatMap((child) => openWritesOf(state, child.runId));
  return [...openWritesOf(state, runId), ...below];
}
