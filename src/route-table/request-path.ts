import { segmentFlaw } from './segment.js';

export type ReadPath =
  | {
      readonly ok: true;
      readonly segments: readonly string[];
      /** Places of segments with an escape that they do not need: `%70` for `p`. Some routers find no literal there. */
      readonly escaped: ReadonlySet<number>;
    }
  | { readonly ok: false; readonly message: string };

/** Longest path of a request, as sent; a resource of 1,024 bytes, all of them escaped, takes 3,072. */
const MAX_PATH_LENGTH = 8_192;
/** Segments of a request's path, and of a route's. */
export const MAX_PATH_SEGMENTS = 64;

const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The segments of a request's path as it was sent, each decoded exactly once. Whatever could mean one path to this
 * table and another to the service behind it is refused and never repaired: escaped slashes and backslashes, dot
 * segments, empty ones, bytes that are no UTF-8, path parameters. What follows "?" is not looked at.
 */
export function readPath(sent: string): ReadPath {
  const query = sent.indexOf('?');
  const path = query < 0 ? sent : sent.slice(0, query);
  if (path.length > MAX_PATH_LENGTH) return malformed(`is longer than ${MAX_PATH_LENGTH} characters`);
  if (!path.startsWith('/')) return malformed('does not begin with "/"');
  const unsent = /[^\x21-\x7e]|[\\#;]/.exec(path)?.[0];
  if (unsent === ';') return malformed('contains ";", which begins path parameters; as part of a name it is %3B');
  if (unsent !== undefined) return malformed(`contains ${JSON.stringify(unsent)} unescaped`);
  const escaped = new Set<number>();
  if (path === '/') return { ok: true, segments: [], escaped };
  const segments: string[] = [];
  for (const raw of path.slice(1).split('/')) {
    if (segments.length === MAX_PATH_SEGMENTS) return malformed(`has more than ${MAX_PATH_SEGMENTS} segments`);
    const segment = decodeSegment(raw);
    const flaw = typeof segment === 'string' ? segmentFlaw(segment) : segment.flaw;
    if (flaw !== null) return malformed(`has a segment ${segments.length + 1} that ${flaw}`);
    if (NEEDLESS_ESCAPE.test(raw)) escaped.add(segments.length);
    segments.push(segment as string);
  }
  return { ok: true, segments, escaped };
}

/** Of a character that a segment may have as it is (RFC 3986, pchar). */
const NEEDLESS_ESCAPE = /%(?:2[146-9A-E]|3[0-9ABD]|4[0-9A-F]|5[0-9AF]|6[1-9A-F]|7[0-9AE])/i;

const malformed = (message: string): ReadPath => ({ ok: false, message: `The path ${message}.` });

function decodeSegment(raw: string): string | { readonly flaw: string } {
  if (!raw.includes('%')) return raw;
  if (/%(?![0-9A-Fa-f]{2})/.test(raw)) return { flaw: 'has a "%" without two hexadecimal digits' };
  const bytes = Buffer.from(
    raw.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
  let text: string;
  try {
    text = DECODER.decode(bytes);
  } catch {
    return { flaw: 'is no UTF-8' };
  }
  return /[/\\]/.test(text) ? { flaw: 'contains an escaped slash or backslash' } : text;
}
