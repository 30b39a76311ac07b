import { atMost, settle } from '../bench.mjs';
import { cpuTimes } from '../cpu.mjs';
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

/** One restart. @typedef {{ seconds: number, cpuSeconds: number | null }} Restart */

/** @param {Bench} bench @param {Crowd} crowd @param {() => Promise<void>} end */
async function restarts(bench, crowd, end) {
  /** @type {Restart[]} */
  const all = [];
  for (let i = 0; i < bench.scale.restarts; i += 1) {
    await settle(bench, crowd.coordinator);
    await end();
    crowd.coordinator = await crowd.coordinator.again();
    all.push({ seconds: crowd.coordinator.readyMs / 1_000, cpuSeconds: await cpuSecondsOf(crowd) });
    await mustHold(crowd);
  }
  return all;
}

/** What the new process has taken so far: the surer figure when others share the machine. @param {Crowd} crowd */
async function cpuSecondsOf({ coordinator }) {
  const times = await cpuTimes(await coordinator.processes());
  return times === null ? null : times.coordinator / 1_000;
}

/** A restart that is fast because it forgot something is no restart. @param {Crowd} crowd */
async function mustHold({ coordinator, members }) {
  for (const member of [members[0], members.at(-1)]) {
    if (!(await coordinator.clients.isActive(String(member?.leaseId))))
      throw new Error('a lease did not survive the restart');
  }
}

/** @param {string} name @param {Restart[]} all @param {string} what @returns {Row} */
function rowOf(name, all, what) {
  const seconds = all.map((restart) => restart.seconds);
  const value = median(seconds);
  const cpu = median(all.flatMap(({ cpuSeconds }) => (cpuSeconds === null ? [] : [cpuSeconds])));
  const note = Number.isNaN(cpu) ? what : `${what}; ${cpu.toFixed(1)} s of the coordinator's processor time`;
  const target = { target: `${MOST_SECONDS} s at most`, reached: atMost(value, MOST_SECONDS) };
  return { name, value, unit: 's', spread: rangeOf(seconds), note, ...target, details: all };
}
