import { atMost } from '../bench.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */

const MEGABYTE = 2 ** 20;
const MOST_MB = 600;

/** Resident memory of a coordinator with many live leases, after full garbage collections. @param {Bench} bench @returns {Promise<Row[]>} */
export async function memory(bench) {
  const size = Math.max(...bench.scale.crowds);
  // Taken when the crowd was complete, so that it does not matter which rows were measured since.
  const { memory: taken, emptyRss } = await bench.crowds.of(size);
  const rss = taken.rss / MEGABYTE;
  const perLease = (taken.rss - emptyRss) / size;
  return [
    {
      name: `memory with ${size.toLocaleString('en-US')} leases of 8`,
      value: rss,
      unit: 'MB resident',
      target: `${MOST_MB} MB at most`,
      reached: atMost(rss, MOST_MB),
      note: `${Math.round(emptyRss / MEGABYTE)} MB when empty, ${Math.round(perLease)} bytes a lease; heap in use ${Math.round(taken.heapUsed / MEGABYTE)} MB`,
      details: { ...taken, emptyRss, perLease },
    },
  ];
}
