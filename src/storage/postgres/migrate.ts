import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { runner } from 'node-pg-migrate';
import pg from 'pg';
import { clientConfig } from './connections.js';
import { ROLE_SETTINGS } from './role-settings.js';

/**
 * The schema, brought up to date by numbered SQL files (migrations/), each applied once, in order, all of them in one
 * transaction.
 *
 * Several processes may start at once. node-pg-migrate can lock by itself, but only to fail at once or to wait for ever,
 * and with a session lock, which a transaction-mode pooler cannot keep. So the lock here is an advisory lock of a
 * transaction on a connection of its own; the others wait for it, bounded, and then find nothing left to do. Should that
 * connection be lost in the middle, the migrations are still one transaction that a second one collides with.
 */

export type SchemaProblem =
  /** The database has no schema of ours yet. */
  | 'SCHEMA_MISSING'
  /** Migrations are missing. */
  | 'SCHEMA_OLDER'
  /** A newer version of Writ has been here: this one does not know what it is looking at. */
  | 'SCHEMA_NEWER'
  /** Another process has held the migration lock for too long. */
  | 'SCHEMA_LOCKED'
  /** The database does not store text as UTF-8. */
  | 'DATABASE_ENCODING';

/** Why a coordinator cannot work with this database, and what to do about it. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
  constructor(
    readonly code: SchemaProblem,
    message: string,
  ) {
    super(message);
  }
}

/** A pool or a client. */
export type Queryable = Pick<pg.Pool | pg.Client, 'query'>;

export interface MigrateOptions {
  /** Told what is done, one line each. */
  readonly log: (line: string) => void;
  /** How long to wait for another process that migrates. Default 60,000. */
  readonly waitMs?: number;
  /** How long a connection may take until it can be used. Default 10,000. */
  readonly connectTimeoutMs?: number;
}

const DIRECTORY = fileURLToPath(new URL('../../../migrations/', import.meta.url));
const SCHEMA = 'writ';
const TABLE = 'schema_migration';
const CONNECT_TIMEOUT_MS = 10_000;
/** Advisory lock: `writ` in ASCII as for namespaces would be a namespace's; this is the next class. */
const LOCK = '2003986805, 1';

/** Creates the schema or brings it up to date; does nothing when it is. Safe in several processes at once. */
export async function migrate(url: string, options: MigrateOptions): Promise<void> {
  const { log, waitMs = 60_000, connectTimeoutMs = CONNECT_TIMEOUT_MS } = options;
  const guard = makeClient(url, connectTimeoutMs);
  const worker = makeClient(url, connectTimeoutMs);
  for (const client of [guard, worker]) client.on('error', (error) => log(`a connection ended: ${error.message}`));
  try {
    await guard.connect();
    await worker.connect();
    await waitForLock(guard, waitMs);
    await checkEncoding(worker);
    await applyMigrations(worker, log);
    await applySettings(worker, log);
    await guard.query('COMMIT');
  } finally {
    await Promise.allSettled([guard.end(), worker.end()]);
  }
}

/** As checkSchema, on a connection of its own. */
export async function checkSchemaAt(url: string): Promise<void> {
  const client = makeClient(url, CONNECT_TIMEOUT_MS);
  // Reported by the query that is under way; without a listener it would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await checkSchema(client);
  } finally {
    await client.end();
  }
}

/** For the start of a coordinator: the schema is exactly the one this version knows. */
export async function checkSchema(pool: Queryable): Promise<void> {
  const applied = await readApplied(pool);
  if (applied === null) {
    throw new SchemaError('SCHEMA_MISSING', 'the database has no schema of Writ: run `writ migrate`');
  }
  const known = await knownMigrations();
  refuseNewer(applied, known);
  const missing = known.filter((name) => !applied.includes(name));
  if (missing.length > 0) {
    const text = `the database's schema is older than this version of Writ, which also needs ${missing.join(', ')}`;
    throw new SchemaError('SCHEMA_OLDER', `${text}: run \`writ migrate\``);
  }
}

/** What takes a connection and says nothing may be another service, or a server that is stopped. */
function makeClient(url: string, connectTimeoutMs: number): pg.Client {
  return new pg.Client({ ...clientConfig(url), connectionTimeoutMillis: connectTimeoutMs });
}

async function waitForLock(guard: pg.Client, waitMs: number): Promise<void> {
  // The holder waits idle in its transaction while the other connection works.
  await guard.query(`
BEGIN;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL lock_timeout = ${Math.max(1, Math.round(waitMs))}`);
  try {
    await guard.query(`SELECT pg_advisory_xact_lock(${LOCK})`);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== '55P03') throw error;
    throw new SchemaError('SCHEMA_LOCKED', `another process has been migrating this database for ${waitMs} ms`);
  }
}

