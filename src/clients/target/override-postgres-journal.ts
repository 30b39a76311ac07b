import type { ClientBase, Pool } from 'pg';
import { fromJson, MAX_PENDING, type OverrideJournal, recordKey, toJson } from './override-journal.js';

/** A journal of overrides in Postgres, for services with several processes. */
export interface PostgresOverrideJournal extends OverrideJournal {
  /** Makes the journal's table; safe to repeat, also by several replicas at once. */
  install(): Promise<void>;
}

/**
 * Keeps what overrides did in the service's own Postgres, for a service of several instances. Each record commits before
 * the write that it lets in.
 *
 * @example
 * const journal = postgresOverrideJournal(pool);
 * await journal.install();
 */
export function postgresOverrideJournal(
  pool: Pool | Pick<ClientBase, 'query'>,
  table = 'writ_override',
): PostgresOverrideJournal {
  if (!/^[a-z_][a-z0-9_]{0,50}$/.test(table))
    throw new RangeError(`the journal's table must be a plain lower-case name, not ${JSON.stringify(table)}`);
  return {
    async install() {
      await pool.query(installation(table));
    },
    async append(record) {
      const key = recordKey(record);
      const { rowCount } = await pool.query(
        `INSERT INTO ${table} (key, record) SELECT $1, $2
         WHERE (SELECT count(*) FROM ${table} WHERE reported_at IS NULL) < $3 ON CONFLICT (key) DO NOTHING`,
        [key, JSON.stringify(toJson(record)), MAX_PENDING],
      );
      if (rowCount === 1) return;
      const { rows } = await pool.query(`SELECT 1 FROM ${table} WHERE key = $1`, [key]);
      if (rows.length === 0)
        throw new Error(`${MAX_PENDING} uses of overrides are not reported yet: no more are let in`);
    },
    async pending(limit) {
      const { rows } = await pool.query<{ record: unknown }>(
        `SELECT record FROM ${table} WHERE reported_at IS NULL ORDER BY number LIMIT $1`,
        [limit],
      );
      return rows.map(({ record }) => fromJson(record));
    },
    async reported(record) {
      await pool.query(`UPDATE ${table} SET reported_at = clock_timestamp() WHERE key = $1 AND reported_at IS NULL`, [
        recordKey(record),
      ]);
    },
  };
}

function installation(table: string): string {
  return `
-- Several replicas of the target may install at once; IF NOT EXISTS alone loses that race with an error.
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('writ-override:${table}:install', 0));
CREATE TABLE IF NOT EXISTS ${table} (
  number      bigint GENERATED ALWAYS AS IDENTITY,
  key         text COLLATE "C" PRIMARY KEY,
  record      jsonb NOT NULL,
  recorded_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When the coordinator had it in its log; NULL: not yet.
  reported_at timestamptz
);
CREATE INDEX IF NOT EXISTS ${table}_pending ON ${table} (number) WHERE reported_at IS NULL;
COMMENT ON TABLE ${table} IS 'Writ: writes that people let in by hand in an emergency, and whether the coordinator knows.';`;
}
