import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Hints } from '../../src/storage/hints.js';
import { createRedisHints } from '../../src/storage/redis/redis-hints.js';
import { redisMissing, startRedis, type TestRedis } from '../support/redis-server.js';

describe.skipIf(redisMissing !== '')('hints by Redis', () => {
  let redis: TestRedis;
  const open: Hints[] = [];
  const logged: string[] = [];

  beforeAll(async () => {
    redis = await startRedis({ requirepass: '' });
  });
  afterAll(() => redis?.stop());
  afterEach(async () => {
    for (const hints of open.splice(0)) await hints.close();
    logged.splice(0);
  });

  function hints(url = redis.url): Hints {
    const made = createRedisHints(url, (line) => logged.push(line));
    open.push(made);
    return made;
  }

  /** A hint may be lost at any time, so it is given again until it is heard. */
  async function heardBy(listener: Hints, from: Hints, namespace = 'default'): Promise<string[]> {
    const heard: string[] = [];
    const unlisten = listener.listen((told) => heard.push(told));
    await expect
      .poll(() => {
        from.announce(namespace);
        return heard.length;
      })
      .toBeGreaterThan(0);
    unlisten();
    return heard;
  }

  it('says what others appended, and not what one appended oneself', async () => {
    const [a, b] = [hints(), hints()];
    const own: string[] = [];
    a.listen((namespace) => own.push(namespace));
    expect(new Set(await heardBy(b, a))).toEqual(new Set(['default']));
    expect(own).toEqual([]);
  });

  it('keeps installations apart that use other databases of one server', async () => {
    const [here, there] = [hints(`${redis.url}/1`), hints(`${redis.url}/2`)];
    const [listener, listenerThere] = [hints(`${redis.url}/1`), hints(`${redis.url}/2`)];
    const heard: string[] = [];
    listener.listen((namespace) => heard.push(namespace));
    // It listens before anything is said there, and hears of here what is said after that.
    await heardBy(listener, here);
    await heardBy(listenerThere, there, 'elsewhere');
    await heardBy(listener, here);
    expect(new Set(heard)).toEqual(new Set(['default']));
  });

  it.each([
    ['restarted', () => redis.restart()],
    [
      'stopped for longer than an answer may take',
      async () => {
        redis.pause();
        await expect.poll(() => logged.some((line) => line.includes('cannot be reached'))).toBe(true);
        redis.resume();
      },
    ],
  ])('hears again after Redis was %s', async (_, disturb) => {
    const [a, b] = [hints(), hints()];
    await heardBy(b, a);
    await disturb();
    await heardBy(b, a);
  });

  it('announces into nothing without waiting, failing or telling the password', async () => {
    const nowhere = hints('redis://:s3cret-pass@127.0.0.1:1');
    nowhere.listen(() => undefined);
    nowhere.announce('default');
    await expect.poll(() => logged.length).toBeGreaterThan(0);
    expect(logged.join('\n')).not.toContain('s3cret');
  });
});
