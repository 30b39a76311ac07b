import { afterAll, beforeAll, expect, test } from 'vitest';
import { SECOND } from '../../src/domain/time.js';
import type { Random } from '../harness/random.js';
import {
  acquireInput,
  as,
  createRun,
  eventually,
  freshKey,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { seeded } from '../support/seeded.js';
import { SIMPLE_MAP } from '../support/workload.js';

let database: TestDatabase;
let replicas: TestReplica[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  replicas = [await startReplica({ url: database.url }), await startReplica({ url: database.url })];
  await putMap((replicas[0] as TestReplica).api, SIMPLE_MAP);
});

afterAll(async () => {
  for (const replica of replicas) await replica.stop();
  await database?.drop();
});

/** One client: takes overlapping sets in a random order, holds several at once, and sometimes just goes away. */
async function client(random: Random, rounds: number): Promise<{ runId: string; kinds: string[] }> {
  const runId = await createRun(random.pick(replicas).api);
  const kinds: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const { api } = random.pick(replicas);
    const gone = new AbortController();
    const resources = [...new Set([random.pick(items()), random.pick(items()), random.pick(items())])];
    const input = acquireInput(
      runId,
      resources.map((resource) => write(resource, 'set')),
      { wait: 3 * SECOND, ttl: 2 * SECOND },
    );
    // A third of the calls is given up on, at once or after a moment.
    const calling = api.acquireWriteSet(as('runner', { signal: gone.signal }), input);
    if (random.chance(0.3)) setImmediate(() => gone.abort());
    const { value } = await calling;
    kinds.push(value.kind === 'refusal' ? value.refusal.kind : value.kind);
    if (value.kind === 'lease' && random.chance(0.6)) {
      await random
        .pick(replicas)
        .api.releaseLease(as('runner'), { runId, leaseId: value.lease.leaseId, acquireKey: null });
    }
  }
  return { runId, kinds };
}

let attempts = 0;
/** Of this attempt: at the end one run holds all of them. */
const items = (): string[] => Array.from({ length: 8 }, (_, i) => `item/${attempts}-${i}`);

test('F10: overlapping sets in shuffled order, callers that vanish: no deadlock, no residue', async () => {
  attempts += 1;
  const random = seeded();
  const done = await Promise.all(Array.from({ length: 24 }, (_, n) => client(random.fork(`${n}`), 5)));
  const kinds = new Set(done.flatMap(({ kinds }) => kinds));
  expect(
    [...kinds].filter(
      (kind) => !['lease', 'waiting', 'deadlock', 'wait_timeout', 'already_held', 'ended'].includes(kind),
    ),
    `seed ${random.seed}`,
  ).toEqual([]);
  expect(kinds).toContain('lease');
  const { api } = replicas[0] as TestReplica;
  await api.stopRuns(as('operator'), {
    principal: 'runner',
    resource: '',
    all: false,
    reason: 'done',
    idempotencyKey: freshKey(),
  });
  for (const replica of replicas) {
    const left = await eventually(
      async () =>
        (
          await replica.api.listLeases(as('operator'), {
            runId: '',
            resource: '',
            states: [],
            lockDelayed: false,
            page: { size: 100, token: '' },
          })
        ).value.items,
      (items) => items.length === 0,
    );
    expect(left).toEqual([]);
  }
  const run = await createRun(api);
  const { value } = await api.acquireWriteSet(
    as('runner'),
    acquireInput(
      run,
      items().map((resource) => write(resource, 'set')),
    ),
  );
  expect(value.kind).toBe('lease');
});
