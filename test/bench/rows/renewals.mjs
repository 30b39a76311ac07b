import { setMaxListeners } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fill, LEASES_PER_RUN } from '../crowd.mjs';
import { sampleOf } from '../measure.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */

/** When a lease is renewed, as a part of its ttl: two attempts more fit into what is left. */
const RENEW_AFTER = 1 / 3;

/**
 * Many leases with a short ttl are kept alive, from their grant on, each run's by one call of up to 1,000. A renewal
 * never revives an ended lease, so that whoever is renewed once more at the end was never lost.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function renewals(bench) {
  const { leases, ttlSeconds, holdSeconds } = bench.scale.renewals;
  const coordinator = await bench.launcher.lend('renewals');
  const keeper = new Keeper(coordinator, ttlSeconds);
  bench.progress(`renewals: acquiring ${leases} leases`);
  const onGranted = (/** @type {import('../crowd.mjs').Member} */ member) => keeper.add(member);
  await Promise.race([
    fill(coordinator, leases, { ttlSeconds, resources: 1, under: 'item/renewals', onGranted }),
    keeper.failed,
  ]);
  bench.progress(`renewals: holding them for ${holdSeconds} s`);
  keeper.beginMeasurement();
  await Promise.race([pause(holdSeconds * 1_000), keeper.failed]);
  const result = await keeper.end();
  await bench.launcher.takeBack(coordinator);
  return [rowOf(bench.scale.renewals, result)];
}

/** Renews the leases of each run in time. */
class Keeper {
  /** @type {Map<string, string[]>} */
  #runs = new Map();
  /** @type {Promise<void>[]} */
  #loops = [];
  #stopping = new AbortController();
  /** @type {(error: unknown) => void} */
  #fail = () => undefined;
  /** @type {number[]} */
  #latencies = [];
  #measuredSince = performance.now();
  #renewed = 0;
  #lost = 0;
  #reason = '';
  #longestGapMs = 0;
  /** @type {Promise<never>} */
  failed;

  /** @param {import('../coordinator.mjs').Coordinator} coordinator @param {number} ttlSeconds */
  constructor({ clients }, ttlSeconds) {
    this.clients = clients;
    this.everyMs = ttlSeconds * 1_000 * RENEW_AFTER;
    this.failed = new Promise((_, reject) => {
      this.#fail = reject;
    });
    this.failed.catch(() => undefined);
    // One for each run that is being kept.
    setMaxListeners(0, this.#stopping.signal);
  }

  /** @param {import('../crowd.mjs').Member} member */
  add({ runId, leaseId }) {
    const known = this.#runs.get(runId);
    if (known !== undefined) known.push(leaseId);
    else {
      const leaseIds = [leaseId];
      this.#runs.set(runId, leaseIds);
      this.#loops.push(this.#keep(runId, leaseIds).catch((error) => this.#fail(error)));
    }
  }

  beginMeasurement() {
    this.#latencies = [];
    this.#renewed = 0;
    this.#longestGapMs = 0;
    this.#measuredSince = performance.now();
  }

  /** Renews everything once more. */
  async end() {
    this.#stopping.abort();
    await Promise.all(this.#loops);
    const seconds = (performance.now() - this.#measuredSince) / 1_000;
    const { p50, p99 } = sampleOf(this.#latencies, seconds);
    const perSecond = this.#renewed / seconds;
    for (const [runId, leaseIds] of this.#runs) await this.#renew(runId, leaseIds);
    return { p50, p99, perSecond, lost: this.#lost, reason: this.#reason, longestGapMs: this.#longestGapMs };
  }

  /** @param {string} runId @param {string[]} leaseIds */
  async #keep(runId, leaseIds) {
    const { signal } = this.#stopping;
    let renewedAt = performance.now();
    while (!signal.aborted) {
      await pause(Math.max(0, renewedAt + this.everyMs - performance.now()), undefined, { signal }).catch(
        () => undefined,
      );
      if (signal.aborted) return;
      const sentAt = performance.now();
      await this.#renew(runId, leaseIds);
      this.#latencies.push(performance.now() - sentAt);
      this.#longestGapMs = Math.max(this.#longestGapMs, performance.now() - renewedAt);
      renewedAt = sentAt;
    }
  }

  /** @param {string} runId @param {string[]} leaseIds */
  async #renew(runId, leaseIds) {
    const now = leaseIds.slice(0, LEASES_PER_RUN);
    const { lost, reason } = await this.clients.renew(runId, now);
    this.#renewed += now.length - lost;
    this.#lost = Math.max(this.#lost, 0) + lost;
    if (reason !== '') this.#reason = reason;
  }
}

/**
 * @param {import('../options.mjs').Scale['renewals']} scale
 * @param {Awaited<ReturnType<Keeper['end']>>} result
 * @returns {Row}
 */
function rowOf({ leases, ttlSeconds, holdSeconds }, { lost, reason, perSecond, p50, p99, longestGapMs }) {
  const gap = `longest time between the answers to two renewals of a lease ${(longestGapMs / 1_000).toFixed(1)} s`;
  return {
    name: `${leases.toLocaleString('en-US')} leases at ttl ${ttlSeconds} s held ${holdSeconds} s, lost`,
    value: lost,
    unit: 'leases',
    p50,
    p99,
    target: 'none lost',
    reached: lost === 0,
    note: `${Math.round(perSecond).toLocaleString('en-US')} renewals/s; times are of a call that renews up to 1,000; ${gap}${reason === '' ? '' : `; first refusal: ${reason}`}`,
    details: { perSecond, longestGapMs },
  };
}
