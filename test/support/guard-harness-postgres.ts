import pg from 'pg';
import type { GuardedWrite } from '../../src/clients/target/guard.js';
import { type PostgresGuard, postgresGuard } from '../../src/clients/target/postgres-guard.js';
import { guardSchemaSql } from '../../src/clients/target/postgres-guard-sql.js';
import type { GuardHarness } from './guard-conformance.js';
import { ANYBODY_BLOCKED, createTestDatabase } from './postgres.js';

const SCHEMA = 'writ_guard';

/** How a guard of Postgres can be built wrong. */
export type PostgresFlaw =
  | 'none'
  /** Marks are compared, and nothing keeps them from being raised before the commit. */
  | 'no locks'
  /** The guard is asked in a transaction of its own, before that of the write. */
  | 'another transaction';

export async function postgresHarness(flaw: PostgresFlaw = 'none'): Promise<GuardHarness> {
  const database = await createTestDatabase();
  const pool = new pg.Pool({ connectionString: database.url, max: 6 });
  pool.on('error', () => undefined);
  const sql = guardSchemaSql(SCHEMA);
  await pool.query(
    flaw === 'no locks' ? sql.replaceAll(/PERFORM pg_advisory_xact_lock(_shared)?\(/g, 'PERFORM (') : sql,
  );
  await pool.query('CREATE TABLE document (id text PRIMARY KEY, body text NOT NULL)');
  const guard: PostgresGuard = postgresGuard(SCHEMA);
  const opener = await pool.connect();

  const overwrite = (client: Pick<pg.ClientBase, 'query'>, resources: readonly string[], body: string) =>
    client.query(
      'INSERT INTO document SELECT unnest($1::text[]), $2 ON CONFLICT (id) DO UPDATE SET body = excluded.body',
      [resources, body],
    );

  return {
    open: (...opens) => guard.open(opener, ...opens),
    async write(writes, body) {
      await guard.write(pool, writes, (client) =>
        overwrite(
          client,
          writes.map(({ resource }) => resource),
          body,
        ),
      );
    },
    async read(resource) {
      const { rows } = await pool.query<{ body: string }>('SELECT body FROM document WHERE id = $1', [resource]);
      return rows[0]?.body ?? '';
    },
    async holder(resource, scope) {
      const { rows } = await pool.query(
        `SELECT token, run_id AS "runId", action, expires_at AS "expiresAt" FROM ${SCHEMA}.mark WHERE resource = $1 AND scope = $2`,
        [resource, scope],
      );
      return rows[0] === undefined ? null : { ...rows[0], token: BigInt(rows[0].token) };
    },
    async delay(write: GuardedWrite, body) {
      const client = await pool.connect();
      await client.query('BEGIN');
      await guard.admit(client, write);
      if (flaw === 'another transaction') await client.query('COMMIT; BEGIN');
      await overwrite(client, [write.resource], body);
      return {
        async finish() {
          await client.query('COMMIT');
          client.release();
        },
      };
    },
    async answeredOrWaiting(call) {
      let answered = false;
      const note = () => {
        answered = true;
      };
      call.then(note, note);
      for (;;) {
        if (answered) return;
        const { rows } = await pool.query(ANYBODY_BLOCKED);
        if (rows.length > 0) return;
      }
    },
    async reset() {
      await pool.query(`TRUNCATE ${SCHEMA}.mark, document`);
    },
    async end() {
      opener.release();
      await pool.end();
      await database.drop();
    },
  };
}
