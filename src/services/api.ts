import type { Principal } from '../auth/principal.js';
import type {
  Explanation,
  MapProblem,
  ResourceDescription,
  RuleAbout,
  TaskPair,
} from '../domain/conflict-map/index.js';
import type { Confirmation } from '../domain/credential.js';
import type { AffectedLease, OnLiveConflict } from '../domain/decide/put-map.js';
import type { RevokeCredentialsCommand } from '../domain/decide/revoke-credentials.js';
import type { Allowance, WriteSetRequest } from '../domain/entry.js';
import type { FenceVerdict, ProtectedWrite } from '../domain/fence.js';
import type { EndReason, Lease, LeaseState } from '../domain/lease.js';
import type { Blocker, Refusal } from '../domain/refusal.js';
import type { Run, RunState } from '../domain/run.js';
import type { SigningKey } from '../domain/signing-keys.js';
import type { Micros } from '../domain/time.js';
import type { EventRecord, MapVersion, UnmatchedResource } from '../storage/store.js';

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

export interface AcquireInput extends WriteSetRequest {
  readonly runId: string;
  readonly ttl: Micros | null;
  readonly wait: Micros;
  readonly idempotencyKey: string;
  readonly purpose: string;
  readonly requestId: string;
  /** Targets to issue credentials for with the grant. */
  readonly audiences: readonly string[];
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

export interface RenewalInput {
  readonly leaseId: string;
  readonly ttl: Micros | null;
  readonly progressMarker: string | null;
}

export interface RenewalOutcome {
  readonly leaseId: string;
  readonly lease: Lease | null;
  readonly refusal: Refusal | null;
}

export interface ReleaseOutcome {
  readonly outcome: 'released' | 'already_ended' | 'nothing_held';
  readonly endReason: EndReason | null;
  /** When the end is in force everywhere (P3). */
  readonly effectiveAt: Micros;
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
}

/** A run with what is derived from its leases. */
export interface RunView {
  readonly run: Run;
  readonly liveLeases: number;
  readonly waitingRequests: number;
  readonly mayWrite: boolean;
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

export interface NamespaceView {
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

export interface EventQuery {
  readonly runId: string;
  readonly leaseId: string;
  readonly resource: string;
  readonly kinds: readonly string[];
  readonly requestId: string;
  readonly afterRevision: number;
  readonly newestFirst: boolean;
}

/** One method per RPC. */
export interface WritApi {
  acquireWriteSet(context: CallContext, input: AcquireInput): Promise<At<AcquireOutcome>>;
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
  ): Promise<At<{ effectiveAt: Micros; endReason: EndReason }>>;
  getLease(context: CallContext, input: { leaseId: string }): Promise<At<Lease>>;
  listLeases(
    context: CallContext,
    input: { runId: string; resource: string; states: readonly LeaseState[]; lockDelayed: boolean; page: Page },
  ): Promise<At<Paged<Lease>>>;
  previewWriteSet(
    context: CallContext,
    input: AcquireInput,
  ): Promise<At<{ lease: Lease | null; refusal: Refusal | null }>>;

  findBlockers(context: CallContext, input: { resource: string }): Promise<At<FoundBlockers>>;

  checkFence(context: CallContext, input: CheckFenceInput): Promise<At<FenceVerdict>>;

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
  ): Promise<At<{ version: number; warnings: readonly LocatedProblem[]; affected: readonly AffectedLease[] }>>;
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

  listEvents(context: CallContext, input: EventQuery & { page: Page }): Promise<Paged<EventRecord>>;
  /** Batches of at most 1,000 events, in order; ends at the head it found when called. */
  exportEvents(context: CallContext, input: { afterRevision: number }): AsyncIterable<readonly EventRecord[]>;
  getCheckpoint(context: CallContext): Promise<Checkpoint>;

  createNamespace(
    context: CallContext,
    input: { name: string },
  ): Promise<{ namespace: NamespaceView; created: boolean }>;
  getNamespace(context: CallContext, input: { name: string }): Promise<NamespaceView>;
  listNamespaces(context: CallContext, input: { page: Page }): Promise<Paged<NamespaceView>>;
}

export type { AffectedLease, Explanation, OnLiveConflict, TaskPair };
