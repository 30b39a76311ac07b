import { describe, expect, it } from 'vitest';
import type { FenceReason } from '../../src/domain/fence.js';
import type { EndReason, Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { leased, MAX_SKEW, Namespace, optimistic, read, START, stable, tokenOn } from '../support/domain.js';

const patch = { action: 'patch', observedVersion: '41' };

describe('an allowed write (P4)', () => {
  it('is covered, by action and token, and says what is left of the lease', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.advance(10 * SECOND);
    expect(ns.checkAs('a', lease, {})).toEqual({
      allowed: true,
      results: [
        {
          allowed: true,
          reason: 'ok',
          message: '',
          observedOnly: false,
          hold: { token: tokenOn(lease, 'doc/x'), exclusive: true, explicit: true },
        },
      ],
      validFor: (lease.expiresAt as number) - ns.now,
      holder: { runId: 'a', leaseId: lease.leaseId, expiresAt: lease.expiresAt },
    });
    // A target that relies on the lease id alone need not say who presents it.
    expect(ns.check(lease, {}).allowed).toBe(true);
  });

  it('says what the guard needs of an optimistic write too, and nothing of one that is denied or only observed', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', optimistic('doc/x'), leased('obs/x'));
    const holds = (...writes: Parameters<typeof ns.check>[1][]) =>
      ns.check(lease, writes[0] ?? {}, ...writes.slice(1)).results.map(({ hold }) => hold);
    const patched = { resource: 'doc/x', ...patch, token: tokenOn(lease, 'doc/x') };
    expect(holds(patched)).toEqual([{ token: tokenOn(lease, 'doc/x'), exclusive: false, explicit: false }]);
    expect(holds({ ...patched, token: 1 }, { ...patched, resource: 'doc/y' })).toEqual([null, null]);
    expect(holds({ resource: 'obs/x', token: 1 })).toEqual([null]);
  });

  it('of everything below a SUBTREE, by whole segments', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x/'));
    const reason = (resource: string): unknown => ns.check(lease, { resource }).results[0]?.reason;
    expect(reason('doc/x')).toBe('ok');
    expect(reason('doc/x/deep/er')).toBe('ok');
    expect(reason('doc/xy')).toBe('not_covered');
    expect(reason('doc')).toBe('not_covered');
  });

  it('by any name of the resource', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    expect(ns.check(lease, { resource: 'arn:doc:x' }).allowed).toBe(true);
    expect(ns.check(lease, { resource: 'arn:doc:y' }).results[0]?.reason).toBe('not_covered');
  });

  it('of several writes together only when each of them is', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'), leased('doc/y'));
    expect(ns.check(lease, {}, { resource: 'doc/y' }).allowed).toBe(true);
    const mixed = ns.check(lease, {}, { resource: 'doc/z' });
    expect(mixed.allowed).toBe(false);
    expect(mixed.validFor).toBeNull();
    expect(mixed.results.map((result) => result.reason)).toEqual(['ok', 'not_covered']);
  });

  it('of an entry that a rule implied only by the actions the rule names', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('deployment/eu'));
    const token = tokenOn(lease, 'image-tag/eu');
    expect(ns.check(lease, { resource: 'image-tag/eu', action: 'set', token }).allowed).toBe(true);
    expect(ns.check(lease, { resource: 'dns/eu', action: 'replace', token }).results[0]?.reason).toBe('not_covered');
  });

  it('is under an explicit lease only if the run named the resource itself, to have it alone (W4)', () => {
    const ns = new Namespace().runs('a');
    const explicit = (lease: Lease, resource: string, action = 'replace') =>
      ns
        .check(lease, { resource, action, token: lease.entries[0]?.token ?? 0, observedVersion: '41' })
        .results.map(({ hold }) => hold?.explicit);
    const named = ns.hold('a', leased('doc/x'), optimistic('doc/p'), leased('doc/tree/'), leased('obs/x'));
    expect(explicit(named, 'doc/x')).toEqual([true]);
    expect(explicit(named, 'arn:doc:x')).toEqual([true]);
    expect(explicit(named, 'doc/tree')).toEqual([true]);
    expect(explicit(named, 'doc/tree/leaf')).toEqual([false]);
    expect(explicit(named, 'doc/p', 'patch')).toEqual([false]);
    // What the lease does not hold says nothing.
    expect(explicit(named, 'obs/y')).toEqual([undefined]);
    ns.release(named);

    const implying = ns.hold('a', leased('deployment/eu'));
    expect(explicit(implying, 'deployment/eu')).toEqual([true]);
    expect(explicit(implying, 'image-tag/eu', 'set')).toEqual([false]);
    ns.release(implying);

    // A wider entry beside the one that names it takes nothing away.
    expect(explicit(ns.hold('a', leased('doc/wide/'), leased('doc/wide/x')), 'doc/wide/x')).toEqual([true]);
  });

  it('by the newest token that the lease has for the resource, whichever entry of it brings the action', () => {
    const ns = new Namespace().runs('a');
    const before = ns.hold('a', leased('doc/x/'));
    ns.advance(SECOND);
    const lease = ns.amended(before, { add: [optimistic('doc/x/y')] });
    const [older, newer] = [tokenOn(lease, 'doc/x'), tokenOn(lease, 'doc/x/y')];
    expect(newer).toBeGreaterThan(older);
    const verdict = (write: Parameters<typeof ns.check>[1]) =>
      ns.check(lease, { resource: 'doc/x/y', ...write }).results[0];
    // Once the guard has seen the newer one, it takes no older one for that resource any more.
    expect(verdict({ token: newer })).toMatchObject({ reason: 'ok', hold: { token: newer, exclusive: true } });
    expect(verdict({ token: older })).toMatchObject({ reason: 'ok', hold: { token: newer, exclusive: true } });
    expect(verdict({ ...patch, token: newer })).toMatchObject({
      reason: 'ok',
      hold: { token: newer, exclusive: false },
    });
    // What was added is no older than its own token, and the newer one is of that resource alone.
    expect(verdict({ ...patch, token: older })?.reason).toBe('stale_token');
    expect(ns.check(lease, { resource: 'doc/x/z', token: newer }).results[0]?.reason).toBe('stale_token');
  });

  it('ends at the expiry, to the microsecond (P3)', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.now = (lease.expiresAt as number) - 1;
    expect(ns.check(lease, {})).toMatchObject({ allowed: true, validFor: 1 });
    ns.now += 1;
    expect(ns.check(lease, {}).results[0]?.reason).toBe('expired');
  });
});

