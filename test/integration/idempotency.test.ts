import { randomUUID } from 'node:crypto';
import express from 'express';
import { Hono } from 'hono';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { conditionOf } from '../../src/clients/target/conditional-writes.js';
import { GuardRefusedError } from '../../src/clients/target/guard.js';
import { answerOnce, type IdempotencyStore, jsonAnswer } from '../../src/clients/target/idempotency.js';
import { expressIdempotent, honoIdempotent } from '../../src/clients/target/idempotency-http.js';
import { type PostgresIdempotency, postgresIdempotency } from '../../src/clients/target/idempotency-postgres.js';
import { redisIdempotency } from '../../src/clients/target/idempotency-redis.js';
import { ProblemError } from '../../src/clients/target/problem-error.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { redisMissing, startRedis, type TestRedis } from '../support/redis-server.js';
import { latch, served } from '../support/target-servers.js';

// W2: what is sent again is not done again, and gets the first answer; whatever becomes of the process or the reply.

let database: TestDatabase;
let pool: pg.Pool;
let redisServer: TestRedis | undefined;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new pg.Pool({ connectionString: database.url, max: 20 });
  pool.on('error', () => undefined);
  await pool.query(`CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text NOT NULL);
                    CREATE TABLE release (env text PRIMARY KEY, image text NOT NULL, version bigint NOT NULL)`);
  if (redisMissing === '') redisServer = await startRedis();
});
afterAll(async () => {
  await redisServer?.stop();
  await pool?.end();
  await database?.drop();
});
beforeEach(async () => {
  await pool.query(`TRUNCATE orders, release; INSERT INTO release VALUES ('prod-eu', 'shop:7', 7)`);
});

type Client = Pick<pg.ClientBase, 'query'>;
/** Each store, with what a handler makes its changes through. */
interface Kind {
  readonly name: string;
  readonly provable: boolean;
  store(leaseMs?: number): Promise<IdempotencyStore<unknown>>;
  readonly through: (given: unknown) => Client;
}

const DAY = 86_400_000;
const times = (leaseMs: number) => ({ retentionMs: DAY, inDoubtMs: DAY, leaseMs });

const schemaOfItsOwn = (): string => `keys_${randomUUID().replaceAll('-', '_').slice(0, 20)}`;

async function postgres(effects: 'in_transaction' | 'elsewhere_too', leaseMs: number): Promise<PostgresIdempotency> {
  const schema = schemaOfItsOwn();
  const store = postgresIdempotency(pool, { ...times(leaseMs), effects, schema });
  await Promise.all([store.install(), store.install()]);
  return store;
}

const KINDS: readonly Kind[] = [
  {
    name: 'Postgres, all in the transaction',
    provable: true,
    store: (leaseMs = 60_000) => postgres('in_transaction', leaseMs),
    through: (given) => given as Client,
  },
  {
    name: 'Postgres, elsewhere too',
    provable: false,
    store: (leaseMs = 60_000) => postgres('elsewhere_too', leaseMs),
    through: (given) => given as Client,
  },
  {
    name: redisMissing === '' ? 'Redis' : `Redis (skipped: ${redisMissing})`,
    provable: false,
    store: async (leaseMs = 60_000) => {
      const redis = (redisServer as TestRedis).connect();
      return redisIdempotency(redis, { ...times(leaseMs), prefix: `keys:${randomUUID()}:` });
    },
    through: () => pool as unknown as Client,
  },
];

type Handle = (
  client: Client,
  item: string,
) => Promise<{ status: number; body: unknown; headers?: Record<string, string> }>;

/** Places an order; more of them than requests is what must not happen. */
const order: Handle = async (client, item) => {
  const { rows } = await client.query('INSERT INTO orders (item) VALUES ($1) RETURNING id', [item]);
  return { status: 201, body: { id: rows[0].id }, headers: { location: `/orders/${rows[0].id}`, 'x-trace': 'secret' } };
};

/** Places one as well, when it is let go on. */
function standsStill() {
  const [entered, leave] = [latch(), latch()];
  const handle: Handle = async (client, item) => {
    entered.open();
    await leave.promise;
    return order(client, item);
  };
  return { entered, leave, handle };
}

const principalOf = (authorization: string | undefined) => /^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? '';

