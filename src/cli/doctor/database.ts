import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { wallClockMicros } from '../../platform/clock.js';
import type { Config } from '../../platform/config.js';
import { readDatabasesFile } from '../../platform/databases-file.js';
import { clientConfig } from '../../storage/postgres/connections.js';
import { ROLE_SETTINGS } from '../../storage/postgres/role-settings.js';
import { reasonOf } from '../commands/migrate.js';
import { ANSWER_MS, type Finding, ok, skipped, warning, wrong } from './finding.js';

const POSTGRES_VERSIONS = [15, 18] as const;
/** Beyond this, `--for` and deadlines by this machine's clock are noticeably off. */
const MAX_SKEW_MS = 1_000;

/** The main database, and those that WRIT_DATABASES_FILE names, whose findings begin with their names. */
export async function databases(config: Config): Promise<Finding[]> {
  const [main, others] = await Promise.all([mainDatabase(config), otherDatabases(config.databasesFile)]);
  return [...main, ...others];
}

async function mainDatabase({ databaseUrl, dataDir }: Config): Promise<Finding[]> {
  const url = databaseUrl ?? (await embeddedUrl(dataDir));
  if (url === null) return [skipped('database', 'the embedded Postgres does not run; `writ serve` starts it')];
  return database(url, databaseUrl === null);
}

async function otherDatabases(file: string | null): Promise<Finding[]> {
  if (file === null) return [];
  try {
    const named = [...(await readDatabasesFile(file))];
    const found = await Promise.all(
      named.map(async ([name, url]) =>
        (await database(url, false)).map((finding) => ({ ...finding, what: `${name}: ${finding.what}` })),
      ),
    );
    return found.flat();
  } catch (error) {
    return [wrong('databases', reasonOf(error))];
  }
}

/** Where the embedded server of this data directory listens; null: it does not run. */
async function embeddedUrl(dataDir: string): Promise<string | null> {
  const [pidFile, password] = await Promise.all(
    [join('pgdata', 'postmaster.pid'), 'password'].map((name) =>
      readFile(join(dataDir, name), 'utf8').catch(() => null),
    ),
  );
  const listening = pidFile?.split('\n')[3]?.trim();
  if (!listening || !password) return null;
  return `postgres://writ:${encodeURIComponent(password.trim())}@127.0.0.1:${listening}/writ`;
}

interface ServerFacts {
  readonly version: string;
  readonly major: number;
  readonly fsync: string;
  readonly synchronous_commit: string;
  readonly full_page_writes: string;
  readonly encoding: string;
  readonly in_recovery: boolean;
  /** Those of `ROLE_SETTINGS` that nobody has set for this session. */
  readonly unset: string;
  readonly now_ms: string;
}

const SERVER_FACTS = `
SELECT current_setting('server_version') AS version,
       current_setting('server_version_num')::int / 10000 AS major,
       current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes') AS full_page_writes,
       current_setting('server_encoding') AS encoding,
       pg_is_in_recovery() AS in_recovery,
       (SELECT coalesce(string_agg(s.name, ', ' ORDER BY s.name), '') FROM pg_settings AS s
         WHERE s.name = ANY(string_to_array('${Object.keys(ROLE_SETTINGS).join(',')}', ',')) AND s.source = 'default') AS unset,
       (extract(epoch FROM clock_timestamp()) * 1000)::text AS now_ms`;

async function database(url: string, embedded: boolean): Promise<Finding[]> {
  const client = new pg.Client({
    ...clientConfig(url),
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const sent = wallClockMicros() / 1_000;
    const { rows } = await client.query<Record<string, string>>(SERVER_FACTS);
    const received = wallClockMicros() / 1_000;
    const [row] = rows as unknown as ServerFacts[];
    if (row === undefined) return [wrong('database', 'it did not answer')];
    return [
      ...serverFindings(row),
      skew(Number(row.now_ms) - (sent + received) / 2, received - sent),
      roleSettings(row.unset),
      await schema(client, embedded),
    ];
  } catch (error) {
    return [wrong('database', `cannot be reached: ${reasonOf(error)}`)];
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Without these an acknowledged grant can be lost (P8), or the coordinator refuses to start. */
export function serverFindings(row: Omit<ServerFacts, 'now_ms' | 'unset'>): Finding[] {
  const major = Number(row.major);
  const [oldest, newest] = POSTGRES_VERSIONS;
  const on = (name: 'fsync' | 'full_page_writes', value: string) =>
    value === 'on'
      ? ok(name, value)
      : wrong(name, `${value}: after a crash the log could have lost what was acknowledged`);
  const durable = row.synchronous_commit !== 'off';
  return [
    major >= oldest && major <= newest
      ? ok('database', `Postgres ${row.version}`)
      : wrong('database', `Postgres ${row.version}: ${oldest} to ${newest} are supported`),
    String(row.in_recovery) === 'true'
      ? wrong('primary', 'the server is in recovery: it cannot be written')
      : ok('primary', 'yes'),
    on('fsync', row.fsync),
    durable
      ? ok('synchronous_commit', row.synchronous_commit)
      : wrong('synchronous_commit', `${row.synchronous_commit}: a commit could be acknowledged and lost`),
    on('full_page_writes', row.full_page_writes),
    row.encoding === 'UTF8' ? ok('encoding', 'UTF8') : wrong('encoding', `${row.encoding}; UTF8 is needed`),
  ];
}

/** They are kept with the role and the database: a second role, and a database that a dump was loaded into, have none. */
function roleSettings(unset: string): Finding {
  return unset === ''
    ? ok('role settings', 'made')
    : warning('role settings', `not made for this role: ${unset}; see docs/operations.md#your-own`);
}

function skew(ms: number, roundTripMs: number): Finding {
  const text = `${Math.round(Math.abs(ms))} ms ${ms < 0 ? 'behind' : 'ahead of'} this machine's, measured to ${Math.ceil(roundTripMs)} ms; only the database's clock decides`;
  return Math.abs(ms) > MAX_SKEW_MS + roundTripMs ? warning('database clock', text) : ok('database clock', text);
}

async function schema(client: pg.Client, embedded: boolean): Promise<Finding> {
  // Loaded here only: the rest of `writ` needs no migrations, and starts without them.
  const { checkSchema, SchemaError } = await import('../../storage/postgres/migrate.js');
  try {
    // It asks for no more of a pool than a client has.
    await checkSchema(client as unknown as Pick<pg.Pool, 'query'>);
    return ok('migrations', 'current');
  } catch (error) {
    if (!(error instanceof SchemaError)) return wrong('migrations', reasonOf(error));
    const missing = error.code === 'SCHEMA_MISSING' || error.code === 'SCHEMA_OLDER';
    return embedded && missing
      ? warning('migrations', `${error.message}; \`writ serve\` does it`)
      : wrong('migrations', error.message);
  }
}
