import { describe, expect, it } from 'vitest';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import { inForceAt } from '../../src/domain/delegation.js';
import { evolve } from '../../src/domain/evolve.js';
import { Fault } from '../../src/domain/fault.js';
import { endsAt, type Lease } from '../../src/domain/lease.js';
import { emptyState } from '../../src/domain/state.js';
import { SECOND } from '../../src/domain/time.js';
import { toRecords } from '../../src/engine/batch.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import { DueTimes } from '../../src/engine/replica.js';
import { GENESIS } from '../../src/engine/replica-state.js';
import {
  DOCUMENT,
  digestOf,
  leased,
  locksIn,
  Namespace,
  optimistic,
  read,
  stable,
  tokenOn,
} from '../support/domain.js';

const ACTIONS = {
  replace: { access: 'write', concurrency: 'lease', tracked: true },
  patch: { access: 'write', tracked: true },
} as const;
const TRACKED: ConflictMapDocument = { version: 1, kinds: [{ pattern: 'doc/{id...}', actions: ACTIONS }] };

const world = (...runs: readonly string[]): Namespace => new Namespace().runs(...runs);

const entriesOf = (lease: Lease): string[] =>
  lease.entries.map(({ resource, access, scope, impliedBy }) =>
    [access, resource, ...(scope === 'subtree' ? ['below'] : []), ...(impliedBy === '' ? [] : [impliedBy])].join(' '),
  );

