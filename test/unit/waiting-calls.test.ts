import { beforeEach, describe, expect, it } from 'vitest';
import { Fault } from '../../src/domain/fault.js';
import type { Lease } from '../../src/domain/lease.js';
import { emptyState } from '../../src/domain/state.js';
import { WaitingCalls } from '../../src/engine/waiting-calls.js';
import { sampleWaiter } from '../support/sample-records.js';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

describe('calls that hang on waiting requests (P9)', () => {
  let engine: { state: ReturnType<typeof emptyState>; notReady: Fault | null };
  let calls: WaitingCalls;
  let woken: string[];

  const put = (lease: Lease): void => engine.state.leases.set(lease.leaseId, lease);
  const hang = (leaseId: string, attachment = 1) => calls.add(leaseId, attachment, () => woken.push(leaseId));
  const waiter = (leaseId: string, attachment = 1): Lease => {
    const lease = sampleWaiter({ leaseId });
    if (lease.waiting === null) throw new Error('it waits');
    return { ...lease, waiting: { ...lease.waiting, attachment } };
  };

  beforeEach(() => {
    engine = { state: emptyState('test'), notReady: null };
    calls = new WaitingCalls(engine);
    woken = [];
    for (const leaseId of ['a', 'b', 'c']) put(waiter(leaseId));
  });

  it('wakes only those whose request does not wait any more, once', async () => {
    for (const leaseId of ['a', 'b', 'c']) hang(leaseId);
    put({ ...waiter('b'), state: 'active', waiting: null });
    engine.state.leases.delete('c');
    calls.changed();
    await turn();
    expect(woken).toEqual(['b', 'c']);
    calls.changed();
    await turn();
    expect(woken).toEqual(['b', 'c']);
  });

  it('wakes a call whose place another one took over, and not the other', async () => {
    hang('a', 1);
    put(waiter('a', 2));
    hang('a', 2);
    calls.changed();
    await turn();
    expect(woken).toEqual(['a']);
  });

  it('wakes a call that came too late to see the change, and none that has gone', async () => {
    engine.state.leases.delete('a');
    hang('a');
    const leave = hang('b');
    leave();
    engine.state.leases.delete('b');
    calls.changed();
    await turn();
    expect(woken).toEqual(['a']);
  });

  it('wakes everybody when nothing can be decided any more', async () => {
    for (const leaseId of ['a', 'b']) hang(leaseId);
    engine.notReady = new Fault('unavailable', 'SHUTTING_DOWN', 'down');
    calls.changed();
    await turn();
    expect(woken).toEqual(['a', 'b']);
  });

  it('looks once at each call, however many batches there are in a turn', async () => {
    for (const leaseId of ['a', 'b', 'c']) hang(leaseId);
    let asked = 0;
    const { leases } = engine.state;
    const get = leases.get.bind(leases);
    leases.get = (id) => {
      asked += 1;
      return get(id);
    };
    for (let batch = 0; batch < 1_000; batch += 1) calls.changed();
    await turn();
    expect(asked).toBe(3);
    expect(woken).toEqual([]);
  });
});
