import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { timestampMicros } from '../../src/clients/common/time.js';
import { type AcquireRequest, acquire } from '../../src/clients/runner/acquire.js';
import type { LeaseLostError } from '../../src/clients/runner/errors.js';
import type { Lease } from '../../src/clients/runner/lease.js';
import { withWriteSet } from '../../src/clients/runner/with-write-set.js';
import { ReleaseOutcome } from '../../src/gen/writ/v1/lease_service.js';
import { EndReason, LeaseState } from '../../src/gen/writ/v1/types.js';
import { eventually } from '../support/coordinator.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { later } from '../support/later.js';
import { RunnerProcess } from '../support/runner-process.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import { newRun, SIMPLE_MAP } from '../support/workload.js';

// The runner kit and two replicas as processes of their own, with a bad network between them.

let a: CoordinatorProcess;
let b: CoordinatorProcess;
/** Past the network: what really is. */
let direct: WritClient;
let proxy: TcpProxy;
let client: WritClient;
const leases: Lease[] = [];

beforeAll(async () => {
  a = await startCoordinatorProcess();
  b = await startCoordinatorProcess({ dataDir: a.dataDir });
  await a.client('admin').conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
  direct = b.client('operator');
});

afterAll(async () => {
  await b?.stop();
  await a?.stop();
});

beforeEach(async () => {
  proxy = await TcpProxy.start(a.grpc);
  client = connectWrit({ endpoint: proxy.endpoint, token: a.tokens.runner });
});

afterEach(async () => {
  await Promise.all(leases.splice(0).map((lease) => lease.release().catch(() => undefined)));
  client.close();
  await proxy.stop();
});

let made = 0;
const fresh = (): string => `item/network/${++made}`;

async function request(more: Partial<AcquireRequest> = {}): Promise<AcquireRequest> {
  const runId = await newRun(a.client('runner'));
  return { runId, resources: [{ resource: fresh(), actions: ['set'] }], ...more };
}

async function take(more: Partial<AcquireRequest> = {}): Promise<Lease> {
  const lease = await acquire(client, await request(more));
  leases.push(lease);
  return lease;
}

const recordOf = async (leaseId: string) => (await direct.lease.getLease({ leaseId })).lease;

async function eventsOf(runId: string, kind: string) {
  const { events } = await b.client('auditor').audit.listEvents({ runId, kinds: [kind] });
  return events;
}

describe('F1: the answer to an acquire is lost', () => {
  test('the kit asks again by the same key, of another replica: one grant, one token', async () => {
    const more = await request({ idempotencyKey: randomUUID() });
    await client.run.getRun({ runId: more.runId });
    proxy.lose('down');
    const asked = later(acquire(client, more));
    const granted = await eventually(
      () => eventsOf(more.runId, 'lease_granted'),
      (events) => events.length > 0,
    );
    proxy.leadTo(b.grpc);
    proxy.cut();
    const lease = await asked;
    leases.push(lease);
    expect(lease.id).toBe(granted[0]?.leaseId);
    expect(await eventsOf(more.runId, 'lease_granted')).toHaveLength(1);
  });

  test('given up, it leaves nothing held: what was granted in spite of it is given back by the key', async () => {
    const giveUp = new AbortController();
    const more = await request({ signal: giveUp.signal });
    await client.run.getRun({ runId: more.runId });
    proxy.lose('down');
    const asked = acquire(client, more);
    asked.catch(() => undefined);
    await eventually(
      () => eventsOf(more.runId, 'lease_granted'),
      (events) => events.length > 0,
    );
    proxy.cut();
    giveUp.abort(new Error('enough'));
    await expect(asked).rejects.toThrow('enough');
    const ended = await eventually(
      () => eventsOf(more.runId, 'lease_ended'),
      (events) => events.length > 0,
    );
    expect(ended).toHaveLength(1);
  });

  test('every request arrives twice: still one grant, renewals that extend, one end', async () => {
    proxy.mirroring = true;
    const lease = await take({ ttlMs: 4_500 });
    await eventually(
      () => eventsOf(lease.runId, 'leases_renewed'),
      (events) => events.length >= 4,
    );
    expect(lease.lost).toBeUndefined();
    await lease.release();
    expect(proxy.answeredTwice).toBeGreaterThan(0);
    expect(await eventsOf(lease.runId, 'lease_granted')).toHaveLength(1);
    expect(await eventsOf(lease.runId, 'lease_ended')).toHaveLength(1);
  });

  test('a process that was killed is followed by one that takes its lease up again, by the key', async () => {
    const more = await request({ idempotencyKey: 'deploy-4711', ttlMs: 30_000 });
    const env = { WRIT_ENDPOINTS: `${a.grpc},${b.grpc}`, WRIT_TOKEN: a.tokens.runner };
    const first = RunnerProcess.start(env);
    const held = await first.ask<{ leaseId: string; token: string }>('acquire', { name: 'x', request: more });
    await first.kill();
    const second = RunnerProcess.start(env);
    const again = await second.ask<{ leaseId: string; token: string }>('resume', { name: 'x', request: more });
    expect(again).toEqual(held);
    // It cannot know how much was left, so it renews at once.
    await eventually(
      () => eventsOf(more.runId, 'leases_renewed'),
      (events) => events.length > 0,
    );
    await second.ask('release', { name: 'x' });
    await second.kill();
    expect(await eventsOf(more.runId, 'lease_granted')).toHaveLength(1);
  });

  test('so is one that was killed in the queue: it has its place, not the last', async () => {
    const resources = [{ resource: fresh(), actions: ['set'] }];
    const holder = await take({ resources });
    const env = { WRIT_ENDPOINTS: `${a.grpc},${b.grpc}`, WRIT_TOKEN: a.tokens.runner };
    const more = await request({ resources, idempotencyKey: 'queued', waitMs: 60_000 });
    const first = RunnerProcess.start(env);
    first.ask('acquire', { name: 'x', request: more }).catch(() => undefined);
    const queuedOf = (runId: string) =>
      eventually(
        () => eventsOf(runId, 'lease_queued'),
        (events) => events.length > 0,
      );
    const [queued] = await queuedOf(more.runId);
    await first.kill();
    const behind = await request({ resources, waitMs: 60_000 });
    const next = later(acquire(b.client('runner'), behind));
    await queuedOf(behind.runId);
    const second = RunnerProcess.start(env);
    const resumed = later(second.ask<{ leaseId: string }>('resume', { name: 'x', request: more }));
    await holder.release();
    expect((await resumed).leaseId).toBe(queued?.leaseId);
    await second.ask('release', { name: 'x' });
    leases.push(await next);
    await second.kill();
  });
});

