import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import type { Access, Scope } from '../../src/domain/entry.js';
import type { Micros } from '../../src/domain/time.js';

/**
 * A second opinion, slow and obvious, written from the words of the design (§4 to §6) and from nothing else: it knows
 * no lock, no mode and no index. It looks at every resource of a small universe, one after another, and asks what each
 * run may do to it. Of src it uses types only.
 */

/** What the oracle needs to know of an entry. */
export interface OracleEntry {
  readonly resource: string;
  readonly access: Access;
  readonly scope: Scope;
  readonly exclusive: boolean;
  readonly mode: 'observe' | 'enforce';
  readonly observedRefusal: string | null;
}

// ------------------------------------------------------------------------------------------------- single resources

/** "EXACT: the resource itself; SUBTREE: the resource and all below it." */
export function covers(entry: Pick<OracleEntry, 'resource' | 'scope'>, resource: string): boolean {
  if (entry.resource === resource) return true;
  return entry.scope === 'subtree' && resource.startsWith(`${entry.resource}/`);
}

/** Literal segments, `{name}` for one segment, a final `{name...}` for one or more; null: no match. */
export function capturesOf(pattern: string, resource: string): Map<string, string> | null {
  const names: string[] = [];
  const source = pattern
    .split('/')
    .map((segment) => {
      const capture = /^\{(.+?)(\.\.\.)?\}$/.exec(segment);
      if (capture === null) return segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
      names.push(capture[1] as string);
      return capture[2] === undefined ? '([^/]+)' : '(.+)';
    })
    .join('/');
  const match = new RegExp(`^${source}$`).exec(resource);
  return match === null ? null : new Map(names.map((name, index) => [name, match[index + 1] as string]));
}

/** "Captures of the same name join." */
function agree(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  return [...a].every(([name, value]) => !b.has(name) || b.get(name) === value);
}

type Use = 'stable' | 'optimistic' | 'exclusive';

/** READ is recorded and keeps nobody away; so does an entry that was only observed to be in somebody's way. */
function useOf(entry: OracleEntry): Use | null {
  if (entry.observedRefusal !== null || entry.access === 'read') return null;
  if (entry.access === 'stable_read') return 'stable';
  return entry.exclusive ? 'exclusive' : 'optimistic';
}

/** "Optimistic writers stand side by side, never beside a leased one"; STABLE_READ: "nobody may change it meanwhile". */
function clash(a: Use, b: Use): boolean {
  return a !== b || a === 'exclusive';
}

// ------------------------------------------------------------------------------------------------------- write sets

/**
 * Every resource that can matter to these entries: those named, each with a child that nobody named (for what a subtree
 * covers besides), and every path of up to `depth` of the segments that occur in them.
 */
export function universeOf(resources: readonly string[], depth = 0): string[] {
  const segments = [...new Set(resources.flatMap((resource) => resource.split('/')))];
  let grid: string[] = [''];
  const all = new Set(resources.flatMap((resource) => [resource, `${resource}/~`]));
  for (let level = 0; level < depth; level += 1) {
    grid = grid.flatMap((path) => segments.map((segment) => (path === '' ? segment : `${path}/${segment}`)));
    for (const path of grid) all.add(path);
  }
  return [...all];
}

export class Oracle {
  private cache = new WeakMap<readonly OracleEntry[], WeakMap<readonly OracleEntry[], string>>();

  constructor(
    private readonly universe: readonly string[],
    private document: Pick<ConflictMapDocument, 'conflicts' | 'implies'> = {},
  ) {}

  /** From now on these rules hold. */
  use(document: Pick<ConflictMapDocument, 'conflicts' | 'implies'>): void {
    this.document = document;
    this.cache = new WeakMap();
  }

  /** Why two runs may not hold these at once; empty: they may (P1). */
  incompatible(a: readonly OracleEntry[], b: readonly OracleEntry[]): string {
    const known = this.cache.get(a)?.get(b);
    if (known !== undefined) return known;
    const why = this.clashOn(a, b) || this.clashByRule(a, b);
    const row = this.cache.get(a) ?? new WeakMap();
    this.cache.set(a, row.set(b, why));
    return why;
  }

