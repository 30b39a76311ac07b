import { describe, expect, it } from 'vitest';
import { ATTACHED_FOR, attachedFor, KEPT_FOR, keptFor } from '../../src/domain/decide/acquire.js';
import { CLAIM_WITHIN } from '../../src/domain/decide/granting.js';
import { decideAttach } from '../../src/domain/decide/upkeep.js';
import { MILLISECOND, SECOND } from '../../src/domain/time.js';
import { leased, Namespace } from '../support/domain.js';
import { keep, LONG } from '../support/waiting.js';

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

  it('one whose replica is gone has longer to come back than one that was answered (F5)', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    const [orphaned, answered] = [ns.queue('b', leased('doc/x')), ns.queue('c', leased('doc/x'))];
    const { leaseId, waiting } = answered;
    const attachment = waiting?.attachment ?? 0;
    ns.decide((decision) => decideAttach(decision, [{ leaseId, attachment, attached: false }]));
    ns.advance(KEPT_FOR);
    ns.sweep();
    expect([orphaned, answered].map((lease) => ns.lease(lease).state)).toEqual(['waiting', 'ended']);
    ns.advance(ATTACHED_FOR - KEPT_FOR);
    ns.sweep();
    expect(ns.lease(orphaned)).toMatchObject({ state: 'ended', endReason: 'withdrawn' });
  });

  it('both are longer where more than 1,000 wait, and whole microseconds however many do', () => {
    const { state } = new Namespace();
    for (const waitingLeases of [1_000, 1_001, 1_003, 2_000]) {
      const crowded = { ...state, waitingLeases };
      expect(keptFor(crowded)).toBe(waitingLeases * 10 * MILLISECOND);
      expect(attachedFor(crowded)).toBe(waitingLeases * 20 * MILLISECOND);
    }
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
