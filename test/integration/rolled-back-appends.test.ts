import pg from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { granted as acquired, createRun, eventually, putMap, startReplica, write } from '../support/coordinator.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';
import { SIMPLE_MAP } from '../support/workload.js';

// What Postgres rolls back and asks to try again is a lost race, as a revision that somebody else took: nobody is told of
// it, and nothing is written twice (P7, P8).

let database: TestDatabase;
let beside: pg.Client;
const started: { stop(): Promise<void> }[] = [];

beforeEach(async () => {
  database = await createTestDatabase();
  beside = new pg.Client(database.url);
  await beside.connect();
});

afterEach(async () => {
  for (const replica of started.splice(0)) await replica.stop();
  await beside?.end();
  await database?.drop();
});

async function start() {
  const replica = await startReplica({ url: database.url });
  started.push(replica);
  return replica.api;
}

/** A replica with a map, and a run on it. */
async function ready() {
  const api = await start();
  await putMap(api, SIMPLE_MAP);
  return { api, runId: await createRun(api) };
}

/** The transactions that wait for a lock on a table. */
async function waitingFor(table: string): Promise<string[]> {
  const { rows } = await beside.query<{ transaction: string }>(
    'SELECT virtualtransaction AS transaction FROM pg_locks WHERE relation = $1::regclass AND NOT granted',
    [table],
  );
  return rows.map(({ transaction }) => transaction);
}

async function grants(runId: string): Promise<number> {
  const { rows } = await beside.query(`SELECT FROM writ.event WHERE kind = 'lease_granted' AND run_id = $1`, [runId]);
  return rows.length;
}

// How long is set for the role: connections that a pooler keeps open have the settings that they were opened with (F11).
test.skipIf(!PREPARED)('a lock that did not come in time (55P03)', async () => {
  const { api, runId } = await ready();
  await beside.query('BEGIN; LOCK TABLE writ.event IN SHARE ROW EXCLUSIVE MODE');
  const lease = acquired(api, runId, [write('item/late', 'set')]);
  const [first] = await eventually(
    () => waitingFor('writ.event'),
    (waiting) => waiting.length > 0,
  );
  // Another transaction waits in its place: the first was rolled back.
  await eventually(
    () => waitingFor('writ.event'),
    (waiting) => waiting.length > 0 && !waiting.includes(first ?? ''),
  );
  await beside.query('ROLLBACK');
  expect((await lease).state).toBe('active');
  expect(await grants(runId)).toBe(1);
});

test('a deadlock with somebody else (40P01)', async () => {
  // Who finds that it waits in a circle is rolled back: the append, and not this test, however late it asks.
  await beside.query(`ALTER DATABASE ${database.name} SET deadlock_timeout = '3s'`);
  const { api, runId } = await ready();
  const deadlocks = async () => {
    await beside.query('SELECT pg_stat_force_next_flush()');
    const { rows } = await beside.query<{ deadlocks: string }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    );
    return Number(rows[0]?.deadlocks);
  };
  expect(await deadlocks()).toBe(0);
  await beside.query(`BEGIN; SET LOCAL deadlock_timeout = '60s'; LOCK TABLE writ.lease IN SHARE ROW EXCLUSIVE MODE`);
  const lease = acquired(api, runId, [write('item/crossed', 'set')]);
  await eventually(
    () => waitingFor('writ.lease'),
    (waiting) => waiting.length > 0,
  );
  // The append has the events and waits for the leases.
  await beside.query('LOCK TABLE writ.event IN SHARE ROW EXCLUSIVE MODE; COMMIT');
  expect((await lease).state).toBe('active');
  expect(await eventually(deadlocks, (count) => count > 0)).toBe(1);
  expect(await grants(runId)).toBe(1);
});

test('what cannot be put in an order, on a database whose transactions are serializable (40001)', async () => {
  await beside.query(`ALTER DATABASE ${database.name} SET default_transaction_isolation = 'serializable'`);
  const { api, runId } = await ready();
  const other = await start();
  const wanted = Array.from({ length: 60 }, (_, index) => `item/${index}`);
  for (let at = 0; at < wanted.length; at += 2) {
    const both = [api, other].map((one, index) => acquired(one, runId, [write(wanted[at + index] ?? '', 'set')]));
    for (const lease of await Promise.all(both)) expect(lease.state).toBe('active');
  }
  expect(await grants(runId)).toBe(wanted.length);
});
