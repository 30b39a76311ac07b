import { type CryptoKey, compactVerify, decodeProtectedHeader, errors, SignJWT } from 'jose';
import { z } from 'zod';
import type { CredentialFault } from '../domain/fence.js';
import { SIGNING_ALG } from './signing-keys.js';

/**
 * Credentials as JSON Web Tokens (RFC 9068, RFC 9396), by jose. Nothing in a token chooses how it is verified: the
 * algorithm is ours, and of its header only `kid` is looked at, among keys that we published (F18, F19).
 */

const CREDENTIAL_TYPE = 'at+jwt';
export const MAX_CREDENTIAL_BYTES = 16_384;

/** All that we put into a header. Others could let the token choose its key, or change what is signed. */
const HEADER = new Set(['alg', 'kid', 'typ']);
/** Decoders of base64 pass over what does not belong there; one credential has one form. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

const name = z.string().min(1).max(512);
const id = z.string().regex(/^[0-9a-f]{32}$/);
const thumbprint = z.string().regex(/^[A-Za-z0-9_-]{43}$/);
const second = z.int().nonnegative();
const locations = z.tuple([name]);
const path = z.string().min(1).max(1_024);

const grants = z.strictObject({
  type: z.literal('writ_write_set'),
  locations,
  actions: z.array(name).min(1),
  resources: z.array(path).min(1),
  fence: z.string().regex(/^[1-9]\d{0,15}$/),
  scope: z.enum(['exact', 'subtree']),
  concurrency: z.enum(['lease', 'optimistic']),
});
const digest = z.strictObject({
  type: z.literal('writ_write_set'),
  locations,
  digest: z.string().regex(/^sha-256:[A-Za-z0-9_-]{43}$/),
});
const proposals = z.strictObject({ type: z.literal('writ_propose'), locations, resources: z.array(path) });

/** What a credential of ours says; all of it is required unless it is optional here. */
const claims = z.strictObject({
  iss: z.string().min(1),
  aud: name,
  sub: id,
  client_id: name,
  act: z.strictObject({ sub: name }),
  jti: z.string().regex(/^[A-Za-z0-9_-]{22}$/),
  iat: second,
  exp: second,
  txn: id,
  namespace: name,
  lease_id: id.optional(),
  cnf: z.union([z.strictObject({ 'x5t#S256': thumbprint }), z.strictObject({ jkt: thumbprint })]).optional(),
  authorization_details: z.array(z.union([grants, digest, proposals])).min(1),
});

export type CredentialClaims = z.infer<typeof claims>;
export type AuthorizationDetail = CredentialClaims['authorization_details'][number];

/** A token whose signature and issuer are ours; whether it counts now is for the caller to decide. */
export type VerifiedToken =
  | { readonly ok: true; readonly claims: CredentialClaims; readonly keyId: string }
  | { readonly ok: false; readonly reason: CredentialFault };

const refused = (reason: CredentialFault): VerifiedToken => ({ ok: false, reason });

export function signCredential(signed: CredentialClaims, keyId: string, key: CryptoKey): Promise<string> {
  return new SignJWT(signed).setProtectedHeader({ alg: SIGNING_ALG, kid: keyId, typ: CREDENTIAL_TYPE }).sign(key);
}

/** Size, header, key, signature, claims, issuer, in this order; never throws for what is presented. */
export async function verifyCredential(
  token: string,
  issuer: string,
  keyFor: (keyId: string) => Promise<CryptoKey | undefined>,
): Promise<VerifiedToken> {
  if (Buffer.byteLength(token) > MAX_CREDENTIAL_BYTES) return refused('oversize');
  const header = readHeader(token);
  if (header === null) return refused('malformed');
  if (Object.keys(header).some((parameter) => !HEADER.has(parameter))) return refused('header_not_allowed');
  if (header.alg !== SIGNING_ALG) return refused('alg_not_allowed');
  if (header.typ !== CREDENTIAL_TYPE) return refused('wrong_type');
  const keyId = typeof header.kid === 'string' ? header.kid : '';
  const key = await keyFor(keyId);
  if (key === undefined) return refused('unknown_key');
  const payload = await verifiedPayload(token, key);
  if ('reason' in payload) return refused(payload.reason);
  const read = readClaims(payload.bytes);
  if (typeof read === 'string') return refused(read);
  return read.iss === issuer ? { ok: true, claims: read, keyId } : refused('wrong_issuer');
}

function readHeader(token: string): Record<string, unknown> | null {
  try {
    return COMPACT.test(token) ? { ...decodeProtectedHeader(token) } : null;
  } catch {
    return null;
  }
}

async function verifiedPayload(
  token: string,
  key: CryptoKey,
): Promise<{ readonly bytes: Uint8Array } | { readonly reason: CredentialFault }> {
  try {
    return { bytes: (await compactVerify(token, key, { algorithms: [SIGNING_ALG] })).payload };
  } catch (error) {
    if (error instanceof errors.JWSSignatureVerificationFailed) return { reason: 'bad_signature' };
    if (error instanceof errors.JOSEError) return { reason: 'malformed' };
    throw error;
  }
}

function readClaims(bytes: Uint8Array): CredentialClaims | CredentialFault {
  let payload: unknown;
  try {
    payload = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return 'malformed';
  }
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload)) return 'malformed';
  const present = payload;
  const missing = REQUIRED.some((claim) => !Object.hasOwn(present, claim));
  if (missing) return 'claim_missing';
  const parsed = claims.safeParse(payload);
  return parsed.success ? parsed.data : 'claim_invalid';
}

const REQUIRED = Object.entries(claims.shape).flatMap(([claim, schema]) =>
  schema instanceof z.ZodOptional ? [] : [claim],
);
