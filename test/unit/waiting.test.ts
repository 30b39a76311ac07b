import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ATTACHED_FOR } from '../../src/domain/decide/acquire.js';
import { endedWaiting } from '../../src/domain/decide/acquire-refusals.js';
import { CLAIM_WITHIN, MAX_PAST_ENDED } from '../../src/domain/decide/granting.js';
import { decideAttach, SWEEP_LIMIT } from '../../src/domain/decide/upkeep.js';
import type { RequestedEntry } from '../../src/domain/entry.js';
import { locksOfLease } from '../../src/domain/held-locks.js';
import type { EndReason, Lease } from '../../src/domain/lease.js';
import { countAhead, waitersAhead } from '../../src/domain/obstacles.js';
import { Queue } from '../../src/domain/queue.js';
import { SECOND } from '../../src/domain/time.js';
import {
  countVisits,
  DOCUMENT,
  leased,
  locksIn,
  Namespace,
  optimistic,
  read,
  START,
  stable,
  tokenOn,
} from '../support/domain.js';
import { OracleQueue } from '../support/oracle/queue.js';
import { Oracle, universeOf } from '../support/oracle/write-sets.js';
import { sampleWaiter } from '../support/sample-records.js';

const LONG = 600 * SECOND;

/** Leases and waiting requests that an attachment keeps in the queue, as their replica would. */
function keep(ns: Namespace, ...leases: readonly Lease[]): void {
  ns.decide((decision) =>
    decideAttach(
      decision,
      leases.map(({ leaseId }) => ({
        leaseId,
        attachment: ns.lease(leaseId).waiting?.attachment ?? 0,
        attached: true,
      })),
    ),
  );
}

function waitingIn(ns: Namespace): Lease[] {
  return [...ns.state.leases.values()].filter((lease) => lease.state === 'waiting');
}

/** Whether a run holds and waits, or waits by several requests. */
function twofold(ns: Namespace, runId: string): boolean {
  const live = [...ns.state.leases.values()].filter((lease) => lease.runId === runId && lease.state !== 'ended');
  return live.length > 1 && live.some((lease) => lease.state === 'waiting');
}

describe('a place in the queue (P9)', () => {
  it('says which place, and whom it waits for', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    const first = ns.acquire('b', [leased('doc/x')], { wait: LONG });
    const second = ns.acquire('c', [leased('doc/x')], { wait: LONG });
    expect(first).toMatchObject({ kind: 'waiting', attachment: 1 });
    expect(ns.told(ns.waiting(first))).toMatchObject({ ahead: 0, refusal: { kind: 'held' } });
    const told = ns.told(ns.waiting(second));
    expect(told.ahead).toBe(1);
    expect(told.refusal.blockers.map((b) => [b.runId, b.waiting])).toEqual([
      ['a', false],
      ['b', true],
    ]);
    expect(second.lease).toMatchObject({
      state: 'waiting',
      expiresAt: null,
      waiting: {
        queuedAt: ns.state.revision,
        waitsUntil: ns.now + LONG,
        attachedUntil: ns.now + ATTACHED_FOR,
        attached: true,
      },
    });
  });

  it('takes no lock, keeps all of its request for later, and has no token', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const held = locksIn(ns.state.held);
    const waiting = ns.queue('b', leased('doc/x'), leased('doc/y'));
    expect(locksIn(ns.state.held)).toEqual(held);
    expect(waiting.request?.entries.length).toBe(2);
    expect(waiting.entries.map((entry) => entry.token)).toEqual([0, 0]);
  });

  it('is granted in the append that frees the locks, with a later token and a ttl that starts then', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    ns.advance(5 * SECOND);
    ns.release(holder);
    expect(ns.kinds).toEqual(['lease_ended', 'lease_granted']);
    const lease = ns.lease(waiting);
    expect(lease).toMatchObject({ state: 'active', request: null, waiting: null, grantedAt: ns.now });
    expect(lease.expiresAt).toBe(ns.now + 60 * SECOND);
    expect(tokenOn(lease, 'doc/x')).toBeGreaterThan(tokenOn(holder, 'doc/x'));
    expect(locksIn(ns.state.queued)).toEqual([]);
  });

  it.each([
    ['release', (ns: Namespace, lease: Lease) => ns.release(lease)],
    ['revoke', (ns: Namespace, lease: Lease) => ns.revoke(lease)],
    ['stop', (ns: Namespace, lease: Lease) => ns.stop(lease.runId)],
    ['end of the run', (ns: Namespace, lease: Lease) => ns.update(lease.runId, 'finished')],
    [
      'expiry, by the sweeper',
      (ns: Namespace) => {
        ns.advance(6 * SECOND);
        ns.sweep();
      },
    ],
    [
      'expiry, by another acquire',
      (ns: Namespace) => {
        ns.advance(6 * SECOND);
        ns.acquire('c', [leased('doc/x')]);
      },
    ],
    [
      'expiry, by a release that comes too late',
      (ns: Namespace, lease: Lease) => {
        ns.advance(6 * SECOND);
        ns.release(lease);
      },
    ],
  ])('is granted by %s of the holder', (_, end) => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const holder = ns.granted(ns.acquire('a', [leased('doc/x')], { ttl: 5 * SECOND }));
    const waiting = ns.queue('b', leased('doc/x'));
    end(ns, holder);
    expect(ns.lease(waiting).state).toBe('active');
  });
});

