import { readEntityTags } from '../../route-table/index.js';

/**
 * Which version a request says it was made from (W1): `If-Match` and `If-None-Match` by RFC 9110, sections 8.8.3 and 13.1.
 */

/** On what a write depends. */
export type Precondition =
  /** The resource is at one of these versions. Weak tags are not among them: they never match (RFC 9110, 13.1.1). */
  | { readonly kind: 'versions'; readonly versions: readonly string[] }
  /** The resource is not there yet. */
  | { readonly kind: 'absent' };

/** Why a request has no precondition that a write can depend on. */
export interface PreconditionFlaw {
  readonly status: 400 | 428;
  /** Stable; the `code` of the problem to answer with. */
  readonly code: 'precondition_required' | 'malformed_precondition' | 'version_required';
  readonly detail: string;
}

/** The condition of a request, or why it has none that can be used. */
export type ReadPrecondition =
  | { readonly ok: true; readonly precondition: Precondition }
  | { readonly ok: false; readonly flaw: PreconditionFlaw };

export interface PreconditionHeaders {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

/**
 * Reads the precondition of a write. `If-Match: *` names no version, and a write that depends on none can undo what its
 * sender never saw: it is refused like a missing one (C8). `If-None-Match` is taken as `*`, for creation, only.
 *
 * @example
 * readPrecondition({ ifMatch: '"41", "42"' }); // { ok: true, precondition: { kind: 'versions', versions: ['41', '42'] } }
 */
export function readPrecondition({ ifMatch, ifNoneMatch }: PreconditionHeaders): ReadPrecondition {
  if (ifMatch !== undefined && ifNoneMatch !== undefined)
    return malformed('Send either If-Match or If-None-Match, not both.');
  if (ifNoneMatch !== undefined) {
    if (ifNoneMatch.trim() === '*') return { ok: true, precondition: { kind: 'absent' } };
    return malformed('If-None-Match of a write can only be *: create it unless it is there.');
  }
  if (ifMatch === undefined) {
    return flawed(
      428,
      'precondition_required',
      'Say which version was read: If-Match with its ETag; or If-None-Match: * to create.',
    );
  }
  if (ifMatch.trim() === '*')
    return flawed(428, 'version_required', 'If-Match: * names no version; send the ETag of the version that was read.');
  const tags = readEntityTags(ifMatch);
  if (typeof tags === 'string') return malformed(`If-Match ${tags}.`);
  const versions = tags.filter(({ weak }) => !weak).map(({ value }) => value);
  return { ok: true, precondition: { kind: 'versions', versions } };
}

const flawed = (status: 400 | 428, code: PreconditionFlaw['code'], detail: string): ReadPrecondition => ({
  ok: false,
  flaw: { status, code, detail },
});
const malformed = (detail: string) => flawed(400, 'malformed_precondition', detail);

/**
 * The strong ETag of a version.
 *
 * @example
 * etagOf(41); // '"41"'
 */
export function etagOf(version: string | number | bigint): string {
  const text = String(version);
  if (!/^[\x21\x23-\x7e\x80-\xff]*$/.test(text)) throw new RangeError(`${JSON.stringify(text)} cannot be an ETag`);
  return `"${text}"`;
}
