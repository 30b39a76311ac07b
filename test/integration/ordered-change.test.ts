import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type OrderedChange, type OrderedChanges, orderedChanges } from '../../src/clients/target/ordered-change.js';
import type { PlanView } from '../../src/clients/target/ordered-change-store.js';
import { ProblemError } from '../../src/clients/target/problem-error.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { shiftTraffic } from '../support/shift-traffic.mjs';
import { latch } from '../support/target-servers.js';

// W5: several resources, in order, each step on what the one before has made; undone only where it is still so.

let database: TestDatabase;
let pool: pg.Pool;
let changes: OrderedChanges;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url });
  pool.on('error', () => undefined);
  for (const table of ['deployment', 'route', 'notice'])
    await pool.query(`CREATE TABLE ${table} (env text PRIMARY KEY, image text NOT NULL, version bigint NOT NULL)`);
  changes = orderedChanges(pool);
  await Promise.all([changes.install(), changes.install()]);
});
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});
beforeEach(async () => {
  await pool.query('TRUNCATE writ_plans.plan CASCADE');
  for (const table of ['deployment', 'route', 'notice'])
    await pool.query(`TRUNCATE ${table}; INSERT INTO ${table} VALUES ('prod-eu', 'shop:7', 7)`);
});

const PLAN = { id: 'shift-1', input: { env: 'prod-eu', image: 'shop:8' }, startedBy: 'run-a' };

async function images(): Promise<string[]> {
  const { rows } = await pool.query(
    `SELECT d.image AS d, r.image AS r, n.image AS n FROM deployment d, route r, notice n`,
  );
  return [rows[0].d, rows[0].r, rows[0].n];
}

const states = ({ state, steps }: PlanView): string[] => [state, ...steps.map((step) => step.state)];

/** Somebody else changes what a step has made. */
const meddle = (table: string) => pool.query(`UPDATE ${table} SET image = 'hotfix', version = version + 1`);

const refuse = async () => {
  throw new ProblemError({ status: 409, code: 'route_frozen', detail: 'The route is frozen.' });
};

