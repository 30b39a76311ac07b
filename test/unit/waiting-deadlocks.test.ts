import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { locksOfLease } from '../../src/domain/held-locks.js';
import { countAhead, waitersAhead } from '../../src/domain/obstacles.js';
import { Queue } from '../../src/domain/queue.js';
import { SECOND } from '../../src/domain/time.js';
import { DOCUMENT, leased, Namespace, optimistic, stable } from '../support/domain.js';
import { OracleQueue } from '../support/oracle/queue.js';
import { Oracle, universeOf } from '../support/oracle/write-sets.js';
import { keep, LONG, waitingIn } from '../support/waiting.js';

/** Whether a run holds and waits, or waits by several requests. */
function twofold(ns: Namespace, runId: string): boolean {
  const live = [...ns.state.leases.values()].filter((lease) => lease.runId === runId && lease.state !== 'ended');
  return live.length > 1 && live.some((lease) => lease.state === 'waiting');
}

describe('deadlocks are refused at once, with their cycle (P9)', () => {
  it('of two runs', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    ns.hold('b', leased('doc/y'));
    ns.queue('a', leased('doc/y'));
    const refusal = ns.refused(ns.acquire('b', [leased('doc/x')], { wait: LONG }));
    expect(refusal).toMatchObject({ kind: 'deadlock', cycle: ['b', 'a', 'b'], resolution: { retryable: true } });
    expect(refusal.message).toContain('2 runs');
  });

  it('of any number of runs, and only the one that would close it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 3, max: 8 }), (count) => {
        const names = Array.from({ length: count }, (_, index) => `run-${index}`);
        const ns = new Namespace().runs(...names);
        names.forEach((runId, index) => {
          ns.hold(runId, leased(`doc/${index}`));
        });
        for (let index = 0; index < count - 1; index += 1) ns.queue(`run-${index}`, leased(`doc/${index + 1}`));
        const closing = ns.acquire(`run-${count - 1}`, [leased('doc/0')], { wait: LONG });
        expect(ns.refused(closing).cycle).toEqual([`run-${count - 1}`, ...names]);
      }),
      { numRuns: 6 },
    );
  });

  it('through ancestors: the subtree of one holds the leaf of another', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x/'));
    ns.hold('b', stable('doc/y/1'));
    ns.queue('a', optimistic('doc/y/'));
    expect(ns.refused(ns.acquire('b', [optimistic('doc/x/deep/er')], { wait: LONG })).kind).toBe('deadlock');
  });

  it('through rules that tie different ids', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('service-token/acme'));
    ns.hold('b', leased('doc/y'));
    ns.queue('a', leased('doc/y'));
    const refusal = ns.refused(ns.acquire('b', [leased('integration-config/acme')], { wait: LONG }));
    expect(refusal).toMatchObject({ kind: 'deadlock', cycle: ['b', 'a', 'b'] });
  });

  it('through what is implied', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('deployment/eu'));
    ns.hold('b', leased('doc/y'));
    ns.queue('a', leased('doc/y'));
    expect(ns.refused(ns.acquire('b', [leased('dns/eu/www')], { wait: LONG })).kind).toBe('deadlock');
  });

  it('through the place of a run in the queue', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.hold('c', leased('doc/z'));
    // b waits for c and stands ahead of a on y.
    ns.queue('b', leased('doc/z'), leased('doc/y'));
    ns.queue('a', leased('doc/y'));
    const refusal = ns.refused(ns.acquire('c', [leased('doc/x')], { wait: LONG }));
    expect(refusal).toMatchObject({ kind: 'deadlock', cycle: ['c', 'a', 'b', 'c'] });
  });

  it('wait 0 is refused as held, since it closes no cycle', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    ns.hold('b', leased('doc/y'));
    ns.queue('a', leased('doc/y'));
    expect(ns.refused(ns.acquire('b', [leased('doc/x')])).kind).toBe('held');
  });

  it('not when the lease waited for has expired', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.granted(ns.acquire('b', [leased('doc/y')], { ttl: SECOND }));
    ns.hold('a', leased('doc/x'));
    ns.queue('a', leased('doc/y'));
    ns.advance(2 * SECOND);
    expect(ns.acquire('b', [leased('doc/x')], { wait: LONG }).kind).toBe('waiting');
  });

  it('a place ahead of a run that passes it closes none', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', stable('doc/x'));
    ns.hold('b', leased('doc/y'));
    ns.queue('c', leased('doc/y'), leased('doc/x'));
    ns.queue('b', leased('doc/x'));
    // b stands behind c and passes it, since c waits for y: so b does not wait for c, and c does not pass b.
    expect(ns.refused(ns.acquire('c', [stable('doc/x')])).kind).toBe('held');
  });

  it('nor does a grant close one: the run loses the request that waits for those behind it', () => {
    const ns = new Namespace().runs('a', 'b', 'd');
    const holder = ns.hold('d', leased('doc/x'));
    ns.hold('b', leased('doc/y'));
    const first = ns.queue('a', leased('doc/x'));
    const own = ns.waiting(ns.acquire('a', [leased('doc/y')], { wait: LONG, key: 'k' }));
    const other = ns.queue('b', leased('doc/x'));
    // a gets x, which b needs, and waits for y, which b holds.
    ns.release(holder);
    expect(ns.last.map((event) => [event.body.kind, event.leaseId])).toEqual([
      ['lease_ended', holder.leaseId],
      ['lease_granted', first.leaseId],
      ['lease_ended', own.leaseId],
    ]);
    expect(ns.last[2]?.body).toMatchObject({ endReason: 'refused', reason: expect.stringContaining('a → b → a') });
    expect(ns.lease(other).state).toBe('waiting');
    const told = ns.refused(ns.acquire('a', [leased('doc/y')], { wait: LONG, key: 'k' }));
    expect(told).toMatchObject({ kind: 'deadlock', message: expect.stringContaining('closed a cycle') });
    expect(told.cycle).toEqual(['a', 'b', 'a']);
  });

  it('random requests of a few runs never leave a cycle, and what is refused was one (oracle)', () => {
    const paths = ['doc/a', 'doc/a/', 'doc/a/1', 'doc/b', 'service-token/t', 'integration-config/t', 'deployment/e'];
    const make = fc.constantFrom(leased, optimistic, stable);
    const step = fc.record({
      runId: fc.constantFrom('a', 'b', 'c', 'd'),
      entries: fc.array(fc.tuple(make, fc.constantFrom(...paths)), { minLength: 1, maxLength: 2 }),
      wait: fc.boolean(),
      release: fc.nat({ max: 9 }),
    });
    const asked = { passed: 0, 'not passed': 0, 'no circle': 0 };
    const universe = universeOf([...paths.map((p) => p.replace(/\/$/, '')), 'image-tag/e', 'dns/e']);
    fc.assert(
      fc.property(fc.array(step, { minLength: 5, maxLength: 40 }), (steps) => {
        const ns = new Namespace().runs('a', 'b', 'c', 'd');
        const oracle = new Oracle(universe, DOCUMENT);
        const queueOf = (): OracleQueue => {
          const leases = [...ns.state.leases.values()];
          const active = leases.filter((lease) => lease.state === 'active');
          const waiting = leases.filter((lease) => lease.state === 'waiting');
          return new OracleQueue(
            oracle,
            active,
            waiting.map((lease) => ({ ...lease, order: lease.waiting?.queuedAt ?? 0 })),
          );
        };
        for (const { runId, entries, wait, release } of steps) {
          const before = queueOf();
          const answer = ns.acquire(
            runId,
            entries.map(([asks, path]) => asks(path)),
            { wait: wait ? LONG : 0 },
          );
          if (answer.kind === 'refusal' && answer.refusal.kind === 'deadlock') {
            // Whoever holds what the run asked for waits, in the end, for the run.
            expect(before.waitsFor(answer.refusal.cycle[1] as string, runId)).toBe(true);
          }
          let after = queueOf();
          expect(after.deadlocked()).toBeNull();
          do keep(ns, ...waitingIn(ns));
          while (ns.kinds.includes('lease_granted'));
          expect(queueOf().waitingForNothing()).toBeNull();
          after = queueOf();
          const searched = new Queue({ state: ns.state, now: ns.now });
          for (const one of ['a', 'b', 'c', 'd']) {
            for (const other of ['a', 'b', 'c', 'd'].filter((id) => id !== one)) {
              const waits = after.waitsFor(one, other);
              expect(searched.runsWaitingFor(other).has(one)).toBe(waits);
              expect(searched.runsWaitedForBy(one).has(other)).toBe(waits);
            }
          }
          const counted = new Queue({ state: ns.state, now: ns.now });
          for (const lease of waitingIn(ns)) {
            const inItsPlace = { runId: lease.runId, leaseId: lease.leaseId, order: lease.waiting?.queuedAt ?? 0 };
            const asNew = ['a', 'b', 'c', 'd'].map((id) => ({ runId: id, leaseId: 'new', order: Number.MAX_VALUE }));
            const adding = [...ns.state.leases.values()]
              .filter(({ state }) => state === 'active')
              .map(({ runId: id, leaseId }) => ({ runId: id, leaseId, order: Number.MAX_VALUE }));
            for (const asker of [inItsPlace, ...asNew, ...adding]) {
              let ahead = 0;
              for (const { lease: other } of waitersAhead(ns.state, locksOfLease(lease), asker, counted)) {
                const waits = after.waitsFor(other.runId, asker.runId);
                expect(counted.passedBy(asker).has(other.runId)).toBe(waits);
                expect(counted.passes(asker, other.runId)).toBe(waits);
                asked[waits ? 'passed' : ns.state.holdingAndWaiting.size === 0 ? 'no circle' : 'not passed'] += 1;
                if (!waits) ahead += 1;
              }
              expect(countAhead(ns.state, locksOfLease(lease), asker, counted)).toBe(ahead);
            }
          }
          expect([...ns.state.holdingAndWaiting.values()].sort()).toEqual(
            ['a', 'b', 'c', 'd'].filter((id) => twofold(ns, id)),
          );
          const active = [...ns.state.leases.values()].filter((lease) => lease.state === 'active');
          const ending = active[release];
          if (ending !== undefined) ns.release(ending);
          expect(queueOf().deadlocked()).toBeNull();
          for (const a of ns.state.leases.values()) {
            for (const b of ns.state.leases.values()) {
              if (a.state !== 'active' || b.state !== 'active' || a.runId === b.runId) continue;
              expect(oracle.incompatible(a.entries, b.entries)).toBe('');
            }
          }
        }
      }),
      { numRuns: 60 },
    );
    for (const [what, times] of Object.entries(asked)) expect(times, what).toBeGreaterThan(0);
  });
});
