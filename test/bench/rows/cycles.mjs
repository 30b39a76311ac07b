import { atLeast, atMost, repeated } from '../bench.mjs';
import { peerOf } from '../peers.mjs';

/** @import { Bench } from '../bench.mjs' */
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
  const operation = await cycler(coordinator, 64);
  const rows = [];
  for (const inFlight of [1, 16, 64]) {
    bench.progress(`cycles, ${inFlight} in flight`);
    const measured = await repeated(bench, coordinator, inFlight, operation);
    rows.push(throughput(bench, inFlight, measured));
    if (inFlight === 1) rows.push(single(bench, measured));
  }
  await bench.launcher.takeBack(coordinator);
  return rows;
}

/** @param {import('../coordinator.mjs').Coordinator} coordinator @param {number} workers */
export async function cycler({ clients }, workers) {
  const runs = await Promise.all(Array.from({ length: workers }, () => clients.newRun()));
  const sets = runs.map((runId, worker) =>
    Array.from({ length: SETS }, (_, set) => clients.writeSet(runId, pathsOf(worker, set), TTL_SECONDS)),
  );
  let cycle = 0;
  return async (/** @type {number} */ worker) => {
    cycle += 1;
    const { leaseId } = await clients.acquire(sets[worker]?.[cycle % SETS]);
    await clients.release(String(runs[worker]), leaseId);
  };
}

/** @param {number} worker @param {number} set */
function pathsOf(worker, set) {
  return Array.from({ length: RESOURCES }, (_, r) => `item/cycles/${worker}/${set}/${r}`);
}

/** @typedef {Awaited<ReturnType<typeof repeated>>} Measured */

/** @param {Bench} bench @param {number} inFlight @param {Measured} measured @returns {Row} */
function throughput(bench, inFlight, measured) {
  const name = `cycles, unary, ${inFlight} in flight`;
  const row = {
    name,
    value: measured.perSecond,
    unit: 'cycles/s',
    p50: measured.p50,
    p99: measured.p99,
    spread: measured.spread,
    // A cycle is two calls.
    ceiling: (2 * measured.perSecond) / measured.echoPerSecond,
    cpu: measured.cpu,
  };
  if (inFlight !== 64) return row;
  const peer = peerOf(bench.peers, 'etcd', name);
  const ratio = peer === null ? null : measured.perSecond / peer.value;
  return { ...row, peer, ratio, target: '1 × etcd at least', reached: atLeast(ratio, 1) };
}

/** @param {Bench} bench @param {Measured} measured @returns {Row} */
function single(bench, measured) {
  const name = 'one uncontended cycle, p50';
  const peer = peerOf(bench.peers, 'etcd', name);
  const ratio = peer === null ? null : measured.p50 / peer.value;
  const target = { target: '1.2 × etcd at most', reached: atMost(ratio, 1.2) };
  return { name, value: measured.p50, unit: 'ms', spread: measured.p50Spread, peer, ratio, ...target };
}
