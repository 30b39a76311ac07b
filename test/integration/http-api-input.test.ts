import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { rolesForRoute } from '../../src/auth/roles.js';
import { apiRoutes } from '../../src/transports/http/api/document.js';
import { eventually } from '../support/coordinator.js';
import { type ApiAnswer, type ServedApi, startServedApi } from '../support/served-api.js';

/** What the API makes of requests that are wrong, or meant to do harm: a problem that names what is wrong, and nothing else. */

const { rpc, others } = apiRoutes();
const ROUTES = [...rpc, ...others];

let api: ServedApi;

beforeAll(async () => {
  api = await startServedApi();
});

afterAll(() => api.stop());

/** A request to the route that is right as far as its path, headers and namespace go. */
function shaped(route: (typeof ROUTES)[number]) {
  const [method = '', path = ''] = route.route.split(' ');
  const needed = route.parameters.filter(({ place, schema }) => place === 'query' && !schema.isOptional());
  const query = new URLSearchParams(Object.fromEntries(needed.map(({ name }) => [name, 'x'])));
  const [role = 'admin'] = rolesForRoute(route.route) ?? [];
  const headers: Record<string, string> = {
    ...(route.parameters.some(({ name }) => name === 'Idempotency-Key') ? { 'idempotency-key': 'a-key' } : {}),
    ...(route.needsVersion ? { 'if-match': '"0"' } : {}),
  };
  return {
    role,
    headers,
    ask: (options: { body?: unknown; query?: Record<string, string> }) => {
      for (const [name, value] of Object.entries(options.query ?? {})) query.set(name, value);
      const { body } = options;
      return api.ask(role, `${method} ${path.slice(3).replace(/\{\w+\}/g, 'x')}?${query}`, { headers, body });
    },
  };
}

/** A replica that the machine gave no time for a while says so, and is asked again. */
const decided = (path: string, body: object): Promise<ApiAnswer> =>
  eventually(
    () => api.ask('target', `POST ${path}`, { body }),
    ({ status }) => status !== 503,
  );

const fieldsOf = (json: { violations?: readonly { field: string }[] }): string[] =>
  (json.violations ?? []).map(({ field }) => field);

describe('a key', () => {
  it('is given once: of two nobody knows which counts at the next try (P6)', async () => {
    const twice = JSON.parse(await repeating('/v1/runs', 'Idempotency-Key', ['a', 'b']));
    expect(twice).toMatchObject({ status: 400, reason: 'INVALID_ARGUMENT' });
    const told = (twice.violations as { field: string; description: string }[])[0];
    expect(told).toEqual({ field: 'Idempotency-Key', description: 'is given more than once' });
    expect(fieldsOf(JSON.parse(await repeating('/v1/runs', 'Idempotency-Key', ['a'])))).not.toContain(
      'Idempotency-Key',
    );
  });
});

describe('every route', () => {
  it.each(ROUTES.map((route) => [route.route, route] as const))(
    '%s names a parameter that it does not have',
    async (_, route) => {
      const { status, json } = await shaped(route).ask({ query: { no_such_thing: '1' } });
      expect(status).toBe(400);
      expect(json).toMatchObject({ reason: 'INVALID_ARGUMENT', status: 400, type: 'about:blank' });
      expect(fieldsOf(json)).toContain('no_such_thing');
    },
  );

  const withBody = ROUTES.filter(({ body }) => body !== null).map((route) => [route.route, route] as const);

  it.each(ROUTES.filter(({ parameters }) => parameters.length > 0).map((route) => [route.route, route] as const))(
    '%s says what its parameters have to be, and of none that it has to be an object',
    async (_, route) => {
      for (const { name } of route.parameters.filter(({ place, form }) => place === 'query' && form !== 'text')) {
        const { status, json } = await shaped(route).ask({ query: { [name]: 'x' } });
        expect([status, fieldsOf(json)]).toEqual([400, [name]]);
        expect(json.violations[0].description).toMatch(/true or false|whole number/);
      }
    },
  );

  it.each(withBody)('%s takes an object of the members that it knows, and nothing else', async (_, route) => {
    const { ask } = shaped(route);
    expect(fieldsOf((await ask({ body: { noSuchMember: 1, namespace: 'x' } })).json)).toEqual(
      expect.arrayContaining(['noSuchMember', 'namespace']),
    );
    for (const body of ['[]', '1', 'null', '"x"', 'true']) {
      const { status, json } = await ask({ body });
      expect([status, fieldsOf(json)], body).toEqual([400, ['body']]);
    }
    for (const body of ['{', '{"a":1,}', "{'a':1}", '{"a', '{"\\', '{"\\x":1}', '],', '\u0000', '{}{}', 'NaN']) {
      const { status, json } = await ask({ body });
      expect([status, json.reason, fieldsOf(json)], body).toEqual([400, 'INVALID_ARGUMENT', ['body']]);
    }
  });
});

