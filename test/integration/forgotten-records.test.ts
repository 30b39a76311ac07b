import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Lease } from '../../src/domain/lease.js';
import {
  acquireInput,
  as,
  check,
  createRun,
  freshKey,
  granted,
  leaseOf,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { SIMPLE_MAP } from '../support/workload.js';

// What has ended is not in memory after a restart: it is looked up in the projections before anything is decided.

const LEASES = 300;

let database: TestDatabase;
let replica: TestReplica;
let run: string;
let leases: Lease[];

beforeAll(async () => {
  database = await createTestDatabase();
  const before = await startReplica({ url: database.url });
  await putMap(before.api, SIMPLE_MAP);
  run = await createRun(before.api);
  leases = await Promise.all(
    Array.from({ length: LEASES }, (_, i) => granted(before.api, run, [write(`item/${i}`, 'set')])),
  );
  await Promise.all(
    leases.map(({ leaseId }) => before.api.releaseLease(as('runner'), { runId: run, leaseId, acquireKey: null })),
  );
  await before.stop();
  replica = await startReplica({ url: database.url });
});

afterAll(async () => {
  await replica?.stop();
  await database?.drop();
});

test('a renewal of many forgotten leases is answered lease by lease, and holds up nobody in its batch', async () => {
  const innocent = await createRun(replica.api);
  const [renewed, acquired] = await Promise.all([
    replica.api.renewLeases(as('runner'), {
      runId: run,
      renewals: leases.map(({ leaseId }) => ({ leaseId, ttl: null, progressMarker: null })),
    }),
    replica.api.acquireWriteSet(as('runner'), acquireInput(innocent, [write(`item/other/${freshKey()}`, 'set')])),
  ]);
  expect(renewed.value).toHaveLength(LEASES);
  expect(renewed.value.every(({ refusal }) => refusal?.kind === 'ended' && refusal.message.includes('released'))).toBe(
    true,
  );
  leaseOf(acquired.value);
});

test('checks, releases and repeated acquires of forgotten leases say how they ended', async () => {
  const lease = leases[0] as Lease;
  expect((await check(replica.api, lease)).reason).toBe('released');
  const released = await replica.api.releaseLease(as('runner'), {
    runId: run,
    leaseId: lease.leaseId,
    acquireKey: null,
  });
  expect(released.value).toMatchObject({ outcome: 'already_ended', endReason: 'released' });
  const byKey = await replica.api.releaseLease(as('runner'), {
    runId: run,
    leaseId: null,
    acquireKey: lease.idempotencyKey,
  });
  expect(byKey.value.outcome).toBe('already_ended');
  const again = acquireInput(run, [write('item/0', 'set')], { idempotencyKey: lease.idempotencyKey });
  expect(leaseOf((await replica.api.acquireWriteSet(as('runner'), again)).value)).toMatchObject({
    leaseId: lease.leaseId,
    state: 'ended',
    endReason: 'released',
  });
});

test('ended leases are listed page by page, and each once', async () => {
  const seen = new Set<string>();
  let token = '';
  do {
    const { value } = await replica.api.listLeases(as('runner'), {
      runId: run,
      resource: '',
      states: ['ended'],
      lockDelayed: false,
      page: { size: 70, token },
    });
    for (const { leaseId } of value.items) seen.add(leaseId);
    token = value.nextToken;
  } while (token !== '');
  expect(seen.size).toBe(LEASES);
});
