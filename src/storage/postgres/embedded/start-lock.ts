import { randomBytes, randomInt } from 'node:crypto';
import { link, readdir, readFile, rename, rm, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from './cluster.js';
import { absent, hasCode } from './errors.js';
import { writeDurably } from './files.js';
import { isSameProcess, ownStartTime } from './process.js';

/** Whoever holds the lock may need an initdb and a whole start. */
const LOCK_TIMEOUT_MS = 90_000;
const POLL_MS = 20;

/** Waits its turn; returns what gives it back. The holder is named by pid and start time, so a dead one is seen. */
export async function acquireStartLock(cluster: Cluster): Promise<() => Promise<void>> {
  const holder = { pid: process.pid, started: await ownStartTime(), nonce: randomInt(2 ** 32) };
  const mine = `${JSON.stringify(holder)}\n`;
  const draft = `${cluster.lockFile}.${randomBytes(6).toString('hex')}`;
  // Linked into place with its content, so that nobody ever reads a lock without a holder.
  await writeDurably(draft, mine);
  try {
    await waitForLock(cluster, draft);
  } finally {
    await unlink(draft);
  }
  await sweepDrafts(cluster);
  return async () => {
    const held = await readFile(cluster.lockFile, 'utf8').catch(absent);
    if (held === mine) await rm(cluster.lockFile, { force: true });
  };
}

async function waitForLock(cluster: Cluster, draft: string): Promise<void> {
  const expires = performance.now() + LOCK_TIMEOUT_MS;
  while (!(await tryLink(draft, cluster.lockFile))) {
    const held = await readFile(cluster.lockFile, 'utf8').catch(absent);
    if (held === undefined) continue;
    if (!(await isHolderAlive(held))) {
      await breakLock(cluster, held);
      continue;
    }
    if (performance.now() > expires) {
      const text = `${held.trim()} has held ${cluster.lockFile} for ${LOCK_TIMEOUT_MS} ms`;
      throw new Error(`the embedded Postgres is being started by another process: ${text}`);
    }
    await pause(POLL_MS);
  }
}

/** False when there is a file of that name. */
async function tryLink(existing: string, path: string): Promise<boolean> {
  try {
    await link(existing, path);
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  }
}

/** Removes what starters that were killed while they waited left behind. */
async function sweepDrafts(cluster: Cluster): Promise<void> {
  for (const name of await readdir(cluster.root)) {
    if (!name.startsWith(`${basename(cluster.lockFile)}.`)) continue;
    const path = join(cluster.root, name);
    const draft = await readFile(path, 'utf8').catch(absent);
    if (draft !== undefined && draft !== '' && !(await isHolderAlive(draft))) await rm(path, { force: true });
  }
}

async function isHolderAlive(held: string): Promise<boolean> {
  try {
    const { pid, started } = JSON.parse(held) as { pid?: unknown; started?: unknown };
    return typeof pid === 'number' && (await isSameProcess(pid, started));
  } catch {
    return false;
  }
}

/** Takes the dead holder's lock away, and nobody else's: two may find it dead, and the faster holds a new one. */
async function breakLock(cluster: Cluster, dead: string): Promise<void> {
  const aside = `${cluster.lockFile}.${randomBytes(6).toString('hex')}`;
  try {
    await rename(cluster.lockFile, aside);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return;
    throw error;
  }
  if ((await readFile(aside, 'utf8')) !== dead) await link(aside, cluster.lockFile).catch(() => undefined);
  await unlink(aside);
}
