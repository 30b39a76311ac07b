import type { Config } from '../../platform/config.js';
import { connectRedis, disconnect } from '../../storage/redis/connection.js';
import { reasonOf } from '../commands/migrate.js';
import { ANSWER_MS, type Finding, ok, skipped, warning } from './finding.js';

/** Nothing is lost without it (P11), so it is never a problem. */
export async function redis({ redisUrl }: Config): Promise<Finding> {
  if (redisUrl === null) return skipped('Redis', 'WRIT_REDIS_URL is not set');
  const connection = connectRedis(redisUrl, 'doctor', () => undefined);
  let reason = `no answer within ${ANSWER_MS} ms`;
  connection.on('error', (error: Error) => {
    reason = reasonOf(error);
  });
  try {
    await new Promise<void>((resolve, reject) => {
      connection.once('ready', resolve).once('close', () => reject(new Error(reason)));
      setTimeout(() => reject(new Error(reason)), ANSWER_MS).unref();
    });
    const version = /^redis_version:(\S+)/m.exec(await connection.info('server'))?.[1] ?? 'of an unknown version';
    return ok('Redis', version);
  } catch (error) {
    return warning('Redis', `cannot be used: ${reasonOf(error)}; without it what happens is heard of later`);
  } finally {
    disconnect(connection);
  }
}
