import { setTimeout as pause } from 'node:timers/promises';
import { monotonicMicros } from './platform/clock.js';
import type { Config } from './platform/config.js';
import { type Component, EXIT, endsWithin, StartError } from './platform/lifecycle.js';
import { hideUrlPasswords, type Logger } from './platform/log.js';
import { DataDirectoryUsers } from './storage/postgres/embedded/users.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './storage/postgres/embedded.js';
import { checkSchemaAt, migrate } from './storage/postgres/migrate.js';

/** The database that the coordinator stands on, as a component that it starts and stops. */
export interface Database extends Component {
  /** Carries a password. Known after the start. */
  readonly url: string;
}

const START_PATIENCE_MS = 30_000;
const RETRY_MS = 500;
const ANSWER_MS = 10_000;
const UNREACHABLE_LOG_MS = 5_000;
const WATCH_MS = 200;
const MAX_RESTART_DELAY_MS = 10_000;

/** The one of WRIT_DATABASE_URL, else the embedded one; nothing runs before `start`. */
export function createDatabase(
  config: Pick<Config, 'databaseUrl' | 'dataDir'>,
  log: Logger,
  isStopping: () => boolean,
): Database {
  const { databaseUrl, dataDir } = config;
  return databaseUrl === null ? new EmbeddedDatabase(dataDir, log) : new ExternalDatabase(databaseUrl, log, isStopping);
}

/** A Postgres of somebody else's, with the schema that `writ migrate` made. */
class ExternalDatabase implements Database {
  readonly name = 'database';
  readonly url: string;
  readonly #log: Logger;
  readonly #isStopping: () => boolean;

  constructor(url: string, log: Logger, isStopping: () => boolean) {
    this.url = url;
    this.#log = log;
    this.#isStopping = isStopping;
  }

  /** Patient for a while, as database and coordinator are often started together. */
  async start(): Promise<void> {
    const begun = monotonicMicros();
    for (let toldAt = -UNREACHABLE_LOG_MS; ; ) {
      try {
        return await this.#check();
      } catch (error) {
        if (this.#isStopping()) throw new StartError(EXIT.stopped, 'asked to stop while starting', error);
        const waited = (monotonicMicros() - begun) / 1000;
        const patient = isNotThereYet(error) && waited < START_PATIENCE_MS;
        if (!patient) throw databaseError('the database', error);
        if (waited - toldAt >= UNREACHABLE_LOG_MS) {
          toldAt = waited;
          this.#log.warn({ err: error }, 'the database cannot be reached yet');
        }
      }
      await pause(RETRY_MS);
    }
  }

  async stop(): Promise<void> {}

  async #check(): Promise<void> {
    if (await endsWithin(checkSchemaAt(this.url), ANSWER_MS)) return;
    throw new Error(`timeout: it did not answer within ${ANSWER_MS} ms`);
  }
}

/**
 * The Postgres that comes with Writ: started or adopted, migrated, and started again on the same port
 * when it dies while the coordinator lives.
 */
class EmbeddedDatabase implements Database {
  readonly name = 'embedded postgres';
  readonly #dataDir: string;
  readonly #log: Logger;
  readonly #users: DataDirectoryUsers;
  readonly #stopping = new AbortController();
  #server: EmbeddedPostgres | null = null;
  #watching: Promise<void> = Promise.resolve();

  constructor(dataDir: string, log: Logger) {
    this.#dataDir = dataDir;
    this.#log = log.child({ component: 'postgres' });
    this.#users = new DataDirectoryUsers(dataDir);
  }

  get url(): string {
    if (this.#server === null) throw new Error('the embedded Postgres has not been started');
    return this.#server.url;
  }

  async start(): Promise<void> {
    const onLog = (line: string) => this.#log.info(line);
    try {
      this.#server = await startEmbeddedPostgres({ dataDir: this.#dataDir, onLog });
      await this.#users.enter();
      await migrate(this.#server.url, { log: onLog });
    } catch (error) {
      throw databaseError('the embedded database', error);
    }
    this.#watching = this.#watch(this.#server);
  }

  async stop(withinMs: number): Promise<void> {
    this.#stopping.abort();
    await endsWithin(this.#watching, withinMs);
    if (this.#server === null) return;
    await this.#users.leave();
    if (await this.#users.others()) this.#log.info('left running: another coordinator uses the same data directory');
    else await this.#server.stop();
  }

  async #watch(first: EmbeddedPostgres): Promise<void> {
    let server = first;
    for (let delay = WATCH_MS; await sleeps(delay, this.#stopping.signal); ) {
      if (await server.isAlive()) {
        delay = WATCH_MS;
        continue;
      }
      this.#log.error({ postgres_pid: server.pid }, 'the embedded Postgres has died; starting it again');
      try {
        server = await this.#startAgain(first.port);
        delay = WATCH_MS;
      } catch (error) {
        delay = Math.min(delay * 2, MAX_RESTART_DELAY_MS);
        this.#log.error({ err: error, retry_in_ms: delay }, 'the embedded Postgres could not be started again');
      }
    }
  }

  /** On the port it had: the store's connections know no other. */
  async #startAgain(port: number): Promise<EmbeddedPostgres> {
    const onLog = (line: string) => this.#log.info(line);
    const server = await startEmbeddedPostgres({ dataDir: this.#dataDir, port, onLog });
    this.#server = server;
    // Somebody else was faster, and it was adopted.
    if (server.port !== port)
      this.#log.error({ port: server.port }, 'it has another port now: restart this coordinator');
    return server;
  }
}

/** Nobody listens, nobody answers, or the server says that it is starting up. */
function isNotThereYet(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return (
    ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENOTFOUND', 'EAI_AGAIN', '57P03'].includes(
      String(code),
    ) || /timeout/i.test(String(message))
  );
}

function databaseError(what: string, error: unknown): StartError {
  const why =
    error instanceof Error && error.message !== ''
      ? error.message
      : String((error as { code?: unknown }).code ?? error);
  return new StartError(EXIT.database, `${what} cannot be used: ${hideUrlPasswords(why)}`, error);
}

/** Sleeps; false when it was interrupted. */
async function sleeps(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return pause(milliseconds, true, { signal, ref: false }).catch(() => false);
}
