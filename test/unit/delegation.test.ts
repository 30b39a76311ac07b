import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import { beyondParent, newlyMet } from '../../src/domain/delegation.js';
import { evolve, insert, insertRun } from '../../src/domain/evolve.js';
import { Fault } from '../../src/domain/fault.js';
import { endsAt, type Lease, underLockDelay } from '../../src/domain/lease.js';
import { emptyState } from '../../src/domain/state.js';
import { MILLISECOND, SECOND } from '../../src/domain/time.js';
import { toRecords } from '../../src/engine/batch.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import { GENESIS } from '../../src/engine/replica-state.js';
import { type LeaseRow, leaseColumns, leaseFromRow, writeSetColumns } from '../../src/storage/postgres/lease-rows.js';
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
import { covers } from '../support/oracle/entry.js';
import { universeOf } from '../support/oracle/write-sets.js';
import { sampleEntry, sampleLease } from '../support/sample-records.js';

const TRACKED: ConflictMapDocument = {
  version: 1,
  kinds: [
    {
      pattern: 'doc/{id...}',
      actions: {
        replace: { access: 'write', concurrency: 'lease', tracked: true },
        patch: { access: 'write', tracked: true },
      },
    },
  ],
};

/** Run `p` with a child `c`, whose child is `g`, a second child `d`, and others of other principals. */
function family(document: ConflictMapDocument = DOCUMENT): Namespace {
  const ns = new Namespace(document).runs('other', 'third');
  const principal = 'principal-of-family';
  ns.run('p', { principal });
  for (const [runId, parentRunId] of [
    ['c', 'p'],
    ['d', 'p'],
    ['g', 'c'],
  ] as const)
    ns.run(runId, { principal, parentRunId });
  return ns;
}

const suspendedOf = (lease: Lease): string[] =>
  lease.entries.filter(({ suspended }) => suspended).map(({ resource }) => resource);

const reasonOf = (ns: Namespace, lease: Lease, resource: string, token = tokenOn(lease, resource)) =>
  ns.check(lease, { resource, action: 'replace', token }).results[0]?.reason;

