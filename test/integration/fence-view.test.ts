import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { ROLES } from '../../src/auth/principal.js';
import { hashToken } from '../../src/auth/tokens.js';
import { runCli } from '../../src/cli/program.js';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import type { WritError } from '../../src/clients/common/errors.js';
import { createFenceView, createGate, type FenceQuestion, type FenceView } from '../../src/clients/target/index.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import type { WatchFencesRequest } from '../../src/gen/writ/v1/fence_service.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';
import { as, createRun, eventually, freshKey, granted, type TestReplica, write } from '../support/coordinator.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';

/** A target's view over a socket, fed by one of two replicas; the other one does the changing. */

const MAP = `
version: 1
kinds:
  - pattern: "wiki/{page...}"
    validation: view
    max_view_age: 2s
    ttl: 60s
    actions: { edit: { access: write, change_class: derived }, post: { access: write, concurrency: lease, change_class: shared_pointer, tracked: true }, move: { access: write, concurrency: lease, change_class: shared_pointer } }
  - { pattern: "doc/{name}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "theirs/{name}", validation: view, owner_service: [svc:other], actions: { set: { access: write, concurrency: lease, change_class: shared_pointer } } }
`;

let pair: TwoReplicas;
let here: TestReplica;
let there: TestReplica;
let server: GrpcServer;
let endpoint: string;
let client: WritClient;
let view: FenceView;
let runId: string;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: MAP });
  ({ a: here, b: there } = pair);
  runId = await createRun(there.api);
  await listen(0);
  client = connectWrit({ endpoint, token: 'token-target' });
  view = createFenceView({ client });
  await view.ready();
});

afterAll(async () => {
  view?.close();
  client?.close();
  await server?.drain(0);
  await pair?.stop();
});

async function listen(port: number): Promise<void> {
  server = new GrpcServer({ limits: readConfig({}).limits, metrics: createMetrics(), log: createLogger('silent') });
  endpoint = await server.listen('127.0.0.1', port);
  const authenticator = createCallerAuthenticator({
    principals: ROLES.map((role) => ({ name: role, roles: [role], tokenSha256: hashToken(`token-${role}`) })),
  });
  server.serve({ api: here.api, authenticator, blockerKey: Buffer.from('key') });
}

const WRITE = { resource: 'wiki/{page...}', action: 'move', change_class: 'shared_pointer' };
const EVENTS = {
  runId: '',
  leaseId: '',
  resource: '',
  kinds: [],
  requestId: '',
  newestFirst: true,
  afterRevision: 0,
  page: { size: 20, token: '' },
};

const asked = (lease: Lease, more: Partial<FenceQuestion['writes'][number]> = {}): FenceQuestion => {
  const [entry] = lease.entries;
  const write = {
    resource: entry?.resource ?? '',
    action: entry?.actions[0] ?? '',
    token: BigInt(entry?.token ?? 0),
    ...more,
  };
  return { leaseId: lease.leaseId, writes: [write] };
};

const reason = (question: FenceQuestion): string => view.check(question).reason;
const becomes = (question: FenceQuestion, expected: string) =>
  eventually(
    () => Promise.resolve(reason(question)),
    (seen) => seen === expected,
  );

