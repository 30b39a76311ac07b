import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evolve } from '../../src/domain/evolve.js';
import { type Freeze, freezesOverlap, isUnder, MAX_FREEZES } from '../../src/domain/freeze.js';
import { lockDelayUntil } from '../../src/domain/lock-delay.js';
import { emptyState } from '../../src/domain/state.js';
import { SECOND } from '../../src/domain/time.js';
import { toRecords } from '../../src/engine/batch.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import { DueTimes } from '../../src/engine/replica.js';
import { GENESIS } from '../../src/engine/replica-state.js';
import { DOCUMENT, digestOf, leased, Namespace, optimistic, read, START, stable, writeSet } from '../support/domain.js';
import { covers } from '../support/oracle/entry.js';
import { isFrozen } from '../support/oracle/pattern.js';

const TASK = { entries: [], task: { name: 'edit', parameters: { id: 'a' } }, resourceSet: null };
const SET = { entries: [], task: null, resourceSet: 'now' };

function freezeOf(pattern: string, scope: 'exact' | 'subtree'): Freeze {
  const nothing = { deniesChecks: false, reason: '', frozenBy: '', frozenAt: 0, until: null, effectiveAt: 0 };
  return { pattern, scope, ...nothing };
}

/** Every resource of up to `depth` segments of these letters; "c" is in no pattern below. */
function resources(depth: number): string[] {
  let last = [''];
  const all: string[] = [];
  for (let level = 0; level < depth; level += 1) {
    last = last.flatMap((above) => ['a', 'b', 'c'].map((letter) => (above === '' ? letter : `${above}/${letter}`)));
    all.push(...last);
  }
  return all;
}

/** Deeper than any pattern or entry below by one. */
const UNIVERSE = resources(5);

const anyScope = fc.constantFrom<'exact' | 'subtree'>('exact', 'subtree');
const anyFreeze = fc
  .tuple(fc.array(fc.constantFrom('a', 'b', '{}'), { minLength: 1, maxLength: 3 }), fc.boolean(), anyScope)
  .map(([steps, rest, scope]) => {
    const parts = steps.map((step, index) => (step === '{}' ? `{n${index}}` : step));
    return freezeOf([...parts, ...(rest ? ['{rest...}'] : [])].join('/'), scope);
  });
const anyEntry = fc.record({
  resource: fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 4 }).map((parts) => parts.join('/')),
  scope: anyScope,
});

describe('what a freeze is over', () => {
  it('is found exactly, for entries above, at and below it', () => {
    fc.assert(
      fc.property(anyFreeze, anyEntry, (freeze, entry) => {
        const common = UNIVERSE.some((resource) => isFrozen(freeze, resource) && covers(entry, resource));
        expect(isUnder(freeze, entry)).toBe(common);
      }),
      { numRuns: 1_000 },
    );
  });

  it('is found exactly for two freezes', () => {
    fc.assert(
      fc.property(anyFreeze, anyFreeze, (a, b) => {
        const common = UNIVERSE.some((resource) => isFrozen(a, resource) && isFrozen(b, resource));
        expect(freezesOverlap(a, b)).toBe(common);
        expect(freezesOverlap(b, a)).toBe(common);
      }),
      { numRuns: 500 },
    );
  });
});

const world = (): Namespace => new Namespace().runs('a', 'b', 'c');

