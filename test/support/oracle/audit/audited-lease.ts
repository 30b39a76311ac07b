import type { Lease, LeaseEntry, TakeOver } from '../../../../src/domain/lease.js';
import type { Micros } from '../../../../src/domain/time.js';
import type { OracleEntry } from '../entry.js';
import type { OracleHolder } from '../queue.js';
import type { Tie, Unasked } from '../write-sets.js';

export type AuditedState = 'waiting' | 'active' | 'ended';

/** What the auditor remembers of a lease, from events alone. */
export interface Audited extends OracleHolder {
  readonly delegatedFrom: string;
  readonly ties: readonly Tie[];
  readonly key: string;
  /** What a target may have accepted without asking, at some time while it was held: by resource, access and scope. */
  readonly unasked: ReadonlyMap<string, Unasked>;
  readonly state: AuditedState;
  readonly entries: readonly (LeaseEntry & OracleEntry)[];
  readonly grantedAt: Micros | null;
  readonly expiresAt: Micros | null;
  readonly claimBy: Micros | null;
  readonly maxExpiresAt: Micros | null;
  readonly progressWindow: Micros | null;
  readonly progressAt: Micros | null;
  readonly order: number;
  readonly waitsUntil: Micros;
  readonly attachedUntil: Micros;
  /** Start of the resource set it was asked for by; 0: none. */
  readonly startsAt: Micros;
  readonly takeOver: TakeOver | null;
}

/** When a lease ends by time alone. */
export function overAt(lease: Audited): Micros {
  return Math.min(lease.expiresAt ?? Number.POSITIVE_INFINITY, lease.claimBy ?? Number.POSITIVE_INFINITY);
}

export function audited(lease: Lease, state: AuditedState, order: number, ties: readonly Tie[]): Audited {
  return {
    leaseId: lease.leaseId,
    runId: lease.runId,
    delegatedFrom: lease.delegatedFrom,
    ties,
    key: lease.idempotencyKey,
    unasked: new Map(),
    state,
    entries: lease.entries,
    grantedAt: lease.grantedAt,
    expiresAt: lease.expiresAt,
    claimBy: lease.claimBy,
    maxExpiresAt: lease.maxExpiresAt,
    progressWindow: lease.progressWindow,
    progressAt: lease.progressAt,
    order,
    waitsUntil: lease.waiting?.waitsUntil ?? 0,
    attachedUntil: lease.waiting?.attachedUntil ?? 0,
    startsAt: 0,
    takeOver: lease.takeOver,
  };
}

/** What a run may use of what it holds. */
const USABLE = new WeakMap<readonly OracleEntry[], readonly OracleEntry[]>();

export function usable(entries: readonly OracleEntry[]): readonly OracleEntry[] {
  let left = USABLE.get(entries);
  if (left === undefined) {
    left = entries.some(({ suspended }) => suspended) ? entries.filter(({ suspended }) => !suspended) : entries;
    USABLE.set(entries, left);
  }
  return left;
}

/** What of a request can make it wait: not its observed entries. */
const ENFORCED = new WeakMap<readonly OracleEntry[], readonly (LeaseEntry & OracleEntry)[]>();

export function enforced(lease: Audited): Audited {
  let entries = ENFORCED.get(lease.entries);
  if (entries === undefined) {
    entries = lease.entries.filter((entry) => entry.mode === 'enforce');
    ENFORCED.set(lease.entries, entries);
  }
  return { ...lease, entries };
}

/** Two leases, in whatever order they are told. */
export const pairOf = (a: string, b: string): string => [a, b].sort().join(' ');
