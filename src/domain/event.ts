import type { Admission, ReportedWrite } from './admission.js';
import type { Confirmation, RevokedSubject } from './credential.js';
import type { RuleLock } from './entry.js';
import type { Freeze } from './freeze.js';
import type { KeyBinding } from './key-binding.js';
import type { EndReason, Lease, LeaseEntry } from './lease.js';
import type { ReportedOverride } from './override.js';
import type { EndRefusal, RefusalKind } from './refusal.js';
import type { Rehearsal, RehearsalWindow } from './rehearsal.js';
import type { BlockCause, EndedRunState, Run, RunState } from './run.js';
import type { SigningKeyState } from './signing-keys.js';
import type { Micros } from './time.js';

/**
 * Which database the log is in; recorded, and compared at every append, read index and start (P2). Only the timeline
 * orders identities; another system identifier or oid means another database, a reloaded dump or a restored copy.
 */
export interface DatabaseIdentity {
  readonly systemIdentifier: string;
  readonly timeline: number;
  readonly databaseOid: number;
  readonly eventTableOid: number;
  /** Start of the postmaster on the database clock. */
  readonly postmasterStart: Micros;
}

/** A signed statement over an event, as a cut records it. */
export interface LogCheckpoint {
  readonly revision: number;
  readonly hash: string;
  readonly time: Micros;
  readonly keyId: string;
  /** Base64. */
  readonly signature: string;
}

/** A loss of history: whatever was seen after that revision and before that time may have been lost. */
export interface LostBranch {
  readonly revision: number;
  readonly time: Micros;
}

/** What a renewal changed. */
export interface Renewed {
  readonly leaseId: string;
  readonly ttl: Micros;
  readonly expiresAt: Micros;
  readonly progressMarker: string | null;
  readonly progressAt: Micros;
}

/** Times of a lease that the kinds of added entries bound. */
export type AmendedTimes = Pick<Lease, 'maxTtl' | 'maxExpiresAt' | 'progressWindow' | 'progressAt'>;

/** A live lease has other entries from here on. New in it is what has the time of the event as its token. */
export interface LeaseAmended {
  readonly leaseId: string;
  /** Its run asked for it; a child run asks for a part of it; or what a child run held of it has come back. */
  readonly cause: 'amended' | 'delegated' | 'returned';
  readonly generation: number;
  readonly entries: readonly LeaseEntry[];
  readonly ruleLocks: readonly RuleLock[];
  /** Null: as they were. */
  readonly times: AmendedTimes | null;
  /** What it held of view and local kinds and is kept from other runs for a while: a lease of its own, which has ended. */
  readonly left: {
    readonly leaseId: string;
    readonly entries: readonly LeaseEntry[];
    readonly ruleLocks: readonly RuleLock[];
    readonly until: Micros;
  } | null;
  /** The key that it was asked for by; null: nobody asked. */
  readonly binding: KeyBinding | null;
}

/** Denied checks of a short while, together: they are facts, not state changes (A1). */
export interface DenialCount {
  readonly reason: string;
  readonly resource: string;
  readonly action: string;
  /** Of the run that holds the lease; empty when there is no such lease. */
  readonly runId: string;
  /** The lease that was presented; empty when there is no such lease. Events of before it was recorded have none. */
  readonly leaseId: string;
  /** The run that the target named, where it is not the holder: a claim, not a fact. */
  readonly presentedRun: string;
  readonly target: string;
  readonly count: number;
  /** Of the first of them, by which each is found. */
  readonly requestIds: readonly string[];
  /** What an `observe` kind allowed all the same. */
  readonly observedOnly: boolean;
}

/** A lock delay, or a write in doubt, that a take-over did not wait for. */
export interface TakenOverlap {
  readonly leaseId: string;
  readonly runId: string;
  readonly resource: string;
  /** Null: it is no lock delay. */
  readonly lockDelayUntil: Micros | null;
  /** Null: nothing is in doubt. */
  readonly inDoubtSince: Micros | null;
}

