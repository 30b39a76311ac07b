import type { ExpandedEntry, RuleLock, WriteSetRequest } from './entry.js';
import type { EndRefusal } from './refusal.js';
import { sharedActions } from './shared-actions.js';
import type { Micros } from './time.js';

export type LeaseState = 'waiting' | 'active' | 'ended';

export type EndReason =
  | 'released'
  | 'expired'
  | 'no_progress'
  | 'revoked'
  | 'run_stopped'
  | 'run_ended'
  | 'taken_over'
  | 'unclaimed'
  | 'database_changed'
  | 'map_changed'
  | 'parent_ended'
  | 'withdrawn'
  | 'timed_out'
  | 'refused';

/** An entry of a granted write set. */
export interface LeaseEntry extends ExpandedEntry {
  /** 0 for reads, which fence nothing, and while the lease waits. */
  readonly token: number;
  /** A child run holds what the entry covers, or some of it: no check allows it until that has come back. */
  readonly suspended: boolean;
  /** `observe` only: the refusal that `enforce` would have given; the entry then takes no lock. */
  readonly observedRefusal: string | null;
}

/**
 * An entry of a lease. Written out, because records that stay in memory are to have one shape: fields added to a spread
 * (`{ ...entry, token }`) make V8 give every single object a hidden class of its own, three times as large as the object.
 */
export function leaseEntry(
  entry: ExpandedEntry,
  token: number,
  observedRefusal: string | null,
  suspended = false,
): LeaseEntry {
  const {
    resource,
    access,
    scope,
    actions,
    exclusive,
    impliedBy,
    mode,
    validation,
    maxViewAge,
    resolver,
    observedVersion,
  } = entry;
  return {
    resource,
    access,
    scope,
    actions: sharedActions(actions),
    exclusive,
    impliedBy,
    mode,
    validation,
    maxViewAge,
    resolver,
    observedVersion,
    token,
    suspended,
    observedRefusal,
  };
}

/** What an early end of a lease with entries of view and local kinds leaves behind: their locks, kept from other runs. */
export interface LockDelay {
  /** From this database time on no view allows anything by the lease, and nobody accepts a credential of it. */
  readonly until: Micros;
  /** True: its end is in the log, and the locks are gone. */
  readonly over: boolean;
}

/** How an operator's take-over came by a lease (C12). */
export interface TakeOver {
  /** Leases that it ended. */
  readonly ended: readonly string[];
  /** It was granted whatever lock delays and writes in doubt stood against it. */
  readonly acceptsOverlap: boolean;
}

/** A place in the queue: what a lease is before it is granted. */
export interface Waiting {
  /** Revision of the event that queued it: the order of the queue (P9). Of a take-over it is negative: it stands before all others. */
  readonly queuedAt: number;
  readonly waitsUntil: Micros;
  /** Any replica withdraws it after this (design: waiting). */
  readonly attachedUntil: Micros;
  /** Each attachment has a number; clean-up of an older one does nothing. */
  readonly attachment: number;
  /** A call hangs on it now; false between two calls. A grant made meanwhile must be claimed. */
  readonly attached: boolean;
}

/** What a run holds on a write set, or waits for. Immutable: a change makes a new record. */
export interface Lease {
  readonly leaseId: string;
  readonly runId: string;
  readonly idempotencyKey: string;
  /** The lease of its parent run that it holds, or asks for, a part of. Empty: of none. */
  readonly delegatedFrom: string;
  readonly state: LeaseState;
  readonly generation: number;
  /** While waiting: as asked for, to decide again at the grant. Null once granted. */
  readonly request: WriteSetRequest | null;
  readonly purpose: string;
  readonly entries: readonly LeaseEntry[];
  readonly ruleLocks: readonly RuleLock[];
  /** As asked for; null: the map's. */
  readonly requestedTtl: Micros | null;
  readonly ttl: Micros;
  readonly createdAt: Micros;
  readonly grantedAt: Micros | null;
  readonly expiresAt: Micros | null;
  readonly maxExpiresAt: Micros | null;
  readonly maxTtl: Micros;
  readonly progressWindow: Micros | null;
  readonly progressMarker: string | null;
  readonly progressAt: Micros | null;
  /** Granted while nobody was attached: it ends unclaimed at this time unless called for. */
  readonly claimBy: Micros | null;
  /** The end of the last credential that was issued for it (P10); null: there was none. */
  readonly credentialsUntil: Micros | null;
  readonly waiting: Waiting | null;
  readonly endReason: EndReason | null;
  readonly endedAt: Micros | null;
  /** Ended as `refused`: what its run is told, now and on a later retry by its key. */
  readonly endRefusal: EndRefusal | null;
  /** Null: none was needed. */
  readonly lockDelay: LockDelay | null;
  /** Null: it was acquired. */
  readonly takeOver: TakeOver | null;
}

