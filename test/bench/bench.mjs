import { setTimeout as pause } from 'node:timers/promises';
import { cpuPerOperation, cpuTimes } from './cpu.mjs';
import { closedLoop, median, summarise } from './measure.mjs';

/** @import { Coordinator, Launcher } from './coordinator.mjs' */
/** @import { Echo } from './echo.mjs' */
/** @import { Peers, WorkName } from './peers.mjs' */
/** @import { Row } from './report.mjs' */
/** @import { Crowds } from './crowd.mjs' */

/**
 * What the rows share. A row is a function that measures and returns its lines.
 * @typedef {object} Bench
 * @property {Launcher} launcher
 * @property {import('./options.mjs').Scale} scale
 * @property {Echo} echo
 * @property {Peers} peers
 * @property {Crowds} crowds
 * @property {(text: string) => void} progress
 */

/** The same state before every measurement: nothing left to write. @param {Bench} bench @param {Coordinator} coordinator */
export async function settle({ scale }, coordinator) {
  await (await coordinator.database()).checkpoint();
  await pause(scale.restMs);
}

/**
 * Warms up, measures several times, and in between what the transport alone can do and what the peers take for the same
 * work, so that all of them meet the machine in the same mood.
 * @param {Bench} bench @param {Coordinator} coordinator
 * @param {number} inFlight
 * @param {(worker: number) => Promise<void>} operation
 * @param {Compared} [compared]  left out: no peer does it
 */
export async function repeated(bench, coordinator, inFlight, operation, compared) {
  const { scale, echo } = bench;
  await settle(bench, coordinator);
  await closedLoop(inFlight, scale.warmUpMs, operation);
  await echo.measure(inFlight, scale.echoMs);
  const beside = new Beside(bench, inFlight, compared);
  await beside.measure(scale.warmUpMs, false);
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
    await beside.measure(scale.peerMs, true);
  }
  const middle = (/** @type {'client' | 'coordinator' | 'postgres'} */ key) => median(costs.map((cost) => cost[key]));
  return {
    ...summarise(samples),
    peers: beside.summaries(),
    echoPerSecond: median(echoes),
    cpu:
      costs.length === 0
        ? null
        : { client: middle('client'), coordinator: middle('coordinator'), postgres: middle('postgres') },
  };
}

/** What peers do meanwhile, and how much of it at once when that is not what Writ does. @typedef {{ work: WorkName, inFlight?: number }} Compared */

/** The same work at the peers, in turns with Writ's. */
class Beside {
  /** @type {Map<string, import('./measure.mjs').Sample[]>} */
  #samples = new Map();
  #operations;
  #inFlight;

  /** @param {Bench} bench @param {number} inFlight @param {Compared | undefined} compared */
  constructor({ peers }, inFlight, compared) {
    this.#operations = compared === undefined ? [] : peers.operations(compared.work);
    this.#inFlight = compared?.inFlight ?? inFlight;
  }

  /** @param {number} milliseconds @param {boolean} counts */
  async measure(milliseconds, counts) {
    for (const { name, operation } of this.#operations) {
      const sample = await closedLoop(this.#inFlight, milliseconds, operation);
      if (counts) this.#samples.set(name, [...(this.#samples.get(name) ?? []), sample]);
    }
  }

  summaries() {
    return new Map([...this.#samples].map(([name, samples]) => [name, summarise(samples)]));
  }
}

/** @typedef {Awaited<ReturnType<typeof repeated>>} Measured */

/**
 * What a row shows of a peer: its figure, Writ's as a part of it, and whether that is enough. Nothing is judged where the
 * peer was not measured.
 * @param {Measured} measured @param {string} name
 * @param {{ by: 'perSecond' | 'p50', least?: number, most?: number, target: string }} wanted
 */
export function beside(measured, name, { by, least, most, target }) {
  const value = measured.peers.get(name)?.[by];
  const ratio = value === undefined ? null : measured[by] / value;
  const reached = least === undefined ? atMost(ratio, Number(most)) : atLeast(ratio, least);
  return { peer: value === undefined ? null : { name, value }, ratio, target, reached };
}

/**
 * Lines of the peers' own figures.
 * @param {Bench} bench @param {Measured} measured @param {WorkName} work @param {number} inFlight @returns {Row[]}
 */
export function peerRows({ peers }, measured, work, inFlight) {
  return [...measured.peers].map(([name, { perSecond, p50, p99, spread }]) => ({
    name: `${name}: ${peers.words(name, work)}, ${inFlight} in flight`,
    value: perSecond,
    unit: work === 'cycle' ? 'cycles/s' : 'reads/s',
    p50,
    p99,
    spread,
    ...(work === 'cycle' ? { point: { chart: 'in flight', series: name, x: inFlight, perSecond, p99 } } : {}),
  }));
}

/** Whether a target holds; null when there is nothing to hold it against. @param {number | null | undefined} value */
export function atLeast(value, /** @type {number} */ least) {
  return value === null || value === undefined ? null : value >= least;
}

/** @param {number | null | undefined} value */
export function atMost(value, /** @type {number} */ most) {
  return value === null || value === undefined ? null : value <= most;
}
