import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { generateProof } from 'dpop';
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, type JSONWebKeySet, SignJWT } from 'jose';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { CredentialRefused, createCredentialVerifier, type VerifierOptions } from '../../src/clients/target/index.js';

// F18, F19: everything that a credential can be forged, bent or stolen into is refused, with a reason code of its own.

const ISSUER = 'https://writ.example';
const AUDIENCE = 'svc:release-api';
const KID = 'key-1';

let signing: CryptoKey;
let publicPem: Buffer;
let keys: JSONWebKeySet;
let other: CryptoKey;

beforeAll(async () => {
  const pair = await generateKeyPair('ES256', { extractable: true });
  signing = pair.privateKey;
  other = (await generateKeyPair('ES256')).privateKey;
  const jwk = await exportJWK(pair.publicKey);
  publicPem = Buffer.from(JSON.stringify(jwk));
  keys = { keys: [{ ...jwk, kid: KID, alg: 'ES256', use: 'sig' }] };
});

const now = (): number => Math.floor(Date.now() / 1000);

const WRITE = {
  type: 'writ_write_set',
  locations: [AUDIENCE],
  actions: ['promote'],
  resources: ['release/prod-eu'],
  fence: '1764000000000000',
  scope: 'exact',
  concurrency: 'lease',
};

function claims(): Record<string, unknown> {
  return {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'a'.repeat(32),
    client_id: 'runner',
    act: { sub: 'runner' },
    jti: 'j-1',
    iat: now(),
    exp: now() + 50,
    txn: 'b'.repeat(32),
    namespace: 'default',
    lease_id: 'c'.repeat(32),
    authorization_details: [WRITE],
  };
}