describe('F6: an outage that is shorter than half the ttl', () => {
  test.each([
    ['nobody answers', () => (proxy.refusing = true)],
    ['the connection is half-open', () => proxy.hold('down')],
  ])('%s: the lease is in jeopardy, then safe, and never lost', async (_, breakIt) => {
    const told: string[] = [];
    const lease = await take({
      ttlMs: 8_000,
      onJeopardy: () => told.push('jeopardy'),
      onSafe: () => told.push('safe'),
      onLost: () => told.push('lost'),
    });
    breakIt();
    if (proxy.refusing) proxy.cut();
    await eventually(
      () => told.length,
      (count) => count > 0,
    );
    proxy.refusing = false;
    proxy.letGo();
    await eventually(
      () => told.length,
      (count) => count > 1,
    );
    expect(told).toEqual(['jeopardy', 'safe']);
    expect(lease.signal.aborted).toBe(false);
    expect(await eventsOf(lease.runId, 'lease_ended')).toEqual([]);
  });

  test('of one replica is none with two: the kit moves on, and nothing is in jeopardy for long', async () => {
    const both = connectWrit({ endpoint: [proxy.endpoint, b.grpc], token: a.tokens.runner });
    const lost: LeaseLostError[] = [];
    const held = await Promise.all(
      Array.from({ length: 8 }, async () =>
        acquire(both, await request({ ttlMs: 9_000, onLost: (error) => lost.push(error) })),
      ),
    );
    leases.push(...held);
    proxy.refusing = true;
    proxy.cut();
    await Promise.all(
      held.map((lease) =>
        eventually(
          () => eventsOf(lease.runId, 'leases_renewed'),
          (events) => events.length >= 2,
        ),
      ),
    );
    expect(lost).toEqual([]);
    await Promise.all(held.map((lease) => lease.release()));
    both.close();
  });
});

test('a wait that is longer than the lease will live takes nothing from it', async () => {
  const resources = [{ resource: fresh(), actions: ['set'] }];
  const holder = await take({ resources, ttlMs: 6_000, mayRenew: () => false });
  const lease = await take({ resources, ttlMs: 4_500, waitMs: 30_000 });
  expect(lease.lost).toBeUndefined();
  await eventually(
    () => eventsOf(lease.runId, 'leases_renewed'),
    (events) => events.length >= 2,
  );
  expect(holder.lost).toMatchObject({ reason: 'not_renewed' });
});

