import { Redis } from 'ioredis';

const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 5_000;
const CONNECT_MS = 5_000;
/** An answer that takes longer counts as none: a stopped or cut-off server must not hold anything up. */
const ANSWER_MS = 3_000;

/**
 * A connection that fails at once while there is none, instead of queueing: Redis is an accelerator, and nothing waits
 * for it (P11). It is made again for ever, later and later, with jitter.
 *
 * @param url `redis://` or `rediss://`, which may carry a password: it is never logged
 * @param log told when the connection is lost and found again, without secrets
 */
export function connectRedis(url: string, purpose: string, log: (line: string) => void): Redis {
  const redis = new Redis(url, {
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    commandTimeout: ANSWER_MS,
    socketTimeout: ANSWER_MS,
    keepAlive: 1_000,
    retryStrategy: (times) => Math.min(RETRY_FIRST_MS * 2 ** Math.min(times, 10), RETRY_MAX_MS) * (0.5 + Math.random()),
  });
  let lost = false;
  let reason = '';
  redis.on('error', (error: Error) => {
    reason = error.message;
  });
  redis.on('ready', () => {
    if (lost) log(`Redis is back (${purpose})`);
    lost = false;
  });
  redis.on('close', () => {
    if (!lost) log(`Redis cannot be reached (${purpose})${reason === '' ? '' : `: ${reason}`}; trying again`);
    lost = true;
  });
  return redis;
}

/** Ends a connection, whatever state it is in. */
export function disconnect(redis: Redis): void {
  redis.removeAllListeners('close');
  redis.disconnect();
}
