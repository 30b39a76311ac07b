import { beside, peerRows, repeated } from '../bench.mjs';
import { openChecks, openSession } from '../stream-client.mjs';
import { hold } from './checks.mjs';
import { cycler } from './cycles.mjs';

/** @import { Bench, Measured } from '../bench.mjs' */
/** @import { Coordinator } from '../coordinator.mjs' */
/** @import { Row } from '../report.mjs' */

const CHECKS_IN_FLIGHT = 256;
const CYCLES_IN_FLIGHT = 64;

/**
 * What streams carry: acquire and release of 8 on a session, and strict fence checks, one in a message and eight.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function streams(bench) {
  const coordinator = await bench.launcher.lend('streams');
  const rows = await cycleRows(bench, coordinator);
  const held = await hold(coordinator, bench.scale.checkedLeases, 'item', 'streams');
  const requests = held.map((lease) => coordinator.clients.checkOf(lease, 1));
  rows.push(await checkRow(bench, coordinator, requests, 1, 5));
  rows.push(await checkRow(bench, coordinator, requests, 8, 8));
  await bench.launcher.takeBack(coordinator);
  return rows;
}

/** One row for each peer that there is a target of. @param {Bench} bench @param {Coordinator} coordinator @returns {Promise<Row[]>} */
async function cycleRows(bench, coordinator) {
  const inFlight = CYCLES_IN_FLIGHT;
  const name = `cycles, session, ${inFlight} in flight`;
  bench.progress(name);
  const session = openSession(coordinator.clients);
  const operation = await cycler(coordinator, inFlight, session);
  const measured = await repeated(bench, coordinator, inFlight, operation, { work: 'cycle' });
  session.close();
  const { perSecond, p99 } = measured;
  const point = /** @type {const} */ ({ chart: 'in flight', series: 'writ, session', x: inFlight, perSecond, p99 });
  const row = rowOf(name, 'cycles/s', measured, 1);
  const zookeeper = { by: /** @type {const} */ ('perSecond'), least: 1.2, target: '1.2 × ZooKeeper at least' };
  const etcd = { by: /** @type {const} */ ('perSecond'), least: 3, target: '3 × etcd at least' };
  return [
    { ...row, ...beside(measured, 'zookeeper', zookeeper), point },
    { ...row, name: `${name}, beside etcd`, ...beside(measured, 'etcd', etcd) },
    ...peerRows(bench, measured, 'cycle', inFlight).map(({ point: _, ...peer }) => peer),
  ];
}

/**
 * @param {Bench} bench @param {Coordinator} coordinator @param {readonly any[]} requests
 * @param {number} perMessage
 * @param {number} least  times etcd's linearizable gets
 * @returns {Promise<Row>}
 */
async function checkRow(bench, coordinator, requests, perMessage, least) {
  const inFlight = CHECKS_IN_FLIGHT;
  const name = `checks, stream, ${inFlight} in flight${perMessage > 1 ? `, ${perMessage} a message` : ''}`;
  bench.progress(name);
  const stream = openChecks(coordinator.clients);
  let next = 0;
  const some = () => Array.from({ length: perMessage }, () => requests[next++ % requests.length]);
  const operation = () => stream.check(some());
  const measured = await repeated(bench, coordinator, inFlight / perMessage, operation, { work: 'read', inFlight });
  stream.close();
  // The same work: both read one key, or one lease, as it is now.
  const wanted = { by: /** @type {const} */ ('perSecond'), least, target: `${least} × etcd get at least` };
  const row = rowOf(name, 'checks/s', measured, perMessage);
  return { ...row, ...beside({ ...measured, perSecond: row.value }, 'etcd', wanted) };
}

/** @param {string} name @param {string} unit @param {Measured} measured @param {number} each  of one operation @returns {Row} */
function rowOf(name, unit, { perSecond, p50, p99, spread, cpu }, each) {
  const one = (/** @type {number} */ micros) => Math.round(micros / each);
  return {
    name,
    value: perSecond * each,
    unit,
    p50,
    p99,
    spread: [spread[0] * each, spread[1] * each],
    cpu:
      cpu === null ? null : { client: one(cpu.client), coordinator: one(cpu.coordinator), postgres: one(cpu.postgres) },
  };
}
