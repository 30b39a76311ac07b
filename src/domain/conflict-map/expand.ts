import type { Allowance, ExpandedEntry, RuleLock, WriteSetRequest } from '../entry.js';
import type { Refusal } from '../refusal.js';
import type { Micros } from '../time.js';
import type { ConflictMap } from './map.js';

export interface ExpandBounds {
  readonly maxEntries: number;
  readonly maxLocks: number;
}

/** What `enforce` would have refused about an entry of an `observe` kind (C14). */
export interface ObservedRefusal {
  readonly entry: number;
  readonly refusal: Refusal;
}

/** A write set after the map has been applied to it. */
export interface ExpandedWriteSet {
  readonly entries: readonly ExpandedEntry[];
  readonly ruleLocks: readonly RuleLock[];
  readonly ttl: Micros;
  readonly maxTtl: Micros;
  readonly maxHold: Micros;
  readonly progressWindow: Micros | null;
  /** A named resource set may not be had before this. */
  readonly notBefore: Micros | null;
  readonly observedRefusals: readonly ObservedRefusal[];
  /** Requested resources that no kind matches, for the report of C14. */
  readonly unmatched: readonly string[];
}

export type ExpandResult =
  | { readonly ok: true; readonly writeSet: ExpandedWriteSet }
  | { readonly ok: false; readonly refusal: Refusal; readonly unmatched: readonly string[] };

export function expandWriteSet(_map: ConflictMap, _request: WriteSetRequest, _contract: readonly Allowance[], _bounds: ExpandBounds): ExpandResult {
  throw new Error('not yet');
}
