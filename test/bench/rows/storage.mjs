import { closedLoop } from '../measure.mjs';
import { cycler } from './cycles.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */
/** @import { TableSize } from '../database.mjs' */

const IN_FLIGHT = 64;
/** What each event takes, and what each lease takes besides: what the purge takes away a day after its run has ended. */
const LOG = new Set(['event', 'event_request', 'event_text']);

/**
 * What is left in Postgres of leases that have come and gone: by event, by lease, and by table, indexes included.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function storage(bench) {
  const coordinator = await bench.launcher.lend('storage');
  const database = await coordinator.database();
  const operation = await cycler(coordinator, IN_FLIGHT);
  const before = await sizes(database);
  const { leases } = bench.scale.storage;
  bench.progress(`storage: ${leases.toLocaleString('en-US')} leases come and go`);
  const events = await database.lastRevision();
  let left = leases;
  // A worker that finds nothing left ends at once, and so does the loop.
  await closedLoop(IN_FLIGHT, Number.POSITIVE_INFINITY, operation, () => left-- > 0);
  const written = (await database.lastRevision()) - events;
  const after = await sizes(database);
  await bench.launcher.takeBack(coordinator);
  const grown = [...after].map(([table, bytes]) => ({ table, bytes: bytes - (before.get(table) ?? 0) }));
  return rowsOf(
    leases,
    written,
    grown.filter(({ bytes }) => bytes > 0).sort((a, b) => b.bytes - a.bytes),
  );
}

/** @param {import('../database.mjs').Database} database */
async function sizes(database) {
  return new Map((await database.tableSizes()).map((/** @type {TableSize} */ { table, bytes }) => [table, bytes]));
}

/** @param {number} leases @param {number} events @param {{ table: string, bytes: number }[]} grown @returns {Row[]} */
function rowsOf(leases, events, grown) {
  const sum = (/** @type {(table: string) => boolean} */ of) =>
    grown.filter(({ table }) => of(table)).reduce((total, { bytes }) => total + bytes, 0);
  const log = sum((table) => LOG.has(table));
  const records = sum((table) => !LOG.has(table));
  const tables = grown.map(({ table, bytes }) => `${table} ${(bytes / 2 ** 20).toFixed(1)} MB`).join(', ');
  const note = `after ${leases.toLocaleString('en-US')} leases of 8 that have come and gone, indexes included: ${tables}`;
  return [
    { name: 'bytes in Postgres by event of the log', value: log / events, unit: 'bytes', note, details: grown },
    { name: 'bytes in Postgres by lease until its purge, beside the log', value: records / leases, unit: 'bytes' },
  ];
}
