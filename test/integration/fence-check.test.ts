import { type Context, type Span, type Tracer, trace } from '@opentelemetry/api';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Confirmation } from '../../src/domain/credential.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { parseRouteTable } from '../../src/route-table/index.js';
import type { TargetRoutes } from '../../src/services/route-tables.js';
import { toldCertificate } from '../support/certificates.js';
import { as, createRun, eventually, granted, putMap, write } from '../support/coordinator.js';
import { send, startGateway, type TestGateway } from '../support/gateway.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

const MAP = `
version: 1
kinds:
  - { pattern: "page/{name}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document }, patch: { access: write, change_class: derived } } }
  - { pattern: "menu/{name}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "owned/{name}", owner_service: [svc:other], actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "draft/{name}", mode: observe, actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "pointer/{name}", actions: { set: { access: write, concurrency: lease, change_class: shared_pointer, tracked: true } } }
`;
const replace = (resource: string) => ({
  resource,
  action: 'replace',
  change_class: 'shared_document',
  resolver: 'editor',
});
const TABLE = parseRouteTable({
  version: 1,
  routes: [
    { method: 'PUT', path: '/pages/{name}', writes: [replace('page/{name}')] },
    {
      method: 'PATCH',
      path: '/pages/{name}',
      writes: [{ resource: 'page/{name}', action: 'patch', change_class: 'derived' }],
    },
    { method: 'PUT', path: '/sites/{name}', writes: [replace('page/{name}'), replace('menu/{name}')] },
    { method: 'PUT', path: '/owned/{name}', writes: [replace('owned/{name}')] },
    { method: 'PUT', path: '/drafts/{name}', writes: [replace('draft/{name}')] },
    {
      method: 'PUT',
      path: '/pointers/{name}',
      writes: [{ resource: 'pointer/{name}', action: 'set', change_class: 'shared_pointer' }],
    },
    { method: ['GET', 'HEAD'], path: '/pages/{name}', reads: true },
    { method: 'POST', path: '/hooks/{name}', unprotected: 'signed by the sender' },
  ],
});
const ROUTES = new Map<string, TargetRoutes>([
  ['svc:pages', { namespace: 'default', table: TABLE }],
  ['svc:team', { namespace: 'team-a', table: TABLE }],
  ['svc:stray', { namespace: 'default', table: TABLE }],
]);

let database: TestDatabase;
let gateway: TestGateway;

beforeAll(async () => {
  database = await createTestDatabase();
  gateway = await startGateway(database.url, ROUTES);
  await putMap(gateway.replica.api, MAP);
});

afterAll(async () => {
  await gateway?.stop();
  await database?.drop();
});

const EVERYTHING = { runId: '', leaseId: '', resource: '', kinds: [], afterRevision: 0, newestFirst: false };

let serial = 0;
const page = (): string => `p-${++serial}`;
type Headers = readonly (readonly [string, string])[];

/** What a proxy sends about a request. */
const about = (method: string, uri: string, host = 'pages.example'): [string, string][] => [
  ['X-Original-Method', method],
  ['X-Original-Host', host],
  ['X-Original-URI', uri],
];
const IDENTITY: [string, string] = ['Authorization', 'Bearer token-svc:pages'];
const check = (headers: Headers, identity = IDENTITY) =>
  send(gateway.http, '/v1/fence/check', identity[1] === '' ? headers : [identity, ...headers]);

async function held(...resources: string[]): Promise<Lease> {
  const runId = await createRun(gateway.replica.api);
  const entries = resources.map((resource) => write(resource, 'replace'));
  return granted(gateway.replica.api, runId, entries, { ttl: 120 * SECOND });
}
const tokenOf = (lease: Lease, at = 0): string => String(lease.entries[at]?.token);
const presenting = (lease: Lease, token = tokenOf(lease)): [string, string][] => [
  ['Writ-Lease', lease.leaseId],
  ['Writ-Fencing-Token', token],
];

