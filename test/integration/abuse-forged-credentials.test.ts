import { createHmac, createPublicKey, createSign, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, decodeJwt, exportJWK, generateKeyPair, type JSONWebKeySet, type JWK, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSigningKey } from '../../src/auth/signing-keys.js';
import {
  CredentialRefused,
  type CredentialVerifier,
  createCredentialVerifier,
} from '../../src/clients/target/index.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import {
  as,
  createRun,
  granted,
  ISSUER,
  KEY_ENCRYPTION_KEY,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

/**
 * F18, F19: whatever a credential is bent into is refused by all who may be shown it: the check, introspection, and the
 * verifier that asks nobody. Each forgery starts from a credential that all three take, and those of claims are signed by
 * the coordinator's own key: only what they say is wrong with them.
 */

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write, concurrency: lease, change_class: shared_pointer } } }
`;

let database: TestDatabase;
let replica: TestReplica;
let offline: CredentialVerifier;
let keys: JSONWebKeySet;
let lease: Lease;
let genuine: string;
let keyId: string;
let nextKeyId: string;
/** The coordinator's own. */
let signingKey: CryptoKey;
let stranger: { privateKey: CryptoKey; publicKey: CryptoKey };
/** Where hostile headers point; nobody may ever ask it. */
let lure: Server;
let lured = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await startReplica({ url: database.url });
  await putMap(replica.api, MAP);
  keys = JSON.parse((await replica.api.getKeys()).jwks) as JSONWebKeySet;
  offline = createCredentialVerifier({ issuer: ISSUER, audience: 'target', keys });
  lease = await granted(replica.api, await createRun(replica.api), [write('release/prod', 'promote')], {
    ttl: 300 * SECOND,
  });
  const stored = (await replica.store.readSigningKeys()).keys;
  const current = stored.find(({ state }) => state === 'current');
  if (current === undefined) throw new Error('no key signs');
  keyId = current.keyId;
  nextKeyId = stored.find(({ state }) => state === 'next')?.keyId ?? '';
  signingKey = await openSigningKey(current, KEY_ENCRYPTION_KEY);
  stranger = await generateKeyPair('ES256', { extractable: true });
  lure = createServer((_, response) => {
    lured += 1;
    response.end('{}');
  }).listen(0, '127.0.0.1');
  await once(lure, 'listening');
});

afterAll(async () => {
  lure?.close();
  await replica?.stop();
  await database?.drop();
});

async function issue(): Promise<string> {
  const { value } = await replica.api.issueCredential(as('runner'), {
    runId: lease.runId,
    leaseId: lease.leaseId,
    audience: 'target',
    confirmation: null,
    requestId: '',
  });
  if (value.credential === null) throw new Error(`refused: ${JSON.stringify(value.refusal)}`);
  return value.credential.token;
}

/** One that is in its time, however long the tests before took. */
async function fresh(): Promise<string> {
  const dying = genuine === undefined || (decodeJwt(genuine).exp ?? 0) < Date.now() / 1_000 + 20;
  if (dying) genuine = await issue();
  return genuine;
}

const claimsNow = async (): Promise<Record<string, unknown>> => ({ ...decodeJwt(await fresh()) });

function sign(claims: object, header: object = {}, key: CryptoKey = signingKey): Promise<string> {
  const all = { alg: 'ES256', kid: keyId, typ: 'at+jwt', ...header };
  return new SignJWT(claims as Record<string, unknown>).setProtectedHeader(all).sign(key);
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Put together without a library, which would refuse to make such a thing. */
async function byHand(header: object, signature: (input: string) => string): Promise<string> {
  const input = `${encode({ alg: 'ES256', kid: keyId, typ: 'at+jwt', ...header })}.${encode(await claimsNow())}`;
  return `${input}.${signature(input)}`;
}

interface Verdict {
  readonly check: string | undefined;
  readonly introspection: unknown;
  readonly offline: string;
}

/** What all three say. */
async function verdictOf(token: string): Promise<Verdict> {
  const { value } = await replica.api.checkFence(as('target'), {
    leaseId: '',
    credential: token,
    presenter: null,
    presenterRunId: '',
    writes: [{ resource: 'release/prod', action: 'promote', token: 0, observedVersion: null }],
    requestId: '',
  });
  expect(value.allowed).toBe(value.results[0]?.reason === 'ok');
  // An operator may see all that is genuine: what is not active for it, is for nobody.
  const introspected = await replica.api.introspectCredential(as('operator'), { token }).then(
    ({ value: { active } }) => active,
    (error: { faultClass: string }) => error.faultClass,
  );
  const offlineSays = await offline.verifyCredential(token).then(
    (credential) => (credential.covers({ resource: 'release/prod', action: 'promote' }).allowed ? 'ok' : 'no write'),
    (error: CredentialRefused) => {
      expect(error).toBeInstanceOf(CredentialRefused);
      return error.reason;
    },
  );
  return { check: value.results[0]?.reason, introspection: introspected, offline: offlineSays };
}

const refusedAs = (reason: string, offlineReason = reason): Verdict => ({
  check: reason,
  introspection: false,
  offline: offlineReason,
});

it('a credential that nobody touched is taken by all three', async () => {
  expect(await verdictOf(await fresh())).toEqual({ check: 'ok', introspection: true, offline: 'ok' });
  expect(await verdictOf(await sign(await claimsNow()))).toEqual({ check: 'ok', introspection: true, offline: 'ok' });
});

describe('F18: a token that chooses how it is verified', () => {
  it.each(['none', 'None', 'NONE', 'nOnE'])('alg %s, with a signature and without', async (alg) => {
    const [, , signature = ''] = (await fresh()).split('.');
    for (const end of ['', signature, 'AAAA'])
      expect(await verdictOf(await byHand({ alg }, () => end))).toEqual(refusedAs('alg_not_allowed'));
  });

  it('HS256 and HS512 keyed by the public key, in every form that it is written in', async () => {
    const jwk = keys.keys.find(({ kid }) => kid === keyId) as JWK;
    const key: KeyObject = createPublicKey({ key: jwk as never, format: 'jwk' });
    const forms = [
      JSON.stringify(jwk),
      JSON.stringify(keys),
      jwk.x ?? '',
      Buffer.from(jwk.x ?? '', 'base64url'),
      key.export({ type: 'spki', format: 'pem' }),
      key.export({ type: 'spki', format: 'der' }),
      '',
    ];
    for (const form of forms) {
      for (const [alg, hash] of [
        ['HS256', 'sha256'],
        ['HS512', 'sha512'],
      ] as const) {
        const token = await byHand({ alg }, (input) => createHmac(hash, form).update(input).digest('base64url'));
        expect(await verdictOf(token)).toEqual(refusedAs('alg_not_allowed'));
      }
      // The same under the right name.
      const disguised = await byHand({}, (input) => createHmac('sha512', form).update(input).digest('base64url'));
      expect(await verdictOf(disguised)).toEqual(refusedAs('bad_signature'));
    }
  });

  it.each(['ES384', 'ES512', 'RS256', 'PS256', 'EdDSA', 'Ed25519', 'es256', 'ES256K', 'dir', ''])(
    'alg %j in place of ES256',
    async (alg) => {
      const [, payload, signature] = (await fresh()).split('.');
      const swapped = `${encode({ alg, kid: keyId, typ: 'at+jwt' })}.${payload}.${signature}`;
      expect(await verdictOf(swapped)).toEqual(refusedAs('alg_not_allowed'));
    },
  );

  it('alg of another type than text, and another key’s signature under its own algorithm', async () => {
    for (const alg of [undefined, null, 7, ['ES256'], { alg: 'ES256' }])
      expect(await verdictOf(await byHand({ alg }, () => 'AAAA'))).toEqual(refusedAs('alg_not_allowed'));
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey;
    const token = await byHand({ alg: 'RS256' }, (input) => createSign('sha256').update(input).sign(rsa, 'base64url'));
    expect(await verdictOf(token)).toEqual(refusedAs('alg_not_allowed'));
  });

  const kids: unknown[] = [
    ...[undefined, null, '', 7, true, {}, [], ['KID']],
    ...['other', '../../../etc/passwd', '/dev/null', "' OR 1=1 --", '__proto__', 'constructor', 'toString'],
    ...['KID ', ' KID', 'kid\u0000', 'http://127.0.0.1/key', 'x'.repeat(4_000), '\u202eKID'],
  ];
  it.each(kids)('kid %j', async (given) => {
    const named = (text: unknown) => (typeof text === 'string' ? text.replace('KID', keyId) : text);
    const kid = Array.isArray(given) ? given.map(named) : named(given);
    const [, payload, signature] = (await fresh()).split('.');
    const header = encode({ alg: 'ES256', typ: 'at+jwt', ...(kid === undefined ? {} : { kid }) });
    expect(await verdictOf(`${header}.${payload}.${signature}`)).toEqual(refusedAs('unknown_key'));
  });

  it('kid of a key that is published and signed nothing', async () => {
    expect(await verdictOf(await sign(await claimsNow(), { kid: nextKeyId }))).toEqual(refusedAs('bad_signature'));
  });

  it.each(['jku', 'jwk', 'x5u', 'x5c', 'x5t', 'x5t#S256', 'crit', 'b64', 'zip', 'cty', 'enc', 'epk', 'p2c', 'nonce'])(
    '%s in the header, with the signature of whoever put it there',
    async (parameter) => {
      const url = `http://127.0.0.1:${(lure.address() as AddressInfo).port}/keys`;
      const own = { ...(await exportJWK(stranger.publicKey)), kid: keyId, alg: 'ES256' };
      const hostile: Record<string, unknown> = { jwk: own, x5c: ['AAAA'], crit: ['exp'], b64: false, p2c: 1e9 };
      const header = { [parameter]: hostile[parameter] ?? url };
      const signedAs = async (key: CryptoKey) => {
        const [, payload] = (await sign(await claimsNow(), {}, key)).split('.');
        const head = encode({ alg: 'ES256', kid: keyId, typ: 'at+jwt', ...header });
        const bytes = Buffer.from(`${head}.${payload}`);
        const made = await crypto.subtle.sign({ name: 'ECDSA', hash: 'SHA-256' }, key, bytes);
        return `${head}.${payload}.${Buffer.from(made).toString('base64url')}`;
      };
      expect(await verdictOf(await signedAs(stranger.privateKey))).toEqual(refusedAs('header_not_allowed'));
      // And also where the signature is right: nothing that we sign has it.
      expect(await verdictOf(await signedAs(signingKey))).toEqual(refusedAs('header_not_allowed'));
      expect(lured).toBe(0);
    },
  );

  it('another type of token, signed by the same key', async () => {
    for (const typ of [undefined, 'JWT', 'jwt', 'dpop+jwt', 'application/jwt', 'secevent+jwt', '', 7, ['at+jwt']])
      expect(await verdictOf(await sign(await claimsNow(), { typ }))).toEqual(refusedAs('wrong_type'));
  });

  it('a signature that is none, is another’s, or is right for something else', async () => {
    const token = await fresh();
    const [header, payload, signature = ''] = token.split('.');
    const [, , another] = (await issue()).split('.');
    const zero = Buffer.alloc(64).toString('base64url');
    const order = Buffer.from('ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551', 'hex');
    const bent = [
      zero,
      Buffer.concat([order, order]).toString('base64url'),
      another ?? '',
      signature.slice(0, -4),
      `${signature}AAAA`,
      Buffer.concat([Buffer.from(signature, 'base64url').subarray(32), Buffer.alloc(32)]).toString('base64url'),
    ];
    for (const end of bent)
      expect(await verdictOf(`${header}.${payload}.${end}`), end).toEqual(refusedAs('bad_signature'));
    expect(await verdictOf(await sign(await claimsNow(), {}, stranger.privateKey))).toEqual(refusedAs('bad_signature'));
    const other = encode({ ...(await claimsNow()), sub: 'f'.repeat(32) });
    expect(await verdictOf(`${header}.${other}.${signature}`)).toEqual(refusedAs('bad_signature'));
  });

  it('what is no token in three parts', async () => {
    const token = await fresh();
    const [header, payload, signature] = token.split('.');
    const json = JSON.stringify({ protected: header, payload, signature });
    for (const text of ['x', 'a.b', '..', `${token}.`, `.${token}`, `${header}.${payload}`, `${token}.a.b`, json])
      expect(await verdictOf(text)).toEqual(refusedAs('malformed'));
    // Characters that some decoders of base64 pass over.
    for (const text of [` ${token}`, `${token} `, `${token}\n`, `${token}=`, `\u0000${token}`, `${token}\u200b`])
      expect(await verdictOf(text), JSON.stringify(text.slice(-4))).toEqual(refusedAs('malformed'));
    expect(await verdictOf(`${header}.${payload} .${signature}`)).toEqual(refusedAs('malformed'));
    const oversize = `${header}.${'A'.repeat(17_000)}.${signature}`;
    expect(await verdictOf(oversize)).toEqual(refusedAs('oversize'));
  });
});

