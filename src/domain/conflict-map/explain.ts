import type { ExpandedEntry, WriteSetRequest } from '../entry.js';
import type { Refusal } from '../refusal.js';
import { type ConflictStep, findConflicts } from './conflicts.js';
import { expandForQuestion } from './expand.js';
import { becauseOf, type ConflictMap } from './map.js';

/** Whether two write sets conflict, and by what. */
export interface Explanation {
  /** True: two runs could not hold them at once. */
  readonly conflict: boolean;
  readonly steps: readonly ConflictStep[];
  readonly entriesA: readonly ExpandedEntry[];
  readonly entriesB: readonly ExpandedEntry[];
  /** Why A would be refused on its own, whoever asked; null: it would not. */
  readonly refusalA: Refusal | null;
  readonly refusalB: Refusal | null;
}

/**
 * Says whether two write sets of different runs conflict by the map, every step by rule. Contracts are
 * left out of it. Where a side would be refused on its own that is told, and the question is answered
 * all the same; a resource that no kind matches then counts as an optimistic write.
 */
export function explainConflict(map: ConflictMap, a: WriteSetRequest, b: WriteSetRequest): Explanation {
  const one = expandForQuestion(map, a);
  const other = expandForQuestion(map, b);
  const steps = findConflicts(one.writeSet, other.writeSet, (rule) => becauseOf(map, rule));
  return {
    conflict: steps.length > 0,
    steps,
    entriesA: one.writeSet.entries,
    entriesB: other.writeSet.entries,
    refusalA: one.refusal,
    refusalB: other.refusal,
  };
}
