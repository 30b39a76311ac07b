import type { ConflictMap, ConflictMapDocument, Explanation, TaskPair } from '../domain/conflict-map/index.js';
import type { WriteSetRequest } from '../domain/entry.js';
import { Fault } from '../domain/fault.js';
import type { CredentialBounds } from '../domain/lock-delay.js';
import { JobProcess, JobUndone } from '../platform/job-process.js';
import type { LocatedMapProblem } from './conflict-map-text.js';
import type { BoundedMapJob, MapJob, MapResult, MapSource, NamedText } from './map-jobs.js';

/** Of reading and judging one document, or answering one question about a map. */
const MAP_TIME_LIMIT_MS = 10_000;
const MEMORY_LIMIT_MB = 512;
/** Calls about maps that are in progress on one replica. */
const MAX_CALLS = 32;
/** The same of one principal, so that nobody keeps the others out. */
const MAX_CALLS_OF_ONE = 4;

/**
 * Where conflict maps are read, judged and asked about: in a process of their own, so that a document which costs
 * seconds or memory holds up neither fence checks nor grants. It has one such process, bounds the calls that wait for
 * it, and gives up on what takes too long.
 */
export class MapWorkshop {
  readonly #process = new JobProcess<BoundedMapJob, MapResult>({
    module: new URL('./map-worker.js', import.meta.url),
    timeLimitMs: MAP_TIME_LIMIT_MS,
    memoryLimitMb: MEMORY_LIMIT_MB,
  });
  readonly #inProgress = new Map<string, number>();
  readonly #taken = new WeakMap<ConflictMap, string>();
  readonly #bounds: CredentialBounds;
  #calls = 0;

  /** `bounds` are those of the coordinator that is to use the maps; warnings depend on them. */
  constructor(bounds: CredentialBounds) {
    this.#bounds = bounds;
  }

  /** Runs a principal's call about a map, from its job to its append, unless too many are in progress. */
  async admit<R>(principal: string, call: () => Promise<R>): Promise<R> {
    const own = this.#inProgress.get(principal) ?? 0;
    if (own >= MAX_CALLS_OF_ONE || this.#calls >= MAX_CALLS) throw queueFull(own >= MAX_CALLS_OF_ONE);
    this.#calls += 1;
    this.#inProgress.set(principal, own + 1);
    try {
      return await call();
    } finally {
      this.#calls -= 1;
      const left = (this.#inProgress.get(principal) ?? 1) - 1;
      if (left === 0) this.#inProgress.delete(principal);
      else this.#inProgress.set(principal, left);
    }
  }

  /** Everything that PutConflictMap and ValidateConflictMap say about a text; the document when it has no errors. */
  async check(
    text: string,
    fileName = '',
  ): Promise<{ document: ConflictMapDocument | null; problems: readonly LocatedMapProblem[] }> {
    return this.#do({ kind: 'check', source: { text, fileName } });
  }

  async explain(
    source: MapSource,
    a: WriteSetRequest,
    b: WriteSetRequest,
  ): Promise<{ explanation: Explanation | null; problems: readonly LocatedMapProblem[] }> {
    return this.#do({ kind: 'explain', source, a, b });
  }

  async matrix(
    source: MapSource,
  ): Promise<{ matrix: readonly TaskPair[] | null; problems: readonly LocatedMapProblem[] }> {
    return this.#do({ kind: 'matrix', source });
  }

  /** Lines of a unified diff; none: the texts are equal. */
  async diff(from: NamedText, to: NamedText): Promise<readonly string[]> {
    return (await this.#do({ kind: 'diff', from, to })).diff ?? [];
  }

  /** A map that was taken, as a question names it. */
  taken(map: ConflictMap): MapSource {
    const json = this.#taken.get(map) ?? JSON.stringify(map.document);
    this.#taken.set(map, json);
    return { taken: json };
  }

  /** Ends the process; calls in progress are told to ask another replica. */
  close(): Promise<void> {
    return this.#process.close();
  }

  async #do(job: MapJob): Promise<MapResult> {
    try {
      return await this.#process.run({ job, bounds: this.#bounds });
    } catch (error) {
      if (!(error instanceof JobUndone)) throw error;
      if (error.why === 'closed')
        throw new Fault('unavailable', 'SHUTTING_DOWN', 'This replica is shutting down; call another one.');
      throw tooCostly(error.why);
    }
  }
}

function tooCostly(why: 'time' | 'memory'): Fault {
  const limit = why === 'time' ? `${MAP_TIME_LIMIT_MS / 1_000} s` : `${MEMORY_LIMIT_MB} MiB`;
  return new Fault(
    'resource_exhausted',
    'MAP_TOO_COSTLY',
    `Nothing was changed: reading and judging the conflict map takes more than ${limit}. Simplify it: fewer rules that lead to each other, fewer tasks, parameters and assertions, fewer aliases alike, fewer overlapping patterns.`,
    { metadata: { limit: why, time_limit_ms: String(MAP_TIME_LIMIT_MS), memory_limit_mb: String(MEMORY_LIMIT_MB) } },
  );
}

function queueFull(own: boolean): Fault {
  return new Fault(
    'resource_exhausted',
    'MAP_QUEUE_FULL',
    own
      ? `You have ${MAX_CALLS_OF_ONE} calls about conflict maps in progress on this replica; wait for one of them.`
      : `${MAX_CALLS} calls about conflict maps are in progress on this replica; try again later.`,
  );
}
