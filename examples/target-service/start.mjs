/**
 * The service as a process: DATABASE_URL, WRIT_ENDPOINT, WRIT_TOKEN (a principal with the role target), OPERATOR_TOKEN,
 * and PORT (default 8080).
 */
import { serve } from '@hono/node-server';
import pg from 'pg';
import { connectWrit } from 'writ/target';
import { createService } from './service.mjs';

const { DATABASE_URL, WRIT_ENDPOINT = '127.0.0.1:7410', WRIT_TOKEN, OPERATOR_TOKEN, PORT = '8080' } = process.env;
if (!DATABASE_URL || !WRIT_TOKEN || !OPERATOR_TOKEN)
  throw new Error('DATABASE_URL, WRIT_TOKEN and OPERATOR_TOKEN must be set');

const pool = new pg.Pool({ connectionString: DATABASE_URL });
// An idle connection that breaks is replaced at the next request; without a listener it would end this process.
pool.on('error', () => undefined);
const writ = connectWrit({ endpoint: WRIT_ENDPOINT, token: WRIT_TOKEN });
const service = await createService({ pool, writ, operatorToken: OPERATOR_TOKEN });
const server = serve({ fetch: service.app.fetch, hostname: '127.0.0.1', port: Number(PORT) }, ({ port }) => {
  console.log(JSON.stringify({ event: 'ready', url: `http://127.0.0.1:${port}` }));
});

process.once('SIGTERM', async () => {
  server.close();
  await service.close();
  writ.close();
  await pool.end();
});
