import type { Confirmation } from '../../domain/credential.js';
import type { RevokeCredentialsCommand } from '../../domain/decide/revoke-credentials.js';
import type { Refusal } from '../../domain/refusal.js';
import type { SigningKey } from '../../domain/signing-keys.js';
import type { Micros } from '../../domain/time.js';
import type { At, CallContext } from './calls.js';

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

/** Credentials, and the keys that sign them. */
export interface CredentialApi {
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
}
