import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LOCK_CLASS, lockKey } from '../../src/storage/postgres/gate.js';
import {
  acquireInput,
  as,
  createRun,
  eventually,
  granted,
  leaseOf,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { SIMPLE_MAP } from '../support/workload.js';

/** A place in the queue is kept while a call hangs on it (P9), whatever becomes of other namespaces of the database. */

let database: TestDatabase;
let replica: TestReplica;
let beside: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await startReplica({ url: database.url });
  beside = new pg.Client(database.url);
  await beside.connect();
});

afterAll(async () => {
  await beside?.end();
  await replica?.stop();
  await database?.drop();
});

/** Somebody holds what a call waits for. */
async function waitIn(namespace: string) {
  const { api } = replica;
  const runner = as('runner', { namespace });
  await api.putConflictMap(as('admin', { namespace }), {
    document: SIMPLE_MAP,
    expectedVersion: 0,
    reason: 'a test',
    onLiveConflict: 'refuse',
  });
  const entries = [write('item/a', 'set')];
  const held = await granted(api, await createRun(api, { context: runner }), entries, {}, runner);
  const run = await createRun(api, { context: runner });
  const outcome = api.acquireWriteSet(runner, acquireInput(run, entries, { wait: 60_000_000 }));
  outcome.catch(() => undefined);
  await eventually(
    () => attachedUntil(namespace),
    (seen) => seen > 0,
  );
  return { held, outcome, runner };
}

async function attachedUntil(namespace: string): Promise<number> {
  const { rows } = await beside.query(
    `SELECT attached_until_us FROM writ.lease WHERE namespace = $1 AND state = 'waiting'`,
    [namespace],
  );
  return Number(rows[0]?.attached_until_us ?? 0);
}

test('a namespace that cannot append for long costs no caller of another one its place', async () => {
  const { api } = replica;
  // Of its own, should this be the second attempt.
  const [slow, other] = [`slow-${randomUUID()}`, `other-${randomUUID()}`];
  for (const name of [slow, other]) await api.createNamespace(as('admin'), { name });
  await waitIn(slow);
  await beside.query('BEGIN');
  await beside.query('SELECT pg_advisory_xact_lock($1, $2)', [LOCK_CLASS, lockKey(slow)]);
  try {
    const { held, outcome, runner } = await waitIn(other);
    const first = await attachedUntil(other);
    // A place that was given up is not there any more, and so is never kept for longer.
    await eventually(
      () => attachedUntil(other),
      (seen) => seen > first,
    );
    await api.releaseLease(runner, { runId: held.runId, leaseId: held.leaseId, acquireKey: null });
    expect(leaseOf((await outcome).value).state).toBe('active');
  } finally {
    await beside.query('ROLLBACK');
  }
});
