import type { ConflictMapDocument, MapProblem } from './document.js';
import type { ConflictMap } from './map.js';

export type CompileResult =
  | { readonly ok: true; readonly map: ConflictMap; readonly warnings: readonly MapProblem[] }
  | { readonly ok: false; readonly problems: readonly MapProblem[] };

export function compileConflictMap(_document: ConflictMapDocument): CompileResult {
  throw new Error('not yet');
}
export function compileStored(_document: unknown): ConflictMap {
  throw new Error('not yet');
}
export const EMPTY_CONFLICT_MAP: ConflictMap = undefined as unknown as ConflictMap;
