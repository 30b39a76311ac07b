import { createHash } from 'node:crypto';
import type { Cluster, Redis } from 'ioredis';

/** A connection to the target's own Redis, or to its cluster. */
export type RedisStore = Pick<Redis | Cluster, 'eval' | 'evalsha' | 'info'>;

/**
 * Runs a script by its digest; a Redis that does not know it (after a restart, a fail-over, SCRIPT FLUSH) is sent the
 * text, by which it knows it from then on.
 */
export async function runScript(
  redis: RedisStore,
  script: string,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
): Promise<unknown> {
  try {
    return await redis.evalsha(digestOf(script), keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
    return redis.eval(script, keys.length, ...keys, ...args);
  }
}

const digests = new Map<string, string>();
/** Scripts are parts of a program, and few; one who makes them of data is not helped to fill memory. */
const MAX_DIGESTS = 1_000;

function digestOf(script: string): string {
  const known = digests.get(script);
  if (known !== undefined) return known;
  if (digests.size >= MAX_DIGESTS) digests.clear();
  const digest = createHash('sha1').update(script).digest('hex');
  digests.set(script, digest);
  return digest;
}