describe('first come, first served among conflicting requests (P9)', () => {
  it('grants in the order of the queue, one after the other', () => {
    const ns = new Namespace().runs('a', 'b', 'c', 'd');
    let holder = ns.hold('a', leased('doc/x'));
    const queue = ['b', 'c', 'd'].map((runId) => ns.queue(runId, leased('doc/x')));
    for (const next of queue) {
      ns.release(holder);
      holder = ns.lease(next);
      expect(holder.state).toBe('active');
      expect(ns.state.activeLeases).toBe(1);
    }
  });

  it('grants all that stand side by side together', () => {
    const ns = new Namespace().runs('a', 'b', 'c', 'd', 'e');
    const holder = ns.hold('a', leased('doc/x'));
    const readers = ['b', 'c'].map((runId) => ns.queue(runId, stable('doc/x')));
    const writer = ns.queue('d', leased('doc/x'));
    const late = ns.queue('e', stable('doc/x'));
    ns.release(holder);
    expect(readers.map((reader) => ns.lease(reader).state)).toEqual(['active', 'active']);
    expect(ns.lease(writer).state).toBe('waiting');
    // It could stand beside the readers, but came after the writer.
    expect(ns.lease(late).state).toBe('waiting');
  });

  it('wait 0 never overtakes a conflicting waiter, although nobody holds it', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'), leased('doc/y'));
    expect(ns.refused(ns.acquire('c', [leased('doc/y')])).kind).toBe('held');
    expect(ns.refused(ns.acquire('c', [optimistic('doc/y')])).kind).toBe('held');
    expect(ns.waiting(ns.acquire('c', [leased('doc/y')], { wait: LONG })).state).toBe('waiting');
  });

  it('a wide request neither starves nor holds up disjoint ones (C11)', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const holder = ns.hold('a', leased('doc/x/1'));
    const wide = ns.queue('b', leased('doc/x/'));
    expect(ns.refused(ns.acquire('c', [leased('doc/x/2')])).kind).toBe('held');
    ns.hold('c', leased('doc/y'));
    ns.hold('c', read('doc/x/2'));
    ns.release(holder);
    expect(ns.lease(wide).state).toBe('active');
  });

  it('whoever leaves the queue makes room for those behind', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    const ahead = ns.queue('b', leased('doc/x'), leased('doc/y'));
    const behind = ns.queue('c', leased('doc/y'));
    ns.release(ahead);
    expect(ns.lease(ahead)).toMatchObject({ state: 'ended', endReason: 'withdrawn' });
    expect(ns.lease(behind).state).toBe('active');
  });

  it('also one who comes back too late', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    const request = [leased('doc/x'), leased('doc/y')];
    const ahead = ns.waiting(ns.acquire('b', request, { wait: 5 * SECOND, key: 'k' }));
    const behind = ns.queue('c', leased('doc/y'));
    ns.advance(6 * SECOND);
    expect(ns.refused(ns.acquire('b', request, { wait: 5 * SECOND, key: 'k' })).kind).toBe('wait_timeout');
    expect(ns.lease(ahead).endReason).toBe('timed_out');
    expect(ns.lease(behind).state).toBe('active');
  });
});

