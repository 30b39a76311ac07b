import {
  type CompileResult,
  type ConflictMap,
  type ConflictMapDocument,
  compileConflictMap,
  type ExpandedWriteSet,
  type ExpandResult,
  expandWriteSet,
  type MapProblem,
} from '../../src/domain/conflict-map/index.js';
import type { Access, Allowance, RequestedEntry, Scope, WriteSetRequest } from '../../src/domain/entry.js';
import type { Refusal } from '../../src/domain/refusal.js';

export const EVERYTHING: readonly Allowance[] = [{ pattern: '{any...}', actions: ['*'] }];
export const BOUNDS = { maxEntries: 256, maxLocks: 4_096 };

type Parts = Omit<ConflictMapDocument, 'version'>;

/** The map of a document that must be in order; warnings are let pass. */
export function mapOf(parts: Parts): ConflictMap {
  const compiled = compileConflictMap({ version: 1, ...parts });
  if (!compiled.ok)
    throw new Error(compiled.problems.map((problem) => `${problem.path}: ${problem.message}`).join('\n'));
  return compiled.map;
}

/** All problems of a document, warnings too. */
export function problemsOf(parts: Parts): readonly MapProblem[] {
  const compiled: CompileResult = compileConflictMap({ version: 1, ...parts });
  return compiled.ok ? compiled.warnings : compiled.problems;
}

/** `code path` of each problem. */
export function codesOf(parts: Parts): string[] {
  return problemsOf(parts).map((problem) => `${problem.code} ${problem.path}`);
}

export function entry(
  resource: string,
  access: Access = 'write',
  actions: readonly string[] = [],
  scope: Scope = 'exact',
): RequestedEntry {
  return { resource, access, scope, actions, observedVersion: null };
}

export function entries(...list: RequestedEntry[]): WriteSetRequest {
  return { entries: list, task: null, resourceSet: null };
}

export function expanded(
  map: ConflictMap,
  request: WriteSetRequest,
  contract: readonly Allowance[] = EVERYTHING,
): ExpandedWriteSet {
  const result = expandWriteSet(map, request, contract, BOUNDS);
  if (!result.ok) throw new Error(`refused: ${result.refusal.kind}: ${result.refusal.message}`);
  return result.writeSet;
}

export function refused(
  map: ConflictMap,
  request: WriteSetRequest,
  contract: readonly Allowance[] = EVERYTHING,
): Refusal {
  const result: ExpandResult = expandWriteSet(map, request, contract, BOUNDS);
  if (result.ok) throw new Error(`granted: ${JSON.stringify(result.writeSet.entries)}`);
  return result.refusal;
}