function faultOf(work: () => unknown): Fault {
  try {
    work();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

function refusalOf(answer: ReturnType<Namespace['amend']>) {
  if (answer.kind !== 'refusal') throw new Error(`no refusal, but ${answer.kind}`);
  return answer.refusal;
}

describe('what is added', () => {
  it('gets a new token, what is kept keeps its own, the generation rises and the expiry stays (P2, P5)', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', leased('doc/1'));
    ns.advance(SECOND);
    const after = ns.amended(lease, { add: [leased('doc/2'), read('doc/3')] });
    expect(ns.kinds).toEqual(['lease_amended']);
    expect(entriesOf(after)).toEqual(['write doc/1', 'write doc/2', 'read doc/3']);
    expect(after.generation).toBe(2);
    expect(after.expiresAt).toBe(lease.expiresAt);
    expect(after.maxExpiresAt).toBe(lease.maxExpiresAt);
    expect(tokenOn(after, 'doc/1')).toBe(tokenOn(lease, 'doc/1'));
    expect(tokenOn(after, 'doc/2')).toBe(ns.last[0]?.time);
    expect(tokenOn(after, 'doc/2')).toBeGreaterThan(tokenOn(after, 'doc/1'));
    expect(tokenOn(after, 'doc/3')).toBe(0);
    const write = { resource: 'doc/2', action: 'replace' };
    expect(ns.check(lease, { ...write, token: tokenOn(after, 'doc/2') }).allowed).toBe(true);
    expect(ns.check(lease, { ...write, token: tokenOn(after, 'doc/1') }).results[0]?.reason).toBe('stale_token');
    expect(ns.refused(ns.acquire('b', [leased('doc/2')])).kind).toBe('held');
  });

  it('brings what the map says it touches (C3), and is checked against the contract', () => {
    const ns = world('b');
    ns.run('a', { allowed: [{ pattern: '{any...}', actions: ['replace', 'set'] }] });
    const lease = ns.hold('a', leased('doc/1'));
    const after = ns.amended(lease, { add: [leased('deployment/eu')] });
    expect(entriesOf(after)).toEqual([
      'write doc/1',
      'write deployment/eu',
      'write image-tag/eu implies[0]',
      'stable_read dns/eu below implies[0]',
    ]);
    expect(refusalOf(ns.amend(lease, { add: [optimistic('doc/2')] })).kind).toBe('outside_contract');
    expect(refusalOf(ns.amend(lease, { add: [leased('nothing/here')] })).kind).toBe('undescribed');
    expect(ns.lease(lease).generation).toBe(2);
  });

  it('is all or nothing, and the refusal says which part could be granted (C5)', () => {
    const ns = world('a', 'b', 'c');
    const lease = ns.hold('a', leased('doc/1'));
    ns.hold('b', leased('doc/2'));
    const waiting = ns.queue('c', leased('doc/1'));
    const before = digestOf(ns.state);
    const refusal = refusalOf(ns.amend(lease, { add: [leased('doc/2'), leased('doc/3')], remove: ['doc/1'] }));
    expect(refusal).toMatchObject({ kind: 'held', resource: 'doc/2' });
    expect(refusal.grantable.map(({ resource }) => resource)).toEqual(['doc/3']);
    expect(ns.kinds).toEqual(['acquire_refused']);
    expect(ns.last[0]).toMatchObject({ leaseId: lease.leaseId, runId: 'a' });
    const { revision, time } = ns.state;
    expect(digestOf({ ...ns.state, revision: revision - 1, time })).toBe(before);
    expect(ns.lease(waiting).state).toBe('waiting');
  });

  it('does not overtake who waits, but passes who waits for the run itself (P9)', () => {
    const ns = world('a', 'b', 'c', 'd');
    const lease = ns.hold('a', leased('doc/1'));
    const other = ns.hold('b', leased('doc/2'));
    // Waits for b alone: a waits its turn.
    ns.queue('c', leased('doc/2'));
    ns.release(other);
    expect(ns.state.waitingLeases).toBe(0);
    ns.hold('b', leased('doc/3'));
    ns.queue('c', leased('doc/3'), leased('doc/4'));
    expect(refusalOf(ns.amend(lease, { add: [leased('doc/4')] })).kind).toBe('held');
    // Waits for a: were a to wait behind it, both would wait for ever.
    ns.queue('d', leased('doc/1'), leased('doc/5'));
    expect(entriesOf(ns.amended(lease, { add: [leased('doc/5')] }))).toEqual(['write doc/1', 'write doc/5']);
  });

  it('passes who waits for the amended lease alone, where no run holds and waits (P9)', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', leased('doc/1'));
    const waiting = ns.queue('b', leased('doc/1'), leased('doc/2'));
    expect(ns.state.holdingAndWaiting.size).toBe(0);
    expect(entriesOf(ns.amended(lease, { add: [leased('doc/2')] }))).toEqual(['write doc/1', 'write doc/2']);
    ns.release(lease);
    expect(ns.lease(waiting).state).toBe('active');
  });

  it('of what the lease holds already is no change, and with more of it a new grant (P2)', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', optimistic('doc/1'), stable('doc/2'));
    expect(ns.amended(lease, { add: [optimistic('doc/1')] })).toBe(ns.lease(lease));
    expect(ns.kinds).toEqual(['key_bound']);
    expect(ns.lease(lease).generation).toBe(1);
    ns.hold('b', optimistic('doc/3'));
    const more = ns.amended(lease, { add: [leased('doc/1')] });
    expect(more.entries[0]).toMatchObject({ actions: ['patch', 'replace'], exclusive: true });
    expect(tokenOn(more, 'doc/1')).toBeGreaterThan(tokenOn(lease, 'doc/1'));
    expect(more.entries).toHaveLength(2);
    // Not beside an optimistic writer.
    const second = ns.hold('b', optimistic('doc/4'));
    const side = ns.hold('a', optimistic('doc/4'));
    expect(refusalOf(ns.amend(side, { add: [leased('doc/4')] })).kind).toBe('held');
    ns.release(second);
    expect(ns.amended(side, { add: [leased('doc/4')] }).entries[0]?.exclusive).toBe(true);
  });

  it('of what another lease of the run holds is refused as already held', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/1'));
    ns.hold('a', leased('doc/2'));
    expect(refusalOf(ns.amend(lease, { add: [leased('doc/2')] })).kind).toBe('already_held');
  });

  it('never makes a lease live longer than a kind allows, nor moves its expiry (P5)', () => {
    const ns = world('a');
    const lease = ns.granted(ns.acquire('a', [leased('doc/1')], { ttl: 60 * SECOND }));
    const refusal = refusalOf(ns.amend(lease, { add: [leased('paced/1')] }));
    expect(refusal.kind).toBe('max_hold');
    ns.advance(refusal.retryAfter ?? 0);
    const after = ns.amended(lease, { add: [leased('paced/1')] });
    expect(after.expiresAt).toBe(lease.expiresAt);
    expect(after).toMatchObject({ maxTtl: 40 * SECOND, progressWindow: 50 * SECOND });
    expect(after.maxExpiresAt).toBe(ns.state.time + 120 * SECOND);
    expect(ns.renew(lease, { ttl: 600 * SECOND }).refusal).toBeNull();
    expect(ns.lease(lease).expiresAt).toBe(ns.now + 40 * SECOND);
  });

  it('relies on the lease and the authority being alive when it is written (P5)', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/1'));
    ns.amended(lease, { add: [leased('doc/2')] });
    expect(ns.decision.reliedOnAsFuture).toBe(endsAt(lease));
  });

  it('of what an operator has frozen is refused, and what is given up there is not (C12)', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/1'), leased('doc/2'));
    ns.freeze('doc/{any}');
    expect(refusalOf(ns.amend(lease, { add: [leased('doc/3')] })).kind).toBe('frozen');
    expect(entriesOf(ns.amended(lease, { remove: ['doc/2'] }))).toEqual(['write doc/1']);
  });

  it('is refused beyond the bounds of a write set', () => {
    const ns = world('a');
    ns.bounds = { ...ns.bounds, maxEntries: 2, maxLocks: 5 };
    const lease = ns.hold('a', leased('doc/1'));
    expect(refusalOf(ns.amend(lease, { add: [leased('doc/2'), leased('doc/3')] })).kind).toBe('limit');
    expect(refusalOf(ns.amend(lease, { add: [leased('doc/x/y/z/w')] })).kind).toBe('limit');
    expect(entriesOf(ns.amended(lease, { add: [leased('doc/2')] }))).toHaveLength(2);
  });
});

