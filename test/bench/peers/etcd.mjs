import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { credentials, loadPackageDefinition } from '@grpc/grpc-js';
import { load } from '@grpc/proto-loader';
import { endProcess } from '../resources.mjs';
import { find, freePort, ready } from './server.mjs';

/** @import { Resources } from '../resources.mjs' */
/** @import { PeerKind, Work } from '../peers.mjs' */

const PROTO = fileURLToPath(new URL('etcd.proto', import.meta.url));

/**
 * One member, one connection. A cycle is a transaction that puts 8 keys if none of them is there, and one that deletes
 * them; a read is a linearizable get. Without etcd's own leases: nothing here would expire, which favours it.
 * @type {PeerKind}
 */
export const etcd = {
  name: 'etcd',
  words: { cycle: 'two transactions of 8 keys', read: 'linearizable get' },
  missing: async () => (find('etcd') === null ? 'no etcd (Debian: etcd-server)' : null),
  start,
};

/** @param {Resources} resources @returns {Promise<Work>} */
async function start(resources) {
  const directory = await resources.directory('etcd');
  const [clientPort, peerPort] = [await freePort(), await freePort()];
  const [client, peer] = [`http://127.0.0.1:${clientPort}`, `http://127.0.0.1:${peerPort}`];
  const flags = {
    name: 'bench',
    'data-dir': directory,
    'listen-client-urls': client,
    'advertise-client-urls': client,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `bench=${peer}`,
    'log-level': 'error',
    // It keeps every version; a bench of minutes makes millions.
    'auto-compaction-mode': 'revision',
    'auto-compaction-retention': '1000',
    'quota-backend-bytes': String(8 * 2 ** 30),
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const server = spawn(String(find('etcd')), args, { stdio: 'ignore', env: { PATH: process.env.PATH ?? '' } });
  resources.add(() => endProcess(server.pid, 'SIGTERM'));
  const kv = await connect(`127.0.0.1:${clientPort}`);
  resources.add(async () => kv.close());
  await ready(() => kv.range({ key: Buffer.from('ready') }));
  await kv.txn({ compare: [], success: [{ request_put: { key: Buffer.from('read'), value: Buffer.from('1') } }] });
  return { cycle: (worker, set) => cycle(kv, worker, set), read: () => read(kv) };
}

/** @typedef {Awaited<ReturnType<typeof connect>>} Kv */

/** @param {string} endpoint */
async function connect(endpoint) {
  const definition = await load(PROTO, { keepCase: true, longs: Number });
  const { KV } = /** @type {any} */ (loadPackageDefinition(definition)).etcdserverpb;
  const client = new KV(endpoint, credentials.createInsecure());
  const call = (/** @type {'range' | 'txn'} */ method) => (/** @type {object} */ request) =>
    /** @type {Promise<any>} */ (
      new Promise((resolve, reject) => {
        client[method](request, (/** @type {Error | null} */ error, /** @type {unknown} */ answer) =>
          error === null ? resolve(answer) : reject(error),
        );
      })
    );
  return { range: call('range'), txn: call('txn'), close: () => client.close() };
}

/** @param {Kv} kv @param {number} worker @param {number} set */
async function cycle(kv, worker, set) {
  const keys = Array.from({ length: 8 }, (_, r) => Buffer.from(`item/cycles/${worker}/${set}/${r}`));
  const value = Buffer.from(`worker ${worker}`);
  await must(kv, {
    compare: keys.map((key) => ({ result: 'EQUAL', target: 'VERSION', key, version: 0 })),
    success: keys.map((key) => ({ request_put: { key, value } })),
  });
  await must(kv, { compare: [], success: keys.map((key) => ({ request_delete_range: { key } })) });
}

/** @param {Kv} kv @param {object} transaction */
async function must(kv, transaction) {
  const { succeeded } = await kv.txn(transaction);
  if (!succeeded) throw new Error('etcd: a key was there already');
}

/** @param {Kv} kv */
async function read(kv) {
  const { count } = await kv.range({ key: Buffer.from('read'), serializable: false });
  if (count !== 1) throw new Error('etcd: the key is not there');
}
