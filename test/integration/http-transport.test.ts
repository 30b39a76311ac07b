import { once } from 'node:events';
import { request } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { hashToken } from '../../src/auth/tokens.js';
import { Fault } from '../../src/domain/fault.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import type { CallContext } from '../../src/services/api.js';
import { HttpServer, type HttpServerOptions, type Readiness } from '../../src/transports/http/server.js';
import { createRateLimiter } from '../../src/transports/rate-limit.js';
import { testSignIn } from '../support/sign-in.js';

const AUTHENTICATOR = createCallerAuthenticator({
  principals: [
    { name: 'auditor', roles: ['auditor'], tokenSha256: hashToken('token-auditor') },
    { name: 'runner', roles: ['runner'], tokenSha256: hashToken('token-runner') },
    { name: 'target', roles: ['target'], tokenSha256: hashToken('token-target') },
  ],
});

const unasked = () => Promise.reject(new Error('nothing here asks that'));

type Api = ReturnType<HttpServerOptions['api']>;

const API = {
  checkFence: unasked,
  checkRoute: unasked,
  getKeys: async () => ({ jwks: '{"keys":[]}', maxAge: 300_000_000, issuer: 'https://writ.test' }),
  introspectCredential: async (context: CallContext, { token }: { token: string }) => ({
    value:
      token === 'good'
        ? ({ active: true, claims: { sub: context.principal.name } } as const)
        : ({ active: false } as const),
    revision: 1,
    now: 0,
  }),
} as unknown as Api;

let server: HttpServer;
let readiness: Readiness;

async function start(
  callsPerSecond = 0,
  log = createLogger('silent'),
  api: Api = API,
  more: Partial<HttpServerOptions> = {},
): Promise<string> {
  readiness = { ready: true, reasons: [] };
  const metrics = createMetrics();
  metrics.granted('default', 3);
  server = new HttpServer({
    ready: () => readiness,
    api: () => api,
    authenticator: AUTHENTICATOR,
    signIn: () => testSignIn(AUTHENTICATOR),
    blockerKey: () => Buffer.from('key'),
    limits: readConfig({}).limits,
    rateLimiter: createRateLimiter(callsPerSecond),
    metrics,
    log,
    ...more,
  });
  return `http://${await server.listen('127.0.0.1', 0)}`;
}

afterEach(() => server.stop(0));

async function problemOf(
  answer: Response,
): Promise<{ type?: string; status?: number; reason?: string; reasons?: string[] }> {
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  const problem = (await answer.json()) as { status: number };
  expect(problem.status).toBe(answer.status);
  return problem;
}

const introspect = (url: string) =>
  fetch(`${url}/oauth2/introspect`, {
    method: 'POST',
    headers: { authorization: 'Bearer token-auditor' },
    body: new URLSearchParams({ token: 'good' }),
  });

