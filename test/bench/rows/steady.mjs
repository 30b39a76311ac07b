import { atLeast, settle } from '../bench.mjs';
import { cpuPerOperation, cpuTimes } from '../cpu.mjs';
import { closedLoop } from '../measure.mjs';

/** @import { Bench } from '../bench.mjs' */
/** @import { Row } from '../report.mjs' */
/** @import { Coordinator } from '../coordinator.mjs' */
/** @import { TableSize } from '../database.mjs' */
/** @import { CpuTimes } from '../cpu.mjs' */

const IN_FLIGHT = 64;
const RESOURCES = 8;
const TTL_SECONDS = 60;
/** Runs come and go, as in a fleet: what an ended one leaves behind must not slow the others. */
const CYCLES_PER_RUN = 200;
const WINDOW_SECONDS = 60;
const LEAST = 0.9;
/** Tables that may grow: the log, and what the purge takes a day after its run has ended. */
const MAY_GROW = new Set(['event', 'event_request', 'key_binding', 'lease', 'lease_write_set', 'run']);
/** For a heartbeat that cannot be vacuumed under a held snapshot, and for the pages of an index. */
const GROWTH_BYTES = 256 << 10;

/**
 * The same load for minutes, then for as long again while another session holds a snapshot from before, which keeps
 * Postgres from removing anything that died since.
 * @param {Bench} bench @returns {Promise<Row[]>}
 */
export async function steady(bench) {
  const coordinator = await bench.launcher.lend('steady');
  const database = await coordinator.database();
  const operation = cycler(coordinator);
  await closedLoop(IN_FLIGHT, 2 * bench.scale.warmUpMs, operation);
  const before = await stateOf(bench, coordinator);
  bench.progress('steady load');
  const free = await phase(bench, coordinator, operation);
  const letGo = await database.holdSnapshot();
  bench.progress('steady load, with an old snapshot held open');
  const held = await phase(bench, coordinator, operation);
  await letGo();
  const after = await stateOf(bench, coordinator);
  await bench.launcher.takeBack(coordinator);
  return [
    ...phaseRows('steady load', free, free.first),
    ...phaseRows('steady load, old snapshot held', held, free.first),
    growthRow(before, after),
  ];
}

/** @param {Coordinator} coordinator */
function cycler({ clients }) {
  /** @type {Map<number, { runId: string, cycles: number }>} */
  const runs = new Map();
  return async (/** @type {number} */ worker) => {
    let run = runs.get(worker);
    if (run === undefined || run.cycles === CYCLES_PER_RUN) {
      if (run !== undefined) await clients.finishRun(run.runId);
      run = { runId: await clients.newRun(), cycles: 0 };
      runs.set(worker, run);
    }
    run.cycles += 1;
    const paths = Array.from({ length: RESOURCES }, (_, r) => `item/steady/${worker}/${run.cycles}/${r}`);
    const { leaseId } = await clients.acquire(clients.writeSet(run.runId, paths, TTL_SECONDS));
    await clients.release(run.runId, leaseId);
  };
}

/** A minute, or half of a shorter run. @typedef {{ perSecond: number, cpu: number | null }} Window */

/**
 * @param {Bench} bench @param {Coordinator} coordinator @param {(worker: number) => Promise<void>} operation
 * @returns {Promise<{ first: Window, last: Window, perSecond: number[] }>}
 */
async function phase(bench, coordinator, operation) {
  await settle(bench, coordinator);
  const seconds = bench.scale.steadySeconds;
  const window = Math.min(WINDOW_SECONDS, seconds / 2);
  const first = await measured(coordinator, window, operation);
  const between = seconds - 2 * window;
  const middle = between > 0 ? await measured(coordinator, between, operation) : null;
  const last = await measured(coordinator, window, operation);
  return { first, last, perSecond: [first, middle, last].flatMap((part) => (part === null ? [] : [part.perSecond])) };
}

/** @param {Coordinator} coordinator @param {number} seconds @param {(worker: number) => Promise<void>} operation @returns {Promise<Window>} */
async function measured(coordinator, seconds, operation) {
  const processes = await coordinator.processes();
  const before = await cpuTimes(processes);
  const { perSecond, count } = await closedLoop(IN_FLIGHT, seconds * 1_000, operation);
  const cpu = cpuPerOperation(before, await cpuTimes(processes), count);
  return { perSecond, cpu: cpu === null ? null : cpu.coordinator + cpu.postgres };
}

/** @param {string} name @param {{ first: Window, last: Window, perSecond: number[] }} phase @param {Window} reference @returns {Row[]} */
function phaseRows(name, { first, last, perSecond }, reference) {
  const ratio = last.perSecond / reference.perSecond;
  const target = { target: `${LEAST} × at least`, reached: atLeast(ratio, LEAST) };
  /** @type {Row[]} */
  const rows = [
    { name: `${name}, first part`, value: first.perSecond, unit: 'cycles/s' },
    { name: `${name}, last part`, value: last.perSecond, unit: 'cycles/s' },
    { name: `${name}, last over first`, value: ratio, unit: '×', ratio, ...target, details: { perSecond } },
  ];
  if (last.cpu === null || reference.cpu === null) return rows;
  // What a cycle costs does not depend on who else uses the machine: the surer of the two.
  const cost = last.cpu / reference.cpu;
  const note = `${Math.round(reference.cpu)} µs of processor time a cycle at first, ${Math.round(last.cpu)} µs at last, coordinator and Postgres`;
  return [...rows, { name: `${name}, cost of a cycle, last over first`, value: cost, unit: '×', ratio: cost, note }];
}

/** @typedef {{ tables: TableSize[], memory: { rss: number, heapUsed: number } }} State */

/** @param {Bench} bench @param {Coordinator} coordinator @returns {Promise<State>} */
async function stateOf({ scale }, coordinator) {
  const database = await coordinator.database();
  return { tables: await database.tableSizes(), memory: await coordinator.memory(scale.memoryRestMs) };
}

/** @param {State} before @param {State} after @returns {Row} */
function growthRow(before, after) {
  const grown = after.tables.map((table) => {
    const was = before.tables.find(({ table: name }) => name === table.table)?.bytes ?? 0;
    return { ...table, grown: table.bytes - was };
  });
  const unexpected = grown.filter(({ table, grown: bytes }) => !MAY_GROW.has(table) && bytes > GROWTH_BYTES);
  const largest = grown.filter(({ bytes }) => bytes > 1 << 20);
  return {
    name: 'tables that grew and should not',
    value: unexpected.length,
    unit: 'tables',
    target: 'none',
    reached: unexpected.length === 0,
    note: `${largest.map(describe).join('; ')}; heap of the coordinator ${mb(before.memory.heapUsed)} before, ${mb(after.memory.heapUsed)} after`,
    details: { tables: grown, before: before.memory, after: after.memory },
  };
}

/** @param {TableSize & { grown: number }} table */
function describe({ table, bytes, live, dead }) {
  return `${table} ${mb(bytes)}, ${live.toLocaleString('en-US')} rows, ${dead.toLocaleString('en-US')} dead`;
}

const mb = (/** @type {number} */ bytes) => `${(bytes / 2 ** 20).toFixed(1)} MB`;
