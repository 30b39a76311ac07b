import type { Principal } from '../auth/principal.js';
import type { Admission, ReportedWrite } from '../domain/admission.js';
import type { AmendRequest } from '../domain/amendment.js';
import type {
  Explanation,
  MapProblem,
  ResourceDescription,
  RuleAbout,
  TaskPair,
} from '../domain/conflict-map/index.js';
import type { Confirmation } from '../domain/credential.js';
import type { FreezeCommand, FreezeDecision, ThawDecision } from '../domain/decide/freezes.js';
import type { AffectedLease, OnLiveConflict } from '../domain/decide/put-map.js';
import type { ReportOutcome } from '../domain/decide/report-writes.js';
import type { RevokeCredentialsCommand } from '../domain/decide/revoke-credentials.js';
import type { Allowance, WriteSetRequest } from '../domain/entry.js';
import type { Fault } from '../domain/fault.js';
import type { FenceReason, FenceVerdict, ProtectedWrite } from '../domain/fence.js';
import type { Freeze } from '../domain/freeze.js';
import type { EndReason, Lease, LeaseState } from '../domain/lease.js';
import type { LeaseNotice } from '../domain/notices.js';
import type { ReportedOverride } from '../domain/override.js';
import type { Blocker, Refusal } from '../domain/refusal.js';
import type { KindRehearsal, RehearsedCase } from '../domain/rehearsal.js';
import type { Run, RunState } from '../domain/run.js';
import type { SigningKey } from '../domain/signing-keys.js';
import type { Micros } from '../domain/time.js';
import type { EventRecord, MapVersion, UnmatchedResource } from '../storage/store.js';
import type { FenceWatch, WatchFencesInput } from './fence-watches.js';
import type { PresentedHeaders } from './presented-write.js';
import type { RouteProblem } from './route-problem.js';

/**
 * The services as transports see them, in the domain's words. Everything here is checked by the
 * service itself: roles, fields, bounds. Bad input, unknown ids and missing rights are thrown as
 * `Fault`; expected negative outcomes are returned.
 */
