import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { createAnnouncer, HintPayloads, type Hints } from '../hints.js';
import { connectRedis, disconnect } from './connection.js';

/** A subscriber hears nothing while nothing is said; only an answer tells that its server is still there. */
const PING_EVERY_MS = 2_000;

/** Hints by PUBLISH and SUBSCRIBE. Installations that share a server have databases, and so channels, of their own. */
export function createRedisHints(url: string, log: (line: string) => void): Hints {
  const payloads = new HintPayloads(randomUUID());
  const publisher = connectRedis(url, 'hints, sending', log);
  const channel = `writ:appended:${publisher.options.db ?? 0}`;
  const announcer = createAnnouncer((namespaces) => {
    const pipeline = publisher.pipeline();
    for (const namespace of namespaces) pipeline.publish(channel, payloads.of(namespace));
    return pipeline.exec();
  });
  let subscriber: Redis | null = null;
  let pings: NodeJS.Timeout | undefined;
  const subscribe = (): Redis => {
    const redis = connectRedis(url, 'hints, listening', log);
    redis.on('ready', () => void redis.subscribe(channel).catch(() => undefined));
    redis.on('message', (_, payload) => payloads.received(payload));
    pings = setInterval(() => void redis.ping().catch(() => undefined), PING_EVERY_MS);
    pings.unref();
    return redis;
  };
  return {
    announce: announcer.announce,
    listen(listener) {
      subscriber ??= subscribe();
      return payloads.listen(listener);
    },
    async close() {
      announcer.close();
      payloads.clear();
      clearInterval(pings);
      for (const redis of [publisher, subscriber]) if (redis !== null) disconnect(redis);
    },
  };
}
