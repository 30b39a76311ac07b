import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError } from '../platform/config.js';
import { createOnce } from './create-once.js';

/** Where the key that encrypts signing keys comes from; it is never stored in a database. */
export interface KeyEncryptionSources {
  /** WRIT_KEY_ENCRYPTION_KEY: 32 bytes, base64url. */
  readonly keyEncryptionKey: string | null;
  /** WRIT_KEY_ENCRYPTION_KEY_FILE. */
  readonly keyEncryptionKeyFile: string | null;
  /** The directory where the embedded mode makes one; null: it is not made. */
  readonly madeIn: string | null;
}

const FILE = 'key-encryption-key';
const KEY = /^[A-Za-z0-9_-]{43}$/;

/** The key; null: there is none, and credentials are off. Throws a ConfigError that never repeats the value. */
export async function readKeyEncryptionKey(sources: KeyEncryptionSources): Promise<Uint8Array | null> {
  const { keyEncryptionKey, keyEncryptionKeyFile, madeIn } = sources;
  if (keyEncryptionKey !== null) return decode(keyEncryptionKey, 'WRIT_KEY_ENCRYPTION_KEY');
  if (keyEncryptionKeyFile !== null) return decode(await read(keyEncryptionKeyFile), keyEncryptionKeyFile);
  if (madeIn === null) return null;
  const path = join(madeIn, FILE);
  await createOnceIfMissing(path);
  return decode(await read(path), path);
}

async function createOnceIfMissing(path: string): Promise<void> {
  const found = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  if (found === undefined) await createOnce(path, `${randomBytes(32).toString('base64url')}\n`);
}

async function read(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    throw new ConfigError([`${path}: the key-encryption key cannot be read (${(error as Error).message})`]);
  }
}

function decode(text: string, where: string): Uint8Array {
  if (!KEY.test(text)) throw new ConfigError([`${where}: must hold 32 bytes in base64url: 43 characters`]);
  return Buffer.from(text, 'base64url');
}
