import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Micros } from '../domain/time.js';
import { EXIT, StartError } from '../platform/lifecycle.js';
import type { Checkpoint } from './api.js';
import { checkpointStatement, keyFingerprint, keyIdOf } from './checkpoint-signature.js';

/** Signs statements about how far a log goes: Ed25519, RFC 8032 (A2). */
export interface CheckpointSigner {
  readonly keyId: string;
  sign(namespace: string, revision: number, hash: string, time: Micros): Checkpoint;
}

/** Uses the private key in the file (PKCS #8, PEM), and makes one, readable by its owner only, when there is none. */
export function fileCheckpointSigner(path: string): CheckpointSigner {
  const privateKey = readOrMakeKey(path);
  const publicKey = createPublicKey(privateKey);
  const publicKeyPem = publicKey.export({ type: 'spki', format: 'pem' }) as string;
  const keyId = keyIdOf(keyFingerprint(publicKeyPem));
  return {
    keyId,
    sign(namespace, revision, hash, time) {
      const statement = checkpointStatement({ namespace, revision, hash, time });
      return { namespace, revision, hash, time, signature: sign(null, statement, privateKey), keyId, publicKeyPem };
    },
  };
}

function readOrMakeKey(path: string): KeyObject {
  try {
    return readCheckpointKey(path) ?? makeKey(path);
  } catch (error) {
    const why = (error as Error).message;
    throw new StartError(EXIT.configuration, `the checkpoint key (WRIT_CHECKPOINT_KEY_FILE): ${why}`, error);
  }
}

/** The private key in the file; null: there is no file. Throws what is wrong with it. */
export function readCheckpointKey(path: string): KeyObject | null {
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const key = parseKey(pem);
  if (key?.asymmetricKeyType !== 'ed25519') throw new Error(`${path} must hold an Ed25519 private key (PKCS #8, PEM)`);
  return key;
}

/** Null: it is none; what the library says of it names no file. */
function parseKey(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    return null;
  }
}

function makeKey(path: string): KeyObject {
  const { privateKey } = generateKeyPairSync('ed25519');
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  try {
    writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600, flag: 'wx' });
  } catch (error) {
    // Another replica of the same data directory was faster: its key is the key.
    const made = (error as NodeJS.ErrnoException).code === 'EEXIST' ? readCheckpointKey(path) : null;
    if (made === null) throw error;
    return made;
  }
  return privateKey;
}
