import { createHmac, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, exportSPKI, generateKeyPair, type JWTPayload, SignJWT, UnsecuredJWT } from 'jose';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type Authenticator,
  type CallerAuthenticator,
  createCallerAuthenticator,
} from '../../src/auth/authenticator.js';
import type { IssuerEntry } from '../../src/auth/issuers.js';
import { createKeySource, type KeyLocation, type KeySourceOptions } from '../../src/auth/key-source.js';
import type { PrincipalEntry } from '../../src/auth/principal-entry.js';
import { hashToken } from '../../src/auth/tokens.js';
import { Fault } from '../../src/domain/fault.js';

/** Callers by signed tokens: every way in which one is refused (F18, F19), and how keys are come by (F20). */

const ISSUER = 'https://issuer.example';
const PRINCIPALS: PrincipalEntry[] = [
  { name: 'svc:release', roles: ['runner'], tokenSha256: hashToken('static-token') },
  { name: 'ci:taken', roles: ['admin'] },
];
const MAPPINGS: IssuerEntry['mappings'] = [
  { claims: { sub: 'system:serviceaccount:ci:release' }, principal: 'svc:release', roles: [] },
  { claims: { repository: 'acme/*', ref: 'refs/heads/**' }, principal: 'ci:{repository}', roles: ['target'] },
  { claims: { team: '**' }, principal: 'ci:{team}', roles: ['auditor'], namespaceRoles: { 'team-a': ['runner'] } },
];

interface Signer {
  readonly privateKey: CryptoKey | KeyObject;
  readonly publicKey: CryptoKey | KeyObject;
  readonly kid: string;
}

let signer: Signer;
let stranger: Signer;
const refusals: string[] = [];

async function makeSigner(kid: string): Promise<Signer> {
  return { ...(await generateKeyPair('ES256', { extractable: true })), kid };
}

const jwkOf = async ({ publicKey, kid }: Signer) => ({ ...(await exportJWK(publicKey)), kid, alg: 'ES256' });

beforeAll(async () => {
  signer = await makeSigner('one');
  stranger = await makeSigner('one');
});

async function authenticator(
  more: Partial<IssuerEntry> = {},
  options: KeySourceOptions = {},
): Promise<CallerAuthenticator> {
  refusals.length = 0;
  const issuer: IssuerEntry = {
    issuer: ISSUER,
    audience: ['writ'],
    algorithms: ['ES256'],
    typ: null,
    maxTokenAgeSeconds: 3600,
    clockToleranceSeconds: 5,
    keys: { kind: 'file', file: 'keys.json', jwks: { keys: [await jwkOf(signer)] } },
    mappings: MAPPINGS,
    initiatorClaim: 'email',
    ...more,
  };
  return createCallerAuthenticator({
    principals: PRINCIPALS,
    issuers: [issuer],
    keySources: (name, keys) => createKeySource(name, keys, options),
    refused: (cause) => refusals.push(cause),
  });
}

const now = (): number => Math.floor(Date.now() / 1_000);

const CLAIMS = (): JWTPayload => ({
  iss: ISSUER,
  aud: 'writ',
  sub: 'system:serviceaccount:ci:release',
  iat: now() - 10,
  exp: now() + 300,
});

function sign(claims: JWTPayload, by: Signer = signer, header: Record<string, unknown> = {}): Promise<string> {
  return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: by.kid, ...header }).sign(by.privateKey);
}

const without = (claim: string): JWTPayload =>
  Object.fromEntries(Object.entries(CLAIMS()).filter(([k]) => k !== claim));

/** The fault, as reason and cause. */
async function refusal(by: Authenticator, token: string): Promise<string> {
  try {
    await by.authenticate(`Bearer ${token}`);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    expect(error.message).not.toContain(token.slice(0, 20));
    return `${error.reason} ${error.details.metadata?.cause ?? ''}`.trim();
  }
  return 'accepted';
}

