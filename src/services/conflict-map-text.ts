import {
  type ConflictMap,
  type ConflictMapDocument,
  childPath,
  compileConflictMap,
  type MapProblem,
  parentPath,
} from '../domain/conflict-map/index.js';
import type { CredentialBounds } from '../domain/lock-delay.js';
import { checkSchema } from './conflict-map-schema.js';
import { type Position, readSources, type Source, type TextFile } from './map-source.js';

export type { TextFile } from './map-source.js';
export { mergeFragments } from './merge-fragments.js';

/** A problem and where in which file it is. */
export interface LocatedMapProblem extends MapProblem {
  readonly file: string;
  /** 1-based; 0: not known. */
  readonly line: number;
  readonly column: number;
}

export type ParsedConflictMap =
  | { readonly ok: true; readonly document: ConflictMapDocument; readonly locate: (path: string) => Position }
  | { readonly ok: false; readonly problems: readonly LocatedMapProblem[] };

/** Reads a conflict map from YAML or JSON: one text, or fragments that make one document together. */
export function parseConflictMapText(files: readonly TextFile[]): ParsedConflictMap {
  const source = readSources(files);
  if (source.problems.length > 0)
    return { ok: false, problems: source.problems.map((problem) => ({ ...problem, warning: false })) };
  const result = checkSchema(source.raw);
  if (result.ok) return { ok: true, document: result.document, locate: (path) => locate(source, path, files) };
  const problems = result.problems.map((problem): LocatedMapProblem => {
    const path = problem.path.reduce<string>(childPath, '');
    const key = problem.code === 'unknown_key' ? source.keys.get(path) : undefined;
    return {
      code: problem.code,
      message: problem.message,
      path,
      warning: false,
      ...(key ?? locate(source, path, files)),
    };
  });
  return { ok: false, problems: byPosition(problems, files) };
}

export interface CheckedConflictMap {
  /** Absent when there are errors. */
  readonly document?: ConflictMapDocument;
  readonly map?: ConflictMap;
  /** Errors and warnings in the order of the text. */
  readonly problems: readonly LocatedMapProblem[];
}

/**
 * Reads and compiles a conflict map: everything that PutConflictMap and ValidateConflictMap say about a document.
 * `bounds` are the coordinator's; without one, its defaults.
 */
export function checkConflictMapText(
  text: string | readonly TextFile[],
  fileName = '',
  bounds?: CredentialBounds,
): CheckedConflictMap {
  const files = typeof text === 'string' ? [{ name: fileName, text }] : text;
  const parsed = parseConflictMapText(files);
  if (!parsed.ok) return { problems: parsed.problems };
  const compiled = compileConflictMap(parsed.document, bounds);
  const found = compiled.ok ? compiled.warnings : compiled.problems;
  const problems = byPosition(
    found.map((problem) => ({ ...problem, ...parsed.locate(problem.path) })),
    files,
  );
  return compiled.ok ? { document: parsed.document, map: compiled.map, problems } : { problems };
}

/** Where a value stands, or the nearest thing around it that is there. */
function locate(source: Source, path: string, files: readonly TextFile[]): Position {
  for (let at: string | null = path; at !== null; at = parentPath(at)) {
    const position = source.values.get(at) ?? source.keys.get(at);
    if (position !== undefined) return position;
  }
  return { file: files[0]?.name ?? '', line: 0, column: 0 };
}

function byPosition(problems: readonly LocatedMapProblem[], files: readonly TextFile[]): LocatedMapProblem[] {
  const order = new Map(files.map((file, index) => [file.name, index]));
  return [...problems].sort(
    (a, b) => (order.get(a.file) ?? 0) - (order.get(b.file) ?? 0) || a.line - b.line || a.column - b.column,
  );
}
