import { randomUUID } from 'node:crypto';
import { access, constants, mkdir } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { readKeyEncryptionKey } from './auth/key-encryption-key.js';
import type { PrincipalEntry } from './auth/principal-entry.js';
import { ensureDevTokens, makeConsolePrincipal } from './auth/tokens.js';
import { Callers } from './callers.js';
import { type ConsoleSignIn, createConsoleSignIn } from './console-sign-in.js';
import { createDatabase, type Database } from './database.js';
import { Fault } from './domain/fault.js';
import type { Config } from './platform/config.js';
import { readDatabasesFile } from './platform/databases-file.js';
import { type Component, EXIT, Lifecycle, StartError } from './platform/lifecycle.js';
import { createLogger, type Logger } from './platform/log.js';
import { createMetrics, type Metrics } from './platform/metrics.js';
import { openServerTls, type ServerTls } from './platform/server-tls.js';
import { createServices, type Services } from './services/index.js';
import { RouteTables } from './services/route-tables.js';
import { isPooledPrepared } from './storage/postgres/errors.js';
import { checkSchemaAt, SchemaError } from './storage/postgres/migrate.js';
import { createPostgresStore } from './storage/postgres/postgres-store.js';
import { createRedisEventStream } from './storage/redis/redis-event-stream.js';
import { createRedisHints } from './storage/redis/redis-hints.js';
import type { Store } from './storage/store.js';
import { GrpcServer } from './transports/grpc/server.js';
import { HttpServer, type Readiness } from './transports/http/server.js';
import { createRateLimiter } from './transports/rate-limit.js';

/**
 * The composition root: puts the coordinator together, starts it and stops it.
 *
 * Order of the start: the principals file, the routes file, TLS files, ports (so that a second coordinator on the same ports fails
 * before it touches anything), database, tokens, store, services, calls. Order of the stop: calls are
 * drained, then services, store, database, and /readyz last, which says meanwhile why nothing is served.
 *
 * After `kill -9` the embedded Postgres lives on; the next start adopts it.
 */
export interface Coordinator {
  /** `host:port`; empty before the start. */
  readonly grpc: string;
  readonly http: string;
  /** Where the tokens are: dev-tokens.json, or WRIT_TOKENS_FILE. */
  readonly tokensFile: string;
  /** A link that signs in at the console once; the last one counts no more. Null: only the embedded mode has them. */
  consoleLink(): string | null;
  /** Resolves once it serves; rejects, after having stopped what had started, when it cannot. */
  start(): Promise<void>;
  /** Drains and stops within WRIT_SHUTDOWN_DEADLINE; names what did not stop. Idempotent. */
  stop(): Promise<readonly string[]>;
}

