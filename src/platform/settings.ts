import { z } from 'zod';
import { parseDuration } from './durations.js';

/** The kinds of settings: how the text of a variable is read, and what is said when it cannot be. */

/** A variable: unset is the fallback, else what `parse` makes of the text; undefined is a problem. */
export function setting<T>(fallback: T, expected: string, parse: (text: string) => T | undefined) {
  return z
    .string()
    .optional()
    .transform((text, context): T => {
      if (text === undefined) return fallback;
      const value = parse(text);
      if (value !== undefined) return value;
      context.issues.push({ code: 'custom', input: text, message: `must be ${expected}, not ${JSON.stringify(text)}` });
      return z.NEVER;
    });
}

export function integer(fallback: number, least: number, most: number, note = '') {
  return setting(fallback, `a whole number from ${least} to ${most}${note}`, (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= least && value <= most ? value : undefined;
  });
}

export function duration(fallback: string, least: string, most: string) {
  const [lower, upper] = [parseDuration(least), parseDuration(most)];
  return setting(parseDuration(fallback) ?? 0, `a duration from ${least} to ${most}, such as ${fallback}`, (text) => {
    const value = parseDuration(text);
    return value !== null && lower !== null && upper !== null && value >= lower && value <= upper ? value : undefined;
  });
}

export function oneOf<const T extends string>(fallback: T, choices: readonly T[]) {
  const isChoice = (text: string): text is T => (choices as readonly string[]).includes(text);
  return setting<T>(fallback, `one of ${choices.join(', ')}`, (text) => (isChoice(text) ? text : undefined));
}

export const DATABASE_URL_FORM = 'must begin with postgres:// or postgresql:// and contain no spaces';

/** Whether it looks like the URL of a Postgres. */
export function isDatabaseUrl(text: string): boolean {
  return /^postgres(ql)?:\/\/\S+$/.test(text);
}

/** Never repeats the value: it carries a password. */
export const databaseUrl = z.string().refine(isDatabaseUrl, DATABASE_URL_FORM).optional();

/** Never repeats the value: it may carry a password. */
export const redisUrl = z
  .string()
  .regex(/^rediss?:\/\/\S+$/, 'must begin with redis:// or rediss:// and contain no spaces')
  .refine((text) => URL.canParse(text), 'must be a URL')
  .optional();

/** Never repeats the value: it is a secret. */
export const keyEncryptionKey = z
  .string()
  .regex(/^[A-Za-z0-9_-]{43}$/, 'must be 32 bytes in base64url: 43 characters')
  .optional();

export const issuer = setting<string | null>(null, 'an absolute http(s) URL without query and fragment', (text) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  const fits = url !== null && /^https?:$/.test(url.protocol) && !/[?#\s]/.test(text) && url.username === '';
  return fits ? text : undefined;
});

/** An absolute URL whose answers cannot be forged on the way: https, or http to this machine. */
export const safeUrl = setting<string | null>(null, 'an https URL, or an http URL of this machine', (text) => {
  const url = URL.canParse(text) && !/[?#\s]/.test(text) ? new URL(text) : null;
  const fits = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname));
  return fits && url?.username === '' ? text : undefined;
});

export const origin = setting<string | null>(null, 'an http(s) URL without a path', (text) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` ? url.origin : undefined;
});

export const port = (fallback: number) => integer(fallback, 0, 65_535, ' (0 picks a free port)');

/** Whether a host names this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}