describe('passing those who wait for one’s own run (P9)', () => {
  it('a holder adds entries although somebody waits for what it holds', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'), leased('doc/y'));
    expect(ns.acquire('a', [leased('doc/y')]).kind).toBe('lease');
  });

  it('also through others', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.hold('b', leased('doc/y'));
    ns.queue('b', leased('doc/x'));
    ns.queue('c', leased('doc/y'), leased('doc/z'));
    expect(ns.acquire('a', [leased('doc/z')]).kind).toBe('lease');
  });

  it('waits behind none of them when it must wait for somebody else', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    const other = ns.hold('c', leased('doc/y'));
    ns.queue('b', leased('doc/x'), leased('doc/z'));
    const answer = ns.acquire('a', [leased('doc/y'), leased('doc/z')], { wait: LONG });
    expect(ns.told(ns.waiting(answer)).ahead).toBe(0);
    ns.release(other);
    expect(ns.lease(ns.waiting(answer)).state).toBe('active');
  });

  it('but does not pass those who do not', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.hold('c', leased('doc/y'));
    ns.queue('b', leased('doc/y'), leased('doc/z'));
    expect(ns.refused(ns.acquire('a', [leased('doc/z')])).kind).toBe('held');
  });

  it('nor those who pass it themselves: `one` passes `three`, so it does not wait for `three`', () => {
    const ns = new Namespace().runs('one', 'two', 'three');
    ns.hold('one', optimistic('doc/t'));
    ns.hold('two', optimistic('doc/s/a'));
    ns.queue('three', stable('doc/t'), leased('doc/s/k'));
    ns.queue('one', leased('doc/s/k'), stable('doc/s/'));
    expect(ns.refused(ns.acquire('three', [optimistic('doc/s/b')])).kind).toBe('held');
  });

  it('nor those who wait for another that passes it: `b` waits for `x`, and `x` passes `y`', () => {
    const ns = new Namespace().runs('a', 'b', 'x', 'y', 'other');
    ns.hold('a', leased('doc/a'));
    ns.hold('x', leased('doc/x1'), leased('doc/x2'));
    ns.hold('other', leased('doc/o'));
    ns.queue('y', leased('doc/a'), leased('doc/x1'), leased('doc/q'));
    // x stands behind y on q, but y waits for what x holds.
    ns.queue('x', leased('doc/q'), leased('doc/o'));
    ns.queue('b', leased('doc/x2'), leased('doc/z'));
    expect(ns.refused(ns.acquire('a', [leased('doc/z')])).kind).toBe('held');
  });

  it('it may come to wait for whom it could have passed later: then it is looked at again', () => {
    const ns = new Namespace().runs('a', 'b', 'c', 'd');
    ns.hold('d', leased('doc/u'));
    ns.hold('c', leased('doc/v'));
    const own = ns.queue('a', leased('doc/u'));
    ns.queue('b', leased('doc/v'), leased('doc/y'));
    const behind = ns.queue('a', leased('doc/y'));
    // b waits for a from now on, at first by a's place alone.
    ns.queue('b', leased('doc/u'));
    keep(ns, behind);
    expect(ns.lease(behind).state).toBe('active');
    expect(ns.lease(own).state).toBe('waiting');
  });
});

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

