import fc from 'fast-check';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { leaseColumns, writeSetColumns } from '../../src/storage/postgres/lease-rows.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { rowsLiteral } from '../../src/storage/postgres/row-literals.js';
import { eventColumns, keyColumns } from '../../src/storage/postgres/rows.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { sampleEvent, sampleKey, sampleLease } from '../support/sample-records.js';

/** Whatever Postgres can store as a text. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }).map((value) => value.toWellFormed().replaceAll('\0', '')),
  fc.string({ unit: fc.constantFrom('"', '\\', ',', '{', '}', '(', ')', ' ', '\n', '\t', 'n', 'NULL', 'null', 'é') }),
  fc.constantFrom('', 'NULL', 'null', '\\N', '\\x00', '{}', '()', '"', '\\', '""', '\\"'),
);

describe('rows as an array of a composite type', () => {
  let database: TestDatabase;
  let client: pg.Client;

  beforeAll(async () => {
    database = await createTestDatabase();
    await migrate(database.url, { log: () => undefined });
    client = new pg.Client({ connectionString: database.url });
    await client.connect();
  });
  afterAll(async () => {
    await client.end();
    await database.drop();
  });

  it('come back from Postgres as they were, whatever their texts hold', async () => {
    const row = fc.record({ scope: fc.option(text), key: fc.option(text) }, { noNullPrototype: true });
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 8 }), async (rows) => {
        const sql = 'SELECT r.scope, r.key FROM unnest($1::writ.key_name[]) AS r';
        expect((await client.query(sql, [rowsLiteral(rows)])).rows).toEqual(rows);
      }),
      { numRuns: 300 },
    );
  });

  it('hold lists of texts', async () => {
    const event = sampleEvent('default', null);
    await fc.assert(
      fc.asyncProperty(
        fc.array(text, { maxLength: 8 }),
        fc.array(text, { maxLength: 2 }),
        async (resources, requestIds) => {
          const rows = rowsLiteral([eventColumns({ ...event, resources, requestIds })]);
          const sql = 'SELECT r.resources, r.request_ids, r.hash FROM unnest($1::writ.event_row[]) AS r';
          const read = (await client.query(sql, [rows])).rows;
          expect(read).toEqual([{ resources, request_ids: requestIds, hash: Buffer.from(event.hash, 'hex') }]);
        },
      ),
      { numRuns: 200 },
    );
  });

  it('name the columns of their types, in the order of those', async () => {
    const { rows } = await client.query<{ type: string; columns: string[] }>(
      `SELECT c.relname AS type, array_agg(a.attname::text ORDER BY a.attnum) AS columns
       FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
       WHERE c.relnamespace = 'writ'::regnamespace AND c.relkind = 'c' GROUP BY c.relname ORDER BY c.relname`,
    );
    expect(Object.fromEntries(rows.map(({ type, columns }) => [type, columns]))).toEqual({
      event_row: Object.keys(eventColumns(sampleEvent('default', null))),
      key_binding_row: Object.keys(keyColumns(sampleKey())),
      key_name: ['scope', 'key'],
      lease_row: Object.keys(leaseColumns(sampleLease())),
      lease_write_set_row: Object.keys(writeSetColumns(sampleLease())),
    });
  });

  it('refuse a row that lacks a value and what is no text, and leave what is no number to Postgres', async () => {
    expect(() => rowsLiteral([{ scope: 'a', key: undefined }])).toThrow('key');
    expect(() => rowsLiteral([{ scope: 'a', key: 'half a pair: \ud83d' }])).toThrow('surrogate');
    expect(() => rowsLiteral([{ scope: 'a', key: ['half a pair: \ud83d'] }])).toThrow('surrogate');
    const sql = 'SELECT r.time_us FROM unnest($1::writ.event_row[]) AS r';
    const event = sampleEvent('default', null);
    const rows = rowsLiteral([eventColumns({ ...event, time: Number.NaN })]);
    await expect(client.query(sql, [rows])).rejects.toMatchObject({ code: '22P02' });
  });
});
