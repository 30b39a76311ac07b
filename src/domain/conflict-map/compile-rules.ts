import { type Pattern, parsePattern } from '../pattern.js';
import { type Alias, aliasesOverlap, parseAlias, prefixesMeet, prefixOf, tokensOfTemplate } from './alias.js';
import { checkBound } from './compile-kinds.js';
import { type ConflictMapDocument, childPath, type DocumentEntry } from './document.js';
import type { ConflictRule, EntryTemplate, ImpliesRule, ResourceSet, Task } from './map.js';
import { listed, type Problems, quoted, warnOfStar } from './problems.js';

/** A template and where it was written, for the checks that need the kinds. */
export interface PlacedTemplate {
  readonly template: EntryTemplate;
  readonly path: string;
  /** Of a rule: it reserves what it names, whether or not a kind describes it. */
  readonly implied: boolean;
}

export function compileImplies(
  document: ConflictMapDocument,
  placed: PlacedTemplate[],
  problems: Problems,
): ImpliesRule[] {
  const rules: ImpliesRule[] = [];
  for (const [number, raw] of (document.implies ?? []).entries()) {
    const path = childPath('implies', number);
    const patternPath = childPath(childPath(path, 'when'), 'pattern');
    const pattern = patternAt(raw.when.pattern, patternPath, problems);
    if (pattern === null) continue;
    const touches = entriesAt(raw.touches, childPath(path, 'touches'), problems, (template, at) =>
      checkBound(template, pattern, at, problems),
    );
    for (const touch of touches) placed.push({ ...touch, implied: true });
    rules.push({
      name: path,
      pattern,
      access: raw.when.access ?? 'write',
      touches: touches.map((touch) => touch.template),
    });
  }
  return rules;
}

export function compileConflicts(document: ConflictMapDocument, problems: Problems): ConflictRule[] {
  const rules: ConflictRule[] = [];
  for (const [index, raw] of (document.conflicts ?? []).entries()) {
    const path = childPath('conflicts', index);
    const first = patternAt(raw.between[0], childPath(childPath(path, 'between'), 0), problems);
    const second = patternAt(raw.between[1], childPath(childPath(path, 'between'), 1), problems);
    if (first === null || second === null) continue;
    const joined = first.names.filter((name) => second.names.includes(name)).sort();
    if (joined.length === 0 && (first.names.length > 0 || second.names.length > 0)) {
      problems.warn(
        'conflict_joins_nothing',
        path,
        `${quoted(first.text)} and ${quoted(second.text)} have no capture of one name: every writer of the one excludes every writer of the other. Give the captures that must agree the same name.`,
      );
    }
    rules.push({ name: path, between: [first, second], joined, because: raw.because ?? '' });
  }
  return rules;
}

/** An alias and where it was written. */
export interface PlacedAlias {
  readonly alias: Alias;
  readonly path: string;
}

export function compileAliases(document: ConflictMapDocument, problems: Problems): PlacedAlias[] {
  const placed: PlacedAlias[] = [];
  for (const [number, raw] of (document.aliases ?? []).entries()) {
    const path = childPath('aliases', number);
    const parsed = parseAlias(raw.from, raw.to);
    if (!parsed.ok) {
      problems.error('invalid_alias', childPath(path, parsed.at), `${quoted(raw[parsed.at])}: ${parsed.reason}.`);
      continue;
    }
    warnOfStar(raw.from, childPath(path, 'from'), problems);
    warnOfStar(raw.to, childPath(path, 'to'), problems);
    placed.push({ alias: parsed.alias, path });
  }
  return placed;
}

/** Two aliases that match one text must be ordered, and none may read what another made. */
export function checkAliases(placed: readonly PlacedAlias[], problems: Problems): void {
  const byShape = new Map<string, PlacedAlias[]>();
  for (const one of placed) {
    const { alias, path } = one;
    // Of one shape, prefixes are of one length: they meet when they are the same.
    const id = `${alias.shape} ${alias.prefix}`;
    const alike = byShape.get(id) ?? [];
    byShape.set(id, alike);
    const other = alike.find((before) => aliasesOverlap(alias.tokens, before.alias.tokens));
    if (other !== undefined) {
      problems.error(
        'equally_specific_alias',
        childPath(path, 'from'),
        `${quoted(alias.from)} and ${quoted(other.alias.from)} of ${other.path} match the same texts and neither is more specific.`,
      );
    }
    alike.push(one);
  }
  for (const one of placed) checkChain(one, placed, problems);
}

/** Aliases are applied once; what one makes must not be an alias again, or the same lease would be read differently later. */
function checkChain({ alias, path }: PlacedAlias, all: readonly PlacedAlias[], problems: Problems): void {
  const made = tokensOfTemplate(alias.to);
  const prefix = prefixOf(made);
  const other = all.find(
    (candidate) => prefixesMeet(prefix, candidate.alias.prefix) && aliasesOverlap(made, candidate.alias.tokens),
  );
  if (other === undefined) return;
  problems.error(
    'alias_chain',
    childPath(path, 'to'),
    `What ${quoted(alias.to.text)} makes can itself be read as the alias ${quoted(other.alias.from)}; aliases are applied once.`,
  );
}

