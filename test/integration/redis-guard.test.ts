import { Cluster, type Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { conditionOf } from '../../src/clients/target/conditional-writes.js';
import { GuardRefusedError } from '../../src/clients/target/guard.js';
import { problemOf } from '../../src/clients/target/problem-of.js';
import { redisGuard } from '../../src/clients/target/redis-guard.js';
import { redisMissing, startRedis, type TestRedis } from '../support/redis-server.js';

// What is particular to Redis: scripts that are forgotten, marks that are lost, clusters. The rest is in guards.test.ts.

/** At the end of this millisecond: the floor of marks is a microsecond of the same one, if it was made just now. */
const now = (): bigint => BigInt(Date.now() + 1) * 1_000n;
const stale = expect.objectContaining({ name: 'GuardRefusedError', reason: 'stale_token' });

const write = (token: bigint, exclusive = true, resource = 'release/prod-eu') => ({
  resource,
  action: 'promote',
  token,
  exclusive,
});

/** The change of the documentation: check and change in one step (W1). */
const promote = (observed: number, image: string) => ({
  script: `
    if redis.call('HGET', KEYS[1], 'version') ~= ARGV[1] then return false end
    redis.call('HSET', KEYS[1], 'image', ARGV[2])
    return redis.call('HINCRBY', KEYS[1], 'version', 1)`,
  keys: ['release:prod-eu'],
  args: [observed, image],
});

describe.skipIf(redisMissing !== '')(redisMissing === '' ? 'the guard of Redis' : `skipped: ${redisMissing}`, () => {
  let server: TestRedis;
  let redis: Redis;
  const guard = redisGuard();

  beforeAll(async () => {
    server = await startRedis();
    redis = server.connect();
  });
  afterAll(() => server?.stop());
  beforeEach(async () => {
    await redis.flushall();
    await guard.install(redis);
    await redis.hset('release:prod-eu', { version: 7, image: 'shop:1' });
  });

  it('makes the change and answers what it answers; a version conflict changes nothing', async () => {
    expect(await guard.write(redis, [write(now())], promote(7, 'shop:2'))).toBe(8);
    expect(await guard.write(redis, [write(now())], promote(7, 'shop:3'))).toBeNull();
    expect(await redis.hgetall('release:prod-eu')).toEqual({ version: '8', image: 'shop:2' });
  });

  it('leaves the refusal of a version conflict to the condition, as in Postgres (W1, W4)', async () => {
    const target = { resource: 'release/prod-eu', changeClass: 'shared_pointer', resolver: 'release-owner' } as const;
    const condition = conditionOf(new Headers({ 'if-match': '"6"' }), target);
    const change = promote(Number(condition.observedVersion), 'shop:2');
    expect(await guard.write(redis, [write(now())], change)).toBeNull();
    const refusal = condition.conflict(await redis.hget('release:prod-eu', 'version'));
    expect(problemOf(refusal)).toMatchObject({
      status: 412,
      code: 'version_conflict',
      resource: 'release/prod-eu',
      expected_version: '6',
      current_version: '7',
      conflict_category: 'shared_pointer',
      retryable: false,
      resolver: 'release-owner',
      next: expect.stringContaining('Stop'),
    });
    expect(problemOf(condition.conflict(null))).toMatchObject({ detail: expect.stringContaining('is not there') });
  });

  it('passes an error of the change on', async () => {
    const failing = { script: `return redis.error_reply('MINE no')`, keys: [] };
    await expect(guard.write(redis, [write(now())], failing)).rejects.toThrow('MINE no');
    const broken = { script: `error('oops')`, keys: [] };
    await expect(guard.write(redis, [write(now())], broken)).rejects.toThrow('oops');
  });

  it('sends scripts again that Redis has forgotten', async () => {
    await guard.write(redis, [write(now())], promote(7, 'shop:2'));
    await redis.script('FLUSH');
    expect(await guard.write(redis, [write(now())], promote(8, 'shop:3'))).toBe(9);
    await redis.script('FLUSH');
    await guard.open(redis, { resource: 'release/prod-eu', token: now() });
  });

  it('keeps its marks over a kill of Redis, when Redis persists', async () => {
    const token = now();
    await guard.open(redis, { resource: 'release/prod-eu', token });
    await server.restart();
    await expect(guard.write(redis, [write(token - 1n)], promote(7, 'late'))).rejects.toEqual(stale);
    expect(await guard.write(redis, [write(token)], promote(7, 'shop:2'))).toBe(8);
  });

  it('lets nobody in when its marks are lost, and after it is installed anew none who was granted before', async () => {
    const token = now();
    await guard.open(redis, { resource: 'release/prod-eu', token });
    await server.restart({ empty: true });
    await redis.hset('release:prod-eu', { version: 7, image: 'shop:1' });
    await expect(guard.write(redis, [write(token + 1n)], promote(7, 'x'))).rejects.toMatchObject({ reason: 'no_mark' });
    await expect(guard.open(redis, { resource: 'release/prod-eu', token: now() })).rejects.toMatchObject({
      reason: 'no_mark',
    });
    await guard.install(redis);
    await expect(guard.write(redis, [write(token - 1n)], promote(7, 'late'))).rejects.toEqual(stale);
    await expect(guard.write(redis, [write(token)], promote(7, 'late'))).rejects.toEqual(stale);
    expect(await guard.write(redis, [write(now() + 1_000_000n)], promote(7, 'shop:2'))).toBe(8);
  });

  it('is installed once: a second time moves no floor', async () => {
    const token = now();
    await guard.write(redis, [write(token + 1_000_000n)], promote(7, 'shop:2'));
    const floor = await redis.get('writ-guard:floor');
    await Promise.all(Array.from({ length: 5 }, () => guard.install(redis)));
    expect(await redis.get('writ-guard:floor')).toBe(floor);
  });

  it('says what would lose marks', async () => {
    expect(await guard.dangers(redis)).toEqual([]);
    const careless = await startRedis({ appendonly: 'no', 'maxmemory-policy': 'allkeys-lru' });
    try {
      const dangers = await guard.dangers(careless.connect());
      expect(dangers).toHaveLength(2);
      expect(dangers.join()).toMatch(/allkeys-lru.*appendonly/);
    } finally {
      await careless.stop();
    }
  });

  it('works in a cluster under one hash tag, and is refused by Redis without', async () => {
    const cluster = await startRedis({ 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' });
    try {
      const node = cluster.connect();
      await node.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383');
      await expect.poll(() => node.call('CLUSTER', 'INFO'), { timeout: 30_000 }).toContain('cluster_state:ok');
      const tagged = redisGuard({ prefix: '{releases}:guard:' });
      await tagged.install(node);
      const change = { ...promote(7, 'shop:2'), keys: ['{releases}:prod-eu'] };
      await node.hset('{releases}:prod-eu', { version: 7 });
      const newest = now() + 1_000_000n;
      await tagged.open(node, { resource: 'release', scope: 'subtree', token: newest });
      expect(await tagged.write(node, [write(newest)], change)).toBe(8);
      await expect(tagged.write(node, [write(newest - 1n)], change)).rejects.toBeInstanceOf(GuardRefusedError);
      const clients = new Cluster([{ host: '127.0.0.1', port: cluster.port }]);
      expect(await tagged.write(clients, [write(newest)], { ...change, args: [8, 'shop:3'] })).toBe(9);
      clients.disconnect();
      const elsewhere = { ...change, keys: ['release:prod-eu'] };
      await expect(tagged.write(node, [write(newest)], elsewhere)).rejects.toThrow('CROSSSLOT');
    } finally {
      await cluster.stop();
    }
  });
});
