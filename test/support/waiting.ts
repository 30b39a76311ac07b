import { decideAttach } from '../../src/domain/decide/upkeep.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import type { Namespace } from './domain.js';

/** Longer than any test of a queue waits. */
export const LONG = 600 * SECOND;

/** Leases and waiting requests that an attachment keeps in the queue, as their replica would. */
export function keep(ns: Namespace, ...leases: readonly Lease[]): void {
  ns.decide((decision) =>
    decideAttach(
      decision,
      leases.map(({ leaseId }) => ({
        leaseId,
        attachment: ns.lease(leaseId).waiting?.attachment ?? 0,
        attached: true,
      })),
    ),
  );
}

/** All that wait, in no order. */
export function waitingIn(ns: Namespace): Lease[] {
  return [...ns.state.leases.values()].filter((lease) => lease.state === 'waiting');
}
