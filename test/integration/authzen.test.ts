import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { as, createRun, eventually, granted, ISSUER, putMap, write } from '../support/coordinator.js';
import { send, startGateway, type TestGateway } from '../support/gateway.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

/** The OpenID Authorization API 1.0, as its certification scenario goes about it, over runs and leases. */

const MAP = `
version: 1
kinds:
  - { pattern: "record/{id}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document }, patch: { access: write, change_class: derived } } }
  - { pattern: "pointer/{id}", actions: { set: { access: write, concurrency: lease, tracked: true } } }
  - { pattern: "draft/{id}", mode: observe, actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
`;

let database: TestDatabase;
let gateway: TestGateway;

beforeAll(async () => {
  database = await createTestDatabase();
  gateway = await startGateway(database.url, new Map());
  await putMap(gateway.replica.api, MAP);
});

afterAll(async () => {
  await gateway?.stop();
  await database?.drop();
});

const HEADERS: [string, string][] = [
  ['Authorization', 'Bearer token-svc:pages'],
  ['Content-Type', 'application/json'],
];

const post = (path: string, body: unknown, headers: readonly (readonly [string, string])[] = HEADERS) =>
  send(gateway.http, path, headers, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) });
const evaluate = (body: unknown, headers?: [string, string][]) => post('/access/v1/evaluation', body, headers);
const evaluateAll = (body: unknown) => post('/access/v1/evaluations', body);

let serial = 0;
async function held(
  action = 'replace',
  kind = 'record',
): Promise<{ lease: Lease; id: string; properties: Record<string, unknown> }> {
  const id = `${kind}/${++serial}`;
  const runId = await createRun(gateway.replica.api);
  const lease = await granted(gateway.replica.api, runId, [write(id, action)], { ttl: 120 * SECOND });
  return { lease, id, properties: { lease_id: lease.leaseId, fencing_token: String(lease.entries[0]?.token) } };
}

/** A question about a record: the run's, with its lease and token. */
async function question(more: { subject?: object; action?: object; resource?: object } = {}) {
  const { lease, id, properties } = await held();
  return {
    lease,
    id,
    body: {
      subject: { type: 'run', id: lease.runId, properties, ...more.subject },
      action: { name: 'replace', ...more.action },
      resource: { type: 'resource', id, ...more.resource },
    },
  };
}

