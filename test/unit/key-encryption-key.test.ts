import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readKeyEncryptionKey } from '../../src/auth/key-encryption-key.js';
import { ConfigError, readConfig } from '../../src/platform/config.js';

const TEXT = randomBytes(32).toString('base64url');
const NONE = { keyEncryptionKey: null, keyEncryptionKeyFile: null, madeIn: null };

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), 'writ-kek-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe('the key-encryption key', () => {
  it('is read from the variable or the file; without either there is none', async () => {
    const file = join(directory(), 'key');
    writeFileSync(file, `${TEXT}\n`);
    const bytes = new Uint8Array(Buffer.from(TEXT, 'base64url'));
    expect(new Uint8Array((await readKeyEncryptionKey({ ...NONE, keyEncryptionKey: TEXT })) ?? [])).toEqual(bytes);
    expect(new Uint8Array((await readKeyEncryptionKey({ ...NONE, keyEncryptionKeyFile: file })) ?? [])).toEqual(bytes);
    expect(await readKeyEncryptionKey(NONE)).toBeNull();
  });

  it('is made once in the embedded mode, readable by its owner only, however many start together', async () => {
    const madeIn = directory();
    const made = await Promise.all(Array.from({ length: 8 }, () => readKeyEncryptionKey({ ...NONE, madeIn })));
    expect(new Set(made.map((key) => Buffer.from(key ?? []).toString('hex'))).size).toBe(1);
    expect(made[0]).toHaveLength(32);
    const path = join(madeIn, 'key-encryption-key');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readFileSync(path, 'utf8').trim()).toBe(Buffer.from(made[0] ?? []).toString('base64url'));
  });

  it('that is none is refused by its place, and never repeated', async () => {
    const file = join(directory(), 'key');
    const wrong = `${TEXT.slice(0, 20)}!`;
    writeFileSync(file, wrong);
    const problem = await readKeyEncryptionKey({ ...NONE, keyEncryptionKeyFile: file }).catch((error) => error);
    expect(problem).toBeInstanceOf(ConfigError);
    expect(problem.message).toContain(file);
    expect(problem.message).not.toContain(wrong);
    const missing = { ...NONE, keyEncryptionKeyFile: `${file}.missing` };
    await expect(readKeyEncryptionKey(missing)).rejects.toThrow(/cannot be read/);
    const config = () => readConfig({ WRIT_KEY_ENCRYPTION_KEY: wrong });
    expect(config).toThrow(/WRIT_KEY_ENCRYPTION_KEY: must be 32 bytes/);
    expect(config).not.toThrow(wrong);
  });

  it('asks for one issuer of all replicas, and for one source', () => {
    const database = { WRIT_DATABASE_URL: 'postgres://writ@db/writ', WRIT_TOKENS_FILE: '/etc/writ/tokens.json' };
    expect(() => readConfig({ ...database, WRIT_KEY_ENCRYPTION_KEY: TEXT })).toThrow(/WRIT_ISSUER: required/);
    const issuer = { WRIT_ISSUER: 'https://writ.example.org' };
    expect(readConfig({ ...database, ...issuer, WRIT_KEY_ENCRYPTION_KEY: TEXT }).issuer).toBe(issuer.WRIT_ISSUER);
    expect(readConfig(database).keyEncryptionKey).toBeNull();
    const both = { WRIT_KEY_ENCRYPTION_KEY: TEXT, WRIT_KEY_ENCRYPTION_KEY_FILE: '/etc/writ/key' };
    expect(() => readConfig(both)).toThrow(/give one of them/);
  });

  it.each(['writ.example.org', 'ftp://x', 'https://x/#f', 'https://x/?q', 'https://u:p@x', 'https://x y'])(
    'takes no issuer such as %s',
    (text) => {
      expect(() => readConfig({ WRIT_ISSUER: text })).toThrow(/WRIT_ISSUER: must be an absolute/);
    },
  );
});