describe('how waiting ends without a grant', () => {
  it.each(['timed_out', 'withdrawn'] as const)('%s: proven to be over on the database clock (P11)', (endReason) => {
    const ends: ((ns: Namespace, holder: Lease) => void)[] = [
      (ns) => ns.sweep(),
      (ns) => ns.acquire('c', [leased('doc/x')]),
      (ns) => ns.acquire('b', [leased('doc/x')], { key: 'k', wait: 1 }),
      (ns, holder) => ns.release(holder),
    ];
    for (const end of ends) {
      const ns = new Namespace().runs('a', 'b', 'c');
      const holder = ns.hold('a', leased('doc/x'));
      const wait = endReason === 'timed_out' ? 5 * SECOND : LONG;
      const waiting = ns.waiting(ns.acquire('b', [leased('doc/x')], { wait, key: 'k' }));
      ns.advance(ATTACHED_FOR);
      end(ns, holder);
      expect(ns.lease(waiting).endReason).toBe(endReason);
      const { waitsUntil = 0, attachedUntil = 0 } = waiting.waiting ?? {};
      expect(ns.decision.reliedOnAsPast).toBe(endReason === 'timed_out' ? waitsUntil : attachedUntil);
    }
  });

  it('a request without wait is not refused because of a place that nobody came back for', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'), leased('doc/y'));
    expect(ns.refused(ns.acquire('c', [leased('doc/y')])).kind).toBe('held');
    ns.advance(ATTACHED_FOR);
    ns.hold('c', leased('doc/y'));
    expect(ns.kinds).toEqual(['lease_ended', 'lease_granted']);
    expect([ns.lease(waiting).endReason, ns.lease(holder).state]).toEqual(['withdrawn', 'active']);
  });

  it('but by one who has waited longer for the same, and gets it then', () => {
    const ns = new Namespace().runs('a', 'b', 'c', 'd');
    ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'), leased('doc/y'));
    ns.advance(SECOND);
    const behind = ns.queue('c', leased('doc/y'));
    ns.advance(ATTACHED_FOR - SECOND);
    expect(ns.refused(ns.acquire('d', [leased('doc/y')])).blockers).toMatchObject([{ runId: 'c', waiting: false }]);
    expect(ns.lease(behind).state).toBe('active');
  });

  it('nor are those behind such a place kept waiting by it, because what it wants besides has been granted', () => {
    const ns = new Namespace().runs('a', 'b', 'c', 'd');
    const holder = ns.hold('a', leased('doc/x'), leased('doc/y'));
    const first = ns.queue('b', leased('doc/x'));
    const over = ns.queue('c', leased('doc/x'), leased('doc/y'));
    const behind = ns.queue('d', leased('doc/y'));
    ns.advance(ATTACHED_FOR - SECOND);
    keep(ns, first, behind);
    ns.advance(2 * SECOND);
    ns.release(holder);
    expect([first, over, behind].map((lease) => ns.lease(lease).state)).toEqual(['active', 'ended', 'active']);
  });

  it('the wait is over: timed_out, and the retry is told so', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const answer = ns.acquire('b', [leased('doc/x')], { wait: 5 * SECOND, key: 'k' });
    ns.advance(5 * SECOND);
    ns.sweep();
    expect(ns.lease(ns.waiting(answer))).toMatchObject({ state: 'ended', endReason: 'timed_out' });
    const again = ns.acquire('b', [leased('doc/x')], { wait: 5 * SECOND, key: 'k' });
    expect(ns.refused(again)).toMatchObject({
      kind: 'wait_timeout',
      message:
        'The wait ended before "doc/x" could be granted. The request needs "doc/x", which is held by another run.',
      resource: 'doc/x',
      blockers: [{ runId: 'a', resource: 'doc/x' }],
      retryAfter: 55 * SECOND,
      resolution: { retryable: true },
    });
    ns.advance(55 * SECOND);
    ns.sweep();
    const later = ns.refused(ns.acquire('b', [leased('doc/x')], { wait: 5 * SECOND, key: 'k' }));
    expect(later).toMatchObject({
      kind: 'wait_timeout',
      message: 'The wait ended before "doc/x" could be granted.',
      resource: 'doc/x',
      blockers: [],
    });
  });

  it('the wait is over while an operator keeps everybody from it: what is frozen is told', () => {
    const ns = new Namespace().runs('a');
    ns.freeze('doc/x');
    const request = [leased('doc/z'), leased('doc/x')];
    ns.waiting(ns.acquire('a', request, { wait: 5 * SECOND, key: 'k' }));
    ns.advance(5 * SECOND);
    ns.sweep();
    const told = ns.refused(ns.acquire('a', request, { wait: 5 * SECOND, key: 'k' }));
    expect(told).toMatchObject({ kind: 'wait_timeout', resource: 'doc/x', freezes: [{ pattern: 'doc/x' }] });
    expect(told.message).toContain('The wait ended before "doc/z" and 1 more could be granted. "doc/x" is frozen');
  });

  it('nobody came back for it: withdrawn', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    ns.advance(ATTACHED_FOR - 1);
    ns.sweep();
    expect(ns.lease(waiting).state).toBe('waiting');
    ns.advance(1);
    ns.sweep();
    expect(ns.lease(waiting)).toMatchObject({ state: 'ended', endReason: 'withdrawn' });
  });

  it('a place that time has ended is not granted any more', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const holder = ns.hold('a', leased('doc/x'));
    const gone = ns.queue('b', leased('doc/x'));
    ns.advance(5 * SECOND);
    const next = ns.queue('c', leased('doc/x'));
    ns.advance(5 * SECOND);
    ns.release(holder);
    expect(ns.lease(gone).endReason).toBe('withdrawn');
    expect(ns.lease(next).state).toBe('active');
  });

  it('the run was stopped, also while its acquire was on its way: nothing is granted afterwards (F14)', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.waiting(ns.acquire('b', [leased('doc/x')], { wait: LONG, key: 'k' }));
    ns.stop('b');
    expect(ns.lease(waiting)).toMatchObject({ state: 'ended', endReason: 'run_stopped' });
    ns.release(holder);
    expect(ns.kinds).toEqual(['lease_ended']);
    expect(ns.refused(ns.acquire('b', [leased('doc/x')], { wait: LONG, key: 'k' })).kind).toBe('run_ended');
    expect(ns.refused(ns.acquire('b', [leased('doc/x')], { wait: LONG })).kind).toBe('run_ended');
  });

  it('it was revoked by an operator', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    expect(ns.revoke(waiting)).toMatchObject({ endReason: 'revoked' });
    expect(ns.lease(waiting)).toMatchObject({ state: 'ended', endReason: 'revoked' });
  });

  it('the run was blocked meanwhile: refused when its turn comes', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    ns.update('b', 'blocked');
    ns.release(holder);
    expect(ns.lease(waiting)).toMatchObject({ state: 'ended', endReason: 'refused' });
    expect(endedWaiting(ns.lease(waiting))).toMatchObject({ kind: 'run_blocked', resolution: { who: 'runner' } });
  });

  it('another lease of the run holds it now', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'), leased('doc/y'));
    ns.hold('b', leased('doc/y'));
    ns.release(holder);
    expect(ns.lease(waiting)).toMatchObject({ state: 'ended', endReason: 'refused' });
    expect(endedWaiting(ns.lease(waiting))).toMatchObject({ kind: 'already_held', resource: 'doc/y' });
  });

  it('its turn comes over an expired lease of its own run: that one ends first (P1)', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.granted(ns.acquire('a', [leased('doc/x')], { ttl: 300 * SECOND }));
    const waiting = ns.queue('b', leased('doc/x'), leased('doc/y'));
    const own = ns.granted(ns.acquire('b', [leased('doc/y')], { ttl: SECOND }));
    ns.advance(5 * SECOND);
    keep(ns, waiting);
    ns.release(holder);
    expect(ns.last.map((event) => [event.body.kind, event.leaseId])).toEqual([
      ['lease_ended', holder.leaseId],
      ['lease_ended', own.leaseId],
      ['lease_granted', waiting.leaseId],
    ]);
  });

  it('the map does not grant it any more: told as what it is, now and by a later retry', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.waiting(ns.acquire('b', [leased('doc/x')], { wait: LONG, key: 'k' }));
    ns.putMap({
      ...DOCUMENT,
      kinds: [{ pattern: 'doc/{id...}', authority: 'forbid' }],
      conflicts: [],
      implies: [],
      tasks: {},
      sets: {},
    });
    ns.release(holder);
    expect(ns.lease(waiting)).toMatchObject({ state: 'ended', endReason: 'refused' });
    const told = ns.refused(ns.acquire('b', [leased('doc/x')], { wait: LONG, key: 'k' }));
    expect(told).toEqual(endedWaiting(ns.lease(waiting)));
    expect(told).toMatchObject({ kind: 'forbidden', resource: 'doc/x' });
    expect(told.message).toMatch(
      /^When its turn came, the request was refused: "doc\/x" .* is closed to automated writes\.$/,
    );
    expect(told.resolution.action).toContain('a new try needs a new idempotency key.');
  });

  it('the database lost history: every request is told so, and whom to ask', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    ns.acquire('b', [leased('doc/x')], { wait: LONG, key: 'k' });
    ns.loseHistory();
    const told = ns.refused(ns.acquire('b', [leased('doc/x')], { wait: LONG, key: 'k' }));
    expect(told).toMatchObject({ kind: 'ended', resolution: { who: 'operator', retryable: false } });
    expect(told.message).toContain('The database lost history');
  });

  it('each end has words of its own', () => {
    const ended = (endReason: EndReason): string =>
      endedWaiting({ ...sampleWaiter(), state: 'ended', endReason }).message;
    const reasons: EndReason[] = [
      ...(['released', 'expired', 'no_progress', 'revoked', 'run_stopped', 'run_ended', 'taken_over'] as const),
      ...([
        'unclaimed',
        'database_changed',
        'map_changed',
        'parent_ended',
        'withdrawn',
        'timed_out',
        'refused',
      ] as const),
    ];
    expect(new Set(reasons.map(ended)).size).toBe(reasons.length);
    expect(endedWaiting(undefined).kind).toBe('ended');
    const asked = sampleWaiter().entries[0]?.resource ?? '';
    expect(asked).not.toBe('');
    for (const endReason of reasons)
      expect(endedWaiting({ ...sampleWaiter(), state: 'ended', endReason })).toMatchObject({
        message: expect.stringContaining(asked),
        resource: asked,
      });
  });

  it('its resource set may not be had yet, on the map as it is now', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/set'));
    const set = { entries: [], task: null, resourceSet: 'now' };
    const waiting = ns.waiting(ns.acquire('b', set, { wait: LONG }));
    const entries = DOCUMENT.sets?.now?.entries ?? [];
    ns.putMap({ ...DOCUMENT, sets: { now: { not_before: START + 3_600 * SECOND, entries } } });
    ns.release(holder);
    expect(endedWaiting(ns.lease(waiting)).kind).toBe('lock_delay');
  });
});

