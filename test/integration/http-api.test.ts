import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Role } from '../../src/auth/principal.js';
import type { WritError } from '../../src/clients/common/errors.js';
import { type MessageType, protoJson } from '../../src/contract/proto-json.js';
import { GetConflictMapResponse } from '../../src/gen/writ/v1/conflict_map_service.js';
import { GetLeaseResponse, ListLeasesResponse } from '../../src/gen/writ/v1/lease_service.js';
import { GetRunResponse, ListRunsResponse } from '../../src/gen/writ/v1/run_service.js';
import { apiRoutes, openApiDocument } from '../../src/transports/http/api/document.js';
import { type ApiAnswer, type AskOptions, type ServedApi, startServedApi } from '../support/served-api.js';

/** The API over HTTP, by a real coordinator. */

const MAP = `version: 1
kinds:
  - pattern: release/{env}
    owner_service: [target]
    actions:
      promote: { access: write, concurrency: lease, change_class: shared_pointer, resolver: owner, tracked: true }
resolvers: { owner: { principals: [operator] } }
tasks:
  promote: { params: [env], entries: [ { resource: "release/{env}", access: write, actions: [promote] } ] }
`;

const { rpc, others } = apiRoutes();
const ROUTES = new Map([...rpc, ...others].map((route) => [route.route as string, route]));

let api: ServedApi;
/** Routes that have answered. */
const answered = new Set<string>();

/** The revision of the first event that a stream tells after a place. */
async function firstTold(lastId: string): Promise<number> {
  const aborter = new AbortController();
  const response = await fetch(`${api.url}/v1/events/stream`, {
    headers: { authorization: 'Bearer token-auditor', 'last-event-id': lastId },
    signal: aborter.signal,
  });
  let text = '';
  for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += part;
    const [, told] = /^data: (.*)\n/m.exec(text) ?? [];
    if (told === undefined) continue;
    aborter.abort();
    return Number(JSON.parse(told).revision);
  }
  throw new Error(`the stream ended: ${text}`);
}

/** Asks, and holds the answer against what the document says of it. */
async function ask(role: Role, route: string, path: string, options?: AskOptions): Promise<ApiAnswer> {
  const answer = await api.ask(role, `${route.split(' ')[0]} ${path}`, options);
  const known = ROUTES.get(route);
  if (known === undefined) throw new Error(`there is no ${route}`);
  if (answer.status !== 200) return answer;
  answered.add(route);
  const result = known.answer.schema.safeParse(answer.json);
  expect(result.error?.issues ?? [], route).toEqual([]);
  return answer;
}

let serial = 0;
const key = () => ({ 'idempotency-key': `key-${++serial}` });
const freshEnv = (): string => `env-${++serial}`;
const inAnHour = (): string => new Date(Date.now() + 3_600_000).toISOString();

async function createRun(): Promise<string> {
  const body = { purpose: 'a test', allowed: [{ pattern: '{all...}', actions: ['*'] }], authorityEndsAt: inAnHour() };
  const { json } = await ask('runner', 'POST /v1/runs', '/runs', { body, headers: key() });
  return json.run.runId;
}

const promote = (env: string) => [{ resource: `release/${env}`, access: 'ACCESS_WRITE', actions: ['promote'] }];

async function acquire(runId: string, env: string, more: object = {}, headers = key()): Promise<ApiAnswer> {
  const body = { runId, entries: promote(env), ...more };
  return ask('runner', 'POST /v1/leases', '/leases', { body, headers });
}

beforeAll(async () => {
  api = await startServedApi();
  const put = { body: { document: MAP, reason: 'the first' }, headers: { 'if-match': '"0"' } };
  expect((await ask('admin', 'PUT /v1/conflict-map', '/conflict-map', put)).status).toBe(200);
});

afterAll(() => api.stop());

