import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { endProcess } from '../resources.mjs';
import { find, freePort, ready } from './server.mjs';

/** @import { Resources } from '../resources.mjs' */
/** @import { PeerKind, Work } from '../peers.mjs' */

/** Where Debian and a downloaded release have the server's classes. */
const CLASSES = ['/usr/share/java/zookeeper.jar', '/opt/zookeeper/lib/zookeeper.jar'];
const CLIENT = 'node-zookeeper-client';
const CONNECT_WITHIN_MS = 30_000;
const ANSWER_WITHIN_MS = 1_000;

/**
 * One server, one session. A cycle is a multi that creates 8 znodes, and one that removes them; a read is getData,
 * answered from the memory of the server one is connected to.
 * @type {PeerKind}
 */
export const zookeeper = {
  name: 'zookeeper',
  words: { cycle: 'two multis of 8 znodes', read: 'local read' },
  async missing() {
    if (find('java') === null) return 'no java (Debian: default-jre-headless)';
    if (classes() === undefined) return 'no zookeeper.jar (Debian: zookeeper)';
    return client() === null ? `no client (${CLIENT} is not in node_modules)` : null;
  },
  start,
};

const classes = () => CLASSES.find((path) => find(path) !== null);

function client() {
  try {
    return createRequire(import.meta.url)(CLIENT);
  } catch {
    return null;
  }
}

/** @param {Resources} resources @returns {Promise<Work>} */
async function start(resources) {
  const directory = await resources.directory('zookeeper');
  const port = await freePort();
  const settings = {
    dataDir: join(directory, 'data'),
    clientPort: port,
    clientPortAddress: '127.0.0.1',
    tickTime: 2_000,
    'admin.enableServer': false,
    'autopurge.purgeInterval': 1,
  };
  const file = join(directory, 'zoo.cfg');
  await writeFile(
    file,
    Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join(''),
  );
  const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
  const args = ['-Xmx1g', '-Dzookeeper.forceSync=yes', '-cp', String(classes()), main, file];
  const server = spawn(String(find('java')), args, { stdio: 'ignore', cwd: directory });
  resources.add(() => endProcess(server.pid, 'SIGTERM'));
  // The client's first attempt must succeed: it does not try again.
  await ready(() => mustServe(port));
  const session = client().createClient(`127.0.0.1:${port}`);
  resources.add(async () => session.close());
  const connected = once(session, 'connected', { signal: AbortSignal.timeout(CONNECT_WITHIN_MS) });
  session.connect();
  await connected;
  const data = Buffer.from('1');
  await done((callback) => session.create('/read', data, callback));
  return {
    async cycle(worker, set) {
      const paths = Array.from({ length: 8 }, (_, r) => `/cycles-${worker}-${set}-${r}`);
      await done((callback) => transaction(session, paths, (t, path) => t.create(path, data)).commit(callback));
      await done((callback) => transaction(session, paths, (t, path) => t.remove(path)).commit(callback));
    },
    read: () => done((callback) => session.getData('/read', callback)),
  };
}

/** Rejects while the server does not say that it serves. @param {number} port */
async function mustServe(port) {
  const socket = createConnection({ host: '127.0.0.1', port });
  // One that comes while the server starts may never be answered.
  socket.setTimeout(ANSWER_WITHIN_MS, () => socket.destroy(new Error('zookeeper: no answer')));
  let answer = '';
  socket.setEncoding('utf8').write('srvr');
  for await (const part of socket) answer += part;
  if (!answer.includes('Mode: standalone')) throw new Error(`zookeeper: ${answer.trim()}`);
}

/** @param {any} session @param {string[]} paths @param {(transaction: any, path: string) => void} add */
function transaction(session, paths, add) {
  const made = session.transaction();
  for (const path of paths) add(made, path);
  return made;
}

/** @param {(callback: (error: Error | null) => void) => void} begin @returns {Promise<void>} */
function done(begin) {
  return new Promise((resolve, reject) => begin((error) => (error ? reject(error) : resolve())));
}