function honoApp(kind: Kind, store: IdempotencyStore<unknown>, handle: Handle): Hono {
  const app = new Hono();
  // Hono's own prints the error.
  app.onError((_error, c) => c.json({}, 500));
  app.post(
    '/orders',
    honoIdempotent(
      store,
      { route: 'POST /orders', principal: (c) => principalOf(c.req.header('authorization')), maxBodyBytes: 10_000 },
      async (c, given) => {
        const { status, body, headers } = await handle(
          kind.through(given),
          ((await c.req.json()) as { item: string }).item,
        );
        return c.json(body as object, status as 200, headers);
      },
    ),
  );
  return app;
}

function expressApp(kind: Kind, store: IdempotencyStore<unknown>, handle: Handle): express.Express {
  const app = express();
  app.post(
    '/orders',
    express.json(),
    expressIdempotent(
      store,
      { route: 'POST /orders', principal: (req: express.Request) => principalOf(req.headers.authorization) },
      async (req, given) => {
        const { status, body, headers } = await handle(kind.through(given), req.body.item);
        return jsonAnswer(status, body, headers);
      },
    ),
  );
  // Express's own prints the error.
  app.use((_error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
    res.status(500).json({});
  });
  return app;
}

interface Sent {
  readonly key?: string;
  readonly item?: string;
  readonly as?: string;
}