describe('the conflict map over HTTP', () => {
  it('is read with its version as ETag, and not again while it is the same', async () => {
    const { json, headers } = await ask('runner', 'GET /v1/conflict-map', '/conflict-map');
    expect(json.document).toContain('pattern: release/{env}');
    const etag = headers.get('etag') ?? '';
    expect(etag).toBe(`"${json.version}"`);
    const again = await api.ask('runner', 'GET /conflict-map', { headers: { 'if-none-match': `"x", W/${etag}` } });
    expect(again.status).toBe(304);
    expect(again.json).toBeNull();
    expect((await api.ask('runner', 'GET /conflict-map', { headers: { 'if-none-match': '*' } })).status).toBe(304);
    const described = openApiDocument().paths?.['/v1/conflict-map'];
    expect(described?.get?.responses).toHaveProperty('304');
    expect(described?.get?.parameters).toContainEqual(expect.objectContaining({ name: 'If-None-Match', in: 'header' }));
    expect(described?.put?.responses).not.toHaveProperty('304');
  });

  it('is changed against the version it was read at (428, 412), and back again', async () => {
    const before = await api.ask('admin', 'GET /conflict-map');
    const current = before.headers.get('etag') ?? '';
    const document = `${MAP}# changed ${++serial}\n`;
    const put = (headers: Record<string, string>) =>
      ask('admin', 'PUT /v1/conflict-map', '/conflict-map', { body: { document, reason: 'a change' }, headers });
    const missing = await put({});
    expect(missing.status).toBe(428);
    expect(missing.json).toMatchObject({
      reason: 'PRECONDITION_REQUIRED',
      currentVersion: current.replaceAll('"', ''),
    });
    expect(missing.headers.get('etag')).toBe(current);
    for (const wrong of ['*', '7', '"1', '']) {
      const { status, json } = await put({ 'if-match': wrong });
      expect([status, json.violations?.[0]?.field], wrong).toEqual([400, 'If-Match']);
    }
    // RFC 9110, 13.1.2: what fails must not pass unseen, and `*` fails wherever there is a map.
    for (const also of ['*', '"900"', '']) {
      const { status, json } = await put({ 'if-match': current, 'if-none-match': also });
      expect([status, json.violations?.[0]?.field], also).toEqual([400, 'If-None-Match']);
    }
    const alone = await put({ 'if-none-match': '*' });
    expect([alone.status, alone.json.detail]).toEqual([400, expect.stringContaining('If-Match')]);
    // By RFC 9110, 13.1.1: tags are compared strongly, and of several one has to match.
    for (const other of [`W/${current}`, '""', '"-1"', '"abc"', '"900", W/"1", "901"']) {
      const { status, json, headers } = await put({ 'if-match': other });
      expect(json.detail, other).toContain(current.replaceAll('"', ''));
      expect([status, json.reason, headers.get('etag')], other).toEqual([412, 'MAP_VERSION_CONFLICT', current]);
    }
    const done = await put({ 'if-match': `W/"3", "900", ${current}` });
    expect(done.status).toBe(200);
    const next = done.headers.get('etag') ?? '';
    expect(next).not.toBe(current);
    // The same once more is the answer that was lost (P6); another one comes too late.
    expect((await put({ 'if-match': current })).headers.get('etag')).toBe(next);
    const late = await api.ask('admin', 'PUT /conflict-map', {
      body: { document: MAP, reason: 'another' },
      headers: { 'if-match': current },
    });
    expect(late.status).toBe(412);
    expect(late.json).toMatchObject({ reason: 'MAP_VERSION_CONFLICT', currentVersion: next.replaceAll('"', '') });
    const rollback = (ifMatch: string) =>
      ask('admin', 'POST /v1/conflict-map/rollback', '/conflict-map/rollback', {
        body: { toVersion: current.replaceAll('"', '') },
        headers: { 'if-match': ifMatch },
      });
    expect((await rollback(current)).status).toBe(412);
    expect((await rollback(next)).status).toBe(200);
    const { json } = await api.ask('admin', 'GET /conflict-map');
    expect(json).toMatchObject({
      document: before.json.document,
      reason: `rolled back to version ${current.replaceAll('"', '')}`,
    });
  });

  it('is validated, previewed, tested, compared and explained', async () => {
    const validated = await ask('operator', 'POST /v1/conflict-map/validate', '/conflict-map/validate', {
      body: { document: 'version: 1\nkind: []\n' },
    });
    expect(validated.json).toMatchObject({ valid: false, problems: [{ code: 'unknown_key', line: 2, column: 1 }] });
    const preview = { body: { document: MAP } };
    expect((await ask('admin', 'POST /v1/conflict-map/preview', '/conflict-map/preview', preview)).json).toMatchObject({
      accepted: true,
    });
    const assertion = (env: string) =>
      `${MAP}assertions: [ { conflict: true, a: { task: promote, env: one }, b: { task: promote, env: ${env} } } ]\n`;
    const test = (document: string) =>
      ask('auditor', 'POST /v1/conflict-map/test', '/conflict-map/test', { body: { document } });
    expect((await test(assertion('one'))).json).toMatchObject({ passed: true, assertions: 1, failed: [] });
    expect((await test(assertion('two'))).json).toMatchObject({
      passed: false,
      assertions: 1,
      failed: [{ code: 'assertion_failed' }],
    });
    expect((await test('version: 1\nkind: []\n')).json).toMatchObject({
      passed: false,
      failed: [],
      problems: [{ code: 'unknown_key' }],
    });
    const diff = (body: object) => ask('auditor', 'POST /v1/conflict-map/diff', '/conflict-map/diff', { body });
    expect((await diff({ document: `${MAP}# more\n` })).json).toMatchObject({ differs: true });
    expect((await diff({ document: `${MAP}# more\n` })).json.diff).toContain('\n+# more\n');
    expect((await diff({ fromVersion: '1', toVersion: '1' })).json).toMatchObject({ differs: false, diff: '' });
    expect((await diff({ fromVersion: '1' })).json.violations).toMatchObject([{ field: 'toVersion' }]);
    expect((await diff({ fromVersion: '99', toVersion: '1' })).status).toBe(404);
    const explained = await ask('runner', 'POST /v1/conflict-map/explain', '/conflict-map/explain', {
      body: { a: { entries: promote('prod') }, b: { entries: promote('prod') } },
    });
    expect(explained.json.conflict).toBe(true);
    const matrix = await ask('admin', 'POST /v1/conflict-map/matrix', '/conflict-map/matrix', {
      body: { document: MAP },
    });
    expect((await ask('admin', 'GET /v1/conflict-map/matrix', '/conflict-map/matrix')).json).toEqual(matrix.json);
    const schema = await ask('runner', 'GET /v1/conflict-map/schema', '/conflict-map/schema');
    expect(schema.json).toMatchObject({ additionalProperties: false, properties: { version: { const: 1 } } });
    const versions = await ask('admin', 'GET /v1/conflict-map/versions', '/conflict-map/versions?page_size=1');
    expect(versions.json.versions).toHaveLength(1);
    expect(versions.json.nextPageToken).not.toBe('');
    await ask('admin', 'GET /v1/conflict-map/unmatched', '/conflict-map/unmatched');
    await ask('admin', 'GET /v1/rehearsals', '/rehearsals');
    const resolved = await ask('target', 'GET /v1/resources/resolve', '/resources/resolve?name=release%2Fprod');
    expect(resolved.json).toMatchObject({ resource: 'release/prod', kind: 'release/{env}' });
  });
});

