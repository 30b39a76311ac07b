import { afterEach, expect, test } from 'vitest';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import type { Store } from '../../src/storage/store.js';
import {
  acquireInput,
  as,
  check,
  createRun,
  eventually,
  freshKey,
  granted,
  putMap,
  startReplica,
  type TestReplica,
  type TestReplicaOptions,
  write,
} from '../support/coordinator.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { becomeStandby, copyServer, copyTables, restoreCopy, sql, timelineOf } from '../support/older-database.js';
import { type PrivatePostgres, startPrivatePostgres } from '../support/postgres.js';
import { SIMPLE_MAP } from '../support/workload.js';

// F13: an older state of the database is served. Lost history is noticed, no token is given twice, every old lease is
// over, every run waits for an operator. The witness lives in `dataDir`, outside the database.

let server: PrivatePostgres | undefined;
const replicas: TestReplica[] = [];

afterEach(async () => {
  for (const replica of replicas.splice(0)) await replica.stop();
  await server?.stop();
  server = undefined;
});

async function replica(
  url: string,
  dataDir: string,
  more: Pick<TestReplicaOptions, 'wrap'> = {},
): Promise<TestReplica> {
  const started = await startReplica({ url, dataDir, env: { WRIT_MAX_CLOCK_SKEW: '0s' }, ...more });
  replicas.push(started);
  return started;
}

/** Everything that is promised after lost history, on a lease that was granted before it. */
async function expectLost(
  now: TestReplica,
  before: { leaseId: string; runId: string; token: number },
  survives: boolean,
): Promise<Lease> {
  const verdict = await now.api.checkFence(as('target'), {
    leaseId: before.leaseId,
    presenterRunId: '',
    writes: [{ resource: 'item/a', action: 'set', token: before.token, observedVersion: null }],
    requestId: '',
  });
  expect(verdict.value.results[0]?.reason).toBe(survives ? 'database_changed' : 'unknown_lease');
  if (survives) {
    const { value: view } = await now.api.getRun(as('operator'), { runId: before.runId });
    expect(view.run).toMatchObject({ state: 'blocked', blockCause: 'database_changed' });
    const asked = await now.api.acquireWriteSet(as('runner'), acquireInput(before.runId, [write('item/a', 'set')]));
    expect(asked.value).toMatchObject({ kind: 'refusal', refusal: { kind: 'run_blocked' } });
    await expect(
      now.api.updateRunState(as('runner'), {
        runId: before.runId,
        state: 'active',
        reason: '',
        idempotencyKey: freshKey(),
      }),
    ).rejects.toMatchObject({ reason: 'RUN_BLOCKED' });
    await now.api.updateRunState(as('operator'), {
      runId: before.runId,
      state: 'active',
      reason: 'checked',
      idempotencyKey: freshKey(),
    });
  }
  const run = survives ? before.runId : await createRun(now.api);
  const after = await granted(now.api, run, [write('item/a', 'set')]);
  expect(after.entries[0]?.token).toBeGreaterThan(before.token);
  return after;
}

async function hold(on: TestReplica, item = 'item/a'): Promise<{ leaseId: string; runId: string; token: number }> {
  const lease = await granted(on.api, await createRun(on.api), [write(item, 'set')], { ttl: 300 * SECOND });
  return { leaseId: lease.leaseId, runId: lease.runId, token: lease.entries[0]?.token ?? 0 };
}

test('a plain restart of the database with an unbroken log ends nothing', async () => {
  server = await startPrivatePostgres();
  const dataDir = await makeTestDirectory('witness');
  const running = await replica(server.url, dataDir);
  await putMap(running.api, SIMPLE_MAP);
  const lease = await granted(running.api, await createRun(running.api), [write('item/a', 'set')], {
    ttl: 300 * SECOND,
  });
  await server.kill9();
  await server.restart();
  const verdict = await eventually(
    () => check(running.api, lease).catch((error) => ({ allowed: false, reason: String(error) })),
    (seen) => seen.allowed,
  );
  expect(verdict.reason).toBe('ok');
});

test('F3: a coordinator that restarts again and again never extends a lease of a dead holder', async () => {
  server = await startPrivatePostgres();
  const dataDir = await makeTestDirectory('witness');
  let running = await replica(server.url, dataDir);
  await putMap(running.api, SIMPLE_MAP);
  const lease = await granted(running.api, await createRun(running.api), [write('item/a', 'set')], { ttl: 2 * SECOND });
  for (let restarts = 0; restarts < 3; restarts += 1) {
    await replicas.pop()?.stop();
    running = await replica(server.url, dataDir);
    const { value } = await running.api.getLease(as('operator'), { leaseId: lease.leaseId });
    expect(value.expiresAt).toBe(lease.expiresAt);
  }
  expect(
    (
      await eventually(
        () => check(running.api, lease),
        (seen) => !seen.allowed,
      )
    ).reason,
  ).toBe('expired');
});

test('a cold copy of the data directory, restored over the newer one', async () => {
  server = await startPrivatePostgres();
  const witness = await makeTestDirectory('witness');
  const copy = await makeTestDirectory('copy');
  const first = await replica(server.url, witness);
  await putMap(first.api, SIMPLE_MAP);
  const kept = await hold(first);
  await replicas.pop()?.stop();
  await copyServer(server, copy);
  const second = await replica(server.url, witness);
  const lost = await granted(second.api, await createRun(second.api), [write('item/b', 'set')]);
  await replicas.pop()?.stop();
  await restoreCopy(server, copy);
  const third = await replica(server.url, witness);
  await expectLost(third, kept, true);
  expect((await check(third.api, lost)).reason).toBe('unknown_lease');
});

