import { createHash, randomUUID, timingSafeEqual } from 'node:crypto';
import { type Context, Hono } from 'hono';
import type pg from 'pg';
import type { FenceDecision, WritClient } from '../../../src/clients/target/index.js';
import { checkFence, GuardRefusedError, postgresGuard } from '../../../src/clients/target/index.js';

/**
 * A small service with everything right: what the rehearsal must find nothing wrong with. The broken ones beside it
 * replace one step of it each. It is written by hand, so that the suite is not tested by the kit that it tests.
 *
 * Its hooks (`x-pause-after-check`, `x-pause-before-commit`) fetch whatever they are told: never in production.
 */

const SCHEMA = `
CREATE TABLE IF NOT EXISTS doc (resource text PRIMARY KEY, version bigint NOT NULL, body jsonb NOT NULL);
CREATE TABLE IF NOT EXISTS answered (key text PRIMARY KEY, fingerprint text NOT NULL, version bigint);
CREATE TABLE IF NOT EXISTS request (request_id text NOT NULL, run_id text NOT NULL, status integer NOT NULL);
INSERT INTO doc VALUES ('release/rehearsal', 7, '{"image": "shop:1.8.2"}'), ('release/local', 7, '{"image": "shop:1.8.2"}'), ('release/tracked', 7, '{"image": "shop:1.8.2"}'),
  ('policy/rehearsal', 41, '{"destinations": ["pager"], "severity": "warning"}'),
  ('group/rehearsal', 3, '{"members": ["ann"]}') ON CONFLICT DO NOTHING`;

export interface WritePath {
  readonly action: string;
  readonly leased: boolean;
  readonly changeClass: string;
  readonly resolver: string;
}

const PATHS: Readonly<Record<string, WritePath>> = {
  release: { action: 'promote', leased: true, changeClass: 'shared_pointer', resolver: 'release-owner' },
  policy: { action: 'change', leased: false, changeClass: 'shared_document', resolver: 'alerts-owner' },
  group: { action: 'edit', leased: false, changeClass: 'membership', resolver: 'account-owner' },
};

/** How the body of each kind of write becomes the new body. */
const NEW_BODY = {
  PUT: '$1::jsonb',
  PATCH: 'body || $1::jsonb',
  POST: `jsonb_set(body, '{members}', (body -> 'members') || $1::jsonb)`,
} as const;

/** A write, as it was presented. */
export interface Write {
  readonly resource: string;
  readonly path: WritePath;
  readonly method: keyof typeof NEW_BODY;
  readonly body: unknown;
  readonly runId: string;
  /** The caller's. */
  readonly requestId: string;
  /** Of this attempt alone. */
  readonly checkId: string;
  readonly leaseId: string;
  readonly token: bigint;
  /** Null: whatever the version is, which only a holder that is alone may say (`If-Match: *`). */
  readonly observed: string | null;
  readonly key: string | undefined;
  readonly pauses: { readonly afterCheck: string | undefined; readonly beforeCommit: string | undefined };
}

export class Refused extends Error {
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 409 | 412 | 422 | 428 | 503,
    readonly code: string,
    readonly members: Readonly<Record<string, unknown>> = {},
  ) {
    super(code);
  }
}

export interface ServiceOptions {
  readonly pool: pg.Pool;
  readonly writ: WritClient;
  /** Of the secrets by which the service knows runs. */
  readonly runKey: string;
  /** Of credentials, where the service takes any. */
  readonly issuer?: string;
}

/** The stand-in for an identity that a platform gives each process: who has the key may say which run it is. */
export function runSecret(key: string, runId: string): string {
  return `${runId}.${key}`;
}

export class Service {
  protected readonly guard = postgresGuard();

  constructor(protected readonly options: ServiceOptions) {}

  async install(): Promise<void> {
    await this.guard.install(this.options.pool);
    await this.options.pool.query(SCHEMA);
  }

