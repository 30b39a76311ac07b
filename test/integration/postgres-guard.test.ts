import fc from 'fast-check';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { GuardRefusedError } from '../../src/clients/target/guard.js';
import { type PostgresGuard, postgresGuard } from '../../src/clients/target/postgres-guard.js';
import { guardSchemaSql } from '../../src/clients/target/postgres-guard-sql.js';
import { lengthFlaw, segmentFlaw } from '../../src/route-table/segment.js';
import { dyingPostgres } from '../support/dying-postgres.js';
import { ANYBODY_BLOCKED, createTestDatabase, type TestDatabase } from '../support/postgres.js';

// What is particular to Postgres: transactions, locks, installation. What every guard does is in guards.test.ts.

let database: TestDatabase;
let clients: pg.Client[] = [];
const guard = postgresGuard();

beforeAll(async () => {
  database = await createTestDatabase();
  const client = await open();
  await guard.install(client);
  await client.query(`CREATE TABLE document (id text PRIMARY KEY, version int NOT NULL, body text NOT NULL)`);
  await client.query(`CREATE TABLE written (resource text NOT NULL, token bigint NOT NULL)`);
});
afterAll(() => database?.drop());

beforeEach(async () => {
  const client = await open();
  await client.query(`TRUNCATE writ_guard.mark, document, written`);
  await client.query(`INSERT INTO document VALUES ('a/b', 1, 'original')`);
});
afterEach(async () => {
  await Promise.all(clients.map((client) => client.end()));
  clients = [];
});

async function open(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: database.url });
  client.on('error', () => undefined);
  await client.connect();
  clients.push(client);
  return client;
}

const write = (token: bigint, exclusive: boolean, resource = 'a/b') => ({
  resource,
  action: 'replace',
  token,
  exclusive,
});

async function overwrite(client: pg.Client, body: string): Promise<void> {
  await client.query(`UPDATE document SET version = version + 1, body = $1 WHERE id = 'a/b'`, [body]);
}

async function bodyNow(client: pg.Client): Promise<string> {
  return (await client.query<{ body: string }>(`SELECT body FROM document WHERE id = 'a/b'`)).rows[0]?.body ?? '';
}

