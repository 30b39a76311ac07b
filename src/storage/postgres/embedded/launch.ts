import { open } from 'node:fs/promises';
import type { Cluster } from './cluster.js';
import { type DetachedProcess, type Launcher, spawnDetached } from './launcher.js';
import { freePort } from './port.js';
import { findPostmaster, type Postmaster, stopPostmaster } from './postmaster.js';
import { waitUntilReady } from './readiness.js';
import { logTail, rotateAtStart } from './server-log.js';
import type { ServerOptions } from './settings.js';

/** Ready, or ended before it was; then what the server said begins at `logOffset` in its log. */
export type LaunchOutcome = { readonly ready: Postmaster } | { readonly mayRetry: boolean; readonly logOffset: number };

/** Starts a server once, and waits until it is ready. */
export async function launch(
  cluster: Cluster,
  launcher: Launcher,
  options: ServerOptions,
  expires: number,
): Promise<LaunchOutcome> {
  await rotateAtStart(cluster);
  const { child, logOffset } = await spawnServer(cluster, launcher, options);
  try {
    const candidate = { pid: child.pid, isAlive: async () => !child.hasEnded(), logOffset };
    const ready = await waitUntilReady(cluster, candidate, expires);
    if (ready !== undefined) return { ready };
  } catch (error) {
    // A long crash recovery is let finish: ended here it would begin anew each time, and the next start adopts it.
    const now = await findPostmaster(cluster);
    if (now?.pid !== child.pid || now.status !== 'starting') await stopPostmaster(cluster, child.pid);
    throw error;
  }
  const said = await logTail(cluster, logOffset);
  // The backends of a server that was killed end when they notice; a port can be taken between look and use.
  const lingering = /lock file "postmaster\.pid"|shared memory block .* is still in use/.test(said);
  const portTaken = options.port === undefined && /could not bind|could not create any TCP\/IP sockets/.test(said);
  return { mayRetry: lingering || portTaken, logOffset };
}

async function spawnServer(
  cluster: Cluster,
  launcher: Launcher,
  options: ServerOptions,
): Promise<{ child: DetachedProcess; logOffset: number }> {
  const port = options.port ?? (await freePort());
  const flags = Object.entries({ ...options.settings, port }).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const log = await open(cluster.logFile, 'a', 0o600);
  try {
    const logOffset = (await log.stat()).size;
    return { child: await spawnDetached(launcher, ['-D', cluster.pgdata, ...flags], log), logOffset };
  } finally {
    await log.close();
  }
}