describe('F19: claims', () => {
  const REQUIRED = ['iss', 'aud', 'sub', 'client_id', 'act', 'jti', 'iat', 'exp', 'txn', 'namespace'];
  const ALL = [...REQUIRED, 'authorization_details'];

  it.each(ALL)('%s is left out', async (claim) => {
    const { [claim]: _, ...others } = await claimsNow();
    expect(await verdictOf(await sign(others))).toEqual(refusedAs('claim_missing'));
  });

  it.each([...ALL, 'lease_id', 'cnf'])('%s is of another type, or a list where one value belongs', async (claim) => {
    const claims = await claimsNow();
    const right = claims[claim];
    const wrong: unknown[] = [null, true, 7.5, -1, {}, [], '', [[]], [right], { [claim]: right }, [right, right]];
    for (const value of wrong) {
      const verdict = await verdictOf(await sign({ ...claims, [claim]: value }));
      const shown = `${claim}: ${JSON.stringify(value)}`;
      expect(verdict.check, shown).toBe('claim_invalid');
      expect(verdict.introspection, shown).toBe(false);
      expect(
        ['claim_invalid', 'wrong_issuer', 'wrong_audience', 'not_yet_valid', 'expired', 'too_old'],
        shown,
      ).toContain(verdict.offline);
    }
  });

  it('numbers as text, and text as numbers', async () => {
    const claims = await claimsNow();
    for (const claim of ['iat', 'exp'])
      expect(await verdictOf(await sign({ ...claims, [claim]: String(claims[claim]) }))).toEqual(
        refusedAs('claim_invalid'),
      );
    for (const claim of ['sub', 'jti', 'txn', 'namespace', 'client_id', 'lease_id'])
      expect(await verdictOf(await sign({ ...claims, [claim]: 7 }))).toEqual(refusedAs('claim_invalid'));
  });

  const GROUP = ['type', 'locations', 'actions', 'resources', 'fence', 'scope', 'concurrency'];
  it.each(GROUP)('%s of the write set is left out, or of another type', async (field) => {
    const claims = await claimsNow();
    const [group = {}] = claims.authorization_details as Record<string, unknown>[];
    const { [field]: right, ...others } = group;
    const wrong: unknown[] = [null, true, 7, {}, [], '', [[]], [7], [right]];
    for (const bent of [others, ...wrong.map((value) => ({ ...group, [field]: value }))]) {
      const verdict = await verdictOf(await sign({ ...claims, authorization_details: [bent] }));
      expect(verdict, JSON.stringify(bent)).toEqual(refusedAs('claim_invalid'));
    }
  });

  it.each([
    { authorization_details: [] },
    { act: {} },
    { act: { sub: ['runner'] } },
    { cnf: {} },
    { cnf: { jkt: 'A'.repeat(43), 'x5t#S256': 'A'.repeat(43) } },
    { cnf: { kid: 'A'.repeat(43) } },
    { cnf: { jwk: {} } },
    { cnf: { jkt: ['A'.repeat(43)] } },
  ])('%j in place of what it should be', async (change) => {
    expect(await verdictOf(await sign({ ...(await claimsNow()), ...change }))).toEqual(refusedAs('claim_invalid'));
  });

  it('of another issuer, for another target, and out of their time', async () => {
    const claims = await claimsNow();
    const now = Math.floor(Date.now() / 1_000);
    for (const iss of [`${ISSUER}/`, ISSUER.toUpperCase(), 'https://evil.test'])
      expect(await verdictOf(await sign({ ...claims, iss }))).toEqual(refusedAs('wrong_issuer'));
    for (const aud of ['Target', 'target ', 'operator'])
      expect(await verdictOf(await sign({ ...claims, aud }))).toMatchObject({
        check: 'wrong_audience',
        offline: 'wrong_audience',
      });
    expect(await verdictOf(await sign({ ...claims, iat: now - 70, exp: now - 10 }))).toEqual(
      refusedAs('credential_expired', 'expired'),
    );
    expect(await verdictOf(await sign({ ...claims, iat: now + 600, exp: now + 650 }))).toEqual(
      refusedAs('not_yet_valid'),
    );
  });

  it('of a life that we give nobody: it ends a minute after it was issued, whatever its end says', async () => {
    const now = Math.floor(Date.now() / 1_000);
    const claims = { ...(await claimsNow()), iat: now - 70, exp: now + 86_400 };
    expect(await verdictOf(await sign(claims))).toEqual(refusedAs('credential_expired', 'too_old'));
  });
});
