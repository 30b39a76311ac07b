import { startOf } from '../conflict-map/index.js';
import type { DatabaseIdentity, DenialCount } from '../event.js';
import { locksOfLease } from '../held-locks.js';
import { isPast, type Lease, queueEnd, underLockDelay } from '../lease.js';
import { credentialsDeadBy, WRITTEN_WITHIN } from '../lock-delay.js';
import { isOver, type Run } from '../run.js';
import { liveLeasesOf } from '../state.js';
import { attachedFor, keptFor } from './acquire.js';
import type { Decision } from './decision.js';
import { endOne, endPast } from './end-one.js';
import { enterState, openLocalKinds } from './ending.js';
import { thawPast } from './freezes.js';
import { grantWaiters, lookAgain } from './granting.js';

/**
 * Most leases, lock delays and runs that one sweep ends by their time; the rest follow in the next one. Checks wait while a
 * sweep is decided: with 500 their p99 was 3.0 times that of an idle coordinator while 100,000 leases expired, with 100 2.1 to
 * 2.5 times, with 50 no less.
 */
export const SWEEP_LIMIT = 100;

/**
 * Turns what time has already decided into events: expired leases, lock delays and waits that are over, places nobody
 * came back for, resource sets whose start has come, freezes that are over, what lost history closed, runs whose authority has ended. Expiry is
 * true at reads before this runs.
 */
export function decideSweep(decision: Decision): { more: boolean } {
  const { state, now } = decision;
  const past: Lease[] = [];
  const begun: Lease[] = [];
  for (const lease of state.leases.values()) {
    if (lease.state === 'ended' && !underLockDelay(lease)) continue;
    const isOver = lease.waiting === null ? isPast(lease, now) : queueEnd(lease.waiting, now) !== null;
    const start = lease.state === 'waiting' ? startOf(state.map, lease.request) : 0;
    if (isOver) past.push(lease);
    else if (start > 0 && start <= now) begun.push(lease);
    if (past.length >= SWEEP_LIMIT) break;
  }
  for (const lease of past) endPast(decision, lease);
  const runs = runsPastAuthority(decision, SWEEP_LIMIT - past.length);
  const why = 'The end of its authority passed.';
  const expired = { runs: runs.expired, state: 'expired', reason: why, endReason: 'run_ended' } as const;
  const held = enterState(decision, expired);
  for (const lease of held) endOne(decision, lease, 'run_ended', why);
  grantWaiters(decision, [...past, ...held].flatMap(locksOfLease));
  openLocalKinds(decision);
  thawPast(decision);
  lookAgain(decision, begun);
  return { more: past.length >= SWEEP_LIMIT || runs.more };
}

/** Runs to expire that, with all that they hold and wait for, are no more than the limit; a larger one goes alone. */
function runsPastAuthority(decision: Decision, limit: number): { expired: Run[]; more: boolean } {
  const expired: Run[] = [];
  let left = limit;
  for (const run of decision.state.runs.values()) {
    if (isOver(run) || run.authorityEndsAt > decision.now) continue;
    left -= 1 + [...liveLeasesOf(decision.state, run.runId)].length;
    const alone = limit === SWEEP_LIMIT && expired.length === 0;
    if (left < 0 && !alone) return { expired, more: true };
    decision.relyOnPast(run.authorityEndsAt);
    expired.push(run);
  }
  return { expired, more: false };
}

export interface Attachment {
  readonly leaseId: string;
  readonly attachment: number;
  /** False: the call was answered or its caller has gone; the place is kept for a while. */
  readonly attached: boolean;
}

/**
 * Extends, or gives up, the attachments of this replica's calls; an older attachment does nothing. Whoever
 * waits is looked at again on this occasion: nothing waits for an event that may never come.
 */
export function decideAttach(decision: Decision, attachments: readonly Attachment[]): void {
  const { now, state } = decision;
  const [whileItHangs, withoutIt] = [now + attachedFor(state), now + keptFor(state)];
  const current = attachments.filter(({ leaseId, attachment }) => {
    const lease = state.leases.get(leaseId);
    return lease?.state === 'waiting' && lease.waiting?.attachment === attachment && lease.waiting.attachedUntil > now;
  });
  if (current.length === 0) return;
  decision.emit({
    kind: 'lease_attached',
    attachments: current.map((a) => ({ ...a, attachedUntil: a.attached ? whileItHangs : withoutIt })),
  });
  lookAgain(
    decision,
    current.flatMap(({ leaseId }) => decision.state.leases.get(leaseId) ?? []),
  );
}

/** Most request ids of one aggregate of denials, and of one event about denials. */
export const MAX_DENIAL_IDS = 100;

/**
 * Denied checks are facts of the log, appended after their answer (A1). Each event is about one lease of one run, so that
 * a search by either finds it (`why`); one with more request ids than an event may carry gets several events, so that each
 * of them finds it too.
 */
export function decideRecordDenials(decision: Decision, denials: readonly DenialCount[]): void {
  const byLease = new Map<string, DenialCount[]>();
  for (const denial of denials) {
    const whose = `${denial.runId} ${denial.leaseId}`;
    const known = byLease.get(whose) ?? [];
    if (idsOf([...known, denial]).length > MAX_DENIAL_IDS) emitDenials(decision, known.splice(0));
    known.push(denial);
    byLease.set(whose, known);
  }
  for (const rest of byLease.values()) emitDenials(decision, rest);
}

function emitDenials(decision: Decision, denials: readonly DenialCount[]): void {
  const [first] = denials;
  if (first === undefined) return;
  // Of a path that no route names no resource is known.
  const resources = [...new Set(denials.map((denial) => denial.resource))].filter((resource) => resource !== '');
  const { runId, leaseId } = first;
  decision.emit({ kind: 'checks_denied', denials }, { resources, requestIds: idsOf(denials), runId, leaseId });
}

function idsOf(denials: readonly DenialCount[]): string[] {
  return [...new Set(denials.flatMap((denial) => denial.requestIds))];
}

export function decideNoteUnmatched(decision: Decision, counts: readonly { resource: string; times: number }[]): void {
  decision.emit({ kind: 'resources_unmatched', counts }, { resources: counts.map((count) => count.resource) });
}

export interface IdentifyCommand {
  readonly identity: DatabaseIdentity;
  readonly lostHistory: boolean;
  readonly why: string;
  readonly continuesFrom: { readonly revision: number; readonly hash: string };
}

/**
 * Records which database this is; lost history ends every lease and blocks every run (P2). With the history, grants of
 * view and local kinds may be lost that a target still believes: nobody is granted any before they are dead there (P3).
 */
export function decideIdentify(decision: Decision, command: IdentifyCommand): void {
  const { now, bounds, state } = decision;
  if (command.lostHistory) decision.relyOnFuture(now + WRITTEN_WITHIN);
  const localKindsFrom = command.lostHistory ? credentialsDeadBy(now, bounds) : state.localKindsFrom;
  decision.emit({ kind: 'database_identified', ...command, localKindsFrom });
}
