import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';

/**
 * What Writ is compared with, side by side in one run, each with its own fsync on. A peer is measured when its server
 * and a Node client are installed and `measure` is written; else the bench says what was missing.
 *
 * To add one: give it `measure`, which starts the server by its binary on a free loopback port in a directory of the
 * resources, registers its end there, and returns what the same work as Writ's rows took. `peerOf` finds the figure by
 * the name of the row, and the row then shows the ratio and judges its target.
 */

/**
 * @typedef {object} PeerKind
 * @property {string} name
 * @property {string[]} binaries  the first that is there is started
 * @property {string} client      package that speaks to it
 * @property {((binary: string, launcher: import('./coordinator.mjs').Launcher) => Promise<PeerFigure[]>) | null} measure
 */

/** `row`: the name of Writ's row that it stands beside. @typedef {{ row: string, value: number }} PeerFigure */

/**
 * @typedef {object} Peer
 * @property {string} name
 * @property {string | null} binary
 * @property {string | null} notMeasured  why
 * @property {PeerFigure[]} figures
 */

/** @type {PeerKind[]} */
const KINDS = [
  { name: 'etcd', binaries: ['etcd'], client: 'etcd3', measure: null },
  {
    name: 'zookeeper',
    binaries: ['zkServer.sh', '/usr/share/zookeeper/bin/zkServer.sh'],
    client: 'node-zookeeper-client',
    measure: null,
  },
  { name: 'redis', binaries: ['redis-server'], client: 'ioredis', measure: null },
];

/** @param {import('./coordinator.mjs').Launcher} launcher @returns {Promise<Peer[]>} */
export async function measurePeers(launcher) {
  const peers = [];
  for (const kind of KINDS) {
    const { name, binaries, measure } = kind;
    const binary = binaries.map(find).find((path) => path !== null) ?? null;
    const notMeasured = whyNot(kind, binary);
    const figures = measure === null || notMeasured !== null || binary === null ? [] : await measure(binary, launcher);
    peers.push({ name, binary, notMeasured, figures });
  }
  return peers;
}

/** @param {PeerKind} kind @param {string | null} binary */
function whyNot({ binaries, client, measure }, binary) {
  if (binary === null) return `missing: no ${binaries[0]}`;
  if (!isInstalled(client)) return `not measured: no client (${client} is not in node_modules)`;
  return measure === null ? 'not measured: the bench has no measurement for it yet' : null;
}

/** @param {string} name */
function find(name) {
  const directories = name.startsWith('/') ? [''] : (process.env.PATH ?? '').split(delimiter);
  return directories.map((directory) => join(directory, name)).find((path) => existsSync(path)) ?? null;
}

/** @param {string} name */
function isInstalled(name) {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}

/** The peer's figure beside a row. @param {readonly Peer[]} peers @param {string} name @param {string} row */
export function peerOf(peers, name, row) {
  const value = peers.find((peer) => peer.name === name)?.figures.find((figure) => figure.row === row)?.value;
  return value === undefined ? null : { name, value };
}
