import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Decision } from '../../src/domain/decide/decision.js';
import { type Micros, SECOND } from '../../src/domain/time.js';
import type { NamespaceEngine } from '../../src/engine/namespace-engine.js';
import type { EngineOptions } from '../../src/engine/options.js';
import { monotonicMicros } from '../../src/platform/clock.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore } from '../../src/storage/postgres/postgres-store.js';
import { type AppendBatch, type AppendResult, type Gate, type Store, StoreError } from '../../src/storage/store.js';
import { digestOf } from '../support/domain.js';
import { engineOptions, note, startedEngine } from '../support/engine.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';
import { latch } from '../support/target-servers.js';

// What comes while a batch is on its way is decided on top of it: nobody may be told of it, and nothing of it may be
// written, unless that batch is in the log as it was sent (P7, P8).

let database: TestDatabase;
let store: Store;
let namespaces = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(database.url, { log: () => undefined });
  store = createPostgresStore({ url: database.url, maxConnections: 5, prepared: PREPARED });
});

afterAll(async () => {
  await store?.close();
  await database?.drop();
});

interface World {
  readonly engine: NamespaceEngine;
  /** Another replica of the same namespace. */
  readonly other: NamespaceEngine;
  /** Lets the append go that `first` is in. */
  letGo(): void;
  /** The answer to the command that is on its way. */
  readonly first: Promise<{ readonly revision: number }>;
}

/**
 * The store, and this machine, by clocks that stand still: what was decided a quarter of a second ago is decided again, and
 * how long the steps of a test take is not for the test to say.
 */
function standingStill(): { store: Store; monotonicNow: () => Micros } {
  const here = monotonicMicros();
  let there: Micros | null = null;
  const at = <G extends Gate | null>(gate: G): G => {
    if (gate === null) return gate;
    there ??= gate.now;
    return { ...gate, now: there };
  };
  return {
    monotonicNow: () => here,
    store: {
      ...store,
      async loadSnapshot(namespace) {
        const snapshot = await store.loadSnapshot(namespace);
        return snapshot === null ? null : { ...snapshot, gate: at(snapshot.gate) };
      },
      readGate: async (namespace) => at(await store.readGate(namespace)),
      async append(batch) {
        const result = await store.append(batch);
        return { ...result, gate: at(result.gate) } as AppendResult;
      },
    },
  };
}

/** What becomes of a batch; `send` appends it. */
type Fate = (batch: AppendBatch, send: Store['append']) => Promise<AppendResult>;
const written: Fate = (batch, send) => send(batch);

/** An engine whose append is on its way until it is let go; `fate`: what then becomes of it. */
async function onItsWay(fate: Fate, more: Partial<EngineOptions> = {}): Promise<World> {
  const still = standingStill();
  const sent = latch();
  const gone = latch();
  let isFirst = true;
  const slow: Store = {
    ...still.store,
    async append(batch) {
      if (!isFirst) return still.store.append(batch);
      isFirst = false;
      sent.open();
      await gone.promise;
      return fate(batch, still.store.append);
    },
  };
  const namespace = `ahead-${++namespaces}`;
  const other = await startedEngine(engineOptions({ store }), namespace);
  const { monotonicNow } = still;
  const engine = await startedEngine(engineOptions({ store: slow, monotonicNow, maxQueue: 3, ...more }), namespace);
  const first = engine.submit('test', note('first'));
  first.catch(() => undefined);
  await sent.promise;
  return { engine, other, first, letGo: gone.open };
}

/** A command that tells which revisions it was decided on. */
function watched<R>(decide: (decision: Decision) => R) {
  const decidedOn: number[] = [];
  const once = latch();
  return {
    decidedOn,
    once: once.promise,
    decide(decision: Decision): R {
      decidedOn.push(decision.state.revision);
      once.open();
      return decide(decision);
    },
  };
}

const revisionOf = (decision: Decision): number => decision.state.revision;