/**
 * One state change each, or one refused attempt. `evolve` applies them; nothing else changes state.
 * The body is stored as canonical JSON; its form has a version, older ones are lifted by upcasters.
 */
export type EventBody =
  | { readonly kind: 'namespace_created'; readonly name: string }
  | {
      readonly kind: 'database_identified';
      readonly identity: DatabaseIdentity;
      /** True: the database lost acknowledged history; every live lease ends, every run is blocked. */
      readonly lostHistory: boolean;
      readonly why: string;
      readonly continuesFrom: { readonly revision: number; readonly hash: string };
      /** After lost history nobody is granted anything of a view or local kind before this; null: there is no such time. */
      readonly localKindsFrom: Micros | null;
    }
  | {
      readonly kind: 'conflict_map_put';
      readonly version: number;
      readonly text: string;
      readonly document: unknown;
      readonly reason: string;
      readonly onLiveConflict: string;
    }
  | { readonly kind: 'run_created'; readonly run: Run; readonly fingerprint: string }
  | {
      readonly kind: 'run_state_changed';
      readonly runId: string;
      readonly state: RunState;
      readonly reason: string;
      readonly blockCause: BlockCause | null;
      readonly endedAt: Micros | null;
      /** `stopping`: the state it comes to once every outcome is known; null in any other. */
      readonly endsAs: EndedRunState | null;
    }
  | {
      /** A check of tracked actions let these writes in; common to all are lease, run, request and target. */
      readonly kind: 'writes_admitted';
      readonly target: string;
      readonly requestId: string;
      readonly writes: readonly Pick<Admission, 'admissionId' | 'resource' | 'action' | 'token' | 'observedVersion'>[];
    }
  | {
      /** What a target says became of writes, tracked or not (A1, W6). */
      readonly kind: 'writes_reported';
      readonly target: string;
      readonly requestId: string;
      /** Why they failed, or are not known; free text of the target. */
      readonly detail: string;
      readonly writes: readonly ReportedWrite[];
    }
  | {
      /** An operator has found out what became of a write in doubt. */
      readonly kind: 'doubt_settled';
      readonly admissionId: string;
      readonly resource: string;
      readonly action: string;
      readonly happened: boolean;
      readonly newVersion: string | null;
      readonly reason: string;
    }
  | { readonly kind: 'lease_queued'; readonly lease: Lease; readonly fingerprint: string }
  | { readonly kind: 'lease_granted'; readonly lease: Lease; readonly fingerprint: string | null }
  | {
      readonly kind: 'lease_attached';
      readonly attachments: readonly {
        readonly leaseId: string;
        readonly attachedUntil: Micros;
        readonly attachment: number;
        readonly attached: boolean;
      }[];
    }
  | { readonly kind: 'lease_claimed'; readonly leaseId: string }
  | { readonly kind: 'leases_renewed'; readonly runId: string; readonly renewals: readonly Renewed[] }
  | {
      readonly kind: 'renewals_refused';
      readonly refusals: readonly { readonly leaseId: string; readonly refusal: RefusalKind }[];
    }
  | {
      readonly kind: 'lease_reexpanded';
      readonly leaseId: string;
      readonly generation: number;
      readonly entries: readonly LeaseEntry[];
      readonly ruleLocks: readonly RuleLock[];
    }
  | ({ readonly kind: 'lease_amended' } & LeaseAmended)
  | {
      readonly kind: 'lease_ended';
      readonly leaseId: string;
      readonly endReason: EndReason;
      readonly reason: string;
      /** What it held of view and local kinds is kept from other runs until then; null: nothing is. */
      readonly lockDelayUntil: Micros | null;
      /** Ended as `refused`: what its run is told. */
      readonly refusal?: EndRefusal;
    }
  | { readonly kind: 'lock_delay_ended'; readonly leaseId: string }
  | { readonly kind: 'key_bound'; readonly binding: KeyBinding }
  | {
      readonly kind: 'acquire_refused';
      readonly refusal: RefusalKind;
      readonly message: string;
      readonly purpose: string;
      readonly blockers: readonly string[];
    }
  | {
      readonly kind: 'credentials_issued';
      /** One for each audience; the token itself is never recorded (A3). */
      readonly credentials: readonly { readonly audience: string; readonly jti: string }[];
      readonly expiresAt: Micros;
      readonly boundTo: Confirmation | null;
    }
  | {
      readonly kind: 'credentials_refused';
      readonly refusals: readonly {
        readonly audience: string;
        readonly refusal: RefusalKind;
        readonly message: string;
      }[];
    }
  | {
      readonly kind: 'credentials_revoked';
      readonly subject: RevokedSubject;
      readonly until: Micros;
      readonly reason: string;
    }
  | {
      readonly kind: 'signing_keys_changed';
      readonly changes: readonly { readonly keyId: string; readonly state: SigningKeyState }[];
      readonly reason: string;
    }
  | {
      readonly kind: 'rehearsal_begun';
      readonly windows: readonly { readonly pattern: string; readonly window: RehearsalWindow }[];
    }
  | { readonly kind: 'rehearsal_recorded'; readonly pattern: string; readonly rehearsal: Rehearsal }
  | {
      /** An operator's take-over: the ends and the grant, or the place before all others, follow in the same append (C12). */
      readonly kind: 'write_set_taken_over';
      readonly reason: string;
      readonly ended: readonly { readonly leaseId: string; readonly runId: string }[];
      readonly acceptsOverlap: boolean;
      /** What it was granted in spite of: the first of it. */
      readonly overlaps: readonly TakenOverlap[];
    }
  | { readonly kind: 'pattern_frozen'; readonly freeze: Freeze }
  /** By time, or by an operator, who may say why. */
  | { readonly kind: 'pattern_thawed'; readonly pattern: string; readonly byTime: boolean; readonly reason: string }
  | { readonly kind: 'checks_denied'; readonly denials: readonly DenialCount[] }
  /** Free texts of the run's events are forgotten from here on (A3). */
  | { readonly kind: 'texts_erased'; readonly runId: string; readonly reason: string }
  | {
      /** The log begins here from now on; what came before was archived. */
      readonly kind: 'log_cut';
      /** The first event that is kept, at the revision after the checkpoint's. */
      readonly firstRevision: number;
      readonly checkpoint: LogCheckpoint;
      /** SHA-256 of the archive, 64 hexadecimal digits. */
      readonly archiveDigest: string;
      /** Younger than a cut may be, on an operator's word. */
      readonly evenYoung: boolean;
      readonly reason: string;
      /** The newest ones that the log told of, so that they are known although their events are cut. */
      readonly lostBranches: readonly LostBranch[];
    }
  /** Every replica takes the digest of its live state as it is at this revision. In an append of its own. */
  | { readonly kind: 'checkpoint_begun' }
  | {
      /** The digest that the replica has which began it; one that has another stops (design: the log). */
      readonly kind: 'checkpoint_written';
      /** Of the `checkpoint_begun`. */
      readonly revision: number;
      /** What is in the digest, and how. */
      readonly digestVersion: number;
      /** 64 hexadecimal digits. */
      readonly digest: string;
    }
  | ({ readonly kind: 'override_reported' } & ReportedOverride)
  | {
      readonly kind: 'resources_unmatched';
      readonly counts: readonly { readonly resource: string; readonly times: number }[];
    };

export type EventKind = EventBody['kind'];

/** An event before the engine gives it a revision, a batch and hashes. */
export interface DomainEvent {
  readonly time: Micros;
  readonly actor: string;
  readonly runId: string;
  readonly leaseId: string;
  readonly resources: readonly string[];
  readonly requestIds: readonly string[];
  readonly body: EventBody;
}
