import { VIEW_AGE } from '../entry.js';
import type { CredentialBounds } from '../lock-delay.js';
import { type Pattern, parsePattern } from '../pattern.js';
import { PatternIndex } from '../pattern-index.js';
import { type Micros, SECOND } from '../time.js';
import {
  type ConflictMapDocument,
  childPath,
  type DocumentAction,
  type DocumentKind,
  type DocumentProfile,
} from './document.js';
import { DEFAULT_TIMES, type Kind, type KindAction } from './map.js';
import { didYouMean, listed, type Problems, quoted, warnOfStar } from './problems.js';

const MIN_TTL: Micros = SECOND;
const MAX_TTL: Micros = 3_600 * SECOND;
/** Actions of one kind or profile with all it extends, and of all kinds together. */
const MAX_ACTIONS = 256;
const MAX_ALL_ACTIONS = 100_000;
/** Classes of changes that a version check protects well enough (W4). */
const ROUTINE: ReadonlySet<string> = new Set(['independent', 'derived']);
/** Resolvers that every map has: the run itself, and whoever is on duty. */
const BUILT_IN_RESOLVERS: readonly string[] = ['agent', 'operator'];

export interface CompiledKinds {
  readonly kinds: readonly Kind[];
  readonly index: PatternIndex<Kind>;
}

/** Kinds with their profiles worked in, and the index that finds the most specific one. */
export function compileKinds(
  document: ConflictMapDocument,
  bounds: CredentialBounds,
  problems: Problems,
): CompiledKinds {
  const profiles = new Map(Object.entries(document.profiles ?? {}));
  const resolvers = new Set([...Object.keys(document.resolvers ?? {}), ...BUILT_IN_RESOLVERS]);
  for (const [name, profile] of profiles) checkOwn(profile, childPath('profiles', name), resolvers, problems);
  const inherit = inheritance(profiles, problems);
  const kinds: Kind[] = [];
  const index = new PatternIndex<Kind>();
  let total = 0;
  for (const [number, raw] of (document.kinds ?? []).entries()) {
    const path = childPath('kinds', number);
    checkOwn(raw, path, resolvers, problems);
    const whole = raw.extends === undefined ? raw : merge(inherit(raw.extends, childPath(path, 'extends')), raw);
    const count = countActions(whole);
    total += count;
    if (count > MAX_ACTIONS || total > MAX_ALL_ACTIONS) {
      tooManyActions(count > MAX_ACTIONS, path, problems);
      // Every further kind would be told the same.
      if (total > MAX_ALL_ACTIONS) break;
      continue;
    }
    const kind = compileKind(raw, whole, number, path, bounds, problems);
    if (kind === null) continue;
    kinds.push(kind);
    const other = index.add(kind.pattern, kind);
    if (other !== undefined) {
      problems.error(
        'equally_specific',
        childPath(path, 'pattern'),
        `${quoted(raw.pattern)} matches the same resources as ${quoted(other.pattern.text)} of kinds[${other.index}]: neither is more specific. Merge the two kinds.`,
      );
    }
  }
  return { kinds, index };
}

const countActions = ({ actions }: DocumentProfile): number => Object.keys(actions ?? {}).length;

function tooManyActions(ofOne: boolean, path: string, problems: Problems): void {
  const many = (count: number): string => count.toLocaleString('en');
  problems.error(
    'too_many_actions',
    path,
    ofOne
      ? `It has more than ${many(MAX_ACTIONS)} actions, those of what it extends counted.`
      : `From here on the kinds have more than ${many(MAX_ALL_ACTIONS)} actions together, those of profiles counted for each kind that extends them.`,
  );
}

/** Looks up a profile with all it extends; each cycle and unknown name is reported once. */
function inheritance(
  profiles: ReadonlyMap<string, DocumentProfile>,
  problems: Problems,
): (name: string, path: string) => DocumentProfile {
  const done = new Map<string, DocumentProfile>();
  const open: string[] = [];
  const visit = (name: string, path: string): DocumentProfile => {
    const known = done.get(name);
    if (known !== undefined) return known;
    const profile = profiles.get(name);
    if (profile === undefined) {
      problems.error(
        'unknown_profile',
        path,
        () =>
          `There is no profile ${quoted(name)}${didYouMean(name, profiles.keys())} Known: ${listed([...profiles.keys()])}.`,
      );
      return {};
    }
    if (open.includes(name)) {
      problems.error(
        'extends_cycle',
        path,
        `Profiles extend each other in a circle: ${[...open.slice(open.indexOf(name)), name].join(' → ')}.`,
      );
      return {};
    }
    open.push(name);
    const whole =
      profile.extends === undefined
        ? profile
        : merge(visit(profile.extends, childPath(childPath('profiles', name), 'extends')), profile);
    open.pop();
    const fits = countActions(whole) <= MAX_ACTIONS;
    if (!fits) tooManyActions(true, childPath('profiles', name), problems);
    done.set(name, fits ? whole : {});
    return fits ? whole : {};
  };
  for (const name of profiles.keys()) visit(name, childPath('profiles', name));
  return visit;
}