function faultOf(work: () => unknown): Fault {
  try {
    work();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

describe('a part of a lease', () => {
  it('is held by a child run, while the parent is suspended there and nowhere else (P1, P2, P3)', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1'), leased('doc/2'));
    const part = ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole }));
    expect(ns.kinds).toEqual(['lease_granted', 'lease_amended']);
    expect(part).toMatchObject({ delegatedFrom: whole.leaseId, runId: 'c' });
    expect(tokenOn(part, 'doc/1')).toBeGreaterThan(tokenOn(whole, 'doc/1'));
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/1']);
    expect(ns.lease(whole).generation).toBe(2);
    expect(reasonOf(ns, whole, 'doc/1')).toBe('suspended');
    expect(reasonOf(ns, whole, 'doc/2')).toBe('ok');
    expect(reasonOf(ns, part, 'doc/1')).toBe('ok');
    // Nobody else, and not the parent's or the child's other leases either.
    expect(ns.refused(ns.acquire('other', [leased('doc/1')])).kind).toBe('held');
    expect(ns.refused(ns.acquire('d', [leased('doc/1')])).kind).toBe('held');
    expect(ns.refused(ns.acquire('c', [leased('doc/2')])).kind).toBe('held');
  });

  it.each(['release', 'revoke', 'expiry', 'stop', 'finish'] as const)(
    'comes back with a new token in the same append, by %s (P2)',
    (how) => {
      const ns = family();
      const whole = ns.granted(ns.acquire('p', [leased('doc/1'), leased('doc/2')], { ttl: 200 * SECOND }));
      const part = ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole, ttl: 60 * SECOND }));
      if (how === 'release') ns.release(part);
      else if (how === 'revoke') ns.revoke(part);
      else if (how === 'stop') ns.stop('c');
      else if (how === 'finish') ns.update('c', 'finished');
      else ns.advance(61 * SECOND).sweep();
      expect(ns.kinds.slice(-2)).toEqual(['lease_ended', 'lease_amended']);
      const back = ns.lease(whole);
      expect(suspendedOf(back)).toEqual([]);
      expect(tokenOn(back, 'doc/1')).toBeGreaterThan(tokenOn(part, 'doc/1'));
      expect(tokenOn(back, 'doc/2')).toBe(tokenOn(whole, 'doc/2'));
      expect(back.generation).toBe(3);
      expect(reasonOf(ns, back, 'doc/1', tokenOn(whole, 'doc/1'))).toBe('stale_token');
      expect(reasonOf(ns, back, 'doc/1')).toBe('ok');
      expect(reasonOf(ns, part, 'doc/1')).not.toBe('ok');
      expect(ns.state.delegations.size).toBe(0);
    },
  );

  it('is within the whole: resources at or below, access no stronger, actions no others', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1/'), optimistic('doc/2'), stable('doc/3'), leased('deployment/eu'));
    const ask = (...entries: Parameters<Namespace['hold']>[1][]) => ns.acquire('c', entries, { of: whole });
    for (const beyond of [
      leased('doc/2'),
      optimistic('doc/1/x'),
      leased('doc/3'),
      optimistic('doc/3'),
      leased('doc/'),
      leased('doc/4'),
      // It keeps away the writers that stand beside the parent's.
      stable('doc/2'),
    ])
      expect(ns.refused(ask(beyond))).toMatchObject({ kind: 'outside_contract', resource: beyond.resource });
    const part = ns.granted(ask(leased('doc/1/x/'), stable('doc/3'), leased('deployment/eu'), read('doc/2')));
    expect(part.entries).toHaveLength(6);
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/1', 'doc/3', 'deployment/eu', 'image-tag/eu', 'dns/eu']);
    // One entry has one token: all of it is suspended, though the child holds only some.
    expect(reasonOf(ns, whole, 'doc/1/y', tokenOn(whole, 'doc/1'))).toBe('suspended');
  });

  it('is of a live lease of the run that is the parent, and of no other', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1'));
    const foreign = ns.hold('other', leased('doc/2'));
    for (const [runId, of] of [
      ['c', foreign],
      ['g', whole],
      ['other', whole],
      ['p', whole],
    ] as const)
      expect(faultOf(() => ns.acquire(runId, [leased('doc/1')], { of })).reason).toBe('LEASE_NOT_FOUND');
    const waiting = ns.queue('p', leased('doc/2'));
    expect(ns.refused(ns.acquire('c', [leased('doc/2')], { of: waiting })).kind).toBe('ended');
    ns.release(whole);
    expect(ns.refused(ns.acquire('c', [leased('doc/1')], { of: whole })).kind).toBe('ended');
    const last = ns.hold('p', leased('doc/3'));
    ns.now = endsAt(last);
    expect(ns.refused(ns.acquire('c', [leased('doc/3')], { of: last })).kind).toBe('ended');
  });

  it('never outlives the whole, and may be renewed as far as that is (P5)', () => {
    const ns = family();
    const whole = ns.granted(ns.acquire('p', [leased('doc/1')], { ttl: 60 * SECOND }));
    const part = ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole, ttl: 300 * SECOND }));
    expect(part.expiresAt).toBe(whole.expiresAt);
    expect(part.maxExpiresAt).toBe(whole.maxExpiresAt);
    expect(ns.decision.reliedOnAsFuture).toBe(endsAt(whole));
    ns.advance(10 * SECOND);
    expect(ns.renew(part, { ttl: 300 * SECOND }).refusal).toBeNull();
    expect(ns.lease(part).expiresAt).toBe(whole.expiresAt);
    ns.renew(whole, { ttl: 100 * SECOND });
    ns.renew(part, { ttl: 300 * SECOND });
    expect(ns.lease(part).expiresAt).toBe(ns.lease(whole).expiresAt);
    ns.now = endsAt(ns.lease(whole)) - 100 * MILLISECOND;
    expect(ns.renew(part).refusal?.kind).toBe('too_late');
  });

  it.each(['release', 'revoke', 'stop', 'finish', 'expiry'] as const)(
    'ends before the whole does, with all below it, by %s of the parent',
    (how) => {
      const ns = family();
      const whole = ns.hold('p', leased('doc/1/'));
      const part = ns.granted(ns.acquire('c', [leased('doc/1/x/')], { of: whole }));
      const deeper = ns.granted(ns.acquire('g', [leased('doc/1/x/y')], { of: part }));
      const waiting = ns.waiting(ns.acquire('other', [leased('doc/1/x/y')], { wait: 3_600 * SECOND }));
      if (how === 'release') ns.release(whole);
      else if (how === 'revoke') ns.revoke(whole);
      else if (how === 'stop') ns.stop('p');
      else if (how === 'finish') ns.update('p', 'finished');
      else {
        ns.state.leases.set(waiting.leaseId, {
          ...ns.lease(waiting),
          waiting: { ...(waiting.waiting as NonNullable<Lease['waiting']>), attachedUntil: Number.MAX_SAFE_INTEGER },
        });
        ns.now = endsAt(whole);
        ns.sweep();
      }
      const ended = ns.last.filter(({ body }) => body.kind === 'lease_ended').map(({ leaseId }) => leaseId);
      expect(ended).toEqual([deeper.leaseId, part.leaseId, whole.leaseId]);
      expect(ns.kinds).not.toContain('lease_amended');
      const reason = how === 'expiry' ? 'expired' : 'parent_ended';
      expect([ns.lease(part).endReason, ns.lease(deeper).endReason]).toEqual([reason, reason]);
      expect(reasonOf(ns, deeper, 'doc/1/x/y')).toBe(reason);
      expect(ns.lease(waiting).state).toBe('active');
      expect(ns.state.delegations.size).toBe(0);
      ns.stop('other');
      expect(locksIn(ns.state.held)).toEqual([]);
    },
  );

  it('comes back to nobody whose own run is stopped in the same append (P6)', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1/'));
    const part = ns.granted(ns.acquire('c', [leased('doc/1/x/')], { of: whole }));
    ns.granted(ns.acquire('g', [leased('doc/1/x/y')], { of: part }));
    ns.stop('c');
    const amended = ns.last.filter(({ body }) => body.kind === 'lease_amended').map(({ leaseId }) => leaseId);
    expect(amended).toEqual([whole.leaseId]);
    expect(suspendedOf(ns.lease(whole))).toEqual([]);
  });

  it('can be delegated further: what ends comes back one level up', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1/'));
    const part = ns.granted(ns.acquire('c', [leased('doc/1/x/')], { of: whole }));
    const deeper = ns.granted(ns.acquire('g', [leased('doc/1/x/y')], { of: part }));
    expect([suspendedOf(ns.lease(whole)), suspendedOf(ns.lease(part))]).toEqual([['doc/1'], ['doc/1/x']]);
    ns.release(deeper);
    expect([suspendedOf(ns.lease(whole)), suspendedOf(ns.lease(part))]).toEqual([['doc/1'], []]);
    expect(tokenOn(ns.lease(part), 'doc/1/x')).toBeGreaterThan(tokenOn(deeper, 'doc/1/x/y'));
    expect(reasonOf(ns, ns.lease(part), 'doc/1/x')).toBe('ok');
  });

  it('of several children: the entry comes back with the last of them', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1/'));
    const [one, two] = [
      ns.granted(ns.acquire('c', [leased('doc/1/x')], { of: whole })),
      ns.granted(ns.acquire('d', [leased('doc/1/y')], { of: whole })),
    ];
    expect(ns.refused(ns.acquire('d', [leased('doc/1/x')], { of: whole })).kind).toBe('held');
    const after = ns.waiting(ns.acquire('d', [leased('doc/1/x')], { of: whole, wait: 60 * SECOND }));
    ns.release(one);
    expect(ns.lease(after).state).toBe('active');
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/1']);
    ns.release(after);
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/1']);
    ns.release(two);
    expect(suspendedOf(ns.lease(whole))).toEqual([]);
  });

  it('passes whoever waits for the whole, and is nobody’s reason to yield (P9)', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1'));
    const waiting = ns.queue('other', leased('doc/1'));
    const part = ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole }));
    ns.release(part);
    expect(ns.lease(waiting).state).toBe('waiting');
    ns.release(whole);
    expect(ns.lease(waiting).state).toBe('active');
  });

  it('does not wait behind who came before it, who may therefore wait for its run (P9)', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1/'));
    const part = ns.granted(ns.acquire('c', [leased('doc/1/x')], { of: whole }));
    ns.hold('d', leased('doc/9'));
    const before = ns.queue('other', leased('doc/1/x'));
    const asked = ns.waiting(ns.acquire('d', [leased('doc/1/x')], { of: whole, wait: 60 * SECOND }));
    // d waits for c alone, though its place is behind that of the other run.
    const after = ns.waiting(ns.acquire('other', [leased('doc/9')], { wait: 60 * SECOND }));
    ns.release(part);
    expect(ns.lease(asked).state).toBe('active');
    ns.stop('d');
    expect(ns.lease(after).state).toBe('active');
    ns.release(whole);
    expect(ns.lease(before).state).toBe('active');
  });

  it('waits for what a sibling holds, and closes no circle by what it is a part of (P9)', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1/'));
    const one = ns.granted(ns.acquire('c', [leased('doc/1/x')], { of: whole }));
    const own = ns.hold('d', leased('doc/9'));
    const asked = ns.waiting(ns.acquire('d', [leased('doc/1/x')], { of: whole, wait: 60 * SECOND }));
    // d asks for a part of what p holds: p may wait for d.
    expect(ns.acquire('p', [leased('doc/9')], { wait: 60 * SECOND }).kind).toBe('waiting');
    // But d waits for c, and c would wait for d.
    expect(ns.refused(ns.acquire('c', [leased('doc/9')], { wait: 60 * SECOND })).kind).toBe('deadlock');
    ns.release(one);
    expect(ns.lease(asked).state).toBe('active');
    ns.release(own);
  });

  it('is not given where a tracked write of the parent is open, until its outcome is known (R4, P8)', () => {
    const ns = family(TRACKED);
    const whole = ns.hold('p', leased('doc/1'), leased('doc/2'));
    const open = ns.letIn(whole, 'doc/1');
    expect(ns.refused(ns.acquire('c', [leased('doc/1')], { of: whole, wait: 60 * SECOND }))).toMatchObject({
      kind: 'in_doubt',
      resource: 'doc/1',
    });
    expect(suspendedOf(ns.lease(whole))).toEqual([]);
    ns.granted(ns.acquire('c', [leased('doc/2')], { of: whole }));
    ns.report([{ admissionId: open.admissionId, resource: 'doc/1', action: 'replace' }]);
    const part = ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole }));
    // What the child leaves open is in doubt for the parent too.
    ns.letIn(part, 'doc/1');
    ns.release(part);
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/2']);
  });

  it('ends with everything when history is lost', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1'));
    const part = ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole }));
    ns.loseHistory();
    expect([ns.lease(whole).endReason, ns.lease(part).endReason]).toEqual(['database_changed', 'database_changed']);
    expect(ns.state.delegations.size).toBe(0);
    expect(locksIn(ns.state.held)).toEqual([]);
  });

  it('by one key is one part (P6)', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1'));
    const part = ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole, key: 'k', fingerprint: 'f' }));
    const again = ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole, key: 'k', fingerprint: 'f' }));
    expect(again).toEqual(part);
    expect(ns.kinds).toEqual([]);
  });
});

