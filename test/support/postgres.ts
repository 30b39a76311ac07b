import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { inject } from 'vitest';
import { startEmbeddedPostgres } from '../../src/storage/postgres/embedded.js';
import { makeTestDirectory } from './global-setup.js';

/** Whether stores of tests name their statements; not behind a pooler (F11): WRIT_TEST_PREPARED=off. */
export const PREPARED = process.env.WRIT_TEST_PREPARED !== 'off';

/**
 * A row where anybody waits for a lock in the database that is asked. Not by the process of one connection: behind a
 * pooler a client does not know it (F11).
 */
export const ANYBODY_BLOCKED = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;

/** A database of one test's own. */
export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  /** Ends its connections and removes it; idempotent. */
  drop(): Promise<void>;
}

/** A fresh, empty database on the server that the whole vitest run shares. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const adminUrl = inject('postgresUrl');
  const name = `writ_test_${randomBytes(8).toString('hex')}`;
  // template0, since a foreign server's template1 may have another encoding, or somebody connected to it.
  await asAdmin(adminUrl, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'`);
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    name,
    drop: () => asAdmin(adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  };
}

async function asAdmin(adminUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

/** A server of one test's own, to be killed and stopped at will. */
export interface PrivatePostgres {
  /** The same for the server's whole life: restarts keep the port. */
  readonly url: string;
  readonly dataDir: string;
  /** The postmaster that was started last. */
  readonly pid: number;
  /** SIGKILLs the postmaster and returns when it is gone; its backends end by themselves once they notice. */
  kill9(): Promise<void>;
  /** Starts it again, after a fast shutdown if it runs. */
  restart(): Promise<void>;
  /** Ends the server if it runs and removes its directory; idempotent. */
  stop(): Promise<void>;
}

/** Starts a server for a test that kills, stops or restarts it; call `stop` at the end. */
export async function startPrivatePostgres(
  options: {
    readonly settings?: Readonly<Record<string, string>>;
    /** Where its data is; whoever gives it removes it. Default: a directory of its own. */
    readonly directory?: string;
  } = {},
): Promise<PrivatePostgres> {
  const directory = options.directory ?? (await makeTestDirectory('private'));
  const dataDir = join(directory, 'data');
  const settings = options.settings ?? {};
  let server = await startEmbeddedPostgres({ dataDir, settings });
  return {
    url: server.url,
    dataDir,
    get pid() {
      return server.pid;
    },
    kill9: () => killAndWait(server.pid),
    async restart() {
      await server.stop();
      server = await startEmbeddedPostgres({ dataDir, settings, port: server.port });
    },
    async stop() {
      await server.stop();
      if (options.directory !== undefined) return;
      await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/** SIGKILLs a process and returns when it is gone (or a zombie that nobody reaps). */
export async function killAndWait(pid: number): Promise<void> {
  for (let signal: NodeJS.Signals | 0 = 'SIGKILL'; ; signal = 0) {
    try {
      process.kill(pid, signal);
    } catch {
      return;
    }
    const status = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    if (/\) [ZX] /.test(status)) return;
    await pause(5);
  }
}
