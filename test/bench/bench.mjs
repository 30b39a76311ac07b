import { setTimeout as pause } from 'node:timers/promises';
import { cpuPerOperation, cpuTimes } from './cpu.mjs';
import { closedLoop, median, summarise } from './measure.mjs';

/** @import { Coordinator, Launcher } from './coordinator.mjs' */
/** @import { Echo } from './echo.mjs' */
/** @import { Peer } from './peers.mjs' */
/** @import { Crowds } from './crowd.mjs' */

/**
 * What the rows share. A row is a function that measures and returns its lines.
 * @typedef {object} Bench
 * @property {Launcher} launcher
 * @property {import('./options.mjs').Scale} scale
 * @property {Echo} echo
 * @property {readonly Peer[]} peers
 * @property {Crowds} crowds
 * @property {(text: string) => void} progress
 */

/** The same state before every measurement: nothing left to write. @param {Bench} bench @param {Coordinator} coordinator */
export async function settle({ scale }, coordinator) {
  await (await coordinator.database()).checkpoint();
  await pause(scale.restMs);
}

/**
 * Warms up, measures several times, and in between what the transport alone can do, so that both meet the machine in
 * the same mood.
 * @param {Bench} bench @param {Coordinator} coordinator
 * @param {number} inFlight
 * @param {(worker: number) => Promise<void>} operation
 */
export async function repeated(bench, coordinator, inFlight, operation) {
  const { scale, echo } = bench;
  await settle(bench, coordinator);
  await closedLoop(inFlight, scale.warmUpMs, operation);
  await echo.measure(inFlight, scale.echoMs);
  /** @type {import('./measure.mjs').Sample[]} */
  const samples = [];
  /** @type {{ client: number, coordinator: number, postgres: number }[]} */
  const costs = [];
  /** @type {number[]} */
  const echoes = [];
  for (let i = 0; i < scale.repetitions; i += 1) {
    const processes = await coordinator.processes();
    const before = await cpuTimes(processes);
    const sample = await closedLoop(inFlight, scale.repetitionMs, operation);
    const cost = cpuPerOperation(before, await cpuTimes(processes), sample.count);
    samples.push(sample);
    if (cost !== null) costs.push(cost);
    echoes.push((await echo.measure(inFlight, scale.echoMs)).perSecond);
  }
  const middle = (/** @type {'client' | 'coordinator' | 'postgres'} */ key) => median(costs.map((cost) => cost[key]));
  return {
    ...summarise(samples),
    echoPerSecond: median(echoes),
    cpu:
      costs.length === 0
        ? null
        : { client: middle('client'), coordinator: middle('coordinator'), postgres: middle('postgres') },
  };
}

/** Whether a target holds; null when there is nothing to hold it against. @param {number | null | undefined} value */
export function atLeast(value, /** @type {number} */ least) {
  return value === null || value === undefined ? null : value >= least;
}

/** @param {number | null | undefined} value */
export function atMost(value, /** @type {number} */ most) {
  return value === null || value === undefined ? null : value <= most;
}
