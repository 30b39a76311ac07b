import { describe, expect, it } from 'vitest';
import { DEFAULT_BOUNDS } from '../../src/domain/decide/decision.js';
import type { WriteSetRequest } from '../../src/domain/entry.js';
import { SECOND } from '../../src/domain/time.js';
import {
  DOCUMENT,
  leased,
  locksIn,
  Namespace,
  optimistic,
  read,
  START,
  stable,
  tokenOn,
  writeSet,
} from '../support/domain.js';

const named = (request: Partial<WriteSetRequest>): WriteSetRequest => ({
  entries: [],
  task: null,
  resourceSet: null,
  ...request,
});

describe('a grant', () => {
  it('carries entries, token, expiry and the rule of what was implied (C3, C6)', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('deployment/eu'), read('doc/notes'));
    expect(ns.kinds).toEqual(['lease_granted']);
    expect(lease).toMatchObject({
      runId: 'a',
      state: 'active',
      generation: 1,
      request: null,
      grantedAt: START + 1,
      expiresAt: START + 1 + 60 * SECOND,
      maxExpiresAt: START + 1 + 1_800 * SECOND,
      claimBy: null,
      waiting: null,
    });
    expect(lease.entries.map((entry) => [entry.resource, entry.access, entry.impliedBy])).toEqual([
      ['deployment/eu', 'write', ''],
      ['doc/notes', 'read', ''],
      ['image-tag/eu', 'write', 'implies[0]'],
      ['dns/eu', 'stable_read', 'implies[0]'],
    ]);
    // A read fences nothing.
    expect(tokenOn(lease, 'doc/notes')).toBe(0);
    for (const resource of ['deployment/eu', 'image-tag/eu', 'dns/eu']) {
      expect(tokenOn(lease, resource)).toBe(lease.grantedAt);
    }
  });

  it('by alias, task or resource set is a grant of what they stand for (C1a, C3a)', () => {
    const ns = new Namespace().runs('a');
    expect(ns.hold('a', leased('arn:doc:alias')).entries[0]?.resource).toBe('doc/alias');
    const task = ns.acquire('a', named({ task: { name: 'edit', parameters: { id: 'task' } } }));
    expect(ns.granted(task).entries[0]?.resource).toBe('doc/task');
    expect(ns.granted(ns.acquire('a', named({ resourceSet: 'now' }))).entries[0]?.resource).toBe('doc/set');
  });

  it('of a resource set waits for its start time', () => {
    const ns = new Namespace().runs('a');
    const early = ns.refused(ns.acquire('a', named({ resourceSet: 'later' }), { wait: 60 * SECOND }));
    expect(early.retryAfter).toBe(START + 3_600 * SECOND - ns.now);
    ns.advance(3_600 * SECOND);
    expect(ns.granted(ns.acquire('a', named({ resourceSet: 'later' }))).state).toBe('active');
  });

  it('is all or nothing: one held entry and nothing is taken (C5, P6)', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/2'));
    const before = locksIn(ns.state.held);
    const refusal = ns.refused(ns.acquire('b', [leased('doc/1'), leased('doc/2'), leased('doc/3')]));
    expect(refusal.kind).toBe('held');
    expect(ns.kinds).toEqual(['acquire_refused']);
    expect(locksIn(ns.state.held)).toEqual(before);
    expect(refusal.grantable.map((entry) => entry.resource)).toEqual(['doc/1', 'doc/3']);
  });

  it('goes beside disjoint ones at once, by tenant, environment, service (C11)', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x/1'));
    ns.hold('b', leased('doc/x/2'));
    ns.hold('c', leased('doc/y/'));
    expect(ns.state.activeLeases).toBe(3);
  });

  it('lets optimistic writers stand side by side, never beside a leased one (C8)', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', optimistic('doc/x'));
    ns.hold('b', optimistic('doc/x'));
    expect(ns.refused(ns.acquire('c', [leased('doc/x')])).kind).toBe('held');
    expect(ns.refused(ns.acquire('c', [stable('doc/x')])).kind).toBe('held');
    expect(ns.refused(ns.acquire('c', [leased('doc/')])).kind).toBe('held');
    ns.hold('c', read('doc/x'));
  });

  it('keeps a subtree against what is below and above it', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x/'));
    expect(ns.refused(ns.acquire('b', [optimistic('doc/x/deep/er')])).kind).toBe('held');
    expect(ns.refused(ns.acquire('b', [stable('doc/')])).kind).toBe('held');
    ns.hold('b', leased('doc/xy'));
  });

  it('of ids that a rule ties is refused by that rule (C3)', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('service-token/acme'));
    const refusal = ns.refused(ns.acquire('b', [optimistic('integration-config/acme')]));
    expect(refusal.blockers[0]).toMatchObject({
      rule: 'conflicts[0]',
      resource: 'service-token/acme',
      requestedResource: 'integration-config/acme',
    });
    ns.hold('b', optimistic('integration-config/other'));
  });
});

