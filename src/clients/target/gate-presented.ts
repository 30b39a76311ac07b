import { randomUUID } from 'node:crypto';
import { credentialIn, fencingTokensIn, isLeaseId, observedVersionIn } from '../../route-table/index.js';

/**
 * What a request presents to a gate: the run's credential, or its lease and fencing tokens; the version it was made
 * from; its correlation. Nothing here is believed yet, and nothing names who the caller is (I1).
 */

/** Where headers are read from: those of fetch, or Node's, with names in lower case. */
export type HeaderSource =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** By what a request says that it may write. */
export type Authority =
  | {
      readonly kind: 'credential';
      readonly token: string;
      /** By its scheme a proof comes with it. */
      readonly withProof: boolean;
      readonly proof: string | undefined;
    }
  | { readonly kind: 'lease'; readonly leaseId: string; readonly tokens: readonly bigint[] }
  | { readonly kind: 'none' };

export interface Presented {
  readonly authority: Authority;
  /** The caller's, else made here; at most 128 printable ASCII characters. */
  readonly requestId: string;
  /** W3C trace context, passed on as it came. */
  readonly traceparent: string | undefined;
  /** The version that the caller says it read; empty: that there is none yet; undefined: it says nothing. */
  readonly observedVersion: string | undefined;
}

/** A header that cannot be what it is meant to be. */
export interface MalformedHeader {
  readonly malformed: string;
}

const PRINTABLE = /^[\x21-\x7e]([\x20-\x7e]{0,126}[\x21-\x7e])?$/;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;
const MAX_UINT64 = 2n ** 64n - 1n;
const MAX_TOKENS = 32;

/** Reads the headers of a request; `malformed` names the first that cannot be read. */
export function readPresented(headers: HeaderSource): Presented | MalformedHeader {
  const requestId = headerOf(headers, 'x-request-id');
  if (requestId !== undefined && !PRINTABLE.test(requestId))
    return { malformed: 'x-request-id must be 1 to 128 printable ASCII characters.' };
  const authority = readAuthority(headers);
  if ('malformed' in authority) return authority;
  const traceparent = headerOf(headers, 'traceparent');
  return {
    authority,
    requestId: requestId ?? randomUUID(),
    traceparent: traceparent !== undefined && TRACEPARENT.test(traceparent) ? traceparent : undefined,
    observedVersion: observedVersionIn(headerOf(headers, 'if-match'), headerOf(headers, 'if-none-match')),
  };
}

/** One header of fetch or of Node; several of one name as a list. */
export function headerOf(headers: HeaderSource, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined;
  const value = (headers as Readonly<Record<string, string | readonly string[] | undefined>>)[name];
  return typeof value === 'string' || value === undefined ? value : value.join(', ');
}

/** A credential of Writ counts before a lease. */
function readAuthority(headers: HeaderSource): Authority | MalformedHeader {
  const leaseId = headerOf(headers, 'writ-lease');
  const credential = credentialIn(headerOf(headers, 'authorization'), leaseId !== undefined);
  if (credential.token !== '') return { kind: 'credential', ...credential, proof: headerOf(headers, 'dpop') };
  if (leaseId === undefined) return { kind: 'none' };
  if (!isLeaseId(leaseId)) return { malformed: 'writ-lease must be one lease id.' };
  const tokens = (fencingTokensIn(headerOf(headers, 'writ-fencing-token') ?? '') ?? []).map(BigInt);
  if (tokens.length === 0 || tokens.length > MAX_TOKENS || tokens.some((one) => one > MAX_UINT64))
    return {
      malformed: 'writ-fencing-token must be the token of each write as a decimal number, separated by commas.',
    };
  return { kind: 'lease', leaseId, tokens };
}