export interface CallContext {
  readonly principal: Principal;
  /** Empty means "default". */
  readonly namespace: string;
  /** Correlates logs, spans and events: the caller's, else made by the transport. */
  readonly requestId: string;
  /** Milliseconds the caller will still wait; null: no deadline. */
  readonly deadlineMs: number | null;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

/** An answer, and the log revision at which it was true. */
export interface At<T> {
  readonly value: T;
  readonly revision: number;
  /** Database time of the decision; durations left are counted from it. */
  readonly now: Micros;
}

/** One of many checks. */
export interface MadeCheck {
  readonly context: CallContext;
  readonly input: CheckFenceInput;
}

/** What came of one of many questions: its answer, or the Fault that it would have been rejected with. */
export type Outcome<T> =
  | { readonly ok: true; readonly answer: At<T> }
  | { readonly ok: false; readonly error: unknown };

export interface AcquireInput extends WriteSetRequest {
  readonly runId: string;
  /** The lease of the parent run that a part is asked of. Empty: of none. */
  readonly delegatedFrom: string;
  readonly ttl: Micros | null;
  readonly wait: Micros;
  readonly idempotencyKey: string;
  readonly purpose: string;
  readonly requestId: string;
  /** Targets to issue credentials for with the grant. */
  readonly audiences: readonly string[];
}

export interface TakeOverInput extends AcquireInput {
  readonly reason: string;
  /** Granted at once, whatever lock delays and writes in doubt there are. */
  readonly acceptsOverlap: boolean;
}

export interface PreviewInput extends AcquireInput {
  /** What a take-over would be answered; null or absent: an acquire. */
  readonly takeOver?: Pick<TakeOverInput, 'reason' | 'acceptsOverlap'> | null;
}

/** What would be answered: one of the two; and whom a take-over would end. */
export interface PreviewOutcome {
  readonly lease: Lease | null;
  readonly refusal: Refusal | null;
  readonly wouldEnd: readonly EndedLease[];
}

/** A lease that a take-over ended, and when that is in force everywhere (P3). */
export interface EndedLease {
  readonly lease: Lease;
  readonly effectiveAt: Micros;
}

/** What a take-over ended. */
export interface EndedLeases {
  readonly leases: readonly EndedLease[];
  /** When all the ends are in force everywhere (P3); null: nobody was ended. */
  readonly effectiveAt: Micros | null;
  /** Let in under them; in doubt. */
  readonly openWrites: readonly Admission[];
}

export interface TakeOverOutcome {
  readonly outcome: AcquireOutcome;
  readonly ended: EndedLeases;
}

/** A credential, as its run gets it. */
export interface IssuedCredential {
  /** A secret; never logged or stored. */
  readonly token: string;
  readonly jti: string;
  readonly audience: string;
  readonly expiresAt: Micros;
  readonly expiresIn: Micros;
  readonly tokenType: 'Bearer' | 'DPoP';
  readonly boundTo: Confirmation | null;
}

/** What became of one audience: one of the two. */
export interface AudienceCredential {
  readonly audience: string;
  readonly credential: IssuedCredential | null;
  readonly refusal: Refusal | null;
}

export interface IssueCredentialInput {
  readonly runId: string;
  /** Null: without a lease, to propose only. */
  readonly leaseId: string | null;
  readonly audience: string;
  /** Null: the certificate of the call, if it has one. */
  readonly confirmation: Confirmation | null;
  readonly requestId: string;
}

/** The members of RFC 7662. */
export type Introspection =
  | { readonly active: false }
  | { readonly active: true; readonly claims: Readonly<Record<string, unknown>> };

/** The public keys as they are published. */
export interface PublishedKeys {
  /** JSON of the JWK set (RFC 7517). */
  readonly jwks: string;
  readonly maxAge: Micros;
  readonly issuer: string;
}

export interface CheckFenceInput {
  /** Empty when a credential is given. */
  readonly leaseId: string;
  /** Presented in place of the lease id; absent or empty: none. */
  readonly credential?: string;
  /** The key that the presenter proved to have; absent: none. */
  readonly presenter?: Confirmation | null;
  readonly presenterRunId: string;
  readonly writes: readonly ProtectedWrite[];
  readonly requestId: string;
}

/** A request to a service, as the gateway in front of it tells; every value that was sent, to see what can be read in two ways. */
export interface RouteCheckInput {
  readonly method: readonly string[];
  readonly host: readonly string[];
  /** Path and query as they were sent, still escaped. */
  readonly target: readonly string[];
  readonly presented: PresentedHeaders;
  /** The key that the gateway saw proved; null: none. */
  readonly presenter: Confirmation | null;
  /** The gateway's own id of the request, never the client's: by it a check that it repeats is known. Absent: it has none. */
  readonly attemptId?: string;
}

/** Whether a request may go through to the service. */
export type RouteAnswer =
  | {
      readonly allowed: true;
      /** `reads` and `unprotected`: the route needs no check. Of an `observe` kind, what `enforce` would have answered. */
      readonly reason: FenceReason | 'reads' | 'unprotected';
      readonly observedOnly: boolean;
      readonly runId: string | null;
      /** The authorization is a credential of Writ, which is not for the service to see. */
      readonly credentialPresented: boolean;
      /** Null: no check was made. */
      readonly revision: number | null;
      readonly validFor: Micros | null;
      /** Of the tracked writes, in their order: what becomes of each has to be reported. */
      readonly admissionIds: readonly string[];
    }
  | { readonly allowed: false; readonly problem: RouteProblem; readonly revision: number | null };
/** The verdict, and the admissions of what is tracked. */
export interface CheckedFence extends FenceVerdict {
  /** One per write; empty: its action is not tracked. Absent: nothing that is allowed is. */
  readonly admissionIds?: readonly string[];
}

export interface ReportWriteInput {
  /** Of the check. Empty: a credential is given, or each write names its admission. */
  readonly leaseId: string;
  /** Of the check, in place of the lease id; empty: none. */
  readonly credential: string;
  /** Of the check. */
  readonly requestId: string;
  readonly detail: string;
  readonly writes: readonly Omit<ReportedWrite, 'contradicts'>[];
}

/** A waiting request, as told to its run. */
export interface WaitingPlace {
  readonly leaseId: string;
  readonly place: number;
  readonly refusal: Refusal;
  readonly callAgainWithin: Micros;
  readonly waitsUntil: Micros;
}

export type AcquireOutcome =
  | { readonly kind: 'lease'; readonly lease: Lease; readonly credentials: readonly AudienceCredential[] }
  | { readonly kind: 'waiting'; readonly waiting: WaitingPlace }
  | { readonly kind: 'refusal'; readonly refusal: Refusal };

export interface AmendInput extends AmendRequest {
  readonly runId: string;
  readonly leaseId: string;
  readonly idempotencyKey: string;
  readonly requestId: string;
}

export type AmendOutcome =
  | { readonly kind: 'lease'; readonly lease: Lease; readonly effectiveAt: Micros }
  | { readonly kind: 'refusal'; readonly refusal: Refusal };

export interface RenewalInput {
  readonly leaseId: string;
  readonly ttl: Micros | null;
  readonly progressMarker: string | null;
}

export interface RenewalOutcome {
  readonly leaseId: string;
  readonly lease: Lease | null;
  readonly refusal: Refusal | null;
  /** What the holder should know; none with a refusal. */
  readonly notices: readonly LeaseNotice[];
}

export interface ReleaseOutcome {
  readonly outcome: 'released' | 'already_ended' | 'nothing_held';
  readonly endReason: EndReason | null;
  /** When the end is in force everywhere (P3). */
  readonly effectiveAt: Micros;
  /** Let in under the lease; their resources are granted to nobody before their outcome is known. */
  readonly openWrites: readonly Admission[];
}

/** Who stands in the way of a write to a resource, and the rules by which others can. */
export interface FoundBlockers {
  /** Its path. */
  readonly resource: string;
  readonly blockers: readonly Blocker[];
  /** Leases among them of the caller's own runs, which it may know. */
  readonly own: ReadonlySet<string>;
  readonly more: boolean;
  readonly rules: readonly RuleAbout[];
  /** Over the resource, or over something below it. */
  readonly freezes: readonly Freeze[];
}

/** A run with what is derived from its leases. */
export interface RunView {
  readonly run: Run;
  readonly liveLeases: number;
  readonly waitingRequests: number;
  readonly mayWrite: boolean;
  /** Of it and of runs below it: tracked writes whose outcome is not known. */
  readonly openWrites: readonly Admission[];
}

export interface CreateRunInput {
  readonly purpose: string;
  readonly goalRevision: string;
  readonly initiator: string;
  /** Of the person; empty: the initiator is not verified. */
  readonly initiatorToken: string;
  /** Empty: none. */
  readonly parentRunId: string;
  readonly allowed: readonly Allowance[];
  readonly authorityEndsAt: Micros;
  readonly escalation: readonly string[];
  readonly idempotencyKey: string;
}

export interface Page {
  /** 1 to 1,000. */
  readonly size: number;
  readonly token: string;
}

export interface Paged<T> {
  readonly items: readonly T[];
  /** Empty: this is the last page. */
  readonly nextToken: string;
}

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

/** A lease that waits. */
export interface Waiter {
  readonly lease: Lease;
  readonly waitingSince: Micros;
  /** Whom it waits for, and how many stand before it. */
  readonly place: WaitingPlace;
}

export interface NamespaceView {
  /** That it lives in. */
  readonly database: string;
  readonly name: string;
  readonly createdAt: Micros;
  readonly revision: number;
  readonly mapVersion: number;
  readonly liveLeases: number;
  readonly waitingRequests: number;
  readonly liveRuns: number;
}

export interface Checkpoint {
  readonly namespace: string;
  readonly revision: number;
  readonly hash: string;
  readonly time: Micros;
  readonly signature: Uint8Array;
  readonly keyId: string;
  readonly publicKeyPem: string;
}

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

/** The log as it grows. It is pulled: nothing waits here for a reader but a place in the log. */
export interface EventWatch {
  /** The revision up to which all has been told, or need not be. */
  readonly position: number;
  /** The next events in order and without gaps, as soon as there are some. Rejects with the Fault that ends the watch. */
  next(): Promise<readonly EventRecord[]>;
  /** Ends it; idempotent. */
  close(): void;
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

/** One method per RPC. */
/** Something has happened to a lease of a session, or to a place in the queue. */
export type SessionEvent = { readonly namespace: string; readonly leaseId: string } & (
  | {
      readonly kind: 'granted';
      readonly lease: Lease;
      readonly credentials: readonly AudienceCredential[];
      readonly revision: number;
      readonly now: Micros;
    }
  | { readonly kind: 'jeopardy'; readonly validUntil: Micros; readonly validFor: Micros }
  | { readonly kind: 'safe'; readonly validUntil: Micros }
  | {
      readonly kind: 'lost';
      readonly endReason: EndReason | null;
      readonly endedAt: Micros | null;
      /** Of a place in the queue; null: it was a lease. */
      readonly refusal: Refusal | null;
    }
  | LeaseNotice
);

/** Who hears what happens on a session. */
export interface SessionListener {
  happened(event: SessionEvent): void;
  /** What becomes of a place cannot be told here: its caller is to ask again, by the same key, elsewhere. */
  failed(fault: Fault): void;
}

/** The leases and places of one caller on one replica. */
export interface LeaseSession {
  /** Does not block while the request waits. */
  acquire(context: CallContext, input: AcquireInput): Promise<At<AcquireOutcome>>;
  renew(
    context: CallContext,
    input: { runId: string; renewals: readonly RenewalInput[] },
  ): Promise<At<readonly RenewalOutcome[]>>;
  release(
    context: CallContext,
    input: { runId: string; leaseId: string | null; acquireKey: string | null },
  ): Promise<At<ReleaseOutcome>>;
  /** Nothing is told any more; places are kept for a while. Idempotent. */
  close(): void;
}

export interface WritApi {
  acquireWriteSet(context: CallContext, input: AcquireInput): Promise<At<AcquireOutcome>>;
  amendWriteSet(context: CallContext, input: AmendInput): Promise<At<AmendOutcome>>;
  renewLeases(
    context: CallContext,
    input: { runId: string; renewals: readonly RenewalInput[] },
  ): Promise<At<readonly RenewalOutcome[]>>;
  releaseLease(
    context: CallContext,
    input: { runId: string; leaseId: string | null; acquireKey: string | null },
  ): Promise<At<ReleaseOutcome>>;
  revokeLease(
    context: CallContext,
    input: { leaseId: string; reason: string },
  ): Promise<At<{ effectiveAt: Micros; endReason: EndReason; openWrites: readonly Admission[] }>>;
  getLease(context: CallContext, input: { leaseId: string }): Promise<At<Lease>>;
  listLeases(
    context: CallContext,
    input: { runId: string; resource: string; states: readonly LeaseState[]; lockDelayed: boolean; page: Page },
  ): Promise<At<Paged<Lease>>>;
  listWaiters(context: CallContext, input: { runId: string; resource: string; page: Page }): Promise<At<Paged<Waiter>>>;
  takeOver(context: CallContext, input: TakeOverInput): Promise<At<TakeOverOutcome>>;
  previewWriteSet(context: CallContext, input: PreviewInput): Promise<At<PreviewOutcome>>;