/** Take-overs stand before all who were queued by an acquire, among themselves first come first. */
const BEFORE_ALL = 2 ** 52;

/** The place in the queue of what an event of this revision queues. */
export function placeAt(revision: number, { takeOver }: Pick<Lease, 'takeOver'>): number {
  return takeOver === null ? revision : revision - BEFORE_ALL;
}

/** Whether the lease has ended and some of its locks are still kept from other runs. */
export function underLockDelay(lease: Lease): boolean {
  return lease.lockDelay?.over === false;
}

/** Whether the lock table has locks of it that nobody waits for. */
export function holdsLocks(lease: Lease): boolean {
  return lease.state === 'active' || underLockDelay(lease);
}

/** Whether an entry's locks outlive an early end of its lease: a target may accept what it knew, or was vouched for, before. */
export function staysLocked(entry: LeaseEntry): boolean {
  return entry.validation !== 'introspect' && entry.access !== 'read' && entry.observedRefusal === null;
}

/** What a lease gave up with this generation, and is kept from other runs: a lease of its own that has ended. */
export function leftOverId(leaseId: string, generation: number): string {
  return `${leaseId}.${generation}`;
}

/** From when on the end of an ended lease is in force everywhere (P3); 0 while it lives. */
export function effectiveAt(lease: Lease): Micros {
  return lease.lockDelay?.until ?? lease.endedAt ?? 0;
}

/** When an active lease ends unless renewed or claimed, or a lock delay; Infinity for one that waits. */
export function endsAt(lease: Lease): Micros {
  if (lease.lockDelay !== null) return lease.lockDelay.until;
  if (lease.expiresAt === null) return Number.POSITIVE_INFINITY;
  return lease.claimBy === null ? lease.expiresAt : Math.min(lease.claimBy, lease.expiresAt);
}

/** Whether an active lease, or a lock delay, is over by its time; nothing else about it matters then. */
export function isPast(lease: Lease, now: Micros): boolean {
  return endsAt(lease) <= now;
}

/** Whether a lease is active and its time has not come. */
export function isLive(lease: Lease, now: Micros): boolean {
  return lease.state === 'active' && !isPast(lease, now);
}

/**
 * Whether nothing that a lease holds is kept from others any more, though its end may not be written yet. The end of an
 * unclaimed one comes before its expiry: its locks of view and local kinds go under delay.
 */
export function isFreeByTime(lease: Lease, now: Micros): boolean {
  if (!isPast(lease, now)) return false;
  return underLockDelay(lease) || endReasonByTime(lease) !== 'unclaimed' || !lease.entries.some(staysLocked);
}

/**
 * Why a lease whose time has come ended. No renewal reaches past the progress window, so a lease whose
 * expiry is the end of the window ended for want of progress.
 */
export function endReasonByTime(lease: Lease): 'unclaimed' | 'no_progress' | 'expired' {
  const { claimBy, progressAt, progressWindow, expiresAt } = lease;
  if (claimBy !== null && expiresAt !== null && claimBy <= expiresAt) return 'unclaimed';
  const windowEnd = progressAt !== null && progressWindow !== null ? progressAt + progressWindow : null;
  return expiresAt === windowEnd ? 'no_progress' : 'expired';
}

/** How a waiting request leaves the queue because of the time alone. */
export interface QueueEnd {
  readonly endReason: 'timed_out' | 'withdrawn';
  readonly reason: string;
  /** The time that decided it. */
  readonly at: Micros;
}

/** Null while the wait lasts and somebody may still come back for the place. */
export function queueEnd(place: Waiting, now: Micros): QueueEnd | null {
  const { waitsUntil, attachedUntil } = place;
  if (waitsUntil <= now) return { endReason: 'timed_out', reason: 'The wait is over.', at: waitsUntil };
  if (attachedUntil <= now) return { endReason: 'withdrawn', reason: 'Nobody came back for it.', at: attachedUntil };
  return null;
}
