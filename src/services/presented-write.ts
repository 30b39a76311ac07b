import { MAX_CREDENTIAL_BYTES } from '../auth/credentials.js';
import { credentialIn, fencingTokensIn, isLeaseId, NO_LEASE, observedVersionIn } from '../route-table/index.js';

/** What a request to a service presents with its writes: by whose authority, with which tokens, from which version. */

/** The headers in question, each with every value that was sent. */
export interface PresentedHeaders {
  readonly authorization: readonly string[];
  readonly lease: readonly string[];
  readonly fencingToken: readonly string[];
  readonly ifMatch: readonly string[];
  readonly ifNoneMatch: readonly string[];
}

/** As a fence check takes it. */
export interface Presented {
  /** Empty when a credential is given. */
  readonly leaseId: string;
  /** Empty: none. */
  readonly credential: string;
  /** One per write; 0: the credential brings it, or there is none. */
  readonly tokens: readonly number[];
  /** Empty: the run has read that there is none yet. Null: it says nothing. */
  readonly observedVersion: string | null;
  /** There is no authority at all; `leaseId` is one that cannot be. */
  readonly nothing: boolean;
}

export type ReadPresented =
  | { readonly ok: true; readonly presented: Presented }
  /** Two readings are possible, or none. */
  | { readonly ok: false; readonly message: string };

/** Up to here the check itself says that a credential is too long. */
const MAX_CREDENTIAL_LENGTH = 4 * MAX_CREDENTIAL_BYTES;

/** Reads them for a request that makes so many writes. */
export function readPresented(headers: PresentedHeaders, writes: number): ReadPresented {
  for (const [key, name] of Object.entries(NAMES))
    if (new Set(headers[key as keyof PresentedHeaders]).size > 1)
      return unclear(`${name} was sent with different values`);
  const [lease, fencingToken] = [headers.lease[0], headers.fencingToken[0]];
  const { token: credential } = credentialIn(headers.authorization[0], lease !== undefined);
  if (credential.length > MAX_CREDENTIAL_LENGTH)
    return unclear(`the credential is longer than ${MAX_CREDENTIAL_LENGTH} characters`);
  const nothing = credential === '' && lease === undefined;
  if (lease !== undefined && !isLeaseId(lease)) return unclear('writ-lease is no id of a lease');
  if (fencingToken === undefined && credential === '' && !nothing)
    return unclear('writ-lease was sent without writ-fencing-token');
  const tokens = tokensOf(credential === '' && !nothing ? fencingToken : undefined, writes);
  if (!Array.isArray(tokens)) return tokens;
  const leaseId = credential === '' ? (lease ?? NO_LEASE) : '';
  const observedVersion = observedVersionIn(headers.ifMatch[0], headers.ifNoneMatch[0]) ?? null;
  return { ok: true, presented: { leaseId, credential, tokens, observedVersion, nothing } };
}

const NAMES: Readonly<Record<keyof PresentedHeaders, string>> = {
  authorization: 'the authorization',
  lease: 'writ-lease',
  fencingToken: 'writ-fencing-token',
  ifMatch: 'If-Match',
  ifNoneMatch: 'If-None-Match',
};

const unclear = (message: string) => ({ ok: false, message }) as const;

/** What no double holds exactly is far in the future, and refused as that. */
function tokensOf(
  header: string | undefined,
  writes: number,
): number[] | { readonly ok: false; readonly message: string } {
  if (header === undefined) return Array.from({ length: writes }, () => 0);
  const parts = fencingTokensIn(header);
  if (parts === null)
    return unclear('writ-fencing-token must be a decimal number, or several with commas between them');
  if (parts.length !== 1 && parts.length !== writes)
    return unclear(`writ-fencing-token must hold one token, or one for each of the ${writes} writes of this route`);
  return Array.from({ length: writes }, (_, at) => toToken(parts[at] ?? parts[0] ?? ''));
}

/** A token in decimal digits. */
export function toToken(digits: string): number {
  const token = Number(digits);
  return Number.isSafeInteger(token) ? token : Number.POSITIVE_INFINITY;
}
