import { randomUUID } from 'node:crypto';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { AcquireWriteSetRequest, LeaseServiceService, type SessionCall } from '../../src/gen/writ/v1/lease_service.js';
import { LeaseState } from '../../src/gen/writ/v1/types.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';
import { talk } from '../support/talk.js';
import { newRun, SIMPLE_MAP, setEntry } from '../support/workload.js';

/** Leases may be large, and there may be many: what is told of them fits into the 4 MiB that a stock client takes. */

const LEASES = 24;
/** With names of this length each lease takes about 200 KiB. */
const ENTRIES = 250;
const LONG = `${'a'.repeat(250)}/${'b'.repeat(250)}/${'c'.repeat(200)}`;
type Call = NonNullable<SessionCall['call']>;
const TTL = { seconds: 120n, nanos: 0 };

let replica: ServedReplica;
let runner: WritClient;
let stock: Client;

beforeAll(async () => {
  replica = await startServedReplica();
  await replica
    .client('admin')
    .conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
  runner = replica.client('runner');
  stock = new Client(replica.endpoint, credentials.createInsecure());
});
afterAll(async () => {
  stock?.close();
  await replica?.stop();
});

const largeSet = (name: string) => Array.from({ length: ENTRIES }, (_, at) => setEntry(`item/${name}/${LONG}-${at}`));

async function holdLarge(runId: string): Promise<string[]> {
  const held: string[] = [];
  for (let at = 0; at < LEASES; at += 1) {
    const request = { runId, entries: largeSet(`${runId}/${at}`), ttl: TTL, idempotencyKey: randomUUID() };
    const { outcome } = await runner.lease.acquireWriteSet(request);
    if (outcome?.$case !== 'lease') throw new Error(`expected a lease, got ${outcome?.$case}`);
    held.push(outcome.value.leaseId);
  }
  return held;
}

/** Makes all calls at once, as a stock client, and hears all answers; then does something of which so many events tell. */
async function onSession(calls: readonly Call[], afterwards = { act: async () => {}, events: 0 }) {
  const metadata = new Metadata();
  metadata.set('authorization', 'Bearer token-runner');
  const session = talk(stock, LeaseServiceService.session, metadata);
  const heard = () => ({
    answers: session.heard.flatMap(({ answers }) => answers),
    events: session.heard.flatMap(({ events }) => events),
  });
  for (const [at, call] of calls.entries()) session.send({ calls: [{ number: at + 1, requestId: '', call }] });
  await session.until(() => heard().answers.length === calls.length);
  await afterwards.act();
  await session.until(() => heard().events.length >= afterwards.events);
  session.stream.cancel();
  return heard();
}

describe('large leases', () => {
  it('are read, listed and renewed side by side on one session', async () => {
    const runId = await newRun(runner);
    const held = await holdLarge(runId);
    const namespace = '';
    const page = { pageSize: 1_000, pageToken: '' };
    const list = { namespace, runId, resource: '', states: [LeaseState.LEASE_STATE_ACTIVE], lockDelayed: false, page };
    const { answers } = await onSession([
      ...held.map((leaseId) => ({ $case: 'getLease', value: { namespace, leaseId } }) as const),
      ...held.map(() => ({ $case: 'listLeases', value: list }) as const),
      ...held.map((leaseId) => {
        const renewals = [{ leaseId, ttl: undefined, progressMarker: undefined }];
        return { $case: 'renewLeases', value: { namespace, runId, renewals } } as const;
      }),
    ]);
    expect([...new Set(answers.map(({ outcome }) => outcome?.$case))].sort()).toEqual([
      'getLease',
      'listLeases',
      'renewLeases',
    ]);
  });

  it('that are granted together are told, all of them', async () => {
    const [holder, waiter] = [await newRun(runner), await newRun(runner)];
    const { outcome } = await runner.lease.acquireWriteSet({
      ...{ runId: holder, entries: [{ ...setEntry('item/granted'), scope: 2 }], idempotencyKey: randomUUID() },
    });
    if (outcome?.$case !== 'lease') throw new Error(`expected a lease, got ${outcome?.$case}`);
    const { leaseId } = outcome.value;
    const waits = Array.from({ length: LEASES }, (_, at): Call => {
      const value = AcquireWriteSetRequest.fromPartial({
        ...{ runId: waiter, entries: largeSet(`granted/${at}`), ttl: TTL },
        ...{ wait: { seconds: 60n, nanos: 0 }, idempotencyKey: randomUUID() },
      });
      return { $case: 'acquireWriteSet', value };
    });
    const release = async () => {
      await runner.lease.releaseLease({ runId: holder, lease: { $case: 'leaseId', value: leaseId } });
    };
    const { events } = await onSession(waits, { act: release, events: LEASES });
    expect(new Set(events.map(({ event }) => event?.$case))).toEqual(new Set(['granted']));
  });

  it('that are renewed in one call are refused where the answer would not fit, and nothing is renewed', async () => {
    const runId = await newRun(runner);
    const held = await holdLarge(runId);
    const before = await runner.lease.getLease({ leaseId: held[0] ?? '' });
    const renewals = held.map((leaseId) => ({ leaseId, ttl: { seconds: 200n, nanos: 0 } }));
    await expect(runner.lease.renewLeases({ runId, renewals })).rejects.toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      reason: 'ANSWER_TOO_LARGE',
    });
    const after = await runner.lease.getLease({ leaseId: held[0] ?? '' });
    expect(after.lease?.expiresAt).toEqual(before.lease?.expiresAt);
    const { results } = await runner.lease.renewLeases({ runId, renewals: renewals.slice(0, 8) });
    expect(results.map(({ outcome }) => outcome?.$case)).toEqual(Array(8).fill('lease'));
  });
});
