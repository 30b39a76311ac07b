import type { Explanation, MapProblem, ResourceDescription, TaskPair } from '../../domain/conflict-map/index.js';
import type { AffectedLease, OnLiveConflict } from '../../domain/decide/put-map.js';
import type { WriteSetRequest } from '../../domain/entry.js';
import type { KindRehearsal, RehearsedCase } from '../../domain/rehearsal.js';
import type { Micros } from '../../domain/time.js';
import type { MapVersion, UnmatchedResource } from '../../storage/store.js';
import type { At, CallContext, Page, Paged } from './calls.js';

export interface LocatedProblem extends MapProblem {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** What a put did. */
export interface PutMapOutcome {
  readonly version: number;
  readonly warnings: readonly LocatedProblem[];
  readonly affected: readonly AffectedLease[];
}

/** What the assertions of a document came to. */
export interface TestedMap {
  readonly passed: boolean;
  /** How many there are. */
  readonly assertions: number;
  /** Those that do not hold. */
  readonly failed: readonly LocatedProblem[];
  /** Other errors, with which no assertion was run; without any, warnings. */
  readonly problems: readonly LocatedProblem[];
}

/** How one text of the map became another. */
export interface MapDifference {
  readonly fromVersion: number;
  /** Null: a document that was not put. */
  readonly toVersion: number | null;
  /** Of a unified diff; none: they are equal. */
  readonly lines: readonly string[];
}

export interface RecordRehearsalInput {
  readonly resource: string;
  readonly targetName: string;
  readonly suiteVersion: string;
  readonly digest: string;
  readonly cases: readonly RehearsedCase[];
  readonly validFor: Micros;
}

/** What is known of a kind's rehearsals, and what that is worth now. */
export interface RehearsalView extends KindRehearsal {
  /** The kind demands one. */
  readonly required: boolean;
  /** Why the last one does not count now; empty: it does. */
  readonly whyNot: string;
  /** Until when runs of a suite may have resources of the kind; null: none may now. */
  readonly openUntil: Micros | null;
}

/** The conflict map: its versions, what it says, and what it would; and the rehearsals that its kinds demand. */
export interface ConflictMapApi {
  getConflictMap(context: CallContext, input: { version: number }): Promise<At<MapVersion | null>>;
  putConflictMap(
    context: CallContext,
    input: { document: string; expectedVersion: number; reason: string; onLiveConflict: OnLiveConflict },
  ): Promise<At<PutMapOutcome>>;
  validateConflictMap(
    context: CallContext,
    input: { document: string; fileName: string },
  ): Promise<{ valid: boolean; problems: readonly LocatedProblem[] }>;
  previewConflictMap(
    context: CallContext,
    input: { document: string; onLiveConflict: OnLiveConflict },
  ): Promise<At<{ accepted: boolean; problems: readonly LocatedProblem[]; affected: readonly AffectedLease[] }>>;
  explainConflict(
    context: CallContext,
    input: { a: WriteSetRequest; b: WriteSetRequest; document: string },
  ): Promise<Explanation>;
  listConflictMapVersions(context: CallContext, input: { page: Page }): Promise<Paged<MapVersion>>;
  resolveResource(context: CallContext, input: { resource: string }): Promise<ResourceDescription>;
  getTaskMatrix(context: CallContext, input: { document: string }): Promise<readonly TaskPair[]>;
  listUnmatchedResources(context: CallContext, input: { page: Page }): Promise<Paged<UnmatchedResource>>;
  testConflictMap(context: CallContext, input: { document: string }): Promise<TestedMap>;
  /** Of a version (0: the current one) and another version or a document. */
  diffConflictMap(
    context: CallContext,
    input: { fromVersion: number; toVersion: number | null; document: string | null },
  ): Promise<MapDifference>;
  rollbackConflictMap(
    context: CallContext,
    input: { toVersion: number; expectedVersion: number; reason: string; onLiveConflict: OnLiveConflict },
  ): Promise<At<PutMapOutcome>>;
  beginRehearsal(
    context: CallContext,
    input: { resources: readonly string[]; runIds: readonly string[]; within: Micros },
  ): Promise<At<{ until: Micros }>>;
  recordRehearsal(context: CallContext, input: RecordRehearsalInput): Promise<At<RehearsalView>>;
  listRehearsals(context: CallContext, input: { page: Page }): Promise<Paged<RehearsalView>>;
}