describe('what is removed', () => {
  it('is free at once, and whoever waits for it is granted it in the same append (P9)', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', leased('doc/1'), leased('doc/2'));
    const waiting = ns.queue('b', leased('doc/2'));
    const after = ns.amended(lease, { remove: ['arn:doc:2'] });
    expect(ns.kinds).toEqual(['lease_amended', 'lease_granted']);
    expect(entriesOf(after)).toEqual(['write doc/1']);
    expect(tokenOn(after, 'doc/1')).toBe(tokenOn(lease, 'doc/1'));
    const next = ns.lease(waiting);
    expect(tokenOn(next, 'doc/2')).toBeGreaterThan(tokenOn(lease, 'doc/2'));
    const old = ns.check(lease, { resource: 'doc/2', action: 'replace', token: tokenOn(lease, 'doc/2') });
    expect(old.results[0]?.reason).toBe('not_covered');
  });

  it('takes with it what nothing that is left implies, and leaves what something still does', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('deployment/eu'), leased('deployment/us'), stable('dns/us/'), leased('doc/1'));
    expect(entriesOf(ns.amended(lease, { remove: ['deployment/eu', 'deployment/us'] }))).toEqual([
      'stable_read dns/us below',
      'write doc/1',
    ]);
    const named = ns.hold('a', leased('deployment/eu'), leased('image-tag/eu'.replace('image-tag', 'dns')));
    expect(entriesOf(named)).toContain('write dns/eu');
  });

  it('names what stays after a rule that still brings it', () => {
    const ns = new Namespace({
      ...DOCUMENT,
      implies: [
        ...(DOCUMENT.implies ?? []),
        {
          when: { pattern: 'service-token/{tenant}', access: 'write' },
          touches: [{ resource: 'image-tag/{tenant}', access: 'write', actions: ['set'] }],
        },
      ],
    }).runs('a');
    const lease = ns.hold('a', leased('deployment/eu'), leased('service-token/eu'));
    ns.amend(lease, { remove: ['deployment/eu'] });
    const after = ns.lease(lease);
    expect(entriesOf(after)).toEqual(['write service-token/eu', 'write image-tag/eu implies[1]']);
    expect(tokenOn(after, 'image-tag/eu')).toBe(tokenOn(lease, 'image-tag/eu'));
  });

  it('and is still implied stays, with the actions of the rule and no others (W4)', () => {
    const ns = new Namespace({
      ...DOCUMENT,
      implies: [
        {
          when: { pattern: 'deployment/{env}', access: 'write' },
          touches: [{ resource: 'doc/{env}', access: 'write', actions: ['patch'] }],
        },
      ],
    }).runs('a', 'b');
    const lease = ns.hold('a', leased('deployment/eu'), leased('doc/eu'));
    const after = ns.amended(lease, { remove: ['doc/eu'] });
    expect(after.entries[1]).toMatchObject({ resource: 'doc/eu', actions: ['patch'], impliedBy: 'implies[0]' });
    expect(after.entries[1]?.exclusive).toBe(false);
    expect(tokenOn(after, 'doc/eu')).toBe(tokenOn(lease, 'doc/eu'));
    ns.hold('b', optimistic('doc/eu'));
    // And by name again: a grant that must be free.
    expect(refusalOf(ns.amend(lease, { add: [leased('doc/eu')] })).kind).toBe('held');
  });

  it('of an older map stays implied until the lease ends, since nobody can tell whose it is', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('deployment/eu'), leased('doc/1'));
    ns.putMap({ ...DOCUMENT, implies: [] });
    expect(entriesOf(ns.amended(lease, { remove: ['deployment/eu'] }))).toEqual([
      'write doc/1',
      'write image-tag/eu implies[0]',
      'stable_read dns/eu below implies[0]',
    ]);
  });

  it('must have been asked for by name, and something must be left', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('deployment/eu'), leased('doc/1'));
    expect(faultOf(() => ns.amend(lease, { remove: ['image-tag/eu'] })).reason).toBe('ENTRY_NOT_HELD');
    expect(faultOf(() => ns.amend(lease, { remove: ['doc/2'] })).reason).toBe('ENTRY_NOT_HELD');
    expect(faultOf(() => ns.amend(lease, { remove: ['deployment/eu', 'doc/1'] })).reason).toBe('NOTHING_LEFT');
    const swapped = ns.amended(lease, { remove: ['deployment/eu', 'doc/1'], add: [leased('doc/2')] });
    expect(entriesOf(swapped)).toEqual(['write doc/2']);
  });

  it('with a tracked write open is refused until its outcome is known (R4, P8)', () => {
    const ns = new Namespace(TRACKED).runs('a', 'b');
    const lease = ns.hold('a', leased('doc/1'), leased('doc/2'));
    const open = ns.letIn(lease, 'doc/1');
    for (const change of [{ remove: ['doc/1'] }, { downgrade: [stable('doc/1')] }])
      expect(refusalOf(ns.amend(lease, change))).toMatchObject({ kind: 'in_doubt', resource: 'doc/1' });
    expect(entriesOf(ns.amended(lease, { remove: ['doc/2'] }))).toEqual(['write doc/1']);
    ns.report([{ admissionId: open.admissionId, resource: 'doc/1', action: 'replace' }]);
    ns.amended(lease, { add: [leased('doc/2')], remove: ['doc/1'] });
    expect(ns.granted(ns.acquire('b', [leased('doc/1')])).state).toBe('active');
  });

  it('can be given up by a run that is blocked and may add nothing', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/1'), leased('doc/2'));
    ns.update('a', 'blocked');
    expect(refusalOf(ns.amend(lease, { add: [leased('doc/3')] })).kind).toBe('run_blocked');
    expect(entriesOf(ns.amended(lease, { remove: ['doc/2'] }))).toEqual(['write doc/1']);
  });
});

