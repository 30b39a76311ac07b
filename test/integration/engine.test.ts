import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Decision } from '../../src/domain/decide/decision.js';
import { SECOND } from '../../src/domain/time.js';
import { createNamespace } from '../../src/engine/establish.js';
import type { NamespaceEngine } from '../../src/engine/namespace-engine.js';
import type { EngineOptions } from '../../src/engine/options.js';
import { monotonicMicros } from '../../src/platform/clock.js';
import { LOCK_CLASS, lockKey } from '../../src/storage/postgres/gate.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore } from '../../src/storage/postgres/postgres-store.js';
import { type Store, StoreError } from '../../src/storage/store.js';
import { as, check, createRun, eventually, granted, putMap, startReplica, write } from '../support/coordinator.js';
import { engineOptions, note, startedEngine } from '../support/engine.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';
import { SIMPLE_MAP } from '../support/workload.js';

// What one replica's engine does where the database, or a command, is not as it should be (design: the engine).

let database: TestDatabase;
let store: Store;
let beside: pg.Client;
let namespaces = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(database.url, { log: () => undefined });
  store = createPostgresStore({ url: database.url, maxConnections: 5, prepared: PREPARED });
  beside = new pg.Client(database.url);
  await beside.connect();
});

afterAll(async () => {
  await beside?.end();
  await store?.close();
  await database?.drop();
});

const optionsWith = (more: Partial<EngineOptions>): EngineOptions => engineOptions({ store, ...more });

/** In a namespace of its own, unless one is given. */
const startEngine = (
  more: Partial<EngineOptions> = {},
  namespace = `engine-${++namespaces}`,
): Promise<NamespaceEngine> => startedEngine(optionsWith(more), namespace);

describe('an append that loses', () => {
  test('twice is made a third time while nobody else can', async () => {
    const winner = await startEngine();
    let losses = 0;
    let exclusive = 0;
    const losing: Store = {
      ...store,
      async append(batch) {
        losses += 1;
        await winner.submit('test', note('was faster'));
        return store.append(batch);
      },
      appendExclusively(...asked) {
        exclusive += 1;
        return store.appendExclusively(...asked);
      },
    };
    const loser = await startEngine({ store: losing }, winner.namespace);
    const { revision } = await loser.submit('test', note('at last'));
    expect([losses, exclusive]).toEqual([2, 1]);
    expect((await winner.read((view) => view.state.revision)).value).toBe(revision);
  });
});

