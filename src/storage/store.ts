import type { Admission } from '../domain/admission.js';
import type { Revocation } from '../domain/credential.js';
import type { CheckName } from '../domain/decide/decision.js';
import type { DatabaseIdentity } from '../domain/event.js';
import type { Freeze } from '../domain/freeze.js';
import type { KeyBinding } from '../domain/key-binding.js';
import type { Lease } from '../domain/lease.js';
import type { KindRehearsal } from '../domain/rehearsal.js';
import type { Run } from '../domain/run.js';
import type { SigningKey } from '../domain/signing-keys.js';
import type { Micros } from '../domain/time.js';

export type { DatabaseIdentity };

/**
 * What the engine needs of the database. The log is the truth; leases, runs, keys and conflict map
 * versions are projections of it, written in the same statement (P7). Every implementation passes
 * the conformance suite in test/integration/store-conformance.ts.
 */

/** The end of a namespace's log. */
export interface Head {
  readonly revision: number;
  /** 64 hexadecimal digits. */
  readonly hash: string;
  readonly time: Micros;
}

/** One row of the log, as stored. */
export interface EventRecord {
  readonly namespace: string;
  readonly revision: number;
  readonly time: Micros;
  /** UUID, common to all events of one append: answers whether an append with a lost reply happened. */
  readonly batchId: string;
  readonly kind: string;
  readonly bodyVersion: number;
  readonly actor: string;
  readonly runId: string;
  readonly leaseId: string;
  readonly resources: readonly string[];
  /** Correlation ids by which `why` finds the event; most events have none. */
  readonly requestIds: readonly string[];
  /** Canonical JSON (RFC 8785). */
  readonly body: string;
  readonly prevHash: string;
  readonly hash: string;
  /** Free text that the body holds the hash of; not hashed itself, and gone once it is erased (A3). */
  readonly texts: readonly EventText[];
}

/** A free text of an event, and the proof that it was this one: SHA-256 over salt and text stands in the body. */
export interface EventText {
  /** 64 hexadecimal digits. */
  readonly digest: string;
  /** 32 hexadecimal digits. */
  readonly salt: string;
  readonly text: string;
}

/** What one statement saw, with one clock value. */
export interface Gate {
  /** Null when the namespace does not exist. */
  readonly head: Head | null;
  /** clock_timestamp(), read once by the statement. */
  readonly now: Micros;
  readonly inRecovery: boolean;
  /** fsync and synchronous_commit are both on. */
  readonly durable: boolean;
  readonly identity: DatabaseIdentity;
}

/** One version of the conflict map, as put. */
export interface MapVersion {
  readonly version: number;
  /** The text as put, comments kept. */
  readonly text: string;
  /** Canonical JSON of the validated document. */
  readonly document: string;
  readonly author: string;
  readonly reason: string;
  readonly createdAt: Micros;
}

/** A resource that was asked for and that no kind matches (C14). */
export interface UnmatchedResource {
  readonly resource: string;
  readonly times: number;
  readonly lastSeenAt: Micros;
}

/** Everything one append writes, all or nothing. */
export interface AppendBatch {
  readonly namespace: string;
  readonly batchId: string;
  /** Decided on this head; null only for the first batch of a new namespace (revision 1). */
  readonly expectedHead: Head | null;
  readonly identity: DatabaseIdentity | null;
  /** Consecutive, from expectedHead.revision + 1. Never empty. */
  readonly events: readonly EventRecord[];
  /** Final rows, at most one per id. */
  readonly leases: readonly Lease[];
  readonly runs: readonly Run[];
  readonly keys: readonly KeyBinding[];
  readonly unmatched: readonly UnmatchedResource[];
  readonly revocations: readonly Revocation[];
  readonly admissions: readonly Admission[];
  readonly rehearsals: readonly KindRehearsal[];
  readonly freezes: readonly Freeze[];
  /** Patterns whose freeze is gone; none of those above. */
  readonly thawed: readonly string[];
  readonly mapVersion: MapVersion | null;
  /** Keys that were decided as never used before, whether the batch binds them or not; the statement proves it (P6). */
  readonly newKeys: readonly { readonly scope: string; readonly key: string }[];
  /** The latest expiry that was taken to be past, and the earliest taken to be in the future. */
  readonly reliedOnAsPast: Micros | null;
  readonly reliedOnAsFuture: Micros | null;
}

