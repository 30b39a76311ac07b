import type { ConflictMapDocument } from '../../../src/domain/conflict-map/document.js';
import type { Freeze } from '../../../src/domain/freeze.js';
import type { Micros } from '../../../src/domain/time.js';
import { clash, covers, type OracleEntry, useOf } from './entry.js';
import { agree, capturesOf, isFrozen } from './pattern.js';
import { SECOND } from './time.js';

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

/** A rule of the map that ties two patterns; it is the same one in every version that has it. */
export interface Tie {
  readonly between: readonly [string, string];
}

/** By what a target decides that does not ask: a credential, a view of at most this age (0: by none), or either. */
export interface Unasked {
  readonly byCredential: boolean;
  readonly viewAge: Micros;
}

type Known = WeakMap<readonly OracleEntry[], WeakMap<readonly OracleEntry[], string>>;

function recall(known: Known, a: readonly OracleEntry[], b: readonly OracleEntry[], find: () => string): string {
  const row = known.get(a) ?? new WeakMap<readonly OracleEntry[], string>();
  const why = row.get(b) ?? find();
  known.set(a, row.set(b, why));
  return why;
}

export class Oracle {
  private readonly clashes: Known = new WeakMap();
  private readonly clashesByTie = new Map<Tie, Known>();
  private document: Pick<ConflictMapDocument, 'conflicts' | 'implies' | 'kinds'> = {};
  /** Those of the map as it is. */
  ties: readonly Tie[] = [];

  constructor(
    private readonly universe: readonly string[],
    document: Pick<ConflictMapDocument, 'conflicts' | 'implies' | 'kinds'> = {},
  ) {
    this.use(document);
  }

  /** From now on these rules hold. */
  use(document: Pick<ConflictMapDocument, 'conflicts' | 'implies' | 'kinds'>): void {
    this.document = document;
    this.ties = (document.conflicts ?? []).map(({ between: [p, q] }) => {
      const known = [...this.clashesByTie.keys()].find(({ between }) => between[0] === p && between[1] === q);
      const tie = known ?? { between: [p, q] };
      if (known === undefined) this.clashesByTie.set(tie, new WeakMap());
      return tie;
    });
  }

  /** Why two runs may not hold these at once, tied by these rules; empty: they may (P1). */
  incompatible(a: readonly OracleEntry[], b: readonly OracleEntry[], ties: readonly Tie[] = this.ties): string {
    const clash = recall(this.clashes, a, b, () => this.clashOn(a, b));
    if (clash !== '') return clash;
    for (const tie of ties) {
      const known = this.clashesByTie.get(tie) as Known;
      const why = recall(known, a, b, () => this.clashByRule(a, b, tie));
      if (why !== '') return why;
    }
    return '';
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
            const touched = touch.resource.replace(
              /\{(.+?)(\.\.\.)?\}/g,
              (_, name: string) => captures.get(name) ?? '?',
            );
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

  private clashByRule(a: readonly OracleEntry[], b: readonly OracleEntry[], { between }: Tie): string {
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
    return '';
  }

  /** Those of which some target may accept writes without asking, and what it may know as late as what. */
  unasked(entries: readonly OracleEntry[]): { readonly entry: OracleEntry; readonly known: Unasked }[] {
    const kinds = (this.document.kinds ?? []).filter(({ validation = 'introspect' }) => validation !== 'introspect');
    if (kinds.length === 0) return [];
    return entries.flatMap((entry) => {
      if (useOf(entry) === null) return [];
      const covered = this.universe.filter((resource) => covers(entry, resource));
      const meets = kinds.filter(({ pattern }) => covered.some((resource) => capturesOf(pattern, resource) !== null));
      if (meets.length === 0) return [];
      const ages = meets.map((kind) => (kind.validation === 'view' ? (kind.max_view_age ?? 5 * SECOND) : 0));
      const known = {
        byCredential: meets.some(({ validation }) => validation === 'local'),
        viewAge: Math.max(...ages),
      };
      return [{ entry, known }];
    });
  }

  /** The first resource of these that a freeze is over; undefined: none is. What is only read is granted nothing. */
  frozen(freeze: Freeze, entries: readonly OracleEntry[]): string | undefined {
    const granted = entries.filter((entry) => entry.mode === 'enforce' && entry.access !== 'read');
    return this.universe.find(
      (resource) => isFrozen(freeze, resource) && granted.some((entry) => covers(entry, resource)),
    );
  }

  private written(entries: readonly OracleEntry[]): string[] {
    const writes = entries.filter((entry) => entry.access === 'write' && entry.observedRefusal === null);
    return this.universe.filter((resource) => writes.some((entry) => covers(entry, resource)));
  }
}
