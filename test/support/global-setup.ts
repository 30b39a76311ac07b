import { chmod, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../../src/storage/postgres/embedded.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's URL of the server that the whole run shares. */
    postgresUrl: string;
  }
}

/**
 * One Postgres for the whole run: WRIT_TEST_DATABASE_URL when set, else an embedded one in a fresh temporary directory.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await sweepDeadRuns();
  const given = process.env.WRIT_TEST_DATABASE_URL;
  if (given !== undefined && given !== '') {
    project.provide('postgresUrl', given);
    return async () => undefined;
  }
  const directory = await makeTestDirectory('run');
  const server = await startEmbeddedPostgres({
    dataDir: join(directory, 'data'),
    settings: { max_connections: '200' },
  }).catch(async (error: unknown) => {
    await rm(directory, { recursive: true, force: true });
    throw error;
  });
  project.provide('postgresUrl', server.url);
  return async () => {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  };
}

/** A fresh 0700 directory that later runs sweep, should this process be killed before it removes it. */
export async function makeTestDirectory(kind: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), `writ-test-${kind}-${process.pid}-`));
  await chmod(directory, 0o700);
  return directory;
}

/** A server outlives a run that is killed, as it should in production; so each run ends those of dead ones. */
async function sweepDeadRuns(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = /^writ-test-[a-z]+-(\d+)-\w+$/.exec(name)?.[1];
    if (pid === undefined || isAlive(Number(pid))) continue;
    const directory = join(tmpdir(), name);
    try {
      for (const child of await readdir(directory)) {
        const dataDir = join(directory, child);
        const running = await stat(join(dataDir, 'pgdata', 'postmaster.pid')).catch(() => undefined);
        // Adopts it, or starts it once more when only the file is left.
        if (running !== undefined) await (await startEmbeddedPostgres({ dataDir })).stop();
      }
      await rm(directory, { recursive: true, force: true });
    } catch {
      // Another user's, or another run sweeps it at this moment.
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
