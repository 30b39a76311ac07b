import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { toRecord } from '../../src/cli/event-form.js';
import { connectWrit } from '../../src/clients/common/connect.js';
import { WritError } from '../../src/clients/common/errors.js';
import type { EventRecord } from '../../src/storage/store.js';
import { startPrivatePostgres } from '../support/postgres.js';
import { Caller } from './calls.js';
import { check } from './checkers/index.js';
import { Cluster, type ClusterOptions, type Replica } from './cluster.js';
import type { History, Violation } from './history.js';
import { Recorder } from './recorder.js';
import { pushedTold } from './seen.js';
import type { Stage } from './stage.js';
import { Streams } from './streams.js';
import { Target } from './target.js';
import { FenceWatch, missedBy } from './watch.js';

/** What a scenario came to. */
export interface Outcome {
  readonly answers: number;
  readonly violations: readonly Violation[];
  readonly history: History;
}

export interface WorldOptions extends ClusterOptions {
  /** Default: `MAP`. */
  readonly map?: string;
  /** The target's data is on a server of its own: it keeps what the coordinator's loses. */
  readonly ownTarget?: boolean;
  /** Every replica's fences are followed, and what was told is held against the log (F21). */
  readonly watches?: boolean;
}

/** For a watch to tell what the log has at the end, on a busy machine. */
const TOLD_WITHIN_MS = 60_000;

/** A cluster, what is recorded of it, and what a scenario expects of it besides the promises. */
export class World {
  private readonly unmet: Violation[] = [];
  private readonly streams = new Map<Replica, Streams>();
  private readonly delegations: ((replica: Replica) => void)[] = [];
  private watches: readonly FenceWatch[] = [];

  private constructor(
    readonly stage: Stage,
    readonly cluster: Cluster,
    readonly recorder: Recorder,
    readonly target: Target,
    private readonly name: string,
    private readonly endClock: () => Promise<void>,
  ) {}

  static async open(stage: Stage, name: string, options: WorldOptions = {}): Promise<World> {
    const cluster = await Cluster.start(stage, options);
    const recorder = new Recorder();
    const endClock = stage.add('the clock', recorder.watchClock(cluster.postgres.url));
    const server = options.ownTarget === true ? await startPrivatePostgres() : cluster.postgres;
    if (server !== cluster.postgres) stage.add("the target's Postgres", () => server.stop());
    const target = await Target.open(stage, recorder, server.url);
    const world = new World(stage, cluster, recorder, target, name, endClock);
    const { map = MAP } = options;
    const admin = world.caller('admin', 60_000);
    // Judging a map is bounded in time, which a busy machine may use up.
    for (let tries = 0; (await admin.putMap(cluster.replica(0), map, 0)) === null; tries += 1)
      if (tries === 3) throw new Error(`the map was not put: ${JSON.stringify(recorder.calls.at(-1)?.fault)}`);
    if (options.watches === true) world.watches = cluster.replicas.map((replica) => FenceWatch.open(stage, replica));
    return world;
  }

  caller(name: string, timeoutMs?: number): Caller {
    return new Caller(this.recorder, name, timeoutMs);
  }

  /** Asks on streams what can be asked there. */
  streamer(name: string): Caller {
    return new Caller(this.recorder, name, undefined, (replica) => this.streamsOf(replica));
  }

  private streamsOf(replica: Replica): Streams {
    const streams =
      this.streams.get(replica) ??
      new Streams(replica, (leaseId, event) => {
        const told = pushedTold(event);
        if (told !== null) this.recorder.saw('pushed', 'session', replica.name, { leaseId }, told);
      });
    this.streams.set(replica, streams);
    return streams;
  }

  /** A part of a lease is being asked for at this replica, or given back. */
  delegates(replica: Replica): void {
    for (const tell of this.delegations.splice(0)) tell(replica);
  }

  /** The replica at which that happens next; null: nowhere in time. */
  nextDelegation(withinMs: number): Promise<Replica | null> {
    return new Promise((resolve) => {
      const tell = (replica: Replica): void => {
        clearTimeout(timer);
        resolve(replica);
      };
      const timer = setTimeout(() => {
        this.delegations.splice(this.delegations.indexOf(tell), 1);
        resolve(null);
      }, withinMs);
      this.delegations.push(tell);
    });
  }

