import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SECOND } from '../../src/domain/time.js';
import { parseEvent } from '../../src/services/log-export.js';
import { Tailer } from '../../src/services/tailer.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore } from '../../src/storage/postgres/postgres-store.js';
import { createRedisEventStream } from '../../src/storage/redis/redis-event-stream.js';
import type { Head, Store } from '../../src/storage/store.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';
import { redisMissing, startRedis, type TestRedis } from '../support/redis-server.js';
import { headAfter, sampleBatch, sampleEvents } from '../support/sample-records.js';

// The log in Redis Streams, with the real Redis and Postgres: at least once, in order, by one publisher at a time.

const quiet = () => undefined;
const STREAM_LENGTH = 1_000;

interface Entry {
  readonly revision: number;
  readonly hash: string;
  readonly kind: string;
  readonly event: string;
}

describe.skipIf(redisMissing !== '')('the tailer', () => {
  let redis: TestRedis;
  let reader: Redis;
  let database: TestDatabase;
  let store: Store;
  let raw: pg.Pool;
  let namespace: string;
  let head: Head;
  let identity: Awaited<ReturnType<Store['readGate']>>['identity'];
  const tailers: TestTailer[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    reader = redis.connect();
    database = await createTestDatabase();
    await migrate(database.url, { log: quiet });
    store = createPostgresStore({ url: database.url, notify: false, prepared: PREPARED });
    raw = new pg.Pool({ connectionString: database.url });
  });
  afterAll(async () => {
    await raw?.end();
    await store?.close();
    await database?.drop();
    await redis?.stop();
  });
  beforeEach(async () => {
    namespace = `ns-${randomUUID()}`;
    const first = sampleBatch(namespace, null, {});
    await store.append(first);
    head = headAfter(first.events);
    ({ identity } = await store.readGate(namespace));
  });
  afterEach(async () => {
    for (const tailer of tailers.splice(0)) await tailer.stop();
  });

  /** Another `count` events, one append each batch of 50. */
  async function append(count: number, content: Parameters<typeof sampleEvents>[3] = {}): Promise<void> {
    for (let left = count; left > 0; left -= 50) {
      const events = sampleEvents(namespace, head, Math.min(50, left), content);
      const result = await store.append(sampleBatch(namespace, head, { events, identity }));
      expect(result.outcome).toBe('appended');
      head = headAfter(events);
    }
  }

  interface TestTailer {
    readonly lags: () => ReturnType<Tailer['lags']>;
    /** Its monotonic clock stands still for good: it believes in its lease for ever, as a paused process does. */
    freeze(): void;
    stop(): Promise<void>;
  }

  function startTailer(): TestTailer {
    let frozen: number | null = null;
    const stream = createRedisEventStream(redis.url, STREAM_LENGTH, quiet);
    const tailer = new Tailer({
      replicaId: randomUUID(),
      store,
      stream,
      engines: () => [{ namespace, head, notReady: null }],
      maxLength: STREAM_LENGTH,
      monotonicNow: () => frozen ?? performance.now() * 1_000,
      onPublished: quiet,
      onProblem: quiet,
    });
    tailer.start();
    const started = {
      lags: () => tailer.lags(),
      freeze: () => {
        frozen = performance.now() * 1_000;
      },
      stop: async () => {
        await tailer.stop();
        await stream.close();
      },
    };
    tailers.push(started);
    return started;
  }

  async function entries(): Promise<Entry[]> {
    const found = await reader.xrange(`writ:${namespace}:events`, '-', '+');
    return found.map(([, fields]) => {
      const field = (name: string) => fields[fields.indexOf(name) + 1] ?? '';
      const [hash, kind, event] = ['hash', 'kind', 'event'].map(field) as [string, string, string];
      return { revision: Number(field('revision')), hash, kind, event };
    });
  }
  const revisions = async () => (await entries()).map(({ revision }) => revision);
  const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, index) => first + index);

  it('publishes every event in order, as the export has it but without free text, and says how far behind it is', async () => {
    await append(300);
    const tailer = startTailer();
    await expect.poll(revisions).toEqual(upTo(301));
    await append(1);
    await expect.poll(revisions).toEqual(upTo(302));
    await expect.poll(() => tailer.lags()).toEqual([{ namespace, events: 0 }]);
    const log = await store.readTail(namespace, 0, 1_000);
    expect((await entries()).map(({ hash }) => hash)).toEqual(log.map(({ hash }) => hash));
    const parsed = (await entries()).map(({ event }) => parseEvent(event));
    expect(parsed).toEqual(log.map((event) => ({ value: { ...event, texts: [] } })));
  });

  it('is one of many, and the next goes on where it stopped', async () => {
    const [a, b] = [startTailer(), startTailer()];
    await append(10);
    await expect.poll(revisions).toEqual(upTo(11));
    expect([a, b].filter((tailer) => tailer.lags().length > 0)).toHaveLength(1);
    const [active, standby] = a.lags().length > 0 ? [a, b] : [b, a];
    tailers.splice(tailers.indexOf(active), 1);
    await active.stop();
    await append(10);
    await expect.poll(revisions).toEqual(upTo(21));
    await expect.poll(() => standby.lags()).toEqual([{ namespace, events: 0 }]);
  });

  it('is refused by Redis once another has published, however long it believes in its lease', async () => {
    const paused = startTailer();
    await append(5);
    await expect.poll(revisions).toEqual(upTo(6));
    paused.freeze();
    await raw.query(`UPDATE writ.tailer_lease SET expires_at_us = 0 WHERE namespace = $1`, [namespace]);
    const next = startTailer();
    await append(1);
    await expect.poll(() => next.lags()).toEqual([{ namespace, events: 0 }]);
    // The first still looks, and its token is the older one: Redis has it give up, and nothing came twice.
    await append(5);
    await expect.poll(() => paused.lags()).toEqual([]);
    await expect.poll(revisions).toEqual(upTo(12));
  });

  it('goes on after Redis was restarted, and begins again with the last events when Redis lost everything', async () => {
    startTailer();
    await append(5);
    await expect.poll(revisions).toEqual(upTo(6));
    await redis.restart();
    await append(5);
    await expect.poll(() => revisions().catch(() => [])).toEqual(upTo(11));
    await redis.restart({ empty: true });
    await append(1);
    await expect.poll(() => revisions().catch(() => [])).toEqual(upTo(12));
    await reader.flushall();
    await append(1);
    await expect.poll(revisions).toEqual(upTo(13));
  });

  it('keeps to its length, also when it begins again', async () => {
    await append(1_500);
    startTailer();
    await expect.poll(async () => (await revisions()).at(-1)).toBe(1_501);
    expect((await revisions())[0]).toBe(502);
  });

  it('says that history forked, and from where on it goes another way (F13)', async () => {
    startTailer();
    await append(9);
    await expect.poll(revisions).toEqual(upTo(10));
    // As by a restored backup: the last four commits are gone, and other ones follow.
    const lost = await raw.connect();
    await lost.query(`SET session_replication_role = replica`);
    await lost.query('DELETE FROM writ.event WHERE namespace = $1 AND revision > 6', [namespace]);
    lost.release(true);
    const [sixth] = await store.readTail(namespace, 5, 1);
    head = { revision: 6, hash: sixth?.hash ?? '', time: sixth?.time ?? 0 };
    await append(2);
    await expect.poll(revisions).toEqual([...upTo(10), 6, 7, 8]);
    expect((await entries())[10]).toEqual({ revision: 6, hash: sixth?.hash, kind: 'history_forked', event: '' });
  });

  it('goes on at the cut when the log was cut beyond what it has published, and does not take that for a fork', async () => {
    const first = startTailer();
    await append(9);
    await expect.poll(revisions).toEqual(upTo(10));
    tailers.splice(tailers.indexOf(first), 1);
    await first.stop();
    await append(10);
    await append(1, { kind: 'database_identified' });
    const checkpoint = { hash: (await store.readEvent(namespace, 15))?.hash };
    await append(1, { kind: 'log_cut', body: JSON.stringify({ checkpoint, firstRevision: 16 }) });
    expect(await store.cutLog(namespace, 100)).toBe(15);
    startTailer();
    await expect.poll(revisions).toEqual([...upTo(10), ...upTo(22, 16)]);
  });

  it('holds nothing up while Redis does not answer', async () => {
    const tailer = startTailer();
    await append(1);
    await expect.poll(revisions).toEqual(upTo(2));
    redis.pause();
    await append(3);
    redis.resume();
    await expect.poll(() => revisions().catch(() => [])).toEqual(upTo(5));
    redis.pause();
    const began = performance.now();
    tailers.splice(tailers.indexOf(tailer), 1);
    await tailer.stop();
    expect(performance.now() - began).toBeLessThan((10 * SECOND) / 1_000);
    redis.resume();
  });
});
