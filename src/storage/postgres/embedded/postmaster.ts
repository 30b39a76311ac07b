import { readFile, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Cluster } from './cluster.js';
import { absent, hasCode } from './errors.js';
import { inspectProcess } from './process.js';

const FAST_SHUTDOWN_TIMEOUT_MS = 60_000;
const IMMEDIATE_SHUTDOWN_TIMEOUT_MS = 10_000;
const POLL_MS = 20;

/** What `postmaster.pid` says. */
export interface Postmaster {
  readonly pid: number;
  readonly port: number;
  /** The last line Postgres wrote: `starting`, `ready`, `stopping`; empty very early. */
  readonly status: string;
}

/** The live postmaster of this directory. Removes a `postmaster.pid` that would make Postgres refuse to start. */
export async function findPostmaster(cluster: Cluster): Promise<Postmaster | undefined> {
  const recorded = await readPostmasterFile(cluster);
  if (recorded !== undefined) {
    const identity = await identifyPostmaster(cluster, recorded.pid);
    if (identity === 'ours') return recorded;
    // Postgres deals with a dead process itself, and better (it looks for backends that linger). But it takes any
    // live process of the same user for a postmaster, as after a restart of a container that counts from 1 again.
    if (identity === 'gone' || identity === 'exiting') return undefined;
  }
  const path = pidFile(cluster);
  if ((await stat(path).catch(absent)) === undefined) return undefined;
  if (recorded === undefined) {
    // Empty or torn: either this very moment's, by somebody who does not know our lock, or a crash's.
    await pause(1_000);
    if ((await readPostmasterFile(cluster)) !== undefined) return findPostmaster(cluster);
  }
  cluster.log(`removed a stale ${path}`);
  await rm(path, { force: true });
  return undefined;
}

export async function readPostmasterFile(cluster: Cluster): Promise<Postmaster | undefined> {
  const content = await readFile(pidFile(cluster), 'utf8').catch(absent);
  const lines = content?.split('\n') ?? [];
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!Number.isInteger(pid) || pid <= 0 || !Number.isInteger(port) || port <= 0) return undefined;
  return { pid, port, status: lines[7]?.trim() ?? '' };
}

/** Whether the process is, still, the postmaster of this directory. */
export async function isPostmaster(cluster: Cluster, pid: number): Promise<boolean> {
  return (await identifyPostmaster(cluster, pid)) === 'ours';
}

/** Shuts the server down, at first with care for what its clients have under way; returns when it has ended. */
export async function stopPostmaster(cluster: Cluster, pid: number): Promise<void> {
  const steps = [
    ['SIGINT', FAST_SHUTDOWN_TIMEOUT_MS],
    // Immediate: the next start recovers from the log, and loses nothing that was acknowledged.
    ['SIGQUIT', IMMEDIATE_SHUTDOWN_TIMEOUT_MS],
  ] as const;
  for (const [signal, timeoutMs] of steps) {
    const expires = performance.now() + timeoutMs;
    // Asked each time: once it has ended, its process id may be anybody's.
    if (await hasEnded(cluster, pid)) return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (hasCode(error, 'ESRCH')) return;
      throw error;
    }
    while (performance.now() < expires) {
      if (await hasEnded(cluster, pid)) return;
      await pause(POLL_MS);
    }
  }
  throw new Error(`the embedded Postgres (pid ${pid}) did not end`);
}

/** One that is exiting cannot be told from another, and holds its process id and the port for some moments more. */
async function hasEnded(cluster: Cluster, pid: number): Promise<boolean> {
  const identity = await identifyPostmaster(cluster, pid);
  return identity === 'gone' || identity === 'other';
}

/** Whether a process is the postmaster of this directory, is something else, is on its way out, or is no more. */
async function identifyPostmaster({ pgdata }: Cluster, pid: number): Promise<'ours' | 'other' | 'exiting' | 'gone'> {
  const found = await inspectProcess(pid);
  if (found === undefined) return 'gone';
  if (found.exiting) return 'exiting';
  if (basename(found.command[0] ?? '') !== 'postgres') return 'other';
  // The postmaster lives in its data directory. Not always visible (root in a container may lack CAP_SYS_PTRACE), and
  // somebody may have removed the directory under it.
  const [home, directory] = await Promise.all([
    stat(`/proc/${pid}/cwd`).catch(() => undefined),
    stat(pgdata).catch(absent),
  ]);
  if (home !== undefined && directory !== undefined) {
    return home.dev === directory.dev && home.ino === directory.ino ? 'ours' : 'other';
  }
  return found.command.join(' ').includes(`-D ${pgdata} `) ? 'ours' : 'other';
}

function pidFile(cluster: Cluster): string {
  return join(cluster.pgdata, 'postmaster.pid');
}
