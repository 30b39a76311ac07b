import pg from 'pg';
import { expect, it } from 'vitest';
import { postgresIdempotency } from '../../src/clients/target/idempotency-postgres.js';
import { orderedChanges } from '../../src/clients/target/ordered-change.js';
import { postgresOverrideJournal } from '../../src/clients/target/override-postgres-journal.js';
import { postgresGuard } from '../../src/clients/target/postgres-guard.js';
import { writeRecords } from '../../src/clients/target/write-record.js';
import { createTestDatabase } from '../support/postgres.js';

// What the target kit installs is installed by the owner of the data, often by a superuser.

it('installing runs nothing that another role of the database has put in a schema that is looked in', async () => {
  const database = await createTestDatabase();
  const pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => undefined);
  const role = `intruder_${database.name}`;
  await pool.query(`CREATE TABLE run_by_owner (what text); GRANT INSERT ON run_by_owner TO PUBLIC;
                    CREATE ROLE ${role}; GRANT CREATE ON SCHEMA public TO ${role}`);
  // Of the very types that are compared or given, where what Postgres has would convert them.
  const functions = [
    ['hash', 'text, integer', 'bigint', '0', 'CREATE FUNCTION public.hashtextextended'],
    ['same', 'oid, regclass', 'boolean', 'false', 'CREATE OPERATOR public.='],
  ] as const;
  try {
    for (const [name, types, result, value, as] of functions) {
      const body = `LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.run_by_owner VALUES ('${name}'); RETURN ${value}; END $$`;
      const [left, right] = types.split(', ');
      await pool.query(`BEGIN; SET LOCAL ROLE ${role};
        ${as.includes('OPERATOR') ? `CREATE FUNCTION public.${name}` : as}(${types}) RETURNS ${result} ${body};
        ${as.includes('OPERATOR') ? `${as} (LEFTARG = ${left}, RIGHTARG = ${right}, FUNCTION = public.${name});` : ''}
        COMMIT`);
    }
    // What they are is seen by calling them as they were meant to be.
    await pool.query(`SELECT hashtextextended('x', 1), 'pg_class'::regclass::oid = 'pg_class'::regclass`);
    expect((await pool.query('DELETE FROM run_by_owner RETURNING what')).rowCount).toBe(functions.length);
    const times = { retentionMs: 1_000, inDoubtMs: 1_000, effects: 'in_transaction' } as const;
    // At every start of a service.
    for (const _ of ['first', 'again']) {
      await postgresGuard().install(pool);
      await writeRecords().install(pool);
      await postgresIdempotency(pool, times).install();
      await orderedChanges(pool).install();
      await postgresOverrideJournal(pool).install();
    }
    expect((await pool.query('SELECT what FROM run_by_owner')).rows).toEqual([]);
  } finally {
    await pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    await pool.end();
    await database.drop();
  }
});
