import { beside, peerRows, repeated } from '../bench.mjs';

/** @import { Bench, Measured } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */

const RESOURCES = 8;
const TTL_SECONDS = 60;
/** A worker's resources change from one cycle to the next, as a fleet's do. */
const SETS = 16;

/**
 * Acquire and release of 8 disjoint resources, each a unary call: every worker of a run of its own, on resources
 * that no other worker wants.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function cycles(bench) {
  const coordinator = await bench.launcher.lend('cycles');
  const operation = await cycler(coordinator, 256);
  /** @type {Row[][]} */
  const groups = [];
  // The most first: what is measured with one in flight is a warm coordinator, and warm peers.
  for (const inFlight of [256, 64, 16, 4, 1]) {
    bench.progress(`cycles, ${inFlight} in flight`);
    const measured = await repeated(bench, coordinator, inFlight, operation, { work: 'cycle' });
    const rows = [throughput(inFlight, measured)];
    if (inFlight === 1) rows.push(single(measured));
    if (inFlight === 64 && measured.cpu !== null) rows.push(cost(measured.cpu));
    groups.unshift([...rows, ...peerRows(bench, measured, 'cycle', inFlight)]);
  }
  await bench.launcher.takeBack(coordinator);
  return groups.flat();
}

/**
 * One cycle of a worker. The calls go to the coordinator's unary methods, or to what else is given.
 * @param {import('../coordinator.mjs').Coordinator} coordinator @param {number} workers
 * @param {{ acquire: (writeSet: any) => Promise<string>, release: (runId: string, leaseId: string) => Promise<void> }} [calls]
 */
export async function cycler({ clients }, workers, calls) {
  const { acquire, release } = calls ?? {
    acquire: async (writeSet) => (await clients.acquire(writeSet)).leaseId,
    release: clients.release,
  };
  const runs = await Promise.all(Array.from({ length: workers }, () => clients.newRun()));
  const sets = runs.map((runId, worker) =>
    Array.from({ length: SETS }, (_, set) => clients.writeSet(runId, pathsOf(worker, set), TTL_SECONDS)),
  );
  let cycle = 0;
  return async (/** @type {number} */ worker) => {
    cycle += 1;
    const leaseId = await acquire(sets[worker]?.[cycle % SETS]);
    await release(String(runs[worker]), leaseId);
  };
}

/** @param {number} worker @param {number} set */
function pathsOf(worker, set) {
  return Array.from({ length: RESOURCES }, (_, r) => `item/cycles/${worker}/${set}/${r}`);
}

/** @param {number} inFlight @param {Measured} measured @returns {Row} */
function throughput(inFlight, measured) {
  const row = {
    name: `cycles, unary, ${inFlight} in flight`,
    value: measured.perSecond,
    unit: 'cycles/s',
    p50: measured.p50,
    p99: measured.p99,
    spread: measured.spread,
    // A cycle is two calls.
    ceiling: (2 * measured.perSecond) / measured.echoPerSecond,
    cpu: measured.cpu,
    point: /** @type {const} */ ({
      chart: 'in flight',
      series: 'writ, unary',
      x: inFlight,
      perSecond: measured.perSecond,
      p99: measured.p99,
    }),
  };
  if (inFlight !== 64) return row;
  return { ...row, ...beside(measured, 'etcd', { by: 'perSecond', least: 1, target: '1 × etcd at least' }) };
}

/** @param {Measured} measured @returns {Row} */
function single(measured) {
  const name = 'one uncontended cycle, p50';
  const wanted = beside(measured, 'etcd', { by: 'p50', most: 1.2, target: '1.2 × etcd at most' });
  return { name, value: measured.p50, unit: 'ms', spread: measured.p50Spread, ...wanted };
}

/** Coordinator and Postgres; a microsecond a cycle is a millisecond for a thousand. @param {NonNullable<Measured['cpu']>} cpu @returns {Row} */
function cost({ coordinator, postgres }) {
  const note = `${coordinator} ms of it the coordinator's, ${postgres} ms Postgres's`;
  return { name: 'processor time of 1,000 cycles', value: (coordinator + postgres) / 1_000, unit: 's', note };
}
