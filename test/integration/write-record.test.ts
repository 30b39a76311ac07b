import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { inTransaction } from '../../src/clients/target/postgres-transaction.js';
import { type WriteRecord, writeRecords } from '../../src/clients/target/write-record.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

// W6: the target's own record of a write commits with the write, and says what W6 lists.

let database: TestDatabase;
let pool: pg.Pool;
const records = writeRecords();

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => undefined);
  await Promise.all([records.install(pool), records.install(pool)]);
  await pool.query('CREATE TABLE release (env text PRIMARY KEY, version bigint NOT NULL)');
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});
beforeEach(() => pool.query('TRUNCATE writ_records.write_record, release'));

const RECORD: WriteRecord = {
  identity: 'spiffe://example/agent/1',
  runId: 'run-1',
  requestId: 'req-1',
  approvalId: 'appr-1',
  resource: 'release/prod-eu',
  action: 'promote',
  method: 'PUT',
  precondition: 'if-match "7"',
  observedVersion: '7',
  changedFields: ['image'],
  result: 'written',
  status: 200,
  newVersion: '8',
};

it('keeps every field, and leaves out what is not known', async () => {
  const refused = {
    identity: 'svc:x',
    requestId: 'req-2',
    resource: 'release/prod-eu',
    action: 'promote',
    method: 'PUT',
    result: 'stale_token',
    status: 409,
  };
  await records.add(pool, RECORD, refused);
  await expect
    .poll(() => records.list(pool))
    .toEqual([
      { ...RECORD, cursor: expect.any(String), recordedAt: expect.any(Date) },
      { ...refused, cursor: expect.any(String), recordedAt: expect.any(Date) },
    ]);
});

it('commits with the write, or not at all', async () => {
  const write = (fail: boolean) =>
    inTransaction(pool, async (client) => {
      await client.query(`INSERT INTO release VALUES ('prod-eu', 8)`);
      await records.add(client, RECORD);
      if (fail) throw new Error('later in the transaction');
    });
  await expect(write(true)).rejects.toThrow('later');
  expect((await pool.query('SELECT FROM writ_records.write_record')).rowCount).toBe(0);
  await write(false);
  await expect.poll(() => records.list(pool)).toHaveLength(1);
});

it('cannot be changed', async () => {
  await records.add(pool, RECORD);
  await expect(pool.query(`UPDATE writ_records.write_record SET run_id = 'other'`)).rejects.toMatchObject({
    code: '23000',
  });
});

it.each([
  ['identity', { identity: '' }],
  ['request_id', { requestId: 'x'.repeat(257) }],
  ['result', { result: 'Free text.' }],
  ['status', { status: 0 }],
  ['resource', { resource: 'x'.repeat(1_025) }],
])('bounds the %s', async (column, change) => {
  await expect(records.add(pool, { ...RECORD, ...change })).rejects.toMatchObject({
    code: '23514',
    constraint: expect.stringContaining(column),
  });
});

it('bounds the changed fields, and the page', async () => {
  await expect(records.add(pool, { ...RECORD, changedFields: Array(257).fill('f') })).rejects.toThrow('changedFields');
  await expect(records.list(pool, { after: 'x' })).rejects.toThrow('after');
});

it('a reader that goes on from its cursor skips no record of a transaction that commits late (F21)', async () => {
  const [late, early] = [await pool.connect(), await pool.connect()];
  try {
    await late.query('BEGIN');
    await records.add(late, { ...RECORD, requestId: 'late' });
    await records.add(early, { ...RECORD, requestId: 'early' });
    const seen: string[] = [];
    let after = '0.0';
    const readOn = async () => {
      for (const { requestId, cursor } of await records.list(pool, { after, limit: 1_000 })) {
        seen.push(requestId);
        after = cursor;
      }
    };
    await readOn();
    // The record with the lower id is not there yet; who goes by ids alone has gone past it now.
    expect(seen).toEqual([]);
    await late.query('COMMIT');
    await expect
      .poll(async () => {
        await readOn();
        return seen;
      })
      .toEqual(['late', 'early']);
  } finally {
    late.release();
    early.release();
  }
});
