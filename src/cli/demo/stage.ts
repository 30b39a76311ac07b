import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { connectWrit, type WritClient } from '../../clients/common/connect.js';
import { toTimestamp } from '../../clients/common/time.js';
import { wallClockMicros } from '../../platform/clock.js';
import { EXIT } from '../../platform/lifecycle.js';
import { freePort } from '../../storage/postgres/embedded/port.js';
import { startEmbeddedPostgres } from '../../storage/postgres/embedded.js';
import type { AcquireAnswer, AgentCommand, AgentConfig, Condition } from './agent.js';
import { DEMO_MAP } from './conflict-map.js';
import { type HttpAnswer, sendJson } from './http.js';
import { type Child, type Ended, Processes } from './processes.js';
import { runSecret } from './target-app.js';
import type { TargetConfig, TargetReady } from './target-service.js';

/** What the story is played on: the coordinator, the target service, and agent runs, each an operating-system process. */

const ROLES = ['admin', 'runner', 'target', 'operator', 'approver', 'auditor'] as const;

type Role = (typeof ROLES)[number];

const tokensForm = z.object(Object.fromEntries(ROLES.map((role) => [role, z.string()])) as Record<Role, z.ZodString>);
const readyForm = z.object({ event: z.literal('ready'), grpc: z.string() });

const START_ATTEMPTS = 5;
const AUTHORITY_MICROS = 600_000_000;
const TARGET_DATABASE = { shared_buffers: '16MB', max_connections: '20', max_wal_size: '64MB', min_wal_size: '32MB' };

/** What a run may ask for, and what it is for. */
export interface Contract {
  readonly purpose: string;
  readonly allowed: readonly { readonly pattern: string; readonly actions: readonly string[] }[];
}

/** An agent's process and its run. */
export class AgentRun {
  constructor(
    readonly name: string,
    readonly runId: string,
    readonly child: Child,
  ) {}

  acquire(resource: string, action: string, options: { ttlMs: number; waitMs?: number }): Promise<AcquireAnswer> {
    const resources = [{ resource, actions: [action] }];
    const { ttlMs, waitMs = 0 } = options;
    return this.ask<AcquireAnswer>({ do: 'acquire', resources, purpose: `${action} ${resource}`, ttlMs, waitMs });
  }

  open(resource: string): Promise<HttpAnswer> {
    return this.ask<HttpAnswer>({ do: 'open', resource });
  }

  read(path: string): Promise<HttpAnswer> {
    return this.ask<HttpAnswer>({ do: 'read', path });
  }

  write(
    resource: string,
    change: { path?: string; condition: Condition; body: unknown; requestId: string },
  ): Promise<HttpAnswer> {
    return this.ask<HttpAnswer>({ do: 'write', resource, path: resource, ...change });
  }

  release(): Promise<{ readonly released: string }> {
    return this.ask({ do: 'release' });
  }

  private ask<Answer>(command: AgentCommand): Promise<Answer> {
    return this.child.ask<Answer>(command);
  }
}

export class Stage {
  private readonly clients = new Map<Role, WritClient>();
  private readonly runKey = randomBytes(32).toString('base64url');
  private tokens: Readonly<Record<Role, string>> | undefined;
  private grpcPort = 0;
  private coordinatorChild: Child | undefined;
  private targetChild: Child | undefined;
  private targetUrl = '';
  private targetPostgresPid = 0;

  private constructor(
    readonly directory: string,
    readonly processes: Processes,
  ) {}

  static async open(): Promise<Stage> {
    const directory = await mkdtemp(join(tmpdir(), 'writ-demo-'));
    const stage = new Stage(directory, new Processes(directory));
    await stage.processes.openCaretaker();
    return stage;
  }

  /** Starts the coordinator and the target service; tells who is there. */
  async start(): Promise<Readonly<Record<string, string>>> {
    // Settled, not only resolved: whoever closes the stage must not do so in the middle of a start.
    const [database, coordinator] = await Promise.allSettled([this.startTargetDatabase(), this.startCoordinator()]);
    if (coordinator.status === 'rejected') throw coordinator.reason;
    if (database.status === 'rejected') throw database.reason;
    const target = await this.startTarget(database.value);
    const { version } = await this.as('admin').conflictMap.putConflictMap({
      document: DEMO_MAP,
      expectedVersion: 0n,
      reason: 'the demo',
    });
    return {
      coordinator: `pid ${this.coordinator.pid}, gRPC on ${this.endpoint}, on an embedded Postgres of its own`,
      'target service': `pid ${target.pid}, ${this.targetUrl}, on another Postgres (pid ${this.targetPostgresPid}) with Writ's guard in it`,
      'conflict map': `version ${version}`,
    };
  }

  get coordinator(): Child {
    if (this.coordinatorChild === undefined) throw new Error('the coordinator was not started');
    return this.coordinatorChild;
  }

  private get dataDir(): string {
    return join(this.directory, 'coordinator');
  }

  private get endpoint(): string {
    return `127.0.0.1:${this.grpcPort}`;
  }

