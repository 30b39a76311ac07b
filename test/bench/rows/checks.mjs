import { atLeast, repeated } from '../bench.mjs';
import { peerOf } from '../peers.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */

const RESOURCES = 8;
const TTL_SECONDS = 3_600;

/** Strict fence checks, each a unary call, spread over many live leases. @param {Bench} bench @returns {Promise<Row[]>} */
export async function checks(bench) {
  const coordinator = await bench.launcher.lend('checks');
  const held = await hold(coordinator, bench.scale.checkedLeases);
  const rows = [];
  for (const [inFlight, writes] of /** @type {const} */ ([
    [1, 1],
    [64, 1],
    [256, 1],
    [64, 8],
  ])) {
    bench.progress(`checks of ${writes}, ${inFlight} in flight`);
    const measured = await repeated(bench, coordinator, inFlight, checker(coordinator, held, writes));
    rows.push(rowOf(bench, inFlight, writes, measured));
  }
  await bench.launcher.takeBack(coordinator);
  return rows;
}

/** @param {import('../coordinator.mjs').Coordinator} coordinator @param {number} leases */
async function hold({ clients }, leases) {
  const runId = await clients.newRun();
  const acquire = (/** @type {unknown} */ _, /** @type {number} */ lease) => {
    const paths = Array.from({ length: RESOURCES }, (_, r) => `item/checks/${lease}/${r}`);
    return clients.acquire(clients.writeSet(runId, paths, TTL_SECONDS));
  };
  return Promise.all(Array.from({ length: leases }, acquire));
}

/**
 * @param {import('../coordinator.mjs').Coordinator} coordinator
 * @param {import('../client.mjs').Held[]} held @param {number} writes
 */
function checker({ clients }, held, writes) {
  const requests = held.map((lease) => clients.checkOf(lease, writes));
  let next = 0;
  return () => clients.check(requests[next++ % requests.length]);
}

/** @param {Bench} bench @param {number} inFlight @param {number} writes @param {import('./cycles.mjs').Measured} measured @returns {Row} */
function rowOf(bench, inFlight, writes, measured) {
  const name = `checks, unary, ${inFlight} in flight${writes > 1 ? `, ${writes} writes each` : ''}`;
  const row = {
    name,
    value: measured.perSecond,
    unit: 'checks/s',
    p50: measured.p50,
    p99: measured.p99,
    spread: measured.spread,
    ceiling: measured.perSecond / measured.echoPerSecond,
    cpu: measured.cpu,
  };
  if (inFlight !== 64 || writes > 1) return row;
  const peer = peerOf(bench.peers, 'etcd', name);
  const ratio = peer === null ? null : measured.perSecond / peer.value;
  return { ...row, peer, ratio, target: '1 × etcd get at least', reached: atLeast(ratio, 1) };
}