describe('a command', () => {
  test('whose data the database refuses fails alone, and the rest of its batch is written', async () => {
    let batches = 0;
    const counting: Store = {
      ...store,
      append(batch) {
        batches += 1;
        return store.append(batch);
      },
    };
    const engine = await startEngine({ store: counting });
    const answers = await Promise.allSettled(
      ['a', 'b', 'c\u0000', 'd', 'e'].map((reason) => engine.submit('test', note(reason))),
    );
    expect(answers.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
    expect((answers[2] as PromiseRejectedResult).reason).toMatchObject({ reason: 'BAD_DATA' });
    const written = await store.listEvents(engine.namespace, { kinds: ['texts_erased'], limit: 100 });
    expect(written.flatMap(({ texts }) => texts.map(({ text }) => text))).toEqual(['a', 'b', 'd', 'e']);
    // They had come together.
    expect(batches).toBeGreaterThan(1);
  });

  test('that cannot be put into the log fails alone too', async () => {
    const engine = await startEngine();
    const bad = (decision: Decision) =>
      decision.emit({ kind: 'texts_erased', runId: '', reason: '' }, { requestIds: ['half a pair: \ud800'] });
    const answers = await Promise.allSettled([
      engine.submit('test', note('a')),
      engine.submit('test', bad),
      engine.submit('test', note('b')),
    ]);
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect((answers[1] as PromiseRejectedResult).reason).toMatchObject({ reason: 'INTERNAL' });
  });

  test('past the bound of those that wait is refused, and changes nothing', async () => {
    const engine = await startEngine({ maxQueue: 3 });
    const answers = await Promise.allSettled(['a', 'b', 'c', 'd'].map((name) => engine.submit('test', note(name))));
    expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected']);
    expect((answers[3] as PromiseRejectedResult).reason).toMatchObject({ reason: 'QUEUE_FULL' });
    expect(await store.listEvents(engine.namespace, { kinds: ['texts_erased'], limit: 100 })).toHaveLength(3);
  });
});

test('a namespace that could not be made is not said to be there already', async () => {
  const wanted = `wanted-${++namespaces}`;
  // It waits for a call that tries for 8 s, and the role's own bound would end it after 10.
  await beside.query('BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0');
  try {
    await beside.query('SELECT pg_advisory_xact_lock($1, $2)', [LOCK_CLASS, lockKey(wanted)]);
    await expect(createNamespace(wanted, 'test', optionsWith({}))).rejects.toMatchObject({ reason: 'TOO_BUSY' });
  } finally {
    await beside.query('ROLLBACK');
  }
  expect(await createNamespace(wanted, 'test', optionsWith({}))).toBe(true);
  expect(await createNamespace(wanted, 'test', optionsWith({}))).toBe(false);
});

/** Puts one more event at the end of the log: as the last one, but for its kind and time. */
async function appendByHand(namespace: string, { kind = 'kind', later = 0 }): Promise<void> {
  await beside.query(
    `INSERT INTO writ.event (namespace, revision, time_us, batch_id, kind, body_version, actor, run_id, lease_id,
       resources, request_ids, body, prev_hash, hash)
     SELECT namespace, revision + 1, time_us + $2, batch_id, ${kind}, body_version, actor, run_id, lease_id, resources,
       request_ids, body, hash, sha256(hash)
     FROM writ.event WHERE namespace = $1 ORDER BY revision DESC LIMIT 1`,
    [namespace, later],
  );
}

describe('nothing is decided', () => {
  test('past an event that this version cannot read', async () => {
    const engine = await startEngine();
    await appendByHand(engine.namespace, { kind: `'of_the_future'` });
    await expect(engine.read(() => null)).rejects.toMatchObject({ reason: 'UNKNOWN_EVENT' });
    await expect(engine.submit('test', note('a'))).rejects.toMatchObject({ reason: 'UNKNOWN_EVENT' });
  });

  test('on a database whose clock is behind the last event', async () => {
    const engine = await startEngine();
    await appendByHand(engine.namespace, { later: 3_600 * SECOND });
    await expect(createNamespace(engine.namespace, 'test', optionsWith({}))).rejects.toMatchObject({
      reason: 'CLOCK_BEHIND',
    });
  });

  test('on a database that acknowledges what it may forget', async () => {
    const forgetful = await createTestDatabase();
    // Before anybody connects: the setting counts for later connections, and a pooler keeps those that it has.
    const name = pg.escapeIdentifier(new URL(forgetful.url).pathname.slice(1));
    await beside.query(`ALTER DATABASE ${name} SET synchronous_commit = off`);
    await migrate(forgetful.url, { log: () => undefined });
    const fresh = createPostgresStore({ url: forgetful.url, maxConnections: 2, prepared: PREPARED });
    try {
      await expect(createNamespace('forgetful', 'test', optionsWith({ store: fresh }))).rejects.toMatchObject({
        reason: 'DATABASE_NOT_DURABLE',
      });
    } finally {
      await fresh.close();
      await forgetful.drop();
    }
  });

  test('by a replica whose last heartbeat is older than 2 s, until it can write one again', async () => {
    let isCut = false;
    let lastSentAt = 0;
    const replica = await startReplica({
      url: database.url,
      wrap: (real) => ({
        ...real,
        heartbeat: (id) => {
          if (isCut) return Promise.reject(new StoreError('unavailable', 'no heartbeat gets through'));
          lastSentAt = monotonicMicros();
          return real.heartbeat(id);
        },
      }),
    });
    try {
      await putMap(replica.api, SIMPLE_MAP);
      const lease = await granted(replica.api, await createRun(replica.api), [write(`item/${randomUUID()}`, 'set')]);
      isCut = true;
      const ask = () =>
        check(replica.api, lease).then(
          ({ reason }) => reason,
          (error) => error.reason as string,
        );
      await eventually(ask, (seen) => seen === 'REPLICA_STALE');
      // To the moment between its own look at the clock and ours.
      expect(monotonicMicros() - lastSentAt).toBeGreaterThan(1.99 * SECOND);
      await expect(
        replica.api.listRuns(as('operator'), { states: [], page: { size: 1, token: '' } }),
      ).rejects.toMatchObject({ reason: 'REPLICA_STALE' });
      isCut = false;
      await eventually(ask, (seen) => seen === 'ok');
    } finally {
      await replica.stop();
    }
  });
});

describe('a head that was confirmed', () => {
  test('is as old as the question, however late its answer was heard (F2, P11)', async () => {
    let later = 0;
    let asked = 0;
    const late: Store = {
      ...store,
      async readGate(namespace) {
        asked += 1;
        const gate = await store.readGate(namespace);
        later += 5 * SECOND;
        return gate;
      },
    };
    const engine = await startEngine({ store: late, monotonicNow: () => monotonicMicros() + later });
    await engine.read((view) => view.state.revision);
    expect(engine.sinceConfirmed()).toBeGreaterThanOrEqual(5 * SECOND);
    const before = asked;
    await engine.refresh(SECOND);
    expect(asked).toBe(before + 1);
  });
});
