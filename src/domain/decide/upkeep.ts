import type { DenialCount, RecordedIdentity } from '../event.js';
import { locksOfLease } from '../held-locks.js';
import { isPast, type Lease } from '../lease.js';
import { hasEnded } from '../run.js';
import type { Micros } from '../time.js';
import { ATTACHED_FOR } from './acquire.js';
import type { Decision } from './decision.js';
import { endOne } from './end-one.js';
import { changeRunState, endPastLeases } from './ending.js';
import { grantWaiters } from './granting.js';

/** Most leases and runs that one sweep ends; the rest follow in the next one. */
export const SWEEP_LIMIT = 500;

/**
 * Turns what time has already decided into events: expired leases, waits that are over, places nobody
 * came back for, runs whose authority has ended. Expiry is true at reads before this runs.
 */
export function decideSweep(decision: Decision): { more: boolean } {
  const past: Lease[] = [];
  const gone: Lease[] = [];
  for (const lease of decision.state.leases.values()) {
    if (lease.state === 'active' && isPast(lease, decision.now)) past.push(lease);
    else if (lease.waiting !== null && lease.state === 'waiting' && leavesQueue(lease.waiting, decision.now))
      gone.push(lease);
    if (past.length + gone.length >= SWEEP_LIMIT) break;
  }
  const freed = gone.flatMap(locksOfLease);
  for (const lease of gone) {
    const timedOut = (lease.waiting?.waitsUntil ?? 0) <= decision.now;
    endOne(
      decision,
      lease,
      timedOut ? 'timed_out' : 'withdrawn',
      timedOut ? 'The wait is over.' : 'Nobody came back for it.',
    );
  }
  endPastLeases(decision, past);
  grantWaiters(decision, freed);
  let runs = 0;
  for (const run of [...decision.state.runs.values()]) {
    if (hasEnded(run) || run.authorityEndsAt > decision.now) continue;
    decision.relyOnPast(run.authorityEndsAt);
    changeRunState(decision, [run], 'expired', 'The end of its authority passed.', 'run_ended');
    runs += 1;
    if (runs >= SWEEP_LIMIT) break;
  }
  return { more: past.length + gone.length >= SWEEP_LIMIT || runs >= SWEEP_LIMIT };
}

function leavesQueue(place: NonNullable<Lease['waiting']>, now: Micros): boolean {
  return place.waitsUntil <= now || place.attachedUntil <= now;
}

export interface Attachment {
  readonly leaseId: string;
  readonly attachment: number;
  /** False: the call was answered or its caller has gone; the place is kept for a while. */
  readonly attached: boolean;
}

/** Extends, or gives up, the attachments of this replica's calls; an older attachment does nothing. */
export function decideAttach(decision: Decision, attachments: readonly Attachment[]): void {
  const attachedUntil = decision.now + ATTACHED_FOR;
  const current = attachments.filter(({ leaseId, attachment }) => {
    const lease = decision.state.leases.get(leaseId);
    return (
      lease?.state === 'waiting' &&
      lease.waiting?.attachment === attachment &&
      lease.waiting.attachedUntil > decision.now
    );
  });
  if (current.length === 0) return;
  decision.emit({ kind: 'lease_attached', attachments: current.map((a) => ({ ...a, attachedUntil })) });
}

/** Denied checks are facts of the log, appended after their answer (A1). */
export function decideRecordDenials(
  decision: Decision,
  denials: readonly DenialCount[],
  requestIds: readonly string[],
): void {
  decision.emit(
    { kind: 'checks_denied', denials },
    {
      resources: [...new Set(denials.map((denial) => denial.resource))],
      requestIds,
      runId: oneRun(denials),
    },
  );
}

/** The run all denials are about; empty when they are about several. */
function oneRun(denials: readonly DenialCount[]): string {
  const runs = new Set(denials.map((denial) => denial.runId));
  return runs.size === 1 ? (denials[0]?.runId ?? '') : '';
}

export function decideNoteUnmatched(decision: Decision, counts: readonly { resource: string; times: number }[]): void {
  decision.emit({ kind: 'resources_unmatched', counts }, { resources: counts.map((count) => count.resource) });
}

export interface IdentifyCommand {
  readonly identity: RecordedIdentity;
  readonly lostHistory: boolean;
  readonly why: string;
  readonly continuesFrom: { readonly revision: number; readonly hash: string };
}

/** Records which database this is; lost history ends every lease and blocks every run (P2). */
export function decideIdentify(decision: Decision, command: IdentifyCommand): void {
  decision.emit({ kind: 'database_identified', ...command });
}
