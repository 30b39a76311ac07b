import { describe, expect, it } from 'vitest';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { DOCUMENT, leased, Namespace, START, stable } from '../support/domain.js';
import { keep, LONG } from '../support/waiting.js';

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