describe('tokens and times', () => {
  it('tokens are the time of their grant and strictly increase, also within one microsecond (P2)', () => {
    const ns = new Namespace().runs('a');
    const tokens = ['1', '2', '3'].map((id) => tokenOn(ns.hold('a', leased(`doc/${id}`)), `doc/${id}`));
    expect(tokens[0]).toBeGreaterThan(START);
    expect(tokens[1]).toBe((tokens[0] as number) + 1);
    expect(tokens[2]).toBe((tokens[0] as number) + 2);
    expect(ns.eventsOf('lease_granted').map((event) => event.time)).toEqual(tokens);
    ns.advance(SECOND);
    expect(tokenOn(ns.hold('a', leased('doc/4')), 'doc/4')).toBe(ns.now);
  });

  it('never go back when the clock does (P2)', () => {
    const ns = new Namespace().runs('a');
    const first = ns.hold('a', leased('doc/x'));
    ns.release(first);
    ns.advance(-10 * SECOND);
    expect(tokenOn(ns.hold('a', leased('doc/x')), 'doc/x')).toBeGreaterThan(tokenOn(first, 'doc/x'));
    ns.now = START - 10 * SECOND;
    ns.stop('a');
    const times = ns.events.map((event) => event.time);
    expect(times).toEqual([...times].sort((a, b) => a - b));
  });

  it('expiry is the least of ttl, max ttl, max hold, progress window and end of authority (P5, R2)', () => {
    const ns = new Namespace();
    ns.run('long');
    ns.run('short', { authorityEndsAt: START + 5 * SECOND });
    const expiry = (runId: string, id: string, ttl: number | null): number => {
      const lease = ns.granted(ns.acquire(runId, [leased(`paced/${id}`)], { ttl }));
      return (lease.expiresAt ?? 0) - (lease.grantedAt ?? 0);
    };
    expect(expiry('long', '1', null)).toBe(20 * SECOND);
    expect(expiry('long', '2', 7 * SECOND)).toBe(7 * SECOND);
    expect(expiry('long', '3', 3_000 * SECOND)).toBe(40 * SECOND);
    const bounded = ns.hold('short', leased('paced/4'));
    expect(bounded.expiresAt).toBe(START + 5 * SECOND);
    expect(bounded.maxExpiresAt).toBe(START + 5 * SECOND);
  });

  it('zero never means for ever: a ttl of 0 is over at once (P5)', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.granted(ns.acquire('a', [leased('doc/x')], { ttl: 0 }));
    expect(lease.expiresAt).toBe(lease.grantedAt);
    expect(ns.check(lease, {}).results[0]?.reason).toBe('expired');
    ns.hold('b', leased('doc/x'));
  });

  it('relies on the end of authority being in the future, which the append proves (P5)', () => {
    const ns = new Namespace();
    ns.run('a', { authorityEndsAt: START + 5 * SECOND });
    ns.hold('a', leased('doc/x'));
    expect(ns.decision.reliedOnAsFuture).toBe(START + 5 * SECOND);
    expect(ns.decision.reliedOnAsPast).toBeNull();
  });

  it('over an expired lease writes the end of that one first, and relies on its expiry being past (P1)', () => {
    const ns = new Namespace().runs('a', 'b');
    const old = ns.hold('a', leased('doc/x'));
    ns.advance(61 * SECOND);
    const lease = ns.hold('b', leased('doc/x'));
    expect(ns.kinds).toEqual(['lease_ended', 'lease_granted']);
    expect(ns.last[0]?.body).toMatchObject({ leaseId: old.leaseId, endReason: 'expired' });
    expect(ns.last[1]?.time).toBeGreaterThanOrEqual(ns.last[0]?.time as number);
    expect(ns.decision.reliedOnAsPast).toBe(old.expiresAt);
    expect(tokenOn(lease, 'doc/x')).toBeGreaterThan(tokenOn(old, 'doc/x'));
  });

  it("over the run's own expired lease does so as well", () => {
    const ns = new Namespace().runs('a');
    const old = ns.hold('a', leased('doc/x'));
    ns.advance(61 * SECOND);
    ns.hold('a', leased('doc/x'));
    expect(ns.kinds).toEqual(['lease_ended', 'lease_granted']);
    expect(ns.lease(old).endReason).toBe('expired');
  });

  it('one microsecond before its expiry a lease still stands in the way', () => {
    const ns = new Namespace().runs('a', 'b');
    const old = ns.hold('a', leased('doc/x'));
    ns.now = (old.expiresAt as number) - 1;
    expect(ns.refused(ns.acquire('b', [leased('doc/x')])).retryAfter).toBe(1);
    ns.advance(1);
    ns.hold('b', leased('doc/x'));
  });
});