describe('every reason', () => {
  const one = (ns: Namespace, lease: Lease | string, write: object = {}): unknown =>
    ns.check(lease, write).results[0]?.reason;

  it('not_covered: undeclared writes, reads, and what has no normal form (C10, F15)', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'), read('doc/r'), stable('doc/s'));
    for (const resource of ['doc/y', 'doc/r', 'doc/s', 'doc//x', 'doc/x/', 'DOC/x', ''])
      expect(one(ns, lease, { resource, token: tokenOn(lease, 'doc/x') })).toBe('not_covered');
  });

  it('action_not_allowed', () => {
    const ns = new Namespace().runs('a');
    expect(one(ns, ns.hold('a', leased('doc/x')), patch)).toBe('action_not_allowed');
  });

  it('stale_token: any other token than the one of that entry', () => {
    const ns = new Namespace().runs('a');
    const before = ns.hold('a', leased('doc/x'));
    ns.release(before);
    ns.advance(SECOND);
    const lease = ns.hold('a', leased('doc/x'));
    const token = tokenOn(lease, 'doc/x');
    for (const stale of [tokenOn(before, 'doc/x'), token - 1, token + 1, 0])
      expect(one(ns, lease, { token: stale })).toBe('stale_token');
  });

  it('version_required: an optimistic write must carry the version the run has read (C8)', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', optimistic('doc/x'));
    expect(one(ns, lease, { action: 'patch' })).toBe('version_required');
    expect(one(ns, lease, patch)).toBe('ok');
  });

  it('wrong_holder: another run presents it', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('doc/x'));
    expect(ns.checkAs('b', lease, {}).results[0]?.reason).toBe('wrong_holder');
  });

  it('unknown_lease, also with other letter case (F16)', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    const token = tokenOn(lease, 'doc/x');
    expect(one(ns, 'nothing')).toBe('unknown_lease');
    expect(one(ns, lease.leaseId.toUpperCase(), { token })).toBe('unknown_lease');
  });

  it('not_granted: it waits, or waited and was not granted', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    expect(one(ns, waiting)).toBe('not_granted');
    ns.release(waiting);
    expect(one(ns, waiting)).toBe('not_granted');
  });

  it('future_token: later than the clock by more than the skew (design: fencing)', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    expect(one(ns, lease, { token: ns.now + MAX_SKEW + 1 })).toBe('future_token');
    expect(one(ns, lease, { token: Number.POSITIVE_INFINITY })).toBe('future_token');
    expect(one(ns, lease, { token: ns.now + MAX_SKEW })).toBe('stale_token');
  });

  it('future_token is denied even where the kind only observes: it is forged, or history was lost (P2, C14)', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('obs/x'));
    expect(ns.check(lease, { token: ns.now + MAX_SKEW + 1 })).toMatchObject({
      allowed: false,
      validFor: null,
      results: [{ allowed: false, reason: 'future_token', observedOnly: false }],
    });
  });

  it('run_stopped while its leases are not yet ended one by one', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    const run = ns.state.runs.get('a');
    for (const state of ['stopping', 'stopped'] as const) {
      ns.state.runs.set('a', { ...(run as NonNullable<typeof run>), state });
      expect(one(ns, lease)).toBe('run_stopped');
    }
    for (const state of ['finished', 'failed', 'expired'] as const) {
      ns.state.runs.set('a', { ...(run as NonNullable<typeof run>), state });
      expect(one(ns, lease)).toBe('run_ended');
    }
    ns.state.runs.set('a', { ...(run as NonNullable<typeof run>), authorityEndsAt: ns.now });
    expect(one(ns, lease)).toBe('run_ended');
    ns.state.runs.delete('a');
    expect(one(ns, lease)).toBe('run_stopped');
  });

  const ENDS: Record<EndReason, FenceReason> = {
    released: 'released',
    expired: 'expired',
    no_progress: 'no_progress',
    revoked: 'revoked',
    run_stopped: 'run_stopped',
    run_ended: 'run_ended',
    taken_over: 'taken_over',
    unclaimed: 'unclaimed',
    database_changed: 'database_changed',
    map_changed: 'map_changed',
    parent_ended: 'parent_ended',
    withdrawn: 'not_granted',
    timed_out: 'not_granted',
    refused: 'not_granted',
  };

  it.each(Object.entries(ENDS))('an end by %s is told as %s', (endReason, reason) => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.state.leases.set(lease.leaseId, {
      ...lease,
      state: 'ended',
      endReason: endReason as EndReason,
      endedAt: ns.now,
    });
    expect(one(ns, lease)).toBe(reason);
  });
});

