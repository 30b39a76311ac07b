import { createHash } from 'node:crypto';
import { type CredentialClaims, MAX_CREDENTIAL_BYTES, signCredential, verifyCredential } from '../auth/credentials.js';
import type { NewCredential } from '../domain/credential.js';
import type { CredentialFault } from '../domain/fence.js';
import { type Micros, SECOND } from '../domain/time.js';
import { claimsOf } from './credential-claims.js';
import type { KeyRing } from './key-ring.js';

/** Verified tokens that are remembered, and their bytes in all. */
const MAX_REMEMBERED = 10_000;
const MAX_REMEMBERED_BYTES = 32 << 20;

export type Verified =
  | { readonly ok: true; readonly claims: CredentialClaims; readonly keyId: string }
  | { readonly ok: false; readonly reason: CredentialFault };

export interface CredentialsOptions {
  /** `iss` of what is issued, and the only one that is accepted. */
  readonly issuer: string;
  readonly ring: KeyRing;
  readonly onLookup: (found: 'hit' | 'miss') => void;
}

/** Signs credentials, and reads those that are presented. */
export class Credentials {
  private readonly verified = new VerifiedTokens();

  constructor(private readonly options: CredentialsOptions) {}

  get issuer(): string {
    return this.options.issuer;
  }

  get ring(): KeyRing {
    return this.options.ring;
  }

  async sign(credential: NewCredential, namespace: string): Promise<string> {
    const { keyId, key } = await this.ring.signer();
    return signCredential(claimsOf(credential, namespace, this.issuer), keyId, key);
  }

  /**
   * A token's claims when it is one of ours; nothing is said of time, audience, binding or lease. That a signature is
   * right stays right, so it is remembered while its key is published and the token has not expired.
   */
  async verify(token: string): Promise<Verified> {
    if (Buffer.byteLength(token) > MAX_CREDENTIAL_BYTES) return { ok: false, reason: 'oversize' };
    const id = createHash('sha256').update(token).digest('base64');
    const now = this.ring.estimatedNow();
    const known = this.verified.find(id, now);
    if (known !== undefined && (await this.ring.verificationKey(known.keyId)) !== undefined) {
      this.options.onLookup('hit');
      return { ok: true, claims: known.claims, keyId: known.keyId };
    }
    this.options.onLookup('miss');
    const read = await verifyCredential(token, this.issuer, (keyId) => this.ring.verificationKey(keyId));
    if (!read.ok) return read;
    this.verified.add(id, { keyId: read.keyId, claims: read.claims, bytes: token.length }, now);
    return read;
  }

  /**
   * Decides by a credential that was verified, and again without it when its key had been retired by then: once
   * RetireSigningKey has returned, nothing that the key signed counts on any replica. The set is read while `decide`
   * asks the database.
   */
  async decideBy<T>(verified: Verified, decide: (verified: Verified) => Promise<T>): Promise<T> {
    if (!verified.ok) return decide(verified);
    const [decided] = await Promise.all([decide(verified), this.ring.confirm()]);
    return this.ring.isPublished(verified.keyId) ? decided : decide({ ok: false, reason: 'unknown_key' });
  }
}

interface Remembered {
  readonly keyId: string;
  readonly claims: CredentialClaims;
  readonly bytes: number;
}

/** By the token's hash; the one that was not asked for the longest leaves first. */
class VerifiedTokens {
  private readonly tokens = new Map<string, Remembered>();
  private bytes = 0;

  find(id: string, now: Micros): Remembered | undefined {
    const found = this.tokens.get(id);
    if (found === undefined) return undefined;
    this.remove(id, found);
    if (found.claims.exp * SECOND <= now) return undefined;
    this.tokens.set(id, found);
    this.bytes += found.bytes;
    return found;
  }

  add(id: string, token: Remembered, now: Micros): void {
    if (token.claims.exp * SECOND <= now) return;
    const known = this.tokens.get(id);
    if (known !== undefined) this.remove(id, known);
    this.tokens.set(id, token);
    this.bytes += token.bytes;
    for (const [oldest, { bytes }] of this.tokens) {
      if (this.tokens.size <= MAX_REMEMBERED && this.bytes <= MAX_REMEMBERED_BYTES) return;
      this.tokens.delete(oldest);
      this.bytes -= bytes;
    }
  }

  private remove(id: string, token: Remembered): void {
    this.tokens.delete(id);
    this.bytes -= token.bytes;
  }
}
