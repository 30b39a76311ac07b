import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { later } from '../support/later.js';
import { newRun, SIMPLE_MAP, setEntry } from '../support/workload.js';

// F26, P9: a replica is shut down while callers hang on requests that wait there.

let leaving: CoordinatorProcess;
let staying: CoordinatorProcess;

beforeEach(async () => {
  leaving = await startCoordinatorProcess();
  staying = await startCoordinatorProcess({ dataDir: leaving.dataDir });
  await staying
    .client('admin')
    .conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
});

afterEach(async () => {
  await leaving?.stop();
  await staying?.stop();
});

test('they are told their place at once, and have it at another replica', async () => {
  const [here, there] = [leaving.client('runner'), staying.client('runner')];
  const resource = `item/${randomUUID()}`;
  const [holder, byGrpc, byHttp] = [await newRun(there), await newRun(there), await newRun(there)];
  const ask = (runId: string) => ({ runId, entries: [setEntry(resource)], idempotencyKey: `take ${runId}` });
  const entries = [setEntry(resource), setEntry(`${resource}/crowd`)];
  const held = await there.lease.acquireWriteSet({ ...ask(holder), entries });
  if (held.outcome?.$case !== 'lease') throw new Error(`not granted: ${held.outcome?.$case}`);

  const wait = { seconds: 60n, nanos: 0 };
  // As many as Node would warn of, if each of them listened to one signal.
  const crowd = await Promise.all(Array.from({ length: 11 }, () => newRun(there)));
  const crowded = crowd.map((runId) =>
    later(here.lease.acquireWriteSet({ ...ask(runId), entries: [setEntry(`${resource}/crowd`)], wait })),
  );
  const first = later(here.lease.acquireWriteSet({ ...ask(byGrpc), wait }));
  await expect.poll(async () => (await there.lease.listLeases({ runId: byGrpc })).leases).toHaveLength(1);
  const second = later(
    fetch(`http://${leaving.http}/v1/leases`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${leaving.tokens.runner}`,
        'content-type': 'application/json',
        'idempotency-key': `take ${byHttp}`,
      },
      body: JSON.stringify({
        runId: byHttp,
        entries: [{ resource, access: 'ACCESS_WRITE', actions: ['set'] }],
        wait: '60s',
      }),
    }),
  );
  await expect.poll(async () => (await there.lease.listLeases({ runId: byHttp })).leases).toHaveLength(1);

  const met = async () => (await there.lease.listLeases({ resource })).leases;
  await expect.poll(met).toHaveLength(1 + 2 + crowd.length);
  leaving.signal('SIGTERM');
  expect((await first).outcome).toMatchObject({ $case: 'waiting', value: { place: 1 } });
  expect(await (await second).json()).toMatchObject({ waiting: { place: 2 } });
  for (const { outcome } of await Promise.all(crowded)) expect(outcome?.$case).toBe('waiting');
  expect(await leaving.exitCode()).toBe(0);
  expect(leaving.log()).not.toContain('Warning');

  const again = later(there.lease.acquireWriteSet({ ...ask(byGrpc), wait }));
  await there.lease.releaseLease({ runId: holder, lease: { $case: 'leaseId', value: held.outcome.value.leaseId } });
  expect((await again).outcome?.$case).toBe('lease');
});
