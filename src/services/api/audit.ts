import type { Micros } from '../../domain/time.js';
import type { EventRecord, IdsInLog, SignedCheckpoint } from '../../storage/store.js';
import type { At, CallContext, Page, Paged } from './calls.js';

export interface Checkpoint {
  readonly namespace: string;
  readonly revision: number;
  readonly hash: string;
  readonly time: Micros;
  readonly signature: Uint8Array;
  readonly keyId: string;
  readonly publicKeyPem: string;
}

/** Ids that the log names; `more`: others begin so, too. */
export type FoundIds = IdsInLog & { readonly more: boolean };

/** Where a checkpoint is wanted: at the head, at a revision, or at the last event before a time. */
export type CheckpointPlace = 'head' | { readonly revision: number } | { readonly before: Micros };

export interface CutLogInput {
  /** Signed, over the last event that goes. */
  readonly checkpoint: Checkpoint;
  /** SHA-256 of the archive, 64 hexadecimal digits. */
  readonly archiveDigest: string;
  readonly evenYoung: boolean;
  readonly reason: string;
}

export interface CutLogOutcome {
  /** The first event that is kept. */
  readonly firstRevision: number;
  readonly removed: number;
  /** Events that still have to be removed: by asking again, or by the coordinators in time. */
  readonly left: number;
}

export interface EventQuery {
  readonly runId: string;
  readonly leaseId: string;
  readonly resource: string;
  readonly kinds: readonly string[];
  readonly requestId: string;
  readonly afterRevision: number;
  readonly newestFirst: boolean;
}

/** A place in a log: after the event of this revision. */
export interface EventPlace {
  readonly revision: number;
  /** Of the event there; null: not known, or before the first event. */
  readonly hash: string | null;
}

/** The log as it grows. It is pulled: nothing waits here for a reader but a place in the log. */
export interface EventWatch {
  /** Up to where all has been told, or need not be. */
  readonly position: EventPlace;
  /** The next events in order and without gaps, as soon as there are some. Rejects with the Fault that ends the watch. */
  next(): Promise<readonly EventRecord[]>;
  /** Ends it; idempotent. */
  close(): void;
}

/** The log. */
export interface AuditApi {
  listEvents(
    context: CallContext,
    input: EventQuery & { page: Page },
  ): Promise<Paged<EventRecord> & { readonly firstRevision: number }>;
  /** Of runs and leases that the log names, at most 10 of each. */
  findIds(context: CallContext, input: { beginning: string }): Promise<FoundIds>;
  /** Batches of at most 1,000 events, in order; ends at the head it found when called. */
  exportEvents(context: CallContext, input: { afterRevision: number }): AsyncIterable<readonly EventRecord[]>;
  /** What happens from now on, or after a place; what the caller pulls from until it closes it. */
  watchEvents(context: CallContext, input: { after: EventPlace | null }): Promise<EventWatch>;
  /** Over the head, or over an event before it. */
  getCheckpoint(context: CallContext, input?: { at: CheckpointPlace }): Promise<Checkpoint>;
  /** Those that were signed on schedule, newest first. */
  listCheckpoints(context: CallContext, input: { page: Page }): Promise<Paged<SignedCheckpoint>>;
  /** Removes what a portion of the log before a checkpoint holds, once it is archived; repeat it while some is left. */
  cutLog(context: CallContext, input: CutLogInput): Promise<At<CutLogOutcome>>;
  /** Of a run that has ended. */
  eraseTexts(context: CallContext, input: { runId: string; reason: string }): Promise<At<{ erased: number }>>;
}
