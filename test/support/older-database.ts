import { cp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { PrivatePostgres } from './postgres.js';

// How a database comes to serve an older state of itself (F13).

export async function sql(url: string, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}

/** Stops the server and leaves its directory: `stop` of the support removes it. */
async function stopServer(postgres: PrivatePostgres): Promise<void> {
  await sql(postgres.url, 'CHECKPOINT');
  await postgres.kill9();
}

/** A cold copy of the data directory; the server runs again afterwards. */
export async function copyServer(postgres: PrivatePostgres, copy: string): Promise<void> {
  await stopServer(postgres);
  await cp(join(postgres.dataDir, 'pgdata'), join(copy, 'pgdata'), { recursive: true, preserveTimestamps: true });
  await postgres.restart();
}

/** The copy in place of what is there; the server is down. */
async function putBack(postgres: PrivatePostgres, copy: string): Promise<void> {
  await stopServer(postgres);
  await rm(join(postgres.dataDir, 'pgdata'), { recursive: true });
  await cp(join(copy, 'pgdata'), join(postgres.dataDir, 'pgdata'), { recursive: true, preserveTimestamps: true });
}

/** A backup that is restored over newer data. */
export async function restoreCopy(postgres: PrivatePostgres, copy: string): Promise<void> {
  await putBack(postgres, copy);
  await postgres.restart();
}

/** A server that has seen no more than the copy, and follows nobody. */
export async function becomeStandby(postgres: PrivatePostgres, copy: string): Promise<void> {
  await putBack(postgres, copy);
  await writeFile(join(postgres.dataDir, 'pgdata', 'standby.signal'), '');
  await postgres.restart();
}

export async function timelineOf(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<{ file: string }>(
      'SELECT pg_walfile_name(pg_current_wal_insert_lsn()) AS file',
    );
    return rows[0]?.file.slice(0, 8) ?? '';
  } finally {
    await client.end();
  }
}

/** Keeps what the tables have now; returns how to load it again in the place of what they have then, as a dump of data does. */
export async function copyTables(url: string): Promise<() => Promise<void>> {
  const each = (statement: string): string => `
DO $each$ DECLARE one text; BEGIN
  FOR one IN SELECT tablename FROM pg_tables WHERE schemaname = 'writ' LOOP EXECUTE format('${statement}', one); END LOOP;
END $each$`;
  await sql(url, 'CREATE SCHEMA kept', each('CREATE TABLE kept.%1$I AS TABLE writ.%1$I'));
  const reload = each('TRUNCATE writ.%1$I; INSERT INTO writ.%1$I OVERRIDING SYSTEM VALUE SELECT * FROM kept.%1$I');
  return () => sql(url, `SET session_replication_role = replica; ${reload}`);
}
