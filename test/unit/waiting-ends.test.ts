import { describe, expect, it } from 'vitest';
import { ATTACHED_FOR } from '../../src/domain/decide/acquire.js';
import { endedWaiting } from '../../src/domain/decide/acquire-refusals.js';
import type { EndReason, Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { DOCUMENT, leased, Namespace, START } from '../support/domain.js';
import { sampleWaiter } from '../support/sample-records.js';
import { keep, LONG } from '../support/waiting.js';

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
    ns.advance(ATTACHED_FOR - SECOND);
    const next = ns.queue('c', leased('doc/x'));
    ns.advance(SECOND);
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
