import type { View } from '../domain/decide/decision.js';
import { isPast } from '../domain/lease.js';
import { hasEnded, type Run } from '../domain/run.js';
import { liveLeasesOf } from '../domain/state.js';
import type { RunView } from './api.js';

/** A run with what its leases say about it: what is still going on, and whether it may still write (R5). */
export function runView(view: View, run: Run): RunView {
  let liveLeases = 0;
  let waitingRequests = 0;
  for (const lease of liveLeasesOf(view.state, run.runId)) {
    if (lease.state === 'waiting') waitingRequests += 1;
    else if (!isPast(lease, view.now)) liveLeases += 1;
  }
  const over = hasEnded(run) || run.state === 'stopping' || run.authorityEndsAt <= view.now;
  return { run, liveLeases, waitingRequests, mayWrite: !over && liveLeases > 0 };
}