export function compileSets(
  document: ConflictMapDocument,
  placed: PlacedTemplate[],
  problems: Problems,
): Map<string, ResourceSet> {
  const sets = new Map<string, ResourceSet>();
  for (const [name, raw] of Object.entries(document.sets ?? {})) {
    const path = childPath('sets', name);
    const entries = entriesAt(raw.entries, childPath(path, 'entries'), problems, (template, at) => {
      if (template.names.length > 0)
        problems.error(
          'unbound_name',
          at,
          `${quoted(template.text)} has captures; a resource set names resources. Use a task for what has parameters.`,
        );
    });
    for (const entry of entries) placed.push({ ...entry, implied: false });
    sets.set(name, { name, notBefore: raw.not_before ?? null, entries: entries.map((entry) => entry.template) });
  }
  return sets;
}

/** Keys of an assertion's side, which a parameter may not be called. */
const RESERVED: readonly string[] = ['task', 'entries'];

export function compileTasks(
  document: ConflictMapDocument,
  placed: PlacedTemplate[],
  problems: Problems,
): Map<string, Task> {
  const tasks = new Map<string, Task>();
  for (const [name, raw] of Object.entries(document.tasks ?? {})) {
    const path = childPath('tasks', name);
    const params = raw.params ?? [];
    const uses = new Map<string, Set<'capture' | 'rest'>>(params.map((param) => [param, new Set()]));
    const entries = entriesAt(raw.entries, childPath(path, 'entries'), problems, (template, at) =>
      noteUses(template, uses, at, problems),
    );
    checkParams(params, uses, childPath(path, 'params'), problems);
    for (const entry of entries) placed.push({ ...entry, implied: false });
    const restParams = new Set(params.filter((param) => uses.get(param)?.has('rest')));
    tasks.set(name, { name, params, restParams, entries: entries.map((entry) => entry.template) });
  }
  return tasks;
}

function noteUses(
  template: Pattern,
  uses: ReadonlyMap<string, Set<'capture' | 'rest'>>,
  path: string,
  problems: Problems,
): void {
  for (const segment of template.segments) {
    if (segment.kind === 'literal') continue;
    const use = uses.get(segment.name);
    if (use === undefined)
      problems.error(
        'unbound_name',
        path,
        `{${segment.name}} of ${quoted(template.text)} is not among the task's params: ${listed([...uses.keys()])}.`,
      );
    else use.add(segment.kind);
  }
}

function checkParams(
  params: readonly string[],
  uses: ReadonlyMap<string, ReadonlySet<string>>,
  path: string,
  problems: Problems,
): void {
  for (const [index, param] of params.entries()) {
    const at = childPath(path, index);
    if (RESERVED.includes(param))
      problems.error('reserved_name', at, `A parameter may not be called ${quoted(param)}.`);
    if (params.indexOf(param) !== index)
      problems.error('repeated_name', at, `The parameter ${quoted(param)} is there twice.`);
    const use = uses.get(param);
    if (use?.size === 2)
      problems.error(
        'mixed_parameter',
        at,
        `${quoted(param)} is used as one segment, {${param}}, and as several, {${param}...}; use it one way.`,
      );
    if (use?.size === 0) problems.warn('unused_parameter', at, `No entry uses the parameter ${quoted(param)}.`);
  }
}

function patternAt(text: string, path: string, problems: Problems): Pattern | null {
  const parsed = parsePattern(text);
  if (parsed.ok) {
    warnOfStar(text, path, problems);
    return parsed.pattern;
  }
  problems.error('invalid_pattern', path, `${quoted(text)} is no pattern: ${parsed.reason}.`);
  return null;
}

function entriesAt(
  raw: readonly DocumentEntry[],
  path: string,
  problems: Problems,
  check: (template: Pattern, path: string) => void,
): { readonly template: EntryTemplate; readonly path: string }[] {
  const entries: { template: EntryTemplate; path: string }[] = [];
  for (const [index, entry] of raw.entries()) {
    const at = childPath(path, index);
    const parsed = parsePattern(entry.resource, 'template');
    if (!parsed.ok) {
      problems.error(
        'invalid_template',
        childPath(at, 'resource'),
        `${quoted(entry.resource)} is no resource: ${parsed.reason}.`,
      );
      continue;
    }
    warnOfStar(entry.resource, childPath(at, 'resource'), problems);
    check(parsed.pattern, childPath(at, 'resource'));
    entries.push({ path: at, template: templateOf(entry, parsed.pattern) });
  }
  return entries;
}

function templateOf(entry: DocumentEntry, resource: Pattern): EntryTemplate {
  return { resource, access: entry.access, scope: entry.scope ?? 'exact', actions: [...new Set(entry.actions ?? [])] };
}
