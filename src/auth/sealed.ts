import { hkdfSync } from 'node:crypto';
import { EncryptJWT, errors, type JWTPayload, jwtDecrypt } from 'jose';

/**
 * Envelopes that a browser keeps for us and can neither read nor change: JWE with a key that the replicas share, so that
 * each of them opens what another has sealed.
 */

/** What one purpose seals is nothing to another. */
export type SealPurpose = 'browser session' | 'sign-in at an issuer';

const HEADER = { alg: 'dir', enc: 'A256GCM' } as const;

/** The key of a purpose, from a secret of 32 random bytes that is used for something else too. */
export function sealKey(secret: Uint8Array, purpose: SealPurpose): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', secret, new Uint8Array(0), `writ ${purpose}`, 32));
}

/** `endsAtMs`: milliseconds since 1970, to the second. */
export function seal(claims: JWTPayload, endsAtMs: number, key: Uint8Array): Promise<string> {
  return new EncryptJWT(claims)
    .setProtectedHeader(HEADER)
    .setExpirationTime(Math.floor(endsAtMs / 1_000))
    .encrypt(key);
}

/** What was sealed; null: it has ended, was changed, or was sealed with another key. */
export async function unseal(
  text: string,
  key: Uint8Array,
  nowMs: number,
): Promise<(JWTPayload & { readonly exp: number }) | null> {
  try {
    const { payload } = await jwtDecrypt(text, key, {
      keyManagementAlgorithms: [HEADER.alg],
      contentEncryptionAlgorithms: [HEADER.enc],
      requiredClaims: ['exp'],
      currentDate: new Date(nowMs),
    });
    return payload as JWTPayload & { exp: number };
  } catch (error) {
    if (error instanceof errors.JOSEError) return null;
    throw error;
  }
}