/** What became of an append whose answer arrived. A lost answer is thrown as StoreError `unknown_outcome`. */
export type AppendResult =
  | { readonly outcome: 'appended'; readonly gate: Gate }
  /** The head moved: read the tail and decide again. */
  | { readonly outcome: 'stale'; readonly gate: Gate | null }
  /** A time assumption failed: estimate and decide again; not a loss. */
  | { readonly outcome: 'time'; readonly gate: Gate }
  /** Somebody holds the namespace exclusively: wait a little. */
  | { readonly outcome: 'busy'; readonly gate: Gate }
  /** The database is another one than assumed, is in recovery, or is not durable. */
  | { readonly outcome: 'identity'; readonly gate: Gate }
  /** Keys taken to be new are bound: load these and decide again; not a loss. */
  | { readonly outcome: 'known_keys'; readonly gate: Gate; readonly keys: readonly KeyBinding[] };

/** The live state of a namespace at one revision. */
export interface Snapshot {
  readonly gate: Gate;
  /** Waiting and active leases, and ended ones under lock delay. */
  readonly leases: readonly Lease[];
  /** Runs that have not ended. */
  readonly runs: readonly Run[];
  /** Of requests that wait: by them their callers come back. */
  readonly keys: readonly KeyBinding[];
  readonly mapVersion: MapVersion | null;
  readonly unmatched: readonly UnmatchedResource[];
  /** Those that still matter. */
  readonly revocations: readonly Revocation[];
  /** Tracked writes whose outcome is not known, in the order in which they were let in. */
  readonly admissions: readonly Admission[];
  readonly rehearsals: readonly KindRehearsal[];
  readonly freezes: readonly Freeze[];
  /** What the last `database_identified` event recorded; null: none yet. */
  readonly recorded: Recorded | null;
}

/** Which database the log was in when that was last written down, and what was closed then because history was lost. */
export interface Recorded {
  readonly identity: DatabaseIdentity;
  /** Null also once it is open again. */
  readonly localKindsFrom: Micros | null;
}

/** Records that are no longer in memory, with the revision they were read at. */
export interface Loaded<T> {
  readonly revision: number;
  readonly records: readonly T[];
}

/** Where a log begins since it was cut. */
export interface LogCut {
  /** The first event that is kept. */
  readonly firstRevision: number;
  /** Hash of the event before it. */
  readonly hashBefore: string;
  /** The first event that is still there: below `firstRevision` while what was given up is being removed. */
  readonly lowest: number;
}

/** A checkpoint as a replica signed it on schedule (A2). */
export interface SignedCheckpoint {
  readonly namespace: string;
  /** In the order in which they were kept. */
  readonly number: number;
  readonly revision: number;
  /** 64 hexadecimal digits. */
  readonly hash: string;
  readonly time: Micros;
  readonly signature: Uint8Array;
  readonly keyId: string;
  readonly publicKeyPem: string;
  /** Where it was sent, for a person. */
  readonly sentTo: string;
}

export interface EventFilter {
  readonly runId?: string;
  readonly leaseId?: string;
  readonly resource?: string;
  readonly kinds?: readonly string[];
  readonly requestId?: string;
  readonly afterRevision?: number;
  readonly beforeRevision?: number;
  readonly newestFirst?: boolean;
  readonly limit: number;
}

/** Ids that events name. */
export interface IdsInLog {
  readonly runIds: readonly string[];
  readonly leaseIds: readonly string[];
}

/** A replica's last sign of life, committed: without a recent one it denies (design: fail-over and restore). */
export interface Heartbeat {
  readonly replicaId: string;
  /** On the database clock, read before the commit. */
  readonly at: Micros;
}

/** The right of one replica to publish the log of a namespace for a while. */
export interface TailerLease {
  readonly namespace: string;
  /** Higher than that of any holder before; below 2^53. */
  readonly token: number;
}

