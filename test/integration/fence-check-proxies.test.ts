import { type Context, type Span, type Tracer, trace } from '@opentelemetry/api';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { as, createRun, eventually, granted, putMap, write } from '../support/coordinator.js';
import { send, startGateway, type TestGateway } from '../support/gateway.js';
import {
  about,
  IDENTITY,
  PAGES_MAP,
  PAGES_ROUTES,
  type Pages,
  page,
  presenting,
  startPages,
} from '../support/gateway-pages.js';
import { createTestDatabase } from '../support/postgres.js';

// What a proxy says and sends (GET /v1/fence/check).

let pages: Pages;
let gateway: TestGateway;
let check: Pages['check'];
let held: Pages['held'];

beforeAll(async () => {
  pages = await startPages();
  ({ gateway, check, held } = pages);
});

afterAll(async () => {
  await pages?.stop();
});

describe('what can be read in two ways', () => {
  test.each([
    ['an escaped slash', '/pages/a%2Fb'],
    ['an escaped backslash', '/pages/a%5Cb'],
    ['dot segments', '/pages/../pages/x'],
    ['escaped dot segments', '/pages/%2e%2e/pages/x'],
    ['an empty segment', '//pages/x'],
    ['no UTF-8', '/pages/%ff'],
    ['an absolute form', 'http://pages.example/pages/x'],
    ['an authority', 'pages.example:443'],
    ['an asterisk', '*'],
    ['a fragment', '/pages/x#y'],
    ['a path parameter', '/pages/x;y=1'],
    ['a control character', '/pages/%00'],
  ])('%s in the path is refused', async (_, uri) => {
    for (const method of ['PUT', 'GET'])
      expect(await check(about(method, uri))).toMatchObject({ status: 400, body: { code: 'malformed_request' } });
  });

  test('what is escaped without need is the same path', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    expect((await check([...about('PUT', `/p%61ges/${name}`), ...presenting(lease)])).status).toBe(200);
  });

  test.each(['X-Original-Method', 'X-Original-Host', 'X-Original-URI'])('%s given in different ways', async (name) => {
    const values = new Map(about('PUT', '/pages/x'));
    const other = name === 'X-Original-Method' ? 'GET' : name === 'X-Original-Host' ? 'other.example' : '/pages/y';
    const once = [...values] as [string, string][];
    for (const second of [name, name.replace('Original', 'Forwarded')])
      for (const headers of [
        [...once, [second, other]],
        [[second, other], ...once],
      ] as [string, string][][])
        expect(await check(headers)).toMatchObject({ status: 400, body: { code: 'malformed_request' } });
  });

  test.each(['Writ-Authorization', 'Writ-Lease', 'Writ-Fencing-Token', 'If-Match', 'If-None-Match'])(
    '%s sent twice',
    async (name) => {
      const lease = await held(`page/${page()}`);
      const good = new Map([
        ...presenting(lease),
        ['Writ-Authorization', 'Bearer x'],
        ['If-Match', '"1"'],
        ['If-None-Match', '*'],
      ]);
      const asked = about('PUT', `/${lease.entries[0]?.resource.replace('page', 'pages')}`);
      const presented = [...presenting(lease), [name, good.get(name) ?? '']] as [string, string][];
      const different: [string, string] = [name, name === 'Writ-Fencing-Token' ? '7' : 'other'];
      for (const headers of [
        [...presented, different],
        [different, ...presented],
      ])
        expect(await check([...asked, ...headers])).toMatchObject({ status: 400, body: { code: 'malformed_request' } });
    },
  );

  test('half of a lease, or what is no token', async () => {
    const asked = about('PUT', '/pages/x');
    for (const headers of [
      [['Writ-Lease', 'f'.repeat(32)]],
      [
        ['Writ-Lease', 'f'.repeat(32)],
        ['Writ-Fencing-Token', '0'],
      ],
      [
        ['Writ-Lease', 'f'.repeat(32)],
        ['Writ-Fencing-Token', '0x7'],
      ],
      [
        ['Writ-Lease', 'f'.repeat(32)],
        ['Writ-Fencing-Token', '-7'],
      ],
      [
        ['Writ-Lease', 'f'.repeat(200)],
        ['Writ-Fencing-Token', '7'],
      ],
    ] as [string, string][][])
      expect(await check([...asked, ...headers])).toMatchObject({ status: 400, body: { code: 'malformed_request' } });
  });
});