/** Of the shutdown deadline, what the calls in flight get; the rest is for what they stand on. */
const DRAIN_SHARE = 0.7;
const READINESS_POLL_MS = 100;
const NOT_READY_LOG_MS = 5_000;

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
  readonly #callers: Callers;
  readonly #routes: RouteTables;
  #devTokens: readonly PrincipalEntry[] = [];
  #keyEncryptionKey: Uint8Array | null = null;
  #console: ConsoleSignIn | null = null;
  #tls: ServerTls | null = null;
  #store: Store | null = null;
  #databases: ReadonlyMap<string, Store> = new Map();
  #services: Services | null = null;
  #readiness: NodeJS.Timeout | undefined;
  #wasReady: boolean | undefined;
  /** Whether callers are let in: what has loaded before that still answers STARTING, and so does not serve. */
  #callsOpen = false;
  #blockerKey: Uint8Array | null = null;

  constructor(config: Config, log: Logger) {
    this.#config = config;
    this.#log = log;
    this.#lifecycle = new Lifecycle(log);
    this.#database = createDatabase(config, log, () => this.#lifecycle.isStopping);
    this.#callers = new Callers({
      file: config.tokensFile,
      certificates: config.tls !== null && config.tls.clientCaFile !== null,
      metrics: this.#metrics,
      log,
    });
    this.#routes = new RouteTables({ file: config.routesFile, log });
    const rateLimiter = createRateLimiter(config.limits.maxCallsPerSecond);
    this.#grpcServer = new GrpcServer({ limits: config.limits, rateLimiter, metrics: this.#metrics, log });
    this.#httpServer = new HttpServer({
      ready: () => this.#ready(),
      api: () => this.#api(),
      authenticator: this.#callers,
      signIn: () => this.#started(this.#console).signIn,
      blockerKey: () => this.#started(this.#blockerKey),
      limits: config.limits,
      rateLimiter,
      metrics: this.#metrics,
      log,
    });
    this.#metrics.readiness(() => this.#ready().ready);
    this.#metrics.certificateEnds(() => this.#tls?.notAfterMs ?? null);
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
      { name: 'principals file', start: () => this.#readPrincipals(), stop: async () => this.#callers.close() },
      { name: 'routes file', start: () => this.#routes.start(), stop: async () => this.#routes.stop() },
      { name: 'TLS files', start: () => this.#openTls(), stop: async () => this.#tls?.stop() },
      {
        name: 'ports',
        start: async () => {
          // Both, so that one start names every port that is taken.
          const [http, grpc] = await Promise.allSettled([
            this.#httpServer.listen(host, httpPort, this.#tls),
            this.#grpcServer.listen(host, grpcPort, this.#tls),
          ]);
          if (http.status === 'rejected' && grpc.status === 'rejected') throw bothOf(http.reason, grpc.reason);
          this.http = settled(http);
          this.grpc = settled(grpc);
        },
        stop: async (withinMs) => {
          await Promise.all([this.#grpcServer.drain(withinMs), this.#httpServer.stop(withinMs)]);
        },
      },
      this.#database,
      { name: 'tokens', start: () => this.#loadTokens(), stop: async () => undefined },
      { name: 'store', start: () => this.#openStores(), stop: () => this.#closeStores() },
      { name: 'services', start: () => this.#startServices(), stop: async () => this.#services?.stop() },
      { name: 'calls', start: () => this.#openCalls(), stop: (withinMs) => this.#drainCalls(withinMs) },
    ];
  }

  async #readPrincipals(): Promise<void> {
    await this.#callers.read();
    this.tokensFile = this.#config.tokensFile ?? '';
  }

  async #openTls(): Promise<void> {
    const { tls } = this.#config;
    if (tls !== null) this.#tls = await openServerTls(tls, this.#log);
  }

  async #loadTokens(): Promise<void> {
    const { databaseUrl, dataDir } = this.#config;
    // The embedded database makes it with what it needs; with another one it is for the witness and keys.
    await makeDataDirectory(dataDir);
    const madeIn = databaseUrl === null ? dataDir : null;
    this.#keyEncryptionKey = await readKeyEncryptionKey({ ...this.#config, madeIn });
    let token: string | null = null;
    if (databaseUrl === null) {
      const dev = await ensureDevTokens(dataDir);
      this.tokensFile = dev.path;
      const console = this.#keyEncryptionKey === null ? null : makeConsolePrincipal(this.#keyEncryptionKey);
      this.#devTokens = console === null ? dev.entries : [...dev.entries, console.entry];
      token = console?.token ?? null;
    }
    this.#console = await createConsoleSignIn({
      config: this.#config,
      authenticator: this.#callers,
      keyEncryptionKey: this.#keyEncryptionKey,
      token,
      metrics: this.#metrics,
      log: this.#log,
    });
  }

  async #openStores(): Promise<void> {
    this.#store = this.#storeAt(this.#database.url);
    const { databasesFile } = this.#config;
    if (databasesFile === null) return;
    const urls = await readDatabasesFile(databasesFile);
    await Promise.all([...urls].map(([name, url]) => this.#checkDatabase(name, url)));
    this.#databases = new Map([...urls].map(([name, url]) => [name, this.#storeAt(url)]));
  }

  /** Beside the main one, a database may be away: its namespaces are, and no others. */
  async #checkDatabase(name: string, url: string): Promise<void> {
    await checkSchemaAt(url).catch((error: unknown) => {
      if (error instanceof SchemaError)
        throw new StartError(EXIT.database, `the database "${name}" cannot be used: ${error.message}`, error);
      this.#log.warn({ database: name, err: error }, 'the database cannot be reached yet');
    });
  }

  #storeAt(url: string): Store {
    const { databasePrepared, databaseConnections, redisUrl } = this.#config;
    const log = (line: string) => this.#log.warn({ component: 'store' }, line);
    return createPostgresStore({
      url,
      prepared: databasePrepared,
      maxConnections: databaseConnections,
      ...(redisUrl === null ? {} : { hints: createRedisHints(redisUrl, log) }),
      log,
    });
  }

  async #closeStores(): Promise<void> {
    await Promise.all([this.#store, ...this.#databases.values()].map((store) => store?.close()));
  }

  #openStream() {
    const { redisUrl, redisStreamLength } = this.#config;
    if (redisUrl === null) return null;
    const log = (line: string) => this.#log.warn({ component: 'redis' }, line);
    return createRedisEventStream(redisUrl, redisStreamLength, log);
  }

  async #startServices(): Promise<void> {
    if (this.#store === null) throw new Error('the store comes before the services');
    this.#services = createServices({
      issuer: this.#config.issuer ?? this.#address(),
      keyEncryptionKey: this.#keyEncryptionKey,
      store: this.#store,
      databases: this.#databases,
      replicaId: randomUUID(),
      config: this.#config,
      log: this.#log,
      metrics: this.#metrics,
      verifyInitiator: (token, caller) => this.#callers.initiatorOf(token, caller),
      routes: this.#routes,
      stream: this.#openStream(),
    });
    await this.#services.start().catch((error: unknown) => {
      // A database that is reached but may not be believed: not durable, its clock behind the log, a standby.
      const unfit = (error instanceof Fault && error.faultClass === 'unavailable') || isPooledPrepared(error);
      throw unfit ? new StartError(EXIT.database, (error as Error).message, error) : error;
    });
  }

  async #openCalls(): Promise<void> {
    if (this.#services === null) throw new Error('services come before calls');
    const { api } = this.#services;
    this.#callers.open(this.#devTokens, (known) => {
      this.#blockerKey = known.blockerKey;
      this.#grpcServer.serve({ api, ...known });
    });
    this.#callsOpen = true;
    this.#watchReadiness();
    this.#readiness = setInterval(() => this.#watchReadiness(), READINESS_POLL_MS);
    this.#readiness.unref();
  }

  async #drainCalls(withinMs: number): Promise<void> {
    clearInterval(this.#readiness);
    this.#httpServer.endStreams();
    this.#services?.leave();
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
    if (this.#services === null || !this.#callsOpen) return { ready: false, reasons: ['starting'] };
    return { ...this.#services.ready(), warnings: this.#tls?.warnings() ?? [] };
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

  consoleLink(): string | null {
    return this.#console?.link(this.#address()) ?? null;
  }

  /** Of HTTP, as a URL. */
  #address(): string {
    return `${this.#tls === null ? 'http' : 'https'}://${this.http}`;
  }

  #api() {
    return this.#started(this.#services).api;
  }

  #started<T>(part: T | null): T {
    if (part === null) throw new Fault('unavailable', 'STARTING', 'this coordinator is starting');
    return part;
  }
}

function settled<T>(result: PromiseSettledResult<T>): T {
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}

/** Without it the witness could not be kept, and lost history might not be noticed after a restart. */
async function makeDataDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await access(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    const why = (error as Error).message;
    throw new StartError(EXIT.configuration, `WRIT_DATA_DIR: ${path} cannot be made or written: ${why}`, error);
  }
}

function bothOf(one: unknown, other: unknown): unknown {
  if (!(one instanceof StartError && other instanceof StartError)) return one;
  return new StartError(one.exitCode, `${one.message} And it ${other.message}`, one);
}
