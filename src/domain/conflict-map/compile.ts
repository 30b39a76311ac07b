import type { Access } from '../entry.js';
import { CREDENTIAL_BOUNDS, type CredentialBounds } from '../lock-delay.js';
import { PatternIndex } from '../pattern-index.js';
import { AliasIndex } from './alias.js';
import { checkAssertions } from './assertions.js';
import { compileKinds } from './compile-kinds.js';
import {
  checkAliases,
  compileAliases,
  compileConflicts,
  compileImplies,
  compileSets,
  compileTasks,
  type PlacedAlias,
  type PlacedTemplate,
} from './compile-rules.js';
import { type ConflictMapDocument, childPath, type MapProblem } from './document.js';
import type { ConflictMap, ConflictRule, ConflictSide, EntryTemplate, ImpliesRule, Kind } from './map.js';
import { didYouMean, FirstError, listed, Problems, quoted } from './problems.js';

export type CompileResult =
  | { readonly ok: true; readonly map: ConflictMap; readonly warnings: readonly MapProblem[] }
  /** All problems, warnings among them. */
  | { readonly ok: false; readonly problems: readonly MapProblem[] };

/**
 * Compiles a document that its schema let through: references, templates, times, and its assertions, all of them on every
 * change. `bounds` are those of the coordinator that will use it; the defaults where none is asked.
 */
export function compileConflictMap(
  document: ConflictMapDocument,
  bounds: CredentialBounds = CREDENTIAL_BOUNDS,
): CompileResult {
  const problems = new Problems();
  const { map, placed, aliases } = build(document, problems, bounds);
  checkAliases(aliases, problems);
  if (!problems.failed) for (const one of placed) checkAgainstKinds(one, map, problems);
  if (!problems.failed) checkAssertions(map, document, problems);
  return problems.failed ? { ok: false, problems: problems.all } : { ok: true, map, warnings: problems.all };
}

/** The map of a document is compiled once: whoever meets the same document meets the same map. */
const COMPILED = new WeakMap<object, ConflictMap>();

/**
 * Compiles a document from the log, or one about to go there. It was judged when it was put, and what
 * compares its parts with each other is not judged again: this takes time by its size only, since every
 * replica does it between two checks. One that cannot be compiled any more stops the namespace (P8).
 */
export function compileStored(document: unknown): ConflictMap {
  if (typeof document !== 'object' || document === null) throw new Error('the stored conflict map is no document');
  const known = COMPILED.get(document);
  if (known !== undefined) return known;
  const { map } = build(document as ConflictMapDocument, new FirstError(), CREDENTIAL_BOUNDS);
  COMPILED.set(document, map);
  return map;
}

interface Built {
  readonly map: ConflictMap;
  /** What is to be compared with the rest of the map. */
  readonly placed: readonly PlacedTemplate[];
  readonly aliases: readonly PlacedAlias[];
}

/** Compiles every part by itself: in time by the size of the document. */
function build(document: ConflictMapDocument, problems: Problems, bounds: CredentialBounds): Built {
  const { kinds, index } = compileKinds(document, bounds, problems);
  const placed: PlacedTemplate[] = [];
  const implies = compileImplies(document, placed, problems);
  const conflicts = compileConflicts(document, problems);
  const placedAliases = compileAliases(document, problems);
  const aliases = placedAliases.map(({ alias }) => alias);
  const sets = compileSets(document, placed, problems);
  const tasks = compileTasks(document, placed, problems);
  const map: ConflictMap = {
    document,
    unmatched: document.unmatched ?? 'deny',
    kinds,
    kindIndex: index,
    demandsRehearsal: kinds.some((kind) => kind.requiresRehearsal),
    implies,
    impliesIndex: indexImplies(implies),
    conflicts,
    conflictIndex: indexConflicts(conflicts),
    aliases,
    aliasIndex: new AliasIndex(aliases),
    sets,
    tasks,
    tracks: kinds.some((kind) => kind.writeActions.some((action) => action.tracked)),
    subtreeKinds: new Map(),
  };
  return { map, placed, aliases: placedAliases };
}

function indexImplies(rules: readonly ImpliesRule[]): Readonly<Record<Access, PatternIndex<ImpliesRule>>> {
  const index = {
    read: new PatternIndex<ImpliesRule>(),
    stable_read: new PatternIndex<ImpliesRule>(),
    write: new PatternIndex<ImpliesRule>(),
  };
  for (const rule of rules) index[rule.access].add(rule.pattern, rule);
  return index;
}

function indexConflicts(rules: readonly ConflictRule[]): PatternIndex<ConflictSide> {
  const index = new PatternIndex<ConflictSide>();
  for (const rule of rules) {
    for (const side of [0, 1] as const) index.add(rule.between[side], { rule, side, pattern: rule.between[side] });
  }
  return index;
}

/** What a rule, set or task names must be described by some kind that it can meet, and its actions must be theirs. */
function checkAgainstKinds({ template, path, implied }: PlacedTemplate, map: ConflictMap, problems: Problems): void {
  const index = map.kindIndex;
  const subtree = template.scope === 'subtree';
  const literal = template.resource.names.length === 0 && !subtree;
  const best = literal ? index.best(template.resource.text.split('/')) : undefined;
  const kinds = literal ? (best === undefined ? [] : [best]) : index.overlapping(template.resource, subtree);
  if (kinds.length === 0) {
    if (map.unmatched === 'observe') return;
    const then = implied ? 'it is reserved all the same, but carries no action' : 'it is refused as undescribed';
    problems.warn(
      'undescribed_resource',
      childPath(path, 'resource'),
      `No kind matches ${quoted(template.resource.text)}: ${then}.`,
    );
    return;
  }
  for (const [number, name] of template.actions.entries()) {
    if (kinds.some((kind) => kind.actions.get(name)?.access === template.access)) continue;
    problems.error('unknown_action', childPath(childPath(path, 'actions'), number), () =>
      notOffered(name, template, kinds),
    );
  }
}

function notOffered(name: string, template: EntryTemplate, kinds: readonly Kind[]): string {
  const called = kinds.find((kind) => kind.actions.has(name))?.actions.get(name);
  const fitting = new Set<string>();
  for (const kind of kinds)
    for (const action of kind.actions.values()) if (action.access === template.access) fitting.add(action.name);
  const what =
    called === undefined
      ? `${quoted(name)} is no action of ${quoted(template.resource.text)}`
      : `${quoted(name)} is a ${called.access} action, the entry is a ${template.access}`;
  return `${what}${didYouMean(name, fitting)} Its ${template.access} actions: ${listed([...fitting])}.`;
}

/** The map of a namespace before its first: it describes nothing, and what is not described is refused. */
export const EMPTY_CONFLICT_MAP: ConflictMap = compileStored({ version: 1 });
