import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Authenticator, createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { ROLES } from '../../src/auth/principal.js';
import { ensureDevTokens, makeToken } from '../../src/auth/tokens.js';
import { Fault } from '../../src/domain/fault.js';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-tokens-'));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

function refusal(authenticator: Authenticator, authorization: string | undefined): string {
  try {
    authenticator.authenticate(authorization);
  } catch (error) {
    if (error instanceof Fault && error.faultClass === 'unauthenticated') return error.reason;
    throw error;
  }
  return 'accepted';
}

describe('an authenticator', () => {
  const { token, tokenSha256 } = makeToken();
  const authenticator = createCallerAuthenticator({
    principals: [{ name: 'svc:release-api', roles: ['target'], tokenSha256 }],
  });

  it('knows the holder of a token', async () => {
    const principal = await authenticator.authenticate(`Bearer ${token}`);
    expect(principal.name).toBe('svc:release-api');
    expect([...principal.roles]).toEqual(['target']);
    expect(authenticator.authenticate(`bearer  ${token} `)).toBe(principal);
  });

  it.each([
    ['nothing', undefined],
    ['an empty header', ''],
    ['another scheme', `Basic ${token}`],
    ['no scheme', token],
    ['the hash', `Bearer ${tokenSha256}`],
    ['a cut token', `Bearer ${token.slice(0, -1)}`],
    ['two tokens', `Bearer ${token} ${token}`],
    ['an overlong one', `Bearer ${'x'.repeat(100_000)}`],
  ])('refuses %s', (_, authorization) => {
    expect(refusal(authenticator, authorization)).toBe('UNAUTHENTICATED');
  });

  it('never says the token back', () => {
    try {
      authenticator.authenticate(`Bearer ${makeToken().token}x`);
    } catch (error) {
      expect((error as Error).message).not.toContain('writ_');
    }
  });

  it('takes a second token of a principal, so that the first can be replaced', () => {
    const second = makeToken();
    const both = createCallerAuthenticator({
      principals: [
        { name: 'a', roles: ['runner'], tokenSha256 },
        { name: 'a', roles: ['runner'], tokenSha256: second.tokenSha256 },
      ],
    });
    expect(both.authenticate(`Bearer ${second.token}`)).toBe(both.authenticate(`Bearer ${token}`));
  });

  it('refuses entries that contradict each other', () => {
    const other = makeToken().tokenSha256;
    expect(() =>
      createCallerAuthenticator({
        principals: [
          { name: 'a', roles: ['runner'], tokenSha256 },
          { name: 'a', roles: ['admin'], tokenSha256: other },
        ],
      }),
    ).toThrow(/a: has two entries with different roles/);
    expect(() =>
      createCallerAuthenticator({
        principals: [
          { name: 'a', roles: ['runner'], tokenSha256 },
          { name: 'b', roles: ['runner'], tokenSha256 },
        ],
      }),
    ).toThrow(/b: its token is another entry's too/);
  });
});

describe('development tokens', () => {
  it('are made once, for each role, readable by their owner only', async () => {
    const dataDir = join(directory, 'data');
    const made = await ensureDevTokens(dataDir);
    const text = await readFile(made.path, 'utf8');
    const tokens = JSON.parse(text) as Record<string, string>;
    expect(Object.keys(tokens)).toEqual(ROLES);
    expect(new Set(Object.values(tokens)).size).toBe(ROLES.length);
    expect((await stat(made.path)).mode & 0o777).toBe(0o600);

    const again = await ensureDevTokens(dataDir);
    expect(again).toEqual(made);
    expect(await readFile(made.path, 'utf8')).toBe(text);

    const authenticator = createCallerAuthenticator({ principals: again.entries });
    for (const role of ROLES) {
      expect(authenticator.authenticate(`Bearer ${tokens[role]}`)).toEqual({ name: role, roles: new Set([role]) });
    }
  });

  it('are the same for all who start at once, and leave nothing else behind', async () => {
    const made = await Promise.all(Array.from({ length: 8 }, () => ensureDevTokens(directory)));
    expect(new Set(made.map(({ entries }) => JSON.stringify(entries))).size).toBe(1);
    expect(await readdir(directory)).toEqual(['dev-tokens.json']);
  });

  it('are closed again when somebody opened the file', async () => {
    const { path } = await ensureDevTokens(directory);
    await chmod(path, 0o644);
    await ensureDevTokens(directory);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('are not made anew over a file that is damaged', async () => {
    await writeFile(join(directory, 'dev-tokens.json'), '{"admin":"writ_short"}');
    await expect(ensureDevTokens(directory)).rejects.toThrow(/Remove it to get new ones/);
  });
});