describe('a part of what targets do not ask about', () => {
  const LONG = 300 * SECOND;

  it('is granted when no target believes the parent any more, and comes back when none believes the child (P3)', () => {
    const ns = family();
    const whole = ns.granted(ns.acquire('p', [leased('loc/1'), leased('doc/1')], { ttl: LONG }));
    const now = ns.refused(ns.acquire('c', [leased('loc/1')], { of: whole }));
    expect(now).toMatchObject({ kind: 'lock_delay', retryAfter: 72 * SECOND });
    expect(suspendedOf(ns.lease(whole))).toEqual([]);
    const asked = ns.acquire('c', [leased('loc/1')], { of: whole, wait: 200 * SECOND, key: 'k', fingerprint: 'f' });
    ns.waiting(asked);
    expect(suspendedOf(ns.lease(whole))).toEqual(['loc/1']);
    const until = ns.state.time + 72 * SECOND;
    const call = () =>
      ns.acquire('c', [leased('loc/1')], { of: whole, wait: 200 * SECOND, key: 'k', fingerprint: 'f' });
    while (ns.now < until - 8 * SECOND) {
      ns.advance(8 * SECOND);
      ns.renew(whole, { ttl: LONG });
      ns.sweep();
      expect(ns.waiting(call()).state).toBe('waiting');
    }
    ns.now = until;
    ns.sweep();
    const part = ns.granted(call());
    expect(part.state).toBe('active');
    ns.renew(whole, { ttl: LONG });
    ns.renew(part, { ttl: LONG });
    const end = ns.release(part);
    expect(end.effectiveAt).toBe(ns.state.time + 72 * SECOND);
    // The whole stays suspended there: a target may still let the child write.
    expect(suspendedOf(ns.lease(whole))).toEqual(['loc/1']);
    expect(underLockDelay(ns.lease(part))).toBe(true);
    ns.now = end.effectiveAt;
    ns.sweep();
    expect(ns.kinds).toEqual(['lock_delay_ended', 'lease_amended']);
    expect(suspendedOf(ns.lease(whole))).toEqual([]);
    expect(tokenOn(ns.lease(whole), 'loc/1')).toBeGreaterThan(tokenOn(part, 'loc/1'));
  });

  it('that is not waited for any more comes back at once', () => {
    const ns = family();
    const whole = ns.granted(ns.acquire('p', [leased('loc/1')], { ttl: LONG }));
    const asked = ns.waiting(ns.acquire('c', [leased('loc/1')], { of: whole, wait: 200 * SECOND }));
    ns.release(asked);
    expect(ns.kinds).toEqual(['lease_ended', 'lease_amended']);
    expect(suspendedOf(ns.lease(whole))).toEqual([]);
    expect(ns.refused(ns.acquire('other', [leased('loc/1')])).kind).toBe('held');
    const end = ns.release(whole);
    expect(end.effectiveAt).toBeGreaterThan(ns.now);
  });

  it('is in no credential of the parent meanwhile (P10)', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1'), leased('doc/2'));
    ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole }));
    const issued = ns.issue(whole);
    const grants = issued?.kind === 'credential' ? issued.credential.scope.grants : [];
    expect(grants.flatMap(({ resources }) => resources)).toEqual(['doc/2']);
  });

  it('the end of the whole is in force when that of the part is', () => {
    const ns = family();
    const whole = ns.granted(ns.acquire('p', [leased('loc/1'), leased('doc/1')], { ttl: LONG }));
    ns.waiting(ns.acquire('c', [leased('loc/1')], { of: whole, wait: 200 * SECOND }));
    const end = ns.release(whole);
    expect(end.effectiveAt).toBe(ns.state.time + 72 * SECOND);
    expect(ns.refused(ns.acquire('other', [leased('loc/1')])).kind).toBe('lock_delay');
  });
});