describe('what is always needed', () => {
  it.each([
    ['POST /leases/preview', {}, 'request'],
    ['POST /leases/renew', {}, 'renewals'],
    ['POST /fence/checks', {}, 'writes'],
    ['POST /fence/reports', {}, 'writes'],
    ['POST /fence/overrides', {}, 'patterns'],
    ['POST /fence/overrides', { use: {} }, 'use.writes'],
    ['POST /leases', { entries: [{}] }, 'entries[0].resource'],
    ['POST /leases', { task: {} }, 'task.name'],
  ])('of %s with %j is %s, and the document says so', async (request, body, field) => {
    const [method = '', path = ''] = request.split(' ');
    const [role = 'admin'] = rolesForRoute(`${method} /v1${path}` as (typeof ROUTES)[number]['route']) ?? [];
    const { json } = await api.ask(role, request, { body, headers: { 'idempotency-key': 'k' } });
    // By the schema that the document is made of: those who generate their requests from it know beforehand.
    expect(json.violations).toContainEqual({ field, description: 'is required' });
  });
});

describe('a body', () => {
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    api.ask('runner', 'POST /leases', { body, headers: { 'idempotency-key': 'a-key', ...headers } });

  it.each([
    ['a member twice', '{"runId":"a","runId":"b"}', 'runId'],
    ['a member twice, once escaped', '{"runId":"a","run\\u0049d":"b"}', 'runId'],
    ['a member twice, deep inside', '{"task":{"name":"t","parameters":{"a":"1","a":"2"}}}', 'task.parameters.a'],
    ['__proto__', '{"__proto__":{"runId":"a"}}', '__proto__'],
    [
      '__proto__ as a key of a map',
      '{"task":{"name":"t","parameters":{"__proto__":"1"}}}',
      'task.parameters.__proto__',
    ],
    ['objects in objects', `${'{"a":'.repeat(200)}1${'}'.repeat(200)}`, /^a(\.a)*$/],
    // Nothing deeper is read, and so nobody sees that it has no end.
    ['lists in lists without end', `{"entries":${'['.repeat(100_000)}`, /^entries(\[0\])*$/],
    ['lists in lists', `{"entries":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, /^entries(\[0\])*$/],
    ['a number for a string', '{"runId":12}', 'runId'],
    ['a member twice, once as the contract has it', '{"runId":"a","run_id":"a"}', 'run_id'],
    ['null in a list', '{"runId":"a","audiences":[null]}', 'audiences[0]'],
    ['half of a surrogate pair', '{"runId":"a","purpose":"\\ud83d"}', 'purpose'],
    [
      'half of a surrogate pair, deep inside',
      '{"entries":[{"resource":"r","access":3,"actions":["\\ude00"]}]}',
      'entries[0].actions[0]',
    ],
    ['a string for a list', '{"runId":"a","entries":"x"}', 'entries'],
    ['null for what is required', '{"runId":null}', 'runId'],
    ['a number that no double holds', '{"runId":"a","ttl":1e400}', 'ttl'],
    ['a length of time in other words', '{"runId":"a","ttl":"1m"}', 'ttl'],
    ['an enum by a number that is none', '{"runId":"a","entries":[{"resource":"r","access":33}]}', 'entries[0].access'],
    ['an enum that is none', '{"runId":"a","entries":[{"resource":"r","access":"WRITE"}]}', 'entries[0].access'],
    ['constructor and prototype', '{"runId":"a","constructor":{"prototype":{}}}', 'constructor'],
    ['a name in another case', '{"RunId":"a"}', 'RunId'],
    // It may be a secret, in the wrong place.
    ['a long name', `{"${'s'.repeat(32)}":1}`, '(32 characters)'],
  ])('with %s is refused', async (_, body, field) => {
    const { status, json } = await post(body);
    expect([status, json.reason]).toEqual([400, 'INVALID_ARGUMENT']);
    const fields = fieldsOf(json);
    if (typeof field === 'string') expect(fields).toContain(field);
    else expect(fields[0]).toMatch(field);
    expect(Object.prototype).not.toHaveProperty('runId');
  });

  it('with more members than any request has is refused', async () => {
    const { status, json } = await post(`{"runId":"a","audiences":[${Array(30_000).fill('""').join()}]}`);
    expect(status).toBe(400);
    expect(json.violations[0]).toMatchObject({ field: expect.stringMatching(/^audiences\[/) });
    expect(json.detail).toContain('WRIT_MAX_ENTRIES');
  });

  it('has numbers of 64 bits as strings, and exactly', async () => {
    const check = (fencingToken: unknown) =>
      decided('/fence/checks', {
        leaseId: 'x',
        presenterRunId: 'x',
        writes: [{ resource: 'r', action: 'a', fencingToken }],
      });
    for (const wrong of [1.5, -1, 2 ** 53, 1e21, true])
      expect(fieldsOf((await check(wrong)).json), String(wrong)).toEqual(['writes[0].fencingToken']);
    expect((await check(12)).json.results[0].allowed).toBe(false);
    expect(fieldsOf((await check('-1')).json)).toEqual(['writes[0].fencingToken']);
    expect(fieldsOf((await check('18446744073709551616')).json)).toEqual(['writes[0].fencingToken']);
    expect(fieldsOf((await check('99999999999999999999')).json)).toEqual(['writes[0].fencingToken']);
    expect((await check('18446744073709551615')).json.results[0].allowed).toBe(false);
  });

  it('has times and lengths of time that there are', async () => {
    const run = (authorityEndsAt: string) =>
      api.ask('runner', 'POST /runs', { headers: { 'idempotency-key': 'k' }, body: { purpose: 'x', authorityEndsAt } });
    for (const time of [
      '2026-13-01T00:00:00Z',
      '2027-02-29T00:00:00Z',
      '2026-04-31T00:00:00Z',
      '2026-12-01T25:00:00Z',
      '2026-12-01T24:00:00Z',
      '2026-12-01T10:00:60Z',
      '2026-12-01T10:00:00+99:00',
      '0000-01-01T00:00:00Z',
      '1900-02-29T00:00:00Z',
    ])
      expect([time, fieldsOf((await run(time)).json)]).toEqual([time, ['authorityEndsAt']]);
    const past = (await run('2024-02-29T00:00:00Z')).json;
    expect(past.detail).toContain('in the future of the database clock');
    const { json } = await api.ask('runner', 'POST /leases', {
      headers: { 'idempotency-key': 'k' },
      body: { runId: 'a', ttl: '315576000001s' },
    });
    expect(fieldsOf(json)).toEqual(['ttl']);
  });

  it('is taken in every spelling that proto3 JSON has', async () => {
    const ask = (path: string, body: object) => decided(`/fence/${path}`, body);
    const write = { resource: 'r', action: 'a' };
    const pairs: [string, object, object][] = [
      [
        'checks',
        { leaseId: 'x', presenterRunId: 'x', requestId: 'spelled', writes: [{ ...write, fencingToken: '12' }] },
        {
          lease_id: 'x',
          presenter_run_id: 'x',
          request_id: 'spelled',
          credential: null,
          writes: [{ ...write, fencing_token: 12, observed_version: null }],
        },
      ],
      [
        'reports',
        { leaseId: 'x', requestId: 'spelled', writes: [{ ...write, result: 'WRITE_RESULT_SUCCEEDED' }] },
        { lease_id: 'x', request_id: 'spelled', writes: [{ ...write, result: 1, new_version: null }], detail: null },
      ],
    ];
    for (const [path, usual, other] of pairs) {
      const [first, second] = [await ask(path, usual), await ask(path, other)];
      // Whatever it comes to: both are read.
      expect([first.status, second.status], path).not.toContain(400);
      expect({ ...second.json, logRevision: 0 }).toEqual({ ...first.json, logRevision: 0 });
    }
  });

  it('is JSON by its type, in UTF-8', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', '']) {
      const { status, json, headers } = await post('{}', { 'content-type': type });
      expect([status, json.reason, fieldsOf(json)], type).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE', ['content-type']]);
      expect(headers.get('accept')).toBe('application/json');
    }
    expect(fieldsOf((await post('{}', { 'content-type': 'application/json; charset=utf-8' })).json)).toContain('runId');
    const response = await fetch(`${api.url}/v1/leases`, {
      method: 'POST',
      headers: { authorization: 'Bearer token-runner', 'content-type': 'application/json', 'idempotency-key': 'k' },
      body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
    });
    expect(await response.json()).toMatchObject({ violations: [{ field: 'body', description: 'is not valid UTF-8' }] });
  });

  it('is not compressed, and who compresses it is told so', async () => {
    for (const [encoding, body] of [
      ['gzip', gzipSync('{}')],
      ['br', '{}'],
    ] as const) {
      const headers = { authorization: 'Bearer token-runner', 'content-type': 'application/json' };
      const response = await fetch(`${api.url}/v1/leases`, {
        method: 'POST',
        headers: { ...headers, 'idempotency-key': 'k', 'content-encoding': encoding },
        body,
      });
      expect([response.status, response.headers.get('accept-encoding')], encoding).toEqual([415, 'identity']);
      expect(await response.json()).toMatchObject({
        reason: 'UNSUPPORTED_MEDIA_TYPE',
        violations: [{ field: 'content-encoding', description: 'must be identity' }],
      });
    }
    expect(fieldsOf((await post('{}', { 'content-encoding': 'identity' })).json)).toContain('runId');
  });

  it('of a route that gRPC has nothing like says what a member has to be', async () => {
    for (const [route, body, field] of [
      ['test', { document: 1 }, 'document'],
      ['diff', { document: [] }, 'document'],
      ['rollback', { toVersion: '1', reason: 5 }, 'reason'],
    ] as const) {
      const { json } = await api.ask('admin', `POST /conflict-map/${route}`, { body, headers: { 'if-match': '"0"' } });
      expect(json.violations, route).toEqual([{ field, description: 'must be a string' }]);
    }
  });

  it('is bounded by its route, said beforehand or not, and read for nobody who may not send it', async () => {
    const large = { body: { reason: 'x'.repeat(70_000) } };
    const said = await api.ask('operator', 'POST /runs/x/stop', large);
    expect([said.status, said.json.reason]).toEqual([413, 'BODY_TOO_LARGE']);
    expect((await api.ask('target', 'POST /runs/x/stop', large)).status).toBe(403);
    expect(await chunked('operator', '/v1/runs/x/stop', 100_000)).toBe(413);
    expect(await chunked('operator', '/v1/runs/x/stop', 1_000)).toBe(400);
    const document = `version: 1\n${'# a line\n'.repeat(50_000)}`;
    for (const route of ['validate', 'test', 'preview', 'diff', 'matrix'])
      expect((await api.ask('admin', `POST /conflict-map/${route}`, { body: { document } })).status, route).toBe(200);
    const map = await api.ask('admin', 'POST /conflict-map/validate', { body: { document: '#'.repeat(2 << 20) } });
    expect([map.status, fieldsOf(map.json)]).toEqual([400, ['document']]);
  });
});

describe('a lease that is named in the path', () => {
  it('is not named by a key besides, which the route does not have', async () => {
    const body = { runId: 'r', acquireKey: 'k' };
    const { status, json } = await api.ask('runner', `POST /leases/${'0'.repeat(32)}/release`, { body });
    expect([status, json.violations]).toEqual([400, [{ field: 'acquireKey', description: 'is not known here' }]]);
  });
});

describe('a write set within a request', () => {
  it('is told what is wrong with it by its place in the request, on both ports', async () => {
    const [over, under] = [{ runId: 'x', purpose: 'p'.repeat(1_025), audiences: [''] }, { entries: [] }];
    const { json } = await api.ask('runner', 'POST /leases/preview', { body: { request: { ...over, ...under } } });
    const places = ['request.runId', 'request.entries', 'request.purpose', 'request.audiences[0]'];
    expect(fieldsOf(json)).toEqual(places);
    const asked = api.client('runner').lease.previewWriteSet({ request: { ...over, ...under } });
    await expect(asked).rejects.toMatchObject({
      violations: places.map((field) => ({ field: field.replace('runId', 'run_id') })),
    });
  });
});

/** With a header that is there as often as it has values; fetch would make one of them. */
function repeating(path: string, name: string, values: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(api.url);
  return new Promise((resolve, reject) => {
    const headers = ['Authorization', 'Bearer token-runner', 'Content-Type', 'application/json', 'Content-Length', '2'];
    for (const value of values) headers.push(name, value);
    const sent = request({ hostname, port, path, method: 'POST', headers: ['Host', hostname, ...headers] });
    sent.on('response', async (answer) => resolve((await answer.toArray()).join('')));
    sent.on('error', reject);
    sent.end('{}');
  });
}

/** With the path as it is; fetch would repair it. */
function asSent(path: string): Promise<{ status: number; json: ApiAnswer['json'] }> {
  const { hostname, port } = new URL(api.url);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, headers: { authorization: 'Bearer token-admin' } });
    sent.on('response', async (answer) =>
      resolve({ status: answer.statusCode ?? 0, json: JSON.parse((await answer.toArray()).join('')) }),
    );
    sent.on('error', reject);
    sent.end();
  });
}

describe('a body that breaks off', () => {
  it.each([
    ['POST /v1/runs', 'runner', 'application/json', 'content-length: 100\r\n\r\n{'],
    ['POST /v1/runs', 'runner', 'application/json', 'transfer-encoding: chunked\r\n\r\n1\r\n{\r\nzz'],
    ['POST /oauth2/introspect', 'target', 'application/x-www-form-urlencoded', 'content-length: 100\r\n\r\ntoken='],
    ['POST /access/v1/evaluation', 'target', 'application/json', 'content-length: 100\r\n\r\n{'],
  ])('is no trouble of the coordinator: %s by %s', async (route, role, type, rest) => {
    const { hostname, port } = new URL(api.url);
    const counted = async (status: number): Promise<number> => {
      const { text } = await api.metrics.render();
      const line = `writ_http_request_duration_seconds_count{route="${route}",status="${status}"} `;
      return Number(
        text
          .split('\n')
          .find((one) => one.startsWith(line))
          ?.slice(line.length) ?? 0,
      );
    };
    const before = await counted(400);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.write(`${route} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer token-${role}\r\ncontent-type: ${type}\r\n`);
    socket.write(`idempotency-key: k\r\nexpect: 100-continue\r\n${rest}`);
    // 100 Continue: the request is there.
    await once(socket, 'data');
    socket.destroy();
    await expect.poll(() => counted(400), { timeout: 20_000 }).toBe(before + 1);
    expect(await counted(500)).toBe(0);
  });
});

describe('a path', () => {
  it.each([
    '/v1/fence/../keys',
    '/v1/./keys',
    '/v1/runs/%2e%2E/keys',
    '/v1/leases/.%2e/keys',
    '/v1/keys/.',
    '/.well-known/../v1/keys',
  ])('with a dot segment is of no route: %s', async (path) => {
    expect(await asSent(path)).toMatchObject({
      status: 400,
      json: { reason: 'INVALID_ARGUMENT', violations: [{ field: 'path' }] },
    });
  });

  it('may have dots elsewhere', async () => {
    expect((await asSent('/v1/keys?x=/../')).json.violations).toMatchObject([{ field: 'x' }]);
    expect((await asSent('/v1/leases/...')).json.reason).toBe('LEASE_NOT_FOUND');
    expect((await asSent('/.well-known/jwks.json')).status).toBe(200);
  });
});

/** Sends a body without a length; resolves with the status. */
function chunked(role: string, path: string, bytes: number): Promise<number> {
  const { hostname, port } = new URL(api.url);
  return new Promise((resolve, reject) => {
    const sent = request({
      hostname,
      port,
      path,
      method: 'POST',
      headers: { authorization: `Bearer token-${role}`, 'content-type': 'application/json' },
    });
    sent.on('response', (answer) => {
      answer.resume();
      resolve(answer.statusCode ?? 0);
    });
    sent.on('error', reject);
    for (let left = bytes; left > 0; left -= 1_000) sent.write('x'.repeat(Math.min(1_000, left)));
    sent.end();
  });
}

describe('a query', () => {
  it.each([
    ['page_size=x', 'page_size'],
    ['page_size=-1', 'page_size'],
    ['page_size=1.5', 'page_size'],
    ['page_size=99999999999', 'page_size'],
    ['page_size=1001', 'page_size'],
    ['page_token=%F0', 'page_token'],
    ['states=', 'states[0]'],
    ['states=LEASE_STATE_ACTIVE&states=constructor', 'states[1]'],
    ['lock_delayed=1', 'lock_delayed'],
    ['run_id=a&run_id=b', 'run_id'],
    ['namespace=default&namespace=default', 'namespace'],
    ['namespace=..%2F..', 'namespace'],
    ['__proto__=1', '__proto__'],
  ])('%s is refused', async (query, field) => {
    const { status, json } = await api.ask('operator', `GET /leases?${query}`);
    expect([status, fieldsOf(json)]).toEqual([400, [field]]);
  });

  it.each([
    ['leases?resource=%ff', 'resource'],
    ['leases?resource=release%2', 'resource'],
    ['leases?run_id=%ed%a0%80', 'run_id'],
    ['leases/%zz', 'leaseId'],
    ['leases/a%c3%28', 'leaseId'],
  ])('is not repaired where its escapes are none: %s', async (path, field) => {
    const { status, json } = await api.ask('operator', `GET /${path}`);
    expect([status, json.violations]).toEqual([400, [{ field, description: 'is not UTF-8 in percent encoding' }]]);
  });

  it('carries any resource harmlessly', async () => {
    const path = `<script>alert(1)</script>/${'é'.repeat(100)}/💥`;
    const { status, json } = await api.ask('operator', `GET /leases?resource=${encodeURIComponent(path)}`);
    expect([status, json.leases]).toEqual([200, []]);
    const name = `${path}/\u202e`;
    const leases = await api.ask('operator', `GET /leases?resource=${encodeURIComponent(name)}`);
    expect([leases.status, fieldsOf(leases.json)]).toEqual([400, ['resource']]);
    const blockers = await api.ask('operator', `GET /blockers?resource=${encodeURIComponent(name)}`);
    expect([blockers.status, fieldsOf(blockers.json)]).toEqual([400, ['resource']]);
    expect(blockers.headers.get('content-type')).toBe('application/problem+json');
    expect(blockers.headers.get('x-content-type-options')).toBe('nosniff');
  });
});
