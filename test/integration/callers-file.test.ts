import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { hashToken } from '../../src/auth/tokens.js';
import { Callers, type Known } from '../../src/callers.js';
import { Fault } from '../../src/domain/fault.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';

let directory: string;
let file: string;
let callers: Callers;
let log: string[];
let known: Known[];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-callers-'));
  file = join(directory, 'principals.json');
  log = [];
  known = [];
});

afterEach(async () => {
  callers.close();
  await rm(directory, { recursive: true, force: true });
});

/** At one stroke: whoever looks meanwhile sees no half of it. */
async function replace(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

async function write(...names: string[]): Promise<void> {
  const principals = names.map((name) => ({ name, roles: ['runner'], token_sha256: hashToken(`token-${name}`) }));
  await replace(file, JSON.stringify({ principals }));
}

async function start(): Promise<void> {
  const logger = createLogger('info', { write: (line) => void log.push(line) });
  callers = new Callers({ file, certificates: false, metrics: createMetrics(), log: logger, lookEveryMs: 20 });
  await callers.read();
}

function knows(name: string): boolean {
  try {
    callers.authenticate(`Bearer token-${name}`);
    return true;
  } catch (error) {
    if (error instanceof Fault && error.faultClass === 'unauthenticated') return false;
    throw error;
  }
}

it('lets nobody in before the coordinator serves', async () => {
  await write('a');
  await start();
  expect(() => callers.authenticate('Bearer token-a')).toThrow(/is starting/);
});

it('takes a changed file as a whole, and with it the names of blockers', async () => {
  await write('a');
  await start();
  callers.open([], (now) => known.push(now));
  expect([knows('a'), knows('b')]).toEqual([true, false]);
  await write('b');
  await expect.poll(() => knows('b')).toBe(true);
  expect(knows('a')).toBe(false);
  expect(known).toHaveLength(2);
  expect(known[1]?.blockerKey).not.toEqual(known[0]?.blockerKey);
});

it('keeps the file before when the new one cannot be used, and says what is wrong with it', async () => {
  await write('a');
  await start();
  callers.open([], (now) => known.push(now));
  await replace(file, '{"principals":[{"name":"a","roles":["root"]}]}');
  await expect.poll(() => log.join('')).toContain('the new principals file is not used');
  expect(log.join('')).toContain('principals.0.roles.0');
  expect(knows('a')).toBe(true);
  await rm(file);
  await expect.poll(() => log.join('')).toContain('cannot be read');
  expect(knows('a')).toBe(true);
  await write('c');
  await expect.poll(() => knows('c')).toBe(true);
});

it('takes a key set beside it that changed, and keeps the one before when the new one cannot be used', async () => {
  const [one, two] = [
    await generateKeyPair('ES256', { extractable: true }),
    await generateKeyPair('ES256', { extractable: true }),
  ];
  const writeKeys = async (pair: typeof one) => {
    const keys = [{ ...(await exportJWK(pair.publicKey)), kid: 'k', alg: 'ES256' }];
    await replace(join(directory, 'keys.json'), JSON.stringify({ keys }));
  };
  let serial = 0;
  const isKnown = async (by: typeof one): Promise<boolean> => {
    const token = await new SignJWT({ jti: `${++serial}` })
      .setProtectedHeader({ alg: 'ES256', kid: 'k' })
      .setIssuer('https://issuer.test')
      .setAudience('writ')
      .setSubject('ci')
      .setIssuedAt()
      .setExpirationTime('5m')
      .sign(by.privateKey);
    return Promise.resolve(callers.authenticate(`Bearer ${token}`)).then(
      () => true,
      () => false,
    );
  };
  await writeKeys(one);
  const issuer = {
    issuer: 'https://issuer.test',
    audience: 'writ',
    jwks_file: 'keys.json',
    algorithms: ['ES256'],
    mappings: [{ claims: { sub: 'ci' }, principal: 'ci:{sub}', roles: ['runner'] }],
  };
  await replace(file, JSON.stringify({ principals: [], issuers: [issuer] }));
  await start();
  callers.open([], () => undefined);
  expect([await isKnown(one), await isKnown(two)]).toEqual([true, false]);
  await writeKeys(two);
  await expect.poll(() => isKnown(two)).toBe(true);
  expect(await isKnown(one)).toBe(false);
  await replace(join(directory, 'keys.json'), '{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}');
  await expect.poll(() => log.join('')).toContain('must be a JSON Web Key Set');
  expect(await isKnown(two)).toBe(true);
});

it('counts a flood of strangers and logs it once per window, without what they presented', async () => {
  await write('a');
  await start();
  callers.open([], () => undefined);
  for (let i = 0; i < 1_000; i += 1) expect(knows(`stranger-${i}`)).toBe(false);
  const lines = () => log.filter((line) => line.includes('could not be authenticated'));
  expect(lines()).toHaveLength(1);
  callers.close();
  expect(lines()).toHaveLength(2);
  expect(JSON.parse(lines()[1] ?? '')).toMatchObject({ count: 999, causes: { unknown_token: 999 } });
  expect(log.join('')).not.toContain('stranger');
});