async function checkEncoding(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ encoding: string }>(
    `SELECT pg_encoding_to_char(d.encoding) AS encoding FROM pg_database AS d WHERE d.datname = current_database()`,
  );
  const encoding = rows[0]?.encoding;
  if (encoding === 'UTF8') return;
  throw new SchemaError('DATABASE_ENCODING', `the database's encoding is ${encoding}; Writ needs UTF8`);
}

async function applyMigrations(client: pg.Client, log: (line: string) => void): Promise<void> {
  const known = await knownMigrations();
  const applied = await readApplied(client);
  if (applied !== null) refuseNewer(applied, known);
  const missing = known.filter((name) => applied === null || !applied.includes(name));
  if (missing.length === 0) return;
  // Only when it is missing: a role that may not create schemas can still use one that was made for it.
  const { rows } = await client.query(`SELECT FROM pg_namespace WHERE nspname = '${SCHEMA}'`);
  if (rows.length === 0) await client.query(`CREATE SCHEMA ${SCHEMA}`);
  await client.query('SET statement_timeout = 0');
  let at = '';
  await runner({
    dbClient: client,
    dir: DIRECTORY,
    direction: 'up',
    migrationsSchema: SCHEMA,
    migrationsTable: TABLE,
    checkOrder: true,
    singleTransaction: true,
    noLock: true,
    // It tells each migration with all of its SQL: one line of ours says what was done, or where it failed.
    log: (line: string) => {
      at = /MIGRATION (\S+)/.exec(line)?.[1] ?? at;
    },
  }).catch((error: unknown) => {
    log(`the migration ${at} failed, and none was applied`);
    throw error;
  });
  await client.query('RESET statement_timeout');
  const [first = '', last = first] = [missing[0], missing.at(-1)];
  const which = first === last ? first : `${first} to ${last}`;
  log(`${applied === null ? 'made the schema' : 'brought the schema up to date'}: ${which}`);
}

/**
 * For the role that migrates, in this database: no other role and no other database is touched. Where that is not
 * permitted, for everybody in the database; where that is not either, somebody else has to. What an administrator has
 * set already, for either, stays.
 */
async function applySettings(client: pg.Client, log: (line: string) => void): Promise<void> {
  const { rows } = await client.query<{ role: string; database: string; made: string[] }>(`
SELECT quote_ident(current_user) AS role, quote_ident(d.datname) AS database,
  ARRAY(SELECT split_part(setting, '=', 1)
    FROM pg_db_role_setting AS s CROSS JOIN LATERAL unnest(s.setconfig) AS setting
    WHERE s.setdatabase = d.oid AND s.setrole IN (0, (SELECT r.oid FROM pg_roles AS r WHERE r.rolname = current_user))
  ) AS made
FROM pg_database AS d WHERE d.datname = current_database()`);
  const [where] = rows;
  if (where === undefined) throw new Error('the server did not say who we are');
  const missing = Object.entries(ROLE_SETTINGS).filter(([name]) => !where.made.includes(name));
  if (missing.length === 0) return;
  const targets = [`ALTER ROLE ${where.role} IN DATABASE ${where.database}`, `ALTER DATABASE ${where.database}`];
  for (const target of targets) {
    try {
      await client.query(missing.map(([name, value]) => `${target} SET ${name} = '${value}';`).join('\n'));
      return;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      log(`${target} SET … was refused: ${error.message}`);
    }
  }
  const list = missing.map(([name, value]) => `${name} = ${value}`).join(', ');
  log(`warning: these settings could not be made for Writ's role, let an administrator make them: ${list}`);
}

async function knownMigrations(): Promise<string[]> {
  const files = await readdir(DIRECTORY);
  return files
    .filter((file) => file.endsWith('.sql'))
    .map((file) => file.slice(0, -'.sql'.length))
    .sort();
}

/** Names in the order they were applied; null: there is no table of them. */
async function readApplied(client: Queryable): Promise<string[] | null> {
  try {
    const { rows } = await client.query<{ name: string }>(`SELECT m.name FROM ${SCHEMA}.${TABLE} AS m ORDER BY m.id`);
    return rows.map((row) => row.name);
  } catch (error) {
    // Undefined table, invalid schema name.
    if (error instanceof pg.DatabaseError && (error.code === '42P01' || error.code === '3F000')) return null;
    throw error;
  }
}

function refuseNewer(applied: readonly string[], known: readonly string[]): void {
  const unknown = applied.filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  const text = `the database's schema is newer than this version of Writ, which does not know ${unknown.join(', ')}`;
  throw new SchemaError('SCHEMA_NEWER', `${text}: use the newer version of Writ`);
}