  /** What the `implies` rules say these entries touch as well, and what nothing among them covers (C3). */
  missing(entries: readonly OracleEntry[]): string[] {
    const missing: string[] = [];
    for (const rule of this.document.implies ?? []) {
      for (const entry of entries) {
        if (entry.access !== (rule.when.access ?? 'write')) continue;
        for (const resource of this.universe) {
          const captures = covers(entry, resource) ? capturesOf(rule.when.pattern, resource) : null;
          if (captures === null) continue;
          for (const touch of rule.touches) {
            const touched = touch.resource.replace(/\{(.+?)(\.\.\.)?\}/g, (_, name: string) => captures.get(name) ?? '?');
            const covered = entries.some(
              (other) =>
                other.access === touch.access &&
                covers(other, touched) &&
                (touch.scope !== 'subtree' || other.scope === 'subtree'),
            );
            if (!covered) missing.push(`${touch.access} ${touched}, implied by ${resource}`);
          }
        }
      }
    }
    return missing;
  }

  private clashOn(a: readonly OracleEntry[], b: readonly OracleEntry[]): string {
    for (const resource of this.universe) {
      for (const mine of a) {
        const use = covers(mine, resource) ? useOf(mine) : null;
        if (use === null) continue;
        for (const theirs of b) {
          const other = covers(theirs, resource) ? useOf(theirs) : null;
          if (other !== null && clash(use, other)) return `${use} and ${other} on ${resource}`;
        }
      }
    }
    return '';
  }

  private clashByRule(a: readonly OracleEntry[], b: readonly OracleEntry[]): string {
    for (const { between } of this.document.conflicts ?? []) {
      const [first, second] = between;
      for (const [p, q] of [
        [first, second],
        [second, first],
      ] as const) {
        for (const mine of this.written(a)) {
          const captures = capturesOf(p, mine);
          if (captures === null) continue;
          for (const theirs of this.written(b)) {
            const others = capturesOf(q, theirs);
            if (others !== null && agree(captures, others)) return `writes of ${mine} and ${theirs}, which a rule ties`;
          }
        }
      }
    }
    return '';
  }

  private written(entries: readonly OracleEntry[]): string[] {
    const writes = entries.filter((entry) => entry.access === 'write' && entry.observedRefusal === null);
    return this.universe.filter((resource) => writes.some((entry) => covers(entry, resource)));
  }
}

// --------------------------------------------------------------------------------------------------------- the queue

export interface OracleHolder {
  readonly leaseId: string;
  readonly runId: string;
  readonly entries: readonly OracleEntry[];
}

export interface OracleWaiter extends OracleHolder {
  /** Its place in the queue: smaller is earlier. */
  readonly order: number;
}

/** Who waits for whom, from the entries alone. */
export class OracleQueue {
  private readonly reach = new Map<string, Set<string>>();

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
    return this.waiters.filter((waiter) => waiter.order < asker.order && this.meets(asker, waiter));
  }

  /** Whether one run waits for another, directly or through others. */
  waitsFor(from: string, target: string): boolean {
    let reached = this.reach.get(from);
    if (reached === undefined) {
      reached = new Set<string>();
      const open = [from];
      for (let runId = open.pop(); runId !== undefined; runId = open.pop()) {
        for (const next of this.next(runId)) {
          if (reached.has(next)) continue;
          reached.add(next);
          open.push(next);
        }
      }
      this.reach.set(from, reached);
    }
    return reached.has(target);
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

  private next(runId: string): string[] {
    return this.waiters
      .filter((waiter) => waiter.runId === runId)
      .flatMap((waiter) => [...this.holdersInTheWay(waiter), ...this.waitersAhead(waiter)].map((other) => other.runId));
  }

  private meets(asker: OracleHolder, other: OracleHolder): boolean {
    return asker.runId !== other.runId && this.oracle.incompatible(asker.entries, other.entries) !== '';
  }
}

// -------------------------------------------------------------------------------------------------- the fence check

export interface OracleLease {
  readonly runId: string;
  readonly live: boolean;
  readonly entries: readonly (OracleEntry & { readonly actions: readonly string[]; readonly token: Micros })[];
}

/** Whether a target may accept the write: only what the lease covers, only for its run, only with its token (P4). */
export function mayWrite(
  lease: OracleLease | undefined,
  presenterRunId: string,
  write: {
    readonly resource: string;
    readonly action: string;
    readonly token: number;
    readonly observedVersion: string | null;
  },
): boolean {
  if (lease === undefined || !lease.live) return false;
  if (presenterRunId !== '' && presenterRunId !== lease.runId) return false;
  return lease.entries.some(
    (entry) =>
      entry.access === 'write' &&
      entry.observedRefusal === null &&
      covers(entry, write.resource) &&
      entry.actions.includes(write.action) &&
      entry.token === write.token &&
      (entry.exclusive || write.observedVersion !== null),
  );
}