async function post(url: string, { key, item = 'book', as = 'run-a' }: Sent) {
  const response = await fetch(`${url}/orders`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${as}`,
      ...(key === undefined ? {} : { 'idempotency-key': `"${key}"` }),
    },
    body: JSON.stringify({ item }),
  });
  const text = await response.text();
  return {
    status: response.status,
    replayed: response.headers.get('idempotency-replayed'),
    retryAfter: response.headers.get('retry-after'),
    location: response.headers.get('location'),
    trace: response.headers.get('x-trace'),
    body: (text.startsWith('{') ? JSON.parse(text) : text) as Record<string, unknown>,
  };
}

const orders = async (): Promise<string[]> =>
  (await pool.query<{ item: string }>('SELECT item FROM orders ORDER BY id')).rows.map(({ item }) => item);

describe.each(KINDS)('$name', (kind) => {
  const skip = kind.name.startsWith('Redis') && redisMissing !== '';
  const each = [
    ['hono', honoApp],
    ['Express', expressApp],
  ] as const;

  it.skipIf(skip).each(each)('does a request once, and answers it the same again (%s)', async (_name, app) => {
    const url = await served(app(kind, await kind.store(), order));
    const first = await post(url, { key: 'k1' });
    const again = await post(url, { key: 'k1' });
    expect([first.status, first.replayed, first.trace]).toEqual([201, null, 'secret']);
    expect(again).toEqual({ ...first, replayed: 'true', trace: null });
    expect(await orders()).toEqual(['book']);
  });

  it.skipIf(skip).each(each)('refuses the same key with another body, and changes nothing (%s)', async (_name, app) => {
    const url = await served(app(kind, await kind.store(), order));
    await post(url, { key: 'k1' });
    const other = await post(url, { key: 'k1', item: 'car' });
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused']);
    expect(await orders()).toEqual(['book']);
  });

  it.skipIf(skip).each(each)('needs a key, and a caller (%s)', async (_name, app) => {
    const url = await served(app(kind, await kind.store(), order));
    expect(await post(url, {})).toMatchObject({ status: 428, body: { code: 'idempotency_key_required' } });
    expect(await post(url, { key: 'k1', as: '' })).toMatchObject({ status: 401 });
    expect(await orders()).toEqual([]);
  });

  it.skipIf(skip)(
    'takes nobody for a caller that others could be too, as services without types may tell',
    async () => {
      const store = await kind.store();
      const asked = (principal: unknown) =>
        answerOnce(
          store,
          { route: 'r', method: 'POST', path: '/', body: {}, idempotencyKey: 'k1', principal: principal as string },
          async () => jsonAnswer(201, {}),
        );
      expect((await asked(undefined)).status).toBe(401);
      for (const wrong of [Promise.resolve('run-a'), null, 7, {}])
        await expect(asked(wrong)).rejects.toThrow(TypeError);
      expect((await asked('run-a')).status).toBe(201);
    },
  );

  it.skipIf(skip)('keeps keys of different callers apart', async () => {
    const url = await served(honoApp(kind, await kind.store(), order));
    await post(url, { key: 'k1', as: 'run-a' });
    expect(await post(url, { key: 'k1', as: 'run-b', item: 'car' })).toMatchObject({ status: 201, replayed: null });
    expect(await orders()).toEqual(['book', 'car']);
  });

  it.skipIf(skip)('of many at once does one, and the others are told that it is in flight, or its answer', async () => {
    const url = await served(honoApp(kind, await kind.store(), order));
    const answers = await Promise.all(Array.from({ length: 12 }, () => post(url, { key: 'k1' })));
    for (const { status, body, retryAfter } of answers) {
      if (status === 201) continue;
      expect([status, body.code]).toEqual([409, 'idempotency_in_flight']);
      expect(Number(retryAfter)).toBeGreaterThan(0);
    }
    expect(answers.some(({ status, replayed }) => status === 201 && replayed === null)).toBe(true);
    expect(await orders()).toEqual(['book']);
  });

  it.skipIf(skip)('tells another request while one is in flight, and answers it afterwards', async () => {
    const { entered, leave, handle } = standsStill();
    const url = await served(honoApp(kind, await kind.store(), handle));
    const first = post(url, { key: 'k1' });
    await entered.promise;
    expect(await post(url, { key: 'k1' })).toMatchObject({ status: 409, body: { code: 'idempotency_in_flight' } });
    expect(await post(url, { key: 'k1', item: 'car' })).toMatchObject({ status: 422 });
    leave.open();
    await first;
    expect(await post(url, { key: 'k1' })).toMatchObject({ status: 201, replayed: 'true' });
  });

  it.skipIf(skip)('keeps refusals that are results, frees the key for those that are not', async () => {
    let status: 409 | 412 = 412;
    const refusing: Handle = async () => {
      throw new ProblemError({ status, code: status === 412 ? 'version_conflict' : 'stale_token', detail: 'no' });
    };
    let handle = refusing;
    const url = await served(honoApp(kind, await kind.store(), (client, item) => handle(client, item)));
    expect(await post(url, { key: 'conflict' })).toMatchObject({ status: 412, replayed: null });
    status = 409;
    expect(await post(url, { key: 'stale' })).toMatchObject({ status: 409, body: { code: 'stale_token' } });
    handle = order;
    expect(await post(url, { key: 'conflict' })).toMatchObject({ status: 412, replayed: 'true' });
    expect(await post(url, { key: 'stale' })).toMatchObject({ status: 201, replayed: null });
  });

  it.skipIf(skip)('frees the key when the guard refuses: then nothing was done (C7)', async () => {
    const late: Handle = async () => {
      throw new GuardRefusedError('stale_token', 'release/prod-eu', 'promote');
    };
    let handle = late;
    const url = await served(honoApp(kind, await kind.store(), (client, item) => handle(client, item)));
    const stale = { status: 409, body: { code: 'stale_token', resource: 'release/prod-eu' }, replayed: null };
    expect(await post(url, { key: 'k1' })).toMatchObject(stale);
    expect(await post(url, { key: 'k1' })).toMatchObject(stale);
    handle = order;
    expect(await post(url, { key: 'k1' })).toMatchObject({ status: 201, replayed: null });
  });

  it.skipIf(skip)('answers once what is too large to be kept, and does not do it again', async () => {
    const large: Handle = async (client, item) => ({
      ...(await order(client, item)),
      body: { text: 'x'.repeat(70_000) },
    });
    const url = await served(honoApp(kind, await kind.store(), large));
    expect(await post(url, { key: 'k1' })).toMatchObject({ status: 201 });
    expect(await post(url, { key: 'k1' })).toMatchObject({
      status: 409,
      body: { code: 'answer_not_kept', first_status: 201, location: expect.stringContaining('/orders/') },
    });
    expect(await orders()).toEqual(['book']);
  });

  it.skipIf(skip).each(['throws', 'answers 500'])(
    'when the handler %s, does it again only if nothing can have happened',
    async (how) => {
      let fails = true;
      const failing: Handle = async (client, item) => {
        const made = await order(client, item);
        if (!fails) return made;
        if (how === 'throws') throw new Error('the other side did not answer');
        return { status: 500, body: {} };
      };
      const store = await kind.store();
      const url = await served(honoApp(kind, store, failing));
      expect((await post(url, { key: 'k1' })).status).toBe(500);
      fails = false;
      const again = await post(url, { key: 'k1' });
      if (kind.provable) {
        expect(again).toMatchObject({ status: 201, replayed: null });
        expect(await orders()).toEqual(['book']);
        return;
      }
      const unknown = { status: 409, body: { code: 'outcome_unknown', retryable: false } };
      expect(again).toMatchObject(unknown);
      expect(await post(url, { key: 'k1' })).toMatchObject(unknown);
      // What only a person can know.
      const scope = { principal: 'run-a', route: 'POST /orders', key: 'k1' };
      expect(await store.settle(scope, { happened: true, answer: jsonAnswer(201, { id: 'found' }) })).toBe(true);
      expect(await store.settle(scope, { happened: false })).toBe(false);
      expect(await post(url, { key: 'k1' })).toMatchObject({ status: 201, replayed: 'true', body: { id: 'found' } });
    },
  );

  it.skipIf(skip)('a key that a person has settled as not happened is free', async () => {
    let fails = true;
    const store = await kind.store();
    const url = await served(
      honoApp(kind, store, async (client, item) => {
        if (fails) throw new Error('gone');
        return order(client, item);
      }),
    );
    await post(url, { key: 'k1' });
    fails = false;
    await store.settle({ principal: 'run-a', route: 'POST /orders', key: 'k1' }, { happened: false });
    expect(await post(url, { key: 'k1' })).toMatchObject({ status: 201, replayed: null });
    expect(await orders()).toHaveLength(1);
  });

  it.skipIf(skip)('T2: a reply that is lost and a version conflict are two things', async () => {
    const store = await kind.store();
    const [entered, leave] = [latch(), latch()];
    const slow = {
      image: 'shop:8',
      middle: async () => {
        entered.open();
        await leave.promise;
      },
    };
    const app = new Hono();
    app.put(
      '/releases/:env',
      honoIdempotent(
        store,
        { route: 'PUT /releases/{env}', principal: (c) => c.req.header('authorization') ?? '' },
        async (c, given) => {
          const { image } = (await c.req.json()) as { image: string };
          if (image === slow.image) await slow.middle();
          const condition = conditionOf(c.req.raw.headers, {
            resource: 'release/prod-eu',
            changeClass: 'shared_pointer',
          });
          const { version, etag } = await condition.change(kind.through(given), {
            update: {
              text: 'UPDATE release SET image = $1, version = version + 1 WHERE env = $2 AND version = :observed RETURNING version',
              values: [image, 'prod-eu'],
            },
            current: { text: 'SELECT version FROM release WHERE env = $1', values: ['prod-eu'] },
          });
          return c.json({ version }, 200, { etag });
        },
      ),
    );
    const url = await served(app);
    const promote = async (run: string, key: string, observed: number, image: string, signal?: AbortSignal) => {
      const response = await fetch(`${url}/releases/prod-eu`, {
        method: 'PUT',
        headers: {
          authorization: run,
          'content-type': 'application/json',
          'idempotency-key': key,
          'if-match': `"${observed}"`,
        },
        body: JSON.stringify({ image }),
        ...(signal === undefined ? {} : { signal }),
      });
      const body = (await response.json()) as Record<string, unknown>;
      return { status: response.status, replayed: response.headers.get('idempotency-replayed'), body };
    };
    const image = async () => (await pool.query('SELECT image, version FROM release')).rows[0];

    // A gives up waiting, and its request is done all the same. B goes on from A's version. A sends the same again, as it
    // cannot know: it gets the first answer, and B's work stays.
    const impatience = new AbortController();
    const given = promote('run-a', 'a-1', 7, 'shop:8', impatience.signal);
    await entered.promise;
    impatience.abort();
    await expect(given).rejects.toThrow('abort');
    leave.open();
    await expect.poll(async () => (await image()).version, { timeout: 30_000 }).toBe('8');
    expect(await promote('run-b', 'b-1', 8, 'shop:9')).toMatchObject({ status: 200, replayed: null });
    const again = () => promote('run-a', 'a-1', 7, 'shop:8');
    await expect
      .poll(again, { timeout: 30_000 })
      .toMatchObject({ status: 200, replayed: 'true', body: { version: '8' } });
    expect(await image()).toEqual({ image: 'shop:9', version: '9' });
    // A new key does not help who wrote from an old version.
    expect(await promote('run-a', 'a-2', 8, 'shop:8')).toMatchObject({ status: 412, body: { current_version: '9' } });
    // Nor does the version help who uses a key twice.
    expect(await promote('run-a', 'a-1', 9, 'shop:8')).toMatchObject({ status: 422 });
    expect(await image()).toEqual({ image: 'shop:9', version: '9' });

    // T7: two candidates from one version, two keys: both are idempotent, one loses, and is told what is there.
    const [one, other] = await Promise.all([
      promote('run-a', 'a-3', 9, 'shop:10'),
      promote('run-b', 'b-2', 9, 'shop:11'),
    ]);
    const [won, lost] = one.status === 200 ? [one, other] : [other, one];
    expect([won.status, lost.status]).toEqual([200, 412]);
    expect(lost.body).toMatchObject({
      conflict_category: 'shared_pointer',
      expected_version: '9',
      current_version: '10',
      retryable: false,
      next: expect.stringContaining('both candidates'),
    });
    expect(await promote('run-a', 'a-3', 9, 'shop:10')).toEqual({ ...one, replayed: 'true' });
    expect(await promote('run-b', 'b-2', 9, 'shop:11')).toEqual({ ...other, replayed: 'true' });
  });
});

describe('a process that is lost in the middle', () => {
  /** Sends again until the lease is over: it is the database that says so. */
  async function untilLapsed(url: string, key: string) {
    for (;;) {
      const answer = await post(url, { key });
      if (answer.body.code !== 'idempotency_in_flight') return answer;
    }
  }

  /** A handler whose connection the database ends, as it does with that of a dead process. */
  /** `entered`: its key is claimed, so that whoever comes then is second. */
  function losesItsConnection(before: Handle, entered: { open(): void }): Handle {
    const end = latch();
    onTestFinished(() => end.open());
    return async (client, item) => {
      await before(client, item);
      entered.open();
      const { rows } = await client.query('SELECT pg_backend_pid() AS pid');
      await pool.query('SELECT pg_terminate_backend($1)', [rows[0].pid]);
      await end.promise;
      return { status: 201, body: {} };
    };
  }

  it('has done nothing, if it works in the transaction only: who sends it again may do it', async () => {
    const kind = KINDS[0] as Kind;
    const store = await kind.store(300);
    const entered = latch();
    const dead = await served(honoApp(kind, store, losesItsConnection(order, entered)));
    post(dead, { key: 'k1' }).catch(() => undefined);
    await entered.promise;
    const alive = await served(honoApp(kind, store, order));
    await expect.poll(async () => (await post(alive, { key: 'k1', item: 'x' })).status, { timeout: 30_000 }).toBe(422);
    expect(await untilLapsed(alive, 'k1')).toMatchObject({ status: 201, replayed: null });
    expect(await orders()).toEqual(['book']);
  });

  it('may have done it, if it also works elsewhere: nobody does it again', async () => {
    const kind = KINDS[1] as Kind;
    const store = (await kind.store(300)) as PostgresIdempotency;
    const nothing: Handle = async () => ({ status: 201, body: {} });
    const entered = latch();
    const dead = await served(honoApp(kind, store, losesItsConnection(nothing, entered)));
    post(dead, { key: 'k1' }).catch(() => undefined);
    await entered.promise;
    const alive = await served(honoApp(kind, store, order));
    await expect.poll(async () => (await post(alive, { key: 'k1', item: 'x' })).status, { timeout: 30_000 }).toBe(422);
    expect(await untilLapsed(alive, 'k1')).toMatchObject({ status: 409, body: { code: 'outcome_unknown' } });
    expect(await orders()).toEqual([]);
    expect(await store.listUnknown()).toMatchObject([{ principal: 'run-a', route: 'POST /orders', key: 'k1' }]);
    expect(await store.purge()).toBe(0);
    expect(await store.listUnknown()).toHaveLength(1);
  });

  it('is believed to be at work as long as it can still commit, whatever its lease says', async () => {
    const kind = KINDS[0] as Kind;
    const store = await kind.store(1);
    const { entered, leave, handle } = standsStill();
    const url = await served(honoApp(kind, store, handle));
    const first = post(url, { key: 'k1' });
    await entered.promise;
    for (let round = 0; round < 5; round += 1)
      expect(await post(url, { key: 'k1' })).toMatchObject({ status: 409, body: { code: 'idempotency_in_flight' } });
    leave.open();
    expect(await first).toMatchObject({ status: 201 });
    expect(await orders()).toEqual(['book']);
  });

  it('does not work when it wakes up and another has taken its place', async () => {
    const store = await postgres('in_transaction', 1);
    const claim = (attempt: string) => ({ principal: 'p', route: 'r', key: 'k', fingerprint: 'f', attempt });
    const [sleeper, other] = [claim(randomUUID()), claim(randomUUID())];
    expect(await store.claim(sleeper)).toBe('claimed');
    await expect.poll(() => store.lapse(other, sleeper.attempt), { timeout: 30_000 }).toBe('claimed');
    const work = async () => jsonAnswer(200, {});
    await expect(store.perform(sleeper, () => Promise.reject(new Error('worked')))).rejects.toThrow('taken the place');
    expect(await store.perform(other, work)).toMatchObject({ status: 200 });
  });

  it('in Redis: nobody does it again; when it wakes up after all, its answer is what happened', async ({ skip }) => {
    if (redisMissing !== '') skip(redisMissing);
    const kind = KINDS[2] as Kind;
    const store = await kind.store(1);
    const { entered, leave, handle } = standsStill();
    const url = await served(honoApp(kind, store, handle));
    const first = post(url, { key: 'k1' });
    await entered.promise;
    expect(await untilLapsed(url, 'k1')).toMatchObject({ status: 409, body: { code: 'outcome_unknown' } });
    leave.open();
    expect(await first).toMatchObject({ status: 201, replayed: null });
    expect(await post(url, { key: 'k1' })).toMatchObject({ status: 201, replayed: 'true' });
    expect(await orders()).toEqual(['book']);
  });
});

it('in Redis a claim that the client sends again, as its reply was lost, is the same claim', async ({ skip }) => {
  if (redisMissing !== '') skip(redisMissing);
  const store = await (KINDS[2] as Kind).store();
  const claim = { principal: 'a', route: 'POST /', key: randomUUID(), fingerprint: 'f', attempt: randomUUID() };
  expect([await store.claim(claim), await store.claim(claim)]).toEqual(['claimed', 'claimed']);
  expect(await store.claim({ ...claim, attempt: randomUUID() })).toMatchObject({ state: 'in_flight' });
});

describe('the answer and the change in Postgres', () => {
  it('commit together or not at all', async () => {
    const store = await postgres('in_transaction', 60_000);
    const app = honoApp(KINDS[0] as Kind, store, async (client, item) => {
      await order(client, item);
      // The deferred constraint lets the commit fail, after the handler has answered.
      await client.query(
        `CREATE TEMP TABLE late (x int UNIQUE DEFERRABLE INITIALLY DEFERRED) ON COMMIT DROP; INSERT INTO late VALUES (1), (1)`,
      );
      return { status: 201, body: {} };
    });
    const url = await served(app);
    expect((await post(url, { key: 'k1' })).status).toBe(500);
    expect(await orders()).toEqual([]);
    const mended = await served(honoApp(KINDS[0] as Kind, store, order));
    expect(await post(mended, { key: 'k1' })).toMatchObject({ status: 201, replayed: null });
  });

  it('a refusal that the handler answers rolls back what it did', async () => {
    const kind = KINDS[0] as Kind;
    const url = await served(
      honoApp(kind, await kind.store(), async (client, item) => {
        await order(client, item);
        return { status: 404, body: { code: 'no_such_customer' } };
      }),
    );
    expect((await post(url, { key: 'k1' })).status).toBe(404);
    expect(await post(url, { key: 'k1' })).toMatchObject({ status: 404, replayed: 'true' });
    expect(await orders()).toEqual([]);
  });

  it('stay for the retention, and are purged after it, a few at a time', async () => {
    const schema = schemaOfItsOwn();
    const store = postgresIdempotency(pool, { retentionMs: 1, inDoubtMs: 1, effects: 'in_transaction', schema });
    await store.install();
    const keep = postgresIdempotency(pool, { ...times(60_000), effects: 'in_transaction', schema });
    const url = await served(honoApp(KINDS[0] as Kind, store as IdempotencyStore<unknown>, order));
    const kept = await served(honoApp(KINDS[0] as Kind, keep as IdempotencyStore<unknown>, order));
    for (const key of ['a', 'b', 'c', 'd', 'e']) await post(url, { key });
    await post(kept, { key: 'f' });
    let removed = 0;
    await expect
      .poll(async () => (removed += await store.purge({ batch: 2, pauseMs: 1 })), { timeout: 30_000 })
      .toBe(5);
    expect(await post(kept, { key: 'f' })).toMatchObject({ replayed: 'true' });
    // A key whose retention is over is a new one, also before it is purged.
    await post(url, { key: 'g' });
    await expect.poll(async () => (await post(url, { key: 'g' })).replayed, { timeout: 30_000 }).toBeNull();
  });
});

it('a body that nobody has parsed is an error, not a fingerprint without it', async () => {
  const kind = KINDS[0] as Kind;
  const app = express();
  app.post(
    '/orders',
    expressIdempotent(await kind.store(), { route: 'POST /orders', principal: () => 'p' }, () => jsonAnswer(200, {})),
  );
  let seen: unknown;
  app.use((error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
    seen = error;
    res.status(500).end();
  });
  expect((await post(await served(app), { key: 'k1' })).status).toBe(500);
  expect(String(seen)).toContain('body parser');
});

it('all of a body counts in Express: none with files beside it is taken, and HTTP/2 needs no length', async () => {
  const kind = KINDS[0] as Kind;
  const app = express();
  // As in a request of HTTP/2.
  app.use(express.json(), (req, _res, next) => {
    delete req.headers['content-length'];
    next();
  });
  // As parsers of forms do it: texts in the body, files beside it.
  app.use((req, _res, next) => {
    if (req.headers['content-type']?.startsWith('multipart/')) req.body = {};
    next();
  });
  app.post(
    '/orders',
    expressIdempotent(await kind.store(), { route: 'POST /orders', principal: () => 'p' }, () => jsonAnswer(200, {})),
  );
  app.use((error: unknown, _req: express.Request, res: express.Response, _next: express.NextFunction) => {
    res.status(500).end(String(error));
  });
  const url = await served(app);
  const send = async (body: string | FormData, key: string) => {
    const headers = { 'idempotency-key': key, ...(typeof body === 'string' && { 'content-type': 'application/json' }) };
    const answer = await fetch(`${url}/orders`, { method: 'POST', headers, body });
    return [answer.status, await answer.text()];
  };
  expect([(await send('{"item":1}', 'k1'))[0], (await send('{"item":2}', 'k1'))[0]]).toEqual([200, 422]);
  const form = new FormData();
  form.set('file', new Blob(['content']), 'a.txt');
  expect(await send(form, 'k2')).toEqual([500, expect.stringContaining('multipart')]);
});

it('the first answer in hono is as the handler made it', async () => {
  const store = await (KINDS[0] as Kind).store();
  const app = new Hono();
  app.post(
    '/orders',
    honoIdempotent(store, { route: 'POST /orders', principal: () => 'p' }, (c) => {
      c.header('set-cookie', 'a=1', { append: true });
      c.header('set-cookie', 'b=2', { append: true });
      return c.body(null, 204);
    }),
  );
  const url = await served(app);
  const send = () => fetch(`${url}/orders`, { method: 'POST', headers: { 'idempotency-key': 'k1' } });
  const [first, again] = [await send(), await send()];
  expect([first.status, first.headers.getSetCookie()]).toEqual([204, ['a=1', 'b=2']]);
  expect([again.status, again.headers.getSetCookie(), again.headers.get('idempotency-replayed')]).toEqual([
    204,
    [],
    'true',
  ]);
});

it('a body beyond the bound is not read, with and without a length', async () => {
  const kind = KINDS[0] as Kind;
  const url = await served(honoApp(kind, await kind.store(), order));
  expect(await post(url, { key: 'k1', item: 'x'.repeat(10_001) })).toMatchObject({ status: 413 });
  const body = new ReadableStream({
    pull(controller) {
      controller.enqueue(new TextEncoder().encode('x'.repeat(1_000)));
    },
  });
  const init = {
    method: 'POST',
    body,
    duplex: 'half',
    headers: { 'idempotency-key': 'k2', authorization: 'Bearer a' },
  };
  expect((await fetch(`${url}/orders`, init as RequestInit)).status).toBe(413);
});
