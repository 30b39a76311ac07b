import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { answerOnce, jsonAnswer } from '../../src/clients/target/idempotency.js';
import { postgresIdempotency } from '../../src/clients/target/idempotency-postgres.js';
import { orderedChanges } from '../../src/clients/target/ordered-change.js';
import { createTestDatabase, killAndWait, type TestDatabase } from '../support/postgres.js';
import { shiftTraffic } from '../support/shift-traffic.mjs';

// A target's process is killed in the middle of a change: found again, shown, never repeated unchecked (W2, W5, E3).

const PROCESS = fileURLToPath(new URL('../support/target-process.mjs', import.meta.url));
const DAY = 86_400_000;

let database: TestDatabase;
let pool: pg.Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => undefined);
  await pool.query('CREATE TABLE orders (item text NOT NULL)');
  for (const table of ['deployment', 'route', 'notice'])
    await pool.query(`CREATE TABLE ${table} (env text PRIMARY KEY, image text NOT NULL, version bigint NOT NULL)`);
  await orderedChanges(pool).install();
  await keys('in_transaction').install();
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});
beforeEach(async () => {
  await pool.query('TRUNCATE writ_plans.plan, writ_keys.request_key, orders CASCADE');
  for (const table of ['deployment', 'route', 'notice'])
    await pool.query(`TRUNCATE ${table}; INSERT INTO ${table} VALUES ('prod-eu', 'shop:7', 7)`);
});

type Effects = 'in_transaction' | 'elsewhere_too';

const keys = (effects: Effects) =>
  postgresIdempotency(pool, { retentionMs: DAY, inDoubtMs: DAY, leaseMs: 500, effects });

/** Runs until it says that it is in the middle, and is killed there. */
async function killedInTheMiddle(mode: string): Promise<void> {
  const child: ChildProcess = spawn(process.execPath, [PROCESS, mode, database.url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const said = await Promise.race([
      once(child.stdout as NodeJS.ReadableStream, 'data').then(([data]) => String(data)),
      once(child, 'exit').then(() => 'ended before'),
    ]);
    expect(said).toBe('stuck\n');
  } finally {
    await killAndWait(child.pid as number);
  }
}

async function images(): Promise<string[]> {
  const { rows } = await pool.query(`SELECT d.image AS d, r.image AS r FROM deployment d, route r`);
  return [rows[0].d, rows[0].r];
}

describe('an ordered change', () => {
  it.each(['in_transaction', 'elsewhere_too'] as const)(
    'is found after a kill -9, shown and not repeated (%s)',
    async (effects) => {
      await killedInTheMiddle(`shift:${effects}`);
      const changes = orderedChanges(pool);
      await expect.poll(async () => (await changes.findInterrupted()).length, { timeout: 30_000 }).toBe(1);
      const [plan] = await changes.findInterrupted();
      expect(plan).toMatchObject({ id: 'shift-1', state: 'running', startedBy: 'run-a', input: { image: 'shop:8' } });
      expect(plan?.steps.map(({ state }) => state)).toEqual(['done', 'running', 'planned']);
      expect(await images()).toEqual(['shop:8', 'shop:7']);
      // Nobody does it again under the same id, and nothing goes on by itself.
      await expect(
        changes.run(shiftTraffic(effects), {
          id: 'shift-1',
          input: { env: 'prod-eu', image: 'shop:8' },
          startedBy: 'run-a',
        }),
      ).rejects.toMatchObject({ problem: { code: 'plan_exists' } });
      const { state, steps } = await changes.rollBack(shiftTraffic(effects), 'shift-1');
      if (effects === 'in_transaction') {
        expect([state, ...steps.map((step) => step.state)]).toEqual(['undone', 'undone', 'failed', 'planned']);
        expect(await images()).toEqual(['shop:7', 'shop:7']);
      } else {
        expect([state, ...steps.map((step) => step.state)]).toEqual(['needs_person', 'done', 'in_doubt', 'planned']);
        expect(await images()).toEqual(['shop:8', 'shop:7']);
      }
    },
  );
});

describe('a request with an idempotency key', () => {
  const request = { principal: 'run-a', route: 'POST /orders', method: 'POST', path: '/orders', body: undefined };

  /** Sends it again until the dead process's lease is over. */
  async function sentAgain(effects: Effects) {
    for (;;) {
      const answer = await answerOnce(keys(effects), { ...request, idempotencyKey: 'k1' }, async (client) => {
        await client.query(`INSERT INTO orders VALUES ('book')`);
        return jsonAnswer(201, { code: 'done' });
      });
      const { code } = JSON.parse(Buffer.from(answer.body).toString()) as { code: string };
      if (code !== 'idempotency_in_flight') return [answer.status, code];
    }
  }

  it('is done once, by who sends it again, if the database proves that it was not', async () => {
    await killedInTheMiddle('order:in_transaction');
    expect(await sentAgain('in_transaction')).toEqual([201, 'done']);
    expect((await pool.query('SELECT item FROM orders')).rows).toEqual([{ item: 'book' }]);
  });

  it('is never done again by itself, if it may have been', async () => {
    await killedInTheMiddle('order:elsewhere_too');
    expect(await sentAgain('elsewhere_too')).toEqual([409, 'outcome_unknown']);
    expect(await sentAgain('elsewhere_too')).toEqual([409, 'outcome_unknown']);
    expect((await pool.query('SELECT item FROM orders')).rows).toEqual([]);
  });
});