describe('grants under a freeze', () => {
  it.each([
    ['the resource itself', 'doc/a', leased('doc/a')],
    ['an optimistic write', 'doc/a', optimistic('doc/a')],
    ['a stable read', 'doc/a', stable('doc/a')],
    ['a subtree above it', 'doc/a/b', leased('doc/')],
    ['something below it', 'doc/a', leased('doc/a/b/c')],
    ['what a capture matches', 'doc/{id}', leased('doc/a')],
    ['what a rest matches', '{any...}', leased('doc/a/b')],
    ['what a rule brings', 'image-tag/{env}', leased('deployment/prod')],
    ['what a rule keeps stable', 'dns/prod/www', leased('deployment/prod')],
  ])('are refused: %s', (_, pattern, entry) => {
    const ns = world();
    ns.freeze(pattern);
    expect(ns.refused(ns.acquire('a', [entry])).kind).toBe('frozen');
    expect(ns.preview('a', entry).refusal?.kind).toBe('frozen');
  });

  it('are refused for tasks and for named sets', () => {
    const ns = world();
    ns.freeze('doc/{id}');
    expect(ns.refused(ns.acquire('a', TASK)).kind).toBe('frozen');
    expect(ns.refused(ns.acquire('a', SET)).kind).toBe('frozen');
  });

  it.each([
    ['a plain read', 'doc/a', read('doc/a')],
    ['a neighbour', 'doc/a', leased('doc/b')],
    ['a name that only begins alike', 'doc/a', leased('doc/ab')],
  ])('are made: %s', (_, pattern, entry) => {
    const ns = world();
    ns.freeze(pattern);
    ns.hold('a', entry);
  });

  it('are made below what is frozen exactly, and not over it', () => {
    const ns = world();
    ns.freeze('doc/a', { exact: true });
    ns.hold('a', leased('doc/a/b'));
    expect(ns.refused(ns.acquire('b', [leased('doc/a')])).kind).toBe('frozen');
    expect(ns.refused(ns.acquire('b', [leased('doc/')])).kind).toBe('frozen');
  });

  it('of observed kinds are made and recorded', () => {
    const ns = world();
    ns.freeze('obs/{id...}', { deniesChecks: true });
    const lease = ns.hold('a', leased('obs/a'));
    expect(lease.entries[0]?.observedRefusal).toBe('frozen');
  });

  it('say what is frozen, what else is in the way, what could be had, and when it thaws', () => {
    const ns = world();
    ns.hold('a', leased('doc/held'));
    ns.freeze('doc/{id}', { until: ns.now + 60 * SECOND, reason: 'secret plans' });
    const refusal = ns.refused(ns.acquire('b', [leased('doc/held'), leased('dns/x')]));
    expect(refusal).toMatchObject({
      kind: 'frozen',
      message: '"doc/held" is frozen, by "doc/{id}": an operator has stopped all grants there.',
      resource: 'doc/held',
      freezes: [{ pattern: 'doc/{id}', frozenBy: 'olga', reason: 'secret plans' }],
      blockers: [{ resource: 'doc/held', runId: 'a' }],
      grantable: [{ resource: 'dns/x' }],
      resolution: { who: 'operator', retryable: true },
    });
    expect(refusal.retryAfter).toBeGreaterThanOrEqual(59 * SECOND);
    // What the operator wrote is not in the words that runners see and the log keeps in plain.
    expect(JSON.stringify([refusal.message, refusal.resolution, ns.last])).not.toContain('secret');
    ns.freeze('doc/held');
    expect(ns.refused(ns.acquire('b', [leased('doc/held')])).retryAfter).toBeNull();
  });

  it('leave leases that live alone: they are checked, renewed and released', () => {
    const ns = world();
    const lease = ns.hold('a', leased('doc/a'));
    const { outcome, liveLeases } = ns.freeze('doc/{id}');
    expect([outcome, liveLeases]).toEqual(['frozen', 1]);
    expect(ns.check(lease, {}).results[0]?.reason).toBe('ok');
    expect(ns.renew(lease).refusal).toBeNull();
    expect(ns.release(lease).outcome).toBe('released');
  });

  it('come by a change of the map as a lock without authority', () => {
    const ns = new Namespace({ ...DOCUMENT, implies: [] }).runs('a', 'b');
    const lease = ns.hold('a', leased('deployment/prod'));
    ns.freeze('image-tag/{env}');
    ns.putMap(DOCUMENT);
    const brought = ns.lease(lease).entries.find(({ resource }) => resource === 'image-tag/prod');
    expect(brought).toMatchObject({ actions: [] });
    ns.thaw('image-tag/{env}');
    const taken = { ...leased('image-tag/prod'), actions: ['set'] };
    expect(ns.refused(ns.acquire('b', [taken])).kind).toBe('held');
  });
});

