import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { doctor } from '../support/doctor.js';

// What `writ doctor` finds in the files that settings name, and about what cannot be reached.

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-doctor-files-'));
  const pem = (key: ReturnType<typeof generateKeyPairSync>['privateKey']) =>
    key.export({ type: 'pkcs8', format: 'pem' }) as string;
  const contents = {
    'ed25519.pem': pem(generateKeyPairSync('ed25519').privateKey),
    'ec.pem': pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey),
    'routes.yaml': 'version: 1\ntargets: { "svc:one": { table: elsewhere.yaml } }\n',
    'databases.json': '{"eu": "postgres://u:hush@127.0.0.1:1/writ"}',
    'databases-wrong.json': '{"EU": "postgres://u:hush@127.0.0.1:1/writ"}',
    'credential.key': 'short',
  };
  await Promise.all(Object.entries(contents).map(([name, text]) => writeFile(join(directory, name), text)));
});

afterAll(() => rm(directory, { recursive: true, force: true }));

it.each([
  ['checkpoint key', { WRIT_CHECKPOINT_KEY_FILE: 'ed25519.pem' }, 'ok', /ed25519\.pem$/],
  ['checkpoint key', { WRIT_CHECKPOINT_KEY_FILE: 'ec.pem' }, 'problem', /ec\.pem must hold an Ed25519 private key/],
  ['checkpoint key', { WRIT_CHECKPOINT_KEY_FILE: 'none.pem' }, 'ok', /none\.pem will be made at the first start/],
  ['routes', { WRIT_ROUTES_FILE: 'routes.yaml' }, 'problem', /elsewhere\.yaml/],
  ['routes', {}, 'skipped', /not set/],
  ['credential key', { WRIT_KEY_ENCRYPTION_KEY_FILE: 'credential.key' }, 'problem', /43 characters/],
  ['credential key', {}, 'ok', /at the first start/],
  ['eu: database', { WRIT_DATABASES_FILE: 'databases.json' }, 'problem', /cannot be reached/],
  ['databases', { WRIT_DATABASES_FILE: 'databases-wrong.json' }, 'problem', /a name is 1 to 64/],
  [
    'Redis',
    { WRIT_REDIS_URL: 'redis://:hush@127.0.0.1:1' },
    'warning',
    /cannot be used: .*ECONNREFUSED.*heard of later/,
  ],
  ['Redis', {}, 'skipped', /not set/],
])('%s by %o: %s', async (what, named, verdict, text) => {
  const files = Object.entries(named).map(([name, value]) => [
    name,
    value.includes('://') ? value : join(directory, value),
  ]);
  const found = await doctor(directory, Object.fromEntries(files) as Record<string, string>);
  expect(found.of(what)).toEqual([{ what, verdict, text: expect.stringMatching(text) }]);
  expect(found.code).toBe(verdict === 'problem' ? 7 : 0);
  expect(found.stdout).not.toContain('hush');
  // It looks, and makes nothing.
  await expect(stat(join(directory, 'data'))).rejects.toThrow();
  await expect(stat(join(directory, 'none.pem'))).rejects.toThrow();
});
