import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Decision } from '../../src/domain/decide/decision.js';
import { Fault } from '../../src/domain/fault.js';
import type { NamespaceEngine } from '../../src/engine/namespace-engine.js';
import { migrate } from '../../src/storage/postgres/migrate.js';
import { createPostgresStore } from '../../src/storage/postgres/postgres-store.js';
import { type AppendBatch, type AppendResult, type Store, StoreError } from '../../src/storage/store.js';
import type { Random } from '../harness/random.js';
import { digestOf } from '../support/domain.js';
import { engineOptions, startedEngine } from '../support/engine.js';
import { createTestDatabase, PREPARED, type TestDatabase } from '../support/postgres.js';
import { seeded } from '../support/seeded.js';

// Whatever becomes of appends, while commands are decided ahead of them: each command is in the log once and where its
// caller was told, or not at all, and in the order in which they came (P7, P8, P9).

let database: TestDatabase;
let store: Store;
let namespaces = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  await migrate(database.url, { log: () => undefined });
  store = createPostgresStore({ url: database.url, maxConnections: 8, prepared: PREPARED });
});

afterAll(async () => {
  await store?.close();
  await database?.drop();
});

const POISON = 'refused by the test';
const isPoisoned = ({ events }: AppendBatch): boolean =>
  events.some(({ requestIds }) => requestIds.some((id) => id.startsWith(POISON)));

const checked = (batch: AppendBatch): AppendBatch => {
  if (isPoisoned(batch)) throw new StoreError('bad_data', POISON);
  return batch;
};

/** The store, which refuses what is poisoned. */
const fussy = (): Store => ({
  ...store,
  append: async (batch) => store.append(checked(batch)),
  appendExclusively: (namespace, after, decide) =>
    store.appendExclusively(namespace, after, (tail, gate) => {
      const batch = decide(tail, gate);
      return batch === null ? null : checked(batch);
    }),
});

/** A store whose appends get lost, or their answers, or come when nobody waits for them any more. */
function stormy(random: Random): { store: Store; calm(): Promise<void> } {
  const sure = fussy();
  const late: AppendBatch[] = [];
  let isCalm = false;
  const comeLate = async () => {
    for (const batch of late.splice(0)) await store.append(batch).catch(() => undefined);
  };
  const lost = () => new StoreError('unknown_outcome', 'the answer is lost, says the test');
  const becomes: Record<string, (batch: AppendBatch) => Promise<AppendResult>> = {
    lost: async () => {
      throw lost();
    },
    unanswered: async (batch) => {
      await store.append(batch);
      throw lost();
    },
    late: async (batch) => {
      late.push(batch);
      throw lost();
    },
    overtaken: async () => ({ outcome: 'stale', gate: null }),
    unreachable: async () => {
      throw new StoreError('unavailable', 'out of reach, says the test');
    },
  };
  return {
    store: {
      ...sure,
      async append(batch) {
        if (random.chance(0.4)) await comeLate();
        if (isCalm || isPoisoned(batch) || random.chance(0.75)) return sure.append(batch);
        return (becomes[random.pick(Object.keys(becomes))] as typeof store.append)(batch);
      },
    },
    async calm() {
      isCalm = true;
      await comeLate();
    },
  };
}

interface Told {
  readonly id: string;
  readonly engine: NamespaceEngine;
  /** Null: of a command that fails wherever it is decided. */
  readonly events: number | null;
  answer: { readonly value: number; readonly revision: number } | { readonly fault: Fault };
}

const SHAPES: readonly { events: number | null; alone?: boolean; decide(decision: Decision, id: string): void }[] = [
  { events: 1, decide: (decision, id) => write(decision, id) },
  { events: 1, decide: (decision, id) => write(decision, id) },
  { events: 1, alone: true, decide: (decision, id) => write(decision, id) },
  { events: 0, decide: () => undefined },
  {
    events: 2,
    decide: (decision, id) => {
      write(decision, id);
      write(decision, id);
    },
  },
  {
    // It has to be looked up.
    events: 1,
    decide: (decision, id) => {
      decision.lease(id);
      write(decision, id);
    },
  },
  {
    events: null,
    decide: (decision, id) => {
      write(decision, id);
      throw new Fault('failed_precondition', 'REFUSED', 'refused by the test');
    },
  },
];
/** As bad as these, and seldom: a whole batch is decided again and again because of one. */
const BAD: typeof SHAPES = [
  { events: null, decide: (decision, id) => write(decision, id, `${POISON} ${id}`) },
  { events: null, decide: (decision, id) => write(decision, id, `half a pair: \ud800 ${id}`) },
];

function write(decision: Decision, ...requestIds: string[]): void {
  decision.emit({ kind: 'texts_erased', runId: '', reason: '' }, { requestIds });
}

async function submit(engine: NamespaceEngine, id: string, random: Random): Promise<Told> {
  const { events, alone = false, decide } = random.pick(random.chance(0.02) ? BAD : SHAPES);
  const answer = await engine
    .submit(
      'test',
      (decision) => {
        decide(decision, id);
        return decision.state.revision;
      },
      alone,
    )
    .catch((fault: Fault) => ({ fault }));
  return { id, engine, events, answer };
}

test.each([1, 2, 3])('in storm %i', async (number) => {
  const random = seeded();
  const seed = `seed ${random.seed}`;
  const namespace = `storm-${++namespaces}`;
  const storm = stormy(random);
  const other = await startedEngine(engineOptions({ store: fussy() }), namespace);
  const engine = await startedEngine(engineOptions({ store: storm.store, maxBatch: 8 }), namespace);
  const asked: Promise<Told>[] = [];
  for (let round = 0; round < 150; round += 1) {
    const by = random.chance(number === 3 ? 0.3 : 0.05) ? other : engine;
    for (let left = 1 + random.below(6); left > 0; left -= 1) asked.push(submit(by, `c${asked.length}`, random));
    if (random.chance(0.2)) void engine.read((view) => view.state.revision).catch(() => undefined);
    if (random.chance(0.3)) await asked[Math.max(0, asked.length - 20)];
    else await nextTurn();
  }
  const told = await Promise.all(asked);
  await storm.calm();
  for (const one of [engine, other]) await one.read((view) => view.state.revision);
  expect(engine.head, seed).toEqual(other.head);
  expect(digestOf(engine.state), seed).toBe(digestOf(other.state));

  const at = new Map<string, number[]>();
  for (const { requestIds, revision } of await store.readTail(namespace, 0, 10_000))
    for (const id of requestIds) at.set(id, [...(at.get(id) ?? []), revision]);
  for (const { id, events, answer } of told) {
    const written = at.get(id) ?? [];
    if ('fault' in answer) {
      // Nothing but what is told to be unknown may have happened.
      const isThere = written.length > 0 && events !== null && answer.fault.reason === 'UNKNOWN_OUTCOME';
      expect([id, written.length, answer.fault.reason], seed).toEqual([id, isThere ? events : 0, answer.fault.reason]);
    } else {
      expect([id, written.length, answer.value], seed).toEqual([id, events, answer.revision]);
      if (written.length > 0) expect([id, written.at(-1)], seed).toEqual([id, answer.revision]);
    }
  }
  for (const one of [engine, other]) {
    const places = told.flatMap(({ engine, answer }) => (engine === one && 'value' in answer ? answer.revision : []));
    expect(places, seed).toEqual(places.toSorted((a, b) => a - b));
  }
  for (const one of [engine, other]) one.stop();
});
