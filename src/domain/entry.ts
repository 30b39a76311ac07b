import { MILLISECOND, type Micros, SECOND } from './time.js';

/** What a run does to a resource (design: resources, locks and modes). */
export type Access = 'read' | 'stable_read' | 'write';

/** How much below the named resource an entry covers. */
export type Scope = 'exact' | 'subtree';

/**
 * How targets learn of the end of a lease: by asking; by a view that follows the log, and is too old to decide after a
 * while; or not before the run's credentials are dead. Each can be later than the one before it.
 */
export type Validation = 'introspect' | 'view' | 'local';

const LATENESS: Readonly<Record<Validation, number>> = { introspect: 0, view: 1, local: 2 };

/** That of two by which the end of a lease is known later. */
export function later(a: Validation, b: Validation): Validation {
  return LATENESS[a] < LATENESS[b] ? b : a;
}

/** How old the view may be by which a target decides: what `max_view_age` of a kind is without saying, and its bounds. */
export const VIEW_AGE: { readonly least: Micros; readonly usual: Micros; readonly most: Micros } = {
  least: 100 * MILLISECOND,
  usual: 5 * SECOND,
  most: 60 * SECOND,
};

/** An entry as a run asks for it. The resource may still be an alias. */
export interface RequestedEntry {
  readonly resource: string;
  readonly access: Access;
  readonly scope: Scope;
  /** Empty on a write: every write action of the kind that the contract allows. */
  readonly actions: readonly string[];
  readonly observedVersion: string | null;
}

/** A task of the conflict map, asked for instead of entries (C3a). */
export interface TaskCall {
  readonly name: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** What a run asks for: exactly one of the three is given. */
export interface WriteSetRequest {
  readonly entries: readonly RequestedEntry[];
  readonly task: TaskCall | null;
  /** A named resource set of the map (C1a). */
  readonly resourceSet: string | null;
}

/** An entry after the conflict map has been applied to it; what a lease consists of, but for its token. */
export interface ExpandedEntry {
  readonly resource: string;
  readonly access: Access;
  readonly scope: Scope;
  readonly actions: readonly string[];
  /** True: at least one action is `concurrency: lease`, so a write takes X; false: it takes O (C8). */
  readonly exclusive: boolean;
  /** The rule that brought it, such as `implies[0]`; empty when it was asked for. */
  readonly impliedBy: string;
  /** In `observe` nothing about this entry is refused, only recorded (C14). */
  readonly mode: 'observe' | 'enforce';
  /** The latest way of any of its kinds, now or while the entry was held: `local`, else `view`. */
  readonly validation: Validation;
  /** The greatest of its kinds that are `view`, now or while it was held; 0: none is. */
  readonly maxViewAge: Micros;
  /** Who settles conflicts about it; empty when the map names nobody. */
  readonly resolver: string;
  readonly observedVersion: string | null;
}

/** A lock on the synthetic key of a `conflicts` rule. */
export interface RuleLock {
  readonly key: string;
  readonly mode: 'IX' | 'S' | 'X';
  /** The rule, such as `conflicts[0]`. */
  readonly rule: string;
  /** Index of the entry that takes it. */
  readonly entry: number;
}

/** Resources and actions that a contract allows (R1). `actions: ['*']` allows every action. */
export interface Allowance {
  readonly pattern: string;
  readonly actions: readonly string[];
}
