import type { Redis } from 'ioredis';
import type { EventStream, PublishedEntry, PublishOutcome, StreamCursor } from '../event-stream.js';
import { connectRedis, disconnect } from './connection.js';

/** What is added to a Redis connection by `defineCommand`. */
interface Scripts {
  writOpen(stream: string, cursor: string, token: number): Promise<['opened', string, string] | ['fenced']>;
  writPublish(stream: string, cursor: string, ...args: (string | number)[]): Promise<PublishOutcome>;
}

/**
 * Token and cursor stand beside the stream and change with it, in one script: whoever was replaced is refused, and two
 * that both believe to be the one cannot get in each other's order. A cursor without its stream is one that lost it.
 */
const READ_CURSOR = `
local token, revision, hash = unpack(redis.call('HMGET', KEYS[2], 'token', 'revision', 'hash'))
if redis.call('EXISTS', KEYS[1]) == 0 then revision, hash = false, false end
local fenced = token and tonumber(token) > tonumber(ARGV[1])
`;

const OPEN = `${READ_CURSOR}
if fenced then return {'fenced'} end
redis.call('HSET', KEYS[2], 'token', ARGV[1])
return {'opened', revision or '', hash or ''}`;

/**
 * ARGV: token, revision and hash of the cursor (empty: none), length of the stream, then revision, hash, kind and line
 * of each entry.
 */
const PUBLISH = `${READ_CURSOR}
if fenced then return 'fenced' end
if (revision or '') ~= ARGV[2] or (hash or '') ~= ARGV[3] then return 'moved' end
for i = 5, #ARGV, 4 do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], '*',
    'revision', ARGV[i], 'hash', ARGV[i + 1], 'kind', ARGV[i + 2], 'event', ARGV[i + 3])
end
redis.call('HSET', KEYS[2], 'token', ARGV[1], 'revision', ARGV[#ARGV - 3], 'hash', ARGV[#ARGV - 2])
return 'published'`;

/**
 * The log in Redis Streams: `writ:NAMESPACE:events`, entries with the fields `revision`, `hash`, `kind` and
 * `event`. Where it ends stands in the hash `writ:NAMESPACE:tailer`.
 *
 * @param maxLength about how many entries a stream keeps
 */
export function createRedisEventStream(url: string, maxLength: number, log: (line: string) => void): EventStream {
  const redis = connectRedis(url, 'event streams', log) as Redis & Scripts;
  redis.defineCommand('writOpen', { numberOfKeys: 2, lua: OPEN });
  redis.defineCommand('writPublish', { numberOfKeys: 2, lua: PUBLISH });
  const streamKey = (namespace: string) => `writ:${namespace}:events`;
  const cursorKey = (namespace: string) => `writ:${namespace}:tailer`;
  return {
    get connected() {
      return redis.status === 'ready';
    },
    async open(namespace, token) {
      const [outcome, revision, hash] = await redis.writOpen(streamKey(namespace), cursorKey(namespace), token);
      if (outcome === 'fenced') return 'fenced';
      return revision === '' ? null : { revision: Number(revision), hash };
    },
    publish(namespace, token, after, entries) {
      const values = entries.flatMap(({ cursor, kind, line }) => [cursor.revision, cursor.hash, kind, line]);
      const expected = [after?.revision ?? '', after?.hash ?? ''];
      return redis.writPublish(streamKey(namespace), cursorKey(namespace), token, ...expected, maxLength, ...values);
    },
    async newest(namespace, beforeId, count) {
      const from = beforeId === null ? '+' : `(${beforeId}`;
      const entries = await redis.xrevrange(streamKey(namespace), from, '-', 'COUNT', count);
      return entries.map(([id, fields]): PublishedEntry => ({ id, cursor: cursorOf(fields) }));
    },
    async close() {
      disconnect(redis);
    },
  };
}

function cursorOf(fields: readonly string[]): StreamCursor {
  const field = (name: string) => fields[fields.indexOf(name) + 1] ?? '';
  return { revision: Number(field('revision')), hash: field('hash') };
}
