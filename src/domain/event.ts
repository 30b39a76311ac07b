import type { Confirmation, RevokedSubject } from './credential.js';
import type { RuleLock } from './entry.js';
import type { KeyBinding } from './key-binding.js';
import type { EndReason, Lease, LeaseEntry } from './lease.js';
import type { EndRefusal, RefusalKind } from './refusal.js';
import type { BlockCause, Run, RunState } from './run.js';
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

/** What a renewal changed. */
export interface Renewed {
  readonly leaseId: string;
  readonly ttl: Micros;
  readonly expiresAt: Micros;
  readonly progressMarker: string | null;
  readonly progressAt: Micros;
}

/** Denied checks of a short while, together: they are facts, not state changes (A1). */
export interface DenialCount {
  readonly reason: string;
  readonly resource: string;
  readonly action: string;
  /** Of the run that holds the lease; empty when there is no such lease. */
  readonly runId: string;
  /** The run that the target named, where it is not the holder: a claim, not a fact. */
  readonly presentedRun: string;
  readonly target: string;
  readonly count: number;
  /** Of the first of them, by which each is found. */
  readonly requestIds: readonly string[];
  /** What an `observe` kind allowed all the same. */
  readonly observedOnly: boolean;
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
      /** After lost history nobody is granted anything of a local kind before this; null: there is no such time. */
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
      readonly kind: 'lease_reexpanded';
      readonly leaseId: string;
      readonly generation: number;
      readonly entries: readonly LeaseEntry[];
      readonly ruleLocks: readonly RuleLock[];
    }
  | {
      readonly kind: 'lease_ended';
      readonly leaseId: string;
      readonly endReason: EndReason;
      readonly reason: string;
      /** What it held of local kinds is kept from other runs until then; null: nothing is. */
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
  | { readonly kind: 'checks_denied'; readonly denials: readonly DenialCount[] }
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
