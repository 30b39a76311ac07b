import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { later } from '../support/later.js';
import { redisMissing, startRedis, type TestRedis } from '../support/redis-server.js';
import { newRun, SIMPLE_MAP, setEntry } from '../support/workload.js';

// F9, P11: two replicas and a Redis that is stopped, emptied and killed; waiters go on, and the published log is whole.

describe.skipIf(redisMissing !== '')('with Redis', () => {
  let redis: TestRedis;
  let reader: Redis;
  const running: CoordinatorProcess[] = [];

  const start = async (dataDir?: string) => {
    const env = { WRIT_REDIS_URL: redis.url };
    const coordinator = await startCoordinatorProcess(dataDir === undefined ? { env } : { dataDir, env });
    running.push(coordinator);
    return coordinator;
  };
  beforeAll(async () => {
    redis = await startRedis();
    reader = redis.connect();
    const a = await start();
    await start(a.dataDir);
    await a.client('admin').conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
  });
  afterAll(async () => {
    for (const coordinator of running.reverse()) await coordinator.stop();
    await redis?.stop();
  });

  /** One holds on the first replica, another waits on the second, the first gives back: the second is granted. */
  async function handOver(): Promise<void> {
    const [a, b] = running.slice(-2).map((coordinator) => coordinator.client('runner')) as [
      ReturnType<CoordinatorProcess['client']>,
      ReturnType<CoordinatorProcess['client']>,
    ];
    const resource = `item/${randomUUID()}`;
    const [holder, waiter] = [await newRun(a), await newRun(b)];
    const ask = { entries: [setEntry(resource)], idempotencyKey: randomUUID() };
    const held = await a.lease.acquireWriteSet({ ...ask, runId: holder });
    if (held.outcome?.$case !== 'lease') throw new Error(`not granted: ${held.outcome?.$case}`);
    const waiting = later(b.lease.acquireWriteSet({ ...ask, runId: waiter, wait: { seconds: 60n, nanos: 0 } }));
    const { leaseId } = held.outcome.value;
    await expect
      .poll(async () => (await a.lease.listLeases({ runId: waiter })).leases.map(({ state }) => state))
      .toHaveLength(1);
    await a.lease.releaseLease({ runId: holder, lease: { $case: 'leaseId', value: leaseId } });
    expect((await waiting).outcome?.$case).toBe('lease');
  }

  async function published(): Promise<number[]> {
    const entries = await reader.xrange('writ:default:events', '-', '+');
    return entries.map(([, fields]) => Number(fields[fields.indexOf('revision') + 1]));
  }

  async function expectWholeLog(): Promise<void> {
    const auditor = running.at(-1)?.client('auditor');
    const head = Number((await auditor?.audit.getCheckpoint({}))?.checkpoint?.revision ?? 0n);
    expect(head).toBeGreaterThan(0);
    await expect
      .poll(async () => new Set(await published().catch(() => [])))
      .toEqual(
        expect.toSatisfy((seen: Set<number>) =>
          Array.from({ length: head }, (_, i) => i + 1).every((r) => seen.has(r)),
        ),
      );
  }

  test('waiters on another replica are granted, whatever becomes of Redis', async () => {
    await handOver();
    await expectWholeLog();
    redis.pause();
    await handOver().finally(() => redis.resume());
    await redis.restart();
    await handOver();
    await expectWholeLog();
    await redis.restart({ empty: true });
    await handOver();
    await expectWholeLog();
    const seen = await published();
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
  });

  test('the log is published on after the replica that did was killed', async () => {
    const [first, second] = running as [CoordinatorProcess, CoordinatorProcess];
    const publishes = async ({ http, tokens }: CoordinatorProcess) => {
      const answer = await fetch(`http://${http}/metrics`, { headers: { authorization: `Bearer ${tokens.operator}` } });
      return (await answer.text()).includes('writ_tailer_lag_events{');
    };
    await expect.poll(async () => (await publishes(first)) || (await publishes(second))).toBe(true);
    const [active, standby] = (await publishes(first)) ? [first, second] : [second, first];
    running.splice(running.indexOf(active), 1);
    await active.kill9();
    await start(standby.dataDir);
    await handOver();
    await expectWholeLog();
  });
});