describe('amendments and changes of the map', () => {
  it('keep what a child run holds a part of, and take nothing more into a part', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1'), leased('doc/2'));
    const part = ns.granted(ns.acquire('c', [leased('doc/1'), leased('doc/2')], { of: whole }));
    const kept = ns.amend(whole, { remove: ['doc/1'] });
    expect(kept).toMatchObject({ kind: 'refusal', refusal: { kind: 'held', resource: 'doc/1' } });
    expect(ns.amend(part, { add: [leased('doc/3')] })).toMatchObject({ refusal: { kind: 'outside_contract' } });
    ns.amended(part, { remove: ['doc/1'] });
    expect(ns.kinds).toEqual(['lease_amended', 'lease_amended']);
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/2']);
    expect(tokenOn(ns.lease(whole), 'doc/1')).toBeGreaterThan(tokenOn(part, 'doc/1'));
    ns.amended(whole, { add: [leased('doc/4')], remove: ['doc/1'] });
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/2']);
  });

  it('suspend nothing for what a part was only observed to be refused (C14)', () => {
    const rule = { between: ['doc/{id...}', 'obs/{id...}'] as [string, string] };
    const kinds = (DOCUMENT.kinds ?? []).map((kind) =>
      kind.pattern === 'obs/{id...}' ? { ...kind, authority: 'forbid' as const } : kind,
    );
    const ns = family({ ...DOCUMENT, kinds, conflicts: [rule] });
    const whole = ns.hold('p', leased('doc/1'), leased('doc/2'), leased('obs/1'));
    const part = ns.granted(ns.acquire('c', [leased('doc/2'), leased('obs/1')], { of: whole }));
    expect(part.entries[1]?.observedRefusal).toBe('forbidden');
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/2']);
    expect(ns.check(whole, { resource: 'doc/1' }).allowed).toBe(true);
  });

  it('suspend what a new rule makes the two meet on, and nothing is in conflict by that', () => {
    const ns = family();
    const whole = ns.hold('p', leased('doc/1'), leased('dns/eu'));
    ns.granted(ns.acquire('c', [leased('doc/1')], { of: whole }));
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/1']);
    const rule = { between: ['doc/{id...}', 'dns/{env}'] as [string, string] };
    const { affected } = ns.putMap({ ...DOCUMENT, conflicts: [...(DOCUMENT.conflicts ?? []), rule] });
    expect(affected.every(({ conflictsWith }) => conflictsWith.length === 0)).toBe(true);
    expect(suspendedOf(ns.lease(whole))).toEqual(['doc/1', 'dns/eu']);
    const implied = {
      when: { pattern: 'doc/{id}', access: 'write' as const },
      touches: [{ resource: 'integration-config/{id}', access: 'write' as const, actions: ['patch'] }],
    };
    ns.putMap({ ...DOCUMENT, implies: [...(DOCUMENT.implies ?? []), implied], conflicts: [rule] });
    expect(suspendedOf(ns.lease(whole))).toContain('integration-config/1');
  });
});

