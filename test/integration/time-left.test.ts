import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SECOND } from '../../src/domain/time.js';
import type { Store } from '../../src/storage/store.js';
import {
  acquireInput,
  as,
  createRun,
  leaseOf,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

/**
 * What is left of a lease is counted by its caller from the moment the request was sent (F8). So whatever the coordinator
 * believes of the database clock, it is counted from a time that was not before that moment. The answers of the database
 * take long here: its clock is further on than the last answer said.
 */

const ANSWERS_TAKE_MS = 300;
const MAP = `
version: 1
kinds:
  - pattern: item/{name}
    actions:
      set: { access: write, concurrency: lease, change_class: shared_pointer }
      tag: { access: write, concurrency: lease, change_class: derived, tracked: true }
`;

/** The real store at the end of a long line. */
function farAway(store: Store): Store {
  const late = async <T>(answer: Promise<T>): Promise<T> => {
    const answered = await answer;
    await new Promise((resolve) => setTimeout(resolve, ANSWERS_TAKE_MS));
    return answered;
  };
  return {
    ...store,
    append: (batch) => late(store.append(batch)),
    readGate: (namespace) => late(store.readGate(namespace)),
  };
}

let database: TestDatabase;
let replica: TestReplica;
let beside: pg.Client;

beforeAll(async () => {
  database = await createTestDatabase();
  beside = new pg.Client(database.url);
  await beside.connect();
  replica = await startReplica({ url: database.url, wrap: farAway });
  await putMap(replica.api, MAP);
});

afterAll(async () => {
  await beside?.end();
  await replica?.stop();
  await database?.drop();
});

async function databaseNow(): Promise<number> {
  const { rows } = await beside.query('SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now');
  return Number(rows[0]?.now);
}

let attempts = 0;

test('a grant, its repetition, a renewal and a tracked check promise no more than is left', async () => {
  const { api } = replica;
  const run = await createRun(api);
  const resource = `item/${++attempts}`;
  const input = acquireInput(run, [write(resource, 'set', 'tag')], { ttl: 60 * SECOND });

  let sentAt = await databaseNow();
  const granted = await api.acquireWriteSet(as('runner'), input);
  expect(granted.now).toBeGreaterThanOrEqual(sentAt);

  sentAt = await databaseNow();
  expect((await api.acquireWriteSet(as('runner'), input)).now).toBeGreaterThanOrEqual(sentAt);

  const lease = leaseOf(granted.value);
  sentAt = await databaseNow();
  const renewals = [{ leaseId: lease.leaseId, ttl: null, progressMarker: 'a' }];
  expect((await api.renewLeases(as('runner'), { runId: run, renewals })).now).toBeGreaterThanOrEqual(sentAt);

  sentAt = await databaseNow();
  const token = lease.entries[0]?.token ?? 0;
  const { value } = await api.checkFence(as('target'), {
    leaseId: lease.leaseId,
    presenterRunId: '',
    writes: [{ resource, action: 'tag', token, observedVersion: null }],
    requestId: 'one',
  });
  expect(value.allowed).toBe(true);
  expect(sentAt + (value.validFor ?? 0)).toBeLessThanOrEqual(value.holder?.expiresAt ?? 0);
});
