import { createHash } from 'node:crypto';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ROUTES, rolesForRoute } from '../../src/auth/roles.js';
import { hashToken } from '../../src/auth/tokens.js';
import { type Coordinator, startCoordinator } from '../../src/coordinator.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { type BrowserClient, browserClient } from '../support/browser-client.js';
import { eventually } from '../support/coordinator.js';
import { startProvider, type TestProvider } from '../support/oidc-provider.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';

/** Sign-in of browsers against running coordinators: two replicas with one key, and one with another. */

const PERSON = 'ada@example.org';
const KEY = Buffer.alloc(32, 1).toString('base64url');
const OTHER_KEY = Buffer.alloc(32, 2).toString('base64url');

let directory: string;
let database: TestDatabase;
let provider: TestProvider;
let main: Coordinator;
let replica: Coordinator;
let stranger: Coordinator;
const log: string[] = [];

const principalsFile = (): string => join(directory, 'principals.json');

async function writePrincipals(names: readonly string[]): Promise<void> {
  const file = {
    principals: [
      { name: 'prometheus', roles: ['auditor'], token_sha256: hashToken('token-prometheus') },
      ...names.map((name) => ({ name, roles: ['operator', 'admin'], token_sha256: hashToken(`token-${name}`) })),
      { name: 'team', namespaces: { 'team-a': ['auditor'] }, token_sha256: hashToken('token-team') },
    ],
    issuers: [
      {
        issuer: provider.issuer,
        audience: provider.clientId,
        discovery: true,
        algorithms: ['ES256'],
        mappings: [{ claims: { email: '*@example.org' }, principal: 'person:{email}', roles: ['auditor'] }],
      },
    ],
  };
  await writeFile(`${principalsFile()}.new`, JSON.stringify(file));
  await rename(`${principalsFile()}.new`, principalsFile());
}

function start(key: string, more: Record<string, string> = {}): Promise<Coordinator> {
  const env = {
    WRIT_GRPC_PORT: '0',
    WRIT_HTTP_PORT: '0',
    WRIT_DATA_DIR: join(
      directory,
      `data-${createHash('sha256')
        .update(key + JSON.stringify(more))
        .digest('hex')
        .slice(0, 8)}`,
    ),
    WRIT_DATABASE_URL: database.url,
    WRIT_DATABASE_PREPARED: PREPARED ? 'on' : 'off',
    WRIT_TOKENS_FILE: principalsFile(),
    WRIT_KEY_ENCRYPTION_KEY: key,
    WRIT_ISSUER: 'https://writ.test',
    WRIT_MAX_CLOCK_SKEW: '0s',
    WRIT_CONSOLE_OIDC_ISSUER: provider.issuer,
    WRIT_CONSOLE_OIDC_CLIENT_ID: provider.clientId,
    ...more,
  };
  return startCoordinator(readConfig(env), createLogger('trace', { write: (line) => void log.push(line) }));
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'writ-sign-in-'));
  provider = await startProvider(PERSON);
  database = await createTestDatabase();
  await migrate(database.url, { log: () => undefined });
  await writePrincipals(['ada', 'bob']);
  main = await start(KEY);
  replica = await start(KEY, { WRIT_CONSOLE_URL: 'https://writ.example' });
  stranger = await start(OTHER_KEY);
});

afterAll(async () => {
  await Promise.all([main, replica, stranger].map((one) => one?.stop()));
  await provider.stop();
  await database.drop();
  await rm(directory, { recursive: true, force: true });
});

let browser: BrowserClient;

beforeEach(() => {
  browser = browserClient(`http://${main.http}`);
});

afterEach(() => provider.behave({}));

/** Signs in by a token; returns what the console then sends along. */
async function signIn(token = 'token-ada', by = browser): Promise<string> {
  const { status, body } = await by.fetch('/auth/session', { method: 'POST', json: { token } });
  expect(status).toBe(200);
  return body.csrf as string;
}

