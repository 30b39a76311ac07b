import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Role } from '../../src/auth/principal.js';
import type { RequestedEntry } from '../../src/domain/entry.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics, type Metrics } from '../../src/platform/metrics.js';
import type { AcquireInput, AcquireOutcome, CallContext, WritApi } from '../../src/services/api.js';
import { createServices, type Services, type ServicesOptions } from '../../src/services/index.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore } from '../../src/storage/postgres/postgres-store.js';
import { createRedisEventStream } from '../../src/storage/redis/redis-event-stream.js';
import { createRedisHints } from '../../src/storage/redis/redis-hints.js';
import type { Store } from '../../src/storage/store.js';
import { PREPARED } from './postgres.js';

/** A coordinator's services in this process, over a real database: what a replica is but for its sockets. */
export interface TestReplica {
  readonly api: WritApi;
  readonly services: Services;
  readonly store: Store;
  readonly metrics: Metrics;
  stop(): Promise<void>;
}

export interface TestReplicaOptions {
  readonly url: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Wraps the store: to lose replies, to delay, to count. */
  readonly wrap?: (store: Store) => Store;
  readonly dataDir?: string;
  readonly prepared?: boolean;
  /** Encrypts signing keys; the same for replicas of one installation. Default: one for all; null: credentials are off. */
  readonly keyEncryptionKey?: Uint8Array | null;
  /** Databases beside it that namespaces can live in: URLs by name. */
  readonly databases?: Readonly<Record<string, string>>;
  /** Carries hints and the published logs. */
  readonly redisUrl?: string;
  /** What gateways are asked by. */
  readonly routes?: ServicesOptions['routes'];
}

/** `iss` of every replica here. */
export const ISSUER = 'https://writ.test';
export const KEY_ENCRYPTION_KEY = new Uint8Array(32).fill(7);

