/** One repetition. @typedef {{ perSecond: number, p50: number, p99: number, count: number, seconds: number }} Sample */

/**
 * The median of several repetitions, and how far they were apart.
 * @typedef {object} Summary
 * @property {number} perSecond
 * @property {number} p50  milliseconds
 * @property {number} p99  milliseconds
 * @property {[number, number]} spread  of perSecond, lowest and highest
 * @property {[number, number]} p50Spread
 * @property {number} count  of all repetitions
 */

/**
 * Keeps so many operations in flight, each worker starting the next when its last has been answered, until the time
 * is over; those in flight then are awaited and counted.
 * @param {number} inFlight @param {number} milliseconds
 * @param {(worker: number) => Promise<void>} operation
 * @param {() => boolean} goesOn  asked before each operation; a worker that is told no ends
 * @returns {Promise<Sample>}
 */
export async function closedLoop(inFlight, milliseconds, operation, goesOn = () => true) {
  /** @type {number[]} */
  const latencies = [];
  const startedAt = performance.now();
  const until = startedAt + milliseconds;
  let failed = false;
  const work = async (/** @type {number} */ worker) => {
    for (let from = performance.now(); from < until && !failed && goesOn(); ) {
      await operation(worker);
      const now = performance.now();
      latencies.push(now - from);
      from = now;
    }
  };
  // The first failure ends the measurement: figures of a load that partly failed mean nothing.
  const guarded = (/** @type {number} */ worker) =>
    work(worker).catch((error) => {
      failed = true;
      throw error;
    });
  await Promise.all(Array.from({ length: inFlight }, (_, worker) => guarded(worker)));
  const seconds = (performance.now() - startedAt) / 1_000;
  return sampleOf(latencies, seconds);
}

/** @param {number[]} latencies @param {number} seconds @returns {Sample} */
export function sampleOf(latencies, seconds) {
  const sorted = Float64Array.from(latencies).sort();
  const { length: count } = sorted;
  return { perSecond: count / seconds, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), count, seconds };
}

/** By nearest rank. @param {ArrayLike<number>} sorted @param {number} q */
export function quantile(sorted, q) {
  return sorted[Math.max(0, Math.ceil(sorted.length * q) - 1)] ?? Number.NaN;
}

/** @param {readonly number[]} values */
export function median(values) {
  return quantile(Float64Array.from(values).sort(), 0.5);
}

/** @param {readonly number[]} values @returns {[number, number]} */
export function rangeOf(values) {
  return [Math.min(...values), Math.max(...values)];
}

/** @param {readonly Sample[]} samples @returns {Summary} */
export function summarise(samples) {
  const of = (/** @type {'perSecond' | 'p50' | 'p99'} */ key) => samples.map((sample) => sample[key]);
  return {
    perSecond: median(of('perSecond')),
    p50: median(of('p50')),
    p99: median(of('p99')),
    spread: rangeOf(of('perSecond')),
    p50Spread: rangeOf(of('p50')),
    count: samples.reduce((sum, { count }) => sum + count, 0),
  };
}
