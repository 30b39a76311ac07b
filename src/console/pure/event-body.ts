import type { LogEvent } from '../api/shapes.js';

/** Reads what an event says, for people. The log itself is never changed by it, and what is not understood is shown as it is. */

export type Body = Readonly<Record<string, unknown>>;

/** Stands where a text was that nobody has any more. */
const ERASED = '[erased]';

/** The body with its free texts in their places again. */
export function bodyOf({ body = '', texts = [] }: Pick<LogEvent, 'body' | 'texts'>): Body {
  const byDigest = new Map(texts.map(({ digest = '', text = '' }) => [hexOfBase64(digest), text]));
  try {
    const parsed: unknown = JSON.parse(body, (_key, value) => {
      const digest = digestOf(value);
      return digest === null ? value : (byDigest.get(digest) ?? ERASED);
    });
    return isRecord(parsed) ? parsed : {};
  } catch {
    return {};
  }
}

function digestOf(value: unknown): string | null {
  if (!isRecord(value)) return null;
  const { sha256, ...rest } = value;
  return typeof sha256 === 'string' && Object.keys(rest).length === 0 ? sha256 : null;
}

function isRecord(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The hexadecimal digits of bytes as proto3 JSON has them. */
export function hexOfBase64(base64: string): string {
  return [...atob(base64)].map((byte) => byte.charCodeAt(0).toString(16).padStart(2, '0')).join('');
}

export const textAt = (body: Body, key: string): string => {
  const value = body[key];
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : '';
};

export const listAt = (body: Body, key: string): readonly Body[] => {
  const value = body[key];
  return Array.isArray(value) ? value.filter(isRecord) : [];
};

export const recordAt = (body: Body, key: string): Body => {
  const value = body[key];
  return isRecord(value) ? value : {};
};
