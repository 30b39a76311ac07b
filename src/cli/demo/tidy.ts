import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startEmbeddedPostgres } from '../../storage/postgres/embedded.js';

/**
 * Takes away what the demo leaves behind: processes by their ids, the Postgres servers (which are nobody's children, so
 * that they survive a coordinator that is killed), and the directory. Called by the demo at its end and by the
 * caretaker when the demo ended without it. Safe to repeat.
 */

export interface StartedProcess {
  readonly pid: number;
  /** When it began: with the pid it names a process for good. Undefined where the platform does not tell. */
  readonly startedAt: string | undefined;
}

export interface Inventory {
  /** All files are below it, those of the Postgres servers too. */
  readonly directory: string;
  readonly processes: readonly StartedProcess[];
}

const POLL_MS = 20;
const KILL_TIMEOUT_MS = 5_000;
/** A server's directory is at most this far below the demo's. */
const DEPTH = 3;

export async function tidy({ directory, processes }: Inventory): Promise<void> {
  await Promise.all(processes.map(endProcess));
  const servers = await findServers(directory, DEPTH);
  await Promise.all(servers.map(async (dataDir) => (await startEmbeddedPostgres({ dataDir })).stop()));
  await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
}

/** The process with its moment of birth, to be known again. */
export async function identify(pid: number): Promise<StartedProcess> {
  return { pid, startedAt: (await statusFields(pid))?.[19] };
}

/** Whether it still runs, and is not another one that got its number. */
export async function isRunning(process: StartedProcess): Promise<boolean> {
  if (!exists(process.pid)) return false;
  const fields = await statusFields(process.pid);
  // A zombie is over; it only waits for its parent to look.
  return fields === undefined || (fields[0] !== 'Z' && fields[19] === process.startedAt);
}

/** The one-letter state of a process, such as `T` for stopped; undefined where the platform does not tell. */
export async function stateOf(pid: number): Promise<string | undefined> {
  return (await statusFields(pid))?.[0];
}

/** What Linux says about a process, from its state on; the name before it may contain anything. */
async function statusFields(pid: number): Promise<string[] | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return text?.slice(text.lastIndexOf(')') + 2).split(' ');
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

async function endProcess(started: StartedProcess): Promise<void> {
  if (!(await isRunning(started))) return;
  try {
    process.kill(started.pid, 'SIGKILL');
  } catch {
    return;
  }
  const expires = performance.now() + KILL_TIMEOUT_MS;
  while ((await isRunning(started)) && performance.now() < expires) await pause(POLL_MS);
}

/** Directories of embedded Postgres servers that run: such a one holds a `postmaster.pid`, and is adopted and stopped. */
async function findServers(directory: string, depth: number): Promise<string[]> {
  const running = await stat(join(directory, 'pgdata', 'postmaster.pid')).catch(() => undefined);
  if (running !== undefined) return [directory];
  if (depth === 0) return [];
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  const below = entries.filter((entry) => entry.isDirectory()).map((entry) => join(directory, entry.name));
  return (await Promise.all(below.map((path) => findServers(path, depth - 1)))).flat();
}
