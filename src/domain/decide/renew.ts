import type { Renewed } from '../event.js';
import { endReasonByTime, endsAt, isPast, type Lease } from '../lease.js';
import { type Refusal, refuse } from '../refusal.js';
import { MILLISECOND, type Micros } from '../time.js';
import type { Decision } from './decision.js';
import { endOfParent } from './delegating.js';
import { endPastLeases } from './ending.js';
import { ownRun, runRefusal, withReason } from './run-guard.js';

/** A renewal needs this much left, so that it is decided well before the expiry (P5). */
export const RENEW_BEFORE: Micros = 500 * MILLISECOND;

export interface RenewCommand {
  readonly principal: string;
  readonly runId: string;
  readonly renewals: readonly {
    readonly leaseId: string;
    readonly ttl: Micros | null;
    readonly progressMarker: string | null;
  }[];
  readonly requestIds: readonly string[];
}

export interface RenewDecision {
  readonly leaseId: string;
  readonly refusal: Refusal | null;
}

/**
 * RenewLeases: each lease for itself, one event for all that were extended, and one for all that were active and were not
 * (A1). What is no active lease of the run leaves nothing: its end is in the log, and calls in a loop must not fill that.
 */
export function decideRenew(decision: Decision, command: RenewCommand): RenewDecision[] {
  const run = ownRun(decision, command.runId, command.principal);
  const stopped = runRefusal(run, decision.now, 'renew');
  decision.needLeases(command.renewals.map(({ leaseId }) => leaseId));
  const renewed = new Map<string, Renewed>();
  const past: Lease[] = [];
  const active = new Set<string>();
  const results = command.renewals.map((wanted): RenewDecision => {
    const { leaseId } = wanted;
    const lease = decision.lease(leaseId);
    if (lease === undefined || lease.runId !== run.runId) return { leaseId, refusal: noSuchLease() };
    if (lease.state !== 'active') return { leaseId, refusal: endedRefusal(lease) };
    active.add(leaseId);
    if (stopped !== null) return { leaseId, refusal: withReason(stopped, run) };
    if (isPast(lease, decision.now)) {
      past.push(lease);
      return { leaseId, refusal: endedRefusal({ ...lease, endReason: endReasonByTime(lease) }) };
    }
    const parentEnds = endOfParent(decision, lease.delegatedFrom);
    const outcome = extend(lease, wanted.ttl, wanted.progressMarker, decision.now, parentEnds);
    if ('refusal' in outcome) return { leaseId, refusal: outcome.refusal };
    decision.relyOnFuture(endsAt(lease));
    renewed.set(leaseId, outcome.renewed);
    return { leaseId, refusal: null };
  });
  if (renewed.size > 0) {
    decision.relyOnFuture(run.authorityEndsAt);
    decision.emit({ kind: 'leases_renewed', runId: run.runId, renewals: [...renewed.values()] }, { runId: run.runId });
  }
  const refusals = results.flatMap(({ leaseId, refusal }) =>
    refusal === null || !active.has(leaseId) ? [] : [{ leaseId, refusal: refusal.kind }],
  );
  if (refusals.length > 0) {
    const { requestIds } = command;
    decision.emit({ kind: 'renewals_refused', refusals }, { runId: run.runId, requestIds });
  }
  if (past.length > 0) endPastLeases(decision, [...new Set(past)]);
  return results;
}

/**
 * The new times of a lease, or why it cannot be extended. It is never shortened. A part of a lease goes as far as the whole
 * does now: that is no refusal, since the parent may renew that yet.
 */
function extend(
  lease: Lease,
  ttl: Micros | null,
  marker: string | null,
  now: Micros,
  parentEnds: Micros,
): { renewed: Renewed } | { refusal: Refusal } {
  const expiresAt = lease.expiresAt ?? 0;
  if (endsAt(lease) - now < RENEW_BEFORE) return { refusal: tooLate() };
  const progressed = marker !== null && marker !== lease.progressMarker;
  const progressAt = progressed ? now : (lease.progressAt ?? now);
  const windowEnd = lease.progressWindow === null ? Number.POSITIVE_INFINITY : progressAt + lease.progressWindow;
  const maxExpiresAt = lease.maxExpiresAt ?? expiresAt;
  const wantedTtl = Math.min(ttl ?? lease.ttl, lease.maxTtl);
  const reached = Math.min(now + wantedTtl, maxExpiresAt, windowEnd, parentEnds);
  if (reached <= expiresAt && windowEnd <= expiresAt) return { refusal: noProgress() };
  if (reached <= expiresAt && maxExpiresAt <= expiresAt) return { refusal: maxHold() };
  return {
    renewed: {
      leaseId: lease.leaseId,
      ttl: wantedTtl,
      expiresAt: Math.max(expiresAt, reached),
      progressMarker: progressed ? marker : lease.progressMarker,
      progressAt,
    },
  };
}

const askAnew = {
  action: 'Stop writing, read again what was left, and ask for a new lease.',
  who: 'runner',
  retryable: false,
};

function noSuchLease(): Refusal {
  return refuse(
    'ended',
    'This run holds no lease with that id. Ids are compared letter by letter, lower case.',
    askAnew,
  );
}

/** Why nothing can be changed about a lease that is not active. */
export function endedRefusal(lease: Lease): Refusal {
  if (lease.state === 'waiting')
    return refuse('ended', 'The request is still waiting: nothing is held yet that could be renewed or amended.', {
      action: 'Call AcquireWriteSet again with the same key.',
      who: 'runner',
      retryable: true,
    });
  return refuse('ended', `The lease has ended: ${lease.endReason ?? 'expired'}.`, askAnew);
}

function tooLate(): Refusal {
  return refuse('too_late', 'Less than 500 ms were left; the lease ends at its expiry.', askAnew);
}

function noProgress(): Refusal {
  return refuse(
    'no_progress',
    'The lease is not extended past its progress window without a changed progress marker; it ends at its current expiry.',
    {
      action: 'Renew with a new progress marker before the expiry, or stop writing.',
      who: 'runner',
      retryable: true,
    },
  );
}

function maxHold(): Refusal {
  return refuse(
    'max_hold',
    "The kind's max hold, or the end of the run's authority, is reached; the lease ends at its current expiry.",
    askAnew,
  );
}
