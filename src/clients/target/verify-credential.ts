import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import { Credential, claimsSchema } from './credential.js';
import { CredentialClock } from './credential-clock.js';
import { CredentialRefused, parseHeader } from './credential-refused.js';
import { type DpopOptions, DpopVerifier, type PresentedProof } from './dpop.js';

/** How credentials are verified. Without an issuer and an audience there is no verifier. */
export interface VerifierOptions {
  /** The coordinator's WRIT_ISSUER, letter by letter. */
  readonly issuer: string;
  /** The name of this target's principal: a credential for another target is refused. */
  readonly audience: string;
  /** Where the keys are: the URL of `/.well-known/jwks.json`, or the keys themselves. */
  readonly keys: URL | JSONWebKeySet;
  /** Refuse credentials that are bound to no key, and so are good for whoever has them. Default false. */
  readonly requireBinding?: boolean;
  /** Accept DPoP proofs (RFC 9449). Absent: a credential bound to a DPoP key is refused. */
  readonly dpop?: DpopOptions;
}

/** What came with the credential, as the target itself saw it. */
export interface Presented {
  /** SHA-256 of the client certificate of the TLS session, base64url (RFC 8705). Never from a header that anybody can set. */
  readonly certificateThumbprint?: string;
  /** What the request proves the key of a bound credential by (RFC 9449). */
  readonly dpop?: PresentedProof;
}

/** Says whether a credential is genuine; whether its lease still lives only the coordinator knows. */
export interface CredentialVerifier {
  /**
   * The credential, if it is genuine, for this target, in time, and presented by whom it is bound to; else rejects with a
   * CredentialRefused. What it allows: `credential.covers({resource, action})`.
   */
  verifyCredential(token: string, presented?: Presented): Promise<Credential>;
  /** A nonce for the `DPoP-Nonce` header; undefined when none is asked for. */
  nonce(): string | undefined;
}

/** RFC 9068's type of a JWT access token. */
const TYPE = 'at+jwt';
const ALGORITHMS = ['ES256'];
/** No credential lives longer; what claims to is refused whatever its exp says. */
const MAX_AGE_SECONDS = 60;
/** Of this machine's clock against the coordinator's: credentials end earlier than their lease by as much, and the skew. */
const CLOCK_TOLERANCE_SECONDS = 5;
const MAX_TOKEN_LENGTH = 16_384;
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]*$/;
const FETCH_TIMEOUT_MS = 5_000;

/** How often keys are fetched: once in each of these at most, however many credentials come (F20). */
export interface KeyTimes {
  /** They are not used when they are older. Default: as the coordinator's cache header says. */
  readonly maxAgeMs: number;
  /** A key that is not known is looked for when what is known is older: made-up key ids cost one fetch a window. */
  readonly cooldownMs: number;
  /** After a failure nobody is asked for so long. */
  readonly pauseAfterFailureMs: number;
}

const KEY_TIMES: KeyTimes = { maxAgeMs: 300_000, cooldownMs: 30_000, pauseAfterFailureMs: 5_000 };

const REQUIRED_CLAIMS = [
  'iss',
  'aud',
  'sub',
  'client_id',
  'act',
  'jti',
  'iat',
  'exp',
  'txn',
  'namespace',
  'authorization_details',
];

/**
 * Verifies credentials without asking the coordinator: for kinds with `validation: local`, and as a first gate for all
 * others. Throws when issuer or audience are missing. One instance per target: it caches the keys, has at most one fetch
 * of them in flight, and remembers DPoP proofs.
 *
 * @example
 * const verifier = createCredentialVerifier({
 *   issuer: 'https://writ.example', audience: 'svc:release-api', keys: new URL('https://writ.example/.well-known/jwks.json'),
 * });
 * const credential = await verifier.verifyCredential(bearerToken);
 * const answer = credential.covers({ resource: 'release/prod-eu', action: 'promote' });
 */
export function createCredentialVerifier(options: VerifierOptions): CredentialVerifier {
  return verifierWith(options, KEY_TIMES);
}

/** The same with other times, which tests need; not exported from the package. */
export function verifierWith(options: VerifierOptions, times: KeyTimes): CredentialVerifier {
  const { issuer, audience, keys } = options;
  if (typeof issuer !== 'string' || issuer === '') throw new TypeError('a verifier needs the issuer it believes');
  if (typeof audience !== 'string' || audience === '') throw new TypeError('a verifier needs the audience that it is');
  if (!(keys instanceof URL) && !Array.isArray(keys?.keys))
    throw new TypeError('a verifier needs keys: the URL of the key set, as a URL object, or the key set itself');
  const clock = new CredentialClock();
  const { find, known } = keySource(keys, clock, times);
  const dpop =
    options.dpop === undefined ? null : new DpopVerifier(options.dpop, { issuer, audience, keys: known }, clock);
  return {
    nonce: () => dpop?.nonce(),
    async verifyCredential(token, presented = {}) {
      checkForm(token);
      const payload = await jwtVerify(token, find, {
        algorithms: ALGORITHMS,
        typ: TYPE,
        issuer,
        audience,
        requiredClaims: REQUIRED_CLAIMS,
        maxTokenAge: MAX_AGE_SECONDS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        // Looked at when the signature is verified: fetching the keys tells the time as well.
        get currentDate() {
          return new Date(clock.now());
        },
      }).then((verified) => verified.payload, rejectWith);
      const claims = claimsSchema.safeParse(payload);
      if (!claims.success) {
        const issue = claims.error.issues[0];
        throw new CredentialRefused('claim_invalid', `claim ${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`);
      }
      const credential = new Credential(claims.data);
      await checkBinding(credential, token, presented, dpop, options.requireBinding ?? false);
      return credential;
    },
  };
}

