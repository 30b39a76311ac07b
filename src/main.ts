import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import {
  type Authenticator,
  createAuthenticator,
  ensureDevTokens,
  readTokensFile,
  type TokenEntry,
  TokensFileError,
} from './auth/tokens.js';
import { Fault } from './domain/fault.js';
import { type Config, ConfigError, type Environment, readConfig } from './platform/config.js';
import { type Component, EXIT, endsWithin, Lifecycle, onStopSignal, StartError } from './platform/lifecycle.js';
import { createLogger, hideUrlPasswords, type Logger } from './platform/log.js';
import { createMetrics, type Metrics } from './platform/metrics.js';
import { createServices, type Services } from './services/index.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './storage/postgres/embedded.js';
import { checkSchemaAt, migrate } from './storage/postgres/migrate.js';
import { createPostgresStore } from './storage/postgres/postgres-store.js';
import type { Store } from './storage/store.js';
import { GrpcServer } from './transports/grpc/server.js';
import { HttpServer, type Readiness } from './transports/http/server.js';

/**
 * The composition root: puts the coordinator together, starts it and stops it.
 *
 * Order of the start: the tokens file, ports (so that a second coordinator on the same ports fails
 * before it touches anything), database, tokens, store, services, calls. Order of the stop: calls are
 * drained, then services, store, database, and /readyz last, which says meanwhile why nothing is served.
 *
 * As a program it prints one JSON line on stdout when it is ready and ends with one of the codes of
 * `EXIT` in platform/lifecycle.ts. After `kill -9` the embedded Postgres lives on; the next start
 * adopts it.
 */
export interface Coordinator {
  /** `host:port`; empty before the start. */
  readonly grpc: string;
  readonly http: string;
  /** Where the tokens are: dev-tokens.json, or WRIT_TOKENS_FILE. */
  readonly tokensFile: string;
  /** Resolves once it serves; rejects, after having stopped what had started, when it cannot. */
  start(): Promise<void>;
  /** Drains and stops within WRIT_SHUTDOWN_DEADLINE; names what did not stop. Idempotent. */
  stop(): Promise<readonly string[]>;
}

/** Of the shutdown deadline, what the calls in flight get; the rest is for what they stand on. */
const DRAIN_SHARE = 0.7;
const READINESS_POLL_MS = 100;
const NOT_READY_LOG_MS = 5_000;
const DATABASE_START_PATIENCE_MS = 30_000;
const DATABASE_RETRY_MS = 500;
const DATABASE_ANSWER_MS = 10_000;
const POSTGRES_WATCH_MS = 200;
const MAX_RESTART_DELAY_MS = 10_000;

/**
 * Starts a coordinator and returns when it is ready.
 *
 * @example
 * const coordinator = await startCoordinator(readConfig());
 * // … coordinator.grpc is where clients connect
 * await coordinator.stop();
 */
export async function startCoordinator(
  config: Config,
  log: Logger = createLogger(config.logLevel),
): Promise<Coordinator> {
  const coordinator = createCoordinator(config, log);
  await coordinator.start();
  return coordinator;
}

/** Puts a coordinator together; nothing runs before `start`. */
export function createCoordinator(config: Config, log: Logger): Coordinator {
  return new ComposedCoordinator(config, log);
}

class ComposedCoordinator implements Coordinator {
  grpc = '';
  http = '';
  tokensFile = '';
  readonly #config: Config;
  readonly #log: Logger;
  readonly #lifecycle: Lifecycle;
  readonly #metrics: Metrics = createMetrics({ processMetrics: true });
  readonly #grpcServer: GrpcServer;
  readonly #httpServer: HttpServer;
  readonly #database: Database;
  readonly #entries: TokenEntry[] = [];
  #authenticator: Authenticator | null = null;
  #blockerKey: Uint8Array = new Uint8Array();
  #store: Store | null = null;
  #services: Services | null = null;
  #readiness: NodeJS.Timeout | undefined;
  #wasReady: boolean | undefined;

