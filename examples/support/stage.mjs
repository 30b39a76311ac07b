/**
 * What the walks of the examples stand on: a coordinator with its embedded Postgres, another Postgres for the service's
 * own data, all in a directory of their own, and taken away at the end. A service of yours needs none of this: it is
 * given a database, the coordinator's address and its own token.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { connectWrit } from 'writ/runner';
import { startEmbeddedPostgres } from '../../dist/storage/postgres/embedded.js';

const COORDINATOR = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export async function openStage(map) {
  const directory = await mkdtemp(join(tmpdir(), 'writ-example-'));
  const dataDir = join(directory, 'coordinator');
  const database = await startEmbeddedPostgres({ dataDir: join(directory, 'database') });
  const clients = [];
  let child;
  let port = '0';

  const stage = {
    directory,
    dataDir,
    databaseUrl: database.url,
    endpoint: '',

    /** As the principal with this role; the development tokens name them so. */
    async client(role, endpoint = stage.endpoint) {
      const tokens = JSON.parse(await readFile(join(dataDir, 'dev-tokens.json'), 'utf8'));
      const client = connectWrit({ endpoint, token: tokens[role], timeoutMs: 5_000 });
      clients.push(client);
      return client;
    },

    async startCoordinator() {
      child = spawn(process.execPath, [COORDINATOR], {
        env: {
          ...process.env,
          WRIT_DATA_DIR: dataDir,
          WRIT_GRPC_PORT: port,
          WRIT_HTTP_PORT: '0',
          WRIT_LOG_LEVEL: 'silent',
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [line] = await once(createInterface({ input: child.stdout }), 'line');
      stage.endpoint = JSON.parse(line).grpc;
      port = stage.endpoint.split(':').at(-1);
    },

    async stopCoordinator() {
      if (child === undefined || child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },

    async close() {
      for (const client of clients) client.close();
      await stage.stopCoordinator();
      await database.stop();
      await rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };

  try {
    await stage.startCoordinator();
    const admin = await stage.client('admin');
    const document = await readFile(map, 'utf8');
    await admin.conflictMap.putConflictMap({ document, expectedVersion: 0n, reason: 'the example' });
    return stage;
  } catch (error) {
    await stage.close();
    throw error;
  }
}

/** Says what was seen, and ends the walk when it is not what the README promises. */
export function seen(what, is, expected) {
  console.log(`${what}: ${is}`);
  if (is !== expected) throw new Error(`expected ${expected}`);
}

/** Waits until something is so; 20 s at most. */
export async function until(probe) {
  for (let tries = 0; tries < 400; tries += 1) {
    const found = await probe();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('it did not come true within 20 s');
}