describe('a downgrade', () => {
  it('holds less strictly under the same token, and frees what that no longer keeps away', () => {
    const ns = world('a', 'b', 'c');
    const lease = ns.hold('a', leased('doc/1'), leased('doc/2/'));
    const reader = ns.queue('b', stable('doc/1'));
    const writer = ns.queue('c', leased('doc/2/x'));
    const after = ns.amended(lease, { downgrade: [stable('doc/1'), leased('doc/2')] });
    expect(entriesOf(after)).toEqual(['stable_read doc/1', 'write doc/2']);
    expect(after.entries.map(({ token }) => token)).toEqual(lease.entries.map(({ token }) => token));
    expect([ns.lease(reader).state, ns.lease(writer).state]).toEqual(['active', 'active']);
    const write = { resource: 'doc/1', action: 'replace', token: tokenOn(lease, 'doc/1') };
    expect(ns.check(lease, write).results[0]?.reason).toBe('not_covered');
    expect(entriesOf(ns.amended(lease, { downgrade: [read('doc/1')] }))).toEqual(['write doc/2', 'read doc/1']);
    expect(tokenOn(ns.lease(lease), 'doc/1')).toBe(0);
  });

  it('to fewer actions makes a leased write optimistic', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', { ...leased('doc/1'), actions: ['replace', 'patch'] });
    ns.amended(lease, { downgrade: [optimistic('doc/1')] });
    expect(ns.lease(lease).entries[0]).toMatchObject({ actions: ['patch'], exclusive: false });
    ns.hold('b', optimistic('doc/1'));
    const write = { resource: 'doc/1', token: tokenOn(lease, 'doc/1'), observedVersion: '1' };
    expect(ns.check(lease, { ...write, action: 'patch' }).allowed).toBe(true);
    expect(ns.check(lease, { ...write, action: 'replace' }).results[0]?.reason).toBe('action_not_allowed');
  });

  it('of an optimistic write to a stable read is granted like any other, since it keeps other writers away', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', optimistic('doc/1'), leased('doc/2'));
    const other = ns.hold('b', optimistic('doc/1'));
    expect(refusalOf(ns.amend(lease, { downgrade: [stable('doc/1')] }))).toMatchObject({ kind: 'held', grantable: [] });
    ns.release(other);
    const after = ns.amended(lease, { downgrade: [stable('doc/1')] });
    expect(tokenOn(after, 'doc/1')).toBeGreaterThan(tokenOn(lease, 'doc/1'));
  });

  it('without actions keeps those that are held', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/1/'));
    const after = ns.amended(lease, { downgrade: [{ ...leased('doc/1'), actions: [] }] });
    expect(after.entries[0]).toMatchObject({ scope: 'exact', actions: ['replace'], exclusive: true });
  });

  it('gives no more than is held', () => {
    const ns = world('a');
    const lease = ns.hold('a', optimistic('doc/1'), stable('doc/2'));
    for (const wanted of [leased('doc/1'), optimistic('doc/1/'), optimistic('doc/2')])
      expect(faultOf(() => ns.amend(lease, { downgrade: [wanted] }))).toMatchObject({
        reason: 'INVALID_ARGUMENT',
        details: { violations: [{ field: 'downgrade[0]' }] },
      });
    expect(faultOf(() => ns.amend(lease, { downgrade: [read('doc/3')] })).reason).toBe('ENTRY_NOT_HELD');
  });
});

