import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { FileHandle } from 'node:fs/promises';
import { basename } from 'node:path';
import { promisify } from 'node:util';
import type { Account } from './account.js';
import type { Binaries } from './binaries.js';
import { CHILD_ENV } from './child-env.js';
import { messageOf } from './errors.js';

const MAX_STDERR_CHARS = 4096;

/** A way to run the binaries here: under `setpriv`, under another uid, or plainly. */
export interface Launcher {
  readonly binaries: Binaries;
  readonly prefix: readonly string[];
  /** Set when root starts the server: whom the files belong to. */
  readonly account?: Account;
  readonly ids: { readonly uid?: number; readonly gid?: number };
}

export interface DetachedProcess {
  readonly pid: number;
  readonly hasEnded: () => boolean;
}

/** Runs a binary to its end and returns what it printed; throws with that when it failed. */
export async function runBinary(
  launcher: Launcher,
  binary: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<string> {
  const [file = binary, ...rest] = [...launcher.prefix, binary, ...args];
  try {
    const options = { ...launcher.ids, cwd: '/', env: CHILD_ENV, timeout: timeoutMs, maxBuffer: 1 << 20 };
    return (await promisify(execFile)(file, rest, options)).stdout;
  } catch (error) {
    const { stderr, killed, code } = error as { stderr?: string; killed?: boolean; code?: unknown };
    const ended = typeof code === 'number' ? `${basename(file)} ended with ${code}` : messageOf(error);
    const said = killed ? `${basename(file)} was not done after ${timeoutMs} ms` : stderr?.trim() || ended;
    throw new Error(said.slice(-MAX_STDERR_CHARS));
  }
}

/** Starts the server so that it outlives this process. */
export async function spawnDetached(
  launcher: Launcher,
  args: readonly string[],
  log: FileHandle,
): Promise<DetachedProcess> {
  const [file = launcher.binaries.postgres, ...rest] = [...launcher.prefix, launcher.binaries.postgres, ...args];
  const child = spawn(file, rest, {
    ...launcher.ids,
    // A session of its own: neither the terminal's Ctrl-C nor the end of our process group reaches it.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    cwd: '/',
    env: CHILD_ENV,
  });
  let ended = false;
  child.once('exit', () => {
    ended = true;
  });
  await once(child, 'spawn');
  child.unref();
  const pid = child.pid;
  if (pid === undefined) throw new Error('the embedded Postgres has no process id');
  return { pid, hasEnded: () => ended };
}
