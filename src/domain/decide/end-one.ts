import { delegatedLeases } from '../delegation.js';
import type { EventBody } from '../event.js';
import {
  type EndReason,
  endReasonByTime,
  endsAt,
  isPast,
  type Lease,
  queueEnd,
  staysLocked,
  underLockDelay,
} from '../lease.js';
import { lockDelayUntil as delayOf } from '../lock-delay.js';
import type { Refusal } from '../refusal.js';
import type { Decision } from './decision.js';
import { provenDelay } from './lock-delays.js';
import { settleParent } from './settle-parent.js';

/**
 * Ends one live lease or waiting request now, whatever holds a part of it first (design: delegation); what it was a part
 * of comes back to its parent. Who waits for its locks is the caller's to look at.
 */
export function endOne(
  decision: Decision,
  lease: Lease,
  endReason: EndReason,
  reason: string,
  requestIds: readonly string[] = [],
): void {
  // It may have ended with the lease that it was a part of.
  if (hasEnded(decision, lease)) return;
  endWithParts(decision, lease, endReason, reason, requestIds);
  settleParent(decision, lease.delegatedFrom);
}

function endWithParts(
  decision: Decision,
  lease: Lease,
  endReason: EndReason,
  reason: string,
  requestIds: readonly string[] = [],
): void {
  endParts(decision, lease);
  const lockDelayUntil = provenDelay(decision, lease, decision.now);
  emitEnd(decision, lease, { endReason, reason, lockDelayUntil }, requestIds);
}

/** Ends a waiting request that was decided again and refused; its run is told the refusal, and the log also `reason`. */
export function endRefused(
  decision: Decision,
  lease: Lease,
  refusal: Refusal,
  reason: string = refusal.message,
  requestIds: readonly string[] = [],
): void {
  const { kind, message, resource, resolution, cycle } = refusal;
  const told = { kind, message, resource, resolution, ...(cycle.length === 0 ? {} : { cycle }) };
  emitEnd(decision, lease, { endReason: 'refused', reason, lockDelayUntil: null, refusal: told }, requestIds);
  settleParent(decision, lease.delegatedFrom);
}

const hasEnded = ({ state }: Decision, lease: Lease): boolean =>
  lease.state !== 'ended' && state.leases.get(lease.leaseId)?.state === 'ended';

/** A part never outlives the whole: what has not ended by the same time ends because of it. */
function endParts(decision: Decision, { leaseId }: Lease): void {
  for (const part of delegatedLeases(decision.state, leaseId)) {
    if (part.state === 'ended') continue;
    if (part.state === 'active' && isPast(part, decision.now)) endPastWithParts(decision, part);
    else endWithParts(decision, part, 'parent_ended', 'The lease that it held a part of has ended.');
  }
}

function emitEnd(
  decision: Decision,
  lease: Lease,
  end: Omit<Extract<EventBody, { kind: 'lease_ended' }>, 'kind' | 'leaseId'>,
  requestIds: readonly string[],
): void {
  decision.emit(
    { kind: 'lease_ended', leaseId: lease.leaseId, ...end },
    { runId: lease.runId, leaseId: lease.leaseId, resources: lease.entries.map((entry) => entry.resource), requestIds },
  );
}

const BY_TIME = {
  unclaimed: 'Nobody claimed the grant in time.',
  no_progress: 'The progress marker did not change within the progress window.',
  expired: 'Its expiry passed without a renewal.',
} as const;

/**
 * Writes the end of a lease, of a lock delay or of a waiting request, whose time has come, before anything is granted
 * over it. The append proves that the time has come on the database clock (P5, P11). A lease that nobody claimed ended
 * before its expiry.
 */
export function endPast(decision: Decision, lease: Lease): void {
  if (hasEnded(decision, lease)) return;
  endPastWithParts(decision, lease);
  settleParent(decision, lease.delegatedFrom);
}

function endPastWithParts(decision: Decision, lease: Lease): void {
  const end = lease.waiting === null ? null : queueEnd(lease.waiting, decision.now);
  if (end !== null) {
    decision.relyOnPast(end.at);
    endWithParts(decision, lease, end.endReason, end.reason);
    return;
  }
  const endedAt = endsAt(lease);
  decision.relyOnPast(endedAt);
  if (underLockDelay(lease)) {
    endLockDelay(decision, lease);
    return;
  }
  endParts(decision, lease);
  const endReason = endReasonByTime(lease);
  const until = delayOf(lease, endedAt, decision.bounds);
  const lockDelayUntil = until !== null && until > decision.now ? until : null;
  emitEnd(decision, lease, { endReason, reason: BY_TIME[endReason], lockDelayUntil }, []);
}

function endLockDelay(decision: Decision, lease: Lease): void {
  const { leaseId, runId } = lease;
  const resources = lease.entries.filter(staysLocked).map((entry) => entry.resource);
  decision.emit({ kind: 'lock_delay_ended', leaseId }, { runId, leaseId, resources });
}
