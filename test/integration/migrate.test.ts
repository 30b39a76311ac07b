import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { checkSchema, checkSchemaAt, migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore } from '../../src/storage/postgres/postgres-store.js';
import { cli } from '../support/cli.js';
import { makeTestDirectory } from '../support/global-setup.js';
import { later } from '../support/later.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';
import { sampleBatch } from '../support/sample-records.js';

const log = (): void => undefined;

describe('migrate', () => {
  let database: TestDatabase;
  let pool: pg.Pool;

  beforeEach(async () => {
    database = await createTestDatabase();
    pool = new pg.Pool({ connectionString: database.url, max: 2 });
    // The database may be dropped before its server has seen that a connection is closed.
    pool.on('connect', (client) => client.on('error', () => undefined));
  });
  afterEach(async () => {
    await pool.end();
    await database.drop();
  });

  it('brings an empty database up to date, once, when several start together', async () => {
    await expect(checkSchema(pool)).rejects.toMatchObject({ code: 'SCHEMA_MISSING', message: /writ migrate/ });
    const lines: string[] = [];
    await Promise.all(Array.from({ length: 6 }, () => migrate(database.url, { log: (line) => lines.push(line) })));
    await checkSchema(pool);
    await checkSchemaAt(database.url);
    await migrate(database.url, { log });
    // One line, by whoever was first: a newcomer's first start is no page of SQL.
    expect(lines).toEqual([expect.stringMatching(/^made the schema: 0001_log to \d{4}_\w+$/)]);
  });

  it('puts everything into its own schema', async () => {
    await migrate(database.url, { log });
    const { rows } =
      await pool.query(`SELECT nspname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
      WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'writ')`);
    expect(rows).toEqual([]);
  });

  it('says what is wrong with an older and with a newer schema', async () => {
    await migrate(database.url, { log });
    const { rows } = await pool.query<{ name: string }>(
      'DELETE FROM writ.schema_migration WHERE id = (SELECT max(id) FROM writ.schema_migration) RETURNING name',
    );
    const [newest] = rows;
    const older = { code: 'SCHEMA_OLDER', message: expect.stringContaining(newest?.name ?? 'none') };
    await expect(checkSchema(pool)).rejects.toMatchObject(older);
    await pool.query('INSERT INTO writ.schema_migration (name, run_on) VALUES ($1, now())', [newest?.name]);
    await checkSchema(pool);
    await pool.query(`INSERT INTO writ.schema_migration (name, run_on) VALUES ('9999_future', now())`);
    await expect(checkSchema(pool)).rejects.toMatchObject({ code: 'SCHEMA_NEWER', message: /9999_future/ });
    await expect(migrate(database.url, { log })).rejects.toMatchObject({ code: 'SCHEMA_NEWER' });
  });

  it('waits for another one, but not for ever', async () => {
    const holder = await pool.connect();
    try {
      await holder.query('BEGIN');
      await holder.query('SELECT pg_advisory_xact_lock(2003986805, 1)');
      await expect(migrate(database.url, { log, waitMs: 100 })).rejects.toMatchObject({ code: 'SCHEMA_LOCKED' });
      const waiting = later(migrate(database.url, { log, waitMs: 20_000 }));
      await holder.query('COMMIT');
      await waiting;
    } finally {
      holder.release();
    }
    await checkSchema(pool);
  });

  it('does not wait for ever for a server that says nothing', async () => {
    const silent = createServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    const url = `postgres://u:p@127.0.0.1:${port}/writ`;
    await expect(migrate(url, { log, connectTimeoutMs: 100 })).rejects.toThrow(/timeout/);
    silent.close();
  });

  it('applies all or nothing', async () => {
    await pool.query('CREATE SCHEMA writ; CREATE TABLE writ.lease (in_the_way int)');
    const lines: string[] = [];
    await expect(migrate(database.url, { log: (line) => lines.push(line) })).rejects.toThrow(/already exists/);
    expect(lines).toEqual(['the migration 0002_projections failed, and none was applied']);
    await expect(checkSchema(pool)).rejects.toMatchObject({ code: 'SCHEMA_OLDER' });
    await pool.query('DROP TABLE writ.lease');
    await migrate(database.url, { log });
    await checkSchema(pool);
  });

  // Connections that a pooler keeps open have the settings that they were opened with.
  it.skipIf(!PREPARED)('makes the settings of the role, which survive every connection', async () => {
    await migrate(database.url, { log });
    const { rows } = await pool.query(`SELECT name, setting FROM pg_settings WHERE name IN
      ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'jit', 'plan_cache_mode', 'enable_seqscan')`);
    expect(Object.fromEntries(rows.map((row) => [row.name, row.setting]))).toEqual({
      statement_timeout: '60000',
      lock_timeout: '5000',
      idle_in_transaction_session_timeout: '10000',
      jit: 'off',
      plan_cache_mode: 'force_generic_plan',
      enable_seqscan: 'off',
    });
  });

  it.skipIf(!PREPARED)('doctor says which settings a role does not have', async () => {
    const tokens = join(await makeTestDirectory('doctor'), 'tokens.json');
    await writeFile(tokens, '{"principals":[]}');
    const env = { WRIT_DATABASE_URL: database.url, WRIT_TOKENS_FILE: tokens, WRIT_GRPC_PORT: '0', WRIT_HTTP_PORT: '0' };
    expect((await cli(['doctor'], { env })).stdout).toMatch(/^role settings +warning .*statement_timeout/m);
    await migrate(database.url, { log });
    expect((await cli(['doctor'], { env })).stdout).toMatch(/^role settings +ok/m);
  });

  // Prepared statements keep the plan that was made while a table was empty.
  it('looks up by the index that was made for it, also on an empty table', async () => {
    await migrate(database.url, { log });
    const expected = {
      key_binding_pkey: `key_binding WHERE namespace = 'n' AND scope = 'run:a' AND key = 'k'`,
      lease_pkey: `lease WHERE namespace = 'n' AND lease_id = ANY (ARRAY['a', 'b'])`,
      run_pkey: `run WHERE namespace = 'n' AND run_id = ANY (ARRAY['a', 'b'])`,
      admission_pkey: `admission WHERE namespace = 'n' AND admission_id = 'a'`,
      admission_check: `admission WHERE namespace = 'n' AND lease_id = 'a' AND lease_id <> '' AND request_id = 'r'`,
      credential_revocation_pkey: `credential_revocation WHERE namespace = 'n' AND subject = 'jti:a'`,
    };
    for (const [index, from] of Object.entries(expected)) {
      const { rows } = await pool.query(`EXPLAIN SELECT FROM writ.${from} LIMIT 1`);
      expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain(index);
    }
  });

  it.skipIf(!PREPARED)('leaves what an administrator has set', async () => {
    await pool.query(`ALTER DATABASE ${database.name} SET statement_timeout = '7s'`);
    await migrate(database.url, { log });
    await pool.query(`ALTER ROLE CURRENT_USER IN DATABASE ${database.name} SET lock_timeout = '8s'`);
    await migrate(database.url, { log });
    const fresh = new pg.Client({ connectionString: database.url });
    await fresh.connect();
    const shown = async (name: string): Promise<unknown> => (await fresh.query(`SHOW ${name}`)).rows[0]?.[name];
    expect([await shown('statement_timeout'), await shown('lock_timeout'), await shown('jit')]).toEqual([
      '7s',
      '8s',
      'off',
    ]);
    await fresh.end();
  });

  it('refuses a database that is not UTF-8', async () => {
    const name = `writ_test_${randomBytes(8).toString('hex')}`;
    const admin = new pg.Client({ connectionString: inject('postgresUrl') });
    await admin.connect();
    try {
      await admin.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'`);
      const url = new URL(database.url);
      url.pathname = `/${name}`;
      await expect(migrate(url.href, { log })).rejects.toMatchObject({ code: 'DATABASE_ENCODING' });
    } finally {
      await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await admin.end();
    }
  });

  describe('as an ordinary role', () => {
    const role = `writ_test_${randomBytes(8).toString('hex')}`;
    let url: string;
    let admin: pg.Client;

    beforeEach(async () => {
      admin = new pg.Client({ connectionString: database.url });
      await admin.connect();
      await admin.query(`CREATE ROLE ${role} LOGIN PASSWORD 'ordinary' NOSUPERUSER NOCREATEDB NOCREATEROLE`);
      const own = new URL(database.url);
      own.username = role;
      own.password = 'ordinary';
      url = own.href;
    });
    afterEach(async () => {
      await admin.query(`REASSIGN OWNED BY ${role} TO CURRENT_USER; DROP OWNED BY ${role}; DROP ROLE ${role}`);
      await admin.end();
    });

    it('works when it owns the database', async () => {
      await admin.query(`ALTER DATABASE ${database.name} OWNER TO ${role}`);
      const lines: string[] = [];
      await migrate(url, { log: (line) => lines.push(line) });
      expect(lines.join('\n')).not.toMatch(/warning|refused/);
      const store = createPostgresStore({ url, prepared: PREPARED });
      expect((await store.append(sampleBatch('default', null))).outcome).toBe('appended');
      expect(await store.readGate('default')).toMatchObject({ durable: true, head: { revision: 1 } });
      await store.close();
    });

    it('works in a schema that was made for it, when it may not create one', async () => {
      await admin.query(`CREATE SCHEMA writ AUTHORIZATION ${role}`);
      await migrate(url, { log });
      const store = createPostgresStore({ url, prepared: PREPARED });
      expect((await store.append(sampleBatch('default', null))).outcome).toBe('appended');
      await store.close();
    });
  });
});