/** What is nearer to the kind wins; actions by name, each as a whole. */
function merge(base: DocumentProfile, over: DocumentProfile): DocumentProfile {
  const actions =
    base.actions === undefined && over.actions === undefined ? {} : { actions: { ...base.actions, ...over.actions } };
  return { ...base, ...over, ...actions };
}

/** What can be said of a profile or kind without what it extends: each problem once, where it was written. */
function checkOwn(own: DocumentProfile, path: string, resolvers: ReadonlySet<string>, problems: Problems): void {
  checkRange(
    own.max_view_age,
    childPath(path, 'max_view_age'),
    VIEW_AGE.least,
    VIEW_AGE.most,
    '100ms to 60s',
    problems,
  );
  for (const key of ['ttl', 'max_ttl'] as const)
    checkRange(own[key], childPath(path, key), MIN_TTL, MAX_TTL, '1s to 1h', problems);
  for (const key of ['max_hold', 'progress_window'] as const)
    checkRange(own[key], childPath(path, key), MIN_TTL, Number.MAX_SAFE_INTEGER, '1s or more', problems);
  for (const [name, action] of Object.entries(own.actions ?? {}))
    checkAction(name, action, childPath(childPath(path, 'actions'), name), resolvers, problems);
}

function checkRange(
  value: Micros | undefined,
  path: string,
  least: Micros,
  most: Micros,
  range: string,
  problems: Problems,
): void {
  if (value !== undefined && (value < least || value > most))
    problems.error('out_of_range', path, `It must be ${range}.`);
}

function checkAction(
  name: string,
  action: DocumentAction,
  path: string,
  resolvers: ReadonlySet<string>,
  problems: Problems,
): void {
  const writes = (action.access ?? 'write') === 'write';
  if (action.tracked === true && !writes)
    problems.error('tracked_read', childPath(path, 'tracked'), 'Only a write can be tracked: a read changes nothing.');
  if (action.approval !== undefined) {
    problems.warn(
      'approval_unavailable',
      childPath(path, 'approval'),
      `Approvals cannot be given yet: the action ${quoted(name)} is refused until they can.`,
    );
  }
  const { resolver } = action;
  if (resolver !== undefined && !resolvers.has(resolver)) {
    problems.warn(
      'unknown_resolver',
      childPath(path, 'resolver'),
      () =>
        `${quoted(resolver)} is not among the resolvers${didYouMean(resolver, resolvers)} Its name is shown, but nobody is behind it.`,
    );
  }
  if (writes && action.change_class === undefined) {
    problems.warn(
      'unclassified_action',
      path,
      `The write action ${quoted(name)} has no change_class: what happens on a version conflict is not said, and so it may not run unattended.`,
    );
  }
  if (!writes && action.concurrency === 'lease')
    problems.error(
      'lease_on_read',
      childPath(path, 'concurrency'),
      'Only a write can need the lease to be alone; a stable_read already keeps writers away.',
    );
  if (action.concurrency === 'lease' && action.change_class !== undefined && ROUTINE.has(action.change_class)) {
    problems.warn(
      'long_lease',
      childPath(path, 'concurrency'),
      `${quoted(name)} is a routine change (${action.change_class}), for which a version check is enough: long locks on routine changes make people walk around the lock. Consider \`concurrency: optimistic\`.`,
    );
  }
}

function compileKind(
  raw: DocumentKind,
  whole: DocumentProfile,
  index: number,
  path: string,
  bounds: CredentialBounds,
  problems: Problems,
): Kind | null {
  const parsed = parsePattern(raw.pattern);
  if (!parsed.ok) {
    problems.error(
      'invalid_pattern',
      childPath(path, 'pattern'),
      `${quoted(raw.pattern)} is no pattern: ${parsed.reason}.`,
    );
    return null;
  }
  warnOfStar(raw.pattern, childPath(path, 'pattern'), problems);
  const actions = new Map(
    Object.entries(whole.actions ?? {}).map(([name, action]) => [name, compileAction(name, action)]),
  );
  const times = compileTimes(whole, path, problems);
  const validation = whole.validation ?? 'introspect';
  if (validation === 'local') checkCredentialTime(times.ttl, bounds, path, problems);
  const writeActions = [...actions.values()].filter((action) => action.access === 'write');
  const tracked = writeActions.filter((action) => action.tracked).map((action) => action.name);
  if (validation === 'local' && tracked.length > 0) {
    problems.warn(
      'tracked_unasked',
      path,
      `${listed(tracked)} is tracked only where a target asks: those of a local kind need not, and then nothing says which writes are open.`,
    );
  }
  if (validation !== 'view' && raw.max_view_age !== undefined)
    problems.warn(
      'view_age_unused',
      childPath(path, 'max_view_age'),
      `It counts only with \`validation: view\`; targets of this kind are to learn of ends by \`${validation}\`.`,
    );
  const leased = writeActions.filter((action) => action.exclusive).map((action) => action.name);
  if (leased.length > 0 && times.maxHold > DEFAULT_TIMES.maxHold) {
    problems.warn(
      'long_lease',
      path,
      `${listed(leased)} may keep everybody else away for more than 30 minutes (max_hold). Leases should be narrow and short.`,
    );
  }
  return {
    pattern: parsed.pattern,
    index,
    authority: whole.authority ?? 'write',
    mode: whole.mode ?? 'enforce',
    ownerService: whole.owner_service ?? [],
    validation,
    maxViewAge: validation === 'view' ? (whole.max_view_age ?? VIEW_AGE.usual) : 0,
    ...times,
    sandbox:
      raw.sandbox === undefined
        ? null
        : compileSandbox(raw.sandbox, parsed.pattern, childPath(path, 'sandbox'), problems),
    requiresRehearsal: whole.require_rehearsal === true,
    actions,
    writeActions,
  };
}