describe('a signed token', () => {
  it('stands for the principal that its claims are mapped to', async () => {
    const by = await authenticator();
    expect(await by.authenticate(`Bearer ${await sign(CLAIMS())}`)).toEqual({
      name: 'svc:release',
      roles: new Set(['runner']),
    });
  });

  it('makes a name by a template, from claims that match', async () => {
    const by = await authenticator();
    const ci = { ...CLAIMS(), sub: 'x', repository: 'acme/shop', ref: 'refs/heads/a/b' };
    expect(await by.authenticate(`Bearer ${await sign(ci)}`)).toEqual({
      name: 'ci:acme/shop',
      roles: new Set(['target']),
    });
    for (const repository of ['evil/acme/shop', 'acme/shop/x', 'acme/', 'acme', 'ACME/shop'])
      expect(await refusal(by, await sign({ ...ci, repository }))).toBe('TOKEN_REJECTED unmapped');
  });

  it('is matched by the first mapping, in the order of the file', async () => {
    const by = await authenticator();
    const both = { ...CLAIMS(), sub: 'x', repository: 'acme/shop', ref: 'refs/heads/main', team: 'b' };
    expect(await by.authenticate(`Bearer ${await sign(both)}`)).toMatchObject({ name: 'ci:acme/shop' });
  });

  it('is matched by a pattern whose other characters all stand for themselves', async () => {
    const odd = '-^$.+?()[]{}|/\\,#&~!%=:@"\'`<>; é';
    const by = await authenticator({
      mappings: [{ claims: { sub: `ci-*${odd}` }, principal: 'svc:release', roles: [] }],
    });
    expect(await refusal(by, await sign({ ...CLAIMS(), sub: `ci-7${odd}` }))).toBe('accepted');
    for (const sub of [`ci-7${odd}x`, `cix7${odd}`, 'ci-7', `ci-7${odd.replace('.', 'x')}`])
      expect(await refusal(by, await sign({ ...CLAIMS(), sub }))).toBe('TOKEN_REJECTED unmapped');
  });

  it.each([
    ['another principal’s name', 'taken'],
    ['no name', 'a b'],
    ['a name too long', 'x'.repeat(200)],
    ['a control character', 'a\u0000b'],
    ['nothing', ''],
  ])('makes no name from a claim with %s', async (_, team) => {
    const by = await authenticator();
    expect(await refusal(by, await sign({ ...CLAIMS(), sub: 'x', team }))).toBe('TOKEN_REJECTED unmapped');
  });

  it.each([
    ['a list', ['acme/shop']],
    ['a number', 7],
    ['an object', { name: 'acme/shop' }],
    ['null', null],
  ])('matches no claim that is %s (F19)', async (_, repository) => {
    const by = await authenticator();
    const claims = { ...CLAIMS(), sub: 'x', repository, ref: 'refs/heads/main' };
    expect(await refusal(by, await sign(claims))).toBe('TOKEN_REJECTED unmapped');
  });

  const cases: [string, () => Promise<string> | string, string][] = [
    ['of another issuer', () => sign({ ...CLAIMS(), iss: 'https://other.example' }), 'TOKEN_REJECTED issuer'],
    ['of a list of issuers', () => sign({ ...CLAIMS(), iss: [ISSUER] as never }), 'TOKEN_REJECTED issuer'],
    ['without issuer', () => sign(without('iss')), 'TOKEN_REJECTED issuer'],
    ['for another audience', () => sign({ ...CLAIMS(), aud: 'other' }), 'TOKEN_REJECTED audience'],
    ['without audience', () => sign(without('aud')), 'TOKEN_REJECTED audience'],
    ['with a malformed audience', () => sign({ ...CLAIMS(), aud: { writ: true } as never }), 'TOKEN_REJECTED audience'],
    ['that has expired', () => sign({ ...CLAIMS(), exp: now() - 60 }), 'TOKEN_EXPIRED expired'],
    ['without exp', () => sign(without('exp')), 'TOKEN_REJECTED claims'],
    ['with exp as text', () => sign({ ...CLAIMS(), exp: '9999999999' as never }), 'TOKEN_REJECTED claims'],
    ['without iat', () => sign(without('iat')), 'TOKEN_REJECTED not_yet_valid'],
    ['of the future', () => sign({ ...CLAIMS(), iat: now() + 600 }), 'TOKEN_REJECTED not_yet_valid'],
    ['not valid yet', () => sign({ ...CLAIMS(), nbf: now() + 600 }), 'TOKEN_REJECTED not_yet_valid'],
    ['issued too long ago', () => sign({ ...CLAIMS(), iat: now() - 7200 }), 'TOKEN_REJECTED too_old'],
    ['signed by another key', () => sign(CLAIMS(), stranger), 'TOKEN_REJECTED signature'],
    ['that names no known key', () => sign(CLAIMS(), signer, { kid: '../../etc/passwd' }), 'TOKEN_REJECTED key'],
    [
      'with critical extensions',
      () => sign(CLAIMS(), signer, { crit: ['x'], x: 1 }).catch(() => craft({ crit: ['x'], x: 1 })),
      'TOKEN_REJECTED malformed',
    ],
    [
      'that brings its own key',
      async () => sign(CLAIMS(), stranger, { jwk: await jwkOf(stranger) }),
      'TOKEN_REJECTED signature',
    ],
    [
      'that says where its key is',
      () => sign(CLAIMS(), stranger, { jku: 'https://evil.example' }),
      'TOKEN_REJECTED signature',
    ],
    ['signed by nothing', () => new UnsecuredJWT(CLAIMS()).encode(), 'TOKEN_REJECTED algorithm'],
    ['keyed by the public key (HS256)', () => hs256(), 'TOKEN_REJECTED algorithm'],
    ['whose algorithm is swapped', async () => swapAlg(await sign(CLAIMS()), 'RS256'), 'TOKEN_REJECTED algorithm'],
    ['whose claims were changed', async () => swapClaims(await sign(CLAIMS())), 'TOKEN_REJECTED signature'],
    ['bound to a key in another way', () => sign({ ...CLAIMS(), cnf: { jkt: 'x' } }), 'TOKEN_REJECTED binding'],
    ['bound to a certificate', () => sign({ ...CLAIMS(), cnf: { 'x5t#S256': 'x' } }), 'TOKEN_REJECTED binding'],
    ['that cannot be read', () => 'eyJx.eyJy.z', 'TOKEN_REJECTED malformed'],
  ];

  it.each(cases)('%s is refused', async (_, make, expected) => {
    const by = await authenticator();
    expect(await refusal(by, await make())).toBe(expected);
    expect(refusals).toEqual([expected.split(' ')[1]]);
  });

  it.each([
    ['stands 5 s of skew at its end', { exp: -4 }, 'accepted'],
    ['and not more', { exp: -6 }, 'TOKEN_EXPIRED expired'],
    ['stands 5 s of skew at its beginning', { iat: 4, nbf: 4 }, 'accepted'],
    ['and not more there', { nbf: 7 }, 'TOKEN_REJECTED not_yet_valid'],
    ['nor where it was issued', { iat: 7 }, 'TOKEN_REJECTED not_yet_valid'],
  ])('%s (F12)', async (_, off, expected) => {
    const by = await authenticator();
    const claims = Object.fromEntries(Object.entries(off).map(([claim, seconds]) => [claim, now() + seconds]));
    expect(await refusal(by, await sign({ ...CLAIMS(), ...claims }))).toBe(expected);
  });

  it.each(['iss', 'aud', 'exp', 'iat', 'nbf', 'cnf'])('with %s of another type is refused (F19)', async (claim) => {
    const by = await authenticator();
    const right = { ...CLAIMS(), nbf: now() - 10 }[claim];
    for (const wrong of [null, true, {}, [], [[]], '', 'x', { [claim]: right }, [right, 7]]) {
      if (claim === 'aud' && Array.isArray(wrong) && wrong.includes(right)) continue;
      const outcome = await refusal(by, await sign({ ...CLAIMS(), [claim]: wrong } as JWTPayload));
      expect([claim, wrong, outcome]).not.toContain('accepted');
      expect(outcome).toMatch(/^TOKEN_(REJECTED|EXPIRED) /);
    }
  });

  it('of another type is refused where the type is configured', async () => {
    const by = await authenticator({ typ: 'at+jwt' });
    expect(await refusal(by, await sign(CLAIMS(), signer, { typ: 'JWT' }))).toBe('TOKEN_REJECTED type');
    expect(await refusal(by, await sign(CLAIMS(), signer))).toBe('TOKEN_REJECTED type');
    expect(await refusal(by, await sign(CLAIMS(), signer, { typ: 'at+jwt' }))).toBe('accepted');
  });

  it('is verified once, and remembered no longer than it lives', async () => {
    const by = await authenticator({ clockToleranceSeconds: 0 });
    const token = await sign({ ...CLAIMS(), exp: now() + 2 });
    const first = by.authenticate(`Bearer ${token}`);
    expect(first).toBeInstanceOf(Promise);
    const principal = await first;
    expect(by.authenticate(`Bearer ${token}`)).toBe(principal);
    await expect.poll(() => refusal(by, token), { timeout: 10_000 }).toBe('TOKEN_EXPIRED expired');
  });

  it('does not shut out static tokens', async () => {
    const by = await authenticator();
    expect(by.authenticate('Bearer static-token')).toMatchObject({ name: 'svc:release' });
    expect(await refusal(by, 'not-known')).toBe('UNAUTHENTICATED unknown_token');
  });
});

