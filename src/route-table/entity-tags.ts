/** Entity tags as a header lists them (RFC 9110, 8.8.3), read in one way by the target kit and by the coordinator. */

export interface EntityTag {
  /** It never matches where the strong comparison counts, as for If-Match (13.1.1). */
  readonly weak: boolean;
  readonly value: string;
}

/** Entity tags of one header, and its length. */
const MAX_TAGS = 32;
const MAX_HEADER = 8_192;

/** One tag, with what may stand before the next; obs-text comes as Latin-1. */
const TAG = /[ \t,]*(W\/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?=,|$)/y;

/** The tags of a list, or what is wrong with it. Empty elements are ignored (RFC 9110, 5.6.1.2). */
export function readEntityTags(header: string): readonly EntityTag[] | string {
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
