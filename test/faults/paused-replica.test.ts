import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectWrit } from '../../src/clients/common/connect.js';
import { acquire as hold } from '../../src/clients/runner/acquire.js';
import type { LeaseLostError } from '../../src/clients/runner/errors.js';
import { FenceReason } from '../../src/gen/writ/v1/fence_service.js';
import { LeaseState } from '../../src/gen/writ/v1/types.js';
import { eventually } from '../support/coordinator.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { newRun, SIMPLE_MAP, setEntry } from '../support/workload.js';

// F2, F12: replicas as processes of their own on one database; one of them sleeps, or lives in another hour.

const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
const running: CoordinatorProcess[] = [];
let a: CoordinatorProcess;
let b: CoordinatorProcess;

beforeAll(async () => {
  a = await start();
  b = await start({ dataDir: a.dataDir });
  await a.client('admin').conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
});

afterAll(async () => {
  for (const coordinator of running.reverse()) {
    coordinator.signal('SIGCONT');
    await coordinator.stop();
  }
});

async function start(options: Parameters<typeof startCoordinatorProcess>[0] = {}): Promise<CoordinatorProcess> {
  const coordinator = await startCoordinatorProcess(options);
  running.push(coordinator);
  return coordinator;
}

async function acquire(on: CoordinatorProcess, resource: string, more: object = {}) {
  const client = on.client('runner');
  const runId = await newRun(client);
  const request = { runId, entries: [setEntry(resource)], idempotencyKey: randomUUID(), ...more };
  const { outcome } = await client.lease.acquireWriteSet(request);
  if (outcome?.$case !== 'lease') throw new Error(`not granted: ${JSON.stringify(outcome?.$case)}`);
  return outcome.value;
}

async function verdict(
  on: CoordinatorProcess,
  lease: { leaseId: string; entries: { fencingToken: bigint }[] },
  resource: string,
) {
  const { results } = await on.client('target').fence.checkFence({
    leaseId: lease.leaseId,
    writes: [{ resource, action: 'set', fencingToken: lease.entries[0]?.fencingToken ?? 0n }],
  });
  return results[0]?.reason;
}

test('F2: a replica stopped past an expiry grants, renews and allows nothing on what it knew', async () => {
  const resource = `item/paused-${randomUUID()}`;
  const old = await acquire(a, resource, { ttl: { seconds: 1n, nanos: 0 } });
  a.signal('SIGSTOP');
  const fresh = await eventually(
    () => acquire(b, resource).catch(() => null),
    (lease) => lease !== null,
  ).finally(() => a.signal('SIGCONT'));
  expect(await verdict(a, old, resource)).toBe(FenceReason.FENCE_REASON_EXPIRED);
  expect(fresh === null ? undefined : await verdict(a, fresh, resource)).toBe(FenceReason.FENCE_REASON_OK);
  const renewed = await a
    .client('runner')
    .lease.renewLeases({ runId: old.runId, renewals: [{ leaseId: old.leaseId }] });
  expect(renewed.results[0]?.outcome?.$case).toBe('refusal');
  expect(fresh?.entries[0]?.fencingToken).toBeGreaterThan(old.entries[0]?.fencingToken ?? 0n);
});

test('F2, F8: sessions on a replica that is stopped lose no lease: they go on with another one', async () => {
  // Each begins with one of the two by chance.
  const clients = Array.from({ length: 6 }, () =>
    connectWrit({ endpoint: [a.grpc, b.grpc], token: a.tokens.runner ?? '' }),
  );
  const lost: LeaseLostError[] = [];
  const held = await Promise.all(
    clients.map(async (client, at) =>
      hold(client, {
        runId: await newRun(client),
        resources: [{ resource: `item/session-${at}-${randomUUID()}`, actions: ['set'] }],
        ttlMs: 15_000,
        onLost: (error) => lost.push(error),
      }),
    ),
  );
  a.signal('SIGSTOP');
  try {
    // A renewal brings them anew.
    const before = held.map((lease) => lease.entries);
    await eventually(
      () => held.map((lease, at) => lease.entries !== before[at]),
      (renewed) => renewed.every(Boolean),
    );
    expect(lost).toEqual([]);
    await Promise.all(held.map((lease) => lease.release()));
  } finally {
    a.signal('SIGCONT');
    for (const client of clients) client.close();
  }
});

if (!existsSync(FAKETIME)) console.warn(`skipped: F12: ${FAKETIME} is missing; on Debian: apt-get install faketime`);

test.skipIf(!existsSync(FAKETIME))(
  'F12: a replica whose clock is an hour ahead or behind decides by the database clock all the same',
  async () => {
    for (const offset of ['+1h', '-1h']) {
      const skewed = await start({
        dataDir: a.dataDir,
        env: { LD_PRELOAD: FAKETIME, FAKETIME: offset, FAKETIME_DONT_FAKE_MONOTONIC: '1', DONT_FAKE_MONOTONIC: '1' },
      });
      const [living, resource] = [`item/skew${offset}-${randomUUID()}`, `item/skew${offset}-${randomUUID()}`];
      const long = await acquire(skewed, living);
      for (const replica of [b, skewed]) expect(await verdict(replica, long, living)).toBe(FenceReason.FENCE_REASON_OK);
      const lease = await acquire(skewed, resource, { ttl: { seconds: 2n, nanos: 0 } });
      await eventually(
        () => verdict(skewed, lease, resource),
        (reason) => reason === FenceReason.FENCE_REASON_EXPIRED,
      );
      expect(await verdict(b, lease, resource)).toBe(FenceReason.FENCE_REASON_EXPIRED);
      const { lease: ended } = await b.client('operator').lease.getLease({ leaseId: lease.leaseId });
      const lived = Number(ended?.expiresAt?.seconds ?? 0n) - Number(lease.grantedAt?.seconds ?? 0n);
      expect(lived).toBeLessThanOrEqual(2);
      expect([LeaseState.LEASE_STATE_ACTIVE, LeaseState.LEASE_STATE_ENDED]).toContain(ended?.state);
    }
  },
);
