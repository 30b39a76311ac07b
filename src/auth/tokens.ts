import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { chmod, mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { Fault } from '../domain/fault.js';
import { createOnce } from './create-once.js';
import { type Principal, ROLES, type Role } from './principal.js';

/**
 * Static bearer tokens. The coordinator keeps only their SHA-256: a token has 256 random bits, so that
 * one hash is as good as a slow one, and whoever reads the file cannot call.
 */

/** One entry of a tokens file. */
export interface TokenEntry {
  readonly name: string;
  readonly roles: readonly Role[];
  /** 64 hexadecimal digits. */
  readonly tokenSha256: string;
}

/** Tells who calls. */
export interface Authenticator {
  /** The principal of an `Authorization` header's value; throws a Fault `unauthenticated`. */
  authenticate(authorization: string | undefined): Principal;
}

/** A tokens file that cannot be used, in words for the person who wrote it. */
export class TokensFileError extends Error {
  override readonly name = 'TokensFileError';
}

const TOKEN_PREFIX = 'writ_';
const MAX_AUTHORIZATION_LENGTH = 512;
const BEARER = /^bearer +([\x21-\x7e]+) *$/i;

const fileSchema = z.strictObject({
  principals: z
    .array(
      z.strictObject({
        name: z
          .string()
          .regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 printable ASCII characters without spaces')
          .refine((name) => name !== 'system', 'is what the log calls the coordinator itself'),
        roles: z.array(z.enum(ROLES)).min(1, 'must name at least one role'),
        token_sha256: z.string().regex(/^[0-9a-f]{64}$/i, 'must be 64 hexadecimal digits'),
      }),
    )
    .max(10_000),
});

/** SHA-256 of a token, in hexadecimal. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** A new token with 256 random bits; show it once, keep only the hash. */
export function makeToken(): { readonly token: string; readonly tokenSha256: string } {
  const token = TOKEN_PREFIX + randomBytes(32).toString('base64url');
  return { token, tokenSha256: hashToken(token) };
}

/** Reads and validates a tokens file; throws a TokensFileError that names file and field. */
export async function readTokensFile(path: string): Promise<TokenEntry[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new TokensFileError(`${path}: cannot be read (${(error as Error).message})`, { cause: error });
  }
  const parsed = fileSchema.safeParse(parseJson(text, path));
  if (!parsed.success) {
    const problems = parsed.error.issues.map(
      (issue) => `${path}: ${issue.path.join('.') || 'the file'}: ${issue.message}`,
    );
    throw new TokensFileError(problems.join('\n'));
  }
  return parsed.data.principals.map(({ name, roles, token_sha256 }) => ({
    name,
    roles,
    tokenSha256: token_sha256.toLowerCase(),
  }));
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TokensFileError(`${path}: is not JSON (${(error as Error).message})`, { cause: error });
  }
}

/**
 * An authenticator for these entries. A principal may have several tokens, so that one can be replaced
 * without a gap; all of them carry the same roles.
 */
export function createAuthenticator(entries: readonly TokenEntry[]): Authenticator {
  const byHash = new Map<string, { readonly hash: Buffer; readonly principal: Principal }>();
  const byName = new Map<string, Principal>();
  for (const entry of entries) {
    const principal = byName.get(entry.name) ?? { name: entry.name, roles: new Set(entry.roles) };
    if (!sameRoles(principal.roles, entry.roles)) {
      throw new TokensFileError(`${entry.name}: has two entries with different roles`);
    }
    if (byHash.has(entry.tokenSha256)) throw new TokensFileError(`${entry.name}: its token is another entry's too`);
    byName.set(entry.name, principal);
    byHash.set(entry.tokenSha256, { hash: Buffer.from(entry.tokenSha256, 'hex'), principal });
  }
  return {
    authenticate(authorization) {
      const token = bearerToken(authorization);
      const digest = createHash('sha256').update(token).digest();
      // The map is searched by hash, so that what its timing could tell is of no use; the compare is for certainty.
      const found = byHash.get(digest.toString('hex'));
      if (found === undefined || !timingSafeEqual(found.hash, digest))
        throw unauthenticated('the token is not known here');
      return found.principal;
    },
  };
}

function sameRoles(roles: ReadonlySet<Role>, others: readonly Role[]): boolean {
  return new Set(others).size === roles.size && others.every((role) => roles.has(role));
}

function bearerToken(authorization: string | undefined): string {
  if (authorization === undefined) {
    throw unauthenticated('the call carries no token; send `authorization: Bearer <token>`');
  }
  if (authorization.length > MAX_AUTHORIZATION_LENGTH)
    throw unauthenticated(`the authorization is longer than ${MAX_AUTHORIZATION_LENGTH} characters`);
  const token = BEARER.exec(authorization)?.[1];
  if (token === undefined) throw unauthenticated('the authorization is not of the form `Bearer <token>`');
  return token;
}

function unauthenticated(message: string): Fault {
  return new Fault('unauthenticated', 'UNAUTHENTICATED', message);
}

/** The tokens of the embedded mode: one principal per role, of the same name. */
export interface DevTokens {
  readonly path: string;
  readonly entries: readonly TokenEntry[];
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
  const parsed = devTokensSchema.safeParse(parseJson(text, path));
  if (!parsed.success) {
    throw new TokensFileError(
      `${path}: does not hold one token for each of ${ROLES.join(', ')}. Remove it to get new ones.`,
    );
  }
  // A copy or a backup may have opened it to others.
  if (((await stat(path)).mode & 0o077) !== 0) await chmod(path, 0o600);
  const entries = ROLES.map((role) => ({ name: role, roles: [role], tokenSha256: hashToken(parsed.data[role]) }));
  return { path, entries };
}

function absent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
}