describe('the proxy', () => {
  test('says who it is by its token; what it is cannot be told by headers', async () => {
    const asked = about('GET', '/pages/x');
    // Whoever asks in the wrong way gets no `writ-problem`: what it says is for the proxy, not for its clients.
    const nobody = await check(asked, ['Authorization', '']);
    expect(nobody).toMatchObject({ status: 401, body: { reason: 'UNAUTHENTICATED' } });
    expect(nobody.headers).not.toHaveProperty('writ-problem');
    expect((await check(asked, ['Authorization', 'Bearer rubbish'])).status).toBe(401);
    const runner = await check(asked, ['Authorization', 'Bearer token-runner']);
    expect(runner).toMatchObject({ status: 403, body: { reason: 'ROLE_REQUIRED' } });
    expect(runner.headers).not.toHaveProperty('writ-problem');
  });

  test('has the routes of its own service, and of no other', async () => {
    const answer = await check(about('GET', '/pages/x'), ['Authorization', 'Bearer token-svc:other']);
    expect(answer).toMatchObject({ status: 403, body: { reason: 'NO_ROUTES' } });
    const owned = await check(about('PUT', '/owned/x'));
    expect(owned).toMatchObject({ status: 401, body: { code: 'credential_required' } });
    const name = page();
    const lease = await held(`owned/${name}`);
    expect(await check([...about('PUT', `/owned/${name}`), ...presenting(lease)])).toMatchObject({
      status: 403,
      body: { code: 'wrong_target' },
    });
  });

  test('checks in the namespace that its routes name, and there alone', async () => {
    await gateway.replica.api.createNamespace(as('admin'), { name: 'team-a' } as never);
    const context = as('admin', { namespace: 'team-a' });
    await gateway.replica.api.putConflictMap(context, {
      document: PAGES_MAP,
      expectedVersion: 0,
      reason: 'a test',
      onLiveConflict: 'refuse',
    });
    const name = page();
    const inTeam = as('runner', { namespace: 'team-a' });
    const runId = await createRun(gateway.replica.api, { context: inTeam });
    const lease = await granted(gateway.replica.api, runId, [write(`page/${name}`, 'replace')], {}, inTeam);
    const asked = [...about('PUT', `/pages/${name}`), ...presenting(lease)];
    expect((await check(asked, ['Authorization', 'Bearer token-svc:team'])).status).toBe(200);
    expect(await check(asked)).toMatchObject({ status: 403, body: { code: 'unknown_lease' } });
  });

  test('needs its role in the namespace of its routes', async () => {
    const stray = await check(about('GET', '/pages/x'), ['Authorization', 'Bearer token-svc:stray']);
    expect(stray).toMatchObject({ status: 403, body: { reason: 'ROLE_REQUIRED' } });
  });

  test('is told what it forgot to send, by name', async () => {
    const whole = about('PUT', '/pages/x');
    for (const [at, part] of ['method', 'host', 'path'].entries()) {
      const answer = await check(whole.filter((_, index) => index !== at));
      expect(answer).toMatchObject({ status: 400, body: { violations: [{ field: part }] } });
      expect(answer.headers).not.toHaveProperty('writ-problem');
    }
  });

  test('that announces a body is refused, and its connection ended: what follows would be taken for the body', async () => {
    const answer = await send(gateway.http, '/v1/fence/check', [IDENTITY, ...about('PUT', '/pages/x')], {
      body: 'x=1',
    });
    expect(answer).toMatchObject({ status: 400, body: { violations: [{ field: 'content-length' }] } });
    expect(answer.headers.connection).toBe('close');
  });

  test('gets the problem in a header too, in ASCII and bounded', async () => {
    const answer = await check(about('PUT', `/pages/${encodeURIComponent('größe')}`));
    expect(JSON.parse(answer.headers['writ-problem'] as string)).toEqual(answer.body);
    expect(answer.body.resource).toBe('page/größe');
    const long = await check(about('PUT', `/pages/${encodeURIComponent('ü'.repeat(500))}`));
    expect(String(long.headers['writ-problem']).length).toBeLessThan(2_048);
    expect(JSON.parse(String(long.headers['writ-problem']))).toMatchObject({
      status: 401,
      code: 'credential_required',
    });
  });
});

test('requests are counted by their answers', async () => {
  const count = async (answer: string): Promise<number> => {
    const { text } = await gateway.replica.metrics.render();
    return Number(new RegExp(`^writ_gateway_checks_total\\{answer="${answer}"\\} (\\d+)$`, 'm').exec(text)?.[1] ?? 0);
  };
  const before = { reads: await count('reads'), unrouted: await count('unrouted') };
  await check(about('GET', '/pages/x'));
  await check(about('GET', '/elsewhere'));
  await check(about('GET', '/elsewhere'));
  expect(await count('reads')).toBe(before.reads + 1);
  expect(await count('unrouted')).toBe(before.unrouted + 2);
});

test('the trace of the request goes on', async () => {
  const seen: unknown[] = [];
  const startSpan = (name: string, _: unknown, parent: Context): Span => {
    seen.push([name, trace.getSpanContext(parent)?.traceId]);
    return trace.wrapSpanContext({ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 });
  };
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) as unknown as Tracer });
  onTestFinished(() => trace.disable());
  const traceId = 'c'.repeat(32);
  await check([...about('GET', '/pages/x'), ['Traceparent', `00-${traceId}-${'d'.repeat(16)}-01`]]);
  expect(seen).toEqual([['GET /v1/fence/check', traceId]]);
});

test('P8: what cannot be decided is refused, as retryable', async () => {
  const other = await createTestDatabase();
  const lone = await startGateway(other.url, PAGES_ROUTES);
  try {
    await putMap(lone.replica.api, PAGES_MAP);
    await lone.replica.store.close();
    const answer = await eventually(
      () => send(lone.http, '/v1/fence/check', [IDENTITY, ...about('PUT', '/pages/x')]),
      ({ status }) => status === 503,
    );
    expect(answer).toMatchObject({
      status: 503,
      headers: { 'retry-after': expect.stringMatching(/^\d+$/), 'writ-problem': expect.any(String) },
      body: { status: 503, retryable: true },
    });
  } finally {
    await lone.stop().catch(() => undefined);
    await other.drop();
  }
});