  constructor(config: Config, log: Logger) {
    this.#config = config;
    this.#log = log;
    this.#lifecycle = new Lifecycle(log);
    this.#database =
      config.databaseUrl === null
        ? new EmbeddedDatabase(config.dataDir, log)
        : new ExternalDatabase(config.databaseUrl, log, () => this.#lifecycle.isStopping);
    this.#grpcServer = new GrpcServer({ limits: config.limits, metrics: this.#metrics, log });
    this.#httpServer = new HttpServer({
      ready: () => this.#ready(),
      authenticator: { authenticate: (authorization) => this.#authenticate(authorization) },
      metrics: this.#metrics,
      log,
    });
    this.#metrics.readiness(() => this.#ready().ready);
    for (const component of this.#components()) this.#lifecycle.add(component);
  }

  async start(): Promise<void> {
    try {
      await this.#lifecycle.start();
      await this.#untilReady();
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  stop(): Promise<readonly string[]> {
    return this.#lifecycle.stop(this.#config.shutdownDeadlineMs);
  }

  #components(): Component[] {
    const { host, grpcPort, httpPort } = this.#config;
    return [
      { name: 'tokens file', start: () => this.#readTokensFile(), stop: async () => undefined },
      {
        name: 'ports',
        start: async () => {
          this.http = await this.#httpServer.listen(host, httpPort);
          this.grpc = await this.#grpcServer.listen(host, grpcPort);
        },
        stop: async (withinMs) => {
          await Promise.all([this.#grpcServer.drain(withinMs), this.#httpServer.stop(withinMs)]);
        },
      },
      this.#database,
      { name: 'tokens', start: () => this.#loadTokens(), stop: async () => undefined },
      { name: 'store', start: async () => this.#openStore(), stop: async () => this.#store?.close() },
      { name: 'services', start: () => this.#startServices(), stop: async () => this.#services?.stop() },
      { name: 'calls', start: () => this.#openCalls(), stop: (withinMs) => this.#drainCalls(withinMs) },
    ];
  }

  async #readTokensFile(): Promise<void> {
    const { tokensFile } = this.#config;
    if (tokensFile === null) return;
    this.#entries.push(...(await readTokensFile(tokensFile)));
    this.tokensFile = tokensFile;
  }

  async #loadTokens(): Promise<void> {
    const { databaseUrl, dataDir } = this.#config;
    // The embedded database makes it with what it needs; with another one it is for the witness and keys.
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    if (databaseUrl === null) {
      const dev = await ensureDevTokens(dataDir);
      this.#entries.push(...dev.entries);
      this.tokensFile = dev.path;
    }
    this.#authenticator = createAuthenticator(this.#entries);
    this.#blockerKey = makeBlockerKey(this.#entries);
  }

  #openStore(): void {
    const { databasePrepared, databaseConnections } = this.#config;
    this.#store = createPostgresStore({
      url: this.#database.url,
      prepared: databasePrepared,
      maxConnections: databaseConnections,
      log: (line) => this.#log.warn({ component: 'store' }, line),
    });
  }

  async #startServices(): Promise<void> {
    if (this.#store === null) throw new Error('the store comes before the services');
    this.#services = createServices({
      store: this.#store,
      replicaId: randomUUID(),
      config: this.#config,
      log: this.#log,
      metrics: this.#metrics,
    });
    await this.#services.start();
  }

  async #openCalls(): Promise<void> {
    if (this.#services === null || this.#authenticator === null) throw new Error('services come before calls');
    const { api } = this.#services;
    this.#grpcServer.serve({ api, authenticator: this.#authenticator, blockerKey: this.#blockerKey });
    this.#watchReadiness();
    this.#readiness = setInterval(() => this.#watchReadiness(), READINESS_POLL_MS);
    this.#readiness.unref();
  }

  async #drainCalls(withinMs: number): Promise<void> {
    clearInterval(this.#readiness);
    await this.#grpcServer.drain(withinMs * DRAIN_SHARE);
  }

  /** Tells health checks, and the log at each change. */
  #watchReadiness(): void {
    const { ready, reasons } = this.#ready();
    this.#grpcServer.setServing(ready);
    if (ready === this.#wasReady) return;
    this.#wasReady = ready;
    if (ready) this.#log.info('ready');
    else this.#log.warn({ reasons }, 'not ready');
  }

  #ready(): Readiness {
    if (this.#lifecycle.isStopping) return { ready: false, reasons: ['shutting down'] };
    if (this.#services === null) return { ready: false, reasons: ['starting'] };
    return this.#services.ready();
  }

  async #untilReady(): Promise<void> {
    for (let waited = 0; !this.#ready().ready; waited += READINESS_POLL_MS) {
      if (this.#lifecycle.isStopping) throw new StartError(EXIT.stopped, 'asked to stop while starting');
      if (waited % NOT_READY_LOG_MS === 0) this.#log.info({ reasons: this.#ready().reasons }, 'waiting to be ready');
      await pause(READINESS_POLL_MS);
    }
    // Health checks say so before the ready line does.
    this.#watchReadiness();
  }

  #authenticate(authorization: string | undefined) {
    if (this.#authenticator === null) throw new Fault('unavailable', 'STARTING', 'this coordinator is starting');
    return this.#authenticator.authenticate(authorization);
  }
}

/**
 * The key of the names under which blocking leases appear. Replicas of one installation share its
 * tokens and must use the same names, so it comes from the tokens' hashes, which only those see who
 * configure the coordinator.
 */
function makeBlockerKey(entries: readonly TokenEntry[]): Uint8Array {
  const hashes = entries.map((entry) => entry.tokenSha256).toSorted();
  return createHash('sha256')
    .update(`writ blocker names\n${hashes.join('\n')}`)
    .digest();
}

/** Where the log is. */
interface Database extends Component {
  /** Carries a password. Known after the start. */
  readonly url: string;
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
    for (let waited = 0; ; waited += DATABASE_RETRY_MS) {
      try {
        return await this.#check();
      } catch (error) {
        const patient = isNotThereYet(error) && waited < DATABASE_START_PATIENCE_MS && !this.#isStopping();
        if (!patient) throw databaseError('the database', error);
        if (waited % 5_000 === 0) this.#log.warn({ err: error }, 'the database cannot be reached yet');
      }
      await pause(DATABASE_RETRY_MS);
    }
  }

  async stop(): Promise<void> {}

  async #check(): Promise<void> {
    if (await endsWithin(checkSchemaAt(this.url), DATABASE_ANSWER_MS)) return;
    throw new Error(`timeout: it did not answer within ${DATABASE_ANSWER_MS} ms`);
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

/**
 * The Postgres that comes with Writ: started or adopted, migrated, and started again on the same port
 * when it dies while the coordinator lives.
 */
class EmbeddedDatabase implements Database {
  readonly name = 'embedded postgres';
  readonly #dataDir: string;
  readonly #log: Logger;
  readonly #users: DirectoryUsers;
  #server: EmbeddedPostgres | null = null;
  #stopping = new AbortController();
  #watching: Promise<void> = Promise.resolve();

  constructor(dataDir: string, log: Logger) {
    this.#dataDir = dataDir;
    this.#log = log.child({ component: 'postgres' });
    this.#users = new DirectoryUsers(join(dataDir, 'coordinators'));
  }

  get url(): string {
    if (this.#server === null) throw new Error('the embedded Postgres has not been started');
    return this.#server.url;
  }

  async start(): Promise<void> {
    try {
      this.#server = await startEmbeddedPostgres({ dataDir: this.#dataDir, onLog: (line) => this.#log.info(line) });
      await this.#users.enter();
      await migrate(this.#server.url, { log: (line) => this.#log.info(line) });
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

  async #watch(server: EmbeddedPostgres): Promise<void> {
    const { signal } = this.#stopping;
    let pid = server.pid;
    for (let delay = POSTGRES_WATCH_MS; await sleeps(delay, signal); ) {
      if (await isAlive(pid)) {
        delay = POSTGRES_WATCH_MS;
        continue;
      }
      this.#log.error({ postgres_pid: pid }, 'the embedded Postgres has died; starting it again');
      try {
        const again = await startEmbeddedPostgres({
          dataDir: this.#dataDir,
          port: server.port,
          onLog: (line) => this.#log.info(line),
        });
        this.#server = again;
        pid = again.pid;
        if (again.port !== server.port)
          this.#log.error({ port: again.port }, 'it has another port now: restart this coordinator');
        delay = POSTGRES_WATCH_MS;
      } catch (error) {
        delay = Math.min(delay * 2, MAX_RESTART_DELAY_MS);
        this.#log.error({ err: error, retry_in_ms: delay }, 'the embedded Postgres could not be started again');
      }
    }
  }
}

/** Sleeps; false when it was interrupted. */
async function sleeps(milliseconds: number, signal: AbortSignal): Promise<boolean> {
  return pause(milliseconds, true, { signal, ref: false }).catch(() => false);
}

/** Who else uses an embedded database: whoever stops last stops it. A file each, named by process, holds its start time. */
class DirectoryUsers {
  readonly #directory: string;
  readonly #own = `${process.pid}.${randomBytes(4).toString('hex')}`;

  constructor(directory: string) {
    this.#directory = directory;
  }

  async enter(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await writeFile(join(this.#directory, this.#own), await startTime(process.pid), { mode: 0o600 });
  }

  async leave(): Promise<void> {
    await rm(join(this.#directory, this.#own), { force: true });
  }

  /** Whether anybody else is there; forgets those who died. */
  async others(): Promise<boolean> {
    let found = false;
    for (const name of await readdir(this.#directory).catch(() => [])) {
      const file = join(this.#directory, name);
      const since = await readFile(file, 'utf8').catch(() => null);
      const pid = Number.parseInt(name, 10);
      if (since !== null && (await isAlive(pid)) && since === (await startTime(pid))) found = true;
      else await rm(file, { force: true });
    }
    return found;
  }
}

async function isAlive(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  // A zombie that nobody reaps, as in a container without an init, is dead.
  return !/^\d+ \(.*\) [ZX]/s.test(await processStatus(pid));
}

/** When a process started, in the system's own unit; empty where the system does not tell. */
async function startTime(pid: number): Promise<string> {
  const fields = (await processStatus(pid)).split(') ').at(-1)?.split(' ') ?? [];
  return fields[19] ?? '';
}

async function processStatus(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
}

/** Runs the coordinator as a program: until it is told to stop. Returns its exit code. */
export async function serve(env?: Environment): Promise<number> {
  let log: Logger | undefined;
  try {
    const config = readConfig(env);
    log = createLogger(config.logLevel);
    const coordinator = createCoordinator(config, log);
    const stopped = stopOnSignal(coordinator, log);
    await coordinator.start();
    process.stdout.write(`${JSON.stringify(readyLine(config, coordinator))}\n`);
    return (await stopped).length === 0 ? EXIT.stopped : EXIT.stopIncomplete;
  } catch (error) {
    return reportFailure(error, log);
  }
}

function stopOnSignal(coordinator: Coordinator, log: Logger): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    onStopSignal((signal) => {
      log.info({ signal }, 'stopping');
      coordinator.stop().then(resolve, reject);
    });
  });
}

function readyLine(config: Config, coordinator: Coordinator): Record<string, string> {
  return {
    event: 'ready',
    grpc: coordinator.grpc,
    http: coordinator.http,
    ...(config.databaseUrl === null ? { data_dir: config.dataDir } : {}),
    tokens_file: coordinator.tokensFile,
  };
}

/** Errors for people are said in words; everything else is a bug and is logged with its stack. */
function reportFailure(error: unknown, log: Logger | undefined): number {
  if (error instanceof StartError && error.exitCode === EXIT.stopped) return EXIT.stopped;
  const code =
    error instanceof StartError ? error.exitCode : isMisconfiguration(error) ? EXIT.configuration : EXIT.failed;
  if (code === EXIT.failed) log?.fatal({ err: error }, 'the coordinator failed');
  else process.stderr.write(`writ: ${(error as Error).message}\n`);
  return code;
}

function isMisconfiguration(error: unknown): boolean {
  return error instanceof ConfigError || error instanceof TokensFileError;
}

function isProgram(): boolean {
  const script = process.argv[1];
  return script !== undefined && pathToFileURL(realpathSync(script)).href === import.meta.url;
}

if (isProgram()) {
  process.exit(await serve());
}
