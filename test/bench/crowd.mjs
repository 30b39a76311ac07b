import { sampleOf } from './measure.mjs';

/** @import { Coordinator, Launcher } from './coordinator.mjs' */

/** As many as a run may have by default. */
export const LEASES_PER_RUN = 1_000;
const RESOURCES = 8;
const IN_FLIGHT = 64;
/** As long as the contract allows: nothing of a crowd expires during a run of the bench. */
const TTL_SECONDS = 3_600;

/** A lease of one of the crowd's runs. @typedef {import('./client.mjs').Held & { runId: string }} Member */

/**
 * A coordinator with many live leases of 8 resources each, all under one shared ancestor, which no row changes for
 * another: leases that a measurement adds are released again.
 * @typedef {object} Crowd
 * @property {Coordinator} coordinator
 * @property {Member[]} members
 * @property {number} emptyRss
 * @property {number} filledPerSecond
 */

/** Crowds by size, each made when a row first needs it, since the largest takes a minute or two. */
export class Crowds {
  /** @type {Map<number, Promise<Crowd>>} */
  #made = new Map();
  #launcher;
  #progress;

  /** @param {Launcher} launcher @param {(text: string) => void} progress */
  constructor(launcher, progress) {
    this.#launcher = launcher;
    this.#progress = progress;
  }

  /** @param {number} size */
  of(size) {
    let crowd = this.#made.get(size);
    if (crowd === undefined) {
      crowd = this.#make(size);
      this.#made.set(size, crowd);
    }
    return crowd;
  }

  /** Ends it for good. @param {number} size */
  async drop(size) {
    const crowd = await this.#made.get(size);
    this.#made.delete(size);
    if (crowd !== undefined) await this.#launcher.takeBack(crowd.coordinator);
  }

  async dropAll() {
    for (const size of [...this.#made.keys()]) await this.drop(size);
  }

  /** @param {number} size @returns {Promise<Crowd>} */
  async #make(size) {
    this.#progress(`filling a coordinator with ${size.toLocaleString('en-US')} leases`);
    const smallest = size === Math.min(...this.#launcher.options.scale.crowds);
    const name = `crowd-${size}`;
    const coordinator = await (smallest ? this.#launcher.lend(name) : this.#launcher.fresh(name));
    const emptyRss = (await coordinator.memory(this.#launcher.options.scale.restMs)).rss;
    const startedAt = performance.now();
    const members = await fill(coordinator, size, {
      ttlSeconds: TTL_SECONDS,
      resources: RESOURCES,
      under: 'item/crowd',
    });
    const seconds = (performance.now() - startedAt) / 1_000;
    return { coordinator, members, emptyRss, filledPerSecond: size / seconds };
  }
}

/**
 * Acquires so many leases, a thousand for each run.
 * @param {Coordinator} coordinator @param {number} count
 * @param {{ ttlSeconds: number | (() => number), resources: number, under: string, onGranted?: (member: Member) => void }} options
 * @returns {Promise<Member[]>}
 */
export async function fill({ clients }, count, { ttlSeconds, resources, under, onGranted = () => undefined }) {
  const runs = await Promise.all(Array.from({ length: Math.ceil(count / LEASES_PER_RUN) }, () => clients.newRun()));
  /** @type {Member[]} */
  const members = [];
  let next = 0;
  const work = async () => {
    for (let i = next++; i < count; i = next++) {
      const runId = String(runs[Math.floor(i / LEASES_PER_RUN)]);
      const paths = Array.from({ length: resources }, (_, r) => `${under}/${i}/${r}`);
      const ttl = typeof ttlSeconds === 'number' ? ttlSeconds : ttlSeconds();
      const member = { runId, ...(await clients.acquire(clients.writeSet(runId, paths, ttl))) };
      members.push(member);
      onGranted(member);
    }
  };
  await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, count) }, work));
  return members;
}

/**
 * One repetition of acquiring with 1 in flight; the release in between is not part of the time.
 * @param {Coordinator} coordinator @param {string} runId @param {number} milliseconds
 */
export async function acquireLatency({ clients }, runId, milliseconds) {
  const writeSet = clients.writeSet(
    runId,
    Array.from({ length: RESOURCES }, (_, r) => `item/crowd/measured/${r}`),
    TTL_SECONDS,
  );
  /** @type {number[]} */
  const latencies = [];
  const startedAt = performance.now();
  while (performance.now() - startedAt < milliseconds) {
    const from = performance.now();
    const { leaseId } = await clients.acquire(writeSet);
    latencies.push(performance.now() - from);
    await clients.release(runId, leaseId);
  }
  return sampleOf(latencies, (performance.now() - startedAt) / 1_000);
}