describe('already_held', () => {
  it.each([
    ['the same leased write', leased('doc/x'), leased('doc/x')],
    ['a leased write of an optimistic one', optimistic('doc/x'), leased('doc/x')],
    ['the same optimistic write', optimistic('doc/x'), optimistic('doc/x')],
    ['a subtree above it', leased('doc/x/y'), leased('doc/x/')],
    ['something below its subtree', leased('doc/x/'), leased('doc/x/y')],
    ['an optimistic subtree above an optimistic write', optimistic('doc/x/y'), optimistic('doc/x/')],
    ['an optimistic write below an optimistic subtree', optimistic('doc/x/'), optimistic('doc/x/y')],
    ['a stable read of what it writes', leased('doc/x'), stable('doc/x')],
  ])('is the answer to a run that asks for %s', (_, holds, asks) => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', holds);
    const refusal = ns.refused(ns.acquire('a', [asks], { wait: 60 * SECOND }));
    expect(refusal).toMatchObject({ kind: 'already_held', blockers: [{ leaseId: lease.leaseId }] });
  });

  it('is the answer also where the run is granted its waiting request by what the call itself finds over', () => {
    const waiting = (): Namespace => {
      const ns = new Namespace().runs('a', 'b', 'c');
      ns.granted(ns.acquire('b', [leased('doc/x')], { ttl: 5 * SECOND }));
      ns.queue('a', leased('doc/x'));
      return ns;
    };
    const asked = waiting().advance(5 * SECOND);
    expect(asked.refused(asked.acquire('a', [leased('doc/x/y'), leased('doc/x')])).kind).toBe('already_held');
    const amended = waiting();
    const other = amended.hold('a', leased('doc/other'));
    amended.advance(5 * SECOND);
    expect(amended.amend(other, { add: [leased('doc/x')] })).toMatchObject({ refusal: { kind: 'already_held' } });
    const taken = new Namespace().runs('a');
    taken.freeze('doc/x', { until: taken.now + 5 * SECOND });
    taken.queue('a', leased('doc/x'));
    taken.advance(5 * SECOND);
    expect(taken.takeOver('a', [leased('doc/x')]).decided).toMatchObject({ refusal: { kind: 'already_held' } });
  });

  it('is not the answer to what only stands beside it', () => {
    const ns = new Namespace().runs('a');
    ns.hold('a', optimistic('doc/x/1'));
    ns.hold('a', optimistic('doc/x/2'));
    ns.hold('a', stable('doc/y'));
    ns.hold('a', stable('doc/y'));
    ns.hold('a', leased('doc/z/1'));
    ns.hold('a', leased('doc/z/2'));
  });
});

describe('a rule that ties two resources', () => {
  it('keeps writers of different runs apart; one run may hold both, in one lease or in two', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('service-token/acme'));
    ns.hold('a', leased('integration-config/acme'));
    ns.hold('a', leased('integration-config/b'), leased('service-token/b'));
    expect(ns.refused(ns.acquire('b', [optimistic('integration-config/acme')])).kind).toBe('held');
    expect(ns.refused(ns.acquire('a', [leased('service-token/acme')])).kind).toBe('already_held');
  });
});