describe('what comes while a batch is on its way', () => {
  test('is decided on top of it, told to nobody, and written once that batch is acknowledged', async () => {
    const { engine, other, first, letGo } = await onItsWay(written);
    const before = engine.state.revision;
    const second = watched(note('second'));
    const answer = engine.submit('test', second.decide);
    await second.once;
    expect(engine.state.revision).toBe(before);
    expect((await engine.read((view) => view.state.revision)).value).toBe(before);
    letGo();
    expect([(await first).revision, (await answer).revision]).toEqual([before + 1, before + 2]);
    expect(second.decidedOn).toEqual([before + 1]);
    expect((await other.read((view) => view.state.revision)).value).toBe(before + 2);
    expect(digestOf(engine.state)).toBe(digestOf(other.state));
  });

  test('is decided on top of it also when the log brought it before its answer', async () => {
    const { engine, first, letGo } = await onItsWay(async (batch, send) => {
      const result = await send(batch);
      await engine.read(revisionOf as never);
      return result;
    });
    const before = engine.state.revision;
    const second = watched(revisionOf);
    const answer = engine.submit('test', second.decide);
    await second.once;
    letGo();
    await first;
    expect((await answer).value).toBe(before + 1);
    expect(second.decidedOn).toEqual([before + 1]);
  });

  test('is decided again when another replica was faster', async () => {
    const { engine, other, first, letGo } = await onItsWay(written);
    const before = engine.state.revision;
    const [second, third] = [watched(revisionOf), watched(note('third'))];
    const answers = [engine.submit('test', second.decide), engine.submit('test', third.decide)] as const;
    await third.once;
    await other.submit('test', note('was faster'));
    letGo();
    expect((await first).revision).toBe(before + 2);
    expect((await answers[0]).value).toBe(before + 2);
    expect((await answers[1]).revision).toBe(before + 3);
    expect([second.decidedOn, third.decidedOn]).toEqual([
      [before + 1, before + 2],
      [before + 1, before + 2],
    ]);
  });

  test('is decided again when that batch is refused for good', async () => {
    const { engine, first, letGo } = await onItsWay(async () => {
      throw new StoreError('bad_data', 'refused by the test');
    });
    const before = engine.state.revision;
    const [second, third] = [watched(revisionOf), watched(note('third'))];
    const answers = [engine.submit('test', second.decide), engine.submit('test', third.decide)] as const;
    await third.once;
    letGo();
    await expect(first).rejects.toMatchObject({ reason: 'BAD_DATA' });
    expect((await answers[0]).value).toBe(before);
    expect((await answers[1]).revision).toBe(before + 1);
  });

  test.each(['written', 'answered'])('is decided again when it took a second until that batch was %s', async (held) => {
    let later = 0;
    const { engine, first, letGo } = await onItsWay(
      async (batch, send) => {
        const result = await send(batch);
        if (result.outcome !== 'appended') return result;
        later = held === 'answered' ? SECOND : 0;
        return { ...result, gate: { ...result.gate, now: result.gate.now + (SECOND - later) } };
      },
      { monotonicNow: () => later },
    );
    const before = engine.state.revision;
    const times: number[] = [];
    const second = watched((decision) => {
      times.push(decision.now);
      note('second')(decision);
    });
    const answer = engine.submit('test', second.decide);
    await second.once;
    letGo();
    await first;
    // A ttl counts from the decision: the shortest lease would be over when it is told (P5).
    expect((await answer).revision).toBe(before + 2);
    expect(second.decidedOn).toEqual([before + 1, before + 1]);
    expect((times[1] as number) - (times[0] as number)).toBeGreaterThan(SECOND / 2);
  });

  test('and has no form in the log fails alone', async () => {
    const { engine, first, letGo } = await onItsWay(written);
    const bad = (decision: Decision) =>
      decision.emit({ kind: 'texts_erased', runId: '', reason: '' }, { requestIds: ['half a pair: \ud800'] });
    const third = watched(note('third'));
    const answers = [engine.submit('test', bad), engine.submit('test', third.decide)];
    const settled = Promise.allSettled(answers);
    letGo();
    await first;
    expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
    await expect(answers[0]).rejects.toMatchObject({ reason: 'INTERNAL' });
  });

  test('counts as waiting: past the bound it is refused', async () => {
    const { engine, first, letGo } = await onItsWay(written);
    const second = watched(note('second'));
    const waiting = ['third', 'fourth'].map(note);
    const answers = [second.decide, ...waiting].map((decide) => engine.submit('test', decide));
    await second.once;
    await expect(engine.submit('test', note('fifth'))).rejects.toMatchObject({ reason: 'QUEUE_FULL' });
    letGo();
    await Promise.all([first, ...answers]);
  });

  test('is told at once that its replica shuts down', async () => {
    const { engine, first, letGo } = await onItsWay(written);
    const second = watched(note('second'));
    const answer = engine.submit('test', second.decide);
    await second.once;
    engine.stop();
    await expect(answer).rejects.toMatchObject({ reason: 'SHUTTING_DOWN' });
    letGo();
    await first;
  });
});