describe('a resource set whose start lies ahead (C1a)', () => {
  const START_IN = 60 * SECOND;
  const set = { entries: [], task: null, resourceSet: 'now' };
  const entries = DOCUMENT.sets?.now?.entries ?? [];

  /** The set may be had in a minute. */
  function soon(...runs: string[]): Namespace {
    const ns = new Namespace().runs(...runs);
    ns.putMap({ ...DOCUMENT, sets: { now: { not_before: START + START_IN, entries } } });
    return ns;
  }

  function passMinute(ns: Namespace, ...waiting: Lease[]): void {
    for (let seconds = 0; seconds < 60; seconds += 5) {
      keep(ns, ...waiting.map((lease) => ns.lease(lease)).filter((lease) => lease.state === 'waiting'));
      ns.advance(5 * SECOND);
    }
  }

  it('is refused without wait, or with one that ends before it; the answer says when', () => {
    const ns = soon('a');
    const message = 'The resource set "now" cannot be had before its start time (not_before).';
    const refusal = { kind: 'lock_delay', message, retryAfter: START_IN, resolution: { retryable: true } };
    expect(ns.refused(ns.acquire('a', set))).toMatchObject(refusal);
    expect(ns.refused(ns.acquire('a', set, { wait: START_IN }))).toMatchObject(refusal);
  });

  it('is waited for, and granted at its time by the sweeper, which the append proves', () => {
    const ns = soon('a');
    const answer = ns.acquire('a', set, { wait: START_IN + 1 });
    const waiting = ns.waiting(answer);
    expect(ns.told(waiting)).toMatchObject({ ahead: 0, refusal: { kind: 'lock_delay', retryAfter: START_IN } });
    ns.sweep();
    expect(ns.lease(waiting).state).toBe('waiting');
    passMinute(ns, waiting);
    ns.sweep();
    expect(ns.lease(waiting).state).toBe('active');
    expect(ns.decision.reliedOnAsPast).toBe(START + START_IN);
  });

  it('is granted as well when its caller comes back, or its place is kept', () => {
    for (const look of [
      (ns: Namespace) => ns.acquire('a', set, { wait: LONG, key: 'k' }),
      (ns: Namespace, waiting: Lease) => keep(ns, waiting),
    ]) {
      const ns = soon('a');
      const waiting = ns.waiting(ns.acquire('a', set, { wait: LONG, key: 'k' }));
      passMinute(ns, waiting);
      look(ns, waiting);
      expect(ns.lease(waiting)).toMatchObject({ state: 'active', claimBy: null });
    }
  });

  it('holds nobody up before, and keeps its place: at its time nobody gets in front of it', () => {
    const ns = soon('a', 'b', 'c', 'd');
    const waiting = ns.waiting(ns.acquire('a', set, { wait: LONG }));
    const other = ns.granted(ns.acquire('b', [leased('doc/set')], { ttl: 300 * SECOND }));
    const late = ns.queue('c', leased('doc/set'));
    passMinute(ns, waiting, late);
    keep(ns, waiting, late);
    expect(ns.refused(ns.acquire('d', [stable('doc/set')])).blockers.length).toBe(3);
    ns.release(other);
    expect([ns.lease(waiting).state, ns.lease(late).state]).toEqual(['active', 'waiting']);
  });

  it('says who holds it as well', () => {
    const ns = soon('a', 'b');
    ns.hold('b', leased('doc/set'));
    const answer = ns.acquire('a', set, { wait: LONG });
    expect(ns.told(ns.waiting(answer))).toMatchObject({
      refusal: { kind: 'lock_delay', retryAfter: START_IN, blockers: [{ runId: 'b' }] },
    });
  });
});

