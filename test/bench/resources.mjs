import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Everything that a run has started or made, ended in reverse order whatever happens. Processes are ended by their
 * id and nothing else, so that a neighbour's coordinator or Postgres is never touched.
 */
export class Resources {
  /** @type {(() => Promise<void>)[]} */
  #enders = [];
  /** @type {Promise<void> | undefined} */
  #ended;

  /** @param {() => Promise<void>} end idempotent */
  add(end) {
    this.#enders.push(end);
  }

  /** A directory of its own, removed at the end. @param {string} name */
  async directory(name) {
    const path = await mkdtemp(join(tmpdir(), `writ-bench-${name}-`));
    this.add(() => rm(path, { recursive: true, force: true, maxRetries: 5 }));
    return path;
  }

  end() {
    this.#ended ??= this.#endAll();
    return this.#ended;
  }

  async #endAll() {
    for (const end of this.#enders.reverse()) {
      await end().catch((error) => process.stderr.write(`bench: could not tidy up: ${error}\n`));
    }
  }
}

/** @param {number} pid */
export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Sends the signal and waits; sends SIGKILL when that was not enough. @param {number} pid */
export async function endProcess(pid, /** @type {NodeJS.Signals} */ signal, patienceMs = 15_000) {
  for (const name of [signal, /** @type {const} */ ('SIGKILL')]) {
    try {
      process.kill(pid, name);
    } catch {
      return;
    }
    for (let waited = 0; waited < patienceMs; waited += 20) {
      if (!isAlive(pid)) return;
      await pause(20);
    }
  }
}

/**
 * The embedded Postgres of a data directory outlives a coordinator that was killed. Ends the one that runs there;
 * that it is that one is read from its working directory, as an id may have been given to another process since.
 * @param {string} dataDir
 */
export async function endPostgresOf(dataDir) {
  const pid = await postmasterOf(dataDir);
  if (pid !== null) await endProcess(pid, 'SIGINT');
}

/** @param {string} dataDir @returns {Promise<number | null>} */
export async function postmasterOf(dataDir) {
  const text = await readFile(join(dataDir, 'pgdata', 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(text.split('\n')[0]);
  if (!Number.isInteger(pid) || pid <= 1 || !isAlive(pid)) return null;
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => dataDir);
  return command.includes(dataDir) ? pid : null;
}
