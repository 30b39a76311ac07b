import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Store } from '../../src/storage/store.js';
import { as, createRun, granted, putMap, startReplica, type TestReplica, write } from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

// Replicas compare the digests of their live states by the log (design: the log).

const MAP = `
version: 1
kinds: [ { pattern: "release/{env}", ttl: 60s, actions: { promote: { access: write, concurrency: lease } } } ]
`;

let database: TestDatabase;
const replicas: TestReplica[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  for (const replica of replicas) await replica.stop();
  await database?.drop();
});

async function start(wrap?: (store: Store) => Store): Promise<TestReplica> {
  const env = { WRIT_CHECKPOINT_EVERY: '1s' };
  const replica = await startReplica({ url: database.url, env, ...(wrap === undefined ? {} : { wrap }) });
  replicas.push(replica);
  return replica;
}

/** Follows a log in which every lease lives a little longer. */
const misreading = (store: Store): Store => ({
  ...store,
  async readTail(...asked: Parameters<Store['readTail']>) {
    const records = await store.readTail(...asked);
    return records.map((record) =>
      record.kind === 'lease_granted'
        ? { ...record, body: record.body.replace(/"expiresAt":(\d+)/, (_, at) => `"expiresAt":${Number(at) + 1}`) }
        : record,
    );
  },
});

async function checkpoints({ store }: TestReplica): Promise<number> {
  return (await store.listEvents('default', { kinds: ['checkpoint_written'], limit: 1_000 })).length;
}

let held = 0;

test('a replica that holds another state than the log tells of decides nothing more, and the others go on', async () => {
  const honest = await start();
  await putMap(honest.api, MAP);
  const follower = await start();
  const mistaken = await start(misreading);
  const runId = await createRun(honest.api);
  const hold = () => granted(honest.api, runId, [write(`release/${++held}`, 'promote')]);
  await hold();
  await expect.poll(() => mistaken.services.ready().reasons.join()).toMatch(/not the one that the log tells of/);
  await expect(mistaken.api.getRun(as('runner'), { runId })).rejects.toMatchObject({ reason: 'STATE_DIVERGED' });
  await expect(createRun(mistaken.api)).rejects.toMatchObject({ reason: 'STATE_DIVERGED' });

  // Started anew it loads what the others have, and agrees from then on.
  const anew = await start();
  for (let more = 0; more < 3; more += 1) {
    const before = await checkpoints(honest);
    await hold();
    await expect.poll(() => checkpoints(honest)).toBeGreaterThan(before);
  }
  // Who holds another state is never ready again; who did not hear from the database for a moment is.
  for (const replica of [honest, follower, anew])
    await expect.poll(() => replica.services.ready()).toEqual({ ready: true, reasons: [] });
});