describe('requests that wait', () => {
  it('are granted by the thaw, in the same append and in their order', () => {
    const ns = world();
    ns.freeze('doc/{id}');
    const first = ns.queue('a', leased('doc/x'));
    const second = ns.queue('b', leased('doc/x'));
    const other = ns.queue('c', leased('doc/y'));
    const { outcome, granted } = ns.thaw('doc/{id}');
    expect([outcome, granted]).toEqual(['thawed', 2]);
    expect(ns.kinds).toEqual(['pattern_thawed', 'lease_granted', 'lease_granted']);
    expect([first, second, other].map((lease) => ns.lease(lease).state)).toEqual(['active', 'waiting', 'active']);
    ns.release(first);
    expect(ns.lease(second).state).toBe('active');
  });

  it('are told what they wait for', () => {
    const ns = world();
    ns.freeze('doc/{id}');
    const answer = ns.acquire('a', [leased('doc/x')], { wait: 60 * SECOND, key: 'k' });
    const told = { ahead: 0, refusal: { kind: 'frozen', freezes: [{ pattern: 'doc/{id}' }] } };
    expect(ns.told(ns.waiting(answer))).toMatchObject(told);
    const again = ns.acquire('a', [leased('doc/x')], { wait: 60 * SECOND, key: 'k' });
    expect(ns.told(ns.waiting(again))).toMatchObject(told);
  });

  it('wait on when who held it goes, and until every freeze over it is gone', () => {
    const ns = world();
    const lease = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    expect(ns.freeze('doc/{id}').waitingRequests).toBe(1);
    ns.freeze('doc/x');
    ns.release(lease);
    expect(ns.lease(waiting).state).toBe('waiting');
    expect(ns.thaw('doc/{id}')).toMatchObject({ granted: 0, stillFrozenBy: [{ pattern: 'doc/x' }] });
    expect(ns.lease(waiting).state).toBe('waiting');
    expect(ns.thaw('doc/x')).toMatchObject({ granted: 1, stillFrozenBy: [] });
    expect(ns.lease(waiting).state).toBe('active');
  });

  it('keep their place, and are passed by what is not frozen until they are thawed (C11)', () => {
    const ns = world();
    const held = ns.hold('a', leased('doc/x'));
    const wide = ns.queue('b', leased('doc/x'), leased('dns/x'));
    const behind = ns.queue('c', leased('dns/x'));
    expect(ns.lease(behind).state).toBe('waiting');
    ns.freeze('doc/{id}');
    expect(ns.lease(behind).state).toBe('active');
    ns.release(behind);
    const later = ns.queue('c', leased('doc/x'));
    ns.release(held);
    ns.thaw('doc/{id}');
    expect([wide, later].map((lease) => ns.lease(lease).state)).toEqual(['active', 'waiting']);
  });

  it('do not ask holders to yield', () => {
    const ns = world();
    ns.freeze('doc/y');
    const held = ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'), leased('doc/y'));
    expect(ns.check(held, {}).allowed).toBe(true);
    expect(ns.acquire('c', [leased('doc/x')])).toMatchObject({ refusal: { kind: 'held', blockers: [{ runId: 'a' }] } });
  });

  it('are granted when the freeze is over by its time, by whoever looks first', () => {
    for (const look of [(ns: Namespace) => ns.sweep(), (ns: Namespace) => ns.acquire('c', [leased('doc/x')])]) {
      const ns = world();
      const until = ns.now + 5 * SECOND;
      ns.freeze('doc/{id}', { until });
      const waiting = ns.queue('a', leased('doc/x'));
      expect(new DueTimes().isDue(ns.state, until - 1)).toBe(false);
      expect(new DueTimes().isDue(ns.state, until)).toBe(true);
      ns.now = until;
      look(ns);
      expect(ns.decision.reliedOnAsPast).toBe(until);
      expect(ns.lease(waiting).state).toBe('active');
      expect(ns.state.freezes.size).toBe(0);
    }
  });
});

