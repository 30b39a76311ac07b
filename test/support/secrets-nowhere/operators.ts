import { readFileSync } from 'node:fs';
import { compactDecrypt, decodeProtectedHeader } from 'jose';
import pg from 'pg';
import { expect, it } from 'vitest';
import { makeToken } from '../../../src/auth/tokens.js';
import {
  as,
  call,
  command,
  commandWith,
  database,
  env,
  file,
  held,
  hold,
  issued,
  lastIssued,
  ok,
  secrets,
  tokens,
  write,
  written,
} from './world.js';

/** What operators and admins do. */
export function operators(): void {
  it('of keys that rotate and retire', async () => {
    await ok('CredentialService/RotateSigningKey', as('admin'), { reason: 'a laptop was lost', force: true });
    const last = await hold('release/retired');
    const old = issued.find((token) => decodeProtectedHeader(token).kid !== decodeProtectedHeader(lastIssued()).kid);
    const kid = decodeProtectedHeader(old ?? lastIssued()).kid;
    await ok('CredentialService/RetireSigningKey', as('admin'), { keyId: kid, reason: 'the same' });
    await call('FenceService/CheckFence', as('target'), {
      credential: old,
      writes: [write(last, { fencingToken: 0n })],
    });
    await rememberSigningKeys();
  });

  it('of commands, in words and as JSON, with good tokens and bad ones', async () => {
    const unknown = makeToken().token;
    secrets.add('an unknown token of a command', unknown);
    for (const form of [[], ['--json']]) {
      for (const [role, ...args] of [
        ['operator', 'status'],
        ['operator', 'who', held.resource],
        ['operator', 'why', held.leaseId],
        ['operator', 'why', held.runId],
        ['operator', 'lease', 'list'],
        ['operator', 'run', 'list'],
        ['operator', 'keys', 'list'],
        ['auditor', 'audit', 'events'],
        [
          'target',
          'check',
          '--lease',
          held.leaseId,
          '--resource',
          held.resource,
          '--action',
          'promote',
          '--token',
          '7',
        ],
        ['stranger', 'who', held.resource],
        ['stranger', 'lease', 'get', held.leaseId],
        ['runner', 'keys', 'rotate', '--reason', 'may I'],
      ] as const)
        await commandWith({ WRIT_TOKEN: tokens[role] ?? '' }, ...args, ...form);
      await commandWith({ WRIT_TOKEN: unknown }, 'status', ...form);
      await commandWith({ WRIT_TOKEN: `${unknown}é` }, 'status', ...form);
      await command('doctor', ...form);
      await commandWith({ WRIT_DATABASE_URL: `${database.url}x` }, 'doctor', ...form);
      await commandWith({ WRIT_DATABASE_URL: `${database.url}x` }, 'migrate', ...form);
    }
    const exported = file('export.ndjson');
    const auditor = { WRIT_TOKEN: tokens.auditor ?? '' };
    expect(await commandWith(auditor, 'audit', 'export', '--output', exported)).toBe(0);
    written.add('the export', readFileSync(exported, 'utf8'));
    expect(await command('audit', 'verify', exported)).toBe(0);
  }, 240_000);
}

/** What the sealed keys hold, for whoever has the key-encryption key. */
async function rememberSigningKeys(): Promise<void> {
  const sql = new pg.Client({ connectionString: database.url });
  await sql.connect();
  const { rows } = await sql.query<{ sealed_private: string }>(
    'SELECT sealed_private FROM writ.signing_key WHERE sealed_private IS NOT NULL',
  );
  await sql.end();
  for (const { sealed_private: sealed } of rows) {
    const opened = await compactDecrypt(sealed, Buffer.from(env.WRIT_KEY_ENCRYPTION_KEY ?? '', 'base64url'));
    const { d } = JSON.parse(Buffer.from(opened.plaintext).toString('utf8')) as { d: string };
    secrets.addBytes('a signing key', Buffer.from(d, 'base64url'));
  }
  expect(rows.length).toBeGreaterThanOrEqual(2);
}
