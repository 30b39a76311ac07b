import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { Cluster } from './cluster.js';
import { connectionUrl, DATABASE, readPassword } from './credentials.js';
import { hasCode, messageOf } from './errors.js';
import { type Postmaster, readPostmasterFile } from './postmaster.js';
import { serverFailure } from './server-log.js';

export const READY_TIMEOUT_MS = 30_000;
const POLL_MS = 20;

/** A process that is to become ready. */
export interface Candidate {
  readonly pid: number;
  readonly isAlive: () => Promise<boolean>;
  /** Where in the server's log its part begins. */
  readonly logOffset?: number;
}

/** The postmaster once it takes connections and has our database; undefined when the process ended first. */
export async function waitUntilReady(
  cluster: Cluster,
  { pid, isAlive, logOffset }: Candidate,
  expires: number,
): Promise<Postmaster | undefined> {
  let lastError: unknown;
  while (await isAlive()) {
    const postmaster = await readPostmasterFile(cluster);
    if (postmaster?.pid === pid && postmaster.status === 'ready') {
      try {
        await ensureDatabase(await readPassword(cluster), postmaster.port, expires - performance.now());
        return postmaster;
      } catch (error) {
        if (!isTransient(error)) {
          throw await serverFailure(cluster, `the embedded Postgres (pid ${pid}) refused us`, logOffset, error);
        }
        lastError = error;
      }
    }
    if (performance.now() > expires) {
      const state = postmaster?.pid === pid ? postmaster.status || 'starting' : 'starting';
      const message = `the embedded Postgres (pid ${pid}, ${state}) took no connection in ${READY_TIMEOUT_MS} ms`;
      throw await serverFailure(cluster, message, logOffset, lastError);
    }
    await pause(POLL_MS);
  }
  return undefined;
}

/** Asked at every start, since a crash can fall between initdb and this. */
async function ensureDatabase(password: string, port: number, budgetMs: number): Promise<void> {
  const client = new pg.Client({
    connectionString: connectionUrl(password, port, 'postgres'),
    connectionTimeoutMillis: Math.max(1_000, Math.min(5_000, budgetMs)),
    application_name: 'writ embedded start',
  });
  // Without a listener, a server that ends between two queries would end this process too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) {
      // Somebody else may have made it meanwhile: duplicate database, or its unique index.
      await client.query(`CREATE DATABASE ${DATABASE}`).catch((error: unknown) => {
        if (!hasCode(error, '42P04', '23505')) throw error;
      });
    }
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Starting up, shutting down, full, or gone: worth another look until the deadline. */
function isTransient(error: unknown): boolean {
  const codes = ['57P01', '57P02', '57P03', '53300', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'];
  return hasCode(error, ...codes) || /timeout|terminated/i.test(messageOf(error));
}
