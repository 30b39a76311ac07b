import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { hashToken } from '../../src/auth/tokens.js';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { type CoordinatorProcess, type RoleName, startCoordinatorProcess } from '../support/coordinator-process.js';
import { faketimeMissing, makeSteppedClock, type SteppedClock } from '../support/faketime.js';
import { type PrivatePostgres, startPrivatePostgres } from '../support/postgres.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import type { Stage } from './stage.js';

const ROLES: readonly RoleName[] = ['admin', 'runner', 'target', 'operator', 'approver', 'auditor'];
const READY_WITHIN_MS = 60_000;

export interface ClusterOptions {
  /** Default 2. */
  readonly replicas?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Of Postgres. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Where its data is; default: a directory of its own. */
  readonly postgresIn?: string;
  /** Each replica's wall clock can be stepped, where libfaketime is there. */
  readonly clocks?: boolean;
  /** What replicas connect to in place of Postgres: a pooler; given Postgres's URL, returns its own. */
  readonly before?: (url: string) => Promise<string>;
}

/** A coordinator as an operating-system process, with a bad network on both sides of it. */
export class Replica {
  private running: CoordinatorProcess | undefined;
  private readonly clients = new Map<RoleName, WritClient>();

  constructor(
    readonly name: string,
    /** Between it and the database. */
    readonly database: TcpProxy,
    /** Between those who call and it. */
    readonly network: TcpProxy,
    readonly clock: SteppedClock | null,
    private readonly start: () => Promise<CoordinatorProcess>,
    private readonly tokens: Readonly<Record<RoleName, string>>,
  ) {}

  get process(): CoordinatorProcess {
    if (this.running === undefined) throw new Error(`${this.name} does not run`);
    return this.running;
  }

  async up(): Promise<void> {
    if (this.running !== undefined) return;
    this.running = await this.start();
    this.network.leadTo(this.running.grpc);
  }

  /** SIGKILL. */
  async kill(): Promise<void> {
    const running = this.running;
    this.running = undefined;
    await running?.kill9();
  }

  /** SIGTERM; its exit code. */
  async stop(): Promise<number | null> {
    const running = this.running;
    this.running = undefined;
    running?.signal('SIGCONT');
    return (await running?.stop()) ?? 0;
  }

  /** Through the network; one connection for each role. */
  client(role: RoleName): WritClient {
    let client = this.clients.get(role);
    if (client === undefined) {
      client = connectWrit({ endpoint: this.network.endpoint, token: this.tokens[role] });
      this.clients.set(role, client);
    }
    return client;
  }

  async untilReady(): Promise<void> {
    const until = performance.now() + READY_WITHIN_MS;
    for (;;) {
      const answer = await fetch(`http://${this.process.http}/readyz`).catch(() => null);
      if (answer?.status === 200) return;
      if (performance.now() > until)
        throw new Error(
          `${this.name} is not ready:\n${(await answer?.text()) ?? ''}\n${this.process.log().slice(-3_000)}`,
        );
      await pause(50);
    }
  }

  async close(): Promise<void> {
    for (const client of this.clients.values()) client.close();
    await this.stop();
    await this.network.stop();
    await this.database.stop();
  }
}

/** Coordinator replicas over one Postgres of their own. */
export class Cluster {
  private constructor(
    readonly postgres: PrivatePostgres,
    readonly replicas: readonly Replica[],
    readonly tokens: Readonly<Record<RoleName, string>>,
  ) {}

  static async start(stage: Stage, options: ClusterOptions = {}): Promise<Cluster> {
    const postgres = await startPrivatePostgres({
      settings: { max_connections: '100', ...options.settings },
      ...(options.postgresIn === undefined ? {} : { directory: options.postgresIn }),
    });
    stage.add('Postgres', () => postgres.stop());
    await migrate(postgres.url, { log: () => undefined });
    const directory = await stage.directory('faults');
    const tokens = Object.fromEntries(ROLES.map((role) => [role, randomBytes(24).toString('base64url')])) as Record<
      RoleName,
      string
    >;
    const principals = ROLES.map((role) => ({ name: role, roles: [role], token_sha256: hashToken(tokens[role]) }));
    const tokensFile = join(directory, 'principals.json');
    await writeFile(tokensFile, JSON.stringify({ principals }));
    const common = {
      WRIT_TOKENS_FILE: tokensFile,
      WRIT_ISSUER: 'https://writ.test',
      WRIT_KEY_ENCRYPTION_KEY: randomBytes(32).toString('base64url'),
      WRIT_DATABASE_CONNECTIONS: '8',
      // Replicas that hold different states stop, and would not be ready at the end.
      WRIT_CHECKPOINT_EVERY: '1s',
      ...options.env,
    };
    const databaseUrl = (await options.before?.(postgres.url)) ?? postgres.url;
    const replicas = await Promise.all(
      Array.from({ length: options.replicas ?? 2 }, async (_, index) => {
        const name = String.fromCharCode(97 + index);
        const replica = await makeReplica(name, join(directory, name), databaseUrl, common, tokens, options.clocks);
        stage.add(`replica ${name}`, () => replica.close());
        return replica;
      }),
    );
    await Promise.all(replicas.map((replica) => replica.up()));
    return new Cluster(postgres, replicas, tokens);
  }

  replica(index: number): Replica {
    return this.replicas[index % this.replicas.length] as Replica;
  }

  /** Ends every fault that the proxies, clocks and signals make, and returns when all replicas serve. */
  async heal(): Promise<void> {
    for (const replica of this.replicas) {
      for (const proxy of [replica.database, replica.network]) {
        proxy.delayMs = 0;
        proxy.refusing = false;
        proxy.mirroring = false;
        proxy.letGo();
        proxy.cut();
      }
      await replica.clock?.set(0);
      await replica.up();
      replica.process.signal('SIGCONT');
    }
    await Promise.all(this.replicas.map((replica) => replica.untilReady()));
  }
}

async function makeReplica(
  name: string,
  dataDir: string,
  databaseUrl: string,
  common: Readonly<Record<string, string>>,
  tokens: Readonly<Record<RoleName, string>>,
  clocks = false,
): Promise<Replica> {
  const url = new URL(databaseUrl);
  const database = await TcpProxy.start(url.host);
  url.host = database.endpoint;
  const network = await TcpProxy.start('127.0.0.1:1');
  const clock = clocks && faketimeMissing === '' ? await makeSteppedClock(`${dataDir}.clock`) : null;
  const env = { ...common, ...clock?.env, WRIT_DATABASE_URL: url.href };
  return new Replica(name, database, network, clock, () => startCoordinatorProcess({ dataDir, env, tokens }), tokens);
}
