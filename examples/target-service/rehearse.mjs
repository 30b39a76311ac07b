/** The classic collisions, played against the service: npm run build && node examples/target-service/rehearse.mjs */
import { serve } from '@hono/node-server';
import pg from 'pg';
import { freeAddress, rehearse } from '../support/rehearse.mjs';
import { openStage } from '../support/stage.mjs';
import { createService } from './service.mjs';

const stage = await openStage(new URL('map.yaml', import.meta.url));
const pool = new pg.Pool({ connectionString: stage.databaseUrl });
pool.on('error', () => undefined);
const asked = await freeAddress();
let service;
let server;
try {
  const writ = await stage.client('target', asked);
  service = await createService({ pool, writ, operatorToken: 'of a person', log: () => undefined });
  const url = await new Promise((resolve) => {
    server = serve({ fetch: service.app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) =>
      resolve(`http://127.0.0.1:${port}`),
    );
  });
  process.exitCode = await rehearse({
    ...stage,
    config: new URL('rehearsal.yaml', import.meta.url),
    addresses: { '127.0.0.1:17410': asked },
    url,
  });
} finally {
  server?.closeAllConnections();
  server?.close();
  await service?.close();
  await pool.end();
  await stage.close();
}
