import { atMost, settle } from '../bench.mjs';
import { cpuPerOperation, cpuTimes } from '../cpu.mjs';
import { acquireLatency } from '../crowd.mjs';
import { median, rangeOf, summarise } from '../measure.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */
/** @import { Sample } from '../measure.mjs' */

/** One turn; cost: microseconds of processor time of coordinator and Postgres for an acquire and its release. @typedef {Sample & { cost: number | null }} Turn */

const MOST = 1.3;

/**
 * How an acquire of 8 resources fares beside ever more live leases under the same ancestor. One coordinator for each
 * size, measured in turns, so that what the machine does meanwhile meets all of them alike; whoever is not measured
 * is stopped.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function growth(bench) {
  const sizes = bench.scale.crowds;
  const runs = await prepared(bench, sizes);
  /** @type {Turn[][]} */
  const samples = sizes.map(() => []);
  for (let round = 0; round <= bench.scale.repetitions; round += 1) {
    bench.progress(`growth, round ${round} of ${bench.scale.repetitions}`);
    for (const [index, size] of sizes.entries()) {
      const sample = await turn(bench, size, String(runs[index]), round === 0);
      if (round > 0) samples[index]?.push(sample);
    }
  }
  for (const size of sizes) await (await bench.crowds.of(size)).coordinator.resume();
  await dropAllButLargest(bench, sizes);
  return rowsOf(sizes, samples);
}

/** All crowds, stopped, and a run in each for what is measured. @param {Bench} bench @param {readonly number[]} sizes */
async function prepared(bench, sizes) {
  const runs = [];
  for (const size of sizes) {
    const { coordinator } = await bench.crowds.of(size);
    runs.push(await coordinator.clients.newRun());
    await settle(bench, coordinator);
    coordinator.suspend();
  }
  return runs;
}

/** @param {Bench} bench @param {number} size @param {string} runId @param {boolean} warmUp @returns {Promise<Turn>} */
async function turn({ crowds, scale }, size, runId, warmUp) {
  const { coordinator } = await crowds.of(size);
  await coordinator.resume();
  const processes = await coordinator.processes();
  const before = await cpuTimes(processes);
  const sample = await acquireLatency(coordinator, runId, warmUp ? scale.warmUpMs : scale.repetitionMs);
  const cpu = cpuPerOperation(before, await cpuTimes(processes), sample.count);
  coordinator.suspend();
  return { ...sample, cost: cpu === null ? null : cpu.coordinator + cpu.postgres };
}

/** The rows after this one use the largest. @param {Bench} bench @param {readonly number[]} sizes */
async function dropAllButLargest({ crowds }, sizes) {
  for (const size of sizes) if (size !== Math.max(...sizes)) await crowds.drop(size);
}

/** @param {readonly number[]} sizes @param {readonly Turn[][]} samples @returns {Row[]} */
function rowsOf(sizes, samples) {
  const summaries = samples.map(summarise);
  /** @type {Row[]} */
  const rows = sizes.map((size, index) => {
    const { p50 = Number.NaN, p99 = Number.NaN, perSecond = Number.NaN, p50Spread } = summaries[index] ?? {};
    const point = /** @type {const} */ ({ chart: 'live leases', series: 'writ, unary', x: size, perSecond, p99 });
    const name = `acquire beside ${words(size)} leases, p50`;
    return { name, value: p50, unit: 'ms', p99, ...spreadOf(p50Spread), point };
  });
  const between = `${words(sizes.at(-1) ?? 0)} over ${words(sizes[0] ?? 0)} leases`;
  const ratios = ratiosOf(samples, (turn) => turn.p50);
  const ratio = median(ratios);
  const target = { target: `${MOST} × at most`, reached: atMost(ratio, MOST) };
  rows.push({ name: `acquire, ${between}`, value: ratio, unit: '×', ratio, ...spreadOf(rangeOf(ratios)), ...target });
  const costs = ratiosOf(samples, (turn) => turn.cost ?? Number.NaN);
  const cost = median(costs);
  if (Number.isNaN(cost)) return rows;
  return [
    ...rows,
    { name: `cost of a cycle, ${between}`, value: cost, unit: '×', ratio: cost, ...spreadOf(rangeOf(costs)) },
  ];
}

/**
 * The largest to the smallest, of each round: a mood of the machine that meets a whole round cancels out.
 * @param {readonly Turn[][]} samples @param {(turn: Turn) => number} of
 */
function ratiosOf(samples, of) {
  const reference = samples[0] ?? [];
  return (samples.at(-1) ?? []).map((turn, round) => of(turn) / of(reference[round] ?? turn));
}

/** @param {[number, number] | undefined} spread */
const spreadOf = (spread) => (spread === undefined ? {} : { spread });

const words = (/** @type {number} */ size) => size.toLocaleString('en-US');