  /** Leases and places of one caller, told of until it is closed. */
  openSession(listener: SessionListener): LeaseSession;

  findBlockers(context: CallContext, input: { resource: string }): Promise<At<FoundBlockers>>;

  reportOverride(
    context: CallContext,
    input: Omit<ReportedOverride, 'notOwned'>,
  ): Promise<At<{ alreadyReported: boolean }>>;
  checkRoute(context: CallContext, input: RouteCheckInput): Promise<RouteAnswer>;
  listInDoubt(
    context: CallContext,
    input: { runId: string; resource: string; includeOpen: boolean; page: Page },
  ): Promise<At<Paged<Admission>>>;
  settleInDoubt(
    context: CallContext,
    input: { admissionId: string; happened: boolean; newVersion: string | null; reason: string },
  ): Promise<At<{ settledNow: boolean; runId: string; stillOpen: readonly Admission[] }>>;

  freeze(context: CallContext, input: Omit<FreezeCommand, 'requestIds'>): Promise<At<FreezeDecision>>;
  thaw(context: CallContext, input: { pattern: string; reason: string }): Promise<At<ThawDecision>>;
  listFreezes(context: CallContext, input: { resource: string; page: Page }): Promise<At<Paged<Freeze>>>;

  checkFence(context: CallContext, input: CheckFenceInput): Promise<At<CheckedFence>>;
  /** Many of them, of one caller in one namespace; `told` is called once for each, by and by. Never rejects. */
  checkFences(
    checks: readonly MadeCheck[],
    told: (index: number, outcome: Outcome<CheckedFence>) => void,
  ): Promise<void>;
  reportWrite(context: CallContext, input: ReportWriteInput): Promise<At<readonly ReportOutcome[]>>;
  /** What the caller pulls from until it closes it. */
  watchFences(context: CallContext, input: WatchFencesInput): Promise<FenceWatch>;