describe('idempotency keys (P6, F1)', () => {
  const request = [leased('doc/x')];

  it('the same key is the same lease, also after it ended', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.granted(ns.acquire('a', request, { key: 'k' }));
    expect(ns.decision.newKeys).toEqual([{ scope: 'run:a', key: 'k' }]);
    const again = ns.acquire('a', request, { key: 'k' });
    expect(again.lease).toEqual(lease);
    expect(ns.last).toEqual([]);
    ns.release(lease);
    expect(ns.acquire('a', request, { key: 'k' }).lease).toMatchObject({ leaseId: lease.leaseId, state: 'ended' });
  });

  it('the same key with another request is refused', () => {
    const ns = new Namespace().runs('a');
    ns.acquire('a', request, { key: 'k' });
    expect(() => ns.acquire('a', [leased('doc/y')], { key: 'k' })).toThrow(
      expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_REUSED' }),
    );
  });

  it('a key is of its run: another run may use the same', () => {
    const ns = new Namespace().runs('a', 'b');
    const one = ns.granted(ns.acquire('a', [leased('doc/x')], { key: 'k' }));
    const other = ns.granted(ns.acquire('b', [leased('doc/y')], { key: 'k' }));
    expect(other.leaseId).not.toBe(one.leaseId);
  });

  it('a refusal binds nothing: the same key may be tried again', () => {
    const ns = new Namespace().runs('a', 'b');
    const blocker = ns.hold('a', leased('doc/x'));
    ns.refused(ns.acquire('b', request, { key: 'k' }));
    expect(ns.state.keys.get('run:b\nk')).toBeUndefined();
    ns.release(blocker);
    expect(ns.granted(ns.acquire('b', request, { key: 'k' })).state).toBe('active');
  });

  it('a repeated key finds its lease over, with the end written, when its time has come', () => {
    const ns = new Namespace().runs('a');
    ns.acquire('a', request, { key: 'k' });
    ns.advance(61 * SECOND);
    const again = ns.acquire('a', request, { key: 'k' });
    expect(again.lease).toMatchObject({ state: 'ended', endReason: 'expired' });
    expect(ns.kinds).toEqual(['lease_ended']);
  });

  it('a tombstone makes an acquire that is still in flight find nothing to do', () => {
    const ns = new Namespace().runs('a');
    expect(ns.releaseKey('a', 'k')).toMatchObject({ outcome: 'nothing_held' });
    expect(ns.kinds).toEqual(['key_bound']);
    const late = ns.refused(ns.acquire('a', request, { key: 'k', wait: 60 * SECOND }));
    expect(late.kind).toBe('ended');
    expect(ns.state.activeLeases + ns.state.waitingLeases).toBe(0);
  });

  it('a key of another kind of call is not one of acquire', () => {
    const ns = new Namespace().runs('a');
    ns.update('a', 'waiting_for_input', { key: 'k' });
    expect(() => ns.acquire('a', request, { key: 'k' })).toThrow(
      expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_REUSED' }),
    );
    expect(() => ns.releaseKey('a', 'k')).toThrow(expect.objectContaining({ reason: 'KEY_NOT_OF_ACQUIRE' }));
  });
});

