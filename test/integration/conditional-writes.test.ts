import express from 'express';
import { Hono } from 'hono';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { expressConditional, honoConditional } from '../../src/clients/target/conditional-http.js';
import {
  type ConditionalTarget,
  conditionOf,
  type WriteCondition,
} from '../../src/clients/target/conditional-writes.js';
import { inTransaction } from '../../src/clients/target/postgres-transaction.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { latch, served } from '../support/target-servers.js';

// W1: the version is compared in the statement that writes, and whoever wrote from an older one is told what to do.

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => undefined);
  await pool.query('CREATE TABLE policy (id text PRIMARY KEY, body jsonb NOT NULL, version integer NOT NULL)');
  await pool.query('CREATE TABLE note (id text PRIMARY KEY, version text NOT NULL)');
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});
beforeEach(async () => {
  await pool.query('TRUNCATE policy, note');
  await pool.query(`INSERT INTO policy VALUES ('alerts', '{"severity": "warning", "destinations": ["ops"]}', 41)`);
});

const target = (id: string): ConditionalTarget => ({
  resource: `notification-policy/${id}`,
  action: 'replace',
  changeClass: 'shared_document',
  resolver: 'oncall',
  requestId: 'req-1',
});

const current = (id: string) => ({ text: 'SELECT version FROM policy WHERE id = $1', values: [id] });

const replace = (id: string, body: unknown, condition: WriteCondition) =>
  inTransaction(pool, (client) =>
    condition.change(client, {
      update: {
        text: 'UPDATE policy SET body = $1, version = version + 1 WHERE id = $2 AND version = :observed RETURNING version',
        values: [JSON.stringify(body), id],
      },
      create: {
        text: 'INSERT INTO policy VALUES ($1, $2, 1) ON CONFLICT DO NOTHING RETURNING version',
        values: [id, JSON.stringify(body)],
      },
      current: current(id),
    }),
  );

function honoApp(): Hono {
  const app = new Hono();
  app.put(
    '/policies/:id',
    honoConditional(
      (c) => target(c.req.param('id') ?? ''),
      async (c, condition) => {
        const { version, etag } = await replace(c.req.param('id') ?? '', await c.req.json(), condition);
        return c.json({ version }, 200, { etag });
      },
    ),
  );
  return app;
}

function expressApp(): express.Express {
  const app = express();
  app.put(
    '/policies/:id',
    express.json(),
    expressConditional<express.Request, express.Response>(
      (req) => target(String(req.params.id)),
      async (req, res, condition) => {
        const { version, etag } = await replace(String(req.params.id), req.body, condition);
        res.set('etag', etag).json({ version });
      },
    ),
  );
  return app;
}

