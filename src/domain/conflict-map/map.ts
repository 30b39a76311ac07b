import type { ChangeClass } from '../change-class.js';
import type { Access, Scope, Validation } from '../entry.js';
import { invalidArgument } from '../fault.js';
import type { Pattern } from '../pattern.js';
import type { PatternIndex } from '../pattern-index.js';
import { parseResource } from '../resource.js';
import { type Micros, SECOND } from '../time.js';
import {
  type Alias,
  type AliasIndex,
  aliasesOverlap,
  applyAlias,
  prefixesMeet,
  prefixOf,
  tokensOfTemplate,
} from './alias.js';
import type { Approval, Authority, ConflictMapDocument, KindMode, UnmatchedPolicy } from './document.js';

export type { Alias } from './alias.js';

/** Times that count where the map says nothing. */
export const DEFAULT_TIMES: { readonly ttl: Micros; readonly maxTtl: Micros; readonly maxHold: Micros } = {
  ttl: 60 * SECOND,
  maxTtl: 300 * SECOND,
  maxHold: 1_800 * SECOND,
};

/** A verb of a kind. */
export interface KindAction {
  readonly name: string;
  readonly access: Access;
  /** Needs the lease to be alone (C8). Of a write; false for reads. */
  readonly exclusive: boolean;
  readonly changeClass: ChangeClass | null;
  readonly resolver: string;
  readonly approval: Approval | null;
  /** A check that allows it leaves an admission, which its target closes by a report (R4). Of a write; false for reads. */
  readonly tracked: boolean;
}

/** A kind of resources, with its profile worked in. */
export interface Kind {
  readonly pattern: Pattern;
  readonly index: number;
  readonly authority: Authority;
  readonly mode: KindMode;
  readonly ownerService: readonly string[];
  readonly validation: Validation;
  /** Of a `view` kind; 0 for others. */
  readonly maxViewAge: Micros;
  readonly ttl: Micros;
  readonly maxTtl: Micros;
  readonly maxHold: Micros;
  readonly progressWindow: Micros | null;
  readonly sandbox: Pattern | null;
  /** No run gets authority to write before its target was rehearsed (C13). */
  readonly requiresRehearsal: boolean;
  readonly actions: ReadonlyMap<string, KindAction>;
  readonly writeActions: readonly KindAction[];
}

/** An entry of a rule, a set or a task: its resource may be a template. */
export interface EntryTemplate {
  readonly resource: Pattern;
  readonly access: Access;
  readonly scope: Scope;
  readonly actions: readonly string[];
}

/** Who touches this touches those. */
export interface ImpliesRule {
  /** Such as `implies[0]`. */
  readonly name: string;
  readonly pattern: Pattern;
  readonly access: Access;
  readonly touches: readonly EntryTemplate[];
}

/** Two patterns that two runs may not write at once, where captures of one name agree. */
export interface ConflictRule {
  /** Such as `conflicts[0]`. */
  readonly name: string;
  readonly between: readonly [Pattern, Pattern];
  /** Names both have, in order of the alphabet. */
  readonly joined: readonly string[];
  readonly because: string;
}

/** One of the two patterns of a conflict rule. */
export interface ConflictSide {
  readonly rule: ConflictRule;
  readonly side: 0 | 1;
  readonly pattern: Pattern;
}

export interface ResourceSet {
  readonly name: string;
  readonly notBefore: Micros | null;
  readonly entries: readonly EntryTemplate[];
}

export interface Task {
  readonly name: string;
  readonly params: readonly string[];
  /** Those of the parameters that stand for several segments, `{name...}`. */
  readonly restParams: ReadonlySet<string>;
  readonly entries: readonly EntryTemplate[];
}

/** A document, compiled. Immutable; what is found again and again is remembered in it. */
export interface ConflictMap {
  readonly document: ConflictMapDocument;
  readonly unmatched: UnmatchedPolicy;
  readonly kinds: readonly Kind[];
  readonly kindIndex: PatternIndex<Kind>;
  /** Some kind does. */
  readonly demandsRehearsal: boolean;
  readonly implies: readonly ImpliesRule[];
  readonly impliesIndex: Readonly<Record<Access, PatternIndex<ImpliesRule>>>;
  readonly conflicts: readonly ConflictRule[];
  readonly conflictIndex: PatternIndex<ConflictSide>;
  readonly aliases: readonly Alias[];
  readonly aliasIndex: AliasIndex;
  readonly sets: ReadonlyMap<string, ResourceSet>;
  readonly tasks: ReadonlyMap<string, Task>;
  /** Whether any action of any kind is tracked. */
  readonly tracks: boolean;
  /** Kinds that decide at or below a subtree, by its resource; bounded. */
  readonly subtreeKinds: Map<string, readonly Kind[]>;
}