async function sign(
  payload: Record<string, unknown> = claims(),
  header: Record<string, unknown> = {},
  key: CryptoKey | Uint8Array = signing,
): Promise<string> {
  return new SignJWT(payload).setProtectedHeader({ alg: 'ES256', kid: KID, typ: 'at+jwt', ...header }).sign(key);
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

function verifier(more: Partial<VerifierOptions> = {}) {
  return createCredentialVerifier({ issuer: ISSUER, audience: AUDIENCE, keys, ...more });
}

async function reasonOf(token: string, presented = {}, more: Partial<VerifierOptions> = {}): Promise<string> {
  try {
    await verifier(more).verifyCredential(token, presented);
    return 'accepted';
  } catch (error) {
    if (error instanceof CredentialRefused) return error.reason;
    throw error;
  }
}

describe('a verifier', () => {
  it.each([{ issuer: '' }, { audience: '' }, { issuer: undefined }, { audience: undefined }])(
    'cannot be made without issuer and audience: %j (F19)',
    (missing) => {
      expect(() => verifier(missing as Partial<VerifierOptions>)).toThrow(TypeError);
    },
  );

  it.each([undefined, null, 'https://writ.example/.well-known/jwks.json', {}, { keys: 'x' }])(
    'cannot be made without keys, and says in what form they are wanted: %j',
    (keys) => {
      expect(() => verifier({ keys: keys as never })).toThrow(/as a URL object, or the key set itself/);
    },
  );

  it.each([undefined, null, 5, ['a.b.c'], {}])('refuses what is no text: %j (F19)', async (token) => {
    expect(await reasonOf(token as string)).toBe('malformed');
  });

  it('accepts a genuine credential, and says what it allows', async () => {
    const credential = await verifier().verifyCredential(await sign());
    expect(credential.covers({ resource: 'release/prod-eu', action: 'promote' })).toEqual({
      allowed: true,
      fencingToken: 1764000000000000n,
      versionRequired: false,
    });
    expect(credential.covers({ resource: 'release/prod-eu', action: 'delete' })).toMatchObject({
      reason: 'action_not_allowed',
    });
    expect(credential.covers({ resource: 'release/prod-eu/x', action: 'promote' })).toMatchObject({
      reason: 'not_covered',
    });
  });

  it('gives the guard the newest token of the resource, whatever brings the action', async () => {
    const wide = { ...WRITE, scope: 'subtree' };
    const beneath = { ...WRITE, resources: ['release/prod-eu/a'], actions: ['annotate'], fence: '1764000000000001' };
    for (const details of [
      [wide, beneath],
      [beneath, wide],
    ]) {
      const credential = await verifier().verifyCredential(await sign({ ...claims(), authorization_details: details }));
      const tokenOf = (resource: string, action: string) => {
        const answer = credential.covers({ resource, action });
        return answer.allowed ? answer.fencingToken : answer.reason;
      };
      expect(tokenOf('release/prod-eu/a', 'promote')).toBe(1764000000000001n);
      expect(tokenOf('release/prod-eu/a', 'annotate')).toBe(1764000000000001n);
      expect(tokenOf('release/prod-eu', 'promote')).toBe(1764000000000000n);
      expect(tokenOf('release/prod-eu/b', 'annotate')).toBe('action_not_allowed');
    }
  });

  it('covers what lies below a subtree, and not its neighbours', async () => {
    const credential = await verifier().verifyCredential(
      await sign({ ...claims(), authorization_details: [{ ...WRITE, scope: 'subtree' }] }),
    );
    expect(credential.covers({ resource: 'release/prod-eu/a/b', action: 'promote' })).toMatchObject({ allowed: true });
    expect(credential.covers({ resource: 'release/prod-eu2', action: 'promote' })).toMatchObject({ allowed: false });
  });

  it('gives no authority to write where there is none (C4), and sends large write sets to the check', async () => {
    const propose = { type: 'writ_propose', locations: [AUDIENCE], resources: ['release/prod-eu'] };
    const digest = { type: 'writ_write_set', locations: [AUDIENCE], digest: `sha-256:${'A'.repeat(43)}` };
    for (const [detail, reason] of [
      [propose, 'no_write_authority'],
      [digest, 'digest_needs_check'],
    ] as const) {
      const credential = await verifier().verifyCredential(
        await sign({ ...claims(), authorization_details: [detail] }),
      );
      expect(credential.covers({ resource: 'release/prod-eu', action: 'promote' })).toMatchObject({ reason });
    }
  });
});

describe('algorithms, keys and headers (F18)', () => {
  it('refuses alg none, and the public key as a secret of HS256', async () => {
    const none = `${encode({ alg: 'none', kid: KID, typ: 'at+jwt' })}.${encode(claims())}.`;
    expect(await reasonOf(none)).toBe('alg_not_allowed');
    expect(await reasonOf(await sign(claims(), { alg: 'HS256' }, publicPem))).toBe('alg_not_allowed');
  });

  it('refuses another algorithm than its header says', async () => {
    const [, payload, signature] = (await sign()).split('.');
    const swapped = `${encode({ alg: 'ES384', kid: KID, typ: 'at+jwt' })}.${payload}.${signature}`;
    expect(await reasonOf(swapped)).toBe('alg_not_allowed');
  });

  it.each(['jku', 'jwk', 'x5u', 'x5c', 'x5t', 'crit', 'b64', 'zip', 'cty'])(
    'refuses the header parameter %s, whatever it holds',
    async (name) => {
      const [, payload, signature] = (await sign()).split('.');
      const value = name === 'jwk' ? (keys.keys[0] as unknown) : name === 'crit' ? ['exp'] : 'https://evil.example/';
      const bent = `${encode({ alg: 'ES256', kid: KID, typ: 'at+jwt', [name]: value })}.${payload}.${signature}`;
      expect(await reasonOf(bent)).toBe('header_not_allowed');
    },
  );

  it.each([undefined, '', 7, null, ['key-1'], '../../etc/passwd', "' OR 1=1 --", 'x'.repeat(5_000), 'key-2'])(
    'refuses the key id %j',
    async (kid) => {
      const [, payload, signature] = (await sign()).split('.');
      const bent = `${encode({ alg: 'ES256', typ: 'at+jwt', ...(kid === undefined ? {} : { kid }) })}.${payload}.${signature}`;
      expect(await reasonOf(bent)).toBe('unknown_key');
    },
  );

  it('refuses a signature of another key, a changed payload, and another kind of token', async () => {
    expect(await reasonOf(await sign(claims(), {}, other))).toBe('bad_signature');
    const [header, , signature] = (await sign()).split('.');
    expect(await reasonOf(`${header}.${encode({ ...claims(), sub: 'd'.repeat(32) })}.${signature}`)).toBe(
      'bad_signature',
    );
    expect(await reasonOf(await sign(claims(), { typ: 'JWT' }))).toBe('wrong_type');
  });

  it.each(['', 'a', 'a.b', 'a.b.c', 'a.b.c.d', '....', '{}.{}.x', `${encode([])}.${encode({})}.x`])(
    'refuses what is no JWT: %j',
    async (token) => {
      expect(await reasonOf(token)).toBe('malformed');
    },
  );

  it('refuses what a decoder of base64 would pass over', async () => {
    const token = await sign();
    for (const bent of [` ${token}`, `${token}\n`, `${token}=`, token.replace('.', ' .')])
      expect(await reasonOf(bent)).toBe('malformed');
  });

  it('refuses what is too long before it decodes it', async () => {
    expect(await reasonOf('x'.repeat(16_385))).toBe('oversize');
  });
});

describe('claims (F19)', () => {
  const REQUIRED = Object.keys(claims()).filter((name) => name !== 'lease_id');

  it.each(REQUIRED)('refuses a credential without %s', async (name) => {
    const { [name]: _, ...rest } = claims();
    expect(await reasonOf(await sign(rest))).toBe('claim_missing');
  });

  it.each([...REQUIRED, 'lease_id'])('refuses %s of another type', async (name) => {
    for (const wrong of [null, true, {}, [], '', ['x']]) {
      const reason = await reasonOf(await sign({ ...claims(), [name]: wrong }));
      expect([name, wrong, reason]).not.toContain('accepted');
    }
  });

  it('refuses an audience that is a list, also of itself alone', async () => {
    expect(await reasonOf(await sign({ ...claims(), aud: [AUDIENCE] }))).toBe('claim_invalid');
    expect(await reasonOf(await sign({ ...claims(), aud: [AUDIENCE, 'svc:other'] }))).toBe('claim_invalid');
  });

  it.each([
    ['wrong_issuer', { iss: 'https://writ.example/' }],
    ['wrong_audience', { aud: 'svc:other' }],
    ['expired', { iat: now() - 56, exp: now() - 6 }],
    ['too_old', { iat: now() - 70, exp: now() + 50 }],
    ['not_yet_valid', { iat: now() + 10, exp: now() + 50 }],
    ['not_yet_valid', { nbf: now() + 10 }],
    ['claim_invalid', { exp: now() + 50.5 }],
    ['claim_invalid', { authorization_details: [{ ...WRITE, fence: '0' }] }],
    ['claim_invalid', { authorization_details: [{ ...WRITE, fence: 1764000000000000 }] }],
    ['claim_invalid', { authorization_details: [{ ...WRITE, resources: 'release/prod-eu' }] }],
    ['claim_invalid', { authorization_details: [{ ...WRITE, more: 1 }] }],
    ['claim_invalid', { authorization_details: [{ ...WRITE, type: 'payment_initiation' }] }],
    ['claim_invalid', { cnf: {} }],
    ['claim_invalid', { cnf: { jkt: 'A'.repeat(43), 'x5t#S256': 'A'.repeat(43) } }],
  ])('refuses as %s: %j', async (reason, change) => {
    expect(await reasonOf(await sign({ ...claims(), ...change }))).toBe(reason);
  });

  it('stands 5 s of skew either way, and no more', async () => {
    expect(await reasonOf(await sign({ ...claims(), iat: now() - 53, exp: now() - 3 }))).toBe('accepted');
    expect(await reasonOf(await sign({ ...claims(), iat: now() + 4, exp: now() + 54 }))).toBe('accepted');
  });
});

describe('binding', () => {
  const thumbprint = createHash('sha256').update('certificate').digest('base64url');

  it('to a certificate: only who shows it may present the credential', async () => {
    const token = await sign({ ...claims(), cnf: { 'x5t#S256': thumbprint } });
    expect(await reasonOf(token)).toBe('not_bound');
    expect(await reasonOf(token, { certificateThumbprint: `${thumbprint.slice(0, -1)}A` })).toBe('binding_mismatch');
    expect(await reasonOf(token, { certificateThumbprint: thumbprint })).toBe('accepted');
    expect(await reasonOf(await sign(), {}, { requireBinding: true })).toBe('not_bound');
  });

  const url = 'https://api.example/releases/prod-eu';
  const pair = () => generateKeyPair('ES256', { extractable: true });

  async function bound() {
    const holder = await pair();
    const token = await sign({
      ...claims(),
      cnf: { jkt: await calculateJwkThumbprint(await exportJWK(holder.publicKey)) },
    });
    return { holder, token };
  }

  it('to a DPoP key: a proof of that key, for this request and credential, once', async () => {
    const { holder, token } = await bound();
    const target = verifier({ dpop: {} });
    const reason = (presented: object) =>
      target.verifyCredential(token, presented).then(
        () => 'accepted',
        (error: CredentialRefused) => error.reason,
      );
    const proof = await generateProof(holder, url, 'PUT', undefined, token);
    expect(await reason({})).toBe('proof_missing');
    expect(await reason({ dpop: { proof, method: 'POST', url } })).toBe('proof_invalid');
    expect(await reason({ dpop: { proof, method: 'PUT', url: `${url}/other` } })).toBe('proof_invalid');
    expect(await reason({ dpop: { proof, method: 'PUT', url: `${url}?page=2` } })).toBe('accepted');
    expect(await reason({ dpop: { proof, method: 'PUT', url } })).toBe('proof_replayed');
    const thief = await generateProof(await pair(), url, 'PUT', undefined, token);
    expect(await reason({ dpop: { proof: thief, method: 'PUT', url } })).toBe('binding_mismatch');
    const elsewhere = await generateProof(holder, url, 'PUT', undefined, await sign());
    expect(await reason({ dpop: { proof: elsewhere, method: 'PUT', url } })).toBe('proof_invalid');
    expect(await reason({ dpop: { proof: 'x.y.z', method: 'PUT', url } })).toBe('proof_invalid');
  });

  it('to a certificate: is not one for a DPoP proof, whoever shows the certificate (RFC 9449, 7.2)', async () => {
    const holder = await pair();
    const certified = await sign({ ...claims(), cnf: { 'x5t#S256': thumbprint } });
    for (const token of [certified, await sign()]) {
      const proof = await generateProof(holder, url, 'PUT', undefined, token);
      const presented = { certificateThumbprint: thumbprint, dpop: { proof, method: 'PUT', url } };
      expect(await reasonOf(token, presented, { dpop: {} })).toBe('not_bound');
    }
  });

  it('takes no proof that is old, from the future, of another form, or signed by something else (F18)', async () => {
    const { holder, token } = await bound();
    const target = verifier({ dpop: {} });
    const jwk = await exportJWK(holder.publicKey);
    const ath = createHash('sha256').update(token).digest('base64url');
    let serial = 0;
    const make = (
      change: Record<string, unknown> = {},
      header: Record<string, unknown> = {},
      key = holder.privateKey,
    ) =>
      new SignJWT({ jti: `proof-${++serial}`, htm: 'PUT', htu: url, iat: now(), ath, ...change })
        .setProtectedHeader({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })
        .sign(key);
    const reason = async (proof: string) =>
      target.verifyCredential(token, { dpop: { proof, method: 'PUT', url } }).then(
        () => 'accepted',
        (error: CredentialRefused) => error.reason,
      );
    expect(await reason(await make())).toBe('accepted');
    for (const change of [
      ...[{ iat: now() - 70 }, { iat: now() + 10 }, { iat: undefined }, { iat: String(now()) }, { iat: [now()] }],
      ...[{ jti: undefined }, { jti: ['x'] }, { jti: 7 }, { htm: 'put' }, { htm: ['PUT'] }, { htm: undefined }],
      ...[{ htu: undefined }, { htu: [url] }, { htu: 'https://evil.example/' }, { ath: undefined }, { ath: [ath] }],
    ])
      expect(await reason(await make(change)), JSON.stringify(change)).toBe('proof_invalid');
    const { d } = await exportJWK(holder.privateKey);
    for (const header of [
      { typ: 'JWT' },
      { typ: undefined },
      { jwk: undefined },
      { jwk: [jwk] },
      { jwk: { ...jwk, d } },
    ])
      expect(await reason(await make({}, header)), JSON.stringify(header)).toBe('proof_invalid');
    expect(await reason(await make({}, {}, other))).toBe('proof_invalid');
    const [, payload] = (await make()).split('.');
    for (const header of [{ alg: 'none' }, { alg: 'HS256' }, { alg: 'ES384' }, { crit: ['exp'] }])
      expect(await reason(`${encode({ alg: 'ES256', typ: 'dpop+jwt', jwk, ...header })}.${payload}.AAAA`)).toBe(
        'proof_invalid',
      );
    for (const proof of ['', 'x', 'a.b.c', `${payload}\n`, 'x'.repeat(9_000)])
      expect(await reason(proof)).toBe('proof_invalid');
  });

  it('keeps what was presented out of its errors and their causes', async () => {
    const { holder, token } = await bound();
    const target = verifier({ dpop: {} });
    const proof = await generateProof(holder, url, 'POST', undefined, token);
    const expired = await sign({ ...claims(), iat: now() - 56, exp: now() - 6 });
    for (const [credential, presented] of [
      [token, { dpop: { proof, method: 'PUT', url } }],
      [token, { dpop: { proof, method: 'PUT', url: 'no url' } }],
      [token, { dpop: { proof: `${proof}\n`, method: 'PUT', url } }],
      [expired, {}],
      [await sign({ ...claims(), aud: 'svc:other' }), {}],
      [await sign(claims(), {}, other), {}],
    ] as const) {
      const error = await target.verifyCredential(credential, presented).catch((refused: unknown) => refused);
      expect(error).toBeInstanceOf(CredentialRefused);
      const shown = inspect(error, { depth: null });
      for (const secret of [credential, proof]) expect(shown).not.toContain(secret.split('.')[2]);
      expect(shown).not.toContain('c'.repeat(32));
    }
  });

  it('asks for a nonce of its own where one is demanded', async () => {
    const { holder, token } = await bound();
    const target = verifier({ dpop: { requireNonce: true } });
    const present = async (nonce: string | undefined) =>
      target.verifyCredential(token, {
        dpop: { proof: await generateProof(holder, url, 'PUT', nonce, token), method: 'PUT', url },
      });
    await expect(present(undefined)).rejects.toMatchObject({
      reason: 'proof_nonce_required',
      challenge: 'DPoP error="use_dpop_nonce"',
    });
    await expect(present('made-up')).rejects.toMatchObject({ reason: 'proof_nonce_required' });
    await expect(present(target.nonce())).resolves.toMatchObject({ runId: 'a'.repeat(32) });
  });

  it('remembers a bounded number of proofs, and refuses more', async () => {
    const { holder, token } = await bound();
    const target = verifier({ dpop: { maxRemembered: 2 } });
    const present = async () =>
      target.verifyCredential(token, {
        dpop: { proof: await generateProof(holder, url, 'PUT', undefined, token), method: 'PUT', url },
      });
    await present();
    await present();
    await expect(present()).rejects.toMatchObject({ reason: 'proof_limit' });
  });
});

describe('keys from a server', () => {
  let close: (() => void) | undefined;
  afterEach(() => close?.());

  async function server(answer: () => JSONWebKeySet) {
    let fetched = 0;
    const listener = createServer((_, response) => {
      fetched += 1;
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer()));
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    close = () => listener.close();
    const url = new URL(`http://127.0.0.1:${(listener.address() as AddressInfo).port}/jwks.json`);
    return { url, fetched: () => fetched };
  }

  it('are fetched once for many, and not again for key ids that somebody makes up (F20)', async () => {
    const { url, fetched } = await server(() => keys);
    const target = verifier({ keys: url });
    const genuine = await sign();
    await Promise.all(Array.from({ length: 20 }, () => target.verifyCredential(genuine)));
    expect(fetched()).toBe(1);
    const made = await Promise.all(
      Array.from({ length: 20 }, async (_, index) =>
        target.verifyCredential(await sign(claims(), { kid: `made-up-${index}` })).catch((error) => error.reason),
      ),
    );
    expect(new Set(made)).toEqual(new Set(['unknown_key']));
    expect(fetched()).toBe(1);
  });

  it('of a server that fails are asked for once, and not for each credential that comes meanwhile (F20)', async () => {
    let fetched = 0;
    const listener = createServer((_, response) => {
      fetched += 1;
      response.writeHead(503).end();
    });
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    close = () => listener.close();
    const url = new URL(`http://127.0.0.1:${(listener.address() as AddressInfo).port}/jwks.json`);
    const target = verifier({ keys: url });
    for (let i = 0; i < 20; i += 1)
      await expect(target.verifyCredential(await sign())).rejects.toMatchObject({ reason: 'keys_unavailable' });
    expect(fetched).toBe(1);
  });

  it('that cannot be had are no reason to believe anything', async () => {
    const { url } = await server(() => ({ keys: [] }));
    close?.();
    expect(await reasonOf(await sign(), {}, { keys: url })).toBe('keys_unavailable');
  });
});
