import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acquire } from '../../src/clients/runner/acquire.js';
import { eventually } from '../support/coordinator.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { later } from '../support/later.js';
import { RunnerProcess } from '../support/runner-process.js';
import { newRun, SIMPLE_MAP } from '../support/workload.js';

// F12, T4: the runner is a process of its own that stands still past its lease's end, or whose clock jumps.

const FAKETIME = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
let coordinator: CoordinatorProcess;
/** A service that takes everything, so that what was sent is seen. */
let target: Server;
const received: string[] = [];
const runners: RunnerProcess[] = [];

beforeAll(async () => {
  coordinator = await startCoordinatorProcess();
  await coordinator
    .client('admin')
    .conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
  target = createServer((incoming, answer) => {
    received.push(`${incoming.method} ${incoming.url} ${String(incoming.headers['writ-fencing-token'])}`);
    answer.end('taken');
  });
  await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  for (const runner of runners) await runner.kill();
  target?.closeAllConnections();
  target?.close();
  await coordinator?.stop();
});

function startRunner(env: Record<string, string> = {}): RunnerProcess {
  const runner = RunnerProcess.start({
    WRIT_ENDPOINTS: coordinator.grpc,
    WRIT_TOKEN: coordinator.tokens.runner,
    TARGET_ORIGIN: `http://127.0.0.1:${(target.address() as AddressInfo).port}`,
    ...env,
  });
  runners.push(runner);
  return runner;
}

const request = async (resource: string, ttlMs: number) => ({
  runId: await newRun(coordinator.client('runner')),
  resources: [{ resource, actions: ['set'] }],
  ttlMs,
  targets: true,
});

test('F12, T4: stopped right before a write and continued after its lease has ended, it sends nothing', async () => {
  const attempt = randomUUID();
  const resource = `item/stopped-${attempt}`;
  const runner = startRunner();
  const held = await runner.ask<{ token: string }>('acquire', { name: 'x', request: await request(resource, 6_000) });
  await runner.ask('write', { name: 'x', path: `/${attempt}/before`, writes: [resource] });
  const writing = runner.ask('stopThenWrite', { name: 'x', path: `/${attempt}/late`, writes: [resource] });
  writing.catch(() => undefined);
  await runner.standsStill();
  // Granted to another run: by the database's clock the lease has ended.
  const next = await acquire(coordinator.client('runner'), {
    ...(await request(resource, 30_000)),
    targets: [],
    waitMs: 20_000,
  });
  runner.signal('SIGCONT');
  await expect(writing).rejects.toMatchObject({ name: 'LeaseLostError' });
  const sent = () => received.filter((line) => line.includes(attempt));
  expect(sent()).toEqual([`PUT /${attempt}/before ${held.token}`]);
  expect(await runner.heard('lost')).toMatchObject({ error: { name: 'LeaseLostError' } });
  // Lost for good: also when it tries again.
  await expect(runner.ask('write', { name: 'x', path: `/${attempt}/again`, writes: [resource] })).rejects.toMatchObject(
    { name: 'LeaseLostError' },
  );
  expect(sent()).toHaveLength(1);
  await next.release();
});

test('F12: stopped for less than its lease lives, it goes on and writes', async () => {
  const resource = `item/paused-shortly-${randomUUID()}`;
  const runner = startRunner();
  await runner.ask('acquire', { name: 'x', request: await request(resource, 60_000) });
  const writing = later(runner.ask('stopThenWrite', { name: 'x', path: '/after-a-pause', writes: [resource] }));
  await runner.standsStill();
  runner.signal('SIGCONT');
  expect(await writing).toEqual({ status: 200 });
  await runner.ask('release', { name: 'x' });
});

const hasFaketime = existsSync(FAKETIME);
if (!hasFaketime) console.warn(`skipped: F12: ${FAKETIME} is missing; on Debian: apt-get install libfaketime`);

test.skipIf(!hasFaketime).each(['+1h', '-1h'])(
  "F12: the runner's clock jumps by %s while it holds a lease, and nothing happens to it",
  async (jump) => {
    const directory = await makeTestDirectory('faketime');
    const offset = join(directory, 'offset');
    await writeFile(offset, '+0\n');
    const runner = startRunner({
      LD_PRELOAD: FAKETIME,
      FAKETIME_TIMESTAMP_FILE: offset,
      FAKETIME_NO_CACHE: '1',
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      DONT_FAKE_MONOTONIC: '1',
    });
    const resource = `item/jump${jump}-${randomUUID()}`;
    const asked = await request(resource, 6_000);
    await runner.ask('acquire', { name: 'x', request: asked });
    const renewals = async () =>
      (await coordinator.client('auditor').audit.listEvents({ runId: asked.runId, kinds: ['leases_renewed'] })).events
        .length;
    await eventually(renewals, (count) => count > 0);
    const before = await runner.ask<{ now: number }>('state', { name: 'x' });
    await writeFile(offset, `${jump}\n`);
    const after = await eventually(
      () => runner.ask<{ now: number; lost?: string }>('state', { name: 'x' }),
      ({ now }) => Math.abs(now - before.now) > 1_800_000,
    );
    expect(after.lost).toBeUndefined();
    const count = await renewals();
    await eventually(renewals, (later) => later >= count + 3);
    expect(await runner.ask('write', { name: 'x', path: `/jumped${jump}`, writes: [resource] })).toEqual({
      status: 200,
    });
    await runner.ask('release', { name: 'x' });
    expect(runner.events.filter(({ event }) => event === 'lost')).toEqual([]);
  },
);
