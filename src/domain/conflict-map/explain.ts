import type { ExpandedEntry, WriteSetRequest } from '../entry.js';
import type { Refusal } from '../refusal.js';
import type { ConflictStep } from './conflicts.js';
import type { ConflictMap } from './map.js';

export interface Explanation {
  readonly conflict: boolean;
  readonly steps: readonly ConflictStep[];
  readonly entriesA: readonly ExpandedEntry[];
  readonly entriesB: readonly ExpandedEntry[];
  readonly refusalA: Refusal | null;
  readonly refusalB: Refusal | null;
}

export function explainConflict(_map: ConflictMap, _a: WriteSetRequest, _b: WriteSetRequest): Explanation {
  throw new Error('not yet');
}
