import { type Lease, type LeaseEntry, staysLocked } from './lease.js';
import { type Lock, locksOf } from './locks.js';

/**
 * The locks of a lease, those that its early end keeps from others (design: early ends), or those that a waiting request asks for. An entry that an `observe` kind granted
 * in spite of a conflict takes none, so that P1 holds for what is held; and no observed entry waits, or
 * makes others wait (C14).
 */
export function locksOfLease(lease: Pick<Lease, 'state' | 'entries' | 'ruleLocks'>): Lock[] {
  const takesNone = (entry: LeaseEntry | undefined): boolean =>
    entry === undefined ||
    entry.observedRefusal !== null ||
    (lease.state === 'waiting' && entry.mode === 'observe') ||
    (lease.state === 'ended' && !staysLocked(entry));
  if (!lease.entries.some(takesNone)) return locksOf(lease.entries, lease.ruleLocks);
  return locksOf(
    lease.entries.map((entry) => (takesNone(entry) ? { ...entry, access: 'read' as const } : entry)),
    lease.ruleLocks.filter((lock) => !takesNone(lease.entries[lock.entry])),
  );
}