const report = (admissionId: string, result: 'succeeded' | 'failed') =>
  gateway.replica.api.reportWrite(as('target', { name: 'svc:pages' }), {
    leaseId: '',
    credential: '',
    requestId: '',
    detail: '',
    writes: [
      { admissionId, resource: '', action: '', result, observedVersion: null, newVersion: null, changedFields: [] },
    ],
  });

describe('a request with a lease', () => {
  test('passes, and the service is told whose it is; no token comes back', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    const answer = await check([
      ...about('PUT', `/pages/${name}?draft=1`),
      ...presenting(lease),
      ['X-Request-Id', 'mine'],
    ]);
    expect(answer).toMatchObject({ status: 200, text: '' });
    expect(answer.headers).toMatchObject({
      'writ-reason': 'ok',
      'writ-run-id': lease.runId,
      'writ-log-revision': expect.stringMatching(/^\d+$/),
      'writ-valid-for': expect.stringMatching(/^\d+ms$/),
      'x-request-id': 'mine',
      'cache-control': 'no-store',
    });
    expect(JSON.stringify(answer.headers)).not.toContain(tokenOf(lease));
  });

  test('by the headers of Traefik and Caddy too', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    const forwarded: [string, string][] = [
      ['X-Forwarded-Method', 'PUT'],
      ['X-Forwarded-Host', 'pages.example:8443'],
      ['X-Forwarded-Uri', `/pages/${name}`],
    ];
    expect((await check([...forwarded, ...presenting(lease)])).status).toBe(200);
  });

  test('makes all of its writes, or none', async () => {
    const name = page();
    const both = await held(`page/${name}`, `menu/${name}`);
    const tokens = `${tokenOf(both, 0)}, ${tokenOf(both, 1)}`;
    const asked = about('PUT', `/sites/${name}`);
    expect((await check([...asked, ...presenting(both, tokens)])).status).toBe(200);
    // Of one grant they are the same.
    expect((await check([...asked, ...presenting(both)])).status).toBe(200);
    const three = await check([...asked, ...presenting(both, `${tokens},7`)]);
    expect(three).toMatchObject({ status: 400, body: { code: 'malformed_request' } });
    expect((await check([...asked, ...presenting(both, `${tokenOf(both)},7`)])).status).toBe(409);
    const other = page();
    const half = await held(`page/${other}`);
    const refused = await check([
      ...about('PUT', `/sites/${other}`),
      ...presenting(half, `${tokenOf(half)},${tokenOf(half)}`),
    ]);
    expect(refused).toMatchObject({ status: 403, body: { code: 'not_covered', resource: `menu/${other}` } });
  });

  test("R4: a check that the proxy repeats, as its answer was lost, is known by the proxy's own id of the request", async () => {
    const name = page();
    const runId = await createRun(gateway.replica.api);
    const lease = await granted(gateway.replica.api, runId, [write(`pointer/${name}`, 'set')], { ttl: 120 * SECOND });
    const asked = [...about('PUT', `/pointers/${name}`), ...presenting(lease)];
    const admitted = async (attempt: string) =>
      String((await check([...asked, ['Writ-Attempt-Id', attempt]])).headers['writ-admission-id']);
    const first = await admitted(`${name}-a`);
    expect(await admitted(`${name}-a`)).toBe(first);
    expect(await admitted(`${name}-b`)).not.toBe(first);
    // Once it was reported, the same id is another attempt.
    await report(first, 'succeeded');
    expect(await admitted(`${name}-a`)).not.toBe(first);
    for (const wrong of [
      [
        ['Writ-Attempt-Id', 'a'],
        ['Writ-Attempt-Id', 'b'],
      ],
      [['Writ-Attempt-Id', 'x'.repeat(129)]],
    ] as const)
      expect(await check([...asked, ...wrong])).toMatchObject({
        status: 400,
        body: { violations: [{ field: 'writ-attempt-id' }] },
      });
  });

  test('R4: leaves an admission where the action is tracked, one for each request, whatever id it carries', async () => {
    const name = page();
    const runId = await createRun(gateway.replica.api);
    const lease = await granted(gateway.replica.api, runId, [write(`pointer/${name}`, 'set')], { ttl: 120 * SECOND });
    const asked = [...about('PUT', `/pointers/${name}`), ...presenting(lease)];
    const admitted = async (requestId: string) =>
      String((await check([...asked, ['X-Request-Id', requestId]])).headers['writ-admission-id']);
    const first = await admitted(`${name}-1`);
    expect(first).toMatch(/^[0-9a-f]{32}$/);
    // Sent again while the first is slow: two may be in flight, so there are two to report.
    const resent = await admitted(`${name}-1`);
    expect(resent).toMatch(/^[0-9a-f]{32}$/);
    expect(resent).not.toBe(first);
    const stop = async () =>
      (await gateway.replica.api.stopRun(as('operator'), { runId, reason: 'enough' })).value.run.run.state;
    await report(resent, 'failed');
    expect(await stop()).toBe('stopping');
    await report(first, 'succeeded');
    expect(await stop()).toBe('stopped');
    // Found by the request's own id too.
    const query = { ...EVERYTHING, requestId: `${name}-1`, page: { size: 10, token: '' } };
    const { items } = await gateway.replica.api.listEvents(as('auditor'), query);
    expect(items.map(({ kind }) => kind)).toEqual(['writes_admitted', 'writes_admitted']);
  });

  test('P3: is refused once the lease is over, with one status per class and what to do', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    const asked = about('PUT', `/pages/${name}`);
    expect(await check([...asked, ...presenting(lease, '7')])).toMatchObject({
      status: 409,
      body: { code: 'stale_token' },
    });
    expect(await check([...about('PUT', `/pages/${page()}`), ...presenting(lease)])).toMatchObject({
      status: 403,
      body: { code: 'not_covered' },
    });
    expect(await check([...about('PATCH', `/pages/${name}`), ...presenting(lease)])).toMatchObject({
      status: 403,
      body: { code: 'action_not_allowed' },
    });
    const release = { runId: lease.runId, leaseId: lease.leaseId, acquireKey: null };
    await gateway.replica.api.releaseLease(as('runner'), release);
    const late = await check([...asked, ...presenting(lease), ['X-Request-Id', 'late']]);
    expect(late.headers['content-type']).toBe('application/problem+json');
    expect(late).toMatchObject({
      status: 409,
      headers: { 'writ-reason': 'released', 'x-request-id': 'late', 'writ-log-revision': expect.any(String) },
      body: {
        type: 'urn:writ:problem:released',
        title: 'Not allowed now',
        status: 409,
        code: 'released',
        resource: `page/${name}`,
        action: 'replace',
        conflict_category: 'shared_document',
        resolver: 'editor',
        retryable: false,
        next: expect.stringMatching(/^Stop/),
        request_id: 'late',
      },
    });
  });

  test('is refused when nobody can tell: a stopped run, a lease of nobody', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    await gateway.replica.api.stopRun(as('operator'), { runId: lease.runId, reason: 'enough' });
    const asked = about('PUT', `/pages/${name}`);
    expect(await check([...asked, ...presenting(lease)])).toMatchObject({ status: 409, body: { code: 'run_stopped' } });
    const unknown: Headers = [...asked, ['Writ-Lease', 'f'.repeat(32)], ['Writ-Fencing-Token', '7']];
    expect(await check(unknown)).toMatchObject({ status: 403, body: { code: 'unknown_lease' } });
    const future: Headers = [...asked, ['Writ-Lease', lease.leaseId], ['Writ-Fencing-Token', '18446744073709551615']];
    expect(await check(future)).toMatchObject({ status: 403, body: { code: 'future_token' } });
  });

  test('C8: an optimistic write must say what it was made from', async () => {
    const name = page();
    const runId = await createRun(gateway.replica.api);
    const lease = await granted(gateway.replica.api, runId, [write(`page/${name}`, 'patch')], { ttl: 120 * SECOND });
    const asked = [...about('PATCH', `/pages/${name}`), ...presenting(lease)];
    expect(await check(asked)).toMatchObject({ status: 428, body: { code: 'version_required' } });
    // Strong comparison (RFC 9110): a weak tag, or none in particular, is no version.
    for (const none of ['*', 'W/"41"', '41', '"1", "2"'])
      expect((await check([...asked, ['If-Match', none]])).status, none).toBe(428);
    expect((await check([...asked, ['If-Match', '"41"']])).status).toBe(200);
    expect((await check([...asked, ['If-None-Match', '*']])).status).toBe(200);
  });
});

