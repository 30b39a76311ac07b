import { decodeJwt } from 'jose';

/**
 * What a request presents with its writes, header by header: read in one way by the target kit and for gateways, or a run
 * would have to know which of the two stands before a service. Nothing here is believed yet.
 */

/**
 * Ids of leases have 32 hexadecimal digits. A write without any authority is checked as one under a lease that is not
 * there: it is denied and recorded like every other, and an `observe` kind lets it through (C14).
 */
export const NO_LEASE = 'none';

const SCHEME_AND_TOKEN = /^(bearer|dpop) +([\x21-\x7e]+) *$/i;
const LEASE = /^[\x21-\x7e]{1,128}$/;
const TOKEN = /^[1-9]\d{0,19}$/;
/** One strong entity tag (RFC 9110): what is between the quotes is the version. */
const ENTITY_TAG = /^\s*"([\x21\x23-\x7e\x80-\xff]+)"\s*$/;
const MAX_VERSION_BYTES = 256;

/** A credential as it was presented. */
export interface PresentedCredential {
  /** Empty: there is none. */
  readonly token: string;
  /** It came by the scheme that goes with a proof of its key (RFC 9449). */
  readonly withProof: boolean;
}

/**
 * The credential in an authorization. Beside `writ-lease` a bearer that is none of Writ's is how the service knows its
 * callers, and does not count here.
 */
export function credentialIn(authorization: string | undefined, hasLease: boolean): PresentedCredential {
  const [, scheme = '', token = ''] = SCHEME_AND_TOKEN.exec(authorization ?? '') ?? [];
  const withProof = scheme.toLowerCase() === 'dpop';
  return !hasLease || withProof || isCredential(token) ? { token, withProof } : { token: '', withProof: false };
}

/** Whether an authorization is a credential of Writ, genuine or not. */
export function presentsCredential(authorization: string): boolean {
  return isCredential(SCHEME_AND_TOKEN.exec(authorization)?.[2] ?? '');
}

/** Whether a token is meant as a credential of Writ; whether it is genuine only who verifies it can tell. */
function isCredential(token: string): boolean {
  try {
    const { authorization_details: details } = decodeJwt<{ authorization_details?: unknown }>(token);
    return Array.isArray(details) && details.some((detail) => /^writ_/.test(String(detail?.type)));
  } catch {
    return false;
  }
}

/** Whether a text can be what `writ-lease` carries. */
export const isLeaseId = (text: string): boolean => LEASE.test(text);

/** The tokens of `writ-fencing-token`, with commas between them, in decimal digits; null: it is something else. */
export function fencingTokensIn(header: string): readonly string[] | null {
  const parts = header.split(',').map((part) => part.trim());
  return parts.every((part) => TOKEN.test(part)) ? parts : null;
}

/**
 * The version that a run says it has read: If-Match with one strong tag, or empty for If-None-Match: *, that there is none
 * yet; undefined: it says nothing. Whether it is current only the service can tell (W1).
 */
export function observedVersionIn(ifMatch: string | undefined, ifNoneMatch: string | undefined): string | undefined {
  const version = ENTITY_TAG.exec(ifMatch ?? '')?.[1];
  if (version !== undefined && Buffer.byteLength(version) <= MAX_VERSION_BYTES) return version;
  return ifNoneMatch?.trim() === '*' ? '' : undefined;
}
