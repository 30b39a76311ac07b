import type { Kind } from './conflict-map/index.js';
import { type Micros, SECOND } from './time.js';

/**
 * Rehearsals of targets (C13): what a suite found when it played the classic collisions against the service behind a
 * kind of resources. A kind can demand that one was passed before any run gets authority to write.
 */

export type RehearsedOutcome = 'passed' | 'failed' | 'not_applicable' | 'undecided';

/** One case of the suite, and what it came to. */
export interface RehearsedCase {
  /** Such as `late_write`; a way of playing it follows after a colon: `write_past_open:before_commit`. */
  readonly name: string;
  readonly outcome: RehearsedOutcome;
}

/** The last rehearsal of a kind. */
export interface Rehearsal {
  /** On which resource of the kind it was played. */
  readonly resource: string;
  /** The service, by the name that the suite was told. */
  readonly target: string;
  readonly suiteVersion: string;
  /** SHA-256 of the whole result, 64 hexadecimal digits: the result itself is kept by whoever played it. */
  readonly digest: string;
  readonly cases: readonly RehearsedCase[];
  /** Why it is not passed; empty: it is. */
  readonly lacks: string;
  /** What of the kind it was about: another kind by the same pattern has to be rehearsed anew. */
  readonly basis: string;
  readonly recordedBy: string;
  readonly recordedAt: Micros;
  readonly validUntil: Micros;
}

/** While a suite plays, its runs, and they alone, may have these resources although the kind is not rehearsed. */
export interface RehearsalWindow {
  readonly resources: readonly string[];
  readonly runIds: readonly string[];
  readonly until: Micros;
}

/** What is known of the rehearsals of one kind. */
export interface KindRehearsal {
  /** The kind's pattern. */
  readonly pattern: string;
  readonly last: Rehearsal | null;
  readonly window: RehearsalWindow | null;
}

/** How long a result counts, unless its recorder says otherwise; and the bounds of what it can say. */
export const DEFAULT_VALIDITY: Micros = 30 * 86_400 * SECOND;
export const MIN_VALIDITY: Micros = 3_600 * SECOND;
export const MAX_VALIDITY: Micros = 366 * 86_400 * SECOND;
export const DEFAULT_WINDOW: Micros = 900 * SECOND;
export const MIN_WINDOW: Micros = 10 * SECOND;
export const MAX_WINDOW: Micros = 3_600 * SECOND;
/** Kinds of one namespace that records are kept of. */
export const MAX_REHEARSED_KINDS = 10_000;

/** Without these nothing is known about collisions; of a case with several ways one is enough. */
const OF_WRITES = ['conflict', 'undeclared_write', 'coordinator_down'];
/** Targets of view and local kinds do not ask, so that a stop is in force for them only when views and credentials have ended. */
const OF_ASKING = ['stopped_run'];
/** A lease is kept only by a target that refuses the holder before, also when its write is under way. */
const OF_LEASES = ['late_write', 'write_past_open'];

/** The cases that a kind's rehearsal must have passed. */
function requiredCases(kind: Kind): readonly string[] {
  return [
    ...OF_WRITES,
    ...(kind.validation === 'introspect' ? OF_ASKING : []),
    ...(kind.writeActions.some((action) => action.exclusive) ? OF_LEASES : []),
  ];
}

/** What a result lacks to be passed, in words; empty: nothing. */
export function whatIsLacking(kind: Kind, cases: readonly RehearsedCase[]): string {
  const bad = cases.filter(({ outcome }) => outcome === 'failed' || outcome === 'undecided').map(({ name }) => name);
  if (bad.length > 0) return `these cases failed or are undecided: ${some(bad)}`;
  const passed = new Set(cases.filter(({ outcome }) => outcome === 'passed').map(({ name }) => name.split(':')[0]));
  const missing = requiredCases(kind).filter((name) => !passed.has(name));
  return missing.length > 0 ? `these cases were not passed: ${some(missing)}` : '';
}

/** What a rehearsal is about, as text: its actions and how targets learn of ends. Durations and owners do not change it. */
export function basisOf(kind: Kind): string {
  const actions = kind.writeActions
    .map(({ name, exclusive, changeClass }) => `${name}:${exclusive ? 'lease' : 'optimistic'}:${changeClass ?? ''}`)
    .sort();
  return [kind.validation, ...actions].join(' ');
}

/** Why what is known of a kind's rehearsals does not count now; empty: it does. */
export function whyNotRehearsed(kind: Kind, last: Rehearsal | null, now: Micros): string {
  if (last === null) return 'no rehearsal of it was ever recorded';
  if (last.lacks !== '') return `its last rehearsal was not passed: ${last.lacks}`;
  if (last.basis !== basisOf(kind))
    return 'the conflict map says something else about its actions since it was rehearsed';
  return last.validUntil <= now ? 'its last rehearsal is too old' : '';
}

/** Whether a run of a suite that plays now may have the resource. */
export function isBeingRehearsed(
  window: RehearsalWindow | null,
  resource: string,
  runId: string,
  now: Micros,
): boolean {
  return window !== null && now < window.until && window.resources.includes(resource) && window.runIds.includes(runId);
}

function some(names: readonly string[], most = 8): string {
  return `${names.slice(0, most).join(', ')}${names.length > most ? ` and ${names.length - most} more` : ''}`;
}