test('a copy of the database loaded into the same cluster', async () => {
  server = await startPrivatePostgres();
  const dataDir = await makeTestDirectory('witness');
  const first = await replica(server.url, dataDir);
  await putMap(first.api, SIMPLE_MAP);
  const kept = await hold(first);
  await replicas.pop()?.stop();
  const admin = server.url.replace(/\/writ$/, '/postgres');
  await sql(
    admin,
    'CREATE DATABASE reloaded TEMPLATE writ',
    'ALTER DATABASE writ RENAME TO old',
    'ALTER DATABASE reloaded RENAME TO writ',
  );
  await expectLost(await replica(server.url, dataDir), kept, true);
});

test('an older state loaded into the same tables while replicas run: no restart, no new table', async () => {
  server = await startPrivatePostgres();
  const dataDir = await makeTestDirectory('witness');
  let mayRead = Promise.resolve();
  const wrap = (store: Store): Store => ({
    ...store,
    async readGate(namespace) {
      await mayRead;
      return store.readGate(namespace);
    },
  });
  const running = await replica(server.url, dataDir, { wrap });
  await putMap(running.api, SIMPLE_MAP);
  const kept = await hold(running);
  const reload = await copyTables(server.url);
  const lost = await granted(running.api, await createRun(running.api), [write('item/b', 'set')]);
  // Meanwhile nothing else of this replica may find it, and be done with it before the check comes.
  let letRead = (): void => undefined;
  mayRead = new Promise((resolve) => {
    letRead = resolve;
  });
  await reload();
  // Nobody has written since: the check itself finds the log shorter than it was.
  const checked = expect(check(running.api, lost)).rejects.toMatchObject({ reason: 'DATABASE_CHANGED' });
  letRead();
  await checked;
  await eventually(
    () => check(running.api, lost).catch(() => null),
    (seen) => seen !== null,
  );
  await expectLost(running, kept, true);
  expect((await check(running.api, lost)).reason).toBe('unknown_lease');
});

test('a standby promoted after losing the last commits, and a second one after that one died (F13)', async () => {
  server = await startPrivatePostgres();
  const dataDir = await makeTestDirectory('witness');
  const copy = await makeTestDirectory('copy');
  const first = await replica(server.url, dataDir);
  await putMap(first.api, SIMPLE_MAP);
  const kept = await hold(first);
  await replicas.pop()?.stop();
  await copyServer(server, copy);
  const running = await replica(server.url, dataDir);
  const lost = await granted(running.api, await createRun(running.api), [write('item/b', 'set')]);
  await becomeStandby(server, copy);
  // A standby is never believed.
  await expect(check(running.api, lost)).rejects.toMatchObject({ faultClass: 'unavailable' });
  await promote(server, running);
  const between = await expectLost(running, kept, true);
  expect((await check(running.api, lost)).reason).toBe('unknown_lease');
  // Both standbys left timeline 1, so that the second one calls itself by the timeline of the first.
  const timeline = await timelineOf(server.url);
  await becomeStandby(server, copy);
  await promote(server, running);
  expect(await timelineOf(server.url)).toBe(timeline);
  expect((await check(running.api, between)).reason).not.toBe('ok');
  const after = await expectLost(running, kept, true);
  expect(after.entries[0]?.token).toBeGreaterThan(between.entries[0]?.token ?? Number.POSITIVE_INFINITY);
});

test('a loss is dealt with once: a replica that was away, or went through it too, ends nothing again', async () => {
  server = await startPrivatePostgres();
  const [near, away] = [await makeTestDirectory('witness'), await makeTestDirectory('away')];
  const copy = await makeTestDirectory('copy');
  const first = await replica(server.url, near);
  await putMap(first.api, SIMPLE_MAP);
  await copyServer(server, copy);
  // Both see what will be lost; the second one is away while it is.
  const second = await replica(server.url, away);
  await eventually(
    () => hold(first, 'item/b').catch(() => null),
    (seen) => seen !== null,
  );
  await second.api.listRuns(as('operator'), { states: [], page: { size: 1, token: '' } });
  await replicas.pop()?.stop();
  await restoreCopy(server, copy);
  const lease = await eventually(
    () =>
      createRun(first.api)
        .then((run) => granted(first.api, run, [write('item/a', 'set')], { ttl: 300 * SECOND }))
        .catch(() => null),
    (seen) => seen !== null,
    30_000,
  );
  const again = await replica(server.url, away);
  if (lease === null) throw new Error('not granted');
  expect((await check(again.api, lease)).reason).toBe('ok');
  expect((await check(first.api, lease)).reason).toBe('ok');
  const { items } = await again.api.listEvents(as('auditor'), {
    runId: '',
    leaseId: '',
    resource: '',
    kinds: ['database_identified'],
    requestId: '',
    afterRevision: 0,
    newestFirst: false,
    page: { size: 100, token: '' },
  });
  expect(items.filter((event) => event.body.includes('"lostHistory":true'))).toHaveLength(1);
});

/** Makes it the primary, and returns when the replica believes it. */
async function promote(postgres: PrivatePostgres, running: TestReplica): Promise<void> {
  await eventually(
    () => running.services.ready(),
    (seen) => !seen.ready,
    30_000,
  );
  await sql(postgres.url, 'SELECT pg_promote(true)');
  await eventually(
    () => running.services.ready(),
    (seen) => seen.ready,
    30_000,
  );
}