describe('POST /access/v1/evaluation', () => {
  test('permits what is granted, and says until when', async () => {
    const { body } = await question();
    const answer = await evaluate(body, [...HEADERS, ['X-Request-ID', 'a-b-c']]);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json');
    expect(answer.headers['x-request-id']).toBe('a-b-c');
    expect(answer.body).toEqual({
      decision: true,
      context: {
        reason: 'ok',
        log_revision: expect.stringMatching(/^\d+$/),
        valid_for: expect.stringMatching(/^\d+ms$/),
        request_id: 'a-b-c',
      },
    });
  });

  test('ignores what it does not know, context included', async () => {
    const { body } = await question({ subject: { extra: 1 } });
    const properties = { ...(body.subject.properties as object), department: 'Sales' };
    const subject = { ...body.subject, properties };
    const more = { subject, foo: 'bar', futureField: { nested: true }, context: { time: '2026-06-27T18:03-07:00' } };
    const answer = await evaluate({ ...body, ...more });
    expect(answer.body).toMatchObject({ decision: true });
  });

  test('denies what is not, with the reason of the check', async () => {
    const { body, lease, id } = await question();
    const denied = async (more: object) => (await evaluate({ ...body, ...more })).body;
    const reason = (code: string) => ({ decision: false, context: { reason: code } });
    expect(await denied({ resource: { type: 'resource', id: 'record/other' } })).toMatchObject(reason('not_covered'));
    expect(await denied({ action: { name: 'patch' } })).toMatchObject(reason('action_not_allowed'));
    expect(await denied({ subject: { ...body.subject, id: 'f'.repeat(32) } })).toMatchObject(reason('wrong_holder'));
    expect(await denied({ subject: { type: 'run', id: lease.runId } })).toMatchObject(reason('unknown_lease'));
    const properties = { lease_id: lease.leaseId, fencing_token: '7' };
    expect(await denied({ subject: { ...body.subject, properties } })).toMatchObject(reason('stale_token'));
    const later = { lease_id: lease.leaseId, fencing_token: '18446744073709551615' };
    expect(await denied({ subject: { ...body.subject, properties: later } })).toMatchObject(reason('future_token'));
    expect(await denied({ subject: { type: 'user', id: 'alice' } })).toMatchObject(reason('unsupported_subject'));
    expect(await denied({ resource: { type: 'record', id } })).toMatchObject(reason('unsupported_resource'));
    await gateway.replica.api.stopRun(as('operator'), { runId: lease.runId, reason: 'enough' });
    const stopped = await denied({});
    expect(stopped).toMatchObject(reason('run_stopped'));
    expect(JSON.stringify(stopped)).not.toContain(String(lease.entries[0]?.token));
  });

  test('C8: takes the observed version from the resource', async () => {
    const { lease, id, properties } = await held('patch');
    const ask = (resource: object) =>
      evaluate({
        subject: { type: 'run', id: lease.runId, properties },
        action: { name: 'patch' },
        resource: { type: 'resource', id, ...resource },
      });
    expect((await ask({})).body).toMatchObject({ decision: false, context: { reason: 'version_required' } });
    expect((await ask({ properties: { observed_version: '41' } })).body).toMatchObject({ decision: true });
  });

  test('C9: takes a credential, bound or not', async () => {
    const { lease, id } = await held();
    const thumbprint = 'A'.repeat(43);
    const confirmation = { kind: 'jkt', thumbprint } as const;
    const input = { runId: lease.runId, leaseId: lease.leaseId, audience: 'svc:pages', confirmation, requestId: '' };
    const { value } = await gateway.replica.api.issueCredential(as('runner'), input);
    const ask = async (properties: object) => {
      const subject = {
        type: 'run',
        id: lease.runId,
        properties: { credential: value.credential?.token, ...properties },
      };
      const question = { subject, action: { name: 'replace' }, resource: { type: 'resource', id } };
      return (await evaluate(question)).body;
    };
    expect(await ask({ cnf: { jkt: thumbprint } })).toMatchObject({ decision: true });
    expect(await ask({ cnf: { jkt: 'B'.repeat(43) } })).toMatchObject({ context: { reason: 'binding_mismatch' } });
    expect(await ask({})).toMatchObject({ decision: false, context: { reason: 'not_bound' } });
    // Both at once are two questions.
    expect(await ask({ lease_id: lease.leaseId })).toMatchObject({
      decision: false,
      context: { error: { status: 400 } },
    });
  });

  test('C14: an observed kind permits, and says what it would have answered', async () => {
    const body = {
      subject: { type: 'run', id: 'f'.repeat(32) },
      action: { name: 'replace' },
      resource: { type: 'resource', id: 'draft/1' },
    };
    expect((await evaluate(body)).body).toMatchObject({
      decision: true,
      context: { reason: 'unknown_lease', observed_only: true },
    });
  });

  test('a question that can be asked and names nothing writable is denied, not an error', async () => {
    const { body } = await question({ action: { name: 'can do' } });
    expect(await evaluate(body)).toMatchObject({
      status: 200,
      body: { decision: false, context: { error: { status: 400, message: expect.stringContaining('action') } } },
    });
  });

  const GOOD = {
    subject: { type: 'run', id: 'f'.repeat(32) },
    action: { name: 'replace' },
    resource: { type: 'resource', id: 'record/1' },
  };
  test.each([
    ['subject', { ...GOOD, subject: undefined }],
    ['action', { ...GOOD, action: undefined }],
    ['resource', { ...GOOD, resource: undefined }],
    ['subject.type', { ...GOOD, subject: { id: 'x' } }],
    ['subject.id', { ...GOOD, subject: { type: 'run' } }],
    ['action.name', { ...GOOD, action: {} }],
    ['resource.type', { ...GOOD, resource: { id: 'x' } }],
    ['resource.id', { ...GOOD, resource: { type: 'resource' } }],
    ['subject', { ...GOOD, subject: 'alice' }],
    ['action.name', { ...GOOD, action: { name: 123 } }],
    ['subject.properties.fencing_token', { ...GOOD, subject: { ...GOOD.subject, properties: { fencing_token: 7 } } }],
    ['subject.properties.cnf', { ...GOOD, subject: { ...GOOD.subject, properties: { cnf: {} } } }],
    ['body', []],
    ['body', 'null'],
    ['body', '{"subject":'],
    ['body', ''],
  ])('is refused by field: %s', async (field, body) => {
    const answer = await evaluate(body);
    expect(answer.status, answer.text).toBe(400);
    expect(answer.headers['content-type']).toBe('application/problem+json');
    expect(answer.body).toMatchObject({ reason: 'INVALID_ARGUMENT', violations: [{ field }] });
  });

  test('wants JSON, and a caller it knows', async () => {
    const type = (value: string): [string, string][] => [
      ['Authorization', 'Bearer token-svc:pages'],
      ['Content-Type', value],
    ];
    expect((await evaluate(GOOD, type('text/plain'))).status).toBe(415);
    expect((await evaluate(GOOD, type('application/json; charset=utf-8'))).status).toBe(200);
    const nobody = await evaluate(GOOD, [
      ['Content-Type', 'application/json'],
      ['X-Request-ID', 'mine'],
    ]);
    expect(nobody).toMatchObject({ status: 401, headers: { 'www-authenticate': expect.stringMatching(/^Bearer/) } });
    const runner: [string, string][] = [
      ['Authorization', 'Bearer token-runner'],
      ['Content-Type', 'application/json'],
    ];
    expect((await evaluate(GOOD, runner)).status).toBe(403);
    expect((await send(gateway.http, '/access/v1/evaluation', HEADERS)).status).toBe(405);
  });

  test('is for the namespace that the question names, where the caller has the role', async () => {
    const team: [string, string][] = [
      ['Authorization', 'Bearer token-svc:team'],
      ['Content-Type', 'application/json'],
    ];
    expect((await evaluate(GOOD, team)).status).toBe(403);
    await gateway.replica.api.createNamespace(as('admin'), { name: 'team-a' });
    const there = await evaluate({ ...GOOD, context: { namespace: 'team-a' } }, team);
    expect(there).toMatchObject({ status: 200, body: { decision: false, context: { reason: 'unknown_lease' } } });
    expect((await evaluate({ ...GOOD, context: { namespace: 'Nowhere' } })).body).toMatchObject({ decision: false });
  });

  test('A1: a denial is found by its request id', async () => {
    await evaluate(GOOD, [...HEADERS, ['X-Request-ID', 'authzen-1']]);
    const everything = { runId: '', leaseId: '', resource: '', kinds: [], afterRevision: 0, newestFirst: false };
    const query = { ...everything, requestId: 'authzen-1', page: { size: 10, token: '' } };
    const { items } = await eventually(
      () => gateway.replica.api.listEvents(as('auditor'), query),
      (page) => page.items.length > 0,
    );
    expect(items[0]?.kind).toBe('checks_denied');
  });
});