describe('a run over HTTP', () => {
  it('acquires, checks, reports, waits, and is stopped', async () => {
    const runId = await createRun();
    const env = freshEnv();
    const { json: granted } = await acquire(runId, env);
    const { leaseId, entries } = granted.lease;
    const preview = await ask('operator', 'POST /v1/leases/preview', '/leases/preview', {
      body: { request: { runId, entries: promote('other') } },
    });
    expect(preview.json.lease.runId).toBe(runId);
    const check = await ask('target', 'POST /v1/fence/checks', '/fence/checks', {
      body: {
        leaseId,
        presenterRunId: runId,
        requestId: 'attempt-1',
        writes: [{ resource: `release/${env}`, action: 'promote', fencingToken: entries[0].fencingToken }],
      },
    });
    expect(check.json).toMatchObject({ allowed: true, results: [{ reason: 'FENCE_REASON_OK' }] });
    const waiting = await createRun();
    const asked = acquire(waiting, env, { wait: '60s' });
    const waiters = async (role: Role = 'operator') =>
      (await ask(role, 'GET /v1/waiters', '/waiters')).json.waiters.filter(
        ({ lease }: { lease: { runId: string } }) => lease.runId === waiting,
      );
    await expect.poll(async () => (await waiters()).length).toBe(1);
    const [waiter] = await waiters();
    expect(waiter).toMatchObject({
      place: 1,
      lease: { runId: waiting },
      waitsFor: [{ runId, resource: `release/${env}` }],
    });
    expect((await ask('operator', 'GET /v1/waiters', '/waiters?resource=release/test')).json.waiters).toEqual([]);
    expect((await waiters('runner'))[0].waitsFor[0].runId).toBe('');
    const blockers = await ask('auditor', 'GET /v1/blockers', `/blockers?resource=release/${env}`);
    expect(blockers.json.blockers.map((one: { waiting: boolean }) => one.waiting)).toEqual([false, true]);
    await ask('runner', 'POST /v1/leases/renew', '/leases/renew', { body: { runId, renewals: [{ leaseId }] } });
    await ask('runner', 'POST /v1/leases/{leaseId}/amend', `/leases/${leaseId}/amend`, {
      body: { runId, add: promote(freshEnv()) },
      headers: key(),
    });
    const report = await ask('target', 'POST /v1/fence/reports', '/fence/reports', {
      body: {
        leaseId,
        requestId: 'attempt-1',
        writes: [{ resource: `release/${env}`, action: 'promote', result: 'WRITE_RESULT_SUCCEEDED' }],
      },
    });
    expect(report.json.outcomes).toEqual(['REPORT_OUTCOME_CLOSED']);
    await ask('runner', 'POST /v1/runs/{runId}/state', `/runs/${runId}/state`, {
      body: { state: 'RUN_STATE_BLOCKED', reason: 'to see' },
      headers: key(),
    });
    const released = await ask('runner', 'POST /v1/leases/{leaseId}/release', `/leases/${leaseId}/release`, {
      body: { runId },
    });
    expect(released.json.outcome).toBe('RELEASE_OUTCOME_RELEASED');
    const { json: next } = await asked;
    const { leaseId: nextLease } = next.lease;
    const revoked = await ask('operator', 'POST /v1/leases/{leaseId}/revoke', `/leases/${nextLease}/revoke`, {
      body: { reason: 'enough' },
    });
    expect(revoked.json.endReason).toBe('END_REASON_REVOKED');
    const stopped = await ask('operator', 'POST /v1/runs/{runId}/stop', `/runs/${runId}/stop`, {
      body: { reason: 'enough' },
    });
    expect(stopped.json.run.state).toBe('RUN_STATE_STOPPED');
    await ask('operator', 'POST /v1/runs/stop', '/runs/stop', {
      body: { principal: 'runner', reason: 'enough' },
      headers: key(),
    });
    const runs = await ask('approver', 'GET /v1/runs', '/runs?states=RUN_STATE_STOPPED&states=RUN_STATE_FAILED');
    expect(runs.json.runs.map((run: { runId: string }) => run.runId)).toContain(runId);
  });

  it('leaves a write in doubt, which an operator settles', async () => {
    const runId = await createRun();
    const env = freshEnv();
    const { json } = await acquire(runId, env);
    const { leaseId, entries } = json.lease;
    await ask('target', 'POST /v1/fence/checks', '/fence/checks', {
      body: {
        leaseId,
        presenterRunId: runId,
        requestId: 'attempt-2',
        writes: [{ resource: `release/${env}`, action: 'promote', fencingToken: entries[0].fencingToken }],
      },
    });
    await ask('operator', 'POST /v1/leases/{leaseId}/revoke', `/leases/${leaseId}/revoke`, { body: { reason: 'x' } });
    const { json: doubts } = await ask('operator', 'GET /v1/in-doubt', `/in-doubt?run_id=${runId}`);
    expect(doubts.writes).toHaveLength(1);
    const settled = await ask(
      'operator',
      'POST /v1/in-doubt/{admissionId}/settle',
      `/in-doubt/${doubts.writes[0].admissionId}/settle`,
      { body: { outcome: 'SETTLED_OUTCOME_DID_NOT_HAPPEN', reason: 'looked' } },
    );
    expect(settled.json).toMatchObject({ settledNow: true, runId });
  });

  it('is taken over, and frozen', async () => {
    const [first, second] = [await createRun(), await createRun()];
    const env = freshEnv();
    await acquire(first, env);
    const taken = await ask('operator', 'POST /v1/leases/take-over', '/leases/take-over', {
      body: { runId: second, entries: promote(env), reason: 'fire' },
      headers: key(),
    });
    expect(taken.json).toMatchObject({ lease: { runId: second }, ended: [{ runId: first }] });
    try {
      const frozen = await ask('operator', 'POST /v1/freezes', '/freezes', {
        body: { pattern: 'release/{env}', reason: 'fire' },
      });
      expect(frozen.json.outcome).toBe('FREEZE_OUTCOME_FROZEN');
      expect((await acquire(first, 'frozen')).json.refusal.kind).toBe('REFUSAL_KIND_FROZEN');
      expect((await ask('auditor', 'GET /v1/freezes', '/freezes')).json.freezes).toHaveLength(1);
    } finally {
      // Also when it fails: what comes next asks for leases.
      await ask('operator', 'POST /v1/freezes/thaw', '/freezes/thaw', { body: { pattern: 'release/{env}' } });
    }
  });

  it('creates once by its key, and another request by that key is refused', async () => {
    const body = { purpose: 'once', authorityEndsAt: inAnHour() };
    const headers = key();
    const create = (more: object = {}) => api.ask('runner', 'POST /runs', { body: { ...body, ...more }, headers });
    const [one, two] = [await create(), await create()];
    expect(two.json.run.runId).toBe(one.json.run.runId);
    const other = await create({ purpose: 'another' });
    expect(other.status).toBe(409);
    expect(other.json.reason).toBe('IDEMPOTENCY_KEY_REUSED');
    const missing = await api.ask('runner', 'POST /runs', { body });
    expect(missing.json.violations).toEqual([{ field: 'Idempotency-Key', description: 'is required' }]);
    const within = await api.ask('runner', 'POST /runs', { body: { ...body, idempotencyKey: 'x' }, headers });
    expect(within.json.violations).toEqual([
      { field: 'idempotencyKey', description: 'is given by the header Idempotency-Key' },
    ]);
  });
});

