import { readFile } from 'node:fs/promises';

/**
 * Processor time, from /proc. Unlike a rate, the time that one operation takes is nearly the same whatever else the
 * machine is doing, so it is what to compare when others share the machine.
 */

/** Linux counts in hundredths of a second. */
const TICK_MS = 10;

/** Milliseconds since each began. @typedef {{ client: number, coordinator: number, postgres: number }} CpuTimes */

/**
 * @param {{ coordinator: number, postmaster: number | null }} processes
 * @returns {Promise<CpuTimes | null>} null where the system does not tell
 */
export async function cpuTimes({ coordinator, postmaster }) {
  const own = process.cpuUsage();
  const [ofCoordinator, ofPostgres] = await Promise.all([ownTicks(coordinator), ticksOfTree(postmaster)]);
  if (ofCoordinator === null || ofPostgres === null) return null;
  return {
    client: (own.user + own.system) / 1_000,
    coordinator: ofCoordinator * TICK_MS,
    postgres: ofPostgres * TICK_MS,
  };
}

/** Microseconds for each operation. @param {CpuTimes | null} before @param {CpuTimes | null} after @param {number} count */
export function cpuPerOperation(before, after, count) {
  if (before === null || after === null || count === 0) return null;
  const each = (/** @type {keyof CpuTimes} */ key) => Math.round(((after[key] - before[key]) * 1_000) / count);
  return { client: each('client'), coordinator: each('coordinator'), postgres: each('postgres') };
}

/** @param {number} pid */
async function ownTicks(pid) {
  const fields = await statOf(pid);
  return fields === null ? null : fields.own;
}

/** A postmaster, its children, and those of its children that have ended. @param {number | null} pid */
async function ticksOfTree(pid) {
  if (pid === null) return null;
  const parent = await statOf(pid);
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => null);
  if (parent === null || children === null) return null;
  const stats = await Promise.all(
    children
      .split(' ')
      .filter(Boolean)
      .map((child) => statOf(Number(child))),
  );
  return parent.own + parent.ended + stats.reduce((sum, stat) => sum + (stat?.own ?? 0), 0);
}

/** @param {number} pid */
async function statOf(pid) {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  // The name, in parentheses, may hold anything; what follows it begins with the third field.
  const fields = text
    ?.slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  if (fields === undefined) return null;
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15);
  return { own: user + system, ended: endedUser + endedSystem };
}
