import { describe, expect, it } from 'vitest';
import { ATTACHED_FOR } from '../../src/domain/decide/acquire.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { leased, locksIn, Namespace, optimistic, read, stable, tokenOn } from '../support/domain.js';
import { keep, LONG } from '../support/waiting.js';

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