describe('a view', () => {
  it('decides as the coordinator does, of what another replica was asked for', async () => {
    const lease = await granted(there.api, runId, [write(`wiki/${freshKey()}`, 'move')]);
    await becomes(asked(lease), 'ok');
    const decision = view.check(asked(lease));
    expect(decision).toMatchObject({
      allowed: true,
      holder: { runId, leaseId: lease.leaseId },
      writes: [{ exclusive: true, explicit: true }],
    });
    expect(reason(asked(lease, { token: 1n }))).toBe('stale_token');
    expect(reason(asked(lease, { action: 'edit' }))).toBe('action_not_allowed');
    expect(reason(asked(lease, { resource: 'wiki/other' }))).toBe('not_covered');
    expect(reason(asked(lease, { resource: 'doc/a' }))).toBe('view_does_not_decide');
    expect(reason({ ...asked(lease), presenterRunId: 'other' })).toBe('wrong_holder');
    expect(reason({ ...asked(lease), leaseId: 'f'.repeat(32) })).toBe('unknown_lease');
    const { value } = await there.api.releaseLease(as('runner'), { runId, leaseId: lease.leaseId, acquireKey: null });
    await becomes(asked(lease), 'released');
    expect(value.effectiveAt).toBeGreaterThan((lease.grantedAt ?? 0) + 2 * SECOND);
  });

  it('serves a gate, which asks about all that it does not allow', async () => {
    const routes = { version: 1, routes: [{ method: 'PUT', path: '/wiki/{page...}', writes: [WRITE] }] };
    const gate = createGate({ client, routes, view });
    const [mine, elsewhere] = [freshKey(), freshKey()];
    const lease = await granted(there.api, runId, [write(`wiki/${mine}`, 'move')]);
    const put = (page: string, token: number) =>
      gate.decide({
        method: 'PUT',
        path: `/wiki/${page}`,
        headers: { 'writ-lease': lease.leaseId, 'writ-fencing-token': String(token) },
      });
    const token = lease.entries[0]?.token ?? 0;
    // Before the view has heard of it the coordinator says so.
    expect(await put(mine, token)).toMatchObject({ allowed: true });
    await becomes(asked(lease), 'ok');
    expect(await put(mine, token)).toMatchObject({ allowed: true, decidedBy: 'view', leaseId: lease.leaseId, runId });
    expect(await put(elsewhere, token)).toMatchObject({ allowed: false, problem: { code: 'not_covered' } });
    const denied = await eventually(
      () => there.api.listEvents(as('auditor'), { ...EVENTS, kinds: ['checks_denied'] }),
      ({ items }) => items.some(({ resources }) => resources.includes(`wiki/${elsewhere}`)),
    );
    expect(denied.items).not.toEqual([]);
    await gate.close();
  });

  it('asks the coordinator of what it cannot allow, and for tracked actions', async () => {
    const lease = await granted(there.api, runId, [write(`wiki/${freshKey()}`, 'post')]);
    const question = { ...asked(lease), requestId: 'attempt-1' };
    await becomes(asked(lease), 'view_tracked_action');
    const decision = await view.decide(question);
    expect(decision).toMatchObject({ allowed: true, reason: 'ok' });
    expect(decision.writes[0]?.admissionId).not.toBe('');
    expect(await view.decide({ ...asked(lease), leaseId: 'f'.repeat(32) })).toMatchObject({ reason: 'unknown_lease' });
  });

  it('is followed by writ watch, a line for each change', async () => {
    const watched = `wiki/${freshKey()}`;
    const lease = await granted(there.api, runId, [write(watched, 'move')]);
    await becomes(asked(lease), 'ok');
    const run = async (...args: string[]) => {
      const parts: string[] = [];
      const stdout = { write: (part: string) => parts.push(part) };
      const env = { WRIT_ENDPOINT: endpoint, WRIT_TOKEN: 'token-target', WRIT_DATA_DIR: '/nowhere' };
      const code = await runCli(['watch', '--once', ...args], env, { stdout, stderr: stdout });
      return { code, text: parts.join('') };
    };
    const { code, text } = await run();
    expect(code).toBe(0);
    expect(text).toMatch(/^snapshot {2}conflict map version 1$/m);
    expect(text).toMatch(new RegExp(`^live .* ${watched}=move$`, 'm'));
    expect(text).not.toContain(lease.leaseId);
    const [place = ''] = /\d+:[0-9a-f]{64}/.exec(text) ?? [];
    await there.api.revokeLease(as('operator'), { leaseId: lease.leaseId, reason: 'r' });
    await becomes(asked(lease), 'revoked');
    const { text: after } = await run('--from', place, '--json');
    const lines = after
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines).toContainEqual({ ended: expect.objectContaining({ reason: 'FENCE_REASON_REVOKED' }) });
    expect(lines.at(-1)).toHaveProperty('reached.revision');
    expect(await run('--from', 'x')).toMatchObject({ code: 2 });
    expect(await run('--from', `1:${'0'.repeat(64)}`)).toMatchObject({
      code: 3,
      text: expect.stringMatching(/another event/),
    });
  });
});

describe('a watch', () => {
  const open = (namespace = ''): WatchFencesRequest => ({
    said: { $case: 'open', value: { namespace, resumeFrom: undefined, viewKindsOnly: true } },
  });
  const ping: WatchFencesRequest = { said: { $case: 'ping', value: { number: 1n } } };

  async function endOf(first: WatchFencesRequest, ...more: WatchFencesRequest[]): Promise<string> {
    const watch = await client.fence.watchFences();
    for (const request of [first, ...more]) watch.send(request);
    try {
      for await (const _ of watch.received);
      return 'OK';
    } catch (error) {
      const { code, reason } = error as WritError;
      return `${code} ${reason}`;
    }
  }

  it('is opened once, by its first message, in a namespace that there is', async () => {
    expect(await endOf(ping)).toBe('INVALID_ARGUMENT INVALID_ARGUMENT');
    expect(await endOf({ said: undefined })).toBe('INVALID_ARGUMENT INVALID_ARGUMENT');
    expect(await endOf(open(), open())).toBe('INVALID_ARGUMENT INVALID_ARGUMENT');
    expect(await endOf(open('nowhere'))).toBe('NOT_FOUND NAMESPACE_NOT_FOUND');
  });

  it('says that its replica is going away, and a view goes on at the next one (F26)', async () => {
    const lease = await granted(there.api, runId, [write(`wiki/${freshKey()}`, 'move')]);
    await becomes(asked(lease), 'ok');
    const raw = await client.fence.watchFences();
    raw.send(open());
    const received = raw.received[Symbol.asyncIterator]();
    expect((await received.next()).value?.updates.length).toBeGreaterThan(0);
    const heard = (async () => {
      for (;;) {
        const { value, done } = await received.next();
        if (done === true || value.goingAway) return done !== true;
      }
    })();
    await server.drain(5_000);
    expect(await heard).toBe(true);
    await listen(Number(endpoint.split(':')[1]));
    await there.api.releaseLease(as('runner'), { runId, leaseId: lease.leaseId, acquireKey: null });
    await becomes(asked(lease), 'released');
  });
});