describe('checks', () => {
  it('are denied where the freeze says so, and allowed again after it', () => {
    const ns = world();
    const lease = ns.hold('a', leased('doc/a'), leased('doc/b'));
    ns.freeze('doc/a', { deniesChecks: true, until: ns.now + 10 * SECOND });
    const reasons = () => ns.check(lease, { resource: 'doc/a' }, { resource: 'doc/b' }).results.map((r) => r.reason);
    expect(reasons()).toEqual(['frozen', 'ok']);
    expect(ns.renew(lease).refusal).toBeNull();
    // Past its time it counts for nothing, also before that is written.
    ns.advance(10 * SECOND);
    expect(reasons()).toEqual(['ok', 'ok']);
  });

  it('of what the lease does not cover, or of one that has ended, say that first', () => {
    const ns = world();
    const lease = ns.hold('a', leased('doc/a'));
    ns.freeze('doc/{id}', { deniesChecks: true });
    expect(ns.check(lease, { resource: 'doc/b' }).results[0]?.reason).toBe('not_covered');
    ns.release(lease);
    expect(ns.check(lease, {}).results[0]?.reason).toBe('released');
  });

  it('of observed kinds are allowed, and say what would have been', () => {
    const ns = world();
    const lease = ns.hold('a', leased('obs/a'));
    ns.freeze('obs/{id...}', { deniesChecks: true });
    expect(ns.check(lease, {})).toMatchObject({ allowed: true, results: [{ reason: 'frozen', observedOnly: true }] });
  });
});

describe('targets that do not ask', () => {
  it('let in what a credential vouches for until the time that is told, and nothing later (P3)', () => {
    const ns = world();
    const lease = ns.hold('a', leased('loc/a'), leased('doc/a'));
    const before = ns.issue(lease);
    const { freeze } = ns.freeze('loc/{id}', { deniesChecks: true });
    expect(freeze.effectiveAt).toBe(lockDelayUntil(lease, freeze.frozenAt, ns.bounds));
    // The append proves that no other replica has issued one much later.
    expect(ns.decision.reliedOnAsFuture).not.toBeNull();
    const end = before?.kind === 'credential' ? before.credential.expiresAt * SECOND : 0;
    expect(end + ns.bounds.credentialTolerance + ns.bounds.maxClockSkew).toBeLessThanOrEqual(freeze.effectiveAt);
    expect(ns.issue(lease)).toMatchObject({ kind: 'refusal', refusal: { kind: 'frozen', resource: 'loc/a' } });
    ns.thaw('loc/{id}');
    expect(ns.issue(lease)?.kind).toBe('credential');
  });

  it('let in for as long what was vouched for before an early end, whatever ended (P3)', () => {
    const ns = world();
    const amended = ns.hold('b', leased('loc/x/y'), leased('doc/x'));
    const given = ns.amend(amended, { remove: ['loc/x/y'] });
    if (given.kind !== 'amended') throw new Error('not amended');
    expect(ns.freeze('loc/x', { deniesChecks: true }).freeze.effectiveAt).toBe(given.effectiveAt);
    const { effectiveAt } = ns.release(ns.hold('a', leased('loc/a'), leased('doc/a')));
    ns.advance(SECOND);
    const other = ns.freeze('loc/b', { deniesChecks: true }).freeze;
    expect(other.effectiveAt).toBe(other.frozenAt);
    expect(ns.freeze('loc/{id}', { deniesChecks: true }).freeze.effectiveAt).toBe(effectiveAt);
    ns.now = effectiveAt;
    const late = ns.freeze('loc/a', { deniesChecks: true }).freeze;
    expect(late.effectiveAt).toBe(late.frozenAt);
  });

  it('let in what was vouched for in a lost history until that is dead (P3)', () => {
    const ns = world();
    ns.loseHistory();
    const until = ns.state.localKindsFrom;
    expect(ns.freeze('loc/a', { deniesChecks: true }).freeze.effectiveAt).toBe(until);
    const asking = ns.freeze('doc/a', { deniesChecks: true }).freeze;
    expect(asking.effectiveAt).toBe(asking.frozenAt);
  });

  it('are no concern of a freeze of grants, nor of one of other resources', () => {
    const ns = world();
    const lease = ns.hold('a', leased('loc/a'), leased('doc/a'));
    for (const { freeze } of [ns.freeze('loc/{id}'), ns.freeze('doc/{id}', { deniesChecks: true })])
      expect(freeze.effectiveAt).toBe(freeze.frozenAt);
    expect(ns.issue(lease)?.kind).toBe('credential');
  });
});