export async function startReplica(options: TestReplicaOptions): Promise<TestReplica> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), 'writ-replica-'));
  const config = readConfig({ WRIT_DATA_DIR: dataDir, WRIT_MAX_CLOCK_SKEW: '1s', ...options.env });
  const log = createLogger('silent');
  const { redisUrl } = options;
  const quiet = () => undefined;
  await migrate(options.url, { log: () => undefined });
  const own = createPostgresStore({
    url: options.url,
    maxConnections: 5,
    prepared: options.prepared ?? PREPARED,
    ...(redisUrl === undefined ? {} : { hints: createRedisHints(redisUrl, quiet) }),
  });
  const others = new Map<string, Store>();
  for (const [name, url] of Object.entries(options.databases ?? {})) {
    await migrate(url, { log: quiet }).catch(quiet);
    others.set(name, createPostgresStore({ url, maxConnections: 5, prepared: options.prepared ?? PREPARED }));
  }
  const store = options.wrap?.(own) ?? own;
  const metrics = createMetrics();
  const services = createServices({
    store,
    databases: others,
    replicaId: `test-${Math.random()}`,
    config,
    log,
    metrics,
    issuer: ISSUER,
    keyEncryptionKey: options.keyEncryptionKey === undefined ? KEY_ENCRYPTION_KEY : options.keyEncryptionKey,
    ...(options.routes === undefined ? {} : { routes: options.routes }),
    stream: redisUrl === undefined ? null : createRedisEventStream(redisUrl, config.redisStreamLength, quiet),
  });
  await services.start();
  return {
    api: services.api,
    services,
    store,
    metrics,
    async stop() {
      await services.stop();
      await Promise.all([own, ...others.values()].map((opened) => opened.close()));
      if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** A call of a principal; names of principals are the roles they have unless said otherwise. */
export function as(role: Role, more: Partial<CallContext> & { name?: string } = {}): CallContext {
  const { name, ...rest } = more;
  return {
    principal: { name: name ?? role, roles: new Set([role]) },
    namespace: '',
    requestId: 'test',
    deadlineMs: null,
    signal: new AbortController().signal,
    ...rest,
  };
}

let serial = 0;
export const freshKey = (): string => `key-${++serial}`;

export function write(resource: string, ...actions: string[]): RequestedEntry {
  return { resource, access: 'write', scope: 'exact', actions, observedVersion: null };
}

export async function createRun(
  api: WritApi,
  more: {
    allowed?: { pattern: string; actions: string[] }[];
    context?: CallContext;
    forSeconds?: number;
    parentRunId?: string;
  } = {},
): Promise<string> {
  const { value } = await api.createRun(more.context ?? as('runner'), {
    purpose: 'a test',
    goalRevision: '',
    initiator: '',
    initiatorToken: '',
    parentRunId: more.parentRunId ?? '',
    allowed: more.allowed ?? [{ pattern: '{all...}', actions: ['*'] }],
    authorityEndsAt: Math.floor(Date.now() * 1_000) + (more.forSeconds ?? 3_600) * SECOND,
    escalation: [],
    idempotencyKey: freshKey(),
  });
  return value.run.runId;
}

export function acquireInput(
  runId: string,
  entries: readonly RequestedEntry[],
  more: Partial<AcquireInput> = {},
): AcquireInput {
  return {
    runId,
    delegatedFrom: '',
    entries,
    task: null,
    resourceSet: null,
    ttl: null,
    wait: 0,
    idempotencyKey: freshKey(),
    purpose: '',
    requestId: '',
    audiences: [],
    ...more,
  };
}

/** Acquires, or fails the test with the refusal. */
export async function granted(
  api: WritApi,
  runId: string,
  entries: readonly RequestedEntry[],
  more: Partial<AcquireInput> = {},
  context = as('runner'),
): Promise<Lease> {
  const { value } = await api.acquireWriteSet(context, acquireInput(runId, entries, more));
  return leaseOf(value);
}

export function leaseOf(outcome: AcquireOutcome): Lease {
  if (outcome.kind !== 'lease') throw new Error(`expected a lease, got ${JSON.stringify(outcome)}`);
  return outcome.lease;
}

export async function putMap(api: WritApi, document: string, expectedVersion = 0): Promise<number> {
  const { value } = await api.putConflictMap(as('admin'), {
    document,
    expectedVersion,
    reason: 'a test',
    onLiveConflict: 'refuse',
  });
  return value.version;
}

/** What a check of one write answers. */
export async function check(
  api: WritApi,
  lease: Lease,
  more: { resource?: string; action?: string; token?: number; runId?: string; version?: string | null } = {},
) {
  const entry = lease.entries[0];
  const { value, revision } = await api.checkFence(as('target'), {
    leaseId: lease.leaseId,
    presenterRunId: more.runId ?? lease.runId,
    writes: [
      {
        resource: more.resource ?? entry?.resource ?? '',
        action: more.action ?? entry?.actions[0] ?? '',
        token: more.token ?? entry?.token ?? 0,
        observedVersion: more.version ?? null,
      },
    ],
    requestId: '',
  });
  return { ...value, reason: value.results[0]?.reason, revision };
}

/**
 * Resolves when the condition holds; fails with what was last seen. A replica that the machine gave no time for a while says
 * so, and is asked again.
 */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  holds: (seen: T) => boolean,
  withinMs = 20_000,
): Promise<T> {
  const until = performance.now() + withinMs;
  for (;;) {
    const answer = await answerTo(probe);
    if ('seen' in answer && holds(answer.seen)) return answer.seen;
    if (performance.now() > until) {
      if ('stale' in answer) throw answer.stale;
      throw new Error(`still not so after ${withinMs} ms: ${JSON.stringify(answer.seen)}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function answerTo<T>(probe: () => Promise<T> | T): Promise<{ readonly seen: T } | { readonly stale: unknown }> {
  try {
    return { seen: await probe() };
  } catch (error) {
    if ((error as { reason?: unknown }).reason !== 'REPLICA_STALE') throw error;
    return { stale: error };
  }
}
