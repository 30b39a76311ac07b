import type { Lease } from './lease.js';
import { type Lock, locksOf } from './locks.js';

/**
 * The locks of a lease. An entry that an `observe` kind granted in spite of a conflict takes none, so
 * that P1 holds for what is held.
 */
export function locksOfLease(lease: Pick<Lease, 'entries' | 'ruleLocks'>): Lock[] {
  const without = lease.entries.some((entry) => entry.observedRefusal !== null);
  if (!without) return locksOf(lease.entries, lease.ruleLocks);
  const locks = locksOf(
    lease.entries.map((entry) => (entry.observedRefusal === null ? entry : { ...entry, access: 'read' as const })),
    lease.ruleLocks.filter((lock) => lease.entries[lock.entry]?.observedRefusal === null),
  );
  return locks;
}