describe('an ordered change', () => {
  it('makes its steps in order, and keeps what they have returned', async () => {
    const plan = await changes.run(shiftTraffic(), PLAN);
    expect(states(plan)).toEqual(['done', 'done', 'done', 'done']);
    expect(plan).toMatchObject({ name: 'shift-traffic', input: PLAN.input, startedBy: 'run-a', settled: null });
    expect(plan.steps[1]).toMatchObject({ name: 'route', result: { image: 'shop:7', version: '8' }, why: null });
    expect(await images()).toEqual(['shop:8', 'shop:8', 'shop:8']);
    expect(await changes.findInterrupted()).toEqual([]);
  });

  it('records the intent before anything is done, and what is begun before it is', async () => {
    const [entered, leave] = [latch(), latch()];
    const running = changes.run(
      shiftTraffic('in_transaction', async () => {
        entered.open();
        await leave.promise;
      }),
      PLAN,
    );
    await entered.promise;
    expect(states((await changes.get('shift-1')) as PlanView)).toEqual(['running', 'done', 'running', 'planned']);
    leave.open();
    await running;
  });

  it('is one for one intent: the same id is not done again', async () => {
    await changes.run(shiftTraffic(), PLAN);
    await expect(changes.run(shiftTraffic(), PLAN)).rejects.toMatchObject({
      problem: { status: 409, code: 'plan_exists' },
    });
    const once = ['a', 'b', 'c'].map(() =>
      changes.run(shiftTraffic(), { ...PLAN, id: 'shift-2' }).then(states, () => 'exists'),
    );
    expect((await Promise.all(once)).filter((outcome) => outcome !== 'exists')).toHaveLength(1);
  });

  it('undoes what was made when a step fails, and says why', async () => {
    const plan = await changes.run(shiftTraffic('elsewhere_too', refuse), PLAN);
    expect(states(plan)).toEqual(['undone', 'undone', 'failed', 'planned']);
    expect(plan.steps[1]?.why).toBe('route_frozen: The route is frozen.');
    expect(await images()).toEqual(['shop:7', 'shop:7', 'shop:7']);
  });

  it('makes no step on what has changed since, nor undoes that', async () => {
    const plan = await changes.run(withMeddling('deployment'), PLAN);
    expect(states(plan)).toEqual(['needs_person', 'not_undone', 'failed', 'planned']);
    expect(plan.steps.map(({ why }) => why)).toEqual([
      'changed_since: somebody else has changed it',
      'precondition: what deployment made has changed since',
      null,
    ]);
    expect(await images()).toEqual(['hotfix', 'shop:7', 'shop:7']);
  });

  /** The shift, during which somebody changes `table` after its own step and before the next looks at it. */
  function withMeddling(table: string): OrderedChange<typeof PLAN.input> {
    const change = shiftTraffic();
    const steps = change.steps.map((step) => {
      if (step.name !== table) return step;
      return {
        ...step,
        async holds(context: Parameters<typeof step.holds>[0]) {
          await meddleOnce(table);
          return step.holds(context);
        },
      };
    });
    let done = false;
    const meddleOnce = async (name: string) => {
      if (!done) await meddle(name);
      done = true;
    };
    return { ...change, steps };
  }

  it('stops undoing at what cannot be undone, and leaves what that stands on', async () => {
    const change = shiftTraffic();
    const failing = { ...change.steps[0], name: 'last', run: refuse } as (typeof change.steps)[0];
    const plan = await changes.run({ ...change, steps: [...change.steps, failing] }, PLAN);
    expect(states(plan)).toEqual(['needs_person', 'done', 'done', 'not_undone', 'failed']);
    expect(plan.steps[2]?.why).toBe('cannot: a notice that was read stays read');
    expect((await changes.findInterrupted()).map(({ id }) => id)).toEqual(['shift-1']);
    expect(await changes.settle('shift-1', 'operator:kim', 'the old image is fine')).toBe(true);
    expect(await changes.findInterrupted()).toEqual([]);
    expect((await changes.get('shift-1'))?.settled).toEqual({ by: 'operator:kim', note: 'the old image is fine' });
    expect(await changes.settle('shift-1', 'operator:kim', 'again')).toBe(false);
  });

  it('an error in a transaction has changed nothing; one elsewhere may have, and nothing is undone on it', async () => {
    const fails = async () => {
      throw Object.assign(new Error('password=hunter2'), { code: 'ECONNRESET' });
    };
    const certain = await changes.run(shiftTraffic('in_transaction', fails), PLAN);
    expect(states(certain)).toEqual(['undone', 'undone', 'failed', 'planned']);
    const doubtful = await changes.run(shiftTraffic('elsewhere_too', fails), { ...PLAN, id: 'shift-2' });
    expect(states(doubtful)).toEqual(['needs_person', 'done', 'in_doubt', 'planned']);
    expect(doubtful.steps[1]?.why).toBe('error: Error ECONNRESET');
    expect(await images()).toEqual(['shop:8', 'shop:7', 'shop:7']);
    expect((await changes.findInterrupted()).map(({ id }) => id)).toEqual(['shift-2']);
    // Neither does a roll-back go past it.
    expect(states(await changes.rollBack(shiftTraffic(), 'shift-2'))).toEqual([
      'needs_person',
      'done',
      'in_doubt',
      'planned',
    ]);
  });

  it('a step whose connection is lost in the middle has failed, or was done after all', async () => {
    const lost = async (client: pg.PoolClient) => {
      const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
      await pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
    };
    const plan = await changes.run(shiftTraffic('in_transaction', lost), PLAN);
    expect(states(plan)).toEqual(['undone', 'undone', 'failed', 'planned']);
    expect(await images()).toEqual(['shop:7', 'shop:7', 'shop:7']);
  });

  it('is refused without steps, with two of one name, without what undoes one (W5), or as another change', async () => {
    const { name, steps } = shiftTraffic();
    await expect(changes.run({ name, steps: [] }, PLAN)).rejects.toThrow(RangeError);
    await expect(changes.run({ name, steps: [...steps, ...steps] }, PLAN)).rejects.toThrow('name of its own');
    for (const odd of ['__proto__', '', 'a b'])
      await expect(
        changes.run({ name, steps: [{ ...steps[0], name: odd } as (typeof steps)[0]] }, PLAN),
      ).rejects.toThrow(RangeError);
    const [first] = steps;
    for (const missing of ['run', 'holds', 'undo'])
      await expect(
        changes.run(
          { name, steps: [...steps.slice(1), { ...first, [missing]: undefined } as (typeof steps)[0]] },
          PLAN,
        ),
      ).rejects.toThrow(`step ${first?.name} needs`);
    expect(await images()).toEqual(['shop:7', 'shop:7', 'shop:7']);
    await changes.run(shiftTraffic(), PLAN);
    await expect(changes.rollBack({ name: 'other', steps }, 'shift-1')).rejects.toThrow('another change');
    await expect(changes.rollBack(shiftTraffic(), 'shift-1')).rejects.toMatchObject({
      problem: { code: 'plan_at_work' },
    });
    await expect(changes.rollBack(shiftTraffic(), 'nope')).rejects.toMatchObject({ problem: { status: 404 } });
  });
});

