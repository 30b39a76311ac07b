import { decodeProtectedHeader } from 'jose';

/** Why a credential is refused: one stable code for each way in which it can be wrong. */
export type CredentialReason =
  | 'malformed'
  | 'oversize'
  | 'header_not_allowed'
  | 'alg_not_allowed'
  | 'wrong_type'
  | 'unknown_key'
  | 'keys_unavailable'
  | 'bad_signature'
  | 'wrong_issuer'
  | 'wrong_audience'
  | 'expired'
  | 'too_old'
  | 'not_yet_valid'
  | 'claim_missing'
  | 'claim_invalid'
  | 'not_bound'
  | 'binding_mismatch'
  | 'proof_missing'
  | 'proof_invalid'
  | 'proof_replayed'
  | 'proof_nonce_required'
  | 'proof_limit';

/** A credential that must not be believed. Answer 401 with the reason; `keys_unavailable` and `proof_limit` are 503. */
export class CredentialRefused extends Error {
  override readonly name = 'CredentialRefused';

  constructor(
    readonly reason: CredentialReason,
    /** What is wrong; holds no part of the credential that is a secret. */
    detail: string,
    options: ErrorOptions = {},
  ) {
    super(`the credential is refused (${reason}): ${detail}`, options);
  }

  /** The value of a `WWW-Authenticate` header (RFC 6750, RFC 9449). */
  get challenge(): string {
    if (this.reason === 'proof_nonce_required') return 'DPoP error="use_dpop_nonce"';
    return this.reason.startsWith('proof_') ? 'DPoP error="invalid_dpop_proof"' : 'Bearer error="invalid_token"';
  }
}

/** The protected header of a compact JWS, not verified. */
export function parseHeader(token: string): Record<string, unknown> {
  try {
    return decodeProtectedHeader(token) as Record<string, unknown>;
  } catch (error) {
    throw new CredentialRefused('malformed', 'it is no JWT', { cause: error });
  }
}