  app(): Hono {
    const app = new Hono();
    app.onError((error, c) => (error instanceof Refused ? problem(c, error) : c.json({ title: 'fault' }, 500)));
    app.get('/requests/:id', async (c) => {
      const { rows } = await this.options.pool.query('SELECT run_id FROM request WHERE request_id = $1', [
        c.req.param('id'),
      ]);
      return rows.length === 0 ? c.notFound() : c.json(rows);
    });
    app.get('/:kind/:id', (c) => this.read(c));
    app.post('/:kind/:id/open', async (c) => {
      const write = await this.presented(c, 'PUT', null);
      refuseUnless(await this.ask(write), write);
      await this.raise(write);
      return c.json({ opened: true });
    });
    app.put('/:kind/:id', (c) => this.answer(c, 'PUT'));
    app.patch('/:kind/:id', (c) => this.answer(c, 'PATCH'));
    app.post('/:kind/:id/members', (c) => this.answer(c, 'POST'));
    return app;
  }

  private async read(c: Context): Promise<Response> {
    const { rows } = await this.options.pool.query<{ version: string; body: object }>(
      'SELECT version, body FROM doc WHERE resource = $1',
      [resourceOf(c)],
    );
    if (rows[0] === undefined) throw new Refused(404, 'not_found');
    c.header('etag', `"${rows[0].version}"`);
    return c.json(rows[0].body);
  }

  private async answer(c: Context, method: Write['method']): Promise<Response> {
    const write = await this.presented(c, method, await c.req.json().catch(() => undefined));
    const record = (status: number) =>
      this.options.pool.query('INSERT INTO request VALUES ($1, $2, $3)', [write.requestId, write.runId, status]);
    try {
      const version = await this.write(write);
      await record(200);
      c.header('etag', `"${version}"`);
      return c.json({ version });
    } catch (error) {
      await record(error instanceof Refused ? error.status : 500);
      throw error;
    }
  }

  protected async presented(c: Context, method: Write['method'], body: unknown): Promise<Write> {
    const path = PATHS[c.req.param('kind') ?? ''];
    if (path === undefined) throw new Refused(404, 'not_found');
    const resource = resourceOf(c);
    const presented = await this.identified(c.req.header('authorization'), resource, path.action, c);
    return {
      resource,
      path,
      method,
      body,
      ...presented,
      requestId: c.req.header('x-request-id') ?? randomUUID(),
      checkId: randomUUID(),
      observed: body === null ? null : this.precondition(c.req.header('if-match'), path),
      key: c.req.header('idempotency-key'),
      pauses: { afterCheck: c.req.header('x-pause-after-check'), beforeCommit: c.req.header('x-pause-before-commit') },
    };
  }

  /** Who presents which lease, and its token. */
  protected async identified(authorization: string | undefined, _resource: string, _action: string, c: Context) {
    const runId = this.authenticate(authorization);
    const token = c.req.header('writ-fencing-token') ?? '';
    const leaseId = c.req.header('writ-lease') ?? '';
    if (leaseId === '' || !/^[1-9]\d{0,17}$/.test(token)) throw new Refused(403, 'lease_required');
    return { runId, leaseId, token: BigInt(token) };
  }

  private authenticate(authorization: string | undefined): string {
    const [, secret = '', runId = ''] = /^Bearer (([^.\s]+)\.\S+)$/.exec(authorization ?? '') ?? [];
    const [given, expected] = [Buffer.from(secret), Buffer.from(runSecret(this.options.runKey, runId))];
    if (given.length === expected.length && timingSafeEqual(given, expected)) return runId;
    throw new Refused(401, 'unauthenticated');
  }

  protected precondition(ifMatch: string | undefined, path: WritePath): string | null {
    const [, version] = /^"(\d{1,15})"$/.exec(ifMatch ?? '') ?? [];
    if (version !== undefined) return version;
    if (ifMatch === '*' && path.leased) return null;
    throw new Refused(428, 'precondition_required');
  }

  /** The check, then the write; the gap between them is what the guard is for. */
  protected async write(write: Write): Promise<string> {
    refuseUnless(await this.ask(write), write);
    await standStill(write.pauses.afterCheck);
    return this.inTransaction(async (client) => {
      const known = await this.remembered(client, write);
      if (known !== null) return known;
      await this.admit(client, write);
      await standStill(write.pauses.beforeCommit);
      const version = await this.change(client, write);
      await this.remember(client, write, version);
      return version;
    });
  }

