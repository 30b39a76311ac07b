import { keptFromOthers, writeSetOf } from '../amendment.js';
import type { LeaseAmended } from '../event.js';
import { type Lease, type LeaseEntry, leftOverId } from '../lease.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';
import { provenDelay } from './lock-delays.js';

/** What becomes of the write set of a live lease. */
export interface WriteSetChange extends Pick<LeaseAmended, 'cause' | 'times' | 'binding'> {
  /** The whole write set from now on. */
  readonly entries: readonly LeaseEntry[];
  /** Entries as they were of which the lease loses something. */
  readonly givenUp: readonly LeaseEntry[];
  /** What the change is about. */
  readonly resources: readonly string[];
  readonly requestIds: readonly string[];
}

/**
 * Gives a live lease other entries, at this time, which is the token of what is new in it. What it loses of view and
 * local kinds goes under lock delay (P3): kept from others as a lease of its own that has ended, known by the lease and the
 * generation that it left. Returns when the loss is in force.
 */
export function changeWriteSet(decision: Decision, lease: Lease, at: Micros, change: WriteSetChange): Micros {
  const { cause, times, binding, requestIds } = change;
  const left = keptFromOthers(lease, change.givenUp);
  const until = provenDelay(decision, { ...lease, entries: left.entries }, at);
  const effectiveAt = until ?? at;
  decision.emit(
    {
      kind: 'lease_amended',
      leaseId: lease.leaseId,
      cause,
      generation: lease.generation + 1,
      ...writeSetOf(decision.state.map, lease, change.entries),
      times,
      left: until === null ? null : { leaseId: leftOverId(lease.leaseId, lease.generation), ...left, until },
      binding: binding === null ? null : { ...binding, effectiveAt },
    },
    { runId: lease.runId, leaseId: lease.leaseId, resources: change.resources, requestIds },
    at,
  );
  return effectiveAt;
}
