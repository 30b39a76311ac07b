import { randomBytes } from 'node:crypto';
import { decodeJwt } from 'jose';
import { seal, unseal } from './sealed.js';

/** What a browser is signed in with. The coordinator keeps nothing of it: all of it is in the sealed cookie. */
export interface BrowserSession {
  /** Authenticated anew by every request, so that a token that is revoked ends the session. A secret. */
  readonly token: string;
  /** What requests that change something must repeat in a header: a page of another origin does not know it. */
  readonly csrf: string;
  /** Milliseconds since 1970, whole seconds. */
  readonly endsAtMs: number;
}

/** A session ends so long after its sign-in, whatever is done in it; sooner with its token. */
export const SESSION_LIFE_MS = 8 * 3600_000;

/** The session of a token that has just been authenticated. */
export function beginSession(token: string, nowMs: number): BrowserSession {
  const endsAtMs = Math.min(nowMs + SESSION_LIFE_MS, endOfToken(token));
  return { token, csrf: randomBytes(32).toString('base64url'), endsAtMs: Math.floor(endsAtMs / 1_000) * 1_000 };
}

export function sealSession({ token, csrf, endsAtMs }: BrowserSession, key: Uint8Array): Promise<string> {
  return seal({ token, csrf }, endsAtMs, key);
}

/** Null: it has ended, was changed, or was sealed with another key. */
export async function openSession(text: string, key: Uint8Array, nowMs: number): Promise<BrowserSession | null> {
  const claims = await unseal(text, key, nowMs);
  if (typeof claims?.token !== 'string' || typeof claims.csrf !== 'string') return null;
  return { token: claims.token, csrf: claims.csrf, endsAtMs: claims.exp * 1_000 };
}

/** Only a signed token says when it ends. */
function endOfToken(token: string): number {
  try {
    return (decodeJwt(token).exp ?? Number.POSITIVE_INFINITY) * 1_000;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