describe('the HTTP server', () => {
  it('says that the process runs, and whether it serves', async () => {
    const url = await start();
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
    readiness = { ready: false, reasons: ['the database cannot be reached'] };
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    const answer = await fetch(`${url}/readyz`);
    expect(answer.status).toBe(503);
    expect(await problemOf(answer)).toMatchObject({ reason: 'NOT_READY', reasons: ['the database cannot be reached'] });
  });

  it('shows metrics to those who may see all runs', async () => {
    const url = await start();
    const get = (authorization?: string) =>
      fetch(`${url}/metrics`, authorization === undefined ? {} : { headers: { authorization } });
    const anonymous = await get();
    expect(anonymous.status).toBe(401);
    expect(anonymous.headers.get('www-authenticate')).toBe('Bearer realm="writ"');
    expect(await problemOf(anonymous)).toMatchObject({ reason: 'UNAUTHENTICATED' });
    const unknown = await get('Bearer token-nobody');
    expect(unknown.headers.get('www-authenticate')).toBe('Bearer realm="writ", error="invalid_token"');
    expect(await problemOf(await get('Bearer token-runner'))).toMatchObject({ status: 403, reason: 'ROLE_REQUIRED' });
    const metrics = await get('Bearer token-auditor');
    expect(metrics.headers.get('content-type')).toContain('text/plain');
    expect(await metrics.text()).toContain('writ_leases_granted_total{namespace="default"} 3');
  });

  it('serves the public keys to everybody, to be kept for a while', async () => {
    const answer = await fetch(`${await start()}/.well-known/jwks.json`);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('public, max-age=300');
    expect(answer.headers.get('content-type')).toBe('application/jwk-set+json');
    expect(await answer.json()).toEqual({ keys: [] });
  });

  it('keeps no answer for a caller that does not read it', async () => {
    const jwks = 'x'.repeat(32 << 20);
    const api = { ...API, getKeys: async () => ({ jwks, maxAge: 0, issuer: '' }) } as unknown as Api;
    // Both ends are of this process; those of the tests before go by and by.
    const ends = () => process.getActiveResourcesInfo().filter((one) => one === 'TCPSocketWrap').length;
    await vi.waitFor(() => expect(ends()).toBe(0), { timeout: 30_000 });
    const { hostname, port } = new URL(await start(0, undefined, api, { stalledAfterMs: 200 }));
    const socket = connect(Number(port), hostname);
    socket.write('GET /.well-known/jwks.json HTTP/1.1\r\nhost: writ\r\n\r\n');
    await once(socket, 'readable');
    await vi.waitFor(() => expect(ends()).toBe(1), { timeout: 30_000 });
    let bytes = 0;
    socket.on('error', () => undefined);
    socket.on('data', (part: Buffer) => {
      bytes += part.length;
    });
    await once(socket, 'close');
    expect(bytes).toBeLessThan(jwks.length);
  });

  it('introspects by form, for callers it knows (RFC 7662)', async () => {
    const url = `${await start()}/oauth2/introspect`;
    const post = (body: string, headers: Record<string, string> = {}) =>
      fetch(url, {
        method: 'POST',
        body,
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          authorization: 'Bearer token-runner',
          ...headers,
        },
      });
    const active = await post('token=good');
    expect(active.headers.get('cache-control')).toBe('no-store');
    expect(await active.json()).toEqual({ active: true, sub: 'runner' });
    expect(await (await post('token=bad')).json()).toEqual({ active: false });
    expect((await post('token=good', { authorization: '' })).status).toBe(401);
    const json = await post('{"token":"good"}', { 'content-type': 'application/json' });
    expect([json.status, json.headers.get('accept')]).toEqual([415, 'application/x-www-form-urlencoded']);
    expect((await fetch(url)).headers.get('allow')).toBe('POST');
  });

  it('holds each principal to its rate', async () => {
    const url = `${await start(1)}/oauth2/introspect`;
    const headers = { 'content-type': 'application/x-www-form-urlencoded', authorization: 'Bearer token-runner' };
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => fetch(url, { method: 'POST', body: 'token=good', headers })),
    );
    const limited = answers.find(({ status }) => status === 429);
    expect(answers.some(({ status }) => status === 200)).toBe(true);
    expect(limited?.headers.get('retry-after')).toBe('1');
    expect(await problemOf(limited as Response)).toMatchObject({ reason: 'RATE_LIMITED' });
  });

  it.each([
    ['already_exists', 'REQUEST_ID_REUSED', 409, 'REQUEST_ID_REUSED'],
    ['failed_precondition', 'OUTCOME_KNOWN', 409, 'OUTCOME_KNOWN'],
    ['aborted', 'VERSION_CONFLICT', 409, 'VERSION_CONFLICT'],
    ['unavailable', 'DATABASE_UNAVAILABLE', 503, 'DATABASE_UNAVAILABLE'],
    ['unknown_outcome', 'DATABASE_UNAVAILABLE', 503, 'UNKNOWN_OUTCOME'],
  ] as const)('tells a caller of a fault of class %s, and not the log', async (faultClass, reason, status, told) => {
    const lines: string[] = [];
    const url = await start(0, createLogger('debug', { write: (line) => void lines.push(line) }), {
      ...API,
      introspectCredential: () => Promise.reject(new Fault(faultClass, reason, 'Expected.')),
    });
    const answer = await introspect(url);
    expect(answer.status).toBe(status);
    expect(await problemOf(answer)).toMatchObject({ reason: told, detail: 'Expected.' });
    expect(lines.filter((line) => !line.includes('"level":"debug"'))).toEqual([]);
  });

  it('writes a bounded number of lines about what fails in itself, however often it is asked for', async () => {
    const lines: string[] = [];
    const url = await start(0, createLogger('debug', { write: (line) => void lines.push(line) }), {
      ...API,
      introspectCredential: () => Promise.reject(new Error('a bug')),
    });
    const calls = 400;
    const startedAt = performance.now();
    const answers = await Promise.all(Array.from({ length: calls }, () => introspect(url)));
    const seconds = Math.floor((performance.now() - startedAt) / 1_000) + 2;
    for (const answer of answers) expect(await problemOf(answer)).toMatchObject({ status: 500, reason: 'INTERNAL' });
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThanOrEqual(50 * seconds);
  });

  it('counts each evaluation of AuthZEN as a call', async () => {
    const url = `${await start(1)}/access/v1/evaluations`;
    const one = { subject: { type: 'user', id: 'u' }, action: { name: 'x' }, resource: { type: 'resource', id: 'r' } };
    const ask = () =>
      fetch(url, {
        method: 'POST',
        body: JSON.stringify({ ...one, evaluations: Array.from({ length: 256 }, () => ({})) }),
        headers: { 'content-type': 'application/json', authorization: 'Bearer token-target' },
      });
    expect(((await (await ask()).json()) as { evaluations: object[] }).evaluations).toHaveLength(256);
    const limited = await ask();
    expect(limited.status).toBe(429);
    // A second for each of them, less what the test itself takes.
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(128);
  });

  it('answers everything else with a problem', async () => {
    const url = await start();
    expect(await problemOf(await fetch(`${url}/v1/nothing`))).toMatchObject({ status: 404, reason: 'NOT_FOUND' });
    const wrongMethod = await fetch(`${url}/readyz`, { method: 'DELETE' });
    expect(wrongMethod.headers.get('allow')).toBe('GET, HEAD');
    expect(await problemOf(wrongMethod)).toMatchObject({ status: 405 });
    const large = await fetch(`${url}/healthz`, { method: 'POST', body: 'x'.repeat(100_000) });
    expect(await problemOf(large)).toMatchObject({ status: 413, reason: 'BODY_TOO_LARGE' });
  });

  it('gives every answer the id of its request, or one made for it', async () => {
    const url = await start();
    const form = { method: 'POST', body: new URLSearchParams({ token: 'good' }) };
    const large = { method: 'POST', body: 'x'.repeat(70_000) };
    const target = { authorization: 'Bearer token-target' };
    const asked: [number, string, RequestInit?][] = [
      [200, '/healthz'],
      [200, '/readyz'],
      [200, '/.well-known/jwks.json'],
      [200, '/v1/openapi.json'],
      [200, '/metrics', { headers: { authorization: 'Bearer token-auditor' } }],
      [200, '/oauth2/introspect', { ...form, headers: target }],
      [401, '/v1/leases'],
      [403, '/v1/leases', { headers: target }],
      [404, '/nothing/here'],
      [405, '/healthz', { method: 'DELETE' }],
      [413, '/access/v1/evaluation', { ...large, headers: target }],
      [415, '/oauth2/introspect', { method: 'POST', body: '{}', headers: { ...target, 'content-type': 'text/plain' } }],
    ];
    for (const [status, path, init = {}] of asked) {
      const named = await fetch(`${url}${path}`, { ...init, headers: { ...init.headers, 'x-request-id': 'mine-1' } });
      expect([named.status, named.headers.get('x-request-id')], path).toEqual([status, 'mine-1']);
      const unnamed = await fetch(`${url}${path}`, init);
      expect(unnamed.headers.get('x-request-id'), path).toMatch(/^[0-9a-f-]{36}$/);
      await Promise.all([named, unnamed].map((answer) => answer.arrayBuffer()));
    }
  });

  it('does not end with a caller that says nothing', async () => {
    const url = await start();
    const { port } = new URL(url);
    const silent = connect(Number(port), '127.0.0.1');
    await once(silent, 'connect');
    silent.on('error', () => undefined);
    const begun = performance.now();
    await server.stop(300);
    expect(performance.now() - begun).toBeLessThan(15_000);
    silent.destroy();
  });

  it('closes idle connections when it stops', async () => {
    const url = await start();
    await (await fetch(`${url}/healthz`)).text();
    const begun = performance.now();
    await server.stop(10_000);
    // Left alone they would end after 5 s, as idle ones do.
    expect(performance.now() - begun).toBeLessThan(4_500);
    await expect(once(request(`${url}/healthz`).end(), 'response')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('names the port that is taken, and the variable that chooses another', async () => {
    await start();
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const second = new HttpServer({
      ready: () => readiness,
      api: () => API,
      authenticator: AUTHENTICATOR,
      signIn: () => testSignIn(AUTHENTICATOR),
      blockerKey: () => Buffer.from('key'),
      limits: readConfig({}).limits,
      rateLimiter: createRateLimiter(0),
      metrics: createMetrics(),
      log: createLogger('silent'),
    });
    await expect(second.listen('127.0.0.1', port)).rejects.toMatchObject({
      exitCode: 3,
      message: `cannot listen on 127.0.0.1:${port} for HTTP: the port is taken. WRIT_HTTP_PORT chooses the port; 0 picks a free one.`,
    });
    other.close();
  });
});
