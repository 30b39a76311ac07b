import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { WritError } from '../../src/clients/common/errors.js';
import { acquire, resume } from '../../src/clients/runner/acquire.js';
import type { LeaseLostError } from '../../src/clients/runner/errors.js';
import { LeaseState } from '../../src/gen/writ/v1/types.js';
import { as, createRun, eventually, putMap } from '../support/coordinator.js';
import { later } from '../support/later.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';

/** The runner kit on a session, against a coordinator that comes and goes. */

const MAP = `
version: 1
kinds:
  - { pattern: "doc/{name}", ttl: 60s, actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
`;

let replica: ServedReplica;
let runs: string[];

beforeAll(async () => {
  replica = await startServedReplica();
  await putMap(replica.api, MAP);
  runs = [await createRun(replica.api), await createRun(replica.api)];
});
afterAll(() => replica?.stop());

/** A client that counts its calls beside the session. */
function counting(): { readonly client: WritClient; readonly unary: string[] } {
  const client = replica.client('runner');
  const unary: string[] = [];
  const lease = new Proxy(client.lease, {
    get(target, name) {
      const method = Reflect.get(target, name);
      if (name === 'session') return method;
      return (...given: unknown[]) => {
        unary.push(String(name));
        return (method as (...all: unknown[]) => unknown)(...given);
      };
    },
  });
  return { client: { ...client, lease }, unary };
}

let attempts = 0;
beforeEach(() => {
  attempts += 1;
});
/** Of this attempt: what an earlier one holds, its kit renews. */
const doc = (name: string): string => `doc/${name}-${attempts}`;

const request = (which: number, resource: string) => ({
  runId: runs[which] ?? '',
  resources: [{ resource, actions: ['replace'] }],
});

describe('a runner', () => {
  it('acquires, renews, is told and releases on one stream, by no call of its own', async () => {
    const { client, unary } = counting();
    const lease = await acquire(client, { ...request(0, doc('one')), ttlMs: 6_000 });
    const renewed = lease.entries;
    await eventually(
      () => lease.entries,
      (entries) => entries !== renewed,
    );
    const wanted: string[] = [];
    lease.on('asked_to_yield', ({ resources }) => wanted.push(...resources));
    let places = 0;
    const waiting = later(
      acquire(client, { ...request(1, doc('one')), waitMs: 30_000, onWaiting: () => (places += 1) }),
    );
    await eventually(
      () => wanted,
      ({ length }) => length > 0,
    );
    await lease.release();
    const next = await waiting;
    expect([wanted, places]).toEqual([[doc('one')], 1]);
    expect(next.token(doc('one'))).toBeGreaterThan(renewed[0]?.fencingToken ?? 0n);
    await next.release();
    expect(unary).toEqual([]);
  });

  it('hears at once of a lease that is revoked, long before a renewal', async () => {
    const { client } = counting();
    const lease = await acquire(client, request(0, doc('revoked')));
    const lost = new Promise<LeaseLostError>((resolve) => lease.on('lost', resolve));
    await replica.api.revokeLease(as('operator'), { leaseId: lease.id, reason: 'enough' });
    expect((await lost).message).toContain('revoked');
    expect(lease.signal.aborted).toBe(true);
  });

  it('goes on waiting when a call of its own that was sent before arrives late, and takes its place over', async () => {
    const { client } = counting();
    const held = await acquire(client, request(0, doc('late')));
    const idempotencyKey = `sent-long-ago-${attempts}`;
    let places = 0;
    const waiting = later(
      acquire(client, {
        ...request(1, doc('late')),
        ...{ waitMs: 60_000, idempotencyKey, onWaiting: () => (places += 1) },
      }),
    );
    await eventually(
      () => places,
      (told) => told === 1,
    );
    const entry = { resource: doc('late'), access: 3, scope: 1, actions: ['replace'] };
    const late = { runId: runs[1] ?? '', entries: [entry], wait: { seconds: 60n, nanos: 0 }, idempotencyKey };
    const { outcome } = await client.lease.acquireWriteSet(late, { timeoutMs: 1_000 });
    expect(outcome?.$case).toBe('waiting');
    await eventually(
      () => places,
      (told) => told === 2,
    );
    await held.release();
    await (await waiting).release();
  });

  it('goes on without a session where there is none', async () => {
    const { client, unary } = counting();
    const session = () => Promise.reject(new WritError('UNIMPLEMENTED', 'an older coordinator'));
    const older = {
      ...client,
      lease: new Proxy(client.lease, { get: (t, n) => (n === 'session' ? session : Reflect.get(t, n)) }),
    };
    const lease = await acquire(older, request(0, doc('older')));
    await lease.release();
    expect(unary).toEqual(['acquireWriteSet', 'releaseLease']);
  });

  it('keeps lease and place over an outage, and is in jeopardy no longer than that (F6)', async () => {
    const { client } = counting();
    const lease = await acquire(client, { ...request(0, doc('outage')), ttlMs: 6_000 });
    const waiting = later(acquire(client, { ...request(1, doc('outage')), waitMs: 60_000 }));
    await eventually(
      () => lease.askedToYield,
      ({ length }) => length > 0,
    );
    await replica.down();
    await replica.up();
    const before = lease.remainingMs;
    await eventually(
      () => lease.remainingMs,
      (left) => left > before,
    );
    expect(lease.lost).toBeUndefined();
    await lease.release();
    const next = await waiting;
    await next.release();
  });

  it('whose client was closed begins nothing more, and what was under way is over', async () => {
    const client = replica.client('runner');
    const held = await acquire(client, request(0, doc('held')));
    const waiting = later(acquire(client, { ...request(1, doc('held')), waitMs: 30_000 }));
    await eventually(
      () => replica.client('operator').lease.listLeases({ states: [LeaseState.LEASE_STATE_WAITING] }),
      ({ leases }) => leases.some(({ runId }) => runId === runs[1]),
    );
    client.close();
    client.close();
    const closed = { code: 'CANCELLED', reason: 'CLIENT_CLOSED', message: expect.stringContaining('was closed') };
    await expect(waiting).rejects.toMatchObject(closed);
    await expect(acquire(client, request(1, doc('free')))).rejects.toMatchObject(closed);
    await expect(client.run.listRuns({})).rejects.toMatchObject(closed);
    await expect(client.lease.session()).rejects.toMatchObject(closed);
    // The lease lives until it is renewed no more; by another client it can be given back.
    const other = replica.client('runner');
    await other.lease.releaseLease({ runId: held.runId, lease: { $case: 'leaseId', value: held.id } });
  });

  it('that gives up a wait gives up its place', async () => {
    const { client } = counting();
    const lease = await acquire(client, request(0, doc('given-up')));
    const giveUp = new AbortController();
    const key = `given-up-${attempts}`;
    const waiting = later(
      acquire(client, {
        ...request(1, doc('given-up')),
        ...{ waitMs: 60_000, idempotencyKey: key, signal: giveUp.signal, onWaiting: () => giveUp.abort('enough') },
      }),
    );
    await expect(waiting).rejects.toBe('enough');
    await lease.release();
    await expect(resume(client, { ...request(1, doc('given-up')), idempotencyKey: key })).rejects.toThrow();
  });
});
