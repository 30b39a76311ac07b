import type { ChangeClass } from '../change-class.js';
import type { Access, Scope, Validation } from '../entry.js';
import type { Micros } from '../time.js';

/**
 * The conflict map as an admin writes it, after its text was read: the same keys as in the text,
 * durations and dates in microseconds, what was not written is absent. It is stored with the event
 * that put it, as canonical JSON, and compiled again by every replica.
 */
export interface ConflictMapDocument {
  /** Version of the document's form; not of the map. */
  readonly version: 1;
  readonly unmatched?: UnmatchedPolicy;
  readonly resolvers?: Readonly<Record<string, DocumentResolver>>;
  readonly profiles?: Readonly<Record<string, DocumentProfile>>;
  readonly kinds?: readonly DocumentKind[];
  readonly implies?: readonly DocumentImplies[];
  readonly conflicts?: readonly DocumentConflict[];
  readonly aliases?: readonly DocumentAlias[];
  readonly sets?: Readonly<Record<string, DocumentSet>>;
  readonly tasks?: Readonly<Record<string, DocumentTask>>;
  readonly assertions?: readonly DocumentAssertion[];
}

/** What happens to a resource that no kind matches. */
export type UnmatchedPolicy = 'deny' | 'propose' | 'observe';

export type Authority = 'write' | 'propose' | 'forbid';
export type KindMode = 'observe' | 'enforce';
export type Concurrency = 'optimistic' | 'lease';
export type Approval = 'run' | 'call';

/** Who settles conflicts. */
export interface DocumentResolver {
  readonly principals?: readonly string[];
  readonly channel?: string;
}

/** What kinds have in common, by `extends`. */
export interface DocumentProfile {
  readonly extends?: string;
  readonly authority?: Authority;
  readonly mode?: KindMode;
  readonly owner_service?: readonly string[];
  readonly validation?: Validation;
  readonly max_view_age?: Micros;
  readonly ttl?: Micros;
  readonly max_ttl?: Micros;
  readonly max_hold?: Micros;
  readonly progress_window?: Micros;
  readonly require_rehearsal?: boolean;
  readonly actions?: Readonly<Record<string, DocumentAction>>;
}

export interface DocumentKind extends DocumentProfile {
  readonly pattern: string;
  /** Where a run without authority may work instead (C4); a template with the pattern's names. */
  readonly sandbox?: string;
}

export interface DocumentAction {
  /** `write` unless said otherwise. */
  readonly access?: Access;
  readonly concurrency?: Concurrency;
  readonly change_class?: ChangeClass;
  readonly resolver?: string;
  readonly approval?: Approval;
  readonly tracked?: boolean;
}

export interface DocumentEntry {
  readonly resource: string;
  readonly access: Access;
  readonly scope?: Scope;
  readonly actions?: readonly string[];
}

export interface DocumentImplies {
  readonly when: { readonly pattern: string; readonly access?: Access };
  readonly touches: readonly DocumentEntry[];
}

export interface DocumentConflict {
  readonly between: readonly [string, string];
  readonly because?: string;
}

export interface DocumentAlias {
  readonly from: string;
  readonly to: string;
}

export interface DocumentSet {
  readonly not_before?: Micros;
  readonly entries: readonly DocumentEntry[];
}

export interface DocumentTask {
  readonly params?: readonly string[];
  readonly entries: readonly DocumentEntry[];
}

/** A task with its parameters beside its name, or entries. */
export type DocumentSide =
  | { readonly task: string; readonly [parameter: string]: string }
  | { readonly entries: readonly DocumentEntry[] };

export interface DocumentAssertion {
  /** True: the two must conflict; false: they must not. */
  readonly conflict: boolean;
  readonly a: DocumentSide;
  readonly b: DocumentSide;
}

/** Something wrong, or doubtful, in a document. */
export interface MapProblem {
  /** Stable code, such as `unknown_key` or `equally_specific`. */
  readonly code: string;
  readonly message: string;
  /** Path of the value, such as `kinds[2].actions.promote`. */
  readonly path: string;
  /** True: the document is accepted all the same. */
  readonly warning: boolean;
}

/** A path with one more step: how problems and positions name a value. */
export function childPath(path: string, step: string | number): string {
  if (typeof step === 'number') return `${path}[${step}]`;
  if (!/^[A-Za-z0-9_-]+$/.test(step)) return `${path}[${JSON.stringify(step)}]`;
  return path === '' ? step : `${path}.${step}`;
}

/** The path one step up; null at the top. */
export function parentPath(path: string): string | null {
  if (path === '') return null;
  return path.replace(/(?:\.?[A-Za-z0-9_-]+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])$/, '');
}
