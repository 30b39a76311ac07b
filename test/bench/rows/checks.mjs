import { beside, peerRows, repeated } from '../bench.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */
/** @import { Coordinator } from '../coordinator.mjs' */
/** @import { Held } from '../client.mjs' */

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
  ]))
    rows.push(...(await unary(bench, coordinator, held, inFlight, writes)));
  await bench.launcher.takeBack(coordinator);
  return rows;
}

/**
 * Leases to check.
 * @param {import('../coordinator.mjs').Coordinator} coordinator @param {number} leases @param {string} kind @param {string} under
 */
export async function hold({ clients }, leases, kind = 'item', under = 'checks') {
  const runId = await clients.newRun();
  const acquire = (/** @type {unknown} */ _, /** @type {number} */ lease) => {
    const paths = Array.from({ length: RESOURCES }, (_, r) => `${kind}/${under}/${lease}/${r}`);
    return clients.acquire(clients.writeSet(runId, paths, TTL_SECONDS));
  };
  return Promise.all(Array.from({ length: leases }, acquire));
}

/**
 * @param {Bench} bench @param {Coordinator} coordinator @param {Held[]} held
 * @param {number} inFlight @param {number} writes @returns {Promise<Row[]>}
 */
async function unary(bench, coordinator, held, inFlight, writes) {
  const name = `checks, unary, ${inFlight} in flight${writes > 1 ? `, ${writes} writes each` : ''}`;
  bench.progress(name);
  const requests = held.map((lease) => coordinator.clients.checkOf(lease, writes));
  let next = 0;
  const operation = () => coordinator.clients.check(requests[next++ % requests.length]);
  const compared = writes === 1 ? { work: /** @type {const} */ ('read') } : undefined;
  const measured = await repeated(bench, coordinator, inFlight, operation, compared);
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
  const wanted = { by: /** @type {const} */ ('perSecond'), least: 1, target: '1 × etcd get at least' };
  const judged = inFlight === 64 && writes === 1 ? { ...row, ...beside(measured, 'etcd', wanted) } : row;
  return [judged, ...peerRows(bench, measured, 'read', inFlight)];
}
