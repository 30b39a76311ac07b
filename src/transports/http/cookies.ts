import type { Context } from 'hono';
import { getCookie, setCookie } from 'hono/cookie';

/** A cookie of ours: sealed, out of reach of scripts, for this host alone. */
export interface CookieKind {
  readonly name: string;
  /** `Lax` goes along when another site sends the browser here; `Strict` does not. */
  readonly sameSite: 'Strict' | 'Lax';
}

/** Browsers keep 4,096 bytes of a cookie with its name and attributes; what is longer goes into several. */
const PART_LENGTH = 3_800;
const MAX_PARTS = 3;
/** The longest value that can be kept. */
export const MAX_COOKIE_LENGTH = PART_LENGTH * MAX_PARTS;

/** `secure`: browsers send it over TLS only, and nobody but this host, by TLS, can have set it. */
export function readCookie(c: Context, { name }: CookieKind, secure: boolean): string | undefined {
  const parts = partNames(name, secure).map((part) => getCookie(c, part));
  return parts[0] === undefined ? undefined : parts.map((part) => part ?? '').join('');
}

export function writeCookie(c: Context, kind: CookieKind, secure: boolean, value: string, maxAgeMs: number): void {
  partNames(kind.name, secure).forEach((part, at) => {
    const text = value.slice(at * PART_LENGTH, (at + 1) * PART_LENGTH);
    // Also what an earlier, longer value has left.
    if (text !== '') setPart(c, kind, part, secure, text, Math.floor(maxAgeMs / 1_000));
    else if (getCookie(c, part) !== undefined) setPart(c, kind, part, secure, '', 0);
  });
}

export function clearCookie(c: Context, kind: CookieKind, secure: boolean): void {
  for (const part of partNames(kind.name, secure)) {
    if (getCookie(c, part) !== undefined) setPart(c, kind, part, secure, '', 0);
  }
}

function setPart(
  c: Context,
  { sameSite }: CookieKind,
  name: string,
  secure: boolean,
  value: string,
  maxAge: number,
): void {
  setCookie(c, name, value, { path: '/', httpOnly: true, sameSite, secure, maxAge });
}

function partNames(name: string, secure: boolean): readonly string[] {
  const first = secure ? `__Host-${name}` : name;
  return Array.from({ length: MAX_PARTS }, (_, at) => (at === 0 ? first : `${first}-${at}`));
}