const introspect = (headers: Record<string, string>, more: { origin?: string | null } = {}) =>
  browser.fetch('/oauth2/introspect', {
    method: 'POST',
    body: 'token=x',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    ...more,
  });

describe('a session of a browser', () => {
  it('begins with a token, says who is signed in, and ends with a sign-out', async () => {
    const opened = await browser.fetch('/auth/session', { method: 'POST', json: { token: 'token-ada' } });
    expect(opened.status).toBe(200);
    expect(opened.headers.get('cache-control')).toBe('no-store');
    expect(opened.body.principal).toEqual({ name: 'ada', roles: ['operator', 'admin'], namespaceRoles: {} });
    expect(Date.parse(opened.body.expiresAt as string) - Date.now()).toBeGreaterThan(7.9 * 3600_000);
    expect(browser.setCookies).toHaveLength(1);
    expect(browser.setCookies[0]).toMatch(/^writ-session=[^;]+; Max-Age=28\d{3}; Path=\/; HttpOnly; SameSite=Strict$/);
    expect(browser.setCookies[0]).not.toContain('token-ada');

    const shown = await browser.fetch('/auth/session');
    expect(shown.body).toEqual(opened.body);
    expect((await browser.fetch('/metrics')).status).toBe(200);

    const csrf = opened.body.csrf as string;
    const closed = await browser.fetch('/auth/session', { method: 'DELETE', headers: { 'writ-csrf': csrf } });
    expect(closed.status).toBe(204);
    expect(browser.cookies.size).toBe(0);
    expect((await browser.fetch('/auth/session')).status).toBe(401);
    expect((await browser.fetch('/metrics')).status).toBe(401);
    // Again, it is as it was.
    expect((await browser.fetch('/auth/session', { method: 'DELETE' })).status).toBe(204);
  });

  it('tells roles of single namespaces', async () => {
    await signIn('token-team');
    const { body } = await browser.fetch('/auth/session');
    expect(body.principal).toEqual({ name: 'team', roles: [], namespaceRoles: { 'team-a': ['auditor'] } });
  });

  it('is refused to a token that is not known, and told whether there is a provider', async () => {
    const refused = await browser.fetch('/auth/session', { method: 'POST', json: { token: 'token-nobody' } });
    expect(refused.status).toBe(401);
    expect(refused.body.reason).toBe('UNAUTHENTICATED');
    expect(refused.text).not.toContain('token-nobody');
    expect(browser.cookies.size).toBe(0);
    const { status, body } = await browser.fetch('/auth/session');
    expect({ status, reason: body.reason, oidc: body.oidc }).toEqual({
      status: 401,
      reason: 'UNAUTHENTICATED',
      oidc: true,
    });
  });

  it.each([
    ['nothing', {}],
    ['both', { token: 'token-ada', code: 'x' }],
    ['a token with spaces', { token: 'token ada' }],
    ['a token that is too long', { token: 'x'.repeat(9_000) }],
    ['more than that', { token: 'token-ada', remember: true }],
    ['no object', ['token-ada']],
  ])('needs a token or a code, not %s', async (_, json) => {
    const { status, body } = await browser.fetch('/auth/session', { method: 'POST', json });
    expect({ status, reason: body.reason }).toEqual({ status: 400, reason: 'INVALID_ARGUMENT' });
    expect(body.violations).toMatchObject([{ field: 'body' }]);
  });

  it('needs JSON, which no form of another page can send', async () => {
    const { status, body } = await browser.fetch('/auth/session', {
      method: 'POST',
      body: '{"token":"token-ada"}',
      headers: { 'content-type': 'text/plain' },
    });
    expect({ status, reason: body.reason }).toEqual({ status: 415, reason: 'UNSUPPORTED_MEDIA_TYPE' });
    expect(body.violations).toMatchObject([{ field: 'content-type' }]);
  });

  it('is known to every replica that has the key, and to no other', async () => {
    await signIn();
    const elsewhere = browserClient(`http://${replica.http}`);
    const other = browserClient(`http://${stranger.http}`);
    for (const [name, value] of browser.cookies) {
      // Reached by TLS, it looks for the cookie that only TLS can have set.
      elsewhere.cookies.set(`__Host-${name}`, value);
      other.cookies.set(name, value);
    }
    expect((await elsewhere.fetch('/auth/session')).status).toBe(200);
    const { status, body } = await other.fetch('/auth/session');
    expect({ status, reason: body.reason }).toEqual({ status: 401, reason: 'SESSION_ENDED' });
    // What is worth nothing is not kept.
    expect(other.cookies.size).toBe(0);
  });

  it('is over when its cookie was changed', async () => {
    await signIn();
    const [name = '', value = ''] = [...browser.cookies][0] ?? [];
    const parts = value.split('.');
    for (const at of [0, 2, 3, 4]) {
      const changed = parts.map((part, index) => {
        if (index !== at) return part;
        return `${part.startsWith('A') ? 'B' : 'A'}${part.slice(1)}`;
      });
      browser.cookies.set(name, changed.join('.'));
      const { status, body } = await browser.fetch('/metrics');
      expect({ status, reason: body.reason }).toEqual({ status: 401, reason: 'SESSION_ENDED' });
    }
    browser.cookies.set(name, 'nonsense');
    expect((await browser.fetch('/metrics')).status).toBe(401);
  });

  it('is over when its token is revoked', async () => {
    await signIn('token-bob');
    expect((await browser.fetch('/metrics')).status).toBe(200);
    // What streams to the browser ends with it; nothing else would end this.
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const stream = await fetch(`http://${main.http}/v1/events/stream`, { headers: { cookie } });
    try {
      await writePrincipals(['ada']);
      expect(await stream.text()).toMatch(/event: problem\ndata: .*"UNAUTHENTICATED"/);
      const ended = await eventually(
        () => browser.fetch('/auth/session'),
        ({ status }) => status !== 200,
      );
      expect({ status: ended.status, reason: ended.body.reason }).toEqual({ status: 401, reason: 'UNAUTHENTICATED' });
      expect(browser.cookies.size).toBe(0);
    } finally {
      await writePrincipals(['ada', 'bob']);
      await eventually(
        () => browser.fetch('/auth/session', { method: 'POST', json: { token: 'token-bob' } }),
        ({ status }) => status === 200,
      );
    }
  });

  it('takes a cookie of several parts for a long token, and leaves none of it behind', async () => {
    const now = Math.floor(Date.now() / 1_000);
    provider.behave({ claims: { padding: 'x'.repeat(2_500), exp: now + 60 } });
    await signInAtProvider();
    expect(browser.cookies.size).toBe(2);
    expect((await browser.fetch('/auth/session')).body.principal).toMatchObject({ name: `person:${PERSON}` });
    await signIn();
    expect(browser.cookies.size).toBe(1);
    expect((await browser.fetch('/auth/session')).body.principal).toMatchObject({ name: 'ada' });
  });

  it('is set over TLS alone where the console is reached by TLS', async () => {
    const secure = browserClient(`http://${replica.http}`);
    const opened = await secure.fetch('/auth/session', {
      method: 'POST',
      json: { token: 'token-ada' },
      origin: 'https://writ.example',
    });
    expect(opened.status).toBe(200);
    expect(secure.setCookies[0]).toMatch(/^__Host-writ-session=.*; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
  });

  it('leaves lines in the log that hold no secret', async () => {
    log.length = 0;
    const csrf = await signIn();
    const secrets = ['token-ada', csrf, browser.cookies.get('writ-session') ?? ''];
    await introspect({ 'writ-csrf': 'wrong' });
    await browser.fetch('/auth/session', { method: 'DELETE', headers: { 'writ-csrf': csrf } });
    await signInAtProvider('/auth/oidc/start', (back) => {
      secrets.push(back.searchParams.get('state') ?? '', browser.cookies.get('writ-sign-in') ?? '');
    });
    secrets.push(browser.cookies.get('writ-session') ?? '', provider.exchanges.at(-1)?.get('code_verifier') ?? '');
    provider.behave({ tokenStatus: 400 });
    await signInAtProvider();
    const lines = log.map((line) => JSON.parse(line) as { msg: string; principal?: string; method?: string });
    const told = lines.filter(({ msg }) => /console|provider/.test(msg));
    expect(told.map(({ msg, principal, method }) => [msg, principal, method])).toEqual([
      ['signed in to the console', 'ada', 'token'],
      ['signed out of the console', 'ada', undefined],
      ['signed in to the console', `person:${PERSON}`, 'oidc'],
      ['a sign-in at the provider failed', undefined, undefined],
    ]);
    for (const secret of secrets) {
      expect(secret.length).toBeGreaterThan(8);
      expect(log.join('')).not.toContain(secret);
    }
  });
});

describe('a request by session that changes something', () => {
  it('needs the value that only our own page knows, and to come from it', async () => {
    const csrf = await signIn();
    const right = { 'writ-csrf': csrf };
    expect((await introspect(right)).status).toBe(200);
    const refusals: [string, Record<string, string>, string | null | undefined][] = [
      ['CSRF_REQUIRED', {}, undefined],
      ['CSRF_REQUIRED', { 'writ-csrf': `${csrf}x` }, undefined],
      ['CSRF_REQUIRED', { 'writ-csrf': '' }, undefined],
      ['CROSS_ORIGIN', right, 'https://evil.example'],
      ['CROSS_ORIGIN', right, 'null'],
      ['CROSS_ORIGIN', right, `https://${main.http}`],
      ['CROSS_ORIGIN', right, 'http://127.0.0.1:1'],
      ['CROSS_ORIGIN', right, null],
      ['CROSS_ORIGIN', { ...right, 'sec-fetch-site': 'same-site' }, undefined],
      ['CROSS_ORIGIN', { ...right, 'sec-fetch-site': 'cross-site' }, undefined],
    ];
    for (const [reason, headers, origin] of refusals) {
      const { status, body } = await introspect(headers, origin === undefined ? {} : { origin });
      expect({ status, reason: body.reason, headers, origin }).toEqual({ status: 403, reason, headers, origin });
    }
  });

  it.each(ROUTES.filter((route) => rolesForRoute(route) !== null && !route.startsWith('GET ')))(
    'is looked at so before anything else: %s',
    async (route) => {
      const csrf = await signIn();
      const [method = '', template = ''] = route.split(' ');
      const path = template.replace(/\{\w+\}/g, 'x');
      expect((await browser.fetch(path, { method, json: {} })).body.reason).toBe('CSRF_REQUIRED');
      const headers = { 'writ-csrf': csrf };
      const foreign = await browser.fetch(path, { method, json: {}, headers, origin: 'https://evil.example' });
      expect({ status: foreign.status, reason: foreign.body.reason }).toEqual({ status: 403, reason: 'CROSS_ORIGIN' });
      expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
    },
  );

  it('does not sign anybody out, or in, for a page of another origin', async () => {
    const csrf = await signIn();
    for (const headers of [{}, { 'writ-csrf': csrf }]) {
      const origin = 'https://evil.example';
      const out = await browser.fetch('/auth/session', { method: 'DELETE', headers, origin });
      expect(out.body.reason).toBe('CROSS_ORIGIN');
    }
    expect((await browser.fetch('/auth/session', { method: 'DELETE' })).body.reason).toBe('CSRF_REQUIRED');
    const json = { token: 'token-ada' };
    const signIn2 = await browser.fetch('/auth/session', { method: 'POST', json, origin: 'https://evil.example' });
    expect(signIn2.body.reason).toBe('CROSS_ORIGIN');
    expect((await browser.fetch('/auth/session')).status).toBe(200);
  });

  it('knows a session of its own kind only: another value of another session does not do', async () => {
    const first = await signIn();
    const second = await signIn();
    expect(second).not.toBe(first);
    expect((await introspect({ 'writ-csrf': first })).body.reason).toBe('CSRF_REQUIRED');
  });

  it('never looks at the cookie when there is an Authorization header', async () => {
    await signIn();
    // Neither does the session let in whose header is wrong, nor is the header's caller held to the session's rules.
    expect((await introspect({ authorization: 'Bearer token-nobody' })).status).toBe(401);
    expect((await introspect({ authorization: '' })).status).toBe(401);
    const { status } = await introspect(
      { authorization: 'Bearer token-prometheus' },
      { origin: 'https://evil.example' },
    );
    expect(status).toBe(200);
    browser.cookies.set('writ-session', 'nonsense');
    expect((await introspect({ authorization: 'Bearer token-prometheus' })).status).toBe(200);
  });

  it('may come from the address that WRIT_CONSOLE_URL names, and from this machine', async () => {
    const own = browserClient(`http://${replica.http}`);
    const post = (origin: string, host?: string) =>
      own.fetch('/auth/session', {
        method: 'POST',
        json: { token: 'token-ada' },
        origin,
        ...(host === undefined ? {} : { headers: { host } }),
      });
    expect((await post('https://writ.example')).status).toBe(200);
    expect((await post(`http://${replica.http}`)).status).toBe(200);
    expect((await post('http://writ.example')).body.reason).toBe('CROSS_ORIGIN');
    // A name that somebody else made point here.
    expect((await post('http://evil.example', 'evil.example')).body.reason).toBe('CROSS_ORIGIN');
  });
});

describe('sign-ins that fail', () => {
  it('are held to a rate, also when they then would succeed', async () => {
    const own = await start(KEY, { WRIT_LOG_LEVEL: 'silent' });
    try {
      const client = browserClient(`http://${own.http}`);
      const attempt = (token: string) => client.fetch('/auth/session', { method: 'POST', json: { token } });
      for (let failures = 0; failures < 10; failures += 1) expect((await attempt('token-nobody')).status).toBe(401);
      const limited = await attempt('token-ada');
      expect({ status: limited.status, reason: limited.body.reason }).toEqual({
        status: 429,
        reason: 'SIGN_IN_LIMITED',
      });
      expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    } finally {
      await own.stop();
    }
  });
});

describe('the one-time link of the embedded mode', () => {
  let embedded: Coordinator;
  let client: BrowserClient;

  beforeAll(async () => {
    const env = { WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0', WRIT_DATA_DIR: join(directory, 'embedded') };
    embedded = await startCoordinator(readConfig({ ...env, WRIT_MAX_CLOCK_SKEW: '0s' }), createLogger('silent'));
    client = browserClient(`http://${embedded.http}`);
  });

  afterAll(() => embedded.stop());

  const redeem = (code: string) => client.fetch('/auth/session', { method: 'POST', json: { code } });
  const codeOf = (link: string | null): string =>
    /^http:\/\/127\.0\.0\.1:\d+\/#code=([\w-]{43})$/.exec(link ?? '')?.[1] ?? '';

  it('signs in once, as somebody who may see, change and stop everything', async () => {
    const code = codeOf(embedded.consoleLink());
    const opened = await redeem(code);
    expect(opened.body.principal).toMatchObject({ name: 'console', roles: ['admin', 'operator', 'auditor'] });
    expect((await client.fetch('/metrics')).status).toBe(200);
    const again = await redeem(code);
    expect({ status: again.status, reason: again.body.reason }).toEqual({ status: 401, reason: 'CODE_REJECTED' });
  });

  it('counts only as the last one, and not for others', async () => {
    const [first, second] = [codeOf(embedded.consoleLink()), codeOf(embedded.consoleLink())];
    expect((await redeem(first)).status).toBe(401);
    expect((await redeem(`${second.slice(0, -1)}_`)).status).toBe(401);
    expect((await redeem(second)).status).toBe(200);
    expect(main.consoleLink()).toBeNull();
    expect((await browser.fetch('/auth/session', { method: 'POST', json: { code: second } })).body.reason).toBe(
      'CODE_REJECTED',
    );
  });

  it('offers no provider where none is configured', async () => {
    const fresh = browserClient(`http://${embedded.http}`);
    expect((await fresh.fetch('/auth/session')).body.oidc).toBe(false);
    const started = await fresh.fetch('/auth/oidc/start');
    expect({ status: started.status, reason: started.body.reason }).toEqual({ status: 404, reason: 'OIDC_OFF' });
  });
});

/** Goes to the provider and comes back; returns where the browser ends up. */
async function signInAtProvider(
  path = '/auth/oidc/start',
  change: (back: URL) => void = () => undefined,
): Promise<string> {
  const started = await browser.fetch(path);
  expect(started.status).toBe(303);
  const location = started.headers.get('location') ?? '';
  if (!location.startsWith(provider.issuer)) return location;
  const answer = await fetch(location, { redirect: 'manual' });
  const back = new URL(answer.headers.get('location') ?? '');
  expect(back.origin).toBe(`http://${main.http}`);
  change(back);
  const ended = await browser.fetch(`${back.pathname}${back.search}`);
  expect(ended.status).toBe(303);
  expect(ended.headers.get('referrer-policy')).toBe('no-referrer');
  return ended.headers.get('location') ?? '';
}

describe('sign-in at a provider', () => {
  it('goes there with state, nonce and PKCE, and comes back signed in', async () => {
    const started = await browser.fetch('/auth/oidc/start?return_to=/map');
    const asked = new URL(started.headers.get('location') ?? '').searchParams;
    expect(asked.get('redirect_uri')).toBe(`http://${main.http}/auth/oidc/callback`);
    expect(asked.get('code_challenge_method')).toBe('S256');
    for (const name of ['state', 'nonce', 'code_challenge']) expect(asked.get(name)).toMatch(/^[\w-]{43}$/);
    expect(browser.setCookies[0]).toMatch(/^writ-sign-in=.*; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/);
    expect(browser.setCookies[0]).not.toContain(asked.get('state'));

    expect(await signInAtProvider('/auth/oidc/start?return_to=/map')).toBe('/map');
    expect([...browser.cookies.keys()]).toEqual(['writ-session']);
    const { body } = await browser.fetch('/auth/session');
    expect(body.principal).toEqual({ name: `person:${PERSON}`, roles: ['auditor'], namespaceRoles: {} });
    // As long as the token, and no longer.
    expect(Date.parse(body.expiresAt as string) - Date.now()).toBeLessThanOrEqual(600_000);
    const verifier = provider.exchanges.at(-1)?.get('code_verifier') ?? '';
    expect(verifier).toMatch(/^[\w-]{43}$/);
  });

  it.each(['//evil.example', '/\\evil.example', 'https://evil.example', 'javascript:alert(1)', ''])(
    'comes back to a path of its own, not to %j',
    async (path) => {
      expect(await signInAtProvider(`/auth/oidc/start?return_to=${encodeURIComponent(path)}`)).toBe('/');
    },
  );

  it.each([
    ['another nonce', { claims: { nonce: 'x'.repeat(43) } }, 'SIGN_IN_REJECTED'],
    ['another issuer', { claims: { iss: 'https://other.example' } }, 'SIGN_IN_REJECTED'],
    ['another audience', { claims: { aud: 'somebody-else' } }, 'SIGN_IN_REJECTED'],
    ['a token that has ended', { claims: { exp: 1_700_000_000 } }, 'SIGN_IN_REJECTED'],
    ['no signature', { signs: 'none' }, 'SIGN_IN_REJECTED'],
    ['a signature by a key of nobody', { signs: 'stranger' }, 'TOKEN_REJECTED'],
    ['somebody who is mapped to no principal', { claims: { email: 'eve@evil.example' } }, 'TOKEN_REJECTED'],
    ['a refusal', { denies: true }, 'SIGN_IN_REJECTED'],
    ['a code that does not count', { tokenStatus: 400 }, 'SIGN_IN_REJECTED'],
    ['an error of its own', { tokenStatus: 503 }, 'ISSUER_UNAVAILABLE'],
  ] as const)('does not let in with %s', async (_, faults, reason) => {
    provider.behave(faults);
    expect(await signInAtProvider()).toBe(`/#sign-in-failed=${reason}`);
    expect(browser.cookies.size).toBe(0);
    expect((await browser.fetch('/auth/session')).status).toBe(401);
  });

  it.each([
    ['another state', (back: URL) => back.searchParams.set('state', 'x'.repeat(43))],
    ['no state', (back: URL) => back.searchParams.delete('state')],
    ['the name of another issuer', (back: URL) => back.searchParams.set('iss', 'https://other.example')],
    ['no code', (back: URL) => back.searchParams.delete('code')],
    ['two codes', (back: URL) => back.searchParams.append('code', 'x')],
  ])('does not take an answer with %s', async (_, change) => {
    const before = provider.exchanges.length;
    expect(await signInAtProvider('/auth/oidc/start', change)).toBe('/#sign-in-failed=SIGN_IN_REJECTED');
    expect(browser.cookies.size).toBe(0);
    expect(provider.exchanges).toHaveLength(before);
  });

  it('takes no answer that this browser did not ask for', async () => {
    expect(
      await signInAtProvider('/auth/oidc/start', () => {
        browser.cookies.clear();
      }),
    ).toBe('/#sign-in-failed=SIGN_IN_REJECTED');
    await signIn();
    const session = browser.cookies.get('writ-session') ?? '';
    // A session is not the beginning of a sign-in, though the same coordinator sealed it.
    expect(
      await signInAtProvider('/auth/oidc/start', () => {
        browser.cookies.set('writ-sign-in', session);
      }),
    ).toBe('/#sign-in-failed=SIGN_IN_REJECTED');
  });

  it('holds nothing against an address whose browser another site has sent here', async () => {
    for (let sent = 0; sent < 12; sent += 1) {
      const answer = await browser.fetch('/auth/oidc/callback?code=x&state=y');
      expect(answer.headers.get('location')).toBe('/#sign-in-failed=SIGN_IN_REJECTED');
    }
    await signIn();
  });

  it('sends the code nowhere that a Host header names', async () => {
    const started = await browser.fetch('/auth/oidc/start', { headers: { host: 'evil.example' } });
    expect(started.headers.get('location')).toBe('/#sign-in-failed=CONSOLE_URL_REQUIRED');
    const own = await browserClient(`http://${replica.http}`).fetch('/auth/oidc/start', {
      headers: { host: 'evil.example' },
    });
    const { searchParams } = new URL(own.headers.get('location') ?? '');
    expect(searchParams.get('redirect_uri')).toBe('https://writ.example/auth/oidc/callback');
  });

  it('says so when the provider cannot be reached, or is another one', async () => {
    const gone = await startProvider(PERSON);
    gone.behave({ names: 'https://other.example' });
    const own = await start(KEY, { WRIT_CONSOLE_OIDC_ISSUER: gone.issuer });
    try {
      const client = browserClient(`http://${own.http}`);
      const where = async () => (await client.fetch('/auth/oidc/start')).headers.get('location');
      expect(await where()).toBe('/#sign-in-failed=ISSUER_UNAVAILABLE');
      await gone.stop();
      expect(await where()).toBe('/#sign-in-failed=ISSUER_UNAVAILABLE');
    } finally {
      await own.stop();
    }
  });
});
