import { atMost, settle } from '../bench.mjs';
import { median, rangeOf } from '../measure.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */
/** @import { Crowd } from '../crowd.mjs' */

const MOST_SECONDS = 5;

/** From the start of the process to its ready line, with many live leases to load. @param {Bench} bench @returns {Promise<Row[]>} */
export async function restart(bench) {
  const size = Math.max(...bench.scale.crowds);
  const crowd = await bench.crowds.of(size);
  const title = `ready with ${size.toLocaleString('en-US')} leases`;
  bench.progress('restarts after SIGTERM');
  const stopped = await restarts(bench, crowd, () => crowd.coordinator.stop());
  bench.progress('restarts after kill -9');
  const killed = await restarts(bench, crowd, () => crowd.coordinator.kill9());
  return [
    rowOf(`${title}, after SIGTERM`, stopped, 'starts its Postgres too'),
    rowOf(`${title}, after kill -9`, killed, 'adopts the Postgres that lived on'),
  ];
}

/** Seconds of each. @param {Bench} bench @param {Crowd} crowd @param {() => Promise<void>} end */
async function restarts(bench, crowd, end) {
  const seconds = [];
  for (let i = 0; i < bench.scale.restarts; i += 1) {
    await settle(bench, crowd.coordinator);
    await end();
    crowd.coordinator = await crowd.coordinator.again();
    seconds.push(crowd.coordinator.readyMs / 1_000);
    await mustHold(crowd);
  }
  return seconds;
}

/** A restart that is fast because it forgot something is no restart. @param {Crowd} crowd */
async function mustHold({ coordinator, members }) {
  for (const member of [members[0], members.at(-1)]) {
    if (!(await coordinator.clients.isActive(String(member?.leaseId))))
      throw new Error('a lease did not survive the restart');
  }
}

/** @param {string} name @param {number[]} seconds @param {string} note @returns {Row} */
function rowOf(name, seconds, note) {
  const value = median(seconds);
  const target = { target: `${MOST_SECONDS} s at most`, reached: atMost(value, MOST_SECONDS) };
  return { name, value, unit: 's', spread: rangeOf(seconds), note, ...target };
}