function compileAction(name: string, action: DocumentAction): KindAction {
  const access = action.access ?? 'write';
  return {
    name,
    access,
    exclusive: access === 'write' && action.concurrency === 'lease',
    changeClass: action.change_class ?? null,
    resolver: action.resolver ?? '',
    approval: action.approval ?? null,
    tracked: access === 'write' && action.tracked === true,
  };
}

function compileTimes(
  whole: DocumentProfile,
  path: string,
  problems: Problems,
): Pick<Kind, 'ttl' | 'maxTtl' | 'maxHold' | 'progressWindow'> {
  const ttl = whole.ttl ?? DEFAULT_TIMES.ttl;
  // A default gives way to what was written, so that one key alone is never inconsistent.
  const maxTtl = whole.max_ttl ?? Math.max(DEFAULT_TIMES.maxTtl, ttl);
  const maxHold = whole.max_hold ?? Math.max(DEFAULT_TIMES.maxHold, maxTtl);
  const fittingTtl = whole.ttl === undefined ? Math.min(ttl, maxTtl, maxHold) : ttl;
  const fittingMax = whole.max_ttl === undefined ? Math.min(maxTtl, maxHold) : maxTtl;
  if (fittingTtl > fittingMax)
    problems.error(
      'inconsistent_times',
      path,
      `ttl (${seconds(fittingTtl)}) is longer than ${whole.max_ttl === undefined ? 'max_hold' : 'max_ttl'} (${seconds(fittingMax)}).`,
    );
  else if (fittingMax > maxHold)
    problems.error(
      'inconsistent_times',
      path,
      `max_ttl (${seconds(fittingMax)}) is longer than max_hold (${seconds(maxHold)}).`,
    );
  return { ttl: fittingTtl, maxTtl: fittingMax, maxHold, progressWindow: whole.progress_window ?? null };
}

/** A credential ends earlier than its lease by as much as a verifier's clock may be wrong: there must be something left. */
function checkCredentialTime(ttl: Micros, bounds: CredentialBounds, path: string, problems: Problems): void {
  const { credentialTolerance, maxClockSkew } = bounds;
  if (ttl > credentialTolerance + maxClockSkew) return;
  problems.warn(
    'ttl_without_credential',
    path,
    `No run ever gets a credential with a ttl of ${seconds(ttl)}: credentials end earlier than their lease by tolerance and clock skew (${seconds(credentialTolerance + maxClockSkew)}), and targets of a local kind accept nothing else.`,
  );
}

const seconds = (time: Micros): string => `${time / SECOND}s`;

function compileSandbox(text: string, pattern: Pattern, path: string, problems: Problems): Pattern | null {
  const parsed = parsePattern(text, 'template');
  if (!parsed.ok) {
    problems.error('invalid_template', path, `${quoted(text)} is no template: ${parsed.reason}.`);
    return null;
  }
  warnOfStar(text, path, problems);
  checkBound(parsed.pattern, pattern, path, problems);
  return parsed.pattern;
}

/** Every capture of a template must be one of the pattern's, written alike. */
export function checkBound(template: Pattern, pattern: Pattern, path: string, problems: Problems): void {
  for (const segment of template.segments) {
    if (segment.kind === 'literal') continue;
    const source = pattern.segments.find(
      (candidate) => candidate.kind !== 'literal' && candidate.name === segment.name,
    );
    if (source === undefined) {
      problems.error(
        'unbound_name',
        path,
        `{${segment.name}} of ${quoted(template.text)} is not bound: ${quoted(pattern.text)} has ${listed(pattern.names, 'no captures')}.`,
      );
    } else if (source.kind !== segment.kind) {
      const right = source.kind === 'rest' ? `{${segment.name}...}` : `{${segment.name}}`;
      problems.error(
        'unbound_name',
        path,
        `Write ${right} in ${quoted(template.text)}, as in ${quoted(pattern.text)}: ${source.kind === 'rest' ? 'it stands for several segments' : 'it stands for one segment'}.`,
      );
    }
  }
}