const put = (url: string, headers: Record<string, string>, body: unknown = { severity: 'critical' }, id = 'alerts') =>
  fetch(`${url}/policies/${id}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });

const stored = async (id = 'alerts') =>
  (await pool.query('SELECT body, version FROM policy WHERE id = $1', [id])).rows[0];

describe.each([
  ['hono', honoApp],
  ['Express', expressApp],
])('a conditional route in %s', (_name, app) => {
  it('writes on the version that was read, and says which one is there now', async () => {
    const answer = await put(await served(app()), { 'if-match': '"41"' });
    expect([answer.status, answer.headers.get('etag'), await answer.json()]).toEqual([200, '"42"', { version: '42' }]);
    expect(await stored()).toEqual({ body: { severity: 'critical' }, version: 42 });
  });

  it('answers another version with 412 and all that the class of the write says (W4)', async () => {
    const answer = await put(await served(app()), { 'if-match': '"40"' });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([412, 'application/problem+json']);
    expect(await answer.json()).toEqual({
      type: 'urn:writ:problem:version_conflict',
      title: 'Version conflict',
      status: 412,
      code: 'version_conflict',
      detail:
        'notification-policy/alerts is at version 41, and the change was made from version 40. Nothing was changed.',
      retryable: false,
      resource: 'notification-policy/alerts',
      action: 'replace',
      expected_version: '40',
      current_version: '41',
      conflict_category: 'shared_document',
      resolver: 'oncall',
      next: expect.stringContaining('Stop.'),
      request_id: 'req-1',
    });
    expect((await stored()).version).toBe(41);
  });

  it.each([
    [{}, 428, 'precondition_required'],
    [{ 'if-match': '*' }, 428, 'version_required'],
    [{ 'if-match': '41' }, 400, 'malformed_precondition'],
    [{ 'if-none-match': '"41"' }, 400, 'malformed_precondition'],
    [{ 'if-match': 'W/"41"' }, 412, 'version_conflict'],
    [{ 'if-match': '"abc"' }, 412, 'version_conflict'],
    [{ 'if-match': '"041"' }, 412, 'version_conflict'],
    [{ 'if-match': '"9223372036854775807"' }, 412, 'version_conflict'],
    [{ 'if-match': '"92233720368547758070"' }, 412, 'version_conflict'],
    [{ 'if-none-match': '*' }, 412, 'version_conflict'],
    [{ 'if-match': '"7", W/"8", "41"' }, 200, undefined],
  ])('%j: %d %s', async (headers, status, code) => {
    const answer = await put(await served(app()), headers as Record<string, string>);
    expect([answer.status, ((await answer.json()) as { code?: string }).code]).toEqual([status, code]);
    expect((await stored()).version).toBe(status === 200 ? 42 : 41);
  });

  it('creates once, and knows of nothing to change where there is nothing', async () => {
    const url = await served(app());
    const gone = await put(url, { 'if-match': '"1"' }, {}, 'new');
    expect([gone.status, await gone.json()]).toMatchObject([
      412,
      { detail: expect.stringContaining('is not there'), next: expect.stringContaining('It is not there') },
    ]);
    const answers = await Promise.all(Array.from({ length: 5 }, () => put(url, { 'if-none-match': '*' }, {}, 'new')));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 412, 412, 412, 412]);
  });

  it('a member that was added survives the replacement of the whole list from an older read (T8)', async () => {
    const url = await served(app());
    expect((await put(url, { 'if-match': '"41"' }, { destinations: ['ops', 'new'] })).status).toBe(200);
    const replacement = await put(url, { 'if-match': '"41"' }, { destinations: ['ops', 'sms'] });
    expect([replacement.status, await replacement.json()]).toMatchObject([412, { current_version: '42' }]);
    expect((await stored()).body).toEqual({ destinations: ['ops', 'new'] });
  });

  it('of many writes from one version exactly one wins (T3)', async () => {
    const url = await served(app());
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, n) => put(url, { 'if-match': '"41"' }, { destinations: [`team-${n}`] })),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect((await stored()).version).toBe(42);
    for (const lost of answers.filter(({ status }) => status !== 200))
      expect(await lost.json()).toMatchObject({ status: 412, current_version: '42' });
  });
});

/** Two writers from one version, both past their reading before either writes. */
async function twoFromOneVersion(write: (body: object, whenRead: () => Promise<void>) => Promise<unknown>) {
  const [a, b] = [latch(), latch()];
  const outcome = (body: object, mine: typeof a, others: typeof a) =>
    write(body, () => {
      mine.open();
      return others.promise;
    }).then(
      () => 'written',
      (error: Error) => error.name,
    );
  const first = outcome({ destinations: ['ops', 'sms'] }, a, b);
  const second = outcome({ severity: 'critical' }, b, a);
  return [await first, await second].sort();
}

describe('check and change together', () => {
  it('one of two writers loses, whatever the order', async () => {
    const outcomes = await twoFromOneVersion(async (body, whenRead) => {
      const condition = conditionOf({ 'if-match': '"41"' }, target('alerts'));
      await whenRead();
      await replace('alerts', body, condition);
    });
    expect(outcomes).toEqual(['VersionConflictError', 'written']);
  });

  it('while with a comparison before the write both are written, and one is lost', async () => {
    const outcomes = await twoFromOneVersion(async (body, whenRead) => {
      const { rows } = await pool.query('SELECT version FROM policy WHERE id = $1', ['alerts']);
      if (rows[0].version !== 41) throw new Error('stale');
      await whenRead();
      await pool.query('UPDATE policy SET body = $1, version = version + 1 WHERE id = $2', [body, 'alerts']);
    });
    expect(outcomes).toEqual(['written', 'written']);
  });

  const condition = () => conditionOf({ 'if-match': '"41"' }, target('alerts'));
  const change = (text: string, values: unknown[] = []) =>
    inTransaction(pool, (client) =>
      condition().change(client, { update: { text, values }, current: current('alerts') }),
    );

  it.each([
    [
      'does not compare the version',
      `UPDATE policy SET version = 42 WHERE id = 'alerts' RETURNING version`,
      'must compare the version',
    ],
    [
      'returns no version',
      `UPDATE policy SET version = 42 WHERE version = :observed RETURNING id`,
      'must return the version by that name: RETURNING version, or RETURNING rev AS version',
    ],
    [
      'leaves the version',
      `UPDATE policy SET body = '1' WHERE version = :observed RETURNING version`,
      'left version 41 as it was',
    ],
    ['is of several rows', `UPDATE policy SET version = 42 WHERE version = :observed RETURNING version`, 'of one row'],
  ])('refuses a statement that %s, and changes nothing', async (_what, text, message) => {
    if (message === 'of one row') await pool.query(`INSERT INTO policy VALUES ('other', '{}', 41)`);
    await expect(change(text)).rejects.toThrow(message);
    expect(await stored()).toEqual({ body: { severity: 'warning', destinations: ['ops'] }, version: 41 });
  });

  it('tells no conflict with a version that it could not read', async () => {
    const stale = conditionOf({ 'if-match': '"40"' }, target('alerts')).change(pool as unknown as pg.ClientBase, {
      update: { text: 'UPDATE policy SET version = 42 WHERE version = :observed RETURNING version', values: [] },
      current: { text: 'SELECT version AS rev FROM policy', values: [] },
    });
    await expect(stale).rejects.toThrow(
      'must return the version by that name: SELECT version, or SELECT rev AS version',
    );
  });

  it('deletes on the version that was read', async () => {
    const { version } = await change(`DELETE FROM policy WHERE id = $1 AND version = :observed RETURNING version`, [
      'alerts',
    ]);
    expect([version, await stored()]).toEqual(['41', undefined]);
  });

  it('takes versions that are no numbers, when told so', async () => {
    await pool.query(`INSERT INTO note VALUES ('n', 'rev-a')`);
    const write = (tag: string) =>
      conditionOf({ 'if-match': tag }, target('n'), { versions: 'text' }).change(pool as unknown as pg.ClientBase, {
        update: { text: `UPDATE note SET version = 'rev-b' WHERE version = :observed RETURNING version`, values: [] },
        current: { text: 'SELECT version FROM note', values: [] },
      });
    await expect(write('"rev-x"')).rejects.toMatchObject({ currentVersion: 'rev-a' });
    expect(await write('"rev-a"')).toMatchObject({ version: 'rev-b', etag: '"rev-b"' });
  });

  it('asks for the other header where a route only creates, or never does', async () => {
    const creating = conditionOf({ 'if-none-match': '*' }, target('alerts'));
    const only = { current: current('alerts') };
    await expect(creating.change(pool as unknown as pg.ClientBase, only)).rejects.toMatchObject({
      problem: { status: 428, next: expect.stringContaining('If-Match') },
    });
    await expect(condition().change(pool as unknown as pg.ClientBase, only)).rejects.toMatchObject({
      problem: { status: 428, next: expect.stringContaining('If-None-Match: *') },
    });
  });

  it('says which version was read, for the check and the record', () => {
    expect([condition().observedVersion, condition().text]).toEqual(['41', 'if-match "41"']);
    const several = conditionOf({ 'if-match': '"41", "42"' }, target('alerts'));
    expect([several.observedVersion, several.text]).toEqual([undefined, 'if-match "41", "42"']);
    expect(conditionOf(new Headers({ 'if-none-match': '*' }), target('alerts')).text).toBe('if-none-match *');
  });
});