describe('freezing and thawing', () => {
  it('what is frozen on these terms changes nothing', () => {
    const ns = world();
    const { freeze } = ns.freeze('doc/{id}', { deniesChecks: true });
    expect(ns.freeze('doc/{id}', { reason: 'me too', exact: true, by: 'other' })).toMatchObject({
      outcome: 'already_frozen',
      freeze,
    });
    expect(ns.kinds).toEqual([]);
  });

  it('again on other terms takes the stricter of each', () => {
    const ns = world();
    const soon = ns.now + 60 * SECOND;
    ns.freeze('doc/{id}', { exact: true, until: soon });
    const harder = ns.freeze('doc/{id}', { exact: true, deniesChecks: true, until: soon - SECOND });
    expect(harder).toMatchObject({ outcome: 'strengthened', freeze: { until: soon, deniesChecks: true } });
    const longer = ns.freeze('doc/{id}', { reason: 'for good' });
    expect(longer).toMatchObject({
      outcome: 'strengthened',
      freeze: { until: null, deniesChecks: true, scope: 'subtree', reason: 'for good' },
    });
  });

  it('what is not frozen is said to be so, also where another pattern is', () => {
    const ns = world();
    ns.freeze('doc/{id}');
    expect(ns.thaw('doc/a')).toMatchObject({ outcome: 'not_frozen', freeze: null });
    expect(ns.kinds).toEqual([]);
    expect(ns.thaw('doc/{id}').outcome).toBe('thawed');
    expect(ns.thaw('doc/{id}').outcome).toBe('not_frozen');
  });

  it('takes an alias for its path', () => {
    const ns = world();
    expect(ns.freeze('arn:doc:a').freeze.pattern).toBe('doc/a');
    expect(ns.refused(ns.acquire('a', [leased('doc/a')])).kind).toBe('frozen');
    expect(ns.thaw('arn:doc:a').outcome).toBe('thawed');
  });

  it.each([['doc//a'], ['{a...}/b'], ['doc/{'], ['/doc'], ['doc/{id}/{id}']])('refuses %s', (pattern) => {
    const ns = world();
    expect(() => ns.freeze(pattern)).toThrow(/pattern/);
    expect(() => ns.thaw(pattern)).toThrow(/pattern/);
  });

  it('refuses an end that is not ahead: zero is never for ever', () => {
    const ns = world();
    for (const until of [0, ns.now]) expect(() => ns.freeze('doc/a', { until })).toThrow('until');
  });

  it('names the kinds under the pattern, none for one that is misspelt', () => {
    const ns = world();
    expect(ns.freeze('dns/prod').kinds).toEqual(['dns/{env}', 'dns/{env}/{record}']);
    expect(ns.freeze('dsn/prod').kinds).toEqual([]);
  });

  it('is bounded, and what is over makes room', () => {
    const ns = world();
    for (let index = 0; index < MAX_FREEZES; index += 1)
      ns.freeze(`doc/${index}`, index === 0 ? { until: ns.now + SECOND } : {});
    expect(() => ns.freeze('doc/more')).toThrow('256 patterns');
    expect(ns.freeze('doc/1', { deniesChecks: true }).outcome).toBe('strengthened');
    ns.advance(SECOND);
    expect(ns.freeze('doc/more').outcome).toBe('frozen');
  });

  it('is the same state after the log is read again, and its reason can be erased', () => {
    const ns = world();
    ns.freeze('doc/{id}', { deniesChecks: true, until: START + 3_600 * SECOND, reason: 'an outage at Acme' });
    ns.freeze('dns/{env}');
    ns.thaw('dns/{env}', 'all is well');
    const records = toRecords('test', 'batch', GENESIS, ns.events);
    const state = emptyState('test');
    for (const record of records) evolve(state, decodeEvent(record), record.revision);
    expect(digestOf(state)).toBe(digestOf(ns.state));
    expect(records.map(({ body }) => body).join()).not.toMatch(/Acme|all is well/);
  });
});

it('a request that is frozen only in part is refused as a whole', () => {
  const ns = world();
  ns.freeze('doc/x');
  const answer = ns.acquire('a', writeSet(leased('doc/x'), leased('doc/y')));
  expect(ns.refused(answer)).toMatchObject({ kind: 'frozen', resource: 'doc/x', grantable: [{ resource: 'doc/y' }] });
  expect(ns.state.activeLeases).toBe(0);
});
