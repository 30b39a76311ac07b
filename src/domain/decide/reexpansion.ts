import { identityOf } from '../amendment.js';
import {
  type ConflictMap,
  type ExpandedWriteSet,
  expandLeniently,
  expandWriteSet,
  ruleLocksOf,
} from '../conflict-map/index.js';
import { type Allowance, type ExpandedEntry, later, type WriteSetRequest } from '../entry.js';
import { type Lease, type LeaseEntry, leaseEntry, staysLocked } from '../lease.js';
import type { Refusal } from '../refusal.js';
import type { Bounds } from './decision.js';

/** How a live lease is changed by a new map. */
export interface Reexpanded {
  /** What it expands to now; null: nothing changes. */
  readonly next: {
    readonly entries: readonly LeaseEntry[];
    readonly ruleLocks: Lease['ruleLocks'];
    readonly added: readonly ExpandedEntry[];
  } | null;
  /** Why the new map would not grant it; empty: it would. */
  readonly noLongerGranted: string;
}

/**
 * Live and waiting leases, and what is under lock delay, by a new map. What a lease comes to depends on its state,
 * entries and request and on its run's contract, which live on unchanged through renewals: so it is remembered by them,
 * and most of the work can be done ahead of the append, in pieces, while checks and grants go on.
 */
export class Reexpansion {
  private readonly known = new WeakMap<
    Lease['entries'],
    Pick<Lease, 'leaseId' | 'state' | 'request'> & { readonly reexpanded: Reexpanded | null }
  >();

  constructor(private readonly map: ConflictMap) {}

  /** How the map changes the lease; null: not at all. */
  of(lease: Lease, allowed: readonly Allowance[], bounds: Bounds): Reexpanded | null {
    const known = this.known.get(lease.entries);
    const { leaseId, state, request } = lease;
    // The state too: one that ended since keeps its entries, and nothing may be added to it.
    if (known?.leaseId === leaseId && known.state === state && known.request === request) return known.reexpanded;
    const { writeSet, refusal } = expandLive(this.map, lease, allowed, bounds);
    const next = writeSet === null ? null : lease.request === null ? union(lease, writeSet) : anew(lease, writeSet);
    const reexpanded = next === null && refusal === null ? null : { next, noLongerGranted: refusal?.message ?? '' };
    this.known.set(lease.entries, { leaseId, state, request, reexpanded });
    return reexpanded;
  }
}

/**
 * What a live lease expands to on the new map. One that is held gets its locks also where it would be
 * refused now, for it stays held (P1); a waiting request that would be is refused when its turn comes.
 */
function expandLive(
  map: ConflictMap,
  lease: Lease,
  allowed: readonly Allowance[],
  bounds: Bounds,
): { writeSet: Expanded | null; refusal: Refusal | null } {
  if (lease.state === 'ended') return { writeSet: expandDelayed(map, lease), refusal: null };
  if (lease.request === null) return expandHeld(map, lease, allowed, bounds.maxLocks);
  const expanded = expandWriteSet(map, lease.request, allowed, bounds);
  return expanded.ok ? { writeSet: expanded.writeSet, refusal: null } : { writeSet: null, refusal: expanded.refusal };
}

type Expanded = Pick<ExpandedWriteSet, 'entries' | 'ruleLocks'>;

/** Nothing can be added to what has ended; but what is still accepted of it may meet more than before. */
function expandDelayed(map: ConflictMap, { entries }: Lease): Expanded {
  const kept = (index: number): boolean => staysLocked(entries[index] as LeaseEntry);
  const ruleLocks = ruleLocksOf(map, entries, Number.POSITIVE_INFINITY);
  return { entries, ruleLocks: ruleLocks.filter((lock) => kept(lock.entry)) };
}

/**
 * What an active lease was granted for, from its entries: aliases and tasks are resolved already. What no rule implies any
 * more is held all the same, so the map says of it what it says of what was asked for, but for a refusal.
 */
