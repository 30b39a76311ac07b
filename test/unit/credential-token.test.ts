import { createHmac, createSign, generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { importJWK, type JWK, SignJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  type CredentialClaims,
  MAX_CREDENTIAL_BYTES,
  signCredential,
  verifyCredential,
} from '../../src/auth/credentials.js';
import {
  importPublicKey,
  makeSigningKey,
  openSigningKey,
  type PrivateKey,
  type PublicKey,
} from '../../src/auth/signing-keys.js';
import type { NewCredential, WriteGrant } from '../../src/domain/credential.js';
import type { SigningKey } from '../../src/domain/signing-keys.js';
import { claimsOf, grantsOf, presentedOf } from '../../src/services/credential-claims.js';

const ISSUER = 'https://writ.test';
const KEK = new Uint8Array(32).fill(3);
const ID = '0123456789abcdef0123456789abcdef';

let key: SigningKey;
let privateKey: PrivateKey;
let publicKey: PublicKey;

beforeAll(async () => {
  const material = await makeSigningKey(KEK);
  key = { ...material, state: 'current', createdAt: 1, activatedAt: 1, replacedAt: null, retiredAt: null };
  privateKey = await openSigningKey(key, KEK);
  publicKey = await importPublicKey(key);
});

const GRANT: WriteGrant = { resources: ['doc/a'], actions: ['replace'], token: 42, scope: 'exact', exclusive: true };

const CREDENTIAL: NewCredential = {
  jti: 'A'.repeat(22),
  audience: 'svc:docs',
  runId: ID,
  leaseId: ID,
  clientId: 'runner:ci',
  actor: 'runner:ci',
  issuedAt: 1_764_428_400,
  expiresAt: 1_764_428_460,
  boundTo: null,
  scope: { grants: [GRANT], proposals: [] },
};

const CLAIMS = claimsOf(CREDENTIAL, 'default', ISSUER);
const verify = (token: string) =>
  verifyCredential(token, ISSUER, async (keyId) => (keyId === key.keyId ? publicKey : undefined));
const signed = (claims: object = CLAIMS) => signCredential(claims as CredentialClaims, key.keyId, privateKey);
const encoded = (part: unknown) => Buffer.from(JSON.stringify(part)).toString('base64url');

/** Signed by our key under a header of the test's own. */
async function withHeader(header: object, claims: object = CLAIMS): Promise<string> {
  return new SignJWT({ ...claims })
    .setProtectedHeader({ alg: 'ES256', kid: key.keyId, typ: 'at+jwt', ...header })
    .sign(privateKey);
}

/** Put together by hand: jose refuses to make it. */
function byHand(header: object, sign: (input: string) => string): string {
  const input = `${encoded({ alg: 'ES256', kid: key.keyId, typ: 'at+jwt', ...header })}.${encoded(CLAIMS)}`;
  return `${input}.${sign(input)}`;
}

describe('what a credential says', () => {
  const path = fc
    .array(fc.stringMatching(/^[a-z]{1,8}$/), { minLength: 1, maxLength: 3 })
    .map((parts) => parts.join('/'));
  const grant: fc.Arbitrary<WriteGrant> = fc.record({
    resources: fc.uniqueArray(path, { minLength: 1, maxLength: 12 }).map((paths) => paths.toSorted()),
    actions: fc.uniqueArray(fc.constantFrom('promote', 'patch', 'set'), { minLength: 1 }).map((all) => all.toSorted()),
    token: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    scope: fc.constantFrom('exact', 'subtree'),
    exclusive: fc.boolean(),
  });

  it('comes back as it went in; a long one by the write set it stands for, while that is the same (P10)', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(grant, { maxLength: 6 }),
        fc.array(path, { maxLength: 3 }),
        async (grants, proposals) => {
          const scope = { grants, proposals };
          const token = await signed(claimsOf({ ...CREDENTIAL, scope }, 'default', ISSUER));
          const read = await verify(token);
          if (!read.ok) throw new Error(read.reason);
          expect(grantsOf(read.claims, () => scope)).toEqual(grants);
          expect(presentedOf(read.claims)).toMatchObject({
            namespace: 'default',
            runId: ID,
            leaseId: ID,
            boundTo: null,
          });
          const told = grants.flatMap(({ resources }) => resources).length;
          const other = { grants: [{ ...GRANT, token: 1 }], proposals: [] };
          expect(grantsOf(read.claims, () => other)).toEqual(told > 25 ? null : grants);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('fits into a header whatever the paths: long ones become a digest, and proposals are left out', async () => {
    const long = Array.from({ length: 25 }, (_, i) => `${i}/${'x'.repeat(1_000)}`);
    const scope = { grants: [{ ...GRANT, resources: long }], proposals: long };
    const claims = claimsOf({ ...CREDENTIAL, scope }, 'default', ISSUER);
    expect(claims.authorization_details).toEqual([
      { type: 'writ_write_set', locations: ['svc:docs'], digest: expect.stringMatching(/^sha-256:[\w-]{43}$/) },
      { type: 'writ_propose', locations: ['svc:docs'], resources: [] },
    ]);
    expect((await signed(claims)).length).toBeLessThan(MAX_CREDENTIAL_BYTES / 2);
  });

  it('whatever is in the write set, it is short enough for the headers of most servers', async () => {
    const paths = fc.array(fc.string({ minLength: 1, maxLength: 400 }), { minLength: 1, maxLength: 30 });
    const grants = fc.array(
      fc.record({
        resources: paths,
        actions: fc.array(fc.string({ minLength: 1, maxLength: 64 }), { minLength: 1, maxLength: 32 }),
        token: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        scope: fc.constant('exact' as const),
        exclusive: fc.boolean(),
      }),
      { maxLength: 30 },
    );
    await fc.assert(
      fc.asyncProperty(grants, paths, async (granted, proposals) => {
        const scope = { grants: granted, proposals };
        const token = await signed(claimsOf({ ...CREDENTIAL, scope }, 'default', ISSUER));
        expect(token.length).toBeLessThan(MAX_CREDENTIAL_BYTES / 2);
        expect(await verify(token)).toMatchObject({ ok: true });
      }),
      { numRuns: 100 },
    );
  });

  it('correlates all credentials of a lease, without telling its id', () => {
    const of = (leaseId: string | null) => claimsOf({ ...CREDENTIAL, leaseId, jti: 'B'.repeat(22) }, 'default', ISSUER);
    expect(of(ID).txn).toBe(CLAIMS.txn);
    expect(CLAIMS.txn).not.toBe(ID);
    expect(of(null)).not.toHaveProperty('lease_id');
  });
});

describe('F18: a token that chooses how it is verified', () => {
  const refusedAs = (reason: string) => ({ ok: false, reason });

  it('is refused when nothing, or a public key, signs it', async () => {
    expect(await verify(byHand({ alg: 'none' }, () => ''))).toEqual(refusedAs('alg_not_allowed'));
    const hmac = (input: string) => createHmac('sha256', key.publicJwk).update(input).digest('base64url');
    expect(await verify(byHand({ alg: 'HS256' }, hmac))).toEqual(refusedAs('alg_not_allowed'));
    expect(await verify(byHand({}, hmac))).toEqual(refusedAs('bad_signature'));
  });

  it('is refused under another algorithm or type', async () => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    const token = byHand({ alg: 'RS256' }, (input) => createSign('sha256').update(input).sign(rsa, 'base64url'));
    expect(await verify(token)).toEqual(refusedAs('alg_not_allowed'));
    expect(await verify(await withHeader({ typ: 'JWT' }))).toEqual(refusedAs('wrong_type'));
    expect(await verify(await withHeader({ typ: undefined }))).toEqual(refusedAs('wrong_type'));
  });

  it.each(['jku', 'jwk', 'x5u', 'x5c', 'b64', 'crit'])('is refused when its header names %s', async (parameter) => {
    const token = byHand({ [parameter]: parameter === 'crit' ? ['exp'] : 'https://evil.test' }, () => 'AAAA');
    expect(await verify(token)).toEqual(refusedAs('header_not_allowed'));
  });

  it('is refused when it names a key that is not published, whatever the name', async () => {
    for (const kid of ['', 'other', '../../etc/passwd', "' OR 1=1", '__proto__'])
      expect(await verify(await withHeader({ kid }))).toEqual(refusedAs('unknown_key'));
    expect(await verify(byHand({ kid: 7 }, () => 'AAAA'))).toEqual(refusedAs('unknown_key'));
  });

  it('is refused when another key of that name signed it', async () => {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const other = await importJWK(pair.privateKey.export({ format: 'jwk' }) as JWK, 'ES256');
    const token = await new SignJWT({ ...CLAIMS })
      .setProtectedHeader({ alg: 'ES256', kid: key.keyId, typ: 'at+jwt' })
      .sign(other);
    expect(await verify(token)).toEqual(refusedAs('bad_signature'));
  });

  it('is refused when any of it is changed, and whatever it is', async () => {
    const token = await signed();
    await fc.assert(
      fc.asyncProperty(fc.nat(token.length - 1), fc.constantFrom('A', 'z', '.', '_', ' '), async (at, character) => {
        const changed = token.slice(0, at) + character + token.slice(at + 1);
        if (changed !== token && !sameBytes(changed, token)) expect((await verify(changed)).ok).toBe(false);
      }),
      { numRuns: 300 },
    );
    await fc.assert(
      fc.asyncProperty(fc.string(), async (text) => {
        expect((await verify(text)).ok).toBe(false);
      }),
    );
    expect(await verify('a.b')).toEqual(refusedAs('malformed'));
    expect(await verify('x'.repeat(MAX_CREDENTIAL_BYTES + 1))).toEqual(refusedAs('oversize'));
  });
});

/** The last character of base64url has bits that mean nothing. */
function sameBytes(a: string, b: string): boolean {
  const bytes = (token: string) => token.split('.').map((part) => Buffer.from(part, 'base64url').toString('hex'));
  return JSON.stringify(bytes(a)) === JSON.stringify(bytes(b));
}

describe('F19: claims', () => {
  const REQUIRED = Object.keys(CLAIMS).filter((claim) => claim !== 'lease_id');

  it.each(REQUIRED)('%s is required', async (claim) => {
    const { [claim]: _, ...others } = CLAIMS as Record<string, unknown>;
    expect(await verify(await signed(others))).toEqual({ ok: false, reason: 'claim_missing' });
  });

  it.each([...REQUIRED, 'lease_id', 'cnf'])('%s of another type is refused', async (claim) => {
    for (const value of [null, 7.5, true, ['svc:docs'], {}, '', [[]]]) {
      const read = await verify(await signed({ ...CLAIMS, [claim]: value }));
      expect(read, `${claim}: ${JSON.stringify(value)}`).toEqual({ ok: false, reason: 'claim_invalid' });
    }
  });

  it('nobody asked for are refused, as are unknown and mixed authorizations', async () => {
    const [detail] = CLAIMS.authorization_details;
    for (const claims of [
      { ...CLAIMS, admin: true },
      { ...CLAIMS, authorization_details: [{ ...detail, type: 'other' }] },
      { ...CLAIMS, authorization_details: [{ ...detail, digest: `sha-256:${'A'.repeat(43)}` }] },
      { ...CLAIMS, authorization_details: [{ ...detail, fence: '042' }] },
      { ...CLAIMS, cnf: { jkt: 'A'.repeat(43), 'x5t#S256': 'A'.repeat(43) } },
    ])
      expect(await verify(await signed(claims))).toEqual({ ok: false, reason: 'claim_invalid' });
  });

  it('of another issuer are refused', async () => {
    const token = await signed({ ...CLAIMS, iss: `${ISSUER}/` });
    expect(await verify(token)).toEqual({ ok: false, reason: 'wrong_issuer' });
  });
});
