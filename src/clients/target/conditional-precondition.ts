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
  readonly code: 'precondition_required' | 'malformed_precondition' | 'version_required';
  readonly detail: string;
}

export type ReadPrecondition =
  | { readonly ok: true; readonly precondition: Precondition }
  | { readonly ok: false; readonly flaw: PreconditionFlaw };

export interface PreconditionHeaders {
  readonly ifMatch?: string | undefined;
  readonly ifNoneMatch?: string | undefined;
}

/** Entity tags of one header, and its length. */
const MAX_TAGS = 32;
const MAX_HEADER = 8_192;

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
  const tags = readTags(ifMatch);
  if (typeof tags === 'string') return malformed(`If-Match ${tags}.`);
  const versions = tags.filter(({ weak }) => !weak).map(({ value }) => value);
  return { ok: true, precondition: { kind: 'versions', versions } };
}

const flawed = (status: 400 | 428, code: PreconditionFlaw['code'], detail: string): ReadPrecondition => ({
  ok: false,
  flaw: { status, code, detail },
});
const malformed = (detail: string) => flawed(400, 'malformed_precondition', detail);

interface EntityTag {
  readonly weak: boolean;
  readonly value: string;
}

/** One tag, with what may stand before the next; obs-text comes as Latin-1. */
const TAG = /[ \t,]*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?=,|$)/y;

/** The tags of a list, or what is wrong with it. Empty elements are ignored (RFC 9110, 5.6.1.2). */
function readTags(header: string): readonly EntityTag[] | string {
  if (header.length > MAX_HEADER) return `is longer than ${MAX_HEADER} characters`;
  let end = header.length;
  while (end > 0 && ' \t,'.includes(header[end - 1] as string)) end -= 1;
  const text = header.slice(0, end);
  const tags: EntityTag[] = [];
  TAG.lastIndex = 0;
  while (TAG.lastIndex < text.length) {
    const found = TAG.exec(text);
    if (found === null) return 'is not a list of entity tags such as "41"';
    if (tags.length === MAX_TAGS) return `has more than ${MAX_TAGS} entity tags`;
    tags.push({ weak: found[1] !== undefined, value: found[2] ?? '' });
  }
  return tags.length === 0 ? 'names no entity tag' : tags;
}

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
