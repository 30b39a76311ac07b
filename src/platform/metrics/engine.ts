import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

const DATABASE_BUCKETS = [0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1, 2.5, 5];
const SIZE_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/** Appends and read indexes. */
export interface EngineMetrics {
  /** One append to the log. */
  batchAppended(commands: number, events: number, micros: number): void;
  /** An append that was not taken: `stale`, `time`, `busy`, … */
  appendLost(outcome: string): void;
  /** One read index, and the checks and reads it served. */
  gateRead(served: number, micros: number): void;
}

export function engineMetrics(registry: Registry): EngineMetrics {
  const registers = [registry];
  const commands = new Histogram({
    registers,
    name: 'writ_batch_commands',
    help: 'Commands decided together in one append.',
    buckets: SIZE_BUCKETS,
  });
  const events = new Histogram({
    registers,
    name: 'writ_batch_events',
    help: 'Events written by one append.',
    buckets: SIZE_BUCKETS,
  });
  const duration = new Histogram({
    registers,
    name: 'writ_batch_duration_seconds',
    help: 'How long one append took.',
    buckets: DATABASE_BUCKETS,
  });
  const lost = new Counter({
    registers,
    name: 'writ_appends_lost_total',
    help: 'Appends that were not taken and were decided again, by why.',
    labelNames: ['outcome'],
  });
  const served = new Histogram({
    registers,
    name: 'writ_read_index_served',
    help: 'Checks and reads answered by one read index.',
    buckets: SIZE_BUCKETS,
  });
  const readIndex = new Histogram({
    registers,
    name: 'writ_read_index_duration_seconds',
    help: 'How long one read index took.',
    buckets: DATABASE_BUCKETS,
  });
  return {
    batchAppended(commandCount, eventCount, micros) {
      commands.observe(commandCount);
      events.observe(eventCount);
      duration.observe(micros / 1e6);
    },
    appendLost: (outcome) => lost.inc({ outcome }),
    gateRead(count, micros) {
      served.observe(count);
      readIndex.observe(micros / 1e6);
    },
  };
}

/** Redis, if there is one. */
export interface RedisMetrics {
  /** Events of a log were published to Redis. */
  published(namespace: string, count: number): void;
  /** Of the logs that this replica publishes to Redis: how many events are not there yet. Asked at each scrape. */
  tailer(read: () => readonly { readonly namespace: string; readonly events: number }[]): void;
  /** Whether Redis can be reached; null: none is configured. Asked at each scrape. */
  redis(read: () => boolean | null): void;
}

export function redisMetrics(registry: Registry): RedisMetrics {
  const registers = [registry];
  const published = new Counter({
    registers,
    name: 'writ_tailer_published_total',
    help: 'Events that this replica published to Redis Streams.',
    labelNames: ['namespace'],
  });
  let lags: () => readonly { readonly namespace: string; readonly events: number }[] = () => [];
  let connected = (): boolean | null => null;
  new Gauge({
    registers,
    name: 'writ_tailer_lag_events',
    help: 'Events of a log that are not in its Redis Stream yet, from the replica that publishes it.',
    labelNames: ['namespace'],
    collect() {
      this.reset();
      for (const { namespace, events } of lags()) this.set({ namespace }, events);
    },
  });
  new Gauge({
    registers,
    name: 'writ_redis_connected',
    help: '1: Redis can be reached; 0: it cannot, and everything goes on without; no value: none is configured.',
    labelNames: [],
    collect() {
      const up = connected();
      this.remove();
      if (up !== null) this.set(up ? 1 : 0);
    },
  });
  return {
    published: (namespace, count) => published.inc({ namespace }, count),
    tailer(read) {
      lags = read;
    },
    redis(read) {
      connected = read;
    },
  };
}
