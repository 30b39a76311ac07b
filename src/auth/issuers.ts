import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { Fault } from '../domain/fault.js';
import { wallClockMicros } from '../platform/clock.js';
import { type ClaimsMapper, compileMappings, type MappingEntry } from './claims.js';
import { createKeySource, type KeyLocation, KeysUnavailable } from './key-source.js';
import type { Principal } from './principal.js';

/**
 * Tokens that somebody else issued and signed: service account tokens of Kubernetes, JWT-SVIDs of SPIFFE, OpenID
 * Connect. `jose` verifies, with everything pinned; nothing of a token counts before its signature does, except to
 * turn it away.
 */
export interface IssuerEntry {
  /** The only `iss`. */
  readonly issuer: string;
  /** One of these must be in `aud`. */
  readonly audience: readonly string[];
  readonly algorithms: readonly string[];
  /** The only `typ`; null: any. */
  readonly typ: string | null;
  readonly maxTokenAgeSeconds: number;
  readonly clockToleranceSeconds: number;
  readonly keys: KeyLocation;
  readonly mappings: readonly MappingEntry[];
  /** The claim that names a person, on whose behalf runs may be created (I2); null: its tokens prove no initiator. */
  readonly initiatorClaim: string | null;
}

/** A verified token. */
export interface VerifiedToken {
  readonly principal: Principal;
  /** Milliseconds since 1970 until which this may be remembered. */
  readonly until: number;
  /** Thumbprint of the certificate that the token may be presented with alone; null: it is not bound. */
  readonly boundTo: string | null;
}

/** Verifications that one issuer may have under way: beyond it new tokens wait for nobody, known ones are not concerned. */
const MAX_UNDER_WAY = 64;
const MAX_REMEMBERED = 10_000;
/** A result is not remembered for longer, so that a key that was withdrawn ends it. */
const REMEMBER_MS = 5 * 60_000;

interface Issuer extends IssuerEntry {
  readonly key: JWTVerifyGetKey;
  readonly map: ClaimsMapper;
  underWay: number;
}

/** Makes the source of an issuer's keys; one that is kept across a change of the file keeps what it has fetched. */
export type KeySources = (issuer: string, keys: KeyLocation) => JWTVerifyGetKey;

export class Issuers {
  readonly #issuers: ReadonlyMap<string, Issuer>;
  readonly #remembered = new Map<string, VerifiedToken>();

  constructor(
    entries: readonly IssuerEntry[],
    principals: ReadonlyMap<string, Principal>,
    sourceOf: KeySources = createKeySource,
  ) {
    this.#issuers = new Map(
      entries.map((entry) => [
        entry.issuer,
        {
          ...entry,
          key: sourceOf(entry.issuer, entry.keys),
          map: compileMappings(entry.mappings, principals),
          underWay: 0,
        },
      ]),
    );
  }

  /** Whether the token has the form of one that an issuer could have made. */
  couldBe(token: string): boolean {
    return this.#issuers.size > 0 && JWT.test(token);
  }

  /**
   * The person whose token it is (I2), the subject_token of RFC 8693; throws a Fault. With a `may_act` the token itself
   * says who may act for the person, and that must be the caller. A token that is bound to a key cannot be handed on.
   */
  async initiatorOf(token: string, caller: string): Promise<string> {
    const issuer = this.#select(token);
    const { initiatorClaim } = issuer;
    if (initiatorClaim === null) throw rejected('issuer', 'tokens of this issuer name no initiators');
    const claims = await this.#underWay(issuer, () => claimsOf(issuer, token));
    if (bindingOf(claims) !== null) throw rejected('binding', 'the token is bound to a key of the person');
    const { may_act: mayAct } = claims;
    if (mayAct !== undefined && (mayAct as { sub?: unknown } | null)?.sub !== caller)
      throw rejected('may_act', 'the token names somebody else who may act for the person');
    const person = claims[initiatorClaim];
    if (typeof person !== 'string' || !PERSON.test(person) || Buffer.byteLength(person) > MAX_PERSON_BYTES)
      throw rejected('claims', `the token has no name of a person in ${initiatorClaim}`);
    return person;
  }

  /** Verifies a token; throws a Fault. `digest` is its SHA-256, by which the result is remembered. */
  verify(token: string, digest: Buffer): VerifiedToken | Promise<VerifiedToken> {
    const key = digest.toString('base64');
    const known = this.#remembered.get(key);
    if (known !== undefined) {
      if (nowMs() < known.until) return known;
      this.#remembered.delete(key);
    }
    // What costs little first: nothing is believed here, and most of what is wrong is found.
    const issuer = this.#select(token);
    return this.#underWay(issuer, async () => this.#remember(key, await this.#verify(issuer, token)));
  }

  #underWay<T>(issuer: Issuer, work: () => Promise<T>): Promise<T> {
    if (issuer.underWay >= MAX_UNDER_WAY) {
      throw new Fault(
        'unavailable',
        'AUTHENTICATION_BUSY',
        'too many new tokens of this issuer are being verified; try again',
      );
    }
    issuer.underWay += 1;
    return work().finally(() => {
      issuer.underWay -= 1;
    });
  }

  /** The issuer that the token claims to be of, when it could be. */
  #select(token: string): Issuer {
    let alg: unknown;
    let claims: JWTPayload;
    try {
      ({ alg } = decodeProtectedHeader(token));
      claims = decodeJwt(token);
    } catch {
      throw rejected('malformed', 'the token is no JWT that can be read');
    }
    const issuer = typeof claims.iss === 'string' ? this.#issuers.get(claims.iss) : undefined;
    if (issuer === undefined) throw rejected('issuer', 'the token is of an issuer that is not configured here');
    if (typeof alg !== 'string' || !issuer.algorithms.includes(alg))
      throw rejected('algorithm', 'the token is signed by an algorithm that its issuer is not configured for');
    if (typeof claims.exp !== 'number') throw rejected('claims', 'the token has no exp');
    if (claims.exp + issuer.clockToleranceSeconds <= nowMs() / 1_000) throw expired();
    return issuer;
  }

  async #verify(issuer: Issuer, token: string): Promise<VerifiedToken> {
    const claims = await claimsOf(issuer, token);
    const boundTo = bindingOf(claims);
    const mapped = issuer.map(claims);
    if (!mapped.ok) throw rejected('unmapped', `the token is verified, and stands for nobody here: ${mapped.problem}`);
    const { exp = 0, iat = 0 } = claims;
    const until = Math.min(nowMs() + REMEMBER_MS, exp * 1_000, (iat + issuer.maxTokenAgeSeconds) * 1_000);
    return { principal: mapped.principal, until, boundTo };
  }

  #remember(key: string, verified: VerifiedToken): VerifiedToken {
    if (this.#remembered.size >= MAX_REMEMBERED) {
      const [oldest = ''] = this.#remembered.keys();
      this.#remembered.delete(oldest);
    }
    this.#remembered.set(key, verified);
    return verified;
  }
}