describe('who may acquire', () => {
  it.each(['finished', 'failed'] as const)('a run that %s can never acquire (P6)', (state) => {
    const ns = new Namespace().runs('a');
    ns.update('a', state);
    expect(ns.refused(ns.acquire('a', [leased('doc/x')], { wait: 60 * SECOND })).kind).toBe('run_ended');
  });

  it('nor can one that was stopped, or whose authority has ended (R2, R4)', () => {
    const ns = new Namespace().runs('a');
    ns.run('short', { authorityEndsAt: START + SECOND });
    ns.stop('a');
    ns.advance(SECOND);
    expect(ns.refused(ns.acquire('a', [leased('doc/x')])).kind).toBe('run_ended');
    expect(ns.refused(ns.acquire('short', [leased('doc/x')])).kind).toBe('run_ended');
  });

  it('a blocked run is told so, and can go on when it is active again', () => {
    const ns = new Namespace().runs('a');
    ns.update('a', 'blocked');
    expect(ns.refused(ns.acquire('a', [leased('doc/x')])).kind).toBe('run_blocked');
    ns.update('a', 'active');
    ns.hold('a', leased('doc/x'));
  });

  it('an unknown run and a foreign one look the same (P4)', () => {
    const ns = new Namespace().runs('a');
    ns.loaded = { ...ns.loaded, runs: new Map([['nobody', null]]) };
    const fault = (run: () => unknown): object => {
      try {
        run();
      } catch (error) {
        return { reason: (error as { reason: string }).reason, message: (error as Error).message };
      }
      throw new Error('no fault');
    };
    const foreign = fault(() => ns.acquire('a', [leased('doc/x')], { principal: 'somebody' }));
    const unknown = fault(() => ns.acquire('nobody', [leased('doc/x')], { principal: 'somebody' }));
    expect(JSON.stringify(foreign).replaceAll('\\"a\\"', '?')).toBe(
      JSON.stringify(unknown).replaceAll('\\"nobody\\"', '?'),
    );
  });

  it('no more than its contract allows (R1)', () => {
    const ns = new Namespace();
    ns.run('a', { allowed: [{ pattern: 'doc/mine', actions: ['replace'] }] });
    ns.hold('a', leased('doc/mine'));
    expect(ns.refused(ns.acquire('a', [optimistic('doc/mine')])).kind).toBe('outside_contract');
    expect(ns.refused(ns.acquire('a', [leased('doc/other')])).kind).toBe('outside_contract');
  });

  it('nothing that the map does not describe; it is counted for the report (C2, C14)', () => {
    const ns = new Namespace().runs('a');
    const refusal = ns.refused(ns.acquire('a', [leased('backend work')]));
    expect(refusal.kind).toBe('undescribed');
    expect(ns.kinds).toEqual(['resources_unmatched', 'acquire_refused']);
    expect(ns.state.unmatched.get('backend work')).toMatchObject({ times: 1 });
  });

  it('every attempt that is refused is recorded with its reason and blockers (A1)', () => {
    const ns = new Namespace().runs('a', 'b');
    const blocker = ns.hold('a', leased('doc/x'));
    ns.acquire('b', [leased('doc/x')], { purpose: 'try' });
    expect(ns.last[0]).toMatchObject({
      runId: 'b',
      resources: ['doc/x'],
      body: { kind: 'acquire_refused', refusal: 'held', purpose: 'try', blockers: [blocker.leaseId] },
    });
  });
});

describe('bounds, each refused by name', () => {
  it.each([
    ['maxEntries', { maxEntries: 1 }],
    ['maxLocks', { maxLocks: 2 }],
    ['maxLeases', { maxLeases: 1 }],
    ['maxLeasesPerRun', { maxLeasesPerRun: 1 }],
  ])('%s', (_, bound) => {
    const ns = new Namespace().runs('a');
    ns.hold('a', read('doc/0'));
    ns.bounds = { ...DEFAULT_BOUNDS, ...bound };
    expect(ns.refused(ns.acquire('a', [leased('doc/1'), leased('doc/2')])).kind).toBe('limit');
  });

  it.each([
    ['maxWaiters', { maxWaiters: 1 }],
    ['maxWaitersPerRun', { maxWaitersPerRun: 1 }],
  ])('%s', (_, bound) => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/1'), leased('doc/2'));
    ns.queue('b', leased('doc/1'));
    ns.bounds = { ...DEFAULT_BOUNDS, ...bound };
    expect(ns.refused(ns.acquire('b', [leased('doc/2')], { wait: SECOND })).kind).toBe('limit');
  });
});