  protected ask({
    leaseId,
    runId,
    requestId,
    checkId,
    resource,
    path,
    token,
    observed,
  }: Write): Promise<FenceDecision> {
    const version = observed === null ? {} : { observedVersion: observed };
    const writes = [{ resource, action: path.action, token, ...version }];
    const question = { leaseId, presenterRunId: runId, requestId: checkId, writes };
    return checkFence(this.options.writ, question, { requestId });
  }

  protected async inTransaction<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const client = await this.options.pool.connect();
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  }

  /** A new holder's first act. */
  protected async raise({ resource, token, runId, path }: Write): Promise<void> {
    await guarded(() => this.guard.open(this.options.pool, { resource, token, runId, action: path.action }));
  }

  protected async admit(client: pg.PoolClient, { resource, token, runId, path }: Write): Promise<void> {
    await guarded(() =>
      this.guard.admit(client, { resource, token, runId, action: path.action, exclusive: path.leased }),
    );
  }

  /** What the key was answered with before; a second request by the key waits here for the first. */
  protected async remembered(client: pg.PoolClient, write: Write): Promise<string | null> {
    if (write.key === undefined) return null;
    const fingerprint = this.fingerprint(write);
    const claimed = await client.query(
      'INSERT INTO answered (key, fingerprint) VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING key',
      [write.key, fingerprint],
    );
    if (claimed.rows.length > 0) return null;
    const { rows } = await client.query<{ fingerprint: string; version: string }>(
      'SELECT fingerprint, version FROM answered WHERE key = $1',
      [write.key],
    );
    if (rows[0]?.fingerprint !== fingerprint) throw new Refused(422, 'idempotency_key_reused');
    return rows[0].version;
  }

  protected async remember(client: pg.PoolClient, { key }: Write, version: string): Promise<void> {
    if (key !== undefined) await client.query('UPDATE answered SET version = $2 WHERE key = $1', [key, version]);
  }

  protected fingerprint({ method, resource, body, observed }: Write): string {
    return createHash('sha256')
      .update(JSON.stringify([method, resource, body, observed]))
      .digest('hex');
  }

  /** Check and change are one statement: no row is a conflict. */
  protected async change(client: pg.PoolClient, write: Write): Promise<string> {
    const { rows } = await client.query<{ version: string }>(
      `UPDATE doc SET version = version + 1, body = ${NEW_BODY[write.method]}
       WHERE resource = $2 AND ($3::bigint IS NULL OR version = $3::bigint) RETURNING version`,
      [JSON.stringify(write.body), write.resource, write.observed],
    );
    if (rows[0] !== undefined) return rows[0].version;
    throw conflict(write, await this.currentVersion(client, write));
  }

  protected async currentVersion(client: pg.PoolClient, { resource }: Write): Promise<string> {
    const { rows } = await client.query<{ version: string }>('SELECT version FROM doc WHERE resource = $1', [resource]);
    return rows[0]?.version ?? '';
  }
}

/** Waits by the hook of the rehearsal, when it asks for it. */
export async function standStill(url: string | undefined): Promise<void> {
  if (url !== undefined) await fetch(url);
}

function resourceOf(c: Context): string {
  return `${c.req.param('kind')}/${c.req.param('id')}`;
}

function refuseUnless(decision: FenceDecision, { resource }: Write): void {
  if (decision.allowed) return;
  const next = 'Stop, and ask for a new lease.';
  if (decision.error !== undefined)
    throw new Refused(503, 'coordinator_unreachable', { resource, retryable: true, next });
  throw new Refused(403, decision.reason, { resource, retryable: false, next });
}

async function guarded(ask: () => Promise<void>): Promise<void> {
  try {
    await ask();
  } catch (error) {
    if (!(error instanceof GuardRefusedError)) throw error;
    throw new Refused(409, error.reason, { resource: error.resource, retryable: false, next: 'Stop, and read again.' });
  }
}

function conflict({ resource, observed, path }: Write, current: string): Refused {
  return new Refused(412, 'version_conflict', {
    resource,
    expected_version: observed,
    current_version: current,
    conflict_category: path.changeClass,
    retryable: false,
    resolver: path.resolver,
    next: `Stop, and show ${path.resolver} both.`,
  });
}

function problem(c: Context, { status, code, members }: Refused): Response {
  const body = JSON.stringify({ type: `urn:writ:problem:${code}`, title: code, status, code, ...members });
  return c.body(body, status, { 'content-type': 'application/problem+json' });
}