describe('a request with a credential', () => {
  async function issued(
    audience: string,
    confirmation: Confirmation | null = null,
  ): Promise<{ name: string; token: string; lease: Lease }> {
    const name = page();
    const lease = await held(`page/${name}`);
    const input = { runId: lease.runId, leaseId: lease.leaseId, audience, confirmation, requestId: '' };
    const { value } = await gateway.replica.api.issueCredential(as('runner'), input);
    if (value.credential === null) throw new Error('no credential');
    return { name, lease, token: value.credential.token };
  }

  test('passes by that alone, and only at the service it is for', async () => {
    const { name, token, lease } = await issued('svc:pages');
    const asked = about('PUT', `/pages/${name}`);
    const passed = await check([...asked, ['Writ-Authorization', `Bearer ${token}`]]);
    expect(passed).toMatchObject({ status: 200, headers: { 'writ-run-id': lease.runId } });
    const elsewhere = await issued('svc:other');
    const refused = await check([
      ...about('PUT', `/pages/${elsewhere.name}`),
      ['Writ-Authorization', `Bearer ${elsewhere.token}`],
    ]);
    expect(refused).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': expect.stringMatching(/^Bearer/) },
      body: { code: 'wrong_audience' },
    });
  });

  test('F18: one that was changed is refused as that', async () => {
    const { name, token } = await issued('svc:pages');
    const [header, payload] = token.split('.');
    const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
    for (const [changed, code] of [
      [`${header}.${payload}.${'A'.repeat(86)}`, 'bad_signature'],
      [`${none}.${payload}.`, 'alg_not_allowed'],
      ['rubbish', 'malformed'],
    ] as const) {
      const answer = await check([...about('PUT', `/pages/${name}`), ['Writ-Authorization', `Bearer ${changed}`]]);
      expect(answer).toMatchObject({ status: 401, body: { code } });
    }
  });

  test('that is bound to a certificate counts for whoever showed that one to the proxy', async () => {
    const [mine, others] = [await toldCertificate('mine'), await toldCertificate('others')];
    const { name, token } = await issued('svc:pages', { kind: 'x5t#S256', thumbprint: mine.thumbprint });
    const asked = [...about('PUT', `/pages/${name}`), ['Writ-Authorization', `Bearer ${token}`]] as [string, string][];
    const shown = (certificate: string): Headers => [...asked, ['Writ-Presenter-Certificate', certificate]];
    expect((await check(shown(mine.escaped))).status).toBe(200);
    expect(await check(shown(others.escaped))).toMatchObject({ status: 401, body: { code: 'binding_mismatch' } });
    expect(await check(asked)).toMatchObject({ status: 401, body: { code: 'not_bound' } });
    const field = 'writ-presenter-certificate';
    for (const wrong of [shown('rubbish'), [...shown(mine.escaped), [field, mine.escaped]] as Headers])
      expect(await check(wrong)).toMatchObject({ status: 400, body: { violations: [{ field }] } });
  });

  test('beside a lease, a bearer of the service itself does not count', async () => {
    const name = page();
    const lease = await held(`page/${name}`);
    const own: [string, string] = ['Writ-Authorization', 'Bearer of-the-service'];
    expect((await check([...about('PUT', `/pages/${name}`), own, ...presenting(lease)])).status).toBe(200);
    expect((await check([...about('PUT', `/pages/${name}`), own])).status).toBe(401);
  });
});