/** One guarded write in a transaction of its own. */
async function commitWrite(
  client: pg.Client,
  token: bigint,
  exclusive: boolean,
  body: string,
  by: PostgresGuard = guard,
): Promise<void> {
  await client.query('BEGIN');
  try {
    await by.admit(client, write(token, exclusive));
    await overwrite(client, body);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

const stale = expect.objectContaining({ name: 'GuardRefusedError', reason: 'stale_token' });

/** Returns when the call waits for a lock, or has been answered without waiting. */
async function settledOrBlocked(call: Promise<unknown>): Promise<'answered' | 'blocked'> {
  const watcher = await open();
  let answered = false;
  call.then(
    () => (answered = true),
    () => (answered = true),
  );
  for (;;) {
    if (answered) return 'answered';
    const { rows } = await watcher.query(ANYBODY_BLOCKED);
    if (rows.length > 0) return 'blocked';
  }
}

describe('in a transaction', () => {
  it('is not raised by a write that is rolled back', async () => {
    const client = await open();
    await client.query('BEGIN');
    await guard.admit(client, write(30n, true));
    await client.query('ROLLBACK');
    await commitWrite(client, 10n, true, 'still current');
  });

  it('aborts the transaction of whoever ignores a refusal', async () => {
    const client = await open();
    await guard.open(client, { resource: 'a/b', token: 20n });
    await client.query('BEGIN');
    await guard.admit(client, write(10n, true)).catch(() => undefined);
    await expect(overwrite(client, 'all the same')).rejects.toMatchObject({ code: '25P02' });
    expect((await client.query('COMMIT')).command).toBe('ROLLBACK');
  });

  it('does not make a new holder wait for ever for one that was stopped in the middle of its write', async () => {
    const [stopped, newer] = [await open(), await open()];
    await stopped.query('BEGIN');
    await guard.admit(stopped, write(10n, true));
    await overwrite(stopped, 'old');
    const opening = guard.open(newer, { resource: 'a/b', token: 20n });
    expect(await settledOrBlocked(opening)).toBe('blocked');
    // Its time runs from here on: what comes before may take as long as it does.
    await stopped.query(`SET LOCAL idle_in_transaction_session_timeout = '100ms'`);
    await opening;
    expect(await bodyNow(newer)).toBe('original');
    await expect(stopped.query('COMMIT')).rejects.toThrow();
    expect(await bodyNow(newer)).toBe('original');
  });

  it('refuses to work outside a transaction, or where it would read an old snapshot', async () => {
    const client = await open();
    await expect(guard.admit(client, write(10n, true))).rejects.toThrow('inside the transaction');
    for (const level of ['REPEATABLE READ', 'SERIALIZABLE']) {
      await client.query(`BEGIN ISOLATION LEVEL ${level}`);
      await expect(guard.admit(client, write(10n, true))).rejects.toMatchObject({ code: '0A000' });
      await client.query('ROLLBACK');
    }
  });

  it('works for a role that owns nothing, with the grants of the guide', async () => {
    const client = await open();
    const role = `guarded_${database.name}`;
    await client.query(`CREATE ROLE ${role}; GRANT USAGE ON SCHEMA writ_guard TO ${role};
                        GRANT SELECT, INSERT, UPDATE ON writ_guard.mark TO ${role}`);
    try {
      await client.query(`BEGIN; SET LOCAL ROLE ${role}`);
      await guard.open(client, { resource: 'a', scope: 'subtree', token: 10n });
      await guard.admit(client, write(10n, true));
      await expect(guard.admit(client, write(9n, true))).rejects.toEqual(stale);
      await client.query('ROLLBACK');
    } finally {
      await client.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    }
  });

  it('runs nothing that an ordinary role of the database has put in its way', async () => {
    const client = await open();
    const role = `intruder_${database.name}`;
    await client.query(`
      CREATE TABLE run_by_guard (what text); GRANT INSERT ON run_by_guard TO PUBLIC;
      CREATE ROLE ${role}; GRANT CREATE ON SCHEMA public TO ${role}; SET ROLE ${role}`);
    try {
      // Each fits what a guard calls better than what Postgres has: of these very types, where that would convert.
      for (const [name, types, result, value] of [
        ['hashtextextended', 'text, integer', 'bigint', '0'],
        ['array_to_string', 'text[], text', 'text', `'elsewhere'`],
        ['not_later', 'bigint, numeric', 'boolean', 'false'],
        ['not_none', 'bigint, integer', 'boolean', 'false'],
      ])
        await client.query(`CREATE FUNCTION public.${name}(${types}) RETURNS ${result} LANGUAGE plpgsql AS
          $$ BEGIN INSERT INTO public.run_by_guard VALUES ('${name}'); RETURN ${value}; END $$`);
      await client.query(`
        CREATE OPERATOR public.> (LEFTARG = bigint, RIGHTARG = numeric, FUNCTION = public.not_later);
        CREATE OPERATOR public.<= (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = public.not_none);
        RESET ROLE`);
      await guard.install(client);
      await guard.open(client, { resource: 'a', scope: 'subtree', token: 20n });
      await commitWrite(client, 20n, true, 'held');
      await expect(commitWrite(client, 10n, true, 'late')).rejects.toEqual(stale);
      const nextDay = BigInt(Date.now() + 86_400_000) * 1_000n;
      for (const [token, reason] of [
        [nextDay, 'future_token'],
        [0n, 'no_token'],
      ] as const)
        await expect(guard.open(client, { resource: 'a/b', token })).rejects.toMatchObject({ reason });
      expect((await client.query('SELECT what FROM run_by_guard')).rows).toEqual([]);
    } finally {
      await client.query(`RESET ROLE; DROP OWNED BY ${role}; DROP ROLE ${role}; DROP TABLE run_by_guard`);
    }
  });

  it('can be installed by many at once, and again', async () => {
    const several = await Promise.all(Array.from({ length: 6 }, open));
    await Promise.all(several.map((client) => postgresGuard('guard_twice').install(client)));
    await guard.install(several[0] as pg.Client);
  });

  it('takes for a path of a resource what the rest of the kit takes for one', async () => {
    const client = await open();
    const odd = [
      ...'aZ/. \u00a0\u3000\u2028\u200b\u202e\u00ad\u{e0001}\u{1d173}\ufffa\u0301e\u00e9\t\u007f\u0085',
      '..',
      '\u1100\u1161',
    ];
    const path = fc.string({ unit: fc.constantFrom(...odd), maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(fc.array(path, { minLength: 50, maxLength: 50 }), async (paths) => {
        const { rows } = await client.query<{ path: string; ok: boolean }>(
          `SELECT path, writ_guard.is_resource(path) AS ok FROM unnest($1::text[]) AS path`,
          [paths],
        );
        for (const { path, ok } of rows) {
          const segments = path.split('/');
          const flaw = segments.map(segmentFlaw).find((found) => found !== null) ?? lengthFlaw(segments);
          expect(ok, JSON.stringify(path)).toBe(flaw === null);
        }
      }),
      { numRuns: 40 },
    );
  });

  it.each(['Guard', 'a"b', '', 'x;drop'])('refuses the schema name %j', (schema) => {
    expect(() => guardSchemaSql(schema)).toThrow(RangeError);
  });
});

/**
 * The order that loses an update: an old holder is let in and has not committed, a new one opens and reads, the old one
 * commits. Each race is run twice: with the guard, and with its locks taken out, where it must be lost; otherwise the
 * test would prove nothing.
 */
describe.each([
  ['with its locks', true],
  ['with its locks taken out', false],
] as const)('races, %s', (_name, locked) => {
  const schema = locked ? 'writ_guard' : 'guard_unlocked';
  const raced: PostgresGuard = postgresGuard(schema);

  beforeEach(async () => {
    if (locked) return;
    const client = await open();
    await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await client.query(guardSchemaSql(schema).replaceAll(/PERFORM pg_advisory_xact_lock(_shared)?\(/g, 'PERFORM ('));
  });

  const ways = [
    ['an optimistic write and the first open of the resource', false, { resource: 'a/b' }],
    ['an optimistic write and an open of a subtree above', false, { resource: 'a', scope: 'subtree' }],
    ['a leased write and an open of a subtree above', true, { resource: 'a', scope: 'subtree' }],
    ['a leased write and an open of the resource as a subtree', true, { resource: 'a/b', scope: 'subtree' }],
  ] as const;

  it.each(ways)('an old write under way: %s', async (_way, exclusive, opened) => {
    const [older, newer] = [await open(), await open()];
    await older.query('BEGIN');
    await raced.admit(older, write(10n, exclusive));
    await overwrite(older, 'old');
    const opening = raced.open(newer, { ...opened, token: 20n });
    const outcome = await settledOrBlocked(opening);
    const readBefore = await bodyNow(await open());
    await older.query('COMMIT');
    await opening;
    const readAfter = await bodyNow(newer);
    if (locked) {
      expect(outcome).toBe('blocked');
      expect(readAfter).toBe('old');
    } else {
      // The new holder has read what the old one then wrote over.
      expect([outcome, readBefore, readAfter]).toEqual(['answered', 'original', 'old']);
    }
    await expect(commitWrite(older, 10n, exclusive, 'late', raced)).rejects.toEqual(stale);
  });

  it.each(ways)('an open under way: %s', async (_way, exclusive, opened) => {
    const [older, newer] = [await open(), await open()];
    await newer.query('BEGIN');
    await raced.open(newer, { ...opened, token: 20n });
    const writing = commitWrite(older, 10n, exclusive, 'old', raced);
    const verdict = writing.then(
      () => 'let in',
      (error: unknown) => (error as GuardRefusedError).reason,
    );
    const outcome = await settledOrBlocked(writing);
    await newer.query('COMMIT');
    if (locked) expect([outcome, await verdict]).toEqual(['blocked', 'stale_token']);
    else expect(await verdict).toBe('let in');
  });

  it('two first writes of one resource', async () => {
    const [older, newer] = [await open(), await open()];
    await newer.query('BEGIN');
    await raced.admit(newer, write(20n, true));
    const writing = commitWrite(older, 10n, true, 'old', raced);
    const verdict = writing.then(
      () => 'let in',
      (error: unknown) => (error as GuardRefusedError).reason,
    );
    expect(await settledOrBlocked(writing)).toBe('blocked');
    await overwrite(newer, 'new');
    await newer.query('COMMIT');
    expect(await verdict).toBe(locked ? 'stale_token' : 'let in');
    expect(await bodyNow(newer)).toBe(locked ? 'new' : 'old');
  });

  it('independent resources do not wait for each other (C11)', async () => {
    const [one, other] = [await open(), await open()];
    await one.query('BEGIN');
    await raced.open(one, { resource: 'a/x', scope: 'subtree', token: 20n });
    await raced.admit(one, write(20n, true, 'a/y'));
    await other.query(`SET lock_timeout = '1s'`);
    await raced.open(other, { resource: 'a/z', scope: 'subtree', token: 10n });
    await commitWrite(other, 10n, true, 'beside', raced);
    await one.query('ROLLBACK');
  });
});

it('after an open, no older token ever writes there: many at random', async () => {
  const paths = ['t', 't/1', 't/1/x', 't/1/y', 't/2/x'];
  const connections = await Promise.all(Array.from({ length: 8 }, open));
  let nextToken = 1_000n;
  let state = 42;
  const random = (n: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return (state >> 12) % n;
  };
  const opened: { resource: string; scope: string; token: bigint; seen: number }[] = [];
  const below = `FROM written WHERE token < $1 AND (resource = $2 OR ($3 = 'subtree' AND resource LIKE $2 || '/%'))`;

  async function work(client: pg.Client): Promise<void> {
    for (let step = 0; step < 60; step += 1) {
      const resource = paths[random(paths.length)] as string;
      if (random(5) === 0) {
        const scope = random(6) === 0 ? 'subtree' : 'exact';
        nextToken += 1n;
        const token = nextToken;
        const open = guard.open(client, { resource, scope, token }).then(() => true, rejectedAs(GuardRefusedError));
        if (!(await open)) continue;
        const { rows } = await client.query<{ n: string }>(`SELECT count(*) AS n ${below}`, [token, resource, scope]);
        opened.push({ resource, scope, token, seen: Number(rows[0]?.n) });
      } else {
        const token = nextToken - BigInt(random(4));
        const exclusive = random(2) === 0;
        await client.query('BEGIN');
        const admitted = await guard
          .admit(client, write(token, exclusive, resource))
          .then(() => true, rejectedAs(GuardRefusedError));
        if (admitted) await client.query(`INSERT INTO written VALUES ($1, $2)`, [resource, token]);
        await client.query(admitted ? 'COMMIT' : 'ROLLBACK');
      }
    }
  }

  await Promise.all(connections.map(work));
  const [client] = connections as [pg.Client];
  expect(opened.length).toBeGreaterThan(20);
  for (const one of opened) {
    const { rows } = await client.query<{ n: string }>(`SELECT count(*) AS n ${below}`, [
      one.token,
      one.resource,
      one.scope,
    ]);
    expect({ ...one, seen: Number(rows[0]?.n) }).toEqual(one);
  }
  const { rows } = await client.query<{ n: string }>(`SELECT count(*) AS n FROM written`);
  expect(Number(rows[0]?.n)).toBeGreaterThan(50);
});

function rejectedAs(kind: new (...args: never[]) => Error): (error: unknown) => boolean {
  return (error) => {
    if (error instanceof kind) return false;
    throw error;
  };
}

it('a server that ends in the packet that frees the connection for a write ends no service', async () => {
  // Of each connection, the second answer is that of the query before the write, which waits for the connection.
  const dying = await dyingPostgres(database.url, 2);
  const pool = new pg.Pool({ connectionString: dying.url, max: 1 });
  pool.on('error', () => undefined);
  // With no listener on the connection, the error of the driver is uncaught and fails this run.
  await Promise.allSettled([pool.query('SELECT 1'), guard.write(pool, [write(1n, true)], async () => undefined)]);
  expect(dying.told()).toBeGreaterThan(0);
  await pool.end();
  await dying.close();
});
