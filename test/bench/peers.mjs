import { etcd } from './peers/etcd.mjs';
import { redis } from './peers/redis.mjs';
import { zookeeper } from './peers/zookeeper.mjs';

/** @import { Resources } from './resources.mjs' */

/**
 * What Writ is compared with: the peers that are installed, each started by its own binary on free ports of the loopback
 * interface, in a directory of its own, with its own fsync on, and ended by its id. They are measured between the
 * repetitions of Writ's own rows (see `repeated`), so that all of them meet the machine in the same mood.
 */

/** The work that is compared. @typedef {'cycle' | 'read'} WorkName */

/**
 * `cycle` takes 8 things and lets them go, so that no two workers and sets meet; `read` asks for one thing.
 * @typedef {object} Work
 * @property {(worker: number, set: number) => Promise<void>} cycle
 * @property {() => Promise<void>} read
 */

/**
 * @typedef {object} PeerKind
 * @property {string} name
 * @property {Record<WorkName, string>} words  what is measured, for the table
 * @property {() => Promise<string | null>} missing  what is not installed; null: nothing
 * @property {(resources: Resources) => Promise<Work>} start
 */

/** @typedef {{ kind: PeerKind, work: Work | null, notMeasured: string | null }} Peer */

/** A worker's things change from one cycle to the next, as in Writ's own rows. */
const SETS = 16;

/** @type {PeerKind[]} */
const KINDS = [etcd, zookeeper, redis];

export class Peers {
  /** @param {Peer[]} all */
  constructor(all) {
    this.all = all;
  }

  /** @param {Resources} resources @param {boolean} wanted  whether any row compares */
  static async start(resources, wanted) {
    /** @type {Peer[]} */
    const all = [];
    for (const kind of KINDS) all.push(await startOne(kind, resources, wanted));
    return new Peers(all);
  }

  /** What one operation is at each peer that runs. @param {WorkName} name @returns {{ name: string, operation: (worker: number) => Promise<void> }[]} */
  operations(name) {
    return this.all.flatMap(({ kind, work }) => {
      if (work === null) return [];
      let next = 0;
      const operation =
        name === 'read' ? () => work.read() : (/** @type {number} */ worker) => work.cycle(worker, next++ % SETS);
      return [{ name: kind.name, operation }];
    });
  }

  /** @param {string} peer @param {WorkName} work */
  words(peer, work) {
    return KINDS.find(({ name }) => name === peer)?.words[work] ?? '';
  }

  /** For the foot of the table. @returns {Record<string, string>} */
  get state() {
    return Object.fromEntries(this.all.map(({ kind, notMeasured }) => [kind.name, notMeasured ?? 'measured']));
  }
}

/** @param {PeerKind} kind @param {Resources} resources @param {boolean} wanted @returns {Promise<Peer>} */
async function startOne(kind, resources, wanted) {
  if (!wanted) return { kind, work: null, notMeasured: 'no row that was asked for compares' };
  const missing = await kind.missing();
  if (missing !== null) return { kind, work: null, notMeasured: `missing: ${missing}` };
  try {
    return { kind, work: await kind.start(resources), notMeasured: null };
  } catch (error) {
    return { kind, work: null, notMeasured: `did not start: ${error instanceof Error ? error.message : error}` };
  }
}
