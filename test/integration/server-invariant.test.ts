import { readFileSync } from 'node:fs';
import { Hono } from 'hono';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { honoConditional } from '../../src/clients/target/conditional-http.js';
import { inTransaction } from '../../src/clients/target/postgres-transaction.js';
import { ProblemError } from '../../src/clients/target/problem-error.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { served } from '../support/target-servers.js';

// W3: an invariant of the service holds for writes on a current version too. The SQL is that of the guide.

const SQL = readFileSync(new URL('../support/active-credentials.sql', import.meta.url), 'utf8');
const GUIDE = new URL('../../docs/target-writes.md', import.meta.url);
const NAMES = Array.from({ length: 8 }, (_, n) => `key-${n}`);

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 10 });
  pool.on('error', () => undefined);
  await pool.query(SQL);
  await pool.query(
    `CREATE SCHEMA unlocked; SET search_path TO unlocked; ${SQL.replace(' FOR UPDATE;', ';')}; RESET search_path`,
  );
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});
beforeEach(async () => {
  for (const schema of ['public', 'unlocked']) {
    await pool.query(`TRUNCATE ${schema}.tenant CASCADE; INSERT INTO ${schema}.tenant VALUES ('acme', 2)`);
    await pool.query(`INSERT INTO ${schema}.credential SELECT 'acme', unnest($1::text[]), false, 1`, [NAMES]);
  }
});

function app(): Hono {
  const hono = new Hono();
  hono.put(
    '/tenants/:tenant/credentials/:name/active',
    honoConditional(
      (c) => ({ resource: `service-token/${c.req.param('tenant')}/${c.req.param('name')}`, changeClass: 'membership' }),
      async (c, condition) => {
        const id = [c.req.param('tenant'), c.req.param('name')];
        const { version } = await inTransaction(pool, (client) =>
          condition.change(client, {
            update: {
              text: 'UPDATE credential SET active = true, version = version + 1 WHERE tenant = $1 AND name = $2 AND version = :observed RETURNING version',
              values: id,
            },
            current: { text: 'SELECT version FROM credential WHERE tenant = $1 AND name = $2', values: id },
          }),
        ).catch(invariantProblem);
        return c.json({ version });
      },
    ),
  );
  return hono;
}

function invariantProblem(error: unknown): never {
  const { code, constraint, message } = error as { code?: string; constraint?: string; message: string };
  if (code !== '23514' || constraint === undefined) throw error;
  throw new ProblemError({ status: 409, code: constraint, detail: message, resolver: 'account owner' });
}

const activate = async (url: string, name: string, version = 1) => {
  const headers = { 'if-match': `"${version}"` };
  const answer = await fetch(`${url}/tenants/acme/credentials/${name}/active`, { method: 'PUT', headers });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
};

const active = async (schema = 'public'): Promise<number> =>
  Number((await pool.query(`SELECT count(*) AS n FROM ${schema}.credential WHERE active`)).rows[0].n);

it('at most so many are active, though each writer is on a current version of its own', async () => {
  const url = await served(app());
  const answers = await Promise.all(NAMES.map((name) => activate(url, name)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
  expect(answers.find(({ status }) => status !== 200)).toMatchObject({
    status: 409,
    body: { code: 'max_active_credentials' },
  });
  expect(await active()).toBe(2);
});

it('and the version still counts', async () => {
  const url = await served(app());
  expect(await activate(url, 'key-0', 7)).toMatchObject({ status: 412, body: { current_version: '1' } });
  expect(await active()).toBe(0);
});

it('what was closed after it was read stays closed', async () => {
  const url = await served(app());
  await pool.query(`UPDATE tenant SET closed = true`);
  expect(await activate(url, 'key-0')).toMatchObject({ status: 409, body: { code: 'tenant_open' } });
});

it('without the lock two writers pass the limit together', async () => {
  const clients = await Promise.all(NAMES.slice(0, 3).map(() => pool.connect()));
  try {
    for (const [at, client] of clients.entries()) {
      await client.query(`BEGIN; SET LOCAL search_path TO unlocked`);
      await client.query(`UPDATE credential SET active = true WHERE name = $1 AND version = 1`, [NAMES[at]]);
    }
    for (const client of clients) await client.query('COMMIT');
    expect(await active('unlocked')).toBe(3);
  } finally {
    for (const client of clients) client.release();
  }
});

it('the guide shows this SQL, line by line', () => {
  expect(readFileSync(GUIDE, 'utf8')).toContain(`\`\`\`sql\n${SQL}\`\`\`\n`);
});