/** The claims of a token, once everything about it is verified; rejects with a Fault. */
async function claimsOf(issuer: Issuer, token: string): Promise<JWTPayload> {
  try {
    const { payload } = await jwtVerify(token, issuer.key, {
      algorithms: [...issuer.algorithms],
      issuer: issuer.issuer,
      audience: [...issuer.audience],
      ...(issuer.typ === null ? {} : { typ: issuer.typ }),
      requiredClaims: ['exp', 'iat'],
      maxTokenAge: issuer.maxTokenAgeSeconds,
      clockTolerance: issuer.clockToleranceSeconds,
      currentDate: new Date(nowMs()),
    });
    return payload;
  } catch (error) {
    throw toFault(error);
  }
}

/** What a name of a person may consist of: it is shown to people and written to the log. */
const PERSON = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+$/u;
const MAX_PERSON_BYTES = 256;

const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/** RFC 7800: a token that is bound to a key is worth nothing without it, so a binding that is not understood refuses. */
function bindingOf({ cnf }: JWTPayload): string | null {
  if (cnf === undefined) return null;
  const methods = typeof cnf === 'object' && cnf !== null ? Object.entries(cnf) : [];
  const [method = ['', '']] = methods;
  if (methods.length !== 1 || method[0] !== 'x5t#S256' || typeof method[1] !== 'string')
    throw rejected('binding', 'the token is bound to a key in a way that is not supported here');
  return method[1];
}

const CAUSES: Readonly<Record<string, readonly [cause: string, message: string]>> = {
  aud: ['audience', 'the token is for another audience'],
  iss: ['issuer', 'the token is of another issuer'],
  typ: ['type', 'the token is of another type'],
  nbf: ['not_yet_valid', 'the token is not valid yet'],
  iat: ['not_yet_valid', 'the token was issued in the future, or does not say when'],
};

const MALFORMED = [errors.JWSInvalid, errors.JWTInvalid, errors.JOSENotSupported];

/** What was wrong with a token, without a word of it. */
function toFault(error: unknown): Fault {
  if (error instanceof KeysUnavailable)
    return new Fault('unavailable', 'KEYS_UNAVAILABLE', error.message, { cause: error });
  if (error instanceof errors.JWTExpired)
    return error.claim === 'iat' ? rejected('too_old', 'the token was issued too long ago') : expired();
  if (error instanceof errors.JWTClaimValidationFailed) {
    const [cause, message] = CAUSES[error.claim] ?? ['claims', `the token's ${error.claim} is missing or malformed`];
    return rejected(cause, message);
  }
  if (error instanceof errors.JWSSignatureVerificationFailed)
    return rejected('signature', 'the signature of the token is not by a key of its issuer');
  if (error instanceof errors.JOSEAlgNotAllowed)
    return rejected('algorithm', 'the token is signed by an algorithm that its issuer is not configured for');
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return rejected('key', 'the token names no key of its issuer');
  if (MALFORMED.some((kind) => error instanceof kind))
    return rejected('malformed', 'the token is no JWT that can be read');
  return rejected('key', 'the token cannot be verified with the key that it names');
}

function rejected(cause: string, message: string): Fault {
  return new Fault('unauthenticated', 'TOKEN_REJECTED', message, { metadata: { cause } });
}

function expired(): Fault {
  return new Fault('unauthenticated', 'TOKEN_EXPIRED', 'the token has expired; get a new one from its issuer', {
    metadata: { cause: 'expired' },
  });
}

function nowMs(): number {
  return wallClockMicros() / 1_000;
}
