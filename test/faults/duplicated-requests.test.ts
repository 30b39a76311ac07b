import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { answerOnce, type IdempotencyStore, jsonAnswer } from '../../src/clients/target/idempotency.js';
import { postgresIdempotency } from '../../src/clients/target/idempotency-postgres.js';
import { redisIdempotency } from '../../src/clients/target/idempotency-redis.js';
import type { Random } from '../harness/random.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { redisMissing, startRedis, type TestRedis } from '../support/redis-server.js';
import { seeded } from '../support/seeded.js';

// Every request is sent several times at once and again after every failure; handlers fail before and after their effect,
// and lose their connections. There is never more than one effect, and where it can be known, exactly one (W2, T6).

const DAY = 86_400_000;
const KEYS = 12;
const SENDERS = 4;

let database: TestDatabase;
let pool: pg.Pool;
let redis: TestRedis | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 30 });
  pool.on('error', () => undefined);
  await pool.query('CREATE TABLE effect (id bigint GENERATED ALWAYS AS IDENTITY, key text NOT NULL)');
  if (redisMissing === '') redis = await startRedis();
});
afterAll(async () => {
  await redis?.stop();
  await pool?.end();
  await database?.drop();
});
beforeEach(() => pool.query('TRUNCATE effect'));

type Client = Pick<pg.ClientBase, 'query'>;

/** The effect of one request, with what can go wrong before, during and after it. */
async function misfortune(client: Client, key: string, luck: number) {
  const act = async () => {
    const { rows } = await client.query('INSERT INTO effect (key) VALUES ($1) RETURNING id', [key]);
    return rows[0].id as string;
  };
  if (luck === 0) throw new Error('before');
  if (luck === 1) return jsonAnswer(503, { code: 'broken' });
  const id = await act();
  if (luck === 2) throw new Error('after');
  if (luck === 3) {
    // In Postgres this is the connection of the transaction; elsewhere it only disturbs.
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
    await pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
  }
  return jsonAnswer(201, { code: 'done', id });
}

/** Sends it again until it has an answer that says what became of it. */
async function send(
  store: IdempotencyStore<unknown>,
  through: (given: unknown) => Client,
  key: string,
  random: Random,
) {
  const request = { principal: 'run-a', route: 'POST /effects', method: 'POST', path: '/effects', body: { key } };
  for (;;) {
    const luck = random.below(8);
    const answer = await answerOnce(store, { ...request, idempotencyKey: key }, (given) =>
      misfortune(through(given), key, luck),
    ).catch(() => null);
    const body =
      answer === null ? {} : (JSON.parse(Buffer.from(answer.body).toString()) as { code?: string; id?: string });
    if (body.code === 'done' || body.code === 'outcome_unknown') return body;
    await pause(random.below(20));
  }
}

const times = { retentionMs: DAY, inDoubtMs: DAY, leaseMs: 200 };

it.for([
  ['Postgres, all in the transaction', true],
  ['Postgres, elsewhere too', false],
  ['Redis', false],
] as const)('%s', async ([kind, provable], { skip }) => {
  if (kind === 'Redis' && redisMissing !== '') skip(redisMissing);
  const store = await storeOf(kind);
  const through = (given: unknown) => (kind === 'Redis' ? pool : given) as Client;
  const random = seeded();
  const attempt = randomUUID();
  const keys = Array.from({ length: KEYS }, (_, n) => `key-${attempt}-${n}`);
  const sent = keys.flatMap((key) =>
    Array.from({ length: SENDERS }, async () => ({ key, ...(await send(store, through, key, random)) })),
  );
  const answers = await Promise.all(sent);
  const { rows } = await pool.query<{ key: string; id: string }>('SELECT key, id FROM effect');
  for (const key of keys) {
    const what = `seed ${random.seed}, ${key}`;
    const ids = rows.filter((row) => row.key === key).map(({ id }) => id);
    const told = answers.filter((answer) => answer.key === key);
    const done = [...new Set(told.filter(({ code }) => code === 'done').map(({ id }) => id))];
    expect(ids.length, what).toBeLessThanOrEqual(1);
    // Whoever was told that it is done was told of the one effect there is.
    if (done.length > 0) expect(done, what).toEqual(ids);
    if (provable) expect([ids.length, done.length], what).toEqual([1, 1]);
  }
});

async function storeOf(kind: string): Promise<IdempotencyStore<unknown>> {
  if (kind === 'Redis')
    return redisIdempotency((redis as TestRedis).connect(), { ...times, prefix: `${randomUUID()}:` });
  const effects = kind === 'Postgres, elsewhere too' ? 'elsewhere_too' : 'in_transaction';
  const store = postgresIdempotency(pool, { ...times, effects, schema: `keys_${effects}` });
  await store.install();
  return store;
}
