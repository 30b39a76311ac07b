import { describe, expect, it } from 'vitest';
import { ATTACHED_FOR } from '../../src/domain/decide/acquire.js';
import { MAX_PAST_ENDED } from '../../src/domain/decide/granting.js';
import { SWEEP_LIMIT } from '../../src/domain/decide/upkeep.js';
import type { RequestedEntry } from '../../src/domain/entry.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { countVisits, leased, Namespace, optimistic, stable } from '../support/domain.js';
import { keep, LONG } from '../support/waiting.js';

describe('a long queue costs what it is long, not its square or cube', () => {
  const N = 2_000;
  const crowd = Array.from({ length: N }, (_, index) => `run-${index}`);

  /** A holder, and N runs that wait behind it for what `asks` says. */
  function queued(asks: (index: number) => RequestedEntry): { ns: Namespace; holder: Lease; waiting: Lease[] } {
    const ns = new Namespace().runs('holder', 'late', ...crowd);
    const holder = ns.hold('holder', leased('doc/x'));
    const waiting = crowd.map((runId, index) => ns.queue(runId, asks(index)));
    return { ns, holder, waiting };
  }

  /** How many queue entries an action looks at. */
  function visitsOf(ns: Namespace, action: () => void): number {
    const count = countVisits(ns.state.queued);
    action();
    return count.visits;
  }

  it('a request that is refused, one that joins, and a release', () => {
    const { ns, holder, waiting } = queued(() => leased('doc/x'));
    expect(visitsOf(ns, () => ns.refused(ns.acquire('late', [leased('doc/x')])))).toBeLessThanOrEqual(2 * N);
    // It holds something, so that whoever waits for it is looked for.
    ns.hold('late', leased('doc/y'));
    expect(visitsOf(ns, () => ns.queue('late', leased('doc/x')))).toBeLessThanOrEqual(3 * N);
    expect(visitsOf(ns, () => ns.release(holder))).toBeLessThanOrEqual(6 * N);
    expect(ns.lease(waiting[0] as Lease).state).toBe('active');
    expect(ns.state.waitingLeases).toBe(N);
  });

  it('all who come back, by the same key, while something is held: nobody looks at those ahead', () => {
    const { ns, waiting } = queued(() => leased('doc/x'));
    const comeBack = () => {
      for (const { runId, idempotencyKey: key } of waiting)
        expect(ns.acquire(runId, [leased('doc/x')], { wait: LONG, key })).toMatchObject({ attachment: 2 });
    };
    expect(visitsOf(ns, comeBack)).toBe(0);
  });

  it('and for more than 20 s after an outage, so that each gets its turn (F5)', () => {
    const { ns, waiting } = queued(() => leased('doc/x'));
    keep(ns, ...waiting);
    ns.advance(2 * ATTACHED_FOR - 1);
    ns.sweep();
    expect(ns.state.waitingLeases).toBe(N);
    ns.advance(1);
    ns.sweep();
    expect(ns.state.waitingLeases).toBeLessThan(N);
  });

  it('telling a place, while a run elsewhere holds and waits: who waits behind is not looked at', () => {
    const { ns, waiting } = queued(() => leased('doc/x'));
    ns.hold('holder', leased('doc/z'));
    ns.hold('late', leased('doc/y'));
    ns.queue('late', leased('doc/z'));
    expect([...ns.state.holdingAndWaiting.values()]).toEqual(['late']);
    const { leasesOfRun } = ns.state;
    const holders = leasesOfRun.holders.bind(leasesOfRun);
    let looks = 0;
    leasesOfRun.holders = (runId) => {
      looks += 1;
      return holders(runId);
    };
    expect(ns.told(waiting[1] as Lease).ahead).toBe(1);
    expect(looks).toBeLessThan(20);
  });

  it('a holder that asks for more passes all who wait for it', () => {
    const { ns } = queued((index) => (index === 0 ? leased('doc/') : leased('doc/x')));
    expect(visitsOf(ns, () => ns.hold('holder', leased('doc/y')))).toBeLessThanOrEqual(4 * N);
  });

  it.each([
    ['readers and writers in turn', (index: number) => (index % 2 === 0 ? stable('doc/x') : leased('doc/x')), 1],
    ['readers before writers', (index: number) => (index < N / 2 ? stable('doc/x') : leased('doc/x')), N / 2],
    ['optimistic writers', () => optimistic('doc/x'), N],
  ])('a release before %s', (_, asks, granted) => {
    const { ns, holder } = queued(asks);
    expect(visitsOf(ns, () => ns.release(holder))).toBeLessThanOrEqual(10 * N);
    expect(ns.state.activeLeases).toBe(granted);
  });

  it('a release that finds everybody refused on a map that changed', () => {
    const { ns, holder } = queued(() => leased('doc/x'));
    ns.putMap({ version: 1, kinds: [{ pattern: 'doc/{id...}', authority: 'forbid' }] });
    expect(visitsOf(ns, () => ns.release(holder))).toBeLessThanOrEqual(10 * N);
    expect(ns.state.waitingLeases).toBe(0);
  });
});

describe('expired leases in the way of a wide request', () => {
  it('are ended in bounded appends; the request waits for the sweeper, then is granted', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const count = 2 * MAX_PAST_ENDED + 100;
    ns.bounds = { ...ns.bounds, maxLeasesPerRun: count };
    for (let index = 0; index < count; index += 1) {
      ns.granted(ns.acquire('a', [leased(`doc/x/${index}`)], { ttl: 5 * SECOND }));
    }
    const last = ns.hold('b', leased('doc/x/last'));
    const wide = ns.queue('c', leased('doc/x/'));
    ns.advance(6 * SECOND);
    ns.release(last);
    expect(ns.last.length).toBeLessThanOrEqual(MAX_PAST_ENDED + 10);
    expect(ns.lease(wide).state).toBe('waiting');
    let sweeps = 0;
    for (let more = true; more; sweeps += 1) {
      keep(ns, wide);
      more = ns.sweep().more;
      expect(ns.last.length).toBeLessThanOrEqual(SWEEP_LIMIT + MAX_PAST_ENDED + 10);
    }
    expect(ns.lease(wide).state).toBe('active');
    expect(ns.state.activeLeases).toBe(1);
    expect(sweeps).toBeGreaterThan(1);
  });
});
