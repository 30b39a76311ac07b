import type { Server } from 'node:http';
import { serve } from '@hono/node-server';
import pg from 'pg';
import { connectWrit } from '../../../src/clients/target/index.js';
import type { Service, ServiceOptions } from './service.js';

/** A target service of a test, over a real socket and a database of its own. */
export interface RunningTarget {
  readonly url: string;
  stop(): Promise<void>;
}

export async function runTarget(
  Kind: new (options: ServiceOptions) => Service,
  options: {
    readonly databaseUrl: string;
    readonly coordinator: string;
    readonly token: string;
    readonly runKey: string;
    readonly issuer?: string;
  },
): Promise<RunningTarget> {
  const pool = new pg.Pool({ connectionString: options.databaseUrl, max: 10 });
  pool.on('error', () => undefined);
  const writ = connectWrit({ endpoint: options.coordinator, token: options.token });
  const service = new Kind({
    pool,
    writ,
    runKey: options.runKey,
    ...(options.issuer === undefined ? {} : { issuer: options.issuer }),
  });
  await service.install();
  const { server, port } = await new Promise<{ server: Server; port: number }>((resolve) => {
    const made = serve({ fetch: service.app().fetch, hostname: '127.0.0.1', port: 0 }, (address) =>
      resolve({ server: made as Server, port: address.port }),
    );
  });
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      writ.close();
      await pool.end();
    },
  };
}
