import { atMost } from '../bench.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */

const MEGABYTE = 2 ** 20;
const MOST_MB = 600;

/**
 * Resident memory of a coordinator with many live leases, at rest after full garbage collections.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function memory(bench) {
  const size = Math.max(...bench.scale.crowds);
  const { coordinator, emptyRss, filledPerSecond } = await bench.crowds.of(size);
  bench.progress('memory');
  const peakRss = await coordinator.peakRss();
  const taken = await coordinator.memory(bench.scale.memoryRestMs);
  const perLease = (taken.rss - emptyRss) / size;
  return [
    {
      name: `memory with ${size.toLocaleString('en-US')} leases of 8`,
      value: taken.rss / MEGABYTE,
      unit: 'MB resident',
      target: `${MOST_MB} MB at most`,
      reached: atMost(taken.rss / MEGABYTE, MOST_MB),
      note:
        `${megabytes(emptyRss)} when empty, ${Math.round(perLease)} bytes a lease; heap in use ${megabytes(taken.heapUsed)}; ` +
        `at most ${megabytes(peakRss)} while ${Math.round(filledPerSecond)} leases/s were granted`,
      details: { ...taken, emptyRss, peakRss, perLease, filledPerSecond },
    },
  ];
}

const megabytes = (/** @type {number} */ bytes) => `${Math.round(bytes / MEGABYTE)} MB`;
