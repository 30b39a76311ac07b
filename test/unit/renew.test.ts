import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideRenew, RENEW_BEFORE } from '../../src/domain/decide/renew.js';
import type { Lease } from '../../src/domain/lease.js';
import { MILLISECOND, SECOND } from '../../src/domain/time.js';
import { leased, Namespace, START } from '../support/domain.js';

/** `paced` kinds: ttl 20 s (40 at most), max hold 120 s, progress window 50 s. */
function paced(): { ns: Namespace; lease: Lease } {
  const ns = new Namespace().runs('a', 'b');
  return { ns, lease: ns.hold('a', leased('paced/1')) };
}

describe('a renewal', () => {
  it('extends the expiry by the ttl, counted from its decision; the token stays (C6)', () => {
    const { ns, lease } = paced();
    ns.advance(10 * SECOND);
    expect(ns.renew(lease).refusal).toBeNull();
    expect(ns.lease(lease)).toMatchObject({ expiresAt: ns.now + 20 * SECOND, entries: lease.entries, generation: 1 });
    expect(ns.kinds).toEqual(['leases_renewed']);
  });

  it('takes another ttl within the bounds, and keeps it', () => {
    const { ns, lease } = paced();
    ns.advance(SECOND);
    ns.renew(lease, { ttl: 3_000 * SECOND });
    expect(ns.lease(lease)).toMatchObject({ ttl: 40 * SECOND, expiresAt: ns.now + 40 * SECOND });
  });

  it('never shortens', () => {
    const { ns, lease } = paced();
    ns.advance(SECOND);
    expect(ns.renew(lease, { ttl: SECOND }).refusal).toBeNull();
    expect(ns.lease(lease).expiresAt).toBe(lease.expiresAt);
  });

  it('relies on the lease not being over and on the authority of its run, which the append proves (P5)', () => {
    const { ns, lease } = paced();
    ns.renew(lease);
    expect(ns.decision.reliedOnAsFuture).toBe(lease.expiresAt);
  });

  it('of many leases is one event; each is decided for itself', () => {
    const ns = new Namespace().runs('a', 'b');
    const mine = [ns.hold('a', leased('paced/1')), ns.hold('a', leased('paced/2'))];
    const ended = ns.hold('a', leased('paced/3'));
    const foreign = ns.hold('b', leased('paced/4'));
    const late = ns.hold('a', leased('paced/5'));
    ns.release(ended);
    ns.renew(mine[0] as Lease, { ttl: 40 * SECOND });
    ns.renew(mine[1] as Lease, { ttl: 40 * SECOND });
    ns.now = (late.expiresAt as number) - 1;
    const ids = [...mine, ended, foreign, late].map((lease) => lease.leaseId);
    const results = ns.decide((decision) =>
      decideRenew(decision, {
        principal: 'principal-of-a',
        runId: 'a',
        renewals: ids.map((leaseId) => ({ leaseId, ttl: null, progressMarker: null })),
        requestIds: ['req-7'],
      }),
    );
    expect(results.map((result) => result.refusal?.kind ?? 'ok')).toEqual(['ok', 'ok', 'ended', 'ended', 'too_late']);
    expect(ns.kinds).toEqual(['leases_renewed', 'renewals_refused']);
    // A1: what was refused is in the log too, found by the request.
    expect(ns.last.at(-1)).toMatchObject({
      runId: 'a',
      requestIds: ['req-7'],
      body: { refusals: [{ leaseId: late.leaseId, refusal: 'too_late' }] },
    });
    expect(ns.lease(foreign).expiresAt).toBe(foreign.expiresAt);
  });

  it('of a foreign lease is refused as one that is not there (P4, F16)', () => {
    const ns = new Namespace().runs('a', 'b');
    const foreign = ns.hold('b', leased('paced/1'));
    ns.loaded = { ...ns.loaded, leases: new Map([['nothing', null]]) };
    const one = ns.renew(foreign, { runId: 'a' });
    const other = ns.renew('nothing', { runId: 'a' });
    expect(one.refusal).toEqual(other.refusal);
  });
});