function expandHeld(
  map: ConflictMap,
  lease: Lease,
  allowed: readonly Allowance[],
  maxLocks: number,
): { writeSet: Expanded; refusal: Refusal | null } {
  const named = lease.entries.filter((entry) => entry.impliedBy === '');
  const expanded = expandLeniently(map, asking(named), allowed, maxLocks);
  const known = new Set(expanded.writeSet.entries.map(identityOf));
  const left = lease.entries.filter((entry) => entry.impliedBy !== '' && !known.has(identityOf(entry)));
  if (left.length === 0) return expanded;
  const { writeSet } = expandLeniently(map, asking([...named, ...left]), allowed, Number.POSITIVE_INFINITY);
  // Without an action it reserves, as strictly as it did, and for no action that could be stricter now.
  const reserving = new Set(left.filter(({ actions }) => actions.length === 0).map(identityOf));
  const entries = writeSet.entries.map((entry) =>
    reserving.has(identityOf(entry)) ? { ...entry, exclusive: false } : entry,
  );
  return { writeSet: { ...writeSet, entries }, refusal: expanded.refusal };
}

const asking = (entries: WriteSetRequest['entries']): WriteSetRequest => ({ entries, task: null, resourceSet: null });

/**
 * A waiting request holds nothing yet: it asks for what the new map makes of it and for nothing else, as one that comes now
 * would. What a rule that is gone had brought is neither waited for nor kept from those behind (P9, C14).
 */
function anew(lease: Lease, { entries, ruleLocks }: Expanded): Reexpanded['next'] {
  if (demandOf({ entries, ruleLocks }) === demandOf(lease)) return null;
  const before = new Set(lease.entries.map(identityOf));
  const added = entries.filter((entry) => !before.has(identityOf(entry)));
  return { entries: entries.map((entry) => leaseEntry(entry, 0, null)), ruleLocks, added };
}

/** What it waits for, and how: not by which rule, whose number changes with every one before it. */
function demandOf({ entries, ruleLocks }: Expanded): string {
  return JSON.stringify([
    entries.map((entry) => [identityOf(entry), entry.exclusive, entry.mode, entry.validation, entry.maxViewAge]),
    ruleLocks.map(({ key, mode, entry }) => [key, mode, entry]),
  ]);
}

/**
 * The lease's entries and what the new map adds. A kept entry never loses strictness, is never known to be over earlier
 * than before (P3), and keeps its token unless it excludes from now on the optimistic writers that had later ones (P2).
 */
function union(lease: Lease, writeSet: Expanded): Reexpanded['next'] {
  const before = new Map(lease.entries.map((entry) => [identityOf(entry), entry]));
  const expanded = new Map(writeSet.entries.map((entry) => [identityOf(entry), entry]));
  const kept = lease.entries.map((entry) => {
    const now = expanded.get(identityOf(entry));
    const stricter = now?.exclusive === true && !entry.exclusive ? { ...entry, exclusive: true, token: 0 } : entry;
    if (now === undefined) return stricter;
    const validation = later(entry.validation, now.validation);
    const maxViewAge = Math.max(entry.maxViewAge, now.maxViewAge);
    const same = validation === entry.validation && maxViewAge === entry.maxViewAge;
    return same ? stricter : { ...stricter, validation, maxViewAge };
  });
  const added = writeSet.entries.filter((entry) => !before.has(identityOf(entry)));
  const entries = [...kept, ...added.map((entry) => leaseEntry(entry, 0, null))];
  const indexOf = new Map(entries.map((entry, index) => [identityOf(entry), index]));
  const lockId = (lock: Lease['ruleLocks'][number]): string => `${lock.entry} ${lock.mode} ${lock.key}`;
  const known = new Set(lease.ruleLocks.map(lockId));
  const addedLocks = writeSet.ruleLocks
    .map((lock) => ({ ...lock, entry: indexOf.get(identityOf(writeSet.entries[lock.entry] as ExpandedEntry)) ?? 0 }))
    .filter((lock) => !known.has(lockId(lock)));
  const stricter = kept.some((entry, index) => entry !== lease.entries[index]);
  if (added.length === 0 && addedLocks.length === 0 && !stricter) return null;
  return { entries, ruleLocks: [...lease.ruleLocks, ...addedLocks], added };
}
