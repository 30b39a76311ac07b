/**
 * A service behind Writ, whole: release pointers and notification policies in Postgres, over HTTP. The gate asks the
 * coordinator before a handler runs; key, guard, version condition and the service's own record then share one
 * transaction, which commits only if all of them agree.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { Hono } from 'hono';
import {
  conditionOf,
  createGate,
  honoGate,
  honoIdempotent,
  postgresGuard,
  postgresIdempotency,
  postgresOverrideJournal,
  problemAnswer,
  problemOf,
  readRouteTable,
  responseOf,
  writeRecords,
  writesOf,
} from 'writ/target';

const SCHEMA = `
CREATE TABLE IF NOT EXISTS release (env text PRIMARY KEY, version bigint NOT NULL, image text NOT NULL);
CREATE TABLE IF NOT EXISTS policy (id text PRIMARY KEY, version bigint NOT NULL, severity text NOT NULL, destinations text[] NOT NULL);
INSERT INTO release VALUES ('prod-eu', 7, 'shop:1.8.2'), ('staging', 3, 'shop:1.9.0') ON CONFLICT DO NOTHING;
INSERT INTO policy VALUES ('prod-alerts', 41, 'warning', '{pager:ops}') ON CONFLICT DO NOTHING;`;

const DAY_MS = 86_400_000;

/** `operatorToken` is a person's; runs have credentials, or leases and tokens. */
export async function createService({ pool, writ, operatorToken, log = console.error }) {
  const guard = postgresGuard();
  const records = writeRecords();
  const journal = postgresOverrideJournal(pool);
  const keys = postgresIdempotency(pool, { retentionMs: 7 * DAY_MS, inDoubtMs: DAY_MS, effects: 'in_transaction' });
  await guard.install(pool);
  await records.install(pool);
  await journal.install();
  await keys.install();
  await pool.query(SCHEMA);

  const routes = readRouteTable(new URL('routes.yaml', import.meta.url));
  const gate = createGate({ client: writ, routes, overrides: { journal }, onProblem: log });

  const isOperator = (c) => sameToken(c.req.header('x-operator-token') ?? '', operatorToken);
  const app = new Hono();
  app.use(honoGate(gate, { caller: (c) => (isOperator(c) ? { person: 'operator' } : {}) }));
  app.use(recordRefusals);

  app.get('/releases/:env', (c) => read(c, 'SELECT version, image FROM release WHERE env = $1', c.req.param('env')));
  app.get('/policies/:id', (c) =>
    read(c, 'SELECT version, severity, destinations FROM policy WHERE id = $1', c.req.param('id')),
  );

  app.post('/releases/:env/open', open);
  app.post('/policies/:id/open', open);

  app.put(
    '/releases/:env',
    write('PUT /releases/{env}', ['image'], (c, { image }) => ({
      update: {
        text: 'UPDATE release SET image = $2, version = version + 1 WHERE env = $1 AND version = :observed RETURNING version',
        values: [c.req.param('env'), image],
      },
      current: { text: 'SELECT version FROM release WHERE env = $1', values: [c.req.param('env')] },
    })),
  );

  app.patch(
    '/policies/:id',
    write('PATCH /policies/{id}', ['destinations'], (c, { add_destination: added }) => ({
      update: {
        text: 'UPDATE policy SET destinations = array_append(destinations, $2), version = version + 1 WHERE id = $1 AND version = :observed RETURNING version',
        values: [c.req.param('id'), added],
      },
      current: { text: 'SELECT version FROM policy WHERE id = $1', values: [c.req.param('id')] },
    })),
  );

  app.put(
    '/policies/:id',
    write('PUT /policies/{id}', ['severity', 'destinations'], (c, { severity, destinations }) => ({
      update: {
        text: 'UPDATE policy SET severity = $2, destinations = $3, version = version + 1 WHERE id = $1 AND version = :observed RETURNING version',
        values: [c.req.param('id'), severity, destinations],
      },
      current: { text: 'SELECT version FROM policy WHERE id = $1', values: [c.req.param('id')] },
    })),
  );

  app.get('/records', async (c) => c.json(await records.list(pool)));

  app.post('/overrides', async (c) => {
    if (!isOperator(c)) return c.json({ detail: 'Only an operator opens an override.' }, 401);
    const { why, minutes, patterns } = await c.req.json();
    const until = new Date(Date.now() + minutes * 60_000);
    return c.json(await gate.override({ who: 'operator', why, until, patterns }), 201);
  });

  app.onError((error) => {
    const refusal = problemOf(error);
    if (refusal !== undefined) return responseOf(problemAnswer(refusal));
    log('a request failed', error);
    return new Response('internal error', { status: 500 });
  });

  return { app, close: () => gate.close() };

  async function read(c, query, id) {
    const { rows } = await pool.query(query, [id]);
    if (rows.length === 0) return c.json({ detail: 'There is none.' }, 404);
    const { version, ...body } = rows[0];
    return c.json(body, 200, { etag: `"${version}"` });
  }

  /** A new holder's first act: what an old one still has under way has landed before, or never does. */
  async function open(c) {
    const { toGuard } = writesOf(c);
    // Nothing: the kind is only observed, and nobody is shut out.
    if (toGuard.length > 0) await guard.open(pool, ...toGuard);
    return c.json({ opened: toGuard.length > 0 });
  }

  /** A protected write: once per key, let in by the guard, on the version that was read, on record; all or nothing. */
  function write(route, changedFields, change) {
    return honoIdempotent(keys, { route, principal: identityOf }, async (c, client) => {
      const { toGuard, writes, requestId } = writesOf(c);
      const condition = conditionOf(c.req.raw.headers, { ...writes[0], requestId });
      await guard.admit(client, ...toGuard);
      const { version, etag } = await condition.change(client, change(c, await c.req.json()));
      await records.add(client, { ...attempt(c), changedFields, result: 'written', status: 200, newVersion: version });
      return c.json({ version }, 200, { etag });
    });
  }

  /** A refusal rolls its transaction back, so it is recorded after that. */
  async function recordRefusals(c, next) {
    await next();
    if (c.res.status < 400 || c.req.method === 'GET' || c.req.path === '/overrides') return;
    const { code = 'error' } = await c.res
      .clone()
      .json()
      .catch(() => ({}));
    await records.add(pool, { ...attempt(c), result: code, status: c.res.status });
  }
}

/**
 * Whose keys and whose record: the run's, or the person's with an override. Where a kind is only observed there may be
 * neither, and this service knows nobody else: those callers share one name, and so must not share keys.
 */
function identityOf(c) {
  const { runId, override } = writesOf(c);
  return runId || (override === undefined ? 'observed' : `override:${override.id}`);
}

/** What is known of a write before its outcome (W6). */
function attempt(c) {
  const { runId, requestId, writes, observedVersion } = writesOf(c);
  const { resource, action } = writes[0];
  return {
    identity: identityOf(c),
    runId,
    requestId,
    resource,
    action,
    method: c.req.method,
    precondition: c.req.header('if-match'),
    observedVersion,
  };
}

/** In a time that tells nothing of how much of it was right. */
function sameToken(given, expected) {
  const digest = (text) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
