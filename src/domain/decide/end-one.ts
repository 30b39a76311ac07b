import { type EndReason, endReasonByTime, endsAt, type Lease } from '../lease.js';
import type { Decision } from './decision.js';

/** Ends one live lease or waiting request; who waits for its locks is the caller's to look at. */
export function endOne(
  decision: Decision,
  lease: Lease,
  endReason: EndReason,
  reason: string,
  requestIds: readonly string[] = [],
): void {
  decision.emit(
    { kind: 'lease_ended', leaseId: lease.leaseId, endReason, reason },
    { runId: lease.runId, leaseId: lease.leaseId, resources: lease.entries.map((entry) => entry.resource), requestIds },
  );
}

const BY_TIME = {
  unclaimed: 'Nobody claimed the grant in time.',
  no_progress: 'The progress marker did not change within the progress window.',
  expired: 'Its expiry passed without a renewal.',
} as const;

/** Writes the end of a lease whose time has come, before anything is granted over it. */
export function endPast(decision: Decision, lease: Lease): void {
  decision.relyOnPast(endsAt(lease));
  const endReason = endReasonByTime(lease);
  endOne(decision, lease, endReason, BY_TIME[endReason]);
}
