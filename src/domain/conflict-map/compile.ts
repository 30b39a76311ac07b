import type { Access } from '../entry.js';
import { CREDENTIAL_BOUNDS, type CredentialBounds } from '../lock-delay.js';
import { PatternIndex } from '../pattern-index.js';
import { AliasIndex } from './alias.js';
import { checkAssertions } from './assertions.js';
import { compileKinds } from './compile-kinds.js';
import {
  compileAliases,
  compileConflicts,
  compileImplies,
  compileSets,
  compileTasks,
  type PlacedTemplate,
} from './compile-rules.js';
import { type ConflictMapDocument, childPath, type MapProblem } from './document.js';
import type { ConflictMap, ConflictRule, ConflictSide, ImpliesRule, Kind } from './map.js';
import { didYouMean, listed, Problems, quoted } from './problems.js';

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
  const map = build(document, problems, bounds);
  if (!problems.failed) checkAssertions(map, document, problems);
  return problems.failed ? { ok: false, problems: problems.all } : { ok: true, map, warnings: problems.all };
}

/** Compiles a document from the log. It was accepted when it was put; one that is not any more stops the namespace (P8). */
export function compileStored(document: unknown): ConflictMap {
  if (typeof document !== 'object' || document === null) throw new Error('the stored conflict map is no document');
  const problems = new Problems();
  const map = build(document as ConflictMapDocument, problems, CREDENTIAL_BOUNDS);
  if (problems.failed) {
    const first = problems.all.find((problem) => !problem.warning);
    throw new Error(`the stored conflict map cannot be compiled: ${first?.path}: ${first?.message}`);
  }
  return map;
}

function build(document: ConflictMapDocument, problems: Problems, bounds: CredentialBounds): ConflictMap {
  const { kinds, index } = compileKinds(document, bounds, problems);
  const placed: PlacedTemplate[] = [];
  const implies = compileImplies(document, placed, problems);
  const conflicts = compileConflicts(document, problems);
  const aliases = compileAliases(document, problems);
  const sets = compileSets(document, placed, problems);
  const tasks = compileTasks(document, placed, problems);
  const unmatched = document.unmatched ?? 'deny';
  if (!problems.failed) for (const one of placed) checkAgainstKinds(one, index, unmatched === 'observe', problems);
  return {
    document,
    unmatched,
    kinds,
    kindIndex: index,
    implies,
    impliesIndex: indexImplies(implies),
    conflicts,
    conflictIndex: indexConflicts(conflicts),
    aliases,
    aliasIndex: new AliasIndex(aliases),
    sets,
    tasks,
    subtreeKinds: new Map(),
  };
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
function checkAgainstKinds(
  { template, path, implied }: PlacedTemplate,
  index: PatternIndex<Kind>,
  observing: boolean,
  problems: Problems,
): void {
  const subtree = template.scope === 'subtree';
  const literal = template.resource.names.length === 0 && !subtree;
  const best = literal ? index.best(template.resource.text.split('/')) : undefined;
  const kinds = literal ? (best === undefined ? [] : [best]) : index.overlapping(template.resource, subtree);
  if (kinds.length === 0) {
    if (observing) return;
    const then = implied ? 'it is reserved all the same, but carries no action' : 'it is refused as undescribed';
    problems.warn(
      'undescribed_resource',
      childPath(path, 'resource'),
      `No kind matches ${quoted(template.resource.text)}: ${then}.`,
    );
    return;
  }
  for (const [number, name] of template.actions.entries()) {
    const called = kinds.flatMap((kind) => kind.actions.get(name) ?? []);
    if (called.some((action) => action.access === template.access)) continue;
    const fitting = [
      ...new Set(
        kinds
          .flatMap((kind) => [...kind.actions.values()])
          .filter((action) => action.access === template.access)
          .map((action) => action.name),
      ),
    ];
    const what =
      called.length === 0
        ? `${quoted(name)} is no action of ${quoted(template.resource.text)}`
        : `${quoted(name)} is a ${called[0]?.access} action, the entry is a ${template.access}`;
    problems.error(
      'unknown_action',
      childPath(childPath(path, 'actions'), number),
      `${what}${didYouMean(name, fitting)} Its ${template.access} actions: ${listed(fitting)}.`,
    );
  }
}

/** The map of a namespace before its first: it describes nothing, and what is not described is refused. */
export const EMPTY_CONFLICT_MAP: ConflictMap = build({ version: 1 }, new Problems(), CREDENTIAL_BOUNDS);
