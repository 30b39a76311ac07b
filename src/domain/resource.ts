import type { Scope } from './entry.js';

/** Bounds of a resource's path (design: resources, locks and modes). */
const MAX_RESOURCE_BYTES = 1_024;
export const MAX_SEGMENTS = 32;

export type ParsedResource =
  | { readonly ok: true; readonly resource: string }
  | { readonly ok: false; readonly reason: string };

/**
 * Takes a text as the path of a resource when it is in normal form, and says why when it is not. It is
 * never repaired: two spellings of one thing would be two resources with two holders.
 */
export function parseResource(text: string): ParsedResource {
  const reason = text.length > MAX_RESOURCE_BYTES ? tooLong() : (asciiFlaw(text) ?? otherFlaw(text));
  return reason === '' ? { ok: true, resource: text } : { ok: false, reason };
}

const tooLong = (): string => `it is longer than ${MAX_RESOURCE_BYTES} bytes`;

const SLASH = 0x2f;
const SPACE = 0x20;
const DOT = 0x2e;
const DELETE = 0x7f;

/** What is wrong with a plain ASCII text; empty: nothing; null: it is not plain ASCII. */
function asciiFlaw(text: string): string | null {
  let start = 0;
  let segments = 0;
  let flaw = '';
  for (let at = 0; at <= text.length; at += 1) {
    const code = at === text.length ? SLASH : text.charCodeAt(at);
    if (code > DELETE) return null;
    if (code < SPACE || code === DELETE) flaw ||= `segment ${segments + 1} ${controlCharacter(code)}`;
    if (code !== SLASH) continue;
    segments += 1;
    flaw ||= asciiSegmentFlaw(text, start, at, segments);
    start = at + 1;
  }
  return flaw || tooManySegments(segments);
}

function asciiSegmentFlaw(text: string, start: number, end: number, number: number): string {
  if (end === start) return emptySegment(text, number);
  if (text.charCodeAt(start) === SPACE || text.charCodeAt(end - 1) === SPACE) return `segment ${number} ${OUTER_SPACE}`;
  if (
    text.charCodeAt(start) === DOT &&
    (end === start + 1 || (end === start + 2 && text.charCodeAt(start + 1) === DOT))
  )
    return `segment ${number} ${DOTS}`;
  return '';
}

/** Line and paragraph separators, annotation anchors and whatever shows nothing: zero-width and direction-changing characters among it. */
const UNSEEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u{FFF9}-\u{FFFB}]/u;

const HALF_A_PAIR = 'contains half of a surrogate pair, which is no character';
const NOT_NORMAL = 'is not in Unicode normal form C (NFC)';

function otherFlaw(text: string): string {
  if (!text.isWellFormed()) return `it ${HALF_A_PAIR}`;
  if (utf8Length(text) > MAX_RESOURCE_BYTES) return tooLong();
  const segments = text.split('/');
  for (const [index, segment] of segments.entries()) {
    if (segment === '') return emptySegment(text, index + 1);
    const flaw = wrongIn(segment);
    if (flaw !== null) return `segment ${index + 1} ${flaw}`;
  }
  if (text.normalize('NFC') !== text) return `it ${NOT_NORMAL}`;
  return tooManySegments(segments.length);
}

/** Why a text cannot be a segment of a resource; null: it can. */
export function segmentFlaw(text: string): string | null {
  if (text === '') return 'is empty';
  if (text.includes('/')) return 'contains a slash';
  if (!text.isWellFormed()) return HALF_A_PAIR;
  return wrongIn(text) ?? (text.normalize('NFC') === text ? null : NOT_NORMAL);
}

/** Why segments, each without a flaw, are no resource together; null: they are one. */
export function lengthFlaw(segments: readonly string[]): string | null {
  if (segments.length > MAX_SEGMENTS) return `has ${segments.length} segments; at most ${MAX_SEGMENTS} are allowed`;
  const bytes = segments.reduce((sum, segment) => sum + utf8Length(segment) + 1, -1);
  return bytes > MAX_RESOURCE_BYTES ? `is longer than ${MAX_RESOURCE_BYTES} bytes` : null;
}

/** What a segment must not be, or contain, in whatever characters it is written. */
function wrongIn(segment: string): string | null {
  if (segment === '.' || segment === '..') return DOTS;
  const unseen = UNSEEN.exec(segment)?.[0].codePointAt(0);
  if (unseen !== undefined) return controlCharacter(unseen);
  return /^\s|\s$/u.test(segment) ? OUTER_SPACE : null;
}

function utf8Length(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}

function emptySegment(text: string, number: number): string {
  return text === '' ? 'it is empty' : `segment ${number} is empty (a path has no "/" at its ends and no "//")`;
}

const DOTS = 'is "." or ".."';
const OUTER_SPACE = 'begins or ends with a space';
const tooManySegments = (count: number): string =>
  count > MAX_SEGMENTS ? `it has ${count} segments; at most ${MAX_SEGMENTS} are allowed` : '';

function controlCharacter(code: number): string {
  const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  return `contains ${name}, a control, zero-width or direction-changing character`;
}

/** Whether what is named with this scope is, or contains, the resource. */
export function covers(named: { readonly resource: string; readonly scope: Scope }, resource: string): boolean {
  return named.resource === resource || (named.scope === 'subtree' && resource.startsWith(`${named.resource}/`));
}