/** A token by HMAC, keyed by the text of the public key: what a verifier that trusts `alg` would take. */
async function hs256(): Promise<string> {
  const secret = await exportSPKI(signer.publicKey as CryptoKey);
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const head = `${part({ alg: 'HS256', kid: signer.kid })}.${part(CLAIMS())}`;
  return `${head}.${createHmac('sha256', secret).update(head).digest('base64url')}`;
}

async function craft(header: object): Promise<string> {
  const [, payload, signature] = (await sign(CLAIMS())).split('.');
  const head = Buffer.from(JSON.stringify({ alg: 'ES256', kid: signer.kid, ...header })).toString('base64url');
  return `${head}.${payload}.${signature}`;
}

function swapAlg(token: string, alg: string): string {
  const [, payload, signature] = token.split('.');
  return `${Buffer.from(JSON.stringify({ alg, kid: signer.kid })).toString('base64url')}.${payload}.${signature}`;
}

function swapClaims(token: string): string {
  const [header, , signature] = token.split('.');
  return `${header}.${Buffer.from(JSON.stringify({ ...CLAIMS(), sub: 'other' })).toString('base64url')}.${signature}`;
}

describe('keys that are fetched (F20)', () => {
  let server: Server;
  let fetched: string[];
  let answer: (path: string) => unknown;

  async function serve(): Promise<string> {
    fetched = [];
    server = createServer((request, response) => {
      fetched.push(request.url ?? '');
      const body = answer(request.url ?? '');
      if (body === 'hang') return;
      if (typeof body === 'number') response.writeHead(body).end();
      else response.end(typeof body === 'string' ? body : JSON.stringify(body));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  const by = (keys: KeyLocation, issuer: string, options: KeySourceOptions = {}) =>
    authenticator({ keys, issuer }, options);

  it('are fetched once, however many tokens come at once', async () => {
    const url = await serve();
    const keys = { keys: [await jwkOf(signer)] };
    answer = () => keys;
    const one = await by({ kind: 'uri', uri: `${url}/keys` }, url);
    const tokens = await Promise.all(
      Array.from({ length: 50 }, (_, i) => sign({ ...CLAIMS(), iss: url, jti: `${i}` })),
    );
    const found = await Promise.all(tokens.map((token) => one.authenticate(`Bearer ${token}`)));
    expect(new Set(found.map(({ name }) => name))).toEqual(new Set(['svc:release']));
    expect(fetched).toEqual(['/keys']);
  });

  it('are found by discovery, at the issuer that names itself', async () => {
    const url = await serve();
    const keys = { keys: [await jwkOf(signer)] };
    answer = (path) => (path === '/keys' ? keys : { issuer: url, jwks_uri: `${url}/keys` });
    expect(await refusal(await by({ kind: 'discovery' }, url), await sign({ ...CLAIMS(), iss: url }))).toBe('accepted');
    expect(fetched).toEqual(['/.well-known/openid-configuration', '/keys']);
    answer = () => ({ issuer: 'https://other.example', jwks_uri: `${url}/keys` });
    const other = await by({ kind: 'discovery' }, url);
    expect(await refusal(other, await sign({ ...CLAIMS(), iss: url }))).toBe('KEYS_UNAVAILABLE');
    answer = () => ({ issuer: url, jwks_uri: 'http://evil.example/keys' });
    const third = await by({ kind: 'discovery' }, url);
    expect(await refusal(third, await sign({ ...CLAIMS(), iss: url }))).toBe('KEYS_UNAVAILABLE');
  });

  it('that rotate are fetched again for a key that is not known, and not for every made-up one', async () => {
    const url = await serve();
    const next = await makeSigner('two');
    let keys = { keys: [await jwkOf(signer)] };
    answer = () => keys;
    const eager = await by({ kind: 'uri', uri: `${url}/keys` }, url, { cooldownMs: 0 });
    expect(await refusal(eager, await sign({ ...CLAIMS(), iss: url }))).toBe('accepted');
    keys = { keys: [await jwkOf(signer), await jwkOf(next)] };
    expect(await refusal(eager, await sign({ ...CLAIMS(), iss: url }, next))).toBe('accepted');
    expect(fetched).toHaveLength(2);
    const patient = await by({ kind: 'uri', uri: `${url}/keys` }, url);
    for (let i = 0; i < 20; i += 1)
      await refusal(patient, await sign({ ...CLAIMS(), iss: url, jti: `${i}` }, signer, { kid: `made-up-${i}` }));
    expect(fetched).toHaveLength(3);
  });

  it.each([
    ['is down', 503],
    ['answers with too much', `{"keys":["${'x'.repeat(600_000)}"]}`],
    ['answers with something else', '<html>'],
    ['answers with no keys', '{"keys":"none"}'],
    ['hangs', 'hang'],
  ])('of a server that %s: calls are told so, and it is not asked for each', async (_, body) => {
    const url = await serve();
    answer = () => body;
    const one = await by({ kind: 'uri', uri: `${url}/keys` }, url, { timeoutMs: 200 });
    for (let i = 0; i < 5; i += 1)
      expect(await refusal(one, await sign({ ...CLAIMS(), iss: url, jti: `${i}` }))).toBe('KEYS_UNAVAILABLE');
    expect(fetched).toHaveLength(1);
  });

  it('are fetched anew beside the calls when they are old, and what was withdrawn ends with it', async () => {
    const url = await serve();
    const next = await makeSigner('two');
    let keys = { keys: [await jwkOf(signer)] };
    answer = () => keys;
    const one = await by({ kind: 'uri', uri: `${url}/keys` }, url, { refreshAfterMs: 20 });
    // A token of its own each time: what was verified is remembered.
    let serial = 0;
    const outcome = async (from: Signer) =>
      refusal(one, await sign({ ...CLAIMS(), iss: url, jti: `${++serial}` }, from));
    expect(await outcome(signer)).toBe('accepted');
    keys = { keys: [await jwkOf(next)] };
    await expect.poll(() => outcome(signer)).toBe('TOKEN_REJECTED key');
    expect(await outcome(next)).toBe('accepted');
  });

  it('are used while their server is down, and not when they are too old', async () => {
    const url = await serve();
    const keys = { keys: [await jwkOf(signer)] };
    answer = () => keys;
    const options = { refreshAfterMs: 0, maxAgeMs: 1_500, pauseAfterFailureMs: 0 };
    const one = await by({ kind: 'uri', uri: `${url}/keys` }, url, options);
    let serial = 0;
    const outcome = async () => refusal(one, await sign({ ...CLAIMS(), iss: url, jti: `${++serial}` }));
    expect(await outcome()).toBe('accepted');
    answer = () => 503;
    expect(await outcome()).toBe('accepted');
    await expect.poll(() => fetched.length).toBeGreaterThan(1);
    await expect.poll(outcome, { timeout: 10_000 }).toBe('KEYS_UNAVAILABLE');
    answer = () => keys;
    expect(await outcome()).toBe('accepted');
  });

  it('of a server that was down are used when it is back', async () => {
    const url = await serve();
    answer = () => 500;
    const one = await by({ kind: 'uri', uri: `${url}/keys` }, url, { pauseAfterFailureMs: 0 });
    const token = await sign({ ...CLAIMS(), iss: url });
    expect(await refusal(one, token)).toBe('KEYS_UNAVAILABLE');
    const keys = { keys: [await jwkOf(signer)] };
    answer = () => keys;
    expect(await refusal(one, token)).toBe('accepted');
  });

  it('of a server that hangs hold up a bounded number of calls, and no known token', async () => {
    const url = await serve();
    answer = () => 'hang';
    const one = await by({ kind: 'uri', uri: `${url}/keys` }, url, { timeoutMs: 2_000 });
    const tokens = await Promise.all(
      Array.from({ length: 70 }, (_, i) => sign({ ...CLAIMS(), iss: url, jti: `${i}` })),
    );
    const outcomes = await Promise.all(tokens.map((token) => refusal(one, token)));
    expect(outcomes.filter((outcome) => outcome === 'AUTHENTICATION_BUSY')).toHaveLength(6);
    expect(outcomes.filter((outcome) => outcome === 'KEYS_UNAVAILABLE')).toHaveLength(64);
    expect(one.authenticate('Bearer static-token')).toMatchObject({ name: 'svc:release' });
  });
});

describe('a flood of bad tokens', () => {
  it('is turned away with a bounded number of verifications under way, remembers none of it, and holds up nobody known', async () => {
    const by = await authenticator();
    const good = await sign(CLAIMS());
    await by.authenticate(`Bearer ${good}`);
    const forged = await Promise.all(
      Array.from({ length: 400 }, (_, i) => sign({ ...CLAIMS(), jti: `${i}` }, stranger)),
    );
    refusals.length = 0;
    const outcomes = forged.map((token) => refusal(by, token));
    // In the midst of it: what is known is looked up, and not verified.
    expect(by.authenticate(`Bearer ${good}`)).toMatchObject({ name: 'svc:release' });
    expect(by.authenticate('Bearer static-token')).toMatchObject({ name: 'svc:release' });
    const seen = await Promise.all(outcomes);
    expect(seen.filter((one) => one === 'TOKEN_REJECTED signature')).toHaveLength(64);
    expect(seen.filter((one) => one === 'AUTHENTICATION_BUSY')).toHaveLength(336);
    expect(refusals).toHaveLength(400);
    // And when it is over there is room again.
    expect(await refusal(by, await sign({ ...CLAIMS(), jti: 'after' }))).toBe('accepted');
    expect(await refusal(by, forged[0] ?? '')).toBe('TOKEN_REJECTED signature');
  });
});

describe('the initiator of a run (I2, RFC 8693)', () => {
  const person = (more: JWTPayload = {}): JWTPayload => ({ ...CLAIMS(), email: 'alice@example.org', ...more });

  it('is the person whose token it is', async () => {
    const known = await authenticator();
    expect(await known.initiatorOf(await sign(person()), 'svc:release')).toBe('alice@example.org');
    const named = person({ may_act: { sub: 'svc:release' } });
    expect(await known.initiatorOf(await sign(named), 'svc:release')).toBe('alice@example.org');
  });

  it.each([
    ['may_act', { may_act: { sub: 'svc:other' } }],
    ['may_act', { may_act: 'svc:release' }],
    ['may_act', { may_act: null }],
    ['binding', { cnf: { 'x5t#S256': 'A'.repeat(43) } }],
    ['binding', { cnf: { jkt: 'A'.repeat(43) } }],
    ['claims', { email: ['alice@example.org'] }],
    ['claims', { email: '' }],
    ['claims', { email: 'alice\u202e' }],
    ['claims', { email: 'a'.repeat(257) }],
    ['audience', { aud: 'another' }],
  ])('is nobody when the token is wrong in %s: %j', async (cause, more) => {
    const known = await authenticator();
    await expect(known.initiatorOf(await sign(person(more)), 'svc:release')).rejects.toMatchObject({
      faultClass: 'unauthenticated',
      details: { metadata: { cause } },
    });
  });

  it('is nobody by a stranger’s signature, or by an issuer that names no persons', async () => {
    const known = await authenticator();
    await expect(known.initiatorOf(await sign(person(), stranger), 'svc:release')).rejects.toMatchObject({
      details: { metadata: { cause: 'signature' } },
    });
    const silent = await authenticator({ initiatorClaim: null });
    await expect(silent.initiatorOf(await sign(person()), 'svc:release')).rejects.toMatchObject({
      details: { metadata: { cause: 'issuer' } },
    });
  });
});
