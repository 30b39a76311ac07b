import type { EndReason } from './lease.js';
import type { Micros } from './time.js';

/** One write a target is about to accept. */
export interface ProtectedWrite {
  readonly resource: string;
  readonly action: string;
  /** As presented; beyond what a double holds exactly it is Infinity, which is in the future. 0: the credential brings it. */
  readonly token: number;
  readonly observedVersion: string | null;
}

export type FenceReason =
  | 'ok'
  | 'stale_token'
  | Exclude<EndReason, 'withdrawn' | 'timed_out' | 'refused'>
  | 'suspended'
  | 'not_covered'
  | 'action_not_allowed'
  | 'wrong_holder'
  | 'wrong_target'
  | 'unknown_lease'
  | 'future_token'
  | 'version_required'
  | 'frozen'
  | 'in_doubt'
  | 'not_granted'
  | CredentialFault;

/** Why a credential that was presented in place of a lease id allows nothing. */
export type CredentialFault =
  | 'oversize'
  | 'malformed'
  | 'header_not_allowed'
  | 'alg_not_allowed'
  | 'wrong_type'
  | 'unknown_key'
  | 'bad_signature'
  | 'wrong_issuer'
  | 'claim_missing'
  | 'claim_invalid'
  | 'wrong_audience'
  | 'credential_expired'
  | 'not_yet_valid'
  | 'not_bound'
  | 'binding_mismatch'
  | 'credential_revoked'
  | 'no_write_authority';

/** What of a lease lets a write in. */
export interface WriteHold {
  readonly token: Micros;
  /** A leased write, not an optimistic one. */
  readonly exclusive: boolean;
  /** An explicit lease (W4): held alone, and asked for by this resource's name; neither implied nor by a wider scope. */
  readonly explicit: boolean;
}

export interface WriteVerdict {
  readonly allowed: boolean;
  readonly reason: FenceReason;
  /** In words; names the resource, never a current token. */
  readonly message: string;
  /** The kind is in `observe` mode: `reason` is what `enforce` would have answered (C14). */
  readonly observedOnly: boolean;
  /** What the target's guard compares; null unless the reason is `ok`: a refused caller learns no token. */
  readonly hold: WriteHold | null;
}

export interface FenceVerdict {
  readonly allowed: boolean;
  readonly results: readonly WriteVerdict[];
  /** What is left of the lease; null when denied, or when only an `observe` kind allowed it on a lease that is over. */
  readonly validFor: Micros | null;
  /** What the target's guard keeps beside its mark (C1b); null when `validFor` is. */
  readonly holder: { readonly runId: string; readonly leaseId: string; readonly expiresAt: Micros } | null;
}
