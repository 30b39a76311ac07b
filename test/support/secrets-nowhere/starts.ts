import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeConsolePrincipal } from '../../../src/auth/tokens.js';
import { watchCoordinator } from '../watched-coordinator.js';
import {
  commandWith,
  coordinator,
  database,
  env,
  file,
  processes,
  secrets,
  textFiles,
  tokens,
  written,
} from './world.js';

/** Starts that fail, and the embedded mode. */
export function starts(): void {
  it('of starts that fail: a wrong password, broken files, another key-encryption key', async () => {
    await coordinator.stop();
    const failing = async (more: Record<string, string>): Promise<number | null> => {
      const one = watchCoordinator({ ...env, ...more });
      const code = await Promise.race([one.ended, one.ready.then(() => one.stop())]);
      written.add('starts that fail', one.said());
      return code;
    };
    const wrong = new URL(database.url);
    const key = randomBytes(32);
    wrong.password = `wrong-${key.toString('hex')}`;
    secrets.add('a wrong password', wrong.password).addBytes('another key-encryption key', key);
    expect(await failing({ WRIT_DATABASE_URL: wrong.href })).toBe(4);
    expect(await failing({ WRIT_KEY_ENCRYPTION_KEY: `${key.toString('base64url')}x` })).toBe(2);
    writeFileSync(file('broken-key'), `${key.toString('hex')}\n`);
    const fromFile = { WRIT_KEY_ENCRYPTION_KEY: '', WRIT_KEY_ENCRYPTION_KEY_FILE: file('broken-key') };
    expect(await failing(fromFile)).toBe(2);
    writeFileSync(file('broken-principals.json'), `{"principals": [{"name": "a", "token": "${tokens.admin}"`);
    expect(await failing({ WRIT_TOKENS_FILE: file('broken-principals.json') })).toBe(2);
    // It starts, and tells that it cannot open the keys.
    await failing({ WRIT_KEY_ENCRYPTION_KEY: key.toString('base64url') });
  }, 120_000);

  it('in the embedded mode, with a development token that somebody damaged', async () => {
    const dataDir = file('embedded');
    const own = { WRIT_DATA_DIR: dataDir, WRIT_LOG_LEVEL: 'trace', WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0' };
    // Without what the other installation is told.
    const plain = Object.fromEntries(Object.keys(env).map((name) => [name, '']));
    const one = watchCoordinator(own);
    processes.push(one);
    const { grpc } = await one.ready;
    const dev = JSON.parse(readFileSync(join(dataDir, 'dev-tokens.json'), 'utf8')) as Record<string, string>;
    for (const [role, token] of Object.entries(dev)) secrets.add(`the development token of ${role}`, token);
    secrets.add('the password of the embedded database', readFileSync(join(dataDir, 'password'), 'utf8').trim());
    const embeddedKey = readFileSync(join(dataDir, 'key-encryption-key'), 'utf8').trim();
    secrets.add('the embedded key-encryption key', embeddedKey);
    secrets.add('the token of the console', makeConsolePrincipal(Buffer.from(embeddedKey, 'base64url')).token);
    for (const args of [['status'], ['status', '--json'], ['doctor'], ['doctor', '--json']]) {
      const code = await commandWith({ ...plain, ...own, WRIT_ENDPOINT: grpc }, ...args);
      expect([args, code]).toEqual([args, 0]);
    }
    await one.stop();
    written.add('the embedded coordinator', one.said());
    const whole = readFileSync(join(dataDir, 'dev-tokens.json'), 'utf8');
    for (const damaged of [whole.replace(/_(.{20})/, '_$1"'), whole.slice(0, 60)]) {
      writeFileSync(join(dataDir, 'dev-tokens.json'), damaged);
      const again = watchCoordinator(own);
      expect(await again.ended).toBe(2);
      written.add('starts that fail', again.said());
      await commandWith({ ...plain, ...own }, 'status');
    }
    written.add('files of the embedded mode', ...textFiles(dataDir));
    written.add('the log of Postgres', readFileSync(join(dataDir, 'postgres.log'), 'latin1'));
  }, 180_000);
}
