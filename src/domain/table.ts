/**
 * Records by id. The base holds what is acknowledged; an overlay holds what a batch would change and
 * leaves the base as it is, so that checks and reads never see what is not yet committed (P7).
 */
export interface Table<V> {
  get(id: string): V | undefined;
  set(id: string, value: V): void;
  delete(id: string): void;
  values(): Iterable<V>;
  readonly size: number;
}

export class BaseTable<V> implements Table<V> {
  private readonly records = new Map<string, V>();

  get(id: string): V | undefined {
    return this.records.get(id);
  }

  set(id: string, value: V): void {
    this.records.set(id, value);
  }

  delete(id: string): void {
    this.records.delete(id);
  }

  values(): Iterable<V> {
    return this.records.values();
  }

  get size(): number {
    return this.records.size;
  }
}

const DELETED = Symbol('deleted');

export class OverlayTable<V> implements Table<V> {
  private readonly changes = new Map<string, V | typeof DELETED>();
  private added = 0;

  constructor(private base: Table<V>) {}

  /** From now on lies over another base, which holds what the one before did. */
  rebase(base: Table<V>): void {
    this.base = base;
  }

  get(id: string): V | undefined {
    const change = this.changes.get(id);
    if (change === undefined) return this.base.get(id);
    return change === DELETED ? undefined : change;
  }

  set(id: string, value: V): void {
    if (this.get(id) === undefined) this.added += 1;
    this.changes.set(id, value);
  }

  delete(id: string): void {
    if (this.get(id) !== undefined) this.added -= 1;
    this.changes.set(id, DELETED);
  }

  *values(): Iterable<V> {
    // A change made while somebody iterates must not disturb the iteration.
    const changes = new Map(this.changes);
    if (changes.size === 0) {
      yield* this.base.values();
      return;
    }
    const seen = new Set<V>();
    for (const [id, change] of changes) {
      const before = this.base.get(id);
      if (before !== undefined) seen.add(before);
      if (change !== DELETED) yield change;
    }
    for (const value of this.base.values()) if (!seen.has(value)) yield value;
  }

  get size(): number {
    return this.base.size + this.added;
  }

  /** The records this overlay sets: the final rows of a batch. */
  changed(): V[] {
    const records: V[] = [];
    for (const change of this.changes.values()) if (change !== DELETED) records.push(change);
    return records;
  }

  /** Ids of records of the base that this overlay deletes. */
  deleted(): string[] {
    return [...this.changes].flatMap(([id, change]) =>
      change === DELETED && this.base.get(id) !== undefined ? [id] : [],
    );
  }

  /** Makes the changes in the base. */
  commit(): void {
    for (const [id, change] of this.changes) {
      if (change === DELETED) this.base.delete(id);
      else this.base.set(id, change);
    }
  }
}
