import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';

/**
 * @typedef {object} TableSize
 * @property {string} table
 * @property {number} bytes  with indexes and TOAST
 * @property {number} live   rows, as the statistics say
 * @property {number} dead
 */

/** A connection of the bench's own to a coordinator's embedded Postgres: to look, not to take part. */
export class Database {
  /** @param {pg.Client} client @param {string} url */
  constructor(client, url) {
    this.client = client;
    this.url = url;
  }

  /** @param {string} dataDir */
  static async of(dataDir) {
    const password = (await readFile(join(dataDir, 'password'), 'utf8')).trim();
    // Fourth line: the port.
    const port = (await readFile(join(dataDir, 'pgdata', 'postmaster.pid'), 'utf8')).split('\n')[3]?.trim();
    const url = `postgres://writ:${password}@127.0.0.1:${port}/writ`;
    return new Database(await open(url), url);
  }

  async end() {
    await this.client.end().catch(() => undefined);
  }

  /** What a figure depends on. */
  async facts() {
    const names = ['server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers'];
    const { rows } = await this.client.query(
      'SELECT name, current_setting(name) AS value FROM unnest($1::text[]) AS name',
      [names],
    );
    return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  }

  /** Between measurements: what the last one left to be written must not be written during the next one. */
  async checkpoint() {
    await this.client.query('CHECKPOINT');
  }

  /** Of Writ's tables, the largest first. @returns {Promise<TableSize[]>} */
  async tableSizes() {
    await this.client.query('SELECT pg_stat_force_next_flush()');
    const { rows } = await this.client.query(`
SELECT relname AS table, pg_total_relation_size(relid)::float8 AS bytes, n_live_tup::float8 AS live, n_dead_tup::float8 AS dead
FROM pg_stat_user_tables WHERE schemaname = 'writ' ORDER BY bytes DESC`);
    return rows;
  }

  async lastRevision() {
    const { rows } = await this.client.query('SELECT max(revision)::float8 AS revision FROM writ.event');
    return Number(rows[0]?.revision ?? 0);
  }

  async liveLeases() {
    const { rows } = await this.client.query(`SELECT count(*)::float8 AS live FROM writ.lease WHERE state <> 'ended'`);
    return Number(rows[0]?.live);
  }

  /**
   * A transaction that keeps its snapshot, as a forgotten session or a long report does: nothing that dies after it
   * can be vacuumed. Returns its end.
   */
  async holdSnapshot() {
    const holder = await open(this.url);
    await holder.query('SET idle_in_transaction_session_timeout = 0');
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await holder.query('SELECT count(*) FROM writ.run');
    return () => holder.end();
  }
}

/** @param {string} url */
async function open(url) {
  const client = new pg.Client({ connectionString: url, application_name: 'writ-bench' });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
