import type { Admission } from '../../domain/admission.js';
import type { AmendRequest } from '../../domain/amendment.js';
import type { RuleAbout } from '../../domain/conflict-map/index.js';
import type { FreezeCommand, FreezeDecision, ThawDecision } from '../../domain/decide/freezes.js';
import type { WriteSetRequest } from '../../domain/entry.js';
import type { Fault } from '../../domain/fault.js';
import type { Freeze } from '../../domain/freeze.js';
import type { EndReason, Lease, LeaseState } from '../../domain/lease.js';
import type { LeaseNotice } from '../../domain/notices.js';
import type { Blocker, Refusal } from '../../domain/refusal.js';
import type { Micros } from '../../domain/time.js';
import type { At, CallContext, Page, Paged } from './calls.js';
import type { AudienceCredential } from './credentials.js';

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
  /** What it was for; of a lease that does not say, what its run is for. */
  readonly purpose: string;
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

/** Leases of one run, renewed together. */
export interface RenewInput {
  readonly runId: string;
  readonly renewals: readonly RenewalInput[];
}

export interface RenewalOutcome {
  readonly leaseId: string;
  readonly lease: Lease | null;
  readonly refusal: Refusal | null;
  /** What the holder should know; none with a refusal. */
  readonly notices: readonly LeaseNotice[];
}

/** One of the two says which lease. */
export interface ReleaseInput {
  readonly runId: string;
  readonly leaseId: string | null;
  /** The idempotency key that its acquire was sent with, whether or not it was ever answered. */
  readonly acquireKey: string | null;
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

/** A lease that waits. */
export interface Waiter {
  readonly lease: Lease;
  readonly waitingSince: Micros;
  /** Whom it waits for, and how many stand before it. */
  readonly place: WaitingPlace;
}

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
  /** Another call by the key has the place now. */
  | { readonly kind: 'place_moved' }
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
  renew(context: CallContext, input: RenewInput): Promise<At<readonly RenewalOutcome[]>>;
  release(context: CallContext, input: ReleaseInput): Promise<At<ReleaseOutcome>>;
  /** Nothing is told any more; places are kept for a while. Idempotent. */
  close(): void;
}

/** Write sets and leases, the queue, emergencies, doubts and freezes. */
export interface LeaseApi {
  acquireWriteSet(context: CallContext, input: AcquireInput): Promise<At<AcquireOutcome>>;
  amendWriteSet(context: CallContext, input: AmendInput): Promise<At<AmendOutcome>>;
  renewLeases(context: CallContext, input: RenewInput): Promise<At<readonly RenewalOutcome[]>>;
  releaseLease(context: CallContext, input: ReleaseInput): Promise<At<ReleaseOutcome>>;
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
}