  /** A client of the coordinator as the principal with this role. */
  as(role: Role): WritClient {
    const client = this.clients.get(role) ?? connectWrit({ endpoint: this.endpoint, token: this.tokenOf(role) });
    this.clients.set(role, client);
    return client;
  }

  /** Starts the same coordinator again: same data, same port. */
  async restartCoordinator(): Promise<void> {
    await this.launchCoordinator();
  }

  /** Creates a run and starts the process that is to do its work. */
  async startAgent(name: string, { purpose, allowed }: Contract): Promise<AgentRun> {
    const { run } = await this.as('runner').run.createRun({
      purpose,
      initiator: 'the person who started the demo',
      allowed: allowed.map(({ pattern, actions }) => ({ pattern, actions: [...actions] })),
      authorityEndsAt: toTimestamp(wallClockMicros() + AUTHORITY_MICROS),
    });
    if (run === undefined) throw new Error('CreateRun answered without a run');
    const child = await this.processes.start({ name, program: './agent.js' });
    const config: AgentConfig = {
      coordinator: this.endpoint,
      token: this.tokenOf('runner'),
      runId: run.runId,
      targetUrl: this.targetUrl,
      runSecret: runSecret(this.runKey, run.runId),
    };
    await child.configure(config);
    return new AgentRun(name, run.runId, child);
  }

  /** What the target service has, or says, as somebody who only looks. */
  look(path: string): Promise<HttpAnswer> {
    const headers = { authorization: `Bearer ${runSecret(this.runKey, 'onlooker')}` };
    return sendJson(new URL(`/${path}`, this.targetUrl), 'GET', headers);
  }

  /** Runs a command of the `writ` CLI, as one would by hand beside the coordinator's data directory. */
  command(name: string, [program = '', ...args]: readonly string[]): Promise<Ended> {
    return this.processes.run({
      name: `writ ${name}`,
      program,
      args,
      environment: { WRIT_ENDPOINT: this.endpoint, WRIT_DATA_DIR: this.dataDir },
    });
  }

  /** Asks the services to end, and waits until they have. */
  async endServices(): Promise<void> {
    await Promise.all(this.services().map((child) => child.end()));
  }

  /** How the services ended. */
  endings(): readonly (string | undefined)[] {
    return this.services().map((child) => child.ending);
  }

  /** What a service that ended unexpectedly had to say. */
  async trouble(): Promise<string> {
    // SIGKILL is part of the story, and so is ending well.
    const expected = [undefined, 'SIGKILL', 'exit code 0'];
    const ended = this.services().filter((child) => !expected.includes(child.ending));
    const said = await Promise.all(
      ended.map(async (child) => `${child.name} has ended: ${child.ending}\n${await child.logTail()}`),
    );
    return said.join('\n');
  }

  /** Ends everything, however far `story`, which plays here, has come. Safe to repeat. */
  async close(story: Promise<unknown>): Promise<void> {
    for (const client of this.clients.values()) client.close();
    await this.processes.endChildren();
    // With nobody left to answer it fails soon; a Postgres in the middle of its start is let finish that, to be found.
    await story.catch(() => undefined);
    await this.processes.end();
  }

  private services(): readonly Child[] {
    return [this.coordinatorChild, this.targetChild].filter((child) => child !== undefined);
  }

  // ------------------------------------------------------------------------------------------------------ the parts

  private async startTargetDatabase(): Promise<string> {
    const server = await startEmbeddedPostgres({
      dataDir: join(this.directory, 'target-postgres'),
      settings: TARGET_DATABASE,
    });
    this.targetPostgresPid = server.pid;
    return server.url;
  }

  private async startTarget(databaseUrl: string): Promise<Child> {
    const child = await this.processes.start({ name: 'target service', program: './target-service.js' });
    this.targetChild = child;
    const config: TargetConfig = {
      databaseUrl,
      coordinator: this.endpoint,
      token: this.tokenOf('target'),
      runKey: this.runKey,
    };
    this.targetUrl = (await child.configure<TargetReady>(config)).url;
    return child;
  }

  private async startCoordinator(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      // One that nobody takes while the coordinator is down for a moment.
      this.grpcPort = await freePort();
      try {
        return await this.launchCoordinator();
      } catch (error) {
        // Somebody took the port between the look and the use.
        const portTaken = this.coordinatorChild?.ending === `exit code ${EXIT.port}`;
        if (!portTaken || attempt === START_ATTEMPTS) throw error;
      }
    }
  }

  private async launchCoordinator(): Promise<void> {
    const child = await this.processes.start({
      name: 'coordinator',
      program: '../../main.js',
      environment: { WRIT_GRPC_PORT: String(this.grpcPort), WRIT_HTTP_PORT: '0', WRIT_DATA_DIR: this.dataDir },
    });
    this.coordinatorChild = child;
    readyForm.parse(await child.nextLine<unknown>());
    this.tokens = tokensForm.parse(JSON.parse(await readFile(join(this.dataDir, 'dev-tokens.json'), 'utf8')));
  }

  private tokenOf(role: Role): string {
    const token = this.tokens?.[role];
    if (token === undefined) throw new Error('the coordinator has not told its tokens yet');
    return token;
  }
}
