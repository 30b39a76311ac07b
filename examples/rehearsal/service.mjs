import { randomUUID } from 'node:crypto';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import pg from 'pg';
import { checkFence, connectWrit, GuardRefusedError, postgresGuard } from 'writ/target';

const { COORDINATOR, TARGET_TOKEN, DATABASE_URL, PORT = '8080' } = process.env;
const writ = connectWrit({ endpoint: COORDINATOR, token: TARGET_TOKEN });
const pool = new pg.Pool({ connectionString: DATABASE_URL });
const guard = postgresGuard();
await guard.install(pool);
await pool.query(`CREATE TABLE IF NOT EXISTS release (env text PRIMARY KEY, version bigint NOT NULL, image text NOT NULL);
  INSERT INTO release VALUES ('rehearsal', 1, 'shop:1.0') ON CONFLICT DO NOTHING`);

/** A refusal that a run can act on. */
const refuse = (c, status, code, more = {}) => {
  const next = status === 503 ? 'Send the same again later.' : 'Stop, read again, and decide anew.';
  const problem = { title: code, status, code, retryable: status === 503, resolver: 'release-owner', next, ...more };
  return c.body(JSON.stringify(problem), status, { 'content-type': 'application/problem+json' });
};

/** What the run wants to write, if the coordinator lets it; else the refusal. */
async function admitted(c) {
  const leaseId = c.req.header('writ-lease') ?? '';
  const token = c.req.header('writ-fencing-token') ?? '';
  if (leaseId === '' || !/^[1-9]\d{0,17}$/.test(token)) return refuse(c, 403, 'lease_required');
  const write = { resource: `release/${c.req.param('env')}`, action: 'promote', token: BigInt(token) };
  // Each request is an attempt of its own, whatever id its caller sends to find it by.
  const question = { leaseId, writes: [write], requestId: randomUUID() };
  const decision = await checkFence(writ, question, { requestId: c.req.header('x-request-id') });
  return decision.allowed ? write : refuse(c, decision.error ? 503 : 403, decision.reason);
}

const app = new Hono();

app.get('/releases/:env', async (c) => {
  const { rows } = await pool.query('SELECT version, image FROM release WHERE env = $1', [c.req.param('env')]);
  if (rows.length === 0) return refuse(c, 404, 'not_found');
  return c.json({ image: rows[0].image }, 200, { etag: `"${rows[0].version}"` });
});

// A new holder's first act: from here on no write of an older one lands.
app.post('/releases/:env/open', async (c) => {
  const write = await admitted(c);
  if (write instanceof Response) return write;
  await guard.open(pool, write);
  return c.json({ opened: true });
});

app.put('/releases/:env', async (c) => {
  const [, version] = /^"(\d{1,15})"$/.exec(c.req.header('if-match') ?? '') ?? [];
  if (version === undefined) return refuse(c, 428, 'precondition_required');
  const write = await admitted(c);
  if (write instanceof Response) return write;
  const { image } = await c.req.json();
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await guard.admit(client, { ...write, exclusive: true });
    const { rows } = await client.query(
      'UPDATE release SET version = version + 1, image = $1 WHERE env = $2 AND version = $3 RETURNING version',
      [image, c.req.param('env'), version],
    );
    if (rows.length === 0) {
      const { rows: now } = await client.query('SELECT version FROM release WHERE env = $1', [c.req.param('env')]);
      await client.query('COMMIT');
      const versions = { expected_version: version, current_version: now[0]?.version };
      return refuse(c, 412, 'version_conflict', versions);
    }
    await client.query('COMMIT');
    return c.json({ image }, 200, { etag: `"${rows[0].version}"` });
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
});

app.onError((error, c) => {
  if (error instanceof GuardRefusedError) return refuse(c, 409, error.reason);
  console.error(error);
  return refuse(c, 500, 'fault');
});

serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(PORT) }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}`);
});
