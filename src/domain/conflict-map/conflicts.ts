import type { ExpandedEntry, RuleLock } from '../entry.js';
import type { Mode } from '../modes.js';

/** One key on which two write sets meet. */
export interface ConflictStep {
  /** The resource, or the rule, on which they meet. */
  readonly key: string;
  readonly modeA: Mode;
  readonly modeB: Mode;
  readonly resourceA: string;
  readonly resourceB: string;
  /** The rule that brought A's entry or lock; empty: it was asked for. */
  readonly ruleA: string;
  readonly ruleB: string;
  readonly message: string;
}

export interface LockedSet {
  readonly entries: readonly ExpandedEntry[];
  readonly ruleLocks: readonly RuleLock[];
}

export function findConflicts(_a: LockedSet, _b: LockedSet): ConflictStep[] {
  throw new Error('not yet');
}