describe('a request with nothing', () => {
  test('is refused, recorded, and found by its id (A1)', async () => {
    const name = page();
    const answer = await check([...about('PUT', `/pages/${name}`), ['X-Request-Id', `none-${name}`]]);
    expect(answer).toMatchObject({
      status: 401,
      headers: { 'www-authenticate': expect.stringMatching(/^Bearer/) },
      body: { code: 'credential_required', resource: `page/${name}`, action: 'replace' },
    });
    await recorded(`none-${name}`, { reason: 'unknown_lease', resource: `page/${name}`, target: 'svc:pages' });
  });

  test('C14: passes where the kind only observes, and the answer says so', async () => {
    const answer = await check(about('PUT', `/drafts/${page()}`));
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'writ-reason': 'unknown_lease', 'writ-observed-only': 'true' },
    });
  });

  test('answers run and admission also where there is none, so that a proxy that copies them leaves no client its own', async () => {
    const none = { 'writ-run-id': '', 'writ-admission-id': '' };
    expect((await check(about('PUT', `/drafts/${page()}`))).headers).toMatchObject(none);
    expect((await check(about('GET', '/pages/x'))).headers).toMatchObject(none);
    const name = page();
    const untracked = await check([...about('PUT', `/pages/${name}`), ...presenting(await held(`page/${name}`))]);
    expect(untracked.headers).toMatchObject({ 'writ-reason': 'ok', 'writ-admission-id': '' });
  });

  test('passes where the route says that no check is needed', async () => {
    expect((await check(about('GET', '/pages/x'))).headers['writ-reason']).toBe('reads');
    expect((await check(about('POST', '/hooks/x'))).headers['writ-reason']).toBe('unprotected');
  });

  test('is refused where no route is declared, reads too, and that is recorded', async () => {
    const id = `unrouted-${page()}`;
    expect(await check([...about('DELETE', '/pages/x'), ['X-Request-Id', id]])).toMatchObject({
      status: 403,
      body: { code: 'unrouted' },
    });
    expect((await check(about('GET', '/elsewhere'))).status).toBe(403);
    await recorded(id, { reason: 'unrouted', resource: '', target: 'svc:pages' });
  });

  async function recorded(requestId: string, denial: object): Promise<void> {
    const query = { ...EVERYTHING, requestId, page: { size: 10, token: '' } };
    const { items } = await eventually(
      () => gateway.replica.api.listEvents(as('auditor'), query),
      (page) => page.items.length > 0,
    );
    const denials = items.flatMap(({ body }) => (JSON.parse(body) as { denials?: object[] }).denials ?? []);
    expect(denials).toContainEqual(expect.objectContaining(denial));
  }
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
    const lease = await granted(gateway.replica.api, await createRun(gateway.replica.api), [
      write('owned/x', 'replace'),
    ]);
    expect(await check([...about('PUT', '/owned/x'), ...presenting(lease)])).toMatchObject({
      status: 403,
      body: { code: 'wrong_target' },
    });
  });

  test('checks in the namespace that its routes name, and there alone', async () => {
    await gateway.replica.api.createNamespace(as('admin'), { name: 'team-a' } as never);
    const context = as('admin', { namespace: 'team-a' });
    await gateway.replica.api.putConflictMap(context, {
      document: MAP,
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
  const traceId = 'c'.repeat(32);
  await check([...about('GET', '/pages/x'), ['Traceparent', `00-${traceId}-${'d'.repeat(16)}-01`]]);
  trace.disable();
  expect(seen).toEqual([['GET /v1/fence/check', traceId]]);
});

test('P8: what cannot be decided is refused, as retryable', async () => {
  const other = await createTestDatabase();
  const lone = await startGateway(other.url, ROUTES);
  try {
    await putMap(lone.replica.api, MAP);
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