export type StoreErrorKind =
  /** The database could not be reached, or said that it is shutting down; nothing was sent. */
  | 'unavailable'
  /** The statement was sent and its answer was lost: it may have been committed. */
  | 'unknown_outcome'
  /** The database refused the data of the batch (a bad value); the engine bisects. */
  | 'bad_data'
  /** Disk full or read-only: refused for now, with the database's own words. */
  | 'read_only'
  /** A bug: an unexpected constraint violation, a missing table. Fails loudly. */
  | 'bug';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  constructor(
    readonly kind: StoreErrorKind,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

export interface Store {
  /** One statement, one clock value; the linearizable read index of any number of checks (P3). */
  readGate(namespace: string): Promise<Gate>;
  append(batch: AppendBatch): Promise<AppendResult>;
  /**
   * For a replica that keeps losing: holds the namespace exclusively, hands the tail after `after`
   * to `decide`, and appends what it returns (null: nothing).
   */
  appendExclusively(
    namespace: string,
    after: number,
    decide: (tail: readonly EventRecord[], gate: Gate) => AppendBatch | null,
  ): Promise<AppendResult | null>;
  /** Events after a revision, in order, at most `limit`; fewer where they are large: only none is the end. */
  readTail(namespace: string, after: number, limit: number): Promise<EventRecord[]>;
  /** One event; null when there is none at that revision. */
  readEvent(namespace: string, revision: number): Promise<EventRecord | null>;
  /** The live state and the head it belongs to, read in one REPEATABLE READ transaction; null: no such namespace. */
  loadSnapshot(namespace: string): Promise<Snapshot | null>;
  loadLeases(namespace: string, leaseIds: readonly string[]): Promise<Loaded<Lease>>;
  loadRuns(namespace: string, runIds: readonly string[]): Promise<Loaded<Run>>;
  loadKeys(namespace: string, keys: readonly { scope: string; key: string }[]): Promise<Loaded<KeyBinding>>;
  /** By id, and all that checks let in, of each check the newest ones; closed ones too. */
  loadAdmissions(
    namespace: string,
    admissionIds: readonly string[],
    checks: readonly CheckName[],
  ): Promise<Loaded<Admission>>;
  /** Ended and live ones, by id order after `afterId`. */
  listLeases(
    namespace: string,
    filter: { runId?: string; states?: readonly string[]; afterId?: string; limit: number },
  ): Promise<Lease[]>;
  listRuns(
    namespace: string,
    filter: { principal?: string; states?: readonly string[]; afterId?: string; limit: number },
  ): Promise<Run[]>;
  /** At most `filter.limit`; fewer where they are large: only none, or one, is the end. */
  listEvents(namespace: string, filter: EventFilter): Promise<EventRecord[]>;
  /** Ids of runs and leases that events name and that begin so, in order, at most `limit` of each. */
  findIds(namespace: string, beginning: string, limit: number): Promise<IdsInLog>;
  listNamespaces(after: string, limit: number): Promise<string[]>;
  /** In the main database: which one a namespace lives in; null: nobody said, so in the main one. */
  namespaceHome(namespace: string): Promise<string | null>;
  /** Says where it lives, if nobody has; returns where it does. */
  claimNamespaceHome(namespace: string, database: string): Promise<string>;
  readMapVersion(namespace: string, version: number): Promise<MapVersion | null>;
  /** Newest first, versions below `below` (null: from the newest). */
  listMapVersions(namespace: string, below: number | null, limit: number): Promise<MapVersion[]>;
  /** One row per replica, outside the log; returns the commit's clock. A heartbeat older than 2 s means: deny. */
  heartbeat(replicaId: string): Promise<Heartbeat>;
  /**
   * Removes leases, keys and runs of runs that ended before `before`, at most `limit` runs, and revocations that do not
   * matter any more; returns how many runs.
   */
  purge(namespace: string, before: Micros, limit: number): Promise<number>;
  /** Erases the oldest free texts of events from before that time, of at most `limit` events; returns how many texts. */
  eraseTextsBefore(namespace: string, before: Micros, limit: number): Promise<number>;
  /** Erases the free texts of the events of a run that come before that revision; returns how many. */
  eraseTextsOfRun(namespace: string, runId: string, beforeRevision: number): Promise<number>;
  /** Where the log begins since it was cut; null: it is whole. */
  readCut(namespace: string): Promise<LogCut | null>;
  /** Removes events that the recorded cut gave up, the oldest first, at most `limit`; returns how many. */
  cutLog(namespace: string, limit: number): Promise<number>;
  /** Notes what was signed and sent; of each namespace the last 10,000 are kept. */
  keepCheckpoint(checkpoint: Omit<SignedCheckpoint, 'number'>): Promise<void>;
  /** Newest first, numbers below `below` (null: from the newest). */
  listCheckpoints(namespace: string, below: number | null, limit: number): Promise<SignedCheckpoint[]>;
  /** The signing keys of the installation, and the clock they were read at. */
  readSigningKeys(): Promise<{ readonly now: Micros; readonly keys: readonly SigningKey[] }>;
  /**
   * Hands keys and clock to `decide` while nobody else can change them, writes what it returns, and returns that. Keys
   * that retired long ago are forgotten: the set stays bounded.
   */
  changeSigningKeys(
    decide: (keys: readonly SigningKey[], now: Micros) => readonly SigningKey[],
  ): Promise<readonly SigningKey[]>;
  /**
   * Claims, or keeps, the right to publish the logs of these namespaces for `ttl` on the database clock; returns those
   * that nobody else has. It may be used for `ttl` counted from before the call.
   */
  claimTailers(replicaId: string, namespaces: readonly string[], ttl: Micros): Promise<readonly TailerLease[]>;
  /** Gives up all that the replica claimed, for the next one at once. */
  yieldTailers(replicaId: string): Promise<void>;
  /** Calls back when another replica may have appended to a namespace: a hint, never relied on (P11). */
  onAppended(listener: (namespace: string) => void): () => void;
  close(): Promise<void>;
}
