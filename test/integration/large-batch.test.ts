import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRun, freshKey, granted, putMap, startReplica, type TestReplica, write } from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { SIMPLE_MAP } from '../support/workload.js';

let database: TestDatabase;
let replica: TestReplica;
let largest = 0;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await startReplica({
    url: database.url,
    wrap: (store) =>
      new Proxy(store, {
        get(target, name: keyof typeof store) {
          if (name !== 'append') return (target[name] as (...args: never[]) => unknown).bind(target);
          return (batch: Parameters<typeof store.append>[0]) => {
            largest = Math.max(
              largest,
              batch.events.reduce((bytes, event) => bytes + event.body.length, 0),
            );
            return target.append(batch);
          };
        },
      }),
  });
  await putMap(replica.api, SIMPLE_MAP);
});

afterAll(async () => {
  await replica?.stop();
  await database?.drop();
});

test('requests of the largest size that come together are written in batches of bounded size, all of them', async () => {
  const runs = await Promise.all(Array.from({ length: 40 }, () => createRun(replica.api)));
  const area = freshKey();
  const long = (i: number, j: number): string => `item/${area}/${i}/${j}/${'x'.repeat(900)}`;
  const leases = await Promise.all(
    runs.map((run, i) =>
      granted(
        replica.api,
        run,
        Array.from({ length: 250 }, (_, j) => write(long(i, j), 'set')),
      ),
    ),
  );
  expect(leases).toHaveLength(40);
  expect(largest).toBeGreaterThan(1_000_000);
  expect(largest).toBeLessThanOrEqual(8 * 1_048_576);
});