describe('what a replica knows', () => {
  it('is the same from the log and from the projections (P7)', () => {
    const ns = family();
    const whole = ns.granted(ns.acquire('p', [leased('loc/1'), leased('doc/1/')], { ttl: 300 * SECOND }));
    const part = ns.granted(ns.acquire('c', [leased('doc/1/x/')], { of: whole }));
    ns.granted(ns.acquire('g', [leased('doc/1/x/y')], { of: part }));
    ns.waiting(ns.acquire('d', [leased('loc/1')], { of: whole, wait: 200 * SECOND }));
    const replayed = emptyState('test');
    for (const record of toRecords('test', 'batch', GENESIS, ns.events))
      evolve(replayed, decodeEvent(record), record.revision);
    expect(digestOf(replayed)).toBe(digestOf(ns.state));
    const loaded = emptyState('test');
    const { revision, time, mapVersion, map } = ns.state;
    Object.assign(loaded, { revision, time, mapVersion, map });
    for (const run of ns.state.runs.values()) insertRun(loaded, run);
    for (const lease of ns.state.leases.values()) {
      const row = { ...leaseColumns(lease), ...writeSetColumns(lease) } as unknown as LeaseRow;
      insert(loaded, leaseFromRow(row), null);
    }
    expect(digestOf(loaded)).toBe(digestOf(ns.state));
  });
});