describe('a slow network', () => {
  test('costs no lease; what is left is counted from when a request was sent, not from when it was answered', async () => {
    proxy.delayMs = 400;
    const lease = await take({ ttlMs: 6_000 });
    // A tenth is margin, and there and back took 800 ms at least.
    expect(lease.remainingMs).toBeLessThanOrEqual(6_000 - 600 - 800 + 50);
    await eventually(
      () => eventsOf(lease.runId, 'leases_renewed'),
      (events) => events.length >= 2,
    );
    expect(lease.signal.aborted).toBe(false);
    await lease.release();
  });
});

describe('F8: renewals are blocked', () => {
  test.each([
    ['they go unanswered', () => proxy.hold('up', 'down')],
    [
      'nobody is there',
      () => {
        proxy.refusing = true;
        proxy.cut();
      },
    ],
  ])('%s: the signal fires before the expiry by the database clock, and release does not hang', async (_, block) => {
    const lease = await take({ ttlMs: 6_000 });
    block();
    // The database and this test are on one machine, and have one clock.
    const firedAt = await new Promise<number>((resolve) =>
      lease.signal.addEventListener('abort', () => resolve(Date.now() * 1_000), { once: true }),
    );
    const record = await recordOf(lease.id);
    expect(firedAt).toBeLessThan(timestampMicros(record?.expiresAt) ?? 0);
    expect(lease.lost).toMatchObject({ reason: 'unreachable' });
    await lease.release().catch(() => undefined);
    const [ended] = await eventually(
      () => eventsOf(lease.runId, 'lease_ended'),
      (events) => events.length > 0,
    );
    expect(timestampMicros(ended?.time)).toBeGreaterThan(firedAt);
  });

  test('work that ends under a blocked network gets out, with its own result, and the lease ends by itself', async () => {
    const more = await request({ ttlMs: 4_000 });
    const result = await withWriteSet(client, more, async () => {
      proxy.hold('up', 'down');
      return 'done';
    });
    expect(result).toBe('done');
    proxy.letGo();
    const ended = await eventually(
      () => eventsOf(more.runId, 'lease_ended'),
      (events) => events.length > 0,
    );
    expect(ended).toHaveLength(1);
  });
});

describe('F7: a release races a renewal, and an answer is lost', () => {
  test.each(['up', 'down'] as const)('what goes %s is lost: ended once, and never alive again', async (direction) => {
    const lease = await take({ ttlMs: 6_000 });
    await eventually(
      () => eventsOf(lease.runId, 'leases_renewed'),
      (events) => events.length > 0,
    );
    proxy.lose(direction);
    const released = later(lease.release());
    if (direction === 'down') {
      await eventually(
        () => recordOf(lease.id),
        (record) => record?.state === LeaseState.LEASE_STATE_ENDED,
      );
    }
    proxy.cut();
    const { outcome, endReason } = await released;
    const expected =
      direction === 'down' ? ReleaseOutcome.RELEASE_OUTCOME_ALREADY_ENDED : ReleaseOutcome.RELEASE_OUTCOME_RELEASED;
    expect([outcome, endReason]).toEqual([expected, EndReason.END_REASON_RELEASED]);
    const { results } = await b.client('runner').lease.renewLeases({
      runId: lease.runId,
      renewals: [{ leaseId: lease.id }],
    });
    expect(results[0]?.outcome?.$case).toBe('refusal');
    expect(await eventsOf(lease.runId, 'lease_ended')).toHaveLength(1);
  });
});

describe('F16: a release names a lease in other letters, or one of another run', () => {
  test('it is refused by type, releases nothing, and does not say whether there is such a lease', async () => {
    const [lease, other] = [await take(), await take()];
    const refusalOf = (runId: string, leaseId: string) =>
      client.lease.releaseLease({ runId, lease: { $case: 'leaseId', value: leaseId } }).then(
        () => 'released',
        (error: { code: string; reason: string; message: string }) => error,
      );
    const upper = await refusalOf(lease.runId, lease.id.toUpperCase());
    expect(upper).toMatchObject({ name: 'WritError', code: 'NOT_FOUND', reason: 'LEASE_NOT_FOUND' });
    const foreign = await refusalOf(other.runId, lease.id);
    expect(foreign).toMatchObject({ name: 'WritError', code: 'NOT_FOUND', reason: 'LEASE_NOT_FOUND' });
    const unknown = await refusalOf(lease.runId, 'ab'.repeat(16));
    expect(unknown).toMatchObject({ name: 'WritError', code: 'NOT_FOUND', reason: 'LEASE_NOT_FOUND' });
    for (const one of [lease, other]) expect((await recordOf(one.id))?.state).toBe(LeaseState.LEASE_STATE_ACTIVE);
  });
});
