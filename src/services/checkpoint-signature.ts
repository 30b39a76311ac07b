import { createHash, createPublicKey, verify as verifySignature } from 'node:crypto';
import type { Checkpoint } from './api.js';

/** The statement that a checkpoint's signature is over: canonical JSON (RFC 8785), UTF-8. */
export function checkpointStatement(checkpoint: Pick<Checkpoint, 'namespace' | 'revision' | 'hash' | 'time'>): Buffer {
  const { hash, namespace, revision, time } = checkpoint;
  return Buffer.from(JSON.stringify({ hash, namespace, revision, time }), 'utf8');
}

/** Whether a checkpoint is signed by the public key that it names; false also when there is no such key. */
export function isSigned(checkpoint: Checkpoint): boolean {
  try {
    const key = createPublicKey(checkpoint.publicKeyPem);
    return (
      key.asymmetricKeyType === 'ed25519' &&
      verifySignature(null, checkpointStatement(checkpoint), key, checkpoint.signature)
    );
  } catch {
    return false;
  }
}

/** The same key whatever the line breaks of its PEM; throws on what is no public key. */
export function normalPublicKey(pem: string): string {
  return createPublicKey(pem).export({ type: 'spki', format: 'pem' }).toString();
}

/** SHA-256 of the SPKI DER of a public key, in hex. */
export function keyFingerprint(pem: string): string {
  const der = createPublicKey(pem).export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(der).digest('hex');
}

/** A key's name (`key_id`) is the beginning of its fingerprint. */
const KEY_ID_LENGTH = 16;

/** The name of a public key, by its fingerprint. */
export function keyIdOf(fingerprint: string): string {
  return fingerprint.slice(0, KEY_ID_LENGTH);
}
