import { isWithin } from './amendment.js';
import type { ExpandedEntry, RuleLock, Scope } from './entry.js';
import { effectiveAt, type Lease, type LeaseEntry, leftOverId, staysLocked, underLockDelay } from './lease.js';
import { keepsNoMoreAway } from './locks.js';
import { INCOMPATIBLE } from './modes.js';
import type { State } from './state.js';
import type { Micros } from './time.js';

/**
 * Delegation: a child run holds a part of a lease of its parent run (design: leases). Both leases keep their locks, which
 * may meet: the one exception of P1. Meanwhile the parent's entries there are suspended; no check allows them. The
 * parent's locks keep everybody else away until the part has come back.
 */

/** Leases and waiting requests that hold a part of a lease, also what is under lock delay of them. */
export function* delegatedLeases(state: State, leaseId: string): Iterable<Lease> {
  for (const id of state.delegations.get(leaseId) ?? []) {
    const lease = state.leases.get(id);
    if (lease !== undefined) yield lease;
  }
}

/** The leases with all that holds a part of them, of a part, and so on: the deepest first. */
export function withDelegated(state: State, leases: readonly Lease[]): Lease[] {
  if (state.delegations.size === 0) return [...leases];
  return leases.flatMap((lease) => [...withDelegated(state, [...delegatedLeases(state, lease.leaseId)]), lease]);
}

/**
 * From when on the ends of leases are in force everywhere (P3): with what held a part of them, and with what amendments
 * and parts took from them before, of which some target may still believe the lease.
 */
export function inForceAt(state: State, leases: readonly Lease[]): Micros {
  let latest = 0;
  for (const lease of withDelegated(state, leases)) {
    latest = Math.max(latest, effectiveAt(lease));
    for (let generation = 1; generation < lease.generation; generation += 1) {
      const left = state.leases.get(leftOverId(lease.leaseId, generation));
      if (left !== undefined) latest = Math.max(latest, effectiveAt(left));
    }
  }
  return latest;
}

/** Those that hold a part of others before these, so that each can be ended for itself. */
export function innermostFirst(state: State, leases: readonly Lease[]): Lease[] {
  const depthOf = (lease: Lease): number => {
    const above = state.leases.get(lease.delegatedFrom);
    return above === undefined ? 0 : 1 + depthOf(above);
  };
  return state.delegations.size === 0 ? [...leases] : leases.toSorted((a, b) => depthOf(b) - depthOf(a));
}

/** Whether a lease holds a part of another one, or a part of a part. */
export function isPartOf(state: State, lease: Pick<Lease, 'delegatedFrom'>, leaseId: string): boolean {
  for (let above = lease.delegatedFrom; above !== ''; above = state.leases.get(above)?.delegatedFrom ?? '')
    if (above === leaseId) return true;
  return false;
}

/** What of a write set is not within the parent's lease: resources at or below, access no stronger, the same actions or fewer. */
export function beyondParent(parent: Lease, entries: readonly ExpandedEntry[]): ExpandedEntry | undefined {
  const held = new Map<string, LeaseEntry[]>();
  for (const entry of parent.entries) held.set(entry.resource, [...(held.get(entry.resource) ?? []), entry]);
  return entries.find((entry) => {
    for (const [at, resource] of [entry.resource, ...above(entry.resource)].entries())
      for (const outer of held.get(resource) ?? []) if (covers(outer, entry, at === 0)) return false;
    return true;
  });
}

function covers(outer: LeaseEntry, inner: ExpandedEntry, isSame: boolean): boolean {
  return (isSame || outer.scope === 'subtree') && isWithin(inner, outer) && keepsNoMoreAway(inner, outer);
}

/** For each entry of a lease, whether something that holds a part of it meets it now: it is to be suspended. */
export function metByParts(state: State, lease: Lease): boolean[] {
  const parts = [...delegatedLeases(state, lease.leaseId)].map((part) => partOf(part));
  return lease.entries.map((_, index) => parts.some((part) => part.meets(lease, index)));
}

/** The entries of a lease that a write set would meet, and that are not suspended yet. */
export function newlyMet(
  lease: Lease,
  writeSet: { readonly entries: readonly ExpandedEntry[]; readonly ruleLocks: readonly RuleLock[] },
): LeaseEntry[] {
  const part = new Part(writeSet.entries, writeSet.ruleLocks);
  return lease.entries.filter((entry, index) => !entry.suspended && part.meets(lease, index));
}

/** What it keeps its parent from: not what it was only observed to be refused (C14); of one that has ended what stays locked. */
function partOf(lease: Lease): Part {
  const isEnded = underLockDelay(lease);
  const counts = (entry: LeaseEntry): boolean => (isEnded ? staysLocked(entry) : entry.observedRefusal === null);
  if (lease.entries.every(counts)) return new Part(lease.entries, lease.ruleLocks);
  return new Part(
    lease.entries.filter(counts),
    lease.ruleLocks.filter((lock) => counts(lease.entries[lock.entry] as LeaseEntry)),
  );
}

/** What a child holds, to be compared with many entries of its parent. */
class Part {
  private readonly at = new Set<string>();
  private readonly subtrees = new Set<string>();
  private readonly above = new Set<string>();
  private readonly rules = new Map<string, RuleLock[]>();

  constructor(entries: readonly ExpandedEntry[], ruleLocks: readonly RuleLock[]) {
    for (const { resource, scope, access } of entries) {
      if (access === 'read') continue;
      this.at.add(resource);
      if (scope === 'subtree') this.subtrees.add(resource);
      for (const one of above(resource)) this.above.add(one);
    }
    for (const lock of ruleLocks) this.rules.set(lock.key, [...(this.rules.get(lock.key) ?? []), lock]);
  }

  /** By its resource, or by a rule of the map. A read is promised nothing. */
  meets(lease: Lease, index: number): boolean {
    const entry = lease.entries[index] as LeaseEntry;
    if (entry.access === 'read' || entry.observedRefusal !== null) return false;
    return this.overlaps(entry) || lease.ruleLocks.some((lock) => lock.entry === index && this.meetsByRule(lock));
  }

  private overlaps({ resource, scope }: { readonly resource: string; readonly scope: Scope }): boolean {
    if (this.at.has(resource) || (scope === 'subtree' && this.above.has(resource))) return true;
    return above(resource).some((one) => this.subtrees.has(one));
  }

  private meetsByRule({ key, mode }: RuleLock): boolean {
    return this.rules.get(key)?.some((other) => INCOMPATIBLE[mode].includes(other.mode)) === true;
  }
}

/** The resources that a resource lies below. */
function above(resource: string): string[] {
  const all: string[] = [];
  for (let slash = resource.lastIndexOf('/'); slash > 0; slash = resource.lastIndexOf('/', slash - 1))
    all.push(resource.slice(0, slash));
  return all;
}