describe('POST /access/v1/evaluations', () => {
  async function batch() {
    const { lease, id, body } = await question();
    const nothing = { type: 'resource', id: 'record/none' };
    return { lease, id, subject: body.subject, action: body.action, resource: body.resource, nothing };
  }
  const decisions = ({ body }: { body: Record<string, unknown> }) =>
    (body.evaluations as { decision: boolean }[]).map(({ decision }) => decision);

  test('decides each for itself, in their order, with defaults', async () => {
    const { subject, action, resource, nothing } = await batch();
    const evaluations = [{ resource }, { resource: nothing }, { resource, action: { name: 'patch' } }, { resource }];
    const answer = await evaluateAll({ subject, action, evaluations });
    expect(decisions(answer)).toEqual([true, false, false, true]);
    expect(answer.body).not.toHaveProperty('decision');
    const whole = await evaluateAll({
      evaluations: [{ subject, action, resource }],
      options: { another_option: 'value' },
    });
    expect(decisions(whole)).toEqual([true]);
  });

  type Answer = {
    decision: boolean;
    context: Record<string, unknown> & { error?: { status: number; reason: string } };
  };
  const answersOf = ({ body }: { body: Record<string, unknown> }) => body.evaluations as Answer[];

  /** Tracked writes of one lease, asked for in one batch; `context` is that of each. */
  async function tracked(...contexts: object[]) {
    const { lease, id, properties } = await held('set', 'pointer');
    const other = `pointer/${++serial}`;
    const both = await granted(gateway.replica.api, lease.runId, [write(other, 'set')], { ttl: 120 * SECOND });
    const of = (one: Lease) => ({ lease_id: one.leaseId, fencing_token: String(one.entries[0]?.token) });
    const evaluations = contexts.map((context, at) => ({
      subject: { type: 'run', id: lease.runId, properties: at % 2 === 0 ? properties : of(both) },
      resource: { type: 'resource', id: at % 2 === 0 ? id : other },
      context,
    }));
    return { runId: lease.runId, evaluations };
  }
  const openOf = async (runId: string) =>
    (await gateway.replica.api.getRun(as('operator'), { runId })).value.openWrites.map(
      ({ admissionId }) => admissionId,
    );

  test.each([
    ['none', {}],
    ['the same', { request_id: 'batch-of-one-id' }],
  ])(
    'R4: of tracked actions, with %s for a request id, each is let in for itself and told by whom',
    async (_, context) => {
      const { runId, evaluations } = await tracked(context, context, context);
      const answer = await post('/access/v1/evaluations', { action: { name: 'set' }, evaluations }, [
        ...HEADERS,
        ['X-Request-ID', `batch-${runId}`],
      ]);
      expect(answer.status, answer.text).toBe(200);
      expect(decisions(answer)).toEqual([true, true, true]);
      const admitted = answersOf(answer).map(({ context: { admission_id: id } }) => id);
      expect(new Set(admitted).size).toBe(3);
      expect(new Set(await openOf(runId))).toEqual(new Set(admitted));
      const requestId = 'request_id' in context ? context.request_id : `batch-${runId}`;
      expect(answersOf(answer).map(({ context: told }) => told.request_id)).toEqual([requestId, requestId, requestId]);
      const query = { runId, leaseId: '', resource: '', kinds: [], afterRevision: 0, newestFirst: false, requestId };
      const { items } = await gateway.replica.api.listEvents(as('auditor'), {
        ...query,
        page: { size: 10, token: '' },
      });
      expect(items.map(({ kind }) => kind)).toEqual(Array(3).fill('writes_admitted'));
    },
  );

  test('R4: of tracked actions, sent again with request ids of their own, gets the same admissions', async () => {
    const { runId, evaluations } = await tracked({ request_id: 'of-its-own-1' }, { request_id: 'of-its-own-2' });
    const ask = async () =>
      answersOf(await evaluateAll({ action: { name: 'set' }, evaluations })).map(
        ({ context: told }) => told.admission_id,
      );
    const first = await ask();
    expect(await ask()).toEqual(first);
    expect(await openOf(runId)).toHaveLength(2);
  });

  test('a fault of one is its denial; what the others were let in for is told (R4)', async () => {
    const { runId, evaluations } = await tracked({ request_id: 'taken' }, {}, { namespace: 'team-b' });
    const [first, second, foreign] = evaluations;
    const { subject, resource } = second ?? {};
    // Under the lease of the second, the id of an open check of another write.
    const version = { ...resource, properties: { observed_version: '1' } };
    const taken = { subject, resource: version, context: { request_id: 'taken-2' } };
    expect((await evaluate({ ...taken, action: { name: 'set' } })).body).toMatchObject({ decision: true });
    const again = { ...taken, resource: { ...resource, properties: { observed_version: '2' } } };
    const alone = await evaluate({ ...again, action: { name: 'set' } });
    expect(alone).toMatchObject({ status: 409, body: { reason: 'REQUEST_ID_REUSED' } });
    const answer = await evaluateAll({ action: { name: 'set' }, evaluations: [first, again, foreign, second] });
    expect(answer.status, answer.text).toBe(200);
    expect(decisions(answer)).toEqual([true, false, false, true]);
    expect(answersOf(answer)[1]?.context.error).toMatchObject({ status: 409, reason: 'REQUEST_ID_REUSED' });
    expect(answersOf(answer)[2]?.context.error).toMatchObject({ status: 404, reason: 'NAMESPACE_NOT_FOUND' });
    expect(await openOf(runId)).toHaveLength(3);
  });

  test('stops where it is told to', async () => {
    const { subject, action, resource, nothing } = await batch();
    const ask = (semantic: string, ...resources: object[]) =>
      evaluateAll({
        subject,
        action,
        evaluations: resources.map((one) => ({ resource: one })),
        options: { evaluations_semantic: semantic },
      });
    expect(decisions(await ask('execute_all', nothing, resource))).toEqual([false, true]);
    expect(decisions(await ask('deny_on_first_deny', resource, nothing, resource))).toEqual([true, false]);
    expect(decisions(await ask('permit_on_first_permit', nothing, resource, nothing))).toEqual([false, true]);
    expect((await ask('any', resource)).status).toBe(400);
  });

  test('without evaluations is a single one', async () => {
    const { subject, action, resource } = await batch();
    expect((await evaluateAll({ subject, action, resource })).body).toMatchObject({ decision: true });
    expect((await evaluateAll({ subject, action, resource, evaluations: [] })).body).toMatchObject({ decision: true });
    expect((await evaluateAll({ evaluations: [] })).status).toBe(400);
  });

  test('what is missing is named by its place, and one that cannot be decided leaves the others alone', async () => {
    const { subject, action, resource } = await batch();
    const missing = await evaluateAll({ subject, evaluations: [{ action, resource }, { resource }] });
    expect(missing).toMatchObject({ status: 400, body: { violations: [{ field: 'evaluations.1.action' }] } });
    const odd = await evaluateAll({ subject, resource, evaluations: [{ action: { name: 'can do' } }, { action }] });
    expect(decisions(odd)).toEqual([false, true]);
    const many = Array.from({ length: 257 }, () => ({ resource }));
    expect(await evaluateAll({ subject, action, evaluations: many })).toMatchObject({
      status: 400,
      body: { violations: [{ field: 'evaluations' }] },
    });
  });
});

test('the metadata names the endpoints, to everybody', async () => {
  const answer = await send(gateway.http, '/.well-known/authzen-configuration', []);
  expect(answer).toMatchObject({ status: 200, headers: { 'cache-control': 'public, max-age=300' } });
  expect(answer.headers['content-type']).toBe('application/json');
  expect(answer.body).toEqual({
    policy_decision_point: ISSUER,
    access_evaluation_endpoint: `${ISSUER}/access/v1/evaluation`,
    access_evaluations_endpoint: `${ISSUER}/access/v1/evaluations`,
  });
});