describe('when several things are wrong, the first of them is told', () => {
  it('future token, lease, holder, grant, end, time, run, resource, action, token, version', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', optimistic('doc/x'));
    const wrong = { resource: 'doc/y', action: 'nothing', token: 1, observedVersion: null };
    const future = { ...wrong, token: Number.POSITIVE_INFINITY };
    const told: unknown[] = [];
    const note = (runId: string, write: object, of: Lease | string = lease): void => {
      told.push(ns.checkAs(runId, of, write).results[0]?.reason);
    };
    note('b', future, 'nothing');
    note('b', wrong, 'nothing');
    note('b', wrong);
    note('a', wrong);
    note('a', { ...wrong, resource: 'doc/x' });
    note('a', { ...wrong, resource: 'doc/x', action: 'patch' });
    note('a', { action: 'patch' });
    ns.now = lease.expiresAt as number;
    note('a', wrong);
    ns.stop('a');
    note('a', wrong);
    note('b', wrong);
    expect(told).toEqual([
      'future_token',
      'unknown_lease',
      'wrong_holder',
      'not_covered',
      'action_not_allowed',
      'stale_token',
      'version_required',
      'expired',
      'run_stopped',
      'wrong_holder',
    ]);
  });
});

describe('a refused caller learns no token (design: fencing)', () => {
  it('not from any message, whatever is wrong', () => {
    const ns = new Namespace().runs('a', 'b');
    const old = ns.hold('a', leased('doc/x'));
    ns.release(old);
    ns.advance(SECOND);
    const lease = ns.hold('b', leased('doc/x'));
    const waiting = ns.queue('a', leased('doc/x'));
    ns.advance(SECOND);
    const tries = [
      ns.checkAs('a', lease, {}),
      ns.check(lease, { token: 1 }),
      ns.check(lease, { token: Number.POSITIVE_INFINITY }),
      ns.check(lease, { resource: 'doc/y' }),
      ns.check(lease, { action: 'patch' }),
      ns.check(old, { token: 1 }),
      ns.check(waiting, { token: 1 }),
      ns.check('nothing', { token: 1 }),
    ];
    for (const verdict of tries) {
      expect(verdict.allowed).toBe(false);
      expect(JSON.stringify(verdict)).not.toContain(String(tokenOn(lease, 'doc/x')));
      expect(JSON.stringify(verdict)).not.toMatch(/\d{10,}/);
    }
  });
});

describe('observe mode (C14)', () => {
  it('gives the verdict of enforce, allows all the same, and says so', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('obs/x'));
    const verdict = ns.check(lease, { token: 1 });
    expect(verdict).toMatchObject({
      allowed: true,
      results: [{ allowed: true, reason: 'stale_token', observedOnly: true }],
    });
    expect(ns.check(lease, {}).results[0]).toMatchObject({ reason: 'ok', observedOnly: false });
  });

  it('an entry that another run held is told as not covered', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('obs/x'));
    const lease = ns.hold('b', leased('obs/x'));
    expect(ns.check(lease, {}).results[0]).toMatchObject({
      reason: 'not_covered',
      message: expect.stringContaining('enforced, it would have been refused (held)'),
      observedOnly: true,
      allowed: true,
    });
  });

  it('what is not covered is told from what is only read, and from what is no path', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'), stable('doc/y'));
    const message = (resource: string): string => ns.check(lease, { resource }).results[0]?.message ?? '';
    expect(message('doc/y')).toContain('declared to be read, not written');
    expect(message('doc//y')).toContain('no path');
    expect(message('doc/z')).toContain('never declared');
  });

  it('does not carry an enforced write of the same request along', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('obs/x'), leased('doc/x'));
    expect(ns.check(lease, { resource: 'obs/x', token: 1 }, { resource: 'doc/x', token: 1 }).allowed).toBe(false);
  });

  it('nothing is left of a lease that is over, or never was: no validity, and never one without end (P5)', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('obs/x'), leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    const write = { resource: 'obs/x', token: START };
    expect(ns.check(waiting, write)).toMatchObject({ allowed: true, validFor: null });
    expect(ns.check('nothing', write)).toMatchObject({ allowed: true, validFor: null });
    ns.release(lease);
    expect(ns.check(lease, write)).toMatchObject({ allowed: true, validFor: null });
  });
});
