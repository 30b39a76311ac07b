import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { decodeJwt, type JSONWebKeySet } from 'jose';
import {
  type AuthorizationServer,
  clockSkew,
  clockTolerance,
  customFetch,
  OperationProcessingError,
  validateJwtAccessToken,
} from 'oauth4webapi';
import type { CredentialClock } from './credential-clock.js';
import { CredentialRefused } from './credential-refused.js';

/** How DPoP proofs (RFC 9449) are checked. */
export interface DpopOptions {
  /** Demand a nonce that this target gave out lately (`DPoP-Nonce`), so that proofs cannot be made in advance. Default false. */
  readonly requireNonce?: boolean;
  /** Secret of the nonces, 32 bytes or more, shared by the instances of one target. Default: random, of this instance. */
  readonly nonceSecret?: Uint8Array;
  /** Proofs remembered against replay, by this instance; more than that at once are refused. Default 100,000. */
  readonly maxRemembered?: number;
}

/** A proof, and the request it must be for. */
export interface PresentedProof {
  /** The `DPoP` header. */
  readonly proof: string;
  /** Of the request that the proof came with, such as `POST`. */
  readonly method: string;
  /** As the caller addressed it; query and fragment do not count. */
  readonly url: string;
}

interface Believed {
  readonly issuer: string;
  readonly audience: string;
  readonly keys: () => JSONWebKeySet;
}

const MAX_PROOF_LENGTH = 8_192;
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** A proof is made for one request: an old one is refused, and remembered as long as it would be accepted. */
const MAX_PROOF_AGE_SECONDS = 60;
const CLOCK_TOLERANCE_SECONDS = 5;
const NONCE_WINDOW_MS = 60_000;
/** The library wants a key server; it is asked through `customFetch`, which answers with the keys at hand. */
const KEYS_AT_HAND = 'https://keys.invalid/';

/** Checks proofs: that of this key, for this request and credential, made lately, and never seen before. */
export class DpopVerifier {
  readonly #options: DpopOptions;
  readonly #believed: Believed;
  readonly #clock: CredentialClock;
  readonly #secret: Uint8Array;
  /** Until when each proof is remembered, oldest first. */
  readonly #seen = new Map<string, number>();

  constructor(options: DpopOptions, believed: Believed, clock: CredentialClock) {
    this.#options = options;
    this.#believed = believed;
    this.#clock = clock;
    this.#secret = options.nonceSecret ?? randomBytes(32);
    if (this.#secret.length < 32) throw new TypeError('the secret of the nonces must have at least 32 bytes');
  }

  nonce(): string | undefined {
    return this.#options.requireNonce === true ? this.#nonceOf(this.#window()) : undefined;
  }

  async check(token: string, { proof, method, url }: PresentedProof): Promise<void> {
    if (proof.length > MAX_PROOF_LENGTH) throw new CredentialRefused('proof_invalid', 'the proof is too long');
    if (!COMPACT.test(proof)) throw new CredentialRefused('proof_invalid', 'the proof is no JWT');
    const headers = { authorization: `DPoP ${token}`, dpop: proof };
    const { issuer, audience, keys } = this.#believed;
    // Made anew for each call, since the library keeps keys by this object.
    const server: AuthorizationServer = { issuer, jwks_uri: KEYS_AT_HAND };
    try {
      await validateJwtAccessToken(server, new Request(url, { method, headers }), audience, {
        requireDPoP: true,
        signingAlgorithms: ['ES256'],
        [clockTolerance]: CLOCK_TOLERANCE_SECONDS,
        [clockSkew]: Math.round((this.#clock.now() - Date.now()) / 1_000),
        [customFetch]: async () => Response.json(keys()),
      });
    } catch (error) {
      const mismatch = error instanceof OperationProcessingError && /confirmation mismatch/.test(error.message);
      // The library's error stays here: it carries the request's headers, and whoever logs an error logs its causes.
      throw new CredentialRefused(
        mismatch ? 'binding_mismatch' : 'proof_invalid',
        error instanceof Error ? error.message : String(error),
      );
    }
    const { iat = 0, jti = '', nonce } = decodeJwt(proof);
    this.#checkFresh(iat);
    if (this.#options.requireNonce === true && !this.#accepts(nonce))
      throw new CredentialRefused('proof_nonce_required', 'the proof must carry the nonce of the DPoP-Nonce header');
    this.#remember(jti, iat);
  }

  #checkFresh(iat: number): void {
    const age = this.#clock.now() / 1000 - iat;
    if (age > MAX_PROOF_AGE_SECONDS + CLOCK_TOLERANCE_SECONDS || age < -CLOCK_TOLERANCE_SECONDS)
      throw new CredentialRefused('proof_invalid', 'the proof was not made just now');
  }

  #remember(jti: string, iat: number): void {
    const now = this.#clock.now();
    for (const [known, until] of this.#seen) {
      if (until > now) break;
      this.#seen.delete(known);
    }
    const id = createHash('sha256').update(jti).digest('base64url');
    if (this.#seen.has(id)) throw new CredentialRefused('proof_replayed', 'the proof was used before');
    const bound = this.#options.maxRemembered ?? 100_000;
    if (this.#seen.size >= bound)
      throw new CredentialRefused('proof_limit', `${bound} proofs are remembered already; try again shortly`);
    // From now, not from iat: the order of the map is that of the ends.
    const lifeMs = (MAX_PROOF_AGE_SECONDS + 2 * CLOCK_TOLERANCE_SECONDS) * 1000;
    this.#seen.set(id, now + Math.max(lifeMs, iat * 1000 - now + lifeMs));
  }

  #window(): number {
    return Math.floor(this.#clock.now() / NONCE_WINDOW_MS);
  }

  #nonceOf(window: number): string {
    return createHmac('sha256', this.#secret).update(`writ dpop nonce ${window}`).digest('base64url');
  }

  /** Of this window or the one before. */
  #accepts(nonce: unknown): boolean {
    if (typeof nonce !== 'string') return false;
    const given = Buffer.from(nonce);
    return [this.#window(), this.#window() - 1].some((window) => {
      const expected = Buffer.from(this.#nonceOf(window));
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  }
}