describe('a lease whose id never came', () => {
  const release = (runId: string, acquireKey?: string) =>
    ask('runner', 'POST /v1/leases/release', '/leases/release', {
      body: { runId, ...(acquireKey === undefined ? {} : { acquireKey }) },
    });

  it('is released by the key of its acquire, also before that arrives', async () => {
    const runId = await createRun();
    const env = freshEnv();
    const granted = key();
    const { json } = await acquire(runId, env, {}, granted);
    expect((await release(runId, granted['idempotency-key'])).json.outcome).toBe('RELEASE_OUTCOME_RELEASED');
    const ended = await api.ask('runner', `GET /leases/${json.lease.leaseId}`);
    expect(ended.json.lease.state).toBe('LEASE_STATE_ENDED');
    const late = key();
    expect((await release(runId, late['idempotency-key'])).json).toMatchObject({
      outcome: 'RELEASE_OUTCOME_NOTHING_HELD',
    });
    expect((await acquire(runId, env, {}, late)).json).not.toHaveProperty('lease');
  });

  it('is not released by what is no key, nor by two names at once', async () => {
    const runId = await createRun();
    const without = await release(runId);
    expect([without.status, without.json.violations]).toMatchObject([
      400,
      [{ field: 'acquireKey', description: 'is required' }],
    ]);
    const both = await api.ask('runner', 'POST /leases/release', { body: { runId, acquireKey: 'a', leaseId: 'b' } });
    expect([both.status, both.json.violations]).toMatchObject([400, [{ field: 'leaseId' }]]);
  });
});