describe('attachments (design: waiting)', () => {
  const request = [leased('doc/x')];

  it('calling again with the same key resumes the same place, with a new number', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const first = ns.acquire('b', request, { wait: LONG, key: 'k' });
    ns.advance(3 * SECOND);
    const again = ns.acquire('b', request, { wait: LONG, key: 'k' });
    expect(again).toMatchObject({ kind: 'waiting', attachment: 2, leaseId: ns.waiting(first).leaseId });
    expect(again.lease?.waiting).toMatchObject({
      queuedAt: first.lease?.waiting?.queuedAt,
      attachedUntil: ns.now + ATTACHED_FOR,
      waitsUntil: first.lease?.waiting?.waitsUntil,
    });
  });

  it('its replica extends it; what an older attachment says does nothing', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const { leaseId } = ns.waiting(ns.acquire('b', request, { wait: LONG, key: 'k' }));
    ns.advance(3 * SECOND);
    const again = ns.acquire('b', request, { wait: LONG, key: 'k' });
    const { waiting } = ns.waiting(again);
    ns.advance(SECOND);
    ns.decide((decision) => decideAttach(decision, [{ leaseId, attachment: 1, attached: false }]));
    expect(ns.last).toEqual([]);
    expect(ns.lease(leaseId).waiting).toEqual(waiting);
    ns.decide((decision) => decideAttach(decision, [{ leaseId, attachment: 2, attached: true }]));
    expect(ns.lease(leaseId).waiting?.attachedUntil).toBe(ns.now + ATTACHED_FOR);
  });

  it('no attachment brings back a place that was given up', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    ns.advance(ATTACHED_FOR);
    keep(ns, waiting);
    expect(ns.last).toEqual([]);
  });

  it('one event extends any number of them', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    const waiting = [ns.queue('b', leased('doc/x')), ns.queue('c', leased('doc/x'))];
    ns.advance(SECOND);
    keep(ns, ...waiting);
    expect(ns.kinds).toEqual(['lease_attached']);
    for (const lease of waiting) expect(ns.lease(lease).waiting?.attachedUntil).toBe(ns.now + ATTACHED_FOR);
  });

  it('a grant while a call is attached is claimed', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    ns.release(holder);
    expect(ns.lease(waiting).claimBy).toBeNull();
  });

  const grantUnattended = (): { ns: Namespace; leaseId: string } => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    const { leaseId } = ns.waiting(ns.acquire('b', request, { wait: LONG, key: 'k' }));
    ns.decide((decision) => decideAttach(decision, [{ leaseId, attachment: 1, attached: false }]));
    ns.release(holder);
    return { ns, leaseId };
  };

  it('a grant between two calls must be claimed by calling again', () => {
    const { ns, leaseId } = grantUnattended();
    expect(ns.lease(leaseId).claimBy).toBe((ns.lease(leaseId).grantedAt as number) + CLAIM_WITHIN);
    ns.advance(CLAIM_WITHIN - SECOND);
    expect(ns.acquire('b', request, { wait: LONG, key: 'k' }).lease).toMatchObject({ leaseId, claimBy: null });
    expect(ns.kinds).toEqual(['lease_claimed']);
    // A claim is decided before the end it averts (P5).
    expect(ns.decision.reliedOnAsFuture).not.toBeNull();
    ns.advance(CLAIM_WITHIN);
    ns.sweep();
    expect(ns.lease(leaseId).state).toBe('active');
  });

  it('or by renewing it', () => {
    const { ns, leaseId } = grantUnattended();
    expect(ns.renew(leaseId).refusal).toBeNull();
    expect(ns.lease(leaseId).claimBy).toBeNull();
  });

  it('else it ends UNCLAIMED, and the retry is told so', () => {
    const { ns, leaseId } = grantUnattended();
    ns.advance(CLAIM_WITHIN + 1);
    expect(ns.check(leaseId, {}).results[0]?.reason).toBe('unclaimed');
    const late = ns.acquire('b', request, { wait: LONG, key: 'k' });
    expect(late.lease).toMatchObject({ leaseId, state: 'ended', endReason: 'unclaimed' });
    ns.hold('a', leased('doc/x'));
  });
});

describe('observed entries and the queue (C14)', () => {
  it('do not keep their own request waiting', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const holder = ns.hold('a', leased('doc/x'));
    ns.hold('c', leased('obs/y'));
    const waiting = ns.queue('b', leased('doc/x'), leased('obs/y'));
    ns.release(holder);
    expect(ns.lease(waiting).state).toBe('active');
    expect(ns.lease(waiting).entries.map((entry) => entry.observedRefusal)).toEqual([null, 'held']);
  });

  it('hold nobody else up while their request waits', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'), leased('obs-config/acme'));
    ns.hold('c', leased('service-token/acme'));
  });
});

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

  it('and for more than 10 s after an outage, so that each gets its turn (F5)', () => {
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
