import { createHash } from 'node:crypto';
import {
  CompactEncrypt,
  type CryptoKey,
  calculateJwkThumbprint,
  compactDecrypt,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
} from 'jose';
import type { KeyMaterial, SigningKey } from '../domain/signing-keys.js';

/** Keys that sign credentials: ES256, one `alg` per key; the private part rests encrypted under the key-encryption key. */

export const SIGNING_ALG = 'ES256';

export type PublicKey = CryptoKey;
export type PrivateKey = CryptoKey;
const SEALED = { alg: 'dir', enc: 'A256GCM' } as const;

/** The sealed part of a key was encrypted with another key-encryption key, or was changed. */
export class SealedElsewhere extends Error {
  override readonly name = 'SealedElsewhere';
}

/** Makes a key pair and seals its private part. */
export async function makeSigningKey(keyEncryptionKey: Uint8Array): Promise<KeyMaterial> {
  const pair = await generateKeyPair(SIGNING_ALG, { extractable: true });
  const publicJwk = await exportJWK(pair.publicKey);
  const keyId = await calculateJwkThumbprint(publicJwk);
  const published: JWK = { ...publicJwk, kid: keyId, use: 'sig', alg: SIGNING_ALG };
  const sealed = new CompactEncrypt(Buffer.from(JSON.stringify(await exportJWK(pair.privateKey))));
  // Its name in the protected header is authenticated with it: the sealed part of one key cannot stand for another's.
  sealed.setProtectedHeader({ ...SEALED, kid: keyId, kek: fingerprint(keyEncryptionKey) });
  return { keyId, publicJwk: JSON.stringify(published), sealedPrivate: await sealed.encrypt(keyEncryptionKey) };
}

/** The private key, ready to sign and not to be taken out again. Throws SealedElsewhere. */
export async function openSigningKey(key: SigningKey, keyEncryptionKey: Uint8Array): Promise<CryptoKey> {
  if (key.sealedPrivate === null) throw new Error(`the private part of ${key.keyId} is destroyed`);
  const options = { keyManagementAlgorithms: [SEALED.alg], contentEncryptionAlgorithms: [SEALED.enc] };
  const opened = await compactDecrypt(key.sealedPrivate, keyEncryptionKey, options).catch((error: unknown) => {
    if (error instanceof errors.JOSEError) throw new SealedElsewhere(error.message, { cause: error });
    throw error;
  });
  const jwk = JSON.parse(Buffer.from(opened.plaintext).toString('utf8')) as JWK;
  if ((await calculateJwkThumbprint(jwk)) !== key.keyId) throw new SealedElsewhere('it holds another key');
  return (await importJWK(jwk, SIGNING_ALG, { extractable: false })) as CryptoKey;
}

export async function importPublicKey(key: SigningKey): Promise<CryptoKey> {
  return (await importJWK(JSON.parse(key.publicJwk) as JWK, SIGNING_ALG)) as CryptoKey;
}

/** Tells people which key-encryption key sealed something, and says nothing about it. */
function fingerprint(keyEncryptionKey: Uint8Array): string {
  return createHash('sha256').update('writ key-encryption key').update(keyEncryptionKey).digest('hex').slice(0, 16);
}
