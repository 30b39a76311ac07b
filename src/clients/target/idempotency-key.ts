import { createHash } from 'node:crypto';
import canonicalizeModule from 'canonicalize';
import { ProblemError } from './problem-error.js';

// The package's types are for another module system.
const canonicalize = canonicalizeModule as unknown as (value: unknown) => string | undefined;

/** Longest key, in characters. */
const MAX_KEY_LENGTH = 255;

/**
 * The key of an `Idempotency-Key` header: a quoted string, as the IETF draft has it, or the bare token that most clients
 * send. Throws a ProblemError: 428 without one, 400 for what is none.
 *
 * @example
 * readIdempotencyKey('"8e03978e-40d5-43dd-bc93-6894a57f9324"'); // '8e03978e-40d5-43dd-bc93-6894a57f9324'
 */
export function readIdempotencyKey(header: string | undefined): string {
  if (header === undefined) {
    throw new ProblemError({
      status: 428,
      code: 'idempotency_key_required',
      detail: 'This request needs an Idempotency-Key, so that sending it again cannot do it twice.',
      next: 'Make a key for this one intent, such as a UUID, keep it, and send the same one with every retry.',
    });
  }
  const text = header.trim();
  const quoted = /^"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"$/.exec(text)?.[1]?.replaceAll(/\\(["\\])/g, '$1');
  const key = quoted ?? (/^[\w.:~+/=@-]+$/.test(text) ? text : '');
  if (key !== '' && key.length <= MAX_KEY_LENGTH) return key;
  throw new ProblemError({
    status: 400,
    code: 'malformed_idempotency_key',
    detail: `Idempotency-Key must be one string of 1 to ${MAX_KEY_LENGTH} printable ASCII characters, in double quotes.`,
  });
}

/** What a retry must have in common with the first request. */
export interface FingerprintedRequest {
  readonly method: string;
  /** With its query, as it was sent. */
  readonly path: string;
  /** `If-Match` and `If-None-Match`, as they were sent. */
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
  readonly contentType?: string | undefined;
  /** Bytes as they were sent, or what a parser has made of them; undefined: the request has no body. */
  readonly body: unknown;
}

/**
 * SHA-256 over method, path, precondition and body. Of JSON the canonical form counts (RFC 8785): another order of members
 * or other spaces are the same request. Anything else counts byte by byte.
 */
export function fingerprintOf({ method, path, ifMatch, ifNoneMatch, contentType, body }: FingerprintedRequest): string {
  const parts = { method, path, ifMatch, ifNoneMatch, body: bodyForm(body, contentType ?? '') };
  return sha256(canonicalize(parts) as string);
}

function bodyForm(body: unknown, contentType: string): object | undefined {
  if (body === undefined) return undefined;
  if (!(body instanceof Uint8Array)) return { json: canonicalForm(body) };
  if (body.byteLength === 0) return undefined;
  if (!/^application\/(?:[\w.+-]+\+)?json\b/i.test(contentType)) return { sha256: sha256(body) };
  try {
    return { json: canonicalForm(JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))) };
  } catch {
    // Not JSON, or too deep to walk: the handler decides what it thinks of that; here the bytes count.
    return { sha256: sha256(body) };
  }
}

const canonicalForm = (value: unknown): string => sha256(canonicalize(value) as string);

const sha256 = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex');
