/** Who waits for whom. */

/** How one stands in the way: in doubt and under lock delay is what has ended, and is granted to nobody yet all the same. */
export type Standing = 'holds' | 'waits' | 'in doubt' | 'lock delay';

/** A place in the queue, with those it waits for. */
export interface Waiter {
  readonly leaseId: string;
  readonly runId: string;
  readonly purpose: string;
  /** 1 when next in turn; 0: not known. */
  readonly place: number;
  /** RFC 3339; empty: not known. */
  readonly since: string;
  readonly resources: readonly string[];
  readonly waitsFor: readonly WaitsFor[];
}

export interface WaitsFor {
  readonly leaseId: string;
  readonly runId: string;
  readonly purpose: string;
  /** Where they meet. */
  readonly resource: string;
  readonly rule: string;
  readonly standing: Standing;
}

/** A lease, and who waits for it, and who waits for those. */
export interface WaitNode {
  readonly leaseId: string;
  readonly runId: string;
  readonly purpose: string;
  readonly standing: Standing;
  /** Null: it waits for nobody. */
  readonly waiter: Waiter | null;
  /** Where it meets the one above. */
  readonly meets: WaitsFor | null;
  readonly waitedForBy: readonly WaitNode[];
  /** Requests below it: how many would be glad if it ended. */
  readonly behind: number;
}

/** Deeper chains are cut: nobody reads them, and a cycle (which is refused, but could be read half-way) ends here. */
const MAX_DEPTH = 12;

/** What stands in the way first, that for which most wait at the top; a waiter stands below each one that it waits for. */
export function waitForest(waiters: readonly Waiter[]): WaitNode[] {
  const byLease = new Map(waiters.map((waiter) => [waiter.leaseId, waiter]));
  const behind = new Map<string, { readonly waiter: Waiter; readonly meets: WaitsFor }[]>();
  const holders = new Map<string, WaitsFor>();
  for (const waiter of waiters) {
    // Several writes in doubt of one lease are one place where the two meet.
    const met = new Map(waiter.waitsFor.map((meets) => [`${meets.leaseId} ${meets.resource}`, meets]));
    for (const meets of met.values()) {
      const list = behind.get(meets.leaseId) ?? [];
      list.push({ waiter, meets });
      behind.set(meets.leaseId, list);
      if (!byLease.has(meets.leaseId)) holders.set(meets.leaseId, meets);
    }
  }
  const nodesBehind = (leaseId: string, above: readonly string[]): WaitNode[] =>
    (behind.get(leaseId) ?? [])
      .filter(({ waiter }) => !above.includes(waiter.leaseId) && above.length < MAX_DEPTH)
      .sort((a, b) => a.waiter.place - b.waiter.place)
      .map(({ waiter, meets }) =>
        node(waiter, 'waits', waiter, meets, nodesBehind(waiter.leaseId, [...above, waiter.leaseId])),
      );
  const roots = [...holders.values()].map((holder) =>
    node(holder, holder.standing, null, null, nodesBehind(holder.leaseId, [holder.leaseId])),
  );
  const alone = waiters
    .filter(({ waitsFor }) => waitsFor.length === 0)
    .map((waiter) => node(waiter, 'waits', waiter, null, nodesBehind(waiter.leaseId, [waiter.leaseId])));
  return [...roots.sort((a, b) => b.behind - a.behind), ...alone];
}

function node(
  { leaseId, runId, purpose }: Pick<WaitNode, 'leaseId' | 'runId' | 'purpose'>,
  standing: Standing,
  waiter: Waiter | null,
  meets: WaitsFor | null,
  waitedForBy: readonly WaitNode[],
): WaitNode {
  const behind = waitedForBy.reduce((sum, child) => sum + 1 + child.behind, 0);
  return { leaseId, runId, purpose, standing, waiter, meets, waitedForBy, behind };
}

/**
 * Requests that wait for what would end: those that wait for nothing else, in the order of the queue, and those that do.
 * Who waits for one of the former only is behind it still: what it gets, they do not.
 */
export function waitersBehind(
  waiters: readonly Waiter[],
  ends: (holder: WaitsFor) => boolean,
): { readonly next: readonly Waiter[]; readonly others: readonly Waiter[] } {
  const goes = (one: WaitsFor) => one.standing === 'holds' && ends(one);
  const behind = waiters
    .filter(({ waitsFor }) => waitsFor.some(goes))
    .sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
  const waitsOnlyForIt = ({ waitsFor }: Waiter) => waitsFor.every(goes);
  return { next: behind.filter(waitsOnlyForIt), others: behind.filter((waiter) => !waitsOnlyForIt(waiter)) };
}
