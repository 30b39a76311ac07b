import { type EndReason, endReasonByTime, endsAt, type Lease, staysLocked, underLockDelay } from '../lease.js';
import { lockDelayUntil, WRITTEN_WITHIN } from '../lock-delay.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';

/** Ends one live lease or waiting request now; who waits for its locks is the caller's to look at. */
export function endOne(
  decision: Decision,
  lease: Lease,
  endReason: EndReason,
  reason: string,
  requestIds: readonly string[] = [],
): void {
  const delayedUntil = lockDelayUntil(lease, decision.now, decision.bounds);
  // The delay is counted from now: on other replicas the lease must not be alive much longer.
  if (delayedUntil !== null && delayedUntil !== lease.expiresAt) decision.relyOnFuture(decision.now + WRITTEN_WITHIN);
  emitEnded(decision, lease, { endReason, reason, delayedUntil }, requestIds);
}

function emitEnded(
  decision: Decision,
  lease: Lease,
  end: { readonly endReason: EndReason; readonly reason: string; readonly delayedUntil: Micros | null },
  requestIds: readonly string[],
): void {
  const { leaseId, runId } = lease;
  const { endReason, reason, delayedUntil } = end;
  decision.emit(
    { kind: 'lease_ended', leaseId, endReason, reason, lockDelayUntil: delayedUntil },
    { runId, leaseId, resources: lease.entries.map((entry) => entry.resource), requestIds },
  );
}

const BY_TIME = {
  unclaimed: 'Nobody claimed the grant in time.',
  no_progress: 'The progress marker did not change within the progress window.',
  expired: 'Its expiry passed without a renewal.',
} as const;

/**
 * Writes the end of a lease, or of a lock delay, whose time has come, before anything is granted over it. A lease that
 * nobody claimed ended before its expiry.
 */
export function endPast(decision: Decision, lease: Lease): void {
  const endedAt = endsAt(lease);
  decision.relyOnPast(endedAt);
  if (underLockDelay(lease)) {
    endLockDelay(decision, lease);
    return;
  }
  const endReason = endReasonByTime(lease);
  const until = lockDelayUntil(lease, endedAt, decision.bounds);
  const delayedUntil = until !== null && until > decision.now ? until : null;
  emitEnded(decision, lease, { endReason, reason: BY_TIME[endReason], delayedUntil }, []);
}

function endLockDelay(decision: Decision, lease: Lease): void {
  const { leaseId, runId } = lease;
  const resources = lease.entries.filter(staysLocked).map((entry) => entry.resource);
  decision.emit({ kind: 'lock_delay_ended', leaseId }, { runId, leaseId, resources });
}
