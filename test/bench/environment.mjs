import { open, rm, statfs } from 'node:fs/promises';
import { availableParallelism, cpus, loadavg, platform, release, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { median } from './measure.mjs';

const PAGE = 8_192;
const FSYNCS = 100;
/** As statfs(2) names it. */
const TMPFS = 0x01021994;

/** What the figures depend on besides Writ and its Postgres; taken before anything is started. */
export async function describeMachine() {
  const { type } = await statfs(tmpdir());
  return {
    date: new Date().toISOString(),
    cores: availableParallelism(),
    cpu: cpus()[0]?.model ?? 'unknown',
    memoryMb: Math.round(totalmem() / 2 ** 20),
    system: `${platform()} ${release()}`,
    node: process.version,
    loadAverageBefore: loadavg().map(round2),
    directory: tmpdir(),
    inMemoryDirectory: type === TMPFS,
    fdatasyncMs: round2(await medianFsync()),
  };
}

/**
 * @typedef {Awaited<ReturnType<typeof describeMachine>> & {
 *   loadAverageAfter: number[], postgres: Record<string, string>, peers: Record<string, string>
 * }} Environment
 */

/** How long the disk takes to keep a page: the least that any commit can take. */
async function medianFsync() {
  const path = join(tmpdir(), `writ-bench-fsync-${process.pid}`);
  const file = await open(path, 'wx', 0o600);
  const times = [];
  try {
    const page = Buffer.alloc(PAGE, 1);
    for (let i = 0; i < FSYNCS; i += 1) {
      const from = performance.now();
      await file.write(page, 0, PAGE, i * PAGE);
      await file.datasync();
      times.push(performance.now() - from);
    }
  } finally {
    await file.close();
    await rm(path, { force: true });
  }
  return median(times);
}

export const round2 = (/** @type {number} */ value) => Math.round(value * 100) / 100;
