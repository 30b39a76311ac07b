import { redisGuard } from '../../src/clients/target/redis-guard.js';
import type { GuardHarness } from './guard-conformance.js';
import { startRedis } from './redis-server.js';

/** Sets every key of KEYS. */
const SET = `for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1]) end`;

export async function redisHarness({ splitInTwo = false } = {}): Promise<GuardHarness> {
  const server = await startRedis();
  const redis = server.connect();
  const guard = redisGuard();
  const document = (resource: string) => `document:${resource}`;
  const change = (resources: readonly string[], body: string) => ({
    script: SET,
    keys: resources.map(document),
    args: [body],
  });
  return {
    open: (...opens) => guard.open(redis, ...opens),
    async write(writes, body) {
      await guard.write(
        redis,
        writes,
        change(
          writes.map(({ resource }) => resource),
          body,
        ),
      );
    },
    read: async (resource) => (await redis.get(document(resource))) ?? '',
    async holder(resource, scope) {
      const mark = await redis.hgetall(`writ-guard:${scope}:${resource}`);
      if (mark.token === undefined) return null;
      return {
        token: BigInt(mark.token),
        runId: mark.run_id as string,
        action: mark.action as string,
        expiresAt: mark.expires_at === undefined ? null : new Date(mark.expires_at),
      };
    },
    async delay(write, body) {
      if (splitInTwo) {
        await guard.write(redis, [write], { script: 'return true', keys: [] });
        return {
          async finish() {
            await redis.set(document(write.resource), body);
          },
        };
      }
      // The script is on its way, held up before Redis.
      const slow = server.connect();
      await slow.ping();
      slow.stream.cork();
      const writing = guard.write(slow, [write], change([write.resource], body));
      writing.catch(() => undefined);
      return {
        async finish() {
          slow.stream.uncork();
          await writing;
        },
      };
    },
    async answeredOrWaiting(call) {
      // A script waits for nobody.
      await call;
    },
    async reset() {
      await redis.flushall();
      await guard.install(redis);
    },
    end: () => server.stop(),
  };
}