  issueCredential(context: CallContext, input: IssueCredentialInput): Promise<At<AudienceCredential>>;
  introspectCredential(context: CallContext, input: { token: string }): Promise<At<Introspection>>;
  revokeCredential(
    context: CallContext,
    input: { subject: RevokeCredentialsCommand['subject']; reason: string },
  ): Promise<At<{ effectiveAt: Micros }>>;
  /** Open to everybody: the keys are public. */
  getKeys(): Promise<PublishedKeys>;
  listSigningKeys(): Promise<readonly SigningKey[]>;
  rotateSigningKey(context: CallContext, input: { reason: string; force: boolean }): Promise<readonly SigningKey[]>;
  retireSigningKey(context: CallContext, input: { keyId: string; reason: string }): Promise<readonly SigningKey[]>;

  createRun(context: CallContext, input: CreateRunInput): Promise<At<RunView>>;
  getRun(context: CallContext, input: { runId: string }): Promise<At<RunView>>;
  listRuns(context: CallContext, input: { states: readonly RunState[]; page: Page }): Promise<At<Paged<RunView>>>;
  updateRunState(
    context: CallContext,
    input: { runId: string; state: RunState; reason: string; idempotencyKey: string },
  ): Promise<At<{ run: RunView; effectiveAt: Micros | null }>>;
  stopRun(
    context: CallContext,
    input: { runId: string; reason: string },
  ): Promise<At<{ effectiveAt: Micros; run: RunView }>>;
  stopRuns(
    context: CallContext,
    input: { principal: string; resource: string; all: boolean; reason: string; idempotencyKey: string },
  ): Promise<At<{ effectiveAt: Micros; runs: readonly RunView[] }>>;

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

