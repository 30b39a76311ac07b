import type { Lease } from './lease.js';

/** Who holds a lock, or waits for it. One object per lease, shared by all its locks. */
export interface Holder {
  readonly leaseId: string;
  readonly runId: string;
  /** Place in the queue for waiters (P9); 0 for holders. */
  readonly order: number;
}

export function holderOf({ leaseId, runId, waiting }: Lease): Holder {
  return { leaseId, runId, order: waiting?.queuedAt ?? 0 };
}

/** Leases by a key that many of them may share. */
export interface HolderIndex {
  add(key: string, holder: Holder): void;
  remove(key: string, leaseId: string): void;
  /** In no particular order. */
  holders(key: string): Iterable<Holder>;
  /** First come first, as it is now: the array does not change. */
  inOrder(key: string): readonly Holder[];
  /** Nobody is in it under any key: most namespaces never see some of the modes. May be false where nobody is. */
  readonly isEmpty: boolean;
  commit(): void;
}

const NONE: readonly Holder[] = [];

export const byPlace = (a: Pick<Holder, 'order'>, b: Pick<Holder, 'order'>): number => a.order - b.order;

/** Most keys have one holder: the slot is then that holder itself, to keep 100,000 leases small. */
export class BaseHolderIndex implements HolderIndex {
  private readonly slots = new Map<string, Holder | Map<string, Holder>>();
  /** What was asked for in order, until it changes: a long queue is described to each who waits in it. */
  private readonly ordered = new Map<string, readonly Holder[]>();

  add(key: string, holder: Holder): void {
    if (this.ordered.size > 0) this.ordered.delete(key);
    const slot = this.slots.get(key);
    if (slot === undefined) this.slots.set(key, holder);
    else if (slot instanceof Map) slot.set(holder.leaseId, holder);
    else if (slot.leaseId === holder.leaseId) this.slots.set(key, holder);
    else
      this.slots.set(
        key,
        new Map([
          [slot.leaseId, slot],
          [holder.leaseId, holder],
        ]),
      );
  }

  remove(key: string, leaseId: string): void {
    if (this.ordered.size > 0) this.ordered.delete(key);
    const slot = this.slots.get(key);
    if (slot === undefined) return;
    if (!(slot instanceof Map)) {
      if (slot.leaseId === leaseId) this.slots.delete(key);
      return;
    }
    slot.delete(leaseId);
    if (slot.size === 0) this.slots.delete(key);
  }

  holders(key: string): Iterable<Holder> {
    const slot = this.slots.get(key);
    if (slot === undefined) return NONE;
    return slot instanceof Map ? slot.values() : [slot];
  }

  inOrder(key: string): readonly Holder[] {
    const slot = this.slots.get(key);
    if (slot === undefined) return NONE;
    if (!(slot instanceof Map)) return [slot];
    let ordered = this.ordered.get(key);
    if (ordered === undefined) {
      ordered = [...slot.values()].sort(byPlace);
      this.ordered.set(key, ordered);
    }
    return ordered;
  }

  get isEmpty(): boolean {
    return this.slots.size === 0;
  }

  /** Keys in use: for metrics and for tests that look for residue. */
  get size(): number {
    return this.slots.size;
  }

  commit(): void {}
}

/** Changes that the base does not see until they are committed; null: removed. */
export class OverlayHolderIndex implements HolderIndex {
  private readonly changes = new Map<string, Map<string, Holder | null>>();

  constructor(private base: HolderIndex) {}

  /** From now on lies over another base, which holds what the one before did. */
  rebase(base: HolderIndex): void {
    this.base = base;
  }

  add(key: string, holder: Holder): void {
    this.changesOf(key).set(holder.leaseId, holder);
  }

  remove(key: string, leaseId: string): void {
    this.changesOf(key).set(leaseId, null);
  }

  holders(key: string): Iterable<Holder> {
    const changes = this.changes.get(key);
    return changes === undefined ? this.base.holders(key) : merged(this.base.holders(key), changes);
  }

  inOrder(key: string): readonly Holder[] {
    const changes = this.changes.get(key);
    const before = this.base.inOrder(key);
    if (changes === undefined) return before;
    const kept = before.filter(({ leaseId }) => !changes.has(leaseId));
    const added = [...changes.values()].filter((holder) => holder !== null);
    return added.length === 0 ? kept : [...kept, ...added].sort(byPlace);
  }

  get isEmpty(): boolean {
    return this.changes.size === 0 && this.base.isEmpty;
  }

  commit(): void {
    for (const [key, changes] of this.changes) {
      for (const [leaseId, holder] of changes) {
        if (holder === null) this.base.remove(key, leaseId);
        else this.base.add(key, holder);
      }
    }
  }

  private changesOf(key: string): Map<string, Holder | null> {
    let changes = this.changes.get(key);
    if (changes === undefined) {
      changes = new Map();
      this.changes.set(key, changes);
    }
    return changes;
  }
}

function* merged(base: Iterable<Holder>, changes: Map<string, Holder | null>): Iterable<Holder> {
  for (const holder of changes.values()) if (holder !== null) yield holder;
  for (const holder of base) if (!changes.has(holder.leaseId)) yield holder;
}