export type Resolved =
  | {
      readonly ok: true;
      readonly resource: string /** The alias that was applied; empty: none. */;
      readonly alias: string;
    }
  | { readonly ok: false; readonly reason: string };

/** Turns an alias into its path, and takes a path as it is. Aliases come first: some are in normal form as written. */
export function resolveResource(map: ConflictMap, text: string): Resolved {
  const alias = map.aliasIndex.find(text);
  if (alias === null) {
    const path = parseResource(text);
    return path.ok ? { ok: true, resource: path.resource, alias: '' } : path;
  }
  const applied = applyAlias(alias, text);
  if (applied === null) return { ok: false, reason: 'it is no resource' };
  if ('reason' in applied)
    return {
      ok: false,
      reason: `the alias ${JSON.stringify(alias.from)} makes a path of it of which ${applied.reason}`,
    };
  return { ok: true, resource: applied.resource, alias: alias.from };
}

/** The path of what a field of a request names, itself or by an alias; refused when it is neither, lest nothing be meant by it. */
export function pathNamed(map: ConflictMap, field: string, text: string): string {
  const resolved = resolveResource(map, text);
  if (!resolved.ok) throw invalidArgument([{ field, description: resolved.reason }]);
  return resolved.resource;
}

/** The kind of a resource's path: that of the most specific pattern; null: no kind matches. */
export function kindOf(map: ConflictMap, resource: string): Kind | null {
  return map.kindIndex.best(resource.split('/')) ?? null;
}

/** Whether a write to a resource's path is tracked. */
export function isTracked(map: ConflictMap, resource: string, action: string): boolean {
  return map.tracks && kindOf(map, resource)?.actions.get(action)?.tracked === true;
}

/**
 * Whether a view can decide about a kind's resources: their targets are to decide by one, and no path of theirs can be an
 * alias of another resource, which only the whole map can tell.
 */
export function decidesByView(map: ConflictMap, kind: Kind): boolean {
  if (kind.validation !== 'view') return false;
  const paths = tokensOfTemplate(kind.pattern);
  const prefix = prefixOf(paths);
  return !map.aliases.some((alias) => prefixesMeet(prefix, alias.prefix) && aliasesOverlap(paths, alias.tokens));
}

/** Whether nothing about a resource's path is refused, only recorded (C14). */
export function observes(map: ConflictMap, resource: string): boolean {
  const kind = kindOf(map, resource);
  return kind === null ? map.unmatched === 'observe' : kind.mode === 'observe';
}

/** Why a `conflicts` rule is there, as the admin said; empty: not said, or no such rule. */
export function becauseOf(map: ConflictMap, rule: string): string {
  return map.conflicts.find((conflict) => conflict.name === rule)?.because ?? '';
}

export interface ResourceDescription {
  readonly resource: string;
  /** Pattern of its kind; empty: none matches. */
  readonly kind: string;
  readonly alias: string;
  readonly actions: readonly string[];
  /** Null: no kind matches. */
  readonly validation: Validation | null;
  /** Null: its validation is not `view`. */
  readonly maxViewAge: Micros | null;
}

/** What a text is, for ResolveResource; a reason when it has no path. */
export function describeResource(
  map: ConflictMap,
  text: string,
): { readonly ok: true; readonly description: ResourceDescription } | { readonly ok: false; readonly reason: string } {
  const resolved = resolveResource(map, text);
  if (!resolved.ok) return resolved;
  const kind = kindOf(map, resolved.resource);
  return {
    ok: true,
    description: {
      resource: resolved.resource,
      kind: kind?.pattern.text ?? '',
      alias: resolved.alias,
      actions: [...(kind?.actions.keys() ?? [])],
      validation: kind?.validation ?? null,
      maxViewAge: kind?.validation === 'view' ? kind.maxViewAge : null,
    },
  };
}
