import {
  type ConflictMap,
  type ConflictMapDocument,
  compileStored,
  type Explanation,
  explainConflict,
  type TaskPair,
  taskMatrix,
} from '../domain/conflict-map/index.js';
import type { WriteSetRequest } from '../domain/entry.js';
import type { CredentialBounds } from '../domain/lock-delay.js';
import { checkConflictMapText, type LocatedMapProblem } from './conflict-map-text.js';
import { unifiedDiff } from './text-diff.js';

/** Which map a question is about: a document as text, to be checked first, or one that was taken, as JSON. */
export type MapSource = { readonly text: string; readonly fileName: string } | { readonly taken: string };

/** What is costly about conflict maps, and so is done away from the event loop. Jobs and results are plain data. */
export type MapJob =
  | { readonly kind: 'check'; readonly source: MapSource }
  | { readonly kind: 'explain'; readonly source: MapSource; readonly a: WriteSetRequest; readonly b: WriteSetRequest }
  | { readonly kind: 'matrix'; readonly source: MapSource }
  | { readonly kind: 'diff'; readonly from: NamedText; readonly to: NamedText };

/** A text to compare, and what it is called in the difference. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** A job, and the bounds of the coordinator that is to use the map. */
export interface BoundedMapJob {
  readonly job: MapJob;
  readonly bounds: CredentialBounds;
}

export interface MapResult {
  /** Errors and warnings of a text. */
  readonly problems: readonly LocatedMapProblem[];
  /** The text, read; null when it has errors. Of a check only. */
  readonly document: ConflictMapDocument | null;
  readonly explanation: Explanation | null;
  readonly matrix: readonly TaskPair[] | null;
  /** Lines of a unified diff; none: the texts are equal. */
  readonly diff: readonly string[] | null;
}

const NOTHING: MapResult = { problems: [], document: null, explanation: null, matrix: null, diff: null };

/** Does a job; stops at the errors of the text. */
export function doMapJob({ job, bounds }: BoundedMapJob): MapResult {
  if (job.kind === 'diff')
    return { ...NOTHING, diff: unifiedDiff(job.from.text, job.to.text, job.from.name, job.to.name) };
  const { map, problems } = mapOf(job.source, bounds);
  const nothing: MapResult = { ...NOTHING, problems };
  if (map === null) return nothing;
  switch (job.kind) {
    case 'check':
      return { ...nothing, document: map.document };
    case 'explain':
      return { ...nothing, explanation: explainConflict(map, job.a, job.b) };
    case 'matrix':
      return { ...nothing, matrix: taskMatrix(map) };
  }
}

function mapOf(
  source: MapSource,
  bounds: CredentialBounds,
): { map: ConflictMap | null; problems: readonly LocatedMapProblem[] } {
  if ('taken' in source) return { map: takenMap(source.taken), problems: [] };
  const { map, problems } = checkConflictMapText(source.text, source.fileName, bounds);
  return { map: map ?? null, problems };
}

/** Questions about the current map come one after another: it is compiled once. */
let lastTaken: { readonly json: string; readonly map: ConflictMap } | null = null;

function takenMap(json: string): ConflictMap {
  if (lastTaken?.json !== json) lastTaken = { json, map: compileStored(JSON.parse(json)) };
  return lastTaken.map;
}