  /** What the scenario itself promises, by its name in the catalogue. */
  expect(holds: boolean, what: string, calls: readonly number[] = []): void {
    if (!holds) this.unmet.push({ promise: this.name, what, calls, revisions: [], about: [] });
  }

  /** Ends every fault, reads the log, and judges all that happened. */
  async judge(): Promise<Outcome> {
    await this.cluster.heal();
    await this.caller('auditor').checkpoint(this.cluster.replica(0));
    const log = await this.exportLog();
    await this.endClock();
    const history = this.recorder.history(log);
    const violations = [...this.unmet, ...check(history), ...(await this.missed(log))];
    return { answers: this.recorder.answers, violations, history };
  }

  /** Changes of fences that watches told one by one, not by snapshots. */
  get told(): number {
    return this.watches
      .flatMap(({ spans }) => spans)
      .filter(({ isSnapshot }) => !isSnapshot)
      .reduce((sum, { told }) => sum + told.size, 0);
  }

  /** What watches were not told of the log. */
  private async missed(log: readonly EventRecord[]): Promise<Violation[]> {
    const head = log.at(-1)?.revision ?? 0;
    const missed = this.watches.map(async (watch) => {
      const { name } = watch.replica;
      const reached = await watch.until(head, TOLD_WITHIN_MS);
      await watch.close();
      const what = `the watch at ${name} has come to revision ${reached} only, the log to ${head}`;
      const behind = reached < head ? [{ promise: 'F21', what, calls: [], revisions: [], about: [] }] : [];
      return [...behind, ...missedBy(name, watch.spans, log)];
    });
    return (await Promise.all(missed)).flat();
  }

  /** The whole log; asked for again while a busy replica cannot. */
  async exportLog(): Promise<EventRecord[]> {
    const replica = this.cluster.replica(0);
    const client = connectWrit({ endpoint: replica.process.grpc, token: this.cluster.tokens.auditor });
    try {
      for (const until = performance.now() + 60_000; ; await pause(500)) {
        const log: EventRecord[] = [];
        try {
          for await (const { events } of client.audit.exportEvents({})) log.push(...events.map(toRecord));
          return log;
        } catch (error) {
          if (!(error instanceof WritError) || !error.retryable || performance.now() > until) throw error;
        }
      }
    } finally {
      client.close();
    }
  }

  /** One statement on the database itself, past all proxies. */
  async sql<T extends object>(statement: string, values: unknown[] = []): Promise<T[]> {
    const client = new pg.Client({ connectionString: this.cluster.postgres.url });
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query<T>(statement, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Asks again until it is so; what was seen last, whether it is or not. */
  async until<T>(ask: () => Promise<T>, holds: (seen: T) => boolean, withinMs = 20_000): Promise<T> {
    for (const until = performance.now() + withinMs; ; await pause(30)) {
      const seen = await ask();
      if (holds(seen) || performance.now() > until) return seen;
    }
  }
}

/**
 * What the workload works on: leased and optimistic actions, targets that do not ask but verify or follow, tracked writes, two kinds that
 * the second version ties, and one that the workload leaves to scenarios. Lives are short, so that expiries happen.
 */
export const MAP = `
version: 1
profiles:
  short:
    ttl: 3s
    max_ttl: 10s
    max_hold: 20s
    actions:
      set: { access: write, concurrency: lease, change_class: shared_pointer }
      patch: { access: write, change_class: derived }
kinds:
  - { pattern: "item/{name...}", extends: short }
  - { pattern: "loc/{name}", extends: short, validation: local, ttl: 9s }
  - { pattern: "seen/{name}", extends: short, validation: view, max_view_age: 1s, ttl: 6s }
  - { pattern: "token/{tenant}", extends: short }
  - { pattern: "config/{tenant}", extends: short }
  - { pattern: "kept/{name}", extends: short, max_hold: 30m }
  - pattern: "job/{name}"
    ttl: 3s
    max_ttl: 10s
    max_hold: 20s
    actions: { set: { access: write, concurrency: lease, change_class: shared_pointer, tracked: true } }
`;

export const TIED_MAP = `${MAP}
conflicts: [ { between: ["token/{tenant}", "config/{tenant}"], because: "the config embeds the token" } ]
`;