describe('what is given up of a local kind', () => {
  it.each(['release', 'revoke', 'stop', 'take over'] as const)(
    'is in the time from which the end of the lease is in force, by %s (P3)',
    (how) => {
      const ns = world('a', 'b');
      const lease = ns.granted(ns.acquire('a', [leased('loc/1'), leased('doc/1')], { ttl: 300 * SECOND }));
      const given = ns.amend(lease, { remove: ['loc/1'] });
      if (given.kind !== 'amended') throw new Error('refused');
      ns.amended(lease, { add: [leased('doc/2')] });
      ns.advance(SECOND);
      const ended = {
        release: () => ns.release(lease).effectiveAt,
        revoke: () => ns.revoke(ns.lease(lease)).effectiveAt,
        stop: () => ns.stop('a').effectiveAt,
        'take over': () => {
          ns.takeOver('b', [leased('doc/1')]);
          return inForceAt(ns.state, [ns.lease(lease)]);
        },
      }[how]();
      expect(ended).toBe(given.effectiveAt);
      // Asked again it is no earlier.
      expect(ns.release(lease).effectiveAt).toBe(given.effectiveAt);
    },
  );

  it('is kept from others until nobody accepts its credentials, and the answer says until when (P3)', () => {
    const ns = world('a', 'b');
    const lease = ns.granted(ns.acquire('a', [leased('loc/1'), leased('loc/2')], { ttl: 300 * SECOND }));
    const answer = ns.amend(lease, { remove: ['loc/1'], downgrade: [stable('loc/2')] }, { key: 'once' });
    if (answer.kind !== 'amended') throw new Error('refused');
    const until = ns.state.time + 72 * SECOND;
    expect(answer.effectiveAt).toBe(until);
    expect(ns.decision.reliedOnAsFuture).toBe(ns.state.time + 2 * SECOND);
    for (const wanted of [leased('loc/1'), stable('loc/2')])
      expect(ns.refused(ns.acquire('b', [wanted]))).toMatchObject({ kind: 'lock_delay', retryAfter: until - ns.now });
    // The run itself may have it back, and others may not.
    expect(entriesOf(ns.amended(lease, { add: [leased('loc/1')] }))).toContain('write loc/1');
    ns.release(lease);
    ns.now = until - SECOND;
    const [waiting, other] = [ns.queue('b', leased('loc/2')), ns.acquire('b', [leased('loc/3')])];
    expect(other.kind).toBe('lease');
    ns.now = until + SECOND;
    expect(new DueTimes().isDue(ns.state, ns.now)).toBe(true);
    ns.sweep();
    expect(ns.lease(waiting).state).toBe('active');
    const again = ns.amend(lease, { remove: ['loc/1'], downgrade: [stable('loc/2')] }, { key: 'once' });
    expect(again).toMatchObject({ kind: 'amended', effectiveAt: until });
  });

  it('never longer than the lease would have lived', () => {
    const ns = world('a');
    const lease = ns.granted(ns.acquire('a', [leased('loc/1'), leased('doc/1')], { ttl: 20 * SECOND }));
    expect(ns.amend(lease, { remove: ['loc/1'] })).toMatchObject({ effectiveAt: endsAt(lease) });
    ns.stop('a');
    ns.advance(30 * SECOND).sweep();
    expect(locksIn(ns.state.held)).toEqual([]);
    expect(ns.state.delayedLeases).toBe(0);
  });

  it('is in no credential that is issued from then on', () => {
    const ns = world('a');
    const lease = ns.granted(ns.acquire('a', [leased('loc/1'), leased('loc/2')], { ttl: 300 * SECOND }));
    ns.amended(lease, { remove: ['loc/1'] });
    const issued = ns.issue(lease);
    const grants = issued?.kind === 'credential' ? issued.credential.scope.grants : [];
    expect(grants.flatMap(({ resources }) => resources)).toEqual(['loc/2']);
  });
});