  listEvents(
    context: CallContext,
    input: EventQuery & { page: Page },
  ): Promise<Paged<EventRecord> & { readonly firstRevision: number }>;
  /** Batches of at most 1,000 events, in order; ends at the head it found when called. */
  exportEvents(context: CallContext, input: { afterRevision: number }): AsyncIterable<readonly EventRecord[]>;
  /** What happens from now on, or since a revision; what the caller pulls from until it closes it. */
  watchEvents(context: CallContext, input: { afterRevision: number | null }): Promise<EventWatch>;
  /** Over the head, or over an event before it. */
  getCheckpoint(context: CallContext, input?: { at: CheckpointPlace }): Promise<Checkpoint>;
  /** Removes what a portion of the log before a checkpoint holds, once it is archived; repeat it while some is left. */
  cutLog(context: CallContext, input: CutLogInput): Promise<At<CutLogOutcome>>;
  /** Of a run that has ended. */
  eraseTexts(context: CallContext, input: { runId: string; reason: string }): Promise<At<{ erased: number }>>;

  createNamespace(
    context: CallContext,
    /** Without `database`: the main one, or wherever it lives already. */
    input: { name: string; database?: string | null },
  ): Promise<{ namespace: NamespaceView; created: boolean }>;
  getNamespace(context: CallContext, input: { name: string }): Promise<NamespaceView>;
  listNamespaces(context: CallContext, input: { page: Page }): Promise<Paged<NamespaceView>>;
}

export type { AffectedLease, Explanation, OnLiveConflict, TaskPair };
