import type { ExpandedEntry, RuleLock, WriteSetRequest } from './entry.js';
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
  /** `observe` only: the refusal that `enforce` would have given; the entry then takes no lock. */
  readonly observedRefusal: string | null;
}

/** A place in the queue: what a lease is before it is granted. */
export interface Waiting {
  /** Revision of the event that queued it: the order of the queue (P9). */
  readonly queuedAt: number;
  readonly waitsUntil: Micros;
  /** Any replica withdraws it after this (design: waiting). */
  readonly attachedUntil: Micros;
  /** Each attachment has a number; clean-up of an older one does nothing. */
  readonly attachment: number;
}

/** What a run holds on a write set, or waits for. Immutable: a change makes a new record. */
export interface Lease {
  readonly leaseId: string;
  readonly runId: string;
  readonly idempotencyKey: string;
  readonly state: LeaseState;
  readonly generation: number;
  /** As asked for, to decide again on a later map. */
  readonly request: WriteSetRequest;
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
  readonly waiting: Waiting | null;
  readonly endReason: EndReason | null;
  readonly endedAt: Micros | null;
}
