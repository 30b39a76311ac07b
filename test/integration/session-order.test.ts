import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SessionEvent } from '../../src/services/api.js';
import type { Store } from '../../src/storage/store.js';
import { acquireInput, as, createRun, eventually, granted, type TestReplica, write } from '../support/coordinator.js';
import { later } from '../support/later.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';
import { SIMPLE_MAP } from '../support/workload.js';

// A session tells of a lease only to who has been told that it is theirs: an end that comes before the answer would be
// about a lease that its holder does not know, and be forgotten.

/** Stands before calls of the real store, and lets them go on when it is opened. */
class Barrier {
  private opened: Promise<void> = Promise.resolve();
  open: () => void = () => undefined;
  waiting = 0;

  close(): void {
    this.opened = new Promise((resolve) => {
      this.open = resolve;
    });
  }

  async pass(): Promise<void> {
    this.waiting += 1;
    await this.opened;
    this.waiting -= 1;
  }
}

const gates = new Barrier();
const credentials = new Barrier();

const slowed = (store: Store): Store => ({
  ...store,
  async readGate(namespace) {
    await gates.pass();
    return store.readGate(namespace);
  },
  async append(batch) {
    const kinds = batch.events.map(({ kind }) => kind);
    if (kinds.includes('lease_queued')) gates.close();
    if (kinds.includes('credentials_issued')) await credentials.pass();
    return store.append(batch);
  },
});

let pair: TwoReplicas;
let near: TestReplica;
let other: TestReplica;

beforeAll(async () => {
  pair = await startTwoReplicas({ map: SIMPLE_MAP, a: { wrap: slowed } });
  ({ a: near, b: other } = pair);
});

afterAll(async () => {
  gates.open();
  credentials.open();
  await pair?.stop();
});

let attempts = 0;

test('the end of a lease whose credentials are still on their way is told after its answer', async () => {
  gates.open();
  credentials.open();
  const told: string[] = [];
  const session = near.api.openSession({
    happened: ({ kind }: SessionEvent) => void told.push(kind),
    failed: (fault) => void told.push(fault.message),
  });
  const entries = [write(`item/${++attempts}`, 'set')];
  const held = await granted(other.api, await createRun(other.api), entries);
  const run = await createRun(other.api);
  credentials.close();
  const answer = later(
    session
      .acquire(as('runner'), acquireInput(run, entries, { wait: 60_000_000, audiences: ['target'] }))
      .then(({ value }) => {
        told.push('answered');
        return value;
      }),
  );
  const leasesOf = async () =>
    (await other.store.listLeases('default', { runId: run, limit: 10 })).map(({ state, leaseId }) => ({
      state,
      leaseId,
    }));
  // It takes its place; before the session has looked what became of that, it is granted.
  await eventually(leasesOf, (seen) => seen.length === 1);
  await other.api.releaseLease(as('runner'), { runId: held.runId, leaseId: held.leaseId, acquireKey: null });
  const [lease] = await eventually(leasesOf, (seen) => seen[0]?.state === 'active');
  gates.open();
  await eventually(
    () => credentials.waiting,
    (seen) => seen > 0,
  );
  await other.api.revokeLease(as('operator'), { leaseId: lease?.leaseId ?? '', reason: 'a test' });
  await eventually(
    async () => (await near.api.getLease(as('operator'), { leaseId: lease?.leaseId ?? '' })).value.state,
    (seen) => seen === 'ended',
  );
  credentials.open();
  expect((await answer).kind).toBe('lease');
  await eventually(
    () => told,
    (seen) => seen.includes('lost'),
  );
  expect(told).toEqual(['answered', 'lost']);
  session.close();
});