describe('a renewal comes too late (P5, F12)', () => {
  it('within 500 ms of the expiry, and the lease ends at its expiry', () => {
    const { ns, lease } = paced();
    ns.now = (lease.expiresAt as number) - RENEW_BEFORE + 1;
    expect(ns.renew(lease).refusal?.kind).toBe('too_late');
    expect(ns.lease(lease).expiresAt).toBe(lease.expiresAt);
    const { ns: earlier, lease: same } = paced();
    earlier.now = (same.expiresAt as number) - RENEW_BEFORE;
    expect(earlier.renew(same).refusal).toBeNull();
    expect(RENEW_BEFORE).toBe(500 * MILLISECOND);
  });

  it('after it never revives, writes the end, and says why', () => {
    const { ns, lease } = paced();
    ns.now = lease.expiresAt as number;
    const refusal = ns.renew(lease).refusal;
    expect(refusal?.kind).toBe('ended');
    expect(refusal?.message).toContain('expired');
    expect(ns.lease(lease)).toMatchObject({ state: 'ended', endReason: 'expired' });
    expect(ns.kinds).toEqual(['renewals_refused', 'lease_ended']);
    expect(ns.renew(lease, { marker: 'new' }).refusal?.kind).toBe('ended');
  });

  it('and whoever goes on renewing what is dead, or never was, fills no log', () => {
    const { ns, lease } = paced();
    ns.loaded = { ...ns.loaded, leases: new Map([['nothing', null]]) };
    ns.now = lease.expiresAt as number;
    ns.renew(lease);
    const { revision } = ns.state;
    for (let call = 0; call < 3; call += 1) {
      ns.advance(SECOND);
      expect(ns.renew(lease).refusal?.kind).toBe('ended');
      expect(ns.renew('nothing', { runId: 'a' }).refusal?.kind).toBe('ended');
    }
    expect(ns.state.revision).toBe(revision);
  });

  it('of an ended lease is refused with how it ended', () => {
    const { ns, lease } = paced();
    ns.revoke(lease);
    expect(ns.renew(lease).refusal).toMatchObject({ kind: 'ended', message: expect.stringContaining('revoked') });
  });

  it('of a waiting request is refused with what to do', () => {
    const { ns } = paced();
    const waiting = ns.queue('b', leased('paced/1'));
    expect(ns.renew(waiting).refusal).toMatchObject({ kind: 'ended', resolution: { retryable: true } });
  });
});

describe('progress (C6, F4)', () => {
  it('a heartbeat without a changed marker keeps the lease to the end of the window and not longer', () => {
    const { ns, lease } = paced();
    ns.renew(lease, { marker: 'one' });
    const windowEnd = (ns.lease(lease).progressAt as number) + 50 * SECOND;
    for (let beat = 0; beat < 2; beat += 1) {
      ns.advance(15 * SECOND);
      expect(ns.renew(lease, { marker: 'one' }).refusal).toBeNull();
    }
    expect(ns.lease(lease).expiresAt).toBe(windowEnd);
    ns.advance(15 * SECOND);
    expect(ns.renew(lease, { marker: 'one' }).refusal?.kind).toBe('no_progress');
    ns.now = windowEnd;
    expect(ns.check(lease, {}).results[0]?.reason).toBe('no_progress');
  });

  it('and the holder who renews then is told so', () => {
    const { ns, lease } = paced();
    for (let beat = 0; beat < 3; beat += 1) {
      ns.advance(15 * SECOND);
      ns.renew(lease);
    }
    ns.now = ns.lease(lease).expiresAt as number;
    const refusal = ns.renew(lease).refusal;
    expect(refusal).toMatchObject({ kind: 'ended', message: expect.stringContaining('no_progress') });
    expect(ns.lease(lease).endReason).toBe('no_progress');
  });

  it('a dead worker ends by its ttl, and that is told', () => {
    const { ns, lease } = paced();
    ns.advance(10 * SECOND);
    ns.renew(lease, { marker: 'one' });
    ns.now = ns.lease(lease).expiresAt as number;
    ns.sweep();
    expect(ns.lease(lease).endReason).toBe('expired');
  });

  it('a changed marker opens a new window', () => {
    const { ns, lease } = paced();
    for (let beat = 0; beat < 5; beat += 1) {
      ns.advance(15 * SECOND);
      expect(ns.renew(lease, { marker: `step ${beat}` }).refusal).toBeNull();
      expect(ns.lease(lease)).toMatchObject({ progressAt: ns.now, progressMarker: `step ${beat}` });
    }
  });

  it('a kind without a window asks for none', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    for (let beat = 0; beat < 20; beat += 1) {
      ns.advance(50 * SECOND);
      expect(ns.renew(lease).refusal).toBeNull();
    }
  });
});

