import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import pg from 'pg';
import { connectWrit, postgresGuard } from '../../clients/target/index.js';
import { type Running, runProgram } from './program.js';
import { targetApp } from './target-app.js';
import { TargetStore } from './target-store.js';

/** The demo's target service, a program of its own: `node target-service.js`, configured by its first line on stdin. */

export interface TargetConfig {
  /** Its own database, which has nothing to do with the coordinator's. */
  readonly databaseUrl: string;
  readonly coordinator: string;
  /** As the principal with the role `target`. */
  readonly token: string;
  readonly runKey: string;
}

export interface TargetReady {
  readonly url: string;
}

async function start(config: TargetConfig): Promise<Running<never, never>> {
  const pool = new pg.Pool({ connectionString: config.databaseUrl, max: 5 });
  // An idle connection that breaks is replaced at the next request; without a listener it would end this process.
  pool.on('error', () => undefined);
  // The same for one that breaks in the middle of a request, whose next query says so.
  pool.on('connect', (client) => client.on('error', () => undefined));
  const store = new TargetStore(pool, postgresGuard());
  await store.install();
  const writ = connectWrit({ endpoint: config.coordinator, token: config.token });
  const app = targetApp({ store, writ, runKey: config.runKey });
  const { server, address } = await listen(app.fetch);
  const ready: TargetReady = { url: `http://127.0.0.1:${address.port}` };
  return {
    ready,
    handle: () => Promise.reject(new Error('the target service is asked over HTTP')),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      writ.close();
      await pool.end();
    },
  };
}

function listen(
  fetch: (request: Request) => Response | Promise<Response>,
): Promise<{ server: Server; address: AddressInfo }> {
  return new Promise((resolve, reject) => {
    const server = serve({ fetch, hostname: '127.0.0.1', port: 0 }, (address) =>
      resolve({ server, address }),
    ) as Server;
    server.once('error', reject);
  });
}

await runProgram(start);
