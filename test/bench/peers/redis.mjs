import { spawn } from 'node:child_process';
import { Redis } from 'ioredis';
import { endProcess } from '../resources.mjs';
import { find, freePort, ready } from './server.mjs';

/** @import { Resources } from '../resources.mjs' */
/** @import { PeerKind, Work } from '../peers.mjs' */

const ACQUIRE = `
for _, key in ipairs(KEYS) do if redis.call('EXISTS', key) == 1 then return 0 end end
for _, key in ipairs(KEYS) do redis.call('SET', key, ARGV[1], 'PX', 60000) end
return 1`;
const RELEASE = `
for _, key in ipairs(KEYS) do if redis.call('GET', key) ~= ARGV[1] then return 0 end end
return redis.call('DEL', unpack(KEYS))`;

/**
 * One connection, everything on disk before the answer. A cycle is a script that sets 8 keys if none is there, and one
 * that deletes them if they are still its own; a read is a GET. No hierarchy, modes, queue or log.
 * @type {PeerKind}
 */
export const redis = {
  name: 'redis',
  words: { cycle: 'two scripts of 8 keys', read: 'GET' },
  missing: async () => (find('redis-server') === null ? 'no redis-server (Debian: redis-server)' : null),
  start,
};

/** @param {Resources} resources @returns {Promise<Work>} */
async function start(resources) {
  const client = await startRedis(resources);
  client.defineCommand('acquire', { numberOfKeys: 8, lua: ACQUIRE });
  client.defineCommand('release', { numberOfKeys: 8, lua: RELEASE });
  await client.set('read', '1');
  const commands = /** @type {any} */ (client);
  return {
    async cycle(worker, set) {
      const keys = Array.from({ length: 8 }, (_, r) => `item/cycles/${worker}/${set}/${r}`);
      if ((await commands.acquire(...keys, worker)) !== 1) throw new Error('redis: a key was there already');
      if ((await commands.release(...keys, worker)) !== 8) throw new Error('redis: a key was another’s');
    },
    async read() {
      if ((await client.get('read')) !== '1') throw new Error('redis: the key is not there');
    },
  };
}

/** A Redis that keeps what it is told: everything on disk before the answer. @param {Resources} resources */
export async function startRedis(resources) {
  const dir = await resources.directory('redis');
  const port = await freePort();
  const settings = { bind: '127.0.0.1', port: String(port), dir, appendonly: 'yes', appendfsync: 'always', save: '' };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const server = spawn(String(find('redis-server')), args, { stdio: 'ignore' });
  resources.add(() => endProcess(server.pid, 'SIGTERM'));
  const client = new Redis({ host: '127.0.0.1', port });
  client.on('error', () => undefined);
  resources.add(async () => client.disconnect());
  await ready(() => client.ping());
  return client;
}
