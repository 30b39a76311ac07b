import type { OracleEntry } from './entry.js';
import type { Oracle, Tie } from './write-sets.js';

export interface OracleHolder {
  readonly leaseId: string;
  readonly runId: string;
  readonly entries: readonly OracleEntry[];
  /** The lease that it is, or is to be, a part of. */
  readonly delegatedFrom?: string;
  /** "Locks are only ever added": the rules that tie it, also those that the map has no more; absent: those of the map. */
  readonly ties?: readonly Tie[];
}

export interface OracleWaiter extends OracleHolder {
  /** Its place in the queue: smaller is earlier. */
  readonly order: number;
  /** "A request for a resource set whose start lies ahead keeps its place, and is passed by everybody until then"; so is one that is frozen. */
  readonly early?: boolean;
}

type Wait = readonly [from: string, target: string];

/** Each pair of which the first comes to the second by one of these or more. */
function closure(waits: readonly Wait[]): Set<string> {
  const all = new Set(waits.map(([from, target]) => `${from} ${target}`));
  for (let size = -1; size !== all.size; ) {
    size = all.size;
    for (const pair of [...all]) {
      const [from, over] = pair.split(' ');
      for (const [a, b] of waits) if (a === over) all.add(`${from} ${b}`);
    }
  }
  return all;
}

/** Who waits for whom, from the entries alone. */
export class OracleQueue {
  private may: Set<string> | undefined;

  constructor(
    private readonly oracle: Oracle,
    private readonly holders: readonly OracleHolder[],
    private readonly waiters: readonly OracleWaiter[],
  ) {}

  /** Leases of other runs that a request meets. */
  holdersInTheWay(asker: OracleHolder): OracleHolder[] {
    return this.holders.filter((holder) => this.meets(asker, holder));
  }

  /** Earlier requests of other runs that a request meets. */
  waitersAhead(asker: OracleWaiter): OracleWaiter[] {
    // "A part of a lease passes everybody who waits": the whole keeps them waiting.
    if ((asker.delegatedFrom ?? '') !== '') return [];
    return this.waiters.filter(
      (waiter) => waiter.order < asker.order && waiter.early !== true && this.meets(asker, waiter),
    );
  }

  /**
   * Whether one run waits for another, directly or through others. "A request passes waiters that (transitively) wait
   * for its own run", and does not wait for whom it passes: what is asked for stands on both sides. So it is closed in
   * from below and from above: places count that are not surely passed, and surely passed is who surely waits.
   */
  waitsFor(from: string, target: string): boolean {
    this.may ??= this.mayWait();
    return this.may.has(`${from} ${target}`);
  }

  /** Every wait that the words allow: what is in none of their readings is not among them. */
  private mayWait(): Set<string> {
    const held: Wait[] = [];
    const places: Wait[] = [];
    for (const waiter of this.waiters) {
      for (const { runId } of this.holdersInTheWay(waiter)) held.push([waiter.runId, runId]);
      for (const { runId } of this.waitersAhead(waiter)) places.push([waiter.runId, runId]);
    }
    let surely = new Set<string>();
    for (;;) {
      const may = closure([...held, ...places.filter(([a, b]) => !surely.has(`${b} ${a}`))]);
      const more = closure([...held, ...places.filter(([a, b]) => !may.has(`${b} ${a}`))]);
      if (more.size === surely.size) return may;
      surely = more;
    }
  }

  /** A request that waits although nothing is in its way but whom it may pass; null: none. */
  waitingForNothing(): OracleWaiter | null {
    const passes = (waiter: OracleWaiter): boolean =>
      this.waitersAhead(waiter).every((ahead) => this.waitsFor(ahead.runId, waiter.runId));
    return this.waiters.find((waiter) => this.holdersInTheWay(waiter).length === 0 && passes(waiter)) ?? null;
  }

  /** A run that waits for itself by way of what others hold: nothing but time can end that. */
  deadlocked(): string | null {
    const held = new OracleQueue(this.oracle, this.holders, []);
    for (const { runId } of this.waiters) {
      const seen = new Set<string>();
      const open = [runId];
      for (let at = open.pop(); at !== undefined; at = open.pop()) {
        for (const waiter of this.waiters.filter((candidate) => candidate.runId === at)) {
          for (const holder of held.holdersInTheWay(waiter)) {
            if (holder.runId === runId) return runId;
            if (!seen.has(holder.runId)) open.push(holder.runId);
            seen.add(holder.runId);
          }
        }
      }
    }
    return null;
  }

  /** "P1, delegation to a child run excepted": a lease and what is a part of it, or of a part. */
  private isPartOf(part: OracleHolder, whole: OracleHolder): boolean {
    const above = [...this.holders, ...this.waiters].find(({ leaseId }) => leaseId === part.delegatedFrom);
    return part.delegatedFrom === whole.leaseId || (above !== undefined && this.isPartOf(above, whole));
  }

  private meets(asker: OracleHolder, other: OracleHolder): boolean {
    if (asker.runId === other.runId || this.isPartOf(asker, other) || this.isPartOf(other, asker)) return false;
    const { ties } = asker;
    const both = ties === undefined ? other.ties : ties.filter((tie) => other.ties?.includes(tie) ?? true);
    return this.oracle.incompatible(asker.entries, other.entries, both) !== '';
  }
}