describe('bounds of holding (P5, R2)', () => {
  it('nothing reaches past max hold', () => {
    const { ns, lease } = paced();
    for (let beat = 0; beat < 10; beat += 1) {
      ns.advance(10 * SECOND);
      expect(ns.renew(lease, { marker: `${beat}` }).refusal).toBeNull();
    }
    expect(ns.lease(lease).expiresAt).toBe((lease.grantedAt as number) + 120 * SECOND);
    ns.advance(10 * SECOND);
    expect(ns.renew(lease, { marker: 'more' }).refusal?.kind).toBe('max_hold');
  });

  it('nor past the end of authority', () => {
    const ns = new Namespace();
    ns.run('a', { authorityEndsAt: START + 30 * SECOND });
    const lease = ns.hold('a', leased('doc/x'));
    expect(lease.expiresAt).toBe(START + 30 * SECOND);
    ns.advance(5 * SECOND);
    expect(ns.renew(lease).refusal?.kind).toBe('max_hold');
    ns.now = START + 30 * SECOND;
    expect(ns.renew(lease).refusal?.kind).toBe('run_ended');
    expect(ns.check(lease, {}).allowed).toBe(false);
  });

  it('a stopped run renews nothing', () => {
    const { ns, lease } = paced();
    ns.stop('a');
    expect(ns.renew(lease).refusal?.kind).toBe('ended');
  });

  it('a run that blocked itself keeps what it holds', () => {
    const { ns, lease } = paced();
    ns.update('a', 'blocked');
    ns.advance(SECOND);
    expect(ns.renew(lease).refusal).toBeNull();
  });

  it('any sequence of renewals keeps the expiry finite, not shorter, and within every bound', () => {
    const renewal = fc.record({
      after: fc.integer({ min: 0, max: 25 * SECOND }),
      ttl: fc.option(fc.integer({ min: SECOND, max: 3_600 * SECOND })),
      marker: fc.option(fc.constantFrom('a', 'b', 'c')),
    });
    fc.assert(
      fc.property(fc.integer({ min: 5, max: 200 }), fc.array(renewal, { maxLength: 20 }), (authority, renewals) => {
        const ns = new Namespace();
        const authorityEndsAt = START + authority * SECOND;
        ns.run('a', { authorityEndsAt });
        const lease = ns.hold('a', leased('paced/1'));
        for (const { after, ttl, marker } of renewals) {
          ns.advance(after);
          const before = ns.lease(lease);
          const wasLive = before.state === 'active' && (before.expiresAt as number) > ns.now;
          const { refusal } = ns.renew(lease, { ...(ttl && { ttl }), ...(marker && { marker }) });
          const now = ns.lease(lease);
          if (refusal === null) expect(wasLive).toBe(true);
          else expect(now.expiresAt).toBe(before.expiresAt);
          expect(Number.isSafeInteger(now.expiresAt)).toBe(true);
          expect(now.expiresAt).toBeGreaterThanOrEqual(before.expiresAt as number);
          expect(now.expiresAt).toBeLessThanOrEqual((lease.grantedAt as number) + 120 * SECOND);
          expect(now.expiresAt).toBeLessThanOrEqual(authorityEndsAt);
          expect(now.expiresAt).toBeLessThanOrEqual((now.progressAt as number) + 50 * SECOND);
        }
      }),
      { numRuns: 200 },
    );
  });
});