describe('of any two write sets', () => {
  const PATHS = ['a', 'a/b', 'a/b/c', 'a/d', 'e'];
  const UNIVERSE = universeOf(PATHS, 3);
  const entry = fc
    .record({
      resource: fc.constantFrom(...PATHS),
      access: fc.constantFrom('read', 'stable_read', 'write'),
      scope: fc.constantFrom('exact', 'subtree'),
      actions: fc.subarray(['replace', 'patch']),
    })
    .map(({ access, actions, ...rest }) => {
      const verbs = access === 'write' ? actions : [];
      return sampleEntry({ ...rest, access, actions: verbs, exclusive: verbs.includes('replace') });
    });
  const entries = fc.array(entry, { minLength: 1, maxLength: 4 });
  const RANK = { read: 0, stable_read: 1, write: 2 };

  it('the one lies within the other if each entry does, everywhere that it reaches', () => {
    fc.assert(
      fc.property(entries, entries, (held, asked) => {
        const isWithin = asked.every((inner) =>
          held.some(
            (outer) =>
              UNIVERSE.every((resource) => !covers(inner, resource) || covers(outer, resource)) &&
              RANK[inner.access] <= RANK[outer.access] &&
              inner.actions.every((action) => outer.actions.includes(action)) &&
              // A stable read keeps optimistic writers away, who stand beside each other.
              (inner.access !== 'stable_read' || outer.access !== 'write' || outer.exclusive),
          ),
        );
        expect(beyondParent(sampleLease({ entries: held }), asked) === undefined).toBe(isWithin);
      }),
      { numRuns: 1_000 },
    );
  });

  it('the one is suspended where both reach one resource, and neither only reads', () => {
    fc.assert(
      fc.property(entries, entries, (held, asked) => {
        const met = held.filter((outer) =>
          asked.some(
            (inner) =>
              inner.access !== 'read' &&
              outer.access !== 'read' &&
              UNIVERSE.some((resource) => covers(inner, resource) && covers(outer, resource)),
          ),
        );
        expect(newlyMet(sampleLease({ entries: held }), { entries: asked, ruleLocks: [] })).toEqual(met);
      }),
      { numRuns: 1_000 },
    );
  });
});
