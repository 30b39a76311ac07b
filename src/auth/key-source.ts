import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
  type RemoteJWKSet,
} from 'jose';
import { monotonicMicros } from '../platform/clock.js';
import { isLoopback } from '../platform/settings.js';
import { boundedText } from './bounded-answer.js';

/** Where the public keys of an issuer are. */
export type KeyLocation =
  | { readonly kind: 'file'; readonly file: string; readonly jwks: JSONWebKeySet }
  | { readonly kind: 'uri'; readonly uri: string }
  /** At the address that the issuer's OpenID configuration names. */
  | { readonly kind: 'discovery' };

/** The keys of an issuer cannot be had now: its server is down, hangs, or answers with something else. */
export class KeysUnavailable extends Error {
  override readonly name = 'KeysUnavailable';
}

/** A request to a key server, with all it answers, ends within this. */
const TIMEOUT_MS = 5_000;
/** After a failure nobody is asked again for so long. */
const PAUSE_AFTER_FAILURE_MS = 10_000;
/** A key that is not known is looked for once in so long. */
const COOLDOWN_MS = 30_000;
/** Keys are fetched anew, beside the calls, when they are older than this, */
const REFRESH_AFTER_MS = 10 * 60_000;
/** and not used any more when they are older than this: a key that was withdrawn ends with it at the latest. */
const MAX_AGE_MS = 60 * 60_000;
const MAX_ANSWER_BYTES = 512 << 10;
const MAX_KEYS = 100;

export interface KeySourceOptions {
  readonly timeoutMs?: number;
  readonly pauseAfterFailureMs?: number;
  readonly cooldownMs?: number;
  readonly refreshAfterMs?: number;
  readonly maxAgeMs?: number;
}

/** The keys of an issuer, for `jwtVerify`: from a file, or fetched, kept and fetched anew within the bounds above. */
export function createKeySource(
  issuer: string,
  location: KeyLocation,
  options: KeySourceOptions = {},
): JWTVerifyGetKey {
  if (location.kind === 'file') return createLocalJWKSet(location.jwks);
  const source = new RemoteKeys(issuer, location.kind === 'uri' ? location.uri : null, options);
  return (header, token) => source.key(header, token);
}

/** One fetch at a time, however many ask (F20). */
class RemoteKeys {
  readonly #issuer: string;
  readonly #uri: string | null;
  readonly #timeoutMs: number;
  readonly #pauseMs: number;
  readonly #cooldownMs: number;
  readonly #refreshAfterMs: number;
  readonly #maxAgeMs: number;
  #set: RemoteJWKSet | null = null;
  #finding: Promise<RemoteJWKSet> | null = null;
  #failure: { readonly until: number; readonly message: string } | null = null;
  #fetchedAt = 0;

  constructor(issuer: string, uri: string | null, options: KeySourceOptions) {
    this.#issuer = issuer;
    this.#uri = uri;
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.#pauseMs = options.pauseAfterFailureMs ?? PAUSE_AFTER_FAILURE_MS;
    this.#cooldownMs = options.cooldownMs ?? COOLDOWN_MS;
    this.#refreshAfterMs = options.refreshAfterMs ?? REFRESH_AFTER_MS;
    this.#maxAgeMs = options.maxAgeMs ?? MAX_AGE_MS;
  }

  async key(...asked: Parameters<JWTVerifyGetKey>): Promise<Awaited<ReturnType<JWTVerifyGetKey>>> {
    const set = this.#set ?? (await this.#find());
    if (set.fresh && !set.reloading && millisNow() - this.#fetchedAt > this.#refreshAfterMs) {
      // What is known goes on being used; the next who finds it too old tries again after the pause.
      set.reload().catch(() => undefined);
    }
    try {
      return await set(...asked);
    } catch (error) {
      if (error instanceof errors.JWKSTimeout) throw this.#failed('does not answer in time');
      throw error;
    }
  }

  #find(): Promise<RemoteJWKSet> {
    this.#finding ??= this.#open().finally(() => {
      this.#finding = null;
    });
    return this.#finding;
  }

  async #open(): Promise<RemoteJWKSet> {
    const url = new URL(this.#uri ?? (await this.#discover()));
    this.#set = createRemoteJWKSet(url, {
      timeoutDuration: this.#timeoutMs,
      cooldownDuration: this.#cooldownMs,
      cacheMaxAge: this.#maxAgeMs,
      [customFetch]: async (address, { signal, headers }) => {
        const { keys } = await this.#fetch(address, signal, headers);
        if (!Array.isArray(keys) || keys.length > MAX_KEYS) throw this.#failed('does not answer with a key set');
        this.#fetchedAt = millisNow();
        return Response.json({ keys });
      },
    });
    return this.#set;
  }

  /** The issuer's own word where its keys are (OpenID Connect Discovery); it must name itself exactly. */
  async #discover(): Promise<string> {
    const address = `${this.#issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    const { issuer, jwks_uri } = await this.#fetch(address, AbortSignal.timeout(this.#timeoutMs));
    if (issuer !== this.#issuer) throw this.#failed('has a configuration of another issuer');
    if (typeof jwks_uri !== 'string' || !URL.canParse(jwks_uri)) throw this.#failed('names no jwks_uri');
    const { protocol, hostname } = new URL(jwks_uri);
    if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
      throw this.#failed('has a jwks_uri that is no https URL');
    return jwks_uri;
  }

  async #fetch(address: string, signal: AbortSignal, headers?: Headers): Promise<Record<string, unknown>> {
    if (this.#failure !== null && millisNow() < this.#failure.until) throw new KeysUnavailable(this.#failure.message);
    let answer: unknown;
    try {
      const response = await fetch(address, {
        redirect: 'error',
        signal,
        ...(headers === undefined ? {} : { headers }),
      });
      if (response.status !== 200) throw this.#failed(`answers ${response.status}`);
      answer = JSON.parse(await boundedText(response, MAX_ANSWER_BYTES));
    } catch (error) {
      if (error instanceof KeysUnavailable) throw error;
      throw this.#failed(
        signal.aborted ? 'does not answer in time' : 'cannot be reached, or answers with no JSON',
        error,
      );
    }
    if (typeof answer !== 'object' || answer === null) throw this.#failed('answers with no JSON object');
    this.#failure = null;
    return answer as Record<string, unknown>;
  }

  #failed(what: string, cause?: unknown): KeysUnavailable {
    const message = `the key server of the issuer ${this.#issuer} ${what}`;
    this.#failure = { until: millisNow() + this.#pauseMs, message };
    return new KeysUnavailable(message, { cause });
  }
}

function millisNow(): number {
  return monotonicMicros() / 1_000;
}
