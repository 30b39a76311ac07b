import { createHash, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto';
import { chmod, mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { Fault } from '../domain/fault.js';
import { createOnce } from './create-once.js';
import { parseJsonFile } from './json-file.js';
import { type Principal, ROLES } from './principal.js';
import { type PrincipalEntry, PrincipalsFileError } from './principal-entry.js';

/**
 * Static bearer tokens. The coordinator keeps only their SHA-256: a token has 256 random bits, so that
 * one hash is as good as a slow one, and whoever reads the file cannot call.
 */

const TOKEN_PREFIX = 'writ_';

/** SHA-256 of a token, in hexadecimal. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** A new token with 256 random bits; show it once, keep only the hash. */
export function makeToken(): { readonly token: string; readonly tokenSha256: string } {
  const token = TOKEN_PREFIX + randomBytes(32).toString('base64url');
  return { token, tokenSha256: hashToken(token) };
}

/** Who holds which token. A principal may have several, so that one can be replaced without a gap; all carry the same roles. */
export class TokenIndex {
  readonly #byHash = new Map<string, { readonly hash: Buffer; readonly principal: Principal }>();

  /** Throws a PrincipalsFileError when two entries have one token. */
  constructor(entries: readonly PrincipalEntry[], principals: ReadonlyMap<string, Principal>) {
    for (const { name, tokenSha256 } of entries) {
      const principal = principals.get(name);
      if (tokenSha256 === undefined || principal === undefined) continue;
      if (this.#byHash.has(tokenSha256)) throw new PrincipalsFileError(`${name}: its token is another entry's too`);
      this.#byHash.set(tokenSha256, { hash: Buffer.from(tokenSha256, 'hex'), principal });
    }
  }

  /** Whose token it is; undefined: nobody's. `digest` is its SHA-256. */
  find(digest: Buffer): Principal | undefined {
    // The map is searched by hash, so that what its timing could tell is of no use; the compare is for certainty.
    const found = this.#byHash.get(digest.toString('hex'));
    return found !== undefined && timingSafeEqual(found.hash, digest) ? found.principal : undefined;
  }
}

/** SHA-256 of a presented token. */
export function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Longest token that is looked at: a JWT with many claims stays below it. */
const MAX_TOKEN_LENGTH = 8_192;
const BEARER = /^bearer +([\x21-\x7e]+) *$/i;

/** The token of an `Authorization` header's value; throws when there is none. */
export function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined) {
    throw unauthenticated('nothing', 'the call carries no token; send `authorization: Bearer <token>`');
  }
  if (authorization.length > MAX_TOKEN_LENGTH)
    throw unauthenticated('malformed', `the authorization is longer than ${MAX_TOKEN_LENGTH} characters`);
  const token = BEARER.exec(authorization)?.[1];
  if (token === undefined) throw unauthenticated('malformed', 'the authorization is not of the form `Bearer <token>`');
  return token;
}

/** Nobody is known by what was presented. `cause` is for the counters. */
export function unauthenticated(cause: string, message: string): Fault {
  return new Fault('unauthenticated', 'UNAUTHENTICATED', message, { metadata: { cause } });
}

/** The tokens of the embedded mode: one principal per role, of the same name. */
export interface DevTokens {
  readonly path: string;
  readonly entries: readonly PrincipalEntry[];
}

const devTokensSchema = z.record(z.enum(ROLES), z.string().regex(/^writ_[\w-]{43}$/));

/**
 * Reads `dev-tokens.json` of the data directory, or makes it: a token for each role, readable by its
 * owner only. Made whole or not at all, and once, however many processes start together.
 */
export async function ensureDevTokens(dataDir: string): Promise<DevTokens> {
  const path = join(dataDir, 'dev-tokens.json');
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  let text = await readFile(path, 'utf8').catch(absent);
  if (text === undefined) {
    await createOnce(
      path,
      `${JSON.stringify(Object.fromEntries(ROLES.map((role) => [role, makeToken().token])), null, 2)}\n`,
    );
    text = await readFile(path, 'utf8');
  }
  const parsed = devTokensSchema.safeParse(parseJsonFile(text, path));
  if (!parsed.success) {
    throw new PrincipalsFileError(
      `${path}: does not hold one token for each of ${ROLES.join(', ')}. Remove it to get new ones.`,
    );
  }
  // A copy or a backup may have opened it to others.
  if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600);
  const entries = ROLES.map((role) => ({ name: role, roles: [role], tokenSha256: hashToken(parsed.data[role]) }));
  return { path, entries };
}

/**
 * Who signs in at the console of the embedded mode by a one-time link: somebody who may see, change and stop everything.
 * Its token is made from a secret of the data directory, so that a session outlives a restart; nobody is shown it.
 */
export function makeConsolePrincipal(secret: Uint8Array): { readonly token: string; readonly entry: PrincipalEntry } {
  const bits = hkdfSync('sha256', secret, new Uint8Array(0), 'writ console principal', 32);
  const token = TOKEN_PREFIX + Buffer.from(bits).toString('base64url');
  return {
    token,
    entry: { name: 'console', roles: ['admin', 'operator', 'auditor'], tokenSha256: hashToken(token) },
  };
}

function absent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
