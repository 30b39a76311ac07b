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

const LEASES = 20;
/** With names of this length each lease takes about 230 KiB. */
const ENTRIES = 250;
const LONG = 'a'.repeat(900);
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

/** A session of a stock client. */
function openSession() {
  const metadata = new Metadata();
  metadata.set('authorization', 'Bearer token-runner');
  const { stream, heard, send, until } = talk(stock, LeaseServiceService.session, metadata);
  const answers = () => heard.flatMap((response) => response.answers);
  const events = () => heard.flatMap((response) => response.events);
  let number = 0;
  return {
    /** Asks for all of it at once; resolves with all answers, those of before included. */
    async ask(...calls: readonly Call[]) {
      for (const call of calls) {
        number += 1;
        send({ calls: [{ number, requestId: '', call }] });
      }
      await until(() => answers().length === number);
      return answers();
    },
    async events(count: number) {
      await until(() => events().length >= count);
      return events();
    },
    end: () => stream.cancel(),
  };
}

describe('large leases', () => {
  it('are read, listed and renewed side by side on one session', async () => {
    const runId = await newRun(runner);
    const held = await holdLarge(runId);
    const namespace = '';
    const page = { pageSize: 1_000, pageToken: '' };
    const list = { namespace, runId, resource: '', states: [LeaseState.LEASE_STATE_ACTIVE], lockDelayed: false, page };
    const session = openSession();
    const answers = await session.ask(
      ...held.map((leaseId) => ({ $case: 'getLease', value: { namespace, leaseId } }) as const),
      ...held.map(() => ({ $case: 'listLeases', value: list }) as const),
      ...held.map((leaseId) => {
        const renewals = [{ leaseId, ttl: undefined, progressMarker: undefined }];
        return { $case: 'renewLeases', value: { namespace, runId, renewals } } as const;
      }),
    );
    session.end();
    expect([...new Set(answers.map(({ outcome }) => outcome?.$case))].sort()).toEqual([
      'getLease',
      'listLeases',
      'renewLeases',
    ]);
  });

  it('that are granted together are told, all of them', async () => {
    const [holder, waiter] = [await newRun(runner), await newRun(runner)];
    const area = randomUUID();
    const { outcome } = await runner.lease.acquireWriteSet({
      ...{ runId: holder, entries: [{ ...setEntry(`item/${area}`), scope: 2 }], ttl: TTL },
      idempotencyKey: randomUUID(),
    });
    if (outcome?.$case !== 'lease') throw new Error(`expected a lease, got ${outcome?.$case}`);
    const { leaseId } = outcome.value;
    const session = openSession();
    for (let at = 0; at < LEASES; at += 1) {
      const value = AcquireWriteSetRequest.fromPartial({
        ...{ runId: waiter, entries: largeSet(`${area}/${at}`), ttl: TTL },
        ...{ wait: { seconds: 60n, nanos: 0 }, idempotencyKey: randomUUID() },
      });
      const answer = (await session.ask({ $case: 'acquireWriteSet', value })).at(-1)?.outcome;
      expect(answer?.$case === 'acquireWriteSet' && answer.value.outcome?.$case).toBe('waiting');
    }
    await runner.lease.releaseLease({ runId: holder, lease: { $case: 'leaseId', value: leaseId } });
    const events = await session.events(LEASES);
    session.end();
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