describe('observe mode (C14)', () => {
  it('refuses nothing: what enforce would have refused is recorded on the entry, which then takes no lock', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('obs/x'));
    const held = locksIn(ns.state.held);
    const lease = ns.hold('b', leased('obs/x'));
    expect(lease.entries[0]).toMatchObject({ mode: 'observe', observedRefusal: 'held' });
    expect(locksIn(ns.state.held)).toEqual(held);
    ns.release(lease);
    expect(locksIn(ns.state.held)).toEqual(held);
  });

  it('records what a rule of the map would have refused, too', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('service-token/acme'));
    const lease = ns.hold('b', leased('obs-config/acme'));
    expect(lease.entries[0]).toMatchObject({ mode: 'observe', observedRefusal: 'held' });
    expect(locksIn(ns.state.held).some((line) => line.includes(lease.leaseId))).toBe(false);
  });

  it('records that an earlier request waits for it', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'), leased('service-token/acme'));
    const lease = ns.hold('c', leased('obs-config/acme'));
    expect(lease.entries[0]?.observedRefusal).toBe('held');
  });

  it('records that another lease of the same run holds it', () => {
    const ns = new Namespace().runs('a');
    ns.hold('a', leased('obs/x'));
    const held = locksIn(ns.state.held);
    expect(ns.hold('a', leased('obs/x')).entries[0]?.observedRefusal).toBe('already_held');
    expect(locksIn(ns.state.held)).toEqual(held);
  });

  it('records the refusal that would have come first: the map and the contract are looked at before who holds it', () => {
    const ns = new Namespace().runs('a');
    ns.run('b', { allowed: [{ pattern: 'doc/{id}', actions: ['replace'] }] });
    ns.hold('a', leased('obs/x'));
    expect(ns.hold('b', leased('obs/x')).entries[0]?.observedRefusal).toBe('outside_contract');
  });

  it('does not make an entry of the same write set wait or be refused', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('obs/x'));
    const lease = ns.hold('b', leased('obs/x'), leased('doc/y'));
    expect(lease.entries.map((entry) => entry.observedRefusal)).toEqual(['held', null]);
  });

  it('ends an expired lease that it is granted over', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('obs/x'));
    ns.advance(61 * SECOND);
    const lease = ns.hold('b', leased('obs/x'));
    expect(lease.entries[0]?.observedRefusal).toBeNull();
    expect(ns.kinds).toEqual(['lease_ended', 'lease_granted']);
  });

  it('an enforced entry keeps its rule locks when an observed one takes the same (P1)', () => {
    const document = {
      ...DOCUMENT,
      kinds: [
        ...(DOCUMENT.kinds ?? []),
        { pattern: 'freeze/{tenant}', actions: { replace: { access: 'write', concurrency: 'lease' } } },
      ],
      conflicts: [{ between: ['{kind}/{tenant}', 'freeze/{tenant}'] }],
    } as const;
    const ns = new Namespace(document).runs('a', 'b');
    ns.hold('a', leased('obs-config/acme'), leased('service-token/acme'));
    expect(ns.refused(ns.acquire('b', [leased('freeze/acme')])).kind).toBe('held');
    const other = new Namespace(document).runs('a', 'b');
    other.hold('a', leased('freeze/acme'));
    expect(other.refused(other.acquire('b', [leased('obs-config/acme'), leased('service-token/acme')])).kind).toBe(
      'held',
    );
  });
});

describe('preview', () => {
  it('decides the same and keeps nothing, with no id and no token', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const revision = ns.state.revision;
    expect(ns.preview('b', leased('doc/x')).refusal?.kind).toBe('held');
    const { lease } = ns.preview('b', leased('deployment/eu'));
    expect(lease).toMatchObject({ leaseId: '', grantedAt: null, expiresAt: null });
    expect(lease?.entries.map((entry) => entry.token)).toEqual([0, 0, 0]);
    expect(ns.state.revision).toBe(revision);
    expect(ns.hold('b', leased('deployment/eu')).entries.length).toBe(3);
  });

  it('says what a waiting request would say', () => {
    const ns = new Namespace().runs('a');
    expect(ns.preview('a', ...writeSet(leased('nothing')).entries).refusal?.kind).toBe('undescribed');
  });
});

describe('the refusal names what stands in the way', () => {
  it('with the soonest time to ask again, and who settles it', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.granted(ns.acquire('a', [leased('doc/1')], { ttl: 10 * SECOND }));
    ns.granted(ns.acquire('b', [leased('doc/2')], { ttl: 30 * SECOND }));
    const refusal = ns.refused(ns.acquire('c', [leased('doc/1'), leased('doc/2')]));
    expect(refusal.blockers.map((blocker) => blocker.resource).sort()).toEqual(['doc/1', 'doc/2']);
    expect(Math.abs((refusal.retryAfter as number) - 30 * SECOND)).toBeLessThan(10);
    expect(refusal.resolution).toMatchObject({ retryable: true, who: 'runner' });
    expect(refusal.grantable).toEqual([]);
  });

  it('by the rule that implied the entry on either side', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('deployment/eu'));
    const refusal = ns.refused(ns.acquire('b', [leased('dns/eu/www')]));
    expect(refusal.blockers[0]).toMatchObject({ resource: 'dns/eu', scope: 'subtree', rule: 'implies[0]' });
  });

  it('as waiting, without an expiry, when it only waits itself', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'), leased('doc/y'));
    const refusal = ns.refused(ns.acquire('c', [leased('doc/y')]));
    expect(refusal.blockers).toMatchObject([{ waiting: true, expiresAt: null, runId: 'b' }]);
  });
});
