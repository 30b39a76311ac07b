import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { SECOND } from '../../src/domain/time.js';
import { type AppendBatch, type AppendResult, type Store, StoreError } from '../../src/storage/store.js';
import {
  acquireInput,
  as,
  check,
  createRun,
  freshKey,
  granted,
  leaseOf,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { startTwoReplicas, type TwoReplicas } from '../support/two-replicas.js';
import { SIMPLE_MAP } from '../support/workload.js';

/** What happens to the next appends' answers. */
type Mishap = 'none' | 'lost_after_commit' | 'lost_before_commit' | 'lands_late' | 'held_back' | 'no_connection';

/** The real store behind a line that loses answers. */
class LossyStore {
  mishaps: Mishap[] = [];
  readonly late: Promise<AppendResult | null>[] = [];
  /** Lets what was held back go on to the database. */
  letGo: () => void = () => undefined;

  wrap(store: Store): Store {
    return { ...store, append: (batch) => this.append(store, batch) };
  }

  private async append(store: Store, batch: AppendBatch): Promise<AppendResult> {
    // What a test asks for, and nothing that the replica does by itself meanwhile.
    const isAsked = batch.events.some(({ kind, actor }) => kind.startsWith('lease_') && actor === 'runner');
    const mishap = (isAsked && this.mishaps.shift()) || 'none';
    if (mishap === 'none') return store.append(batch);
    if (mishap === 'no_connection') throw new StoreError('unavailable', 'the database cannot be reached');
    if (mishap === 'held_back') {
      const released = new Promise<void>((resolve) => {
        this.letGo = resolve;
      });
      this.late.push(released.then(() => store.append(batch)));
    }
    if (mishap === 'lost_after_commit') await store.append(batch);
    // The statement is still on its way when its answer counts as lost: it meets whatever was appended meanwhile.
    if (mishap === 'lands_late') this.late.push(store.append(batch).catch(() => null));
    throw new StoreError('unknown_outcome', 'the answer was lost');
  }
}

let pair: TwoReplicas;
let lossy: LossyStore;
let a: TestReplica;
let b: TestReplica;

beforeAll(async () => {
  lossy = new LossyStore();
  pair = await startTwoReplicas({ map: SIMPLE_MAP, a: { wrap: (store) => lossy.wrap(store) } });
  ({ a, b } = pair);
});

afterAll(async () => {
  await pair?.stop();
});

beforeEach(async () => {
  lossy.mishaps = [];
  lossy.letGo();
  await Promise.all(lossy.late.splice(0));
});

let item = 0;
const fresh = (): string => `item/${++item}`;

async function eventsOf(runId: string, kind: string): Promise<number> {
  const { items } = await b.api.listEvents(as('auditor'), {
    runId,
    leaseId: '',
    resource: '',
    kinds: [kind],
    requestId: '',
    afterRevision: 0,
    newestFirst: false,
    page: { size: 1000, token: '' },
  });
  return items.length;
}

describe('F1: the answer of an append is lost', () => {
  for (const mishap of ['lost_after_commit', 'lost_before_commit', 'lands_late'] as const) {
    test(`${mishap}: one grant, one token, and the caller is answered`, async () => {
      for (let round = 0; round < 10; round += 1) {
        const run = await createRun(b.api);
        const input = acquireInput(run, [write(fresh(), 'set')]);
        lossy.mishaps = [mishap];
        const lease = leaseOf((await a.api.acquireWriteSet(as('runner'), input)).value);
        expect(lossy.mishaps).toEqual([]);
        await Promise.all(lossy.late.splice(0));
        expect(await eventsOf(run, 'lease_granted')).toBe(1);
        const again = leaseOf((await b.api.acquireWriteSet(as('runner'), input)).value);
        expect(again.leaseId).toBe(lease.leaseId);
        expect(again.entries[0]?.token).toBe(lease.entries[0]?.token);
        expect((await check(b.api, lease)).allowed).toBe(true);
      }
    });
  }

  test('nobody is told that nothing was changed while the append can still come', async () => {
    const run = await createRun(b.api);
    const input = acquireInput(run, [write(fresh(), 'set')]);
    lossy.mishaps = ['held_back', 'no_connection'];
    await expect(a.api.acquireWriteSet(as('runner'), input)).rejects.toMatchObject({ reason: 'UNKNOWN_OUTCOME' });
    lossy.letGo();
    expect(await Promise.all(lossy.late.splice(0))).toMatchObject([{ outcome: 'appended' }]);
    const lease = leaseOf((await b.api.acquireWriteSet(as('runner'), input)).value);
    expect(await eventsOf(run, 'lease_granted')).toBe(1);
    expect((await check(b.api, lease)).allowed).toBe(true);
  });

  test('several answers in a row, while another replica appends in between', async () => {
    for (let round = 0; round < 10; round += 1) {
      const run = await createRun(b.api);
      const other = await createRun(b.api);
      lossy.mishaps = ['lost_after_commit', 'lands_late', 'lost_before_commit'];
      const [lease] = await Promise.all([
        granted(a.api, run, [write(fresh(), 'set')]),
        ...Array.from({ length: 5 }, () => granted(b.api, other, [write(fresh(), 'set')])),
      ]);
      await Promise.all(lossy.late.splice(0));
      expect(await eventsOf(run, 'lease_granted')).toBe(1);
      expect((await check(b.api, lease)).allowed).toBe(true);
    }
  });

  test('F7: a release whose answer is lost, racing a renewal: ended once, never alive again', async () => {
    for (const mishap of ['lost_after_commit', 'lands_late'] as const) {
      const run = await createRun(b.api);
      const lease = await granted(b.api, run, [write(fresh(), 'set')], { ttl: 30 * SECOND });
      lossy.mishaps = [mishap];
      await Promise.all([
        a.api.releaseLease(as('runner'), { runId: run, leaseId: lease.leaseId, acquireKey: null }),
        b.api.renewLeases(as('runner'), {
          runId: run,
          renewals: [{ leaseId: lease.leaseId, ttl: null, progressMarker: freshKey() }],
        }),
      ]);
      expect(lossy.mishaps).toEqual([]);
      await Promise.all(lossy.late.splice(0));
      expect((await check(a.api, lease)).reason).toBe('released');
      expect(await eventsOf(run, 'lease_ended')).toBe(1);
    }
  });
});

test('P7: after all of that the log is whole and both replicas hold the same state', async () => {
  let revision = 0;
  let hash = '0'.repeat(64);
  for await (const events of a.api.exportEvents(as('auditor'), { afterRevision: 0 })) {
    for (const event of events) {
      expect(event.revision).toBe(revision + 1);
      expect(event.prevHash).toBe(hash);
      ({ revision, hash } = event);
    }
  }
  const list = async (replica: TestReplica) =>
    (
      await replica.api.listLeases(as('operator'), {
        runId: '',
        resource: '',
        states: [],
        lockDelayed: false,
        page: { size: 1000, token: '' },
      })
    ).value.items;
  // Between two looks a lease may expire.
  await expect.poll(async () => isDeepStrictEqual(await list(a), await list(b))).toBe(true);
});