describe('everything else over HTTP', () => {
  it('tells who calls, and what they may do in a namespace', async () => {
    const { json } = await ask('operator', 'GET /v1/principal', '/principal?namespace=default');
    expect(json).toMatchObject({ name: 'operator', roles: ['operator'], namespaceRoles: {} });
    expect(json.may).toContain('RunService/StopRun');
    expect(json.may).not.toContain('ConflictMapService/PutConflictMap');
  });

  it('has keys, credentials, namespaces and the log', async () => {
    const runId = await createRun();
    const { json } = await acquire(runId, freshEnv());
    const issued = await ask('runner', 'POST /v1/credentials', '/credentials', {
      body: { runId, leaseId: json.lease.leaseId, audience: 'target' },
    });
    const { token, jti } = issued.json.credential;
    const introspect = { body: { token } };
    const active = await ask('target', 'POST /v1/credentials/introspect', '/credentials/introspect', introspect);
    expect(active.json).toMatchObject({ active: true, claims: { jti } });
    await ask('operator', 'POST /v1/credentials/revoke', '/credentials/revoke', { body: { jti, reason: 'lost' } });
    const { json: after } = await ask(
      'target',
      'POST /v1/credentials/introspect',
      '/credentials/introspect',
      introspect,
    );
    expect(after).toMatchObject({ active: false });
    const rotated = await ask('admin', 'POST /v1/keys/rotate', '/keys/rotate', { body: { reason: 'x', force: true } });
    expect(rotated.json.changed.length).toBeGreaterThan(0);
    const { json: keys } = await ask('auditor', 'GET /v1/keys', '/keys');
    const previous = keys.keys.find((one: { state: string }) => one.state === 'SIGNING_KEY_STATE_PREVIOUS');
    await ask('admin', 'POST /v1/keys/{keyId}/retire', `/keys/${previous.keyId}/retire`, { body: { reason: 'x' } });
    await ask('admin', 'POST /v1/namespaces', '/namespaces', { body: { name: 'team-a' } });
    expect((await ask('runner', 'GET /v1/namespaces/{name}', '/namespaces/team-a')).json.namespace.name).toBe('team-a');
    const { json: namespaces } = await ask('runner', 'GET /v1/namespaces', '/namespaces');
    expect(namespaces.namespaces.map(({ name }: { name: string }) => name)).toEqual(['default', 'team-a']);
    expect((await ask('runner', 'GET /v1/leases', '/leases?namespace=team-a')).json.leases).toEqual([]);
    const leases = await ask('operator', 'GET /v1/leases', '/leases?page_size=1&states=LEASE_STATE_ENDED');
    expect(leases.json.leases).toHaveLength(1);
    const lease = await ask('operator', 'GET /v1/leases/{leaseId}', `/leases/${leases.json.leases[0].leaseId}`);
    expect(lease.json.lease).toEqual(leases.json.leases[0]);
    expect((await ask('runner', 'GET /v1/runs/{runId}', `/runs/${runId}`)).json.run.runId).toBe(runId);
    const found = await api.ask('runner', `GET /leases/${'0'.repeat(32)}`, { headers: { 'x-request-id': 'why-1' } });
    expect(found.headers.get('x-request-id')).toBe('why-1');
    const mayNot = await api.ask('target', `GET /leases/${'0'.repeat(32)}`, { headers: { 'x-request-id': 'why-2' } });
    expect([mayNot.status, mayNot.headers.get('x-request-id')]).toEqual([403, 'why-2']);
    const nobody = await fetch(`${api.url}/v1/leases`, { headers: { 'x-request-id': 'why-3' } });
    expect([nobody.status, nobody.headers.get('x-request-id')]).toEqual([401, 'why-3']);
    expect((await fetch(`${api.url}/v1/leases`)).headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    const events = await ask('auditor', 'GET /v1/events', '/events?newest_first=true&kinds=run_created&page_size=2');
    expect(events.json.events).toMatchObject([{ kind: 'run_created' }, { kind: 'run_created' }]);
    await ask('auditor', 'GET /v1/checkpoint', '/checkpoint?revision=2');
    const ids = await ask('auditor', 'GET /v1/ids', `/ids?beginning=${runId.slice(0, 12)}`);
    expect(ids.json.runIds).toEqual([runId]);
    const signed = await ask('auditor', 'GET /v1/checkpoints', '/checkpoints?page_size=1');
    expect(signed.json).toEqual({ checkpoints: [], nextPageToken: '' });
  });

  it('counts requests by route and status, never by path', async () => {
    await api.ask('runner', 'GET /runs/0123456789abcdef0123456789abcdef');
    const { text } = await api.metrics.render();
    expect(text).toContain('writ_http_request_duration_seconds_count{route="GET /v1/runs/{runId}",status="404"}');
    expect(text).not.toContain('0123456789abcdef');
  });

  it('answers cross-origin questions with no permission', async () => {
    const response = await fetch(`${api.url}/v1/runs`, {
      method: 'OPTIONS',
      headers: { origin: 'https://elsewhere.test', 'access-control-request-method': 'GET' },
    });
    expect(response.status).toBe(405);
    expect(response.headers.get('allow')).toBe('GET, HEAD, POST');
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it('takes what suites, people in an emergency and keepers of the log have to tell', async () => {
    const runId = await createRun();
    const within = { resources: ['release/rehearsed'], runIds: [runId] };
    const begun = await ask('target', 'POST /v1/rehearsals/begin', '/rehearsals/begin', { body: within });
    expect(Date.parse(begun.json.until)).toBeGreaterThan(Date.now());
    const result = {
      resource: 'release/rehearsed',
      targetName: 'releases',
      suiteVersion: '1',
      resultDigest: '0'.repeat(64),
      cases: [{ name: 'late_write', outcome: 'REHEARSAL_OUTCOME_PASSED' }],
    };
    const recorded = await ask('target', 'POST /v1/rehearsals', '/rehearsals', { body: result });
    expect(recorded.json.rehearsal).toMatchObject({ kind: 'release/{env}', recordedBy: 'target' });

    const override = {
      overrideId: `o-${++serial}`,
      who: 'anna',
      why: 'it burns',
      until: inAnHour(),
      patterns: ['release/{env}'],
    };
    const told = () => ask('target', 'POST /v1/fence/overrides', '/fence/overrides', { body: override });
    expect((await told()).json.alreadyReported).toBe(false);
    expect((await told()).json.alreadyReported).toBe(true);

    const erase = () =>
      ask('admin', 'POST /v1/runs/{runId}/erase-texts', `/runs/${runId}/erase-texts`, {
        body: { reason: 'asked for' },
      });
    expect((await erase()).status).toBe(409);
    await ask('operator', 'POST /v1/runs/{runId}/stop', `/runs/${runId}/stop`, { body: { reason: 'over' } });
    expect(Number((await erase()).json.erased)).toBeGreaterThan(0);

    // Two events are cut, wherever the log begins: at 1, but for a second attempt.
    const { nextPageToken: token, firstRevision } = (await ask('auditor', 'GET /v1/events', '/events?page_size=1'))
      .json;
    const upto = Number(firstRevision) + 1;
    const { json } = await ask('auditor', 'GET /v1/checkpoint', `/checkpoint?revision=${upto}`);
    const archiveDigest = Buffer.alloc(32, 7).toString('base64');
    const cut = (checkpoint: object) =>
      ask('admin', 'POST /v1/events/cut', '/events/cut', {
        body: { checkpoint, archiveDigest, reason: 'the disk is small', evenYoung: true },
      });
    expect((await cut({ ...json.checkpoint, revision: String(upto + 1) })).status).toBe(400);
    expect((await cut(json.checkpoint)).json).toMatchObject({
      firstRevision: String(upto + 1),
      removed: '2',
      left: '0',
    });

    // Whoever had read less is told that there is a gap; whoever had read up to the cut, or begins anew, goes on.
    const reasonAt = async (path: string) => (await api.ask('auditor', `GET ${path}`)).json.reason;
    expect(await reasonAt(`/events?page_token=${token}`)).toBe('CURSOR_EXPIRED');
    expect(await reasonAt(`/events/stream?after_revision=${upto - 1}`)).toBe('CURSOR_EXPIRED');
    expect(await reasonAt(`/events/export?after_revision=${upto - 1}`)).toBe('CURSOR_EXPIRED');
    const hash = Buffer.from(json.checkpoint.hash, 'base64').toString('hex');
    for (const place of ['0', `${upto}`, `${upto}:${hash}`]) expect(await firstTold(place), place).toBe(upto + 1);
    const pages = await ask('auditor', 'GET /v1/events', '/events?page_size=1');
    const next = Buffer.from(pages.json.nextPageToken, 'base64url').toString();
    const other = Buffer.from(next.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))).toString('base64url');
    expect(await reasonAt(`/events?page_token=${other}`)).toBe('HISTORY_FORKED');
    const beyond = Buffer.from(`events 999999:${hash}`).toString('base64url');
    expect(await reasonAt(`/events?page_token=${beyond}`)).toBe('HISTORY_FORKED');
    // Also by the revision alone: a reader of a history that was lost would wait for the new one to catch up, and skip it.
    expect(await reasonAt('/events?after_revision=999999')).toBe('HISTORY_FORKED');
  });

  it('names the place that no checkpoint can be over', async () => {
    const at = async (query: string) => (await api.ask('auditor', `GET /checkpoint?${query}`)).json;
    expect((await at('revision=0')).violations).toMatchObject([
      { field: 'revision', description: 'must be 1 or more' },
    ]);
    expect((await at('revision=4&before=2026-01-01T00:00:00Z')).violations).toEqual([
      { field: 'before', description: 'cannot be given together with revision' },
    ]);
  });

  it('compresses long lists for those who take that, and nothing else', async () => {
    for (let count = 0; count < 40; count += 1) await createRun();
    const get = (path: string, encoding: string, role: Role = 'runner') =>
      fetch(`${api.url}/v1${path}`, {
        headers: { authorization: `Bearer token-${role}`, 'accept-encoding': encoding },
      });
    const long = await get('/runs?page_size=100', 'gzip');
    expect([long.headers.get('content-encoding'), long.headers.get('vary')]).toEqual(['gzip', 'Accept-Encoding']);
    const plain = await get('/runs?page_size=100', 'identity');
    expect(plain.headers.get('content-encoding')).toBeNull();
    const text = await plain.text();
    expect(Number(plain.headers.get('content-length'))).toBe(Buffer.byteLength(text));
    const runIds = (all: string): string[] => JSON.parse(all).runs.map(({ runId }: { runId: string }) => runId);
    expect(runIds(await long.text())).toEqual(runIds(text));
    // A short one; one whose ETag is needed as it is; one that goes on.
    for (const path of ['/runs?page_size=1', '/conflict-map'])
      expect((await get(path, 'gzip')).headers.get('content-encoding'), path).toBeNull();
    expect((await get('/conflict-map', 'gzip')).headers.get('etag')).toMatch(/^"\d+"$/);
    const stream = await get('/events/export', 'gzip', 'auditor');
    expect(stream.headers.get('content-encoding')).toBeNull();
    expect((await stream.text()).split('\n')[0]).toContain('"format"');
  });

  it('serves the document that lies beside it', async () => {
    const response = await fetch(`${api.url}/v1/openapi.json`);
    expect(await response.json()).toEqual(JSON.parse(JSON.stringify(openApiDocument())));
  });

  it('has answered by every route, each as the document says', () => {
    const streams = others
      .filter(({ answer }) => answer.type !== 'application/json')
      .map(({ route }) => route as string);
    const missing = [...ROUTES.keys()].filter((route) => !answered.has(route) && !streams.includes(route));
    expect(missing).toEqual([]);
  });
});

describe('HTTP and gRPC', () => {
  const same = <T>(type: MessageType<T>, message: T): unknown => protoJson(type, message, { alwaysEmitImplicit: true });

  it('answer the same question alike', async () => {
    const runId = await createRun();
    const { json } = await acquire(runId, freshEnv());
    const { leaseId } = json.lease;
    const { lease, run, conflictMap } = api.client('operator');
    const pairs: [string, object, unknown][] = [
      [`/leases/${leaseId}`, same(GetLeaseResponse, await lease.getLease({ leaseId })) as object, null],
      [`/leases?run_id=${runId}`, same(ListLeasesResponse, await lease.listLeases({ runId })) as object, null],
      [`/runs/${runId}`, same(GetRunResponse, await run.getRun({ runId })) as object, null],
      ['/runs?page_size=3', same(ListRunsResponse, await run.listRuns({ page: { pageSize: 3 } })) as object, null],
      ['/conflict-map', same(GetConflictMapResponse, await conflictMap.getConflictMap({})) as object, null],
    ];
    for (const [path, message] of pairs) {
      const { json: overHttp } = await api.ask('operator', `GET ${path}`);
      // What is left of a lease is counted from each call.
      const still = (value: unknown) =>
        JSON.parse(JSON.stringify(value, (name, inner) => (name === 'expiresIn' ? 0 : inner)));
      expect(still({ ...overHttp, logRevision: 0 }), path).toEqual(still({ ...message, logRevision: 0 }));
    }
  });

  it('refuse the same question by the same reason', async () => {
    const { lease, run, conflictMap } = api.client('runner');
    const reasonOf = (call: () => Promise<unknown>): Promise<string> =>
      call().then(
        () => '',
        (error: WritError) => error.reason,
      );
    const id = '0'.repeat(32);
    const questions: [() => Promise<unknown>, string, AskOptions?][] = [
      [() => lease.getLease({ leaseId: id }), `GET /leases/${id}`],
      [() => run.getRun({ runId: id }), `GET /runs/${id}`],
      [() => run.getRun({ runId: 'x' }), 'GET /runs/x'],
      [() => run.listRuns({ page: { pageSize: 5_000 } }), 'GET /runs?page_size=5000'],
      [() => run.listRuns({ page: { pageToken: '%' } }), 'GET /runs?page_token=%25'],
      [() => conflictMap.getConflictMap({ version: 999n }), 'GET /conflict-map?version=999'],
      [() => lease.listLeases({ namespace: 'nowhere' }), 'GET /leases?namespace=nowhere'],
      [() => lease.listLeases({ namespace: 'NO!' }), 'GET /leases?namespace=NO!'],
      [() => lease.revokeLease({ leaseId: id, reason: 'x' }), `POST /leases/${id}/revoke`, { body: { reason: 'x' } }],
    ];
    for (const [overGrpc, request, options] of questions) {
      const { json, status } = await api.ask('runner', request, options);
      expect(status, request).toBeGreaterThanOrEqual(400);
      expect(json.reason, request).toBe(await reasonOf(overGrpc));
    }
  });

  it('go on with a list only by a token of that list', async () => {
    const lists = ['runs', 'leases', 'waiters', 'in-doubt', 'freezes', 'rehearsals', 'namespaces', 'checkpoints'];
    const { json } = await api.ask('auditor', 'GET /events?page_size=1');
    for (const list of [...lists, 'conflict-map/versions', 'conflict-map/unmatched']) {
      const answer = await api.ask('operator', `GET /${list}?page_token=${json.nextPageToken}`);
      expect(answer.status, list).toBe(400);
      expect(answer.json.violations, list).toMatchObject([{ field: 'page_token' }]);
    }
    expect((await api.ask('auditor', `GET /events?page_token=${json.nextPageToken}`)).status).toBe(200);
  });

  it('tell what is wrong by the names that each caller used', async () => {
    const { json } = await api.ask('runner', 'POST /runs', {
      body: { purpose: 'x', goalRevision: 'x'.repeat(300), authorityEndsAt: '2020-01-01T00:00:00Z' },
      headers: key(),
    });
    expect(json.violations.map(({ field }: { field: string }) => field)).toEqual(['goalRevision']);
    const paged = await api.ask('runner', 'GET /runs?page_size=5000&page_token=x');
    expect(paged.json.violations.map(({ field }: { field: string }) => field)).toEqual(['page_size']);
    expect(paged.json.detail).toMatch(/^page_size: /);
  });
});
