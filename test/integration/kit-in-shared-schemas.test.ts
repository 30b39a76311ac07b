import pg from 'pg';
import { expect, it } from 'vitest';
import { answerOnce, jsonAnswer } from '../../src/clients/target/idempotency.js';
import { postgresIdempotency } from '../../src/clients/target/idempotency-postgres.js';
import { orderedChanges } from '../../src/clients/target/ordered-change.js';
import { postgresOverrideJournal } from '../../src/clients/target/override-postgres-journal.js';
import { postgresGuard } from '../../src/clients/target/postgres-guard.js';
import { writeRecords } from '../../src/clients/target/write-record.js';
import { createTestDatabase } from '../support/postgres.js';

// What the target kit installs is installed by the owner of the data, often by a superuser.

/** Each fits what the kit calls better than what Postgres has: of these very types, where that would convert, or take any. */
const INTRUDERS = [
  { name: 'hashtextextended', types: ['text', 'integer'], result: 'bigint', value: '0' },
  { name: 'same', operator: '=', types: ['oid', 'regclass'], result: 'boolean', value: 'false' },
  { name: 'times', operator: '*', types: ['interval', 'interval'], result: 'interval', value: `'1 day'` },
  { name: 'thousand', operator: '*', types: ['float8', 'integer'], result: 'float8', value: '0' },
  { name: 'joined', operator: '||', types: ['xid8', 'text'], result: 'text', value: `'1'` },
  { name: 'joined_more', operator: '||', types: ['text', 'bigint'], result: 'text', value: `'1'` },
  { name: 'pg_column_size', types: ['jsonb'], result: 'integer', value: '0' },
  { name: 'cardinality', types: ['text[]'], result: 'integer', value: '0' },
  {
    name: 'num_nonnulls',
    types: ['integer', 'jsonb', 'bytea', 'boolean', 'timestamptz'],
    result: 'integer',
    value: '5',
  },
] as const;

function creating({ name, types, result, value, ...more }: (typeof INTRUDERS)[number]): string {
  const [left, right] = types;
  const operator = 'operator' in more ? more.operator : undefined;
  return `
    CREATE FUNCTION public.${name}(${types.join(', ')}) RETURNS ${result} LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO public.run_by_owner VALUES ('${name}'); RETURN ${value}; END $$;
    ${operator === undefined ? '' : `CREATE OPERATOR public.${operator} (LEFTARG = ${left}, RIGHTARG = ${right}, FUNCTION = public.${name});`}`;
}

it('runs nothing that another role of the database has put in a schema that is looked in', async () => {
  const database = await createTestDatabase();
  const pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => undefined);
  const role = `intruder_${database.name}`;
  await pool.query(`CREATE TABLE run_by_owner (what text); GRANT INSERT ON run_by_owner TO PUBLIC;
                    CREATE ROLE ${role}; GRANT CREATE ON SCHEMA public TO ${role}`);
  try {
    await pool.query(`BEGIN; SET LOCAL ROLE ${role}; ${INTRUDERS.map(creating).join('')} COMMIT`);
    // They are there, and fit.
    await pool.query(`SELECT hashtextextended('x', 1), 'pg_class'::regclass::oid = 'pg_class'::regclass,
      cardinality('{}'::text[]), '1'::xid8 || 'x'::text, 1::float8 * 2`);
    expect((await pool.query('DELETE FROM run_by_owner')).rowCount).toBe(5);
    const guard = postgresGuard();
    const records = writeRecords();
    const keys = postgresIdempotency(pool, { retentionMs: 1_000, inDoubtMs: 1_000, effects: 'in_transaction' });
    const changes = orderedChanges(pool);
    const journal = postgresOverrideJournal(pool);
    // At every start of a service.
    for (const _ of ['first', 'again'])
      for (const part of [guard, records, keys, changes, journal]) await part.install(pool);

    await guard.open(pool, { resource: 'a/b', token: 20n });
    const write = { resource: 'a/b', action: 'set', token: 20n, exclusive: true };
    await guard.write(pool, [write], async (client) =>
      records.add(client, {
        ...{ identity: 'x', requestId: 'r', resource: 'a/b', action: 'set', method: 'PUT' },
        ...{ changedFields: ['image'], result: 'written', status: 200 },
      }),
    );
    await records.list(pool);
    const request = { principal: 'p', route: 'POST /x', method: 'POST', path: '/x', body: {}, idempotencyKey: 'k' };
    for (const _ of ['first', 'again'])
      expect((await answerOnce(keys, request, async () => jsonAnswer(200, {}))).status).toBe(200);
    const step = { name: 's', effects: 'in_transaction', run: async () => null, holds: async () => true } as const;
    const change = { name: 'c', steps: [{ ...step, undo: { cannot: 'it stays' } }] };
    expect((await changes.run(change, { id: 'c-1', input: {}, startedBy: 'x' })).state).toBe('done');
    const override = { id: 'o', who: 'x', why: 'y', until: new Date(Date.now() + 1_000), patterns: ['a/b'] };
    await journal.append({ override, use: null });
    expect((await pool.query('SELECT DISTINCT what FROM run_by_owner')).rows).toEqual([]);
  } finally {
    await pool.query(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
    await pool.end();
    await database.drop();
  }
});