/** Where a key is found, and all that are known now. */
function keySource(
  keys: URL | JSONWebKeySet,
  clock: CredentialClock,
  { maxAgeMs, cooldownMs, pauseAfterFailureMs }: KeyTimes,
): { find: JWTVerifyGetKey; known: () => JSONWebKeySet } {
  if (!(keys instanceof URL)) return { find: createLocalJWKSet(keys), known: () => keys };
  let failedAt = Number.NEGATIVE_INFINITY;
  const remote = createRemoteJWKSet(keys, {
    timeoutDuration: FETCH_TIMEOUT_MS,
    cooldownDuration: cooldownMs,
    cacheMaxAge: maxAgeMs,
    [customFetch]: async (url, init) => {
      if (performance.now() - failedAt < pauseAfterFailureMs)
        throw new Error('the key server failed a moment ago, and is not asked again yet');
      try {
        const response = await fetch(url, init);
        if (!response.ok) failedAt = performance.now();
        clock.tell(response.headers.get('date'), response.headers.get('age'));
        return response;
      } catch (error) {
        failedAt = performance.now();
        throw error;
      }
    },
  });
  return { find: remote, known: () => remote.jwks() ?? { keys: [] } };
}

/** What is cheap to see before anything is decoded or verified, so that rubbish costs little. */
function checkForm(token: string): void {
  // Also what a request did not bring, where nobody looked before: that is a refusal, and no fault of the service.
  if (typeof token !== 'string') throw new CredentialRefused('malformed', 'it is no text');
  if (token.length > MAX_TOKEN_LENGTH)
    throw new CredentialRefused('oversize', `a credential has at most ${MAX_TOKEN_LENGTH} characters`);
  // Decoders of base64 pass over what does not belong there; one credential has one form.
  if (!COMPACT.test(token)) throw new CredentialRefused('malformed', 'it is no JWT');
  const header = parseHeader(token);
  const { alg, typ, kid, ...others } = header;
  const [unexpected] = Object.keys(others);
  // jku, jwk, x5u and x5c would let the credential choose its own key; crit and b64 would change what is signed.
  if (unexpected !== undefined)
    throw new CredentialRefused(
      'header_not_allowed',
      `the header parameter ${JSON.stringify(unexpected.slice(0, 32))}`,
    );
  if (typeof alg !== 'string' || !ALGORITHMS.includes(alg))
    throw new CredentialRefused('alg_not_allowed', `it must be signed with ${ALGORITHMS.join(' or ')}`);
  if (typ !== TYPE) throw new CredentialRefused('wrong_type', `its type must be ${TYPE}`);
  if (typeof kid !== 'string' || kid === '' || kid.length > 128)
    throw new CredentialRefused('unknown_key', 'it names no key');
}

async function checkBinding(
  { claims }: Credential,
  token: string,
  presented: Presented,
  dpop: DpopVerifier | null,
  required: boolean,
): Promise<void> {
  const { cnf } = claims;
  if (cnf === undefined && required)
    throw new CredentialRefused('not_bound', 'it is bound to no key, which this target demands');
  // A proof beside a credential that is not bound to its key says nothing; taking it for more would be a mistake.
  if (presented.dpop !== undefined && !(cnf !== undefined && 'jkt' in cnf))
    throw new CredentialRefused('not_bound', 'it is bound to no DPoP key');
  if (cnf === undefined) return;
  if ('x5t#S256' in cnf) {
    if (presented.certificateThumbprint === undefined)
      throw new CredentialRefused('not_bound', 'it is bound to a client certificate, and none was shown');
    if (presented.certificateThumbprint !== cnf['x5t#S256'])
      throw new CredentialRefused('binding_mismatch', 'it is bound to another client certificate');
    return;
  }
  if (presented.dpop === undefined)
    throw new CredentialRefused('proof_missing', 'it is bound to a DPoP key, and no proof was presented');
  if (dpop === null) throw new CredentialRefused('proof_invalid', 'this target accepts no DPoP proofs');
  await dpop.check(token, presented.dpop);
}

/**
 * The library's errors as stable reasons; its messages are written for developers and hold no secrets. The errors
 * themselves carry all claims, the lease id among them, and whoever logs an error logs its causes: they stay here.
 */
function rejectWith(error: unknown): never {
  throw refusalOf(error);
}

function refusalOf(error: unknown): CredentialRefused {
  const refused = (reason: ConstructorParameters<typeof CredentialRefused>[0]): CredentialRefused =>
    new CredentialRefused(reason, messageOf(error));
  if (error instanceof errors.JWTExpired) return refused(error.claim === 'iat' ? 'too_old' : 'expired');
  if (error instanceof errors.JWTClaimValidationFailed) {
    if (error.reason === 'missing') return refused('claim_missing');
    if (error.reason === 'invalid') return refused('claim_invalid');
    const byClaim = {
      iss: 'wrong_issuer',
      aud: 'wrong_audience',
      typ: 'wrong_type',
      nbf: 'not_yet_valid',
      iat: 'not_yet_valid',
    };
    return refused((byClaim as Record<string, 'claim_invalid'>)[error.claim] ?? 'claim_invalid');
  }
  if (error instanceof errors.JOSEAlgNotAllowed) return refused('alg_not_allowed');
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return refused('unknown_key');
  if (error instanceof errors.JWSSignatureVerificationFailed) return refused('bad_signature');
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid) return refused('malformed');
  return new CredentialRefused('keys_unavailable', messageOf(error), { cause: error });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
