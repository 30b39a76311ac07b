import { describe, expect, it } from 'vitest';
import { decideRelease } from '../../src/domain/decide/release.js';
import { SECOND } from '../../src/domain/time.js';
import { leased, Namespace } from '../support/domain.js';

const HOUR = 3_600 * SECOND;
const notFound = expect.objectContaining({ faultClass: 'not_found', reason: 'LEASE_NOT_FOUND' });

describe('release is idempotent and typed (P3, F7)', () => {
  it('released, then already ended, both in force at the same time', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('doc/x'));
    ns.advance(SECOND);
    const first = ns.release(lease);
    expect(first).toEqual({
      outcome: 'released',
      endReason: 'released',
      effectiveAt: ns.now,
      openWrites: [],
    });
    ns.advance(SECOND);
    expect(ns.release(lease)).toEqual({
      outcome: 'already_ended',
      endReason: 'released',
      effectiveAt: first.effectiveAt,
      openWrites: [],
    });
    expect(ns.last).toEqual([]);
    expect(ns.check(lease, {}).results[0]?.reason).toBe('released');
    ns.hold('b', leased('doc/x'));
  });

  it('a release that comes after the expiry says so, and writes the end', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.advance(61 * SECOND);
    expect(ns.release(lease)).toMatchObject({ outcome: 'already_ended', endReason: 'expired' });
    expect(ns.kinds).toEqual(['lease_ended']);
    expect(ns.decision.reliedOnAsPast).toBe(lease.expiresAt);
  });

  it('a release of a waiting request gives up its place', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    expect(ns.release(waiting)).toMatchObject({ outcome: 'released', endReason: 'withdrawn' });
  });

  it('after a renewal that raced it nothing is left, and after it nothing renews (F7)', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.renew(lease);
    ns.release(lease);
    expect(ns.renew(lease).refusal?.kind).toBe('ended');
    expect(ns.state.activeLeases).toBe(0);
  });

  it('an ended run may still release', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.stop('a');
    expect(ns.release(lease)).toMatchObject({ outcome: 'already_ended', endReason: 'run_stopped' });
  });
});

describe('release never touches another’s lease, and never answers a success with nothing released (F16)', () => {
  it.each([
    ["another run's", (id: string) => id, 'b'],
    ['with other letter case', (id: string) => id.toUpperCase(), 'a'],
    ['with a space', (id: string) => `${id} `, 'a'],
    ['unknown', () => 'nothing', 'a'],
    ['empty', () => '', 'a'],
  ])('%s', (_, idOf, runId) => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('doc/x'));
    const leaseId = idOf(lease.leaseId);
    if (leaseId !== lease.leaseId) ns.loaded = { ...ns.loaded, leases: new Map([[leaseId, null]]) };
    expect(() => ns.release(leaseId, runId)).toThrow(notFound);
    expect(ns.lease(lease).state).toBe('active');
  });

  it("by another principal than the run's own, with the right id", () => {
    const ns = new Namespace().runs('a');
    const { leaseId } = ns.hold('a', leased('doc/x'));
    const command = { principal: 'somebody', runId: 'a', leaseId, acquireKey: null, requestIds: [] };
    expect(() => ns.decide((decision) => decideRelease(decision, command))).toThrow(
      expect.objectContaining({ faultClass: 'not_found', reason: 'RUN_NOT_FOUND' }),
    );
    expect(ns.lease(leaseId).state).toBe('active');
  });
});

describe('release by the key of its acquire', () => {
  it('releases what the key made, once', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.granted(ns.acquire('a', [leased('doc/x')], { key: 'k' }));
    expect(ns.releaseKey('a', 'k')).toMatchObject({ outcome: 'released', endReason: 'released' });
    expect(ns.lease(lease).state).toBe('ended');
    expect(ns.releaseKey('a', 'k')).toMatchObject({ outcome: 'already_ended', endReason: 'released' });
  });

  it('withdraws a waiting request', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    ns.acquire('b', [leased('doc/x')], { key: 'k', wait: HOUR });
    expect(ns.releaseKey('b', 'k')).toMatchObject({ outcome: 'released', endReason: 'withdrawn' });
  });

  it('leaves a tombstone for one still in flight, once (P6)', () => {
    const ns = new Namespace().runs('a');
    const first = ns.releaseKey('a', 'k');
    expect(first).toEqual({
      outcome: 'nothing_held',
      endReason: null,
      effectiveAt: ns.now,
      openWrites: [],
    });
    expect(ns.decision.newKeys).toEqual([{ scope: 'run:a', key: 'k' }]);
    ns.advance(SECOND);
    expect(ns.releaseKey('a', 'k')).toEqual(first);
    expect(ns.last).toEqual([]);
  });

  it('does not release what another run made by the same key', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.granted(ns.acquire('a', [leased('doc/x')], { key: 'k' }));
    expect(ns.releaseKey('b', 'k').outcome).toBe('nothing_held');
    expect(ns.lease(lease).state).toBe('active');
  });
});

describe('revoke ends anybody’s lease or request, with a reason (P3)', () => {
  it('and says when it is in force, again and again', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.advance(SECOND);
    const first = ns.revoke(lease, 'incident 4711');
    expect(first).toEqual({ effectiveAt: ns.now, endReason: 'revoked', openWrites: [] });
    expect(ns.last[0]?.body).toMatchObject({ kind: 'lease_ended', endReason: 'revoked', reason: 'incident 4711' });
    ns.advance(SECOND);
    expect(ns.revoke(lease)).toEqual(first);
    expect(ns.last).toEqual([]);
  });

  it('tells how an ended lease ended, also by time', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.advance(61 * SECOND);
    expect(ns.revoke(lease).endReason).toBe('expired');
    const other = ns.hold('a', leased('doc/x'));
    ns.release(other);
    expect(ns.revoke(other).endReason).toBe('released');
  });

  it('an unknown lease is not found', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.loaded = { ...ns.loaded, leases: new Map([['nothing', null]]) };
    expect(() => ns.revoke({ ...lease, leaseId: 'nothing' })).toThrow(notFound);
  });
});