describe('an amendment and other calls', () => {
  it('by one key is one amendment, and the key is of no other request (P6)', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/1'));
    const first = ns.amend(lease, { add: [leased('doc/2')] }, { key: 'k' });
    const again = ns.amend(lease, { add: [leased('doc/2')] }, { key: 'k' });
    expect(again).toEqual(first);
    expect(ns.kinds).toEqual([]);
    expect(faultOf(() => ns.amend(lease, { add: [leased('doc/3')] }, { key: 'k' })).reason).toBe(
      'IDEMPOTENCY_KEY_REUSED',
    );
    expect(faultOf(() => ns.amend(lease, { add: [leased('doc/3')] }, { key: lease.idempotencyKey })).reason).toBe(
      'IDEMPOTENCY_KEY_REUSED',
    );
    expect(faultOf(() => ns.releaseKey('a', 'k')).reason).toBe('KEY_NOT_OF_ACQUIRE');
  });

  it('a refusal binds no key', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', leased('doc/1'));
    const other = ns.hold('b', leased('doc/2'));
    expect(ns.amend(lease, { add: [leased('doc/2')] }, { key: 'k' }).kind).toBe('refusal');
    ns.release(other);
    expect(ns.amend(lease, { add: [leased('doc/2')] }, { key: 'k' }).kind).toBe('amended');
  });

  it('changes nothing of a lease that has ended, waits, or is another run’s', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', leased('doc/1'));
    const waiting = ns.queue('b', leased('doc/1'));
    expect(refusalOf(ns.amend(waiting, { add: [leased('doc/2')] })).kind).toBe('ended');
    expect(faultOf(() => ns.amend(lease, { add: [leased('doc/2')] }, { runId: 'b' })).reason).toBe('LEASE_NOT_FOUND');
    ns.now = endsAt(lease);
    expect(refusalOf(ns.amend(lease, { add: [leased('doc/2')] })).kind).toBe('ended');
    expect(ns.kinds).toContain('lease_ended');
    const next = ns.hold('a', leased('doc/3'));
    ns.stop('a');
    expect(refusalOf(ns.amend(next, { add: [leased('doc/4')] })).kind).toBe('ended');
  });

  it('is kept by a renewal, and a new map expands what it came to', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/1'));
    ns.renew(lease, { ttl: 120 * SECOND });
    const renewed = ns.lease(lease).expiresAt;
    ns.amended(lease, { add: [leased('deployment/eu')], remove: ['doc/1'] });
    expect(ns.lease(lease).expiresAt).toBe(renewed);
    ns.renew(lease, { ttl: 130 * SECOND });
    expect(entriesOf(ns.lease(lease))).toHaveLength(3);
    ns.putMap({
      ...DOCUMENT,
      implies: [
        ...(DOCUMENT.implies ?? []),
        {
          when: { pattern: 'image-tag/{env}', access: 'write' },
          touches: [{ resource: 'doc/{env}', access: 'stable_read' }],
        },
      ],
    });
    expect(entriesOf(ns.lease(lease))).toContain('stable_read doc/eu implies[1]');
    expect(entriesOf(ns.amended(lease, { remove: ['deployment/eu'], add: [leased('doc/9')] }))).toEqual([
      'write doc/9',
    ]);
    ns.release(lease);
    expect(locksIn(ns.state.held)).toEqual([]);
  });

  it('tells of changed inputs only for what is still read', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', read('doc/1'), read('doc/2'));
    ns.amended(lease, { remove: ['doc/1'] });
    expect(ns.state.inputs.readingLeases).toBe(1);
    ns.hold('b', leased('doc/1'));
    expect(ns.state.inputs.writes.size).toBe(0);
    ns.hold('b', leased('doc/2'));
    expect(ns.state.inputs.writes.size).toBe(1);
    ns.amended(lease, { remove: ['doc/2'], add: [leased('doc/3')] });
    expect(ns.state.inputs).toMatchObject({ readingLeases: 0 });
    expect(ns.state.inputs.writes.size).toBe(0);
    ns.amended(lease, { add: [read('doc/4')] });
    expect(ns.state.inputs.readingLeases).toBe(1);
    ns.release(lease);
    expect(ns.state.inputs.readingLeases).toBe(0);
  });

  it('is in the log as it was (P7)', () => {
    const ns = world('a', 'b');
    const lease = ns.granted(ns.acquire('a', [leased('loc/1'), leased('deployment/eu')], { ttl: 300 * SECOND }));
    ns.amended(lease, { add: [read('doc/1')], remove: ['loc/1'] });
    ns.amended(lease, { downgrade: [read('deployment/eu')] });
    const replayed = emptyState('test');
    for (const record of toRecords('test', 'batch', GENESIS, ns.events))
      evolve(replayed, decodeEvent(record), record.revision);
    expect(digestOf(replayed)).toBe(digestOf(ns.state));
  });
});