describe('a worker that is slow', () => {
  it('is not taken for dead while its transaction is open', async () => {
    const [entered, leave] = [latch(), latch()];
    const impatient = orderedChanges(pool, { stepTimeoutMs: 1 });
    const running = impatient.run(
      shiftTraffic('in_transaction', async () => {
        entered.open();
        await leave.promise;
      }),
      PLAN,
    );
    await entered.promise;
    expect(await changes.findInterrupted()).toEqual([]);
    expect(await changes.settle('shift-1', 'kim', 'x')).toBe(false);
    await expect(changes.rollBack(shiftTraffic(), 'shift-1')).rejects.toMatchObject({
      problem: { code: 'plan_at_work' },
    });
    leave.open();
    expect(states(await running)).toEqual(['done', 'done', 'done', 'done']);
  });

  it('does nothing more when it wakes up and another has rolled its plan back', async () => {
    const impatient = orderedChanges(pool, { stepTimeoutMs: 1 });
    const change = shiftTraffic();
    const [first, ...rest] = change.steps as [(typeof change.steps)[0], ...typeof change.steps];
    // Asleep between two steps: the pool of the sleeper is held up when it would record that the second one is begun.
    const [asleep, wake] = [latch(), latch()];
    let firstIsMade = false;
    const sleeper = {
      ...change,
      steps: [
        {
          ...first,
          async run(context: Parameters<typeof first.run>[0]) {
            firstIsMade = true;
            return first.run(context);
          },
        },
        ...rest,
      ],
    };
    const slow = Object.assign(Object.create(pool) as pg.Pool, {
      connect: pool.connect.bind(pool),
      async query(text: string, values: unknown[]) {
        if (firstIsMade) {
          asleep.open();
          await wake.promise;
        }
        return pool.query(text, values);
      },
    });
    const running = orderedChanges(slow, { stepTimeoutMs: 1 }).run(sleeper, PLAN);
    running.catch(() => undefined);
    await asleep.promise;
    await expect.poll(async () => (await impatient.findInterrupted()).length, { timeout: 30_000 }).toBe(1);
    expect(states(await changes.rollBack(change, 'shift-1'))).toEqual(['undone', 'undone', 'planned', 'planned']);
    wake.open();
    await expect(running).rejects.toThrow('taken over meanwhile');
    expect(await images()).toEqual(['shop:7', 'shop:7', 'shop:7']);
  });
});
