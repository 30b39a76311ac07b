import { describe, expect, it } from 'vitest';
import { evolve } from '../../src/domain/evolve.js';
import type { Lease } from '../../src/domain/lease.js';
import { emptyState } from '../../src/domain/state.js';
import { SECOND } from '../../src/domain/time.js';
import { toRecords } from '../../src/engine/batch.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import { GENESIS } from '../../src/engine/replica-state.js';
import { type LeaseRow, leaseColumns, leaseFromRow, writeSetColumns } from '../../src/storage/postgres/lease-rows.js';
import { DOCUMENT, digestOf, leased, Namespace, optimistic, read, START, stable } from '../support/domain.js';

type Taken = ReturnType<Namespace['takeOver']>;

const world = (): Namespace => new Namespace().runs('a', 'b', 'c', 'fixer');

function taken(answer: Taken): Lease {
  if (answer.decided.kind !== 'lease' || answer.lease === undefined)
    throw new Error(`no lease, but ${JSON.stringify(answer.decided)}`);
  return answer.lease;
}

function refused(answer: Taken) {
  if (answer.decided.kind !== 'refusal') throw new Error(`no refusal, but ${answer.decided.kind}`);
  return answer.decided.refusal;
}

const endsOf = (answer: Taken) => answer.ended.map(({ leaseId, endReason }) => [leaseId, endReason]);

describe('a take-over', () => {
  it('ends the holders in the way and grants all of it, in one append', () => {
    const ns = world();
    const one = ns.hold('a', leased('doc/x'), leased('doc/other'));
    const other = ns.hold('b', optimistic('doc/y/z'));
    const spared = ns.hold('c', leased('doc/spared'));
    const answer = ns.takeOver('fixer', [leased('doc/x'), leased('doc/y/')]);
    const lease = taken(answer);
    expect(ns.kinds).toEqual(['write_set_taken_over', 'lease_ended', 'lease_ended', 'lease_granted']);
    expect(endsOf(answer).sort()).toEqual(
      [
        [one.leaseId, 'taken_over'],
        [other.leaseId, 'taken_over'],
      ].sort(),
    );
    expect(lease).toMatchObject({ runId: 'fixer', state: 'active', takeOver: { acceptsOverlap: false } });
    expect(lease.entries.every(({ token }) => token > (one.entries[0]?.token ?? 0))).toBe(true);
    expect(ns.check(lease, {}).allowed).toBe(true);
    expect(ns.check(one, {}).results[0]?.reason).toBe('taken_over');
    expect(ns.renew(one).refusal).toMatchObject({ kind: 'ended' });
    expect(ns.lease(spared).state).toBe('active');
    // What else they held is free.
    ns.hold('b', leased('doc/other'));
  });

  it('writes the ends first of what is over by its time, also of what is only observed (P1)', () => {
    const ns = world();
    const { leaseId } = ns.hold('a', leased('obs/x'));
    ns.advance(3_600 * SECOND);
    const lease = taken(ns.takeOver('fixer', [leased('obs/x')]));
    expect(ns.kinds).toEqual(['write_set_taken_over', 'lease_ended', 'lease_granted']);
    expect(ns.lease(leaseId).endReason).toBe('expired');
    expect(lease.takeOver?.ended).toEqual([]);
  });

  it('says in the log who did it, why and whom it ended', () => {
    const ns = world();
    const { leaseId } = ns.hold('a', leased('doc/x'));
    ns.takeOver('fixer', [leased('doc/x')], { reason: 'the run is stuck' });
    const [event] = ns.eventsOf('write_set_taken_over');
    expect(event).toMatchObject({
      actor: 'olga',
      runId: 'fixer',
      resources: ['doc/x'],
      body: { reason: 'the run is stuck', ended: [{ leaseId, runId: 'a' }], acceptsOverlap: false, overlaps: [] },
    });
    expect(ns.eventsOf('lease_ended')[0]?.body).toMatchObject({ endReason: 'taken_over', reason: 'the run is stuck' });
    expect(
      toRecords('test', 'batch', GENESIS, ns.events)
        .map(({ body }) => body)
        .join(),
    ).not.toContain('stuck');
  });

  it('goes before all who wait, and leaves them in their order behind it (P9)', () => {
    const ns = world();
    ns.hold('a', leased('doc/x'));
    const first = ns.queue('b', leased('doc/x'));
    const second = ns.queue('c', leased('doc/x'));
    const lease = taken(ns.takeOver('fixer', [leased('doc/x')]));
    expect([first, second].map((one) => ns.lease(one).state)).toEqual(['waiting', 'waiting']);
    ns.release(lease);
    expect([first, second].map((one) => ns.lease(one).state)).toEqual(['active', 'waiting']);
  });

  it('of what nobody holds is a grant that passes the queue', () => {
    const ns = world();
    ns.freeze('doc/y');
    ns.queue('b', leased('doc/y'), leased('doc/x'));
    const answer = ns.takeOver('fixer', [leased('doc/x')]);
    taken(answer);
    expect(answer.ended).toEqual([]);
  });

  it('gives whoever waited what of the ended leases it does not take', () => {
    const ns = world();
    ns.hold('a', leased('doc/x'), leased('doc/y'));
    const waiting = ns.queue('b', leased('doc/y'));
    taken(ns.takeOver('fixer', [leased('doc/x')]));
    expect(ns.lease(waiting).state).toBe('active');
  });

  it('writes the end of what is over by its time as that, and nothing else is taken over', () => {
    const ns = world();
    const old = ns.hold('a', leased('doc/x'));
    ns.now = old.expiresAt ?? 0;
    const answer = ns.takeOver('fixer', [leased('doc/x')]);
    taken(answer);
    expect([answer.ended, ns.lease(old).endReason]).toEqual([[], 'expired']);
    expect(ns.decision.reliedOnAsPast).toBe(old.expiresAt);
  });

  it('is one, however often it is asked for by its key, and says again whom it ended (P6)', () => {
    const ns = world();
    const { leaseId } = ns.hold('a', leased('doc/x'));
    const first = ns.takeOver('fixer', [leased('doc/x')], { key: 'k' });
    const again = ns.takeOver('fixer', [leased('doc/x')], { key: 'k' });
    expect(ns.kinds).toEqual([]);
    expect([taken(again).leaseId, endsOf(again)]).toEqual([taken(first).leaseId, [[leaseId, 'taken_over']]]);
    ns.release(taken(first));
    expect(taken(ns.takeOver('fixer', [leased('doc/x')], { key: 'k' })).state).toBe('ended');
    expect(() => ns.takeOver('fixer', [leased('doc/z')], { key: 'k' })).toThrow('another request');
    expect(() => ns.acquire('fixer', [leased('doc/x')], { key: 'k', fingerprint: 'acquire' })).toThrow(
      'another request',
    );
  });

  it('previewed ends nobody and tells whom it would', () => {
    const ns = world();
    const held = ns.hold('a', leased('doc/x'));
    const { lease, ended } = ns.previewTakeOver('fixer', leased('doc/x'));
    expect(lease?.entries).toMatchObject([{ resource: 'doc/x' }]);
    expect(ended.map(({ leaseId }) => leaseId)).toEqual([held.leaseId]);
    expect(ns.lease(held).state).toBe('active');
  });
});

describe('a take-over is refused, and ends nobody', () => {
  const x = [leased('doc/x')];
  it.each<[string, string, (ns: Namespace) => unknown, (ns: Namespace) => Taken]>([
    ['outside the contract', 'outside_contract', () => null, (ns) => ns.takeOver('narrow', x)],
    ['of a stopped run', 'run_ended', (ns) => ns.stop('fixer'), (ns) => ns.takeOver('fixer', x)],
    ['of a blocked run', 'run_blocked', (ns) => ns.update('fixer', 'blocked'), (ns) => ns.takeOver('fixer', x)],
    ['of what nobody described', 'undescribed', () => null, (ns) => ns.takeOver('fixer', [leased('nowhere/x')])],
    ['of what is frozen', 'frozen', (ns) => ns.freeze('doc/x'), (ns) => ns.takeOver('fixer', x)],
    [
      'before the start of a set',
      'lock_delay',
      () => null,
      (ns) => ns.takeOver('fixer', { entries: [], task: null, resourceSet: 'later' }, { wait: 3_599 * SECOND }),
    ],
    [
      'of what the run itself holds',
      'already_held',
      (ns) => ns.hold('fixer', leased('doc/w')),
      (ns) => ns.takeOver('fixer', [leased('doc/w'), leased('doc/x')]),
    ],
  ])('%s', (_, kind, before, ask) => {
    const ns = world();
    ns.run('narrow', { allowed: [{ pattern: 'dns/{env}', actions: ['*'] }] });
    const held = ns.hold('a', leased('doc/x'));
    before(ns);
    expect(refused(ask(ns)).kind).toBe(kind);
    expect(ns.lease(held).state).toBe('active');
    expect(ns.eventsOf('acquire_refused').at(-1)).toMatchObject({ actor: 'olga', body: { refusal: kind } });
    expect(ns.eventsOf('write_set_taken_over')).toEqual([]);
  });

  it('of a kind that is closed to writes or only proposed to', () => {
    for (const [authority, kind] of [
      ['forbid', 'forbidden'],
      ['propose', 'propose_only'],
    ] as const) {
      const kinds = DOCUMENT.kinds?.map((one) => (one.pattern === 'dns/{env}' ? { ...one, authority } : one)) ?? [];
      const ns = new Namespace({ ...DOCUMENT, kinds }).runs('fixer');
      expect(refused(ns.takeOver('fixer', [leased('dns/prod')])).kind).toBe(kind);
    }
  });

  it('says of a freeze what to do', () => {
    const ns = world();
    ns.freeze('doc/{id}');
    const { resolution, freezes } = refused(ns.takeOver('fixer', [leased('doc/x')]));
    expect([resolution.who, freezes.length]).toEqual(['operator', 1]);
    expect(resolution.action).toContain('writ thaw');
  });

  it('for a run that is not there', () => {
    const ns = world();
    ns.loaded = { ...ns.loaded, runs: new Map([['nobody', null]]) };
    expect(() => ns.takeOver('nobody', [leased('doc/x')])).toThrow('There is no run');
  });

  it('when it would end more than one append can hold', () => {
    const ns = new Namespace();
    ns.run('many', { authorityEndsAt: START + 86_400 * SECOND });
    ns.bounds = { ...ns.bounds, maxLeasesPerRun: 2_000 };
    for (let index = 0; index <= 1_000; index += 1) ns.hold('many', leased(`doc/x/${index}`));
    ns.runs('fixer');
    expect(refused(ns.takeOver('fixer', [leased('doc/x/')])).kind).toBe('limit');
    expect(ns.state.activeLeases).toBe(1_001);
  });
});

describe('what nobody can end', () => {
  it('is not taken without waiting: nobody is ended, and the refusal says what would remain', () => {
    const ns = world();
    const local = ns.hold('a', leased('loc/x'));
    const refusal = refused(ns.takeOver('fixer', [leased('loc/x')]));
    expect(refusal).toMatchObject({ kind: 'lock_delay', resolution: { who: 'operator' }, blockers: [{ runId: 'a' }] });
    expect(refusal.message).toMatch(/Nobody was ended/);
    expect(ns.lease(local).state).toBe('active');
  });

  it('is waited for in the first place, and the holders end at once', () => {
    const ns = world();
    // Short, so that nobody has to call again meanwhile.
    ns.bounds = { ...ns.bounds, credentialLife: SECOND, credentialTolerance: 0, maxClockSkew: SECOND };
    const local = ns.hold('a', leased('loc/x'));
    const before = ns.queue('b', leased('loc/x'));
    const answer = ns.takeOver('fixer', [leased('loc/x')], { wait: 600 * SECOND, key: 'k' });
    expect(answer).toMatchObject({ decided: { kind: 'waiting' }, waitsFor: { kind: 'lock_delay' } });
    expect(endsOf(answer)).toEqual([[local.leaseId, 'taken_over']]);
    expect(ns.check(local, {}).allowed).toBe(false);
    const later = ns.queue('c', leased('loc/x'));
    expect(ns.takeOver('fixer', [leased('loc/x')], { wait: 600 * SECOND, key: 'k' }).decided.kind).toBe('waiting');
    ns.now = ns.lease(local).lockDelay?.until ?? 0;
    ns.sweep();
    const states = [answer.lease ?? '', before, later].map((one) => ns.lease(one).state);
    expect(states).toEqual(['active', 'waiting', 'waiting']);
  });

  it('is waited for, and its run passes at once who waits for it from then on (P9)', () => {
    const ns = new Namespace().runs('a', 'b', 'c', 'd');
    ns.hold('c', stable('doc/y'));
    ns.queue('b', leased('doc/y'));
    const behind = ns.queue('a', stable('doc/y'));
    ns.issue(ns.hold('d', leased('loc/z')));
    ns.queue('b', leased('loc/z'));
    expect(ns.lease(behind).state).toBe('waiting');
    expect(ns.takeOver('a', [leased('loc/z')], { wait: 600 * SECOND }).decided.kind).toBe('waiting');
    expect(ns.lease(behind).state).toBe('active');
  });

  it('is gone over when the operator accepts the overlap, and the log says over what', () => {
    const ns = world();
    const local = ns.hold('a', leased('loc/x'));
    const lease = taken(ns.takeOver('fixer', [leased('loc/x')], { acceptsOverlap: true }));
    expect(lease.takeOver).toEqual({ ended: [local.leaseId], acceptsOverlap: true });
    expect(ns.eventsOf('write_set_taken_over')[0]?.body).toMatchObject({
      acceptsOverlap: true,
      overlaps: [
        { leaseId: local.leaseId, runId: 'a', resource: 'loc/x', lockDelayUntil: ns.lease(local).lockDelay?.until },
      ],
    });
    // The delay goes on for everybody else.
    ns.release(lease);
    expect(ns.refused(ns.acquire('b', [leased('loc/x')])).kind).toBe('lock_delay');
  });

  it('is also what lost history may have granted, of which nobody knows whose it was', () => {
    const ns = world();
    ns.loseHistory();
    ns.update('fixer', 'active', { asOperator: true });
    expect(refused(ns.takeOver('fixer', [leased('loc/x')])).kind).toBe('lock_delay');
    taken(ns.takeOver('fixer', [leased('loc/x')], { acceptsOverlap: true }));
    const { localKindsFrom } = ns.state;
    expect(ns.eventsOf('write_set_taken_over')[0]?.body.overlaps).toMatchObject([
      { leaseId: '', resource: 'loc/x', lockDelayUntil: localKindsFrom },
    ]);
  });

  describe('a tracked write that is open', () => {
    const tracked = (): { ns: Namespace; held: Lease } => {
      const kinds = DOCUMENT.kinds?.map((kind) =>
        kind.pattern === 'doc/{id...}'
          ? { ...kind, actions: { replace: { access: 'write', concurrency: 'lease', tracked: true } as const } }
          : kind,
      );
      const ns = new Namespace({ ...DOCUMENT, kinds: kinds ?? [] }).runs('a', 'b', 'fixer');
      const held = ns.hold('a', leased('doc/x'));
      ns.letIn(held, 'doc/x');
      return { ns, held };
    };

    it('keeps it from the new run too, until its outcome is known', () => {
      const { ns, held } = tracked();
      expect(refused(ns.takeOver('fixer', [leased('doc/x')])).kind).toBe('in_doubt');
      expect(ns.lease(held).state).toBe('active');
      const waiting = ns.takeOver('fixer', [leased('doc/x')], { wait: 60 * SECOND });
      expect(waiting).toMatchObject({ decided: { kind: 'waiting' }, waitsFor: { kind: 'in_doubt' } });
      const [doubt] = [...ns.state.admissions.values()];
      ns.settle(doubt?.admissionId ?? '', true);
      expect(ns.lease(waiting.lease?.leaseId ?? '').state).toBe('active');
    });

    it('is gone over when the operator accepts that, and the new run may write', () => {
      const { ns, held } = tracked();
      const lease = taken(ns.takeOver('fixer', [leased('doc/x')], { acceptsOverlap: true }));
      expect(ns.check(lease, {}).results[0]?.reason).toBe('ok');
      expect(ns.state.inDoubt).toBe(1);
      expect(ns.eventsOf('write_set_taken_over')[0]?.body.overlaps).toMatchObject([
        { leaseId: held.leaseId, resource: 'doc/x', lockDelayUntil: null },
      ]);
      ns.release(lease);
      expect(ns.refused(ns.acquire('b', [leased('doc/x')])).kind).toBe('in_doubt');
    });
  });
});

describe('a stop', () => {
  it('that came first leaves nothing to take over (F14), and one that comes later ends it', () => {
    const ns = world();
    const lease = taken(ns.takeOver('fixer', [leased('doc/x')]));
    ns.stop('fixer');
    expect(ns.check(lease, {}).results[0]?.reason).toBe('run_stopped');
    expect(refused(ns.takeOver('fixer', [leased('doc/x')])).kind).toBe('run_ended');
  });

  it('ends one that waits', () => {
    const ns = world();
    ns.hold('a', leased('loc/x'));
    const { lease } = ns.takeOver('fixer', [leased('loc/x')], { wait: 60 * SECOND });
    ns.stop('fixer');
    expect(ns.lease(lease?.leaseId ?? '')).toMatchObject({ state: 'ended', endReason: 'run_stopped' });
  });
});

it('a plain read is not in the way, nor is it ended', () => {
  const ns = world();
  const reader = ns.hold('a', read('doc/x'));
  const answer = ns.takeOver('fixer', [leased('doc/x')]);
  taken(answer);
  expect([answer.ended, ns.lease(reader).state]).toEqual([[], 'active']);
});

it('is the same after the log, and the rows, are read again', () => {
  const ns = world();
  ns.hold('a', leased('loc/x'));
  const { lease } = ns.takeOver('fixer', [leased('loc/x')], { wait: 60 * SECOND });
  const state = emptyState('test');
  for (const record of toRecords('test', 'batch', GENESIS, ns.events))
    evolve(state, decodeEvent(record), record.revision);
  expect(digestOf(state)).toBe(digestOf(ns.state));
  const kept = ns.lease(lease?.leaseId ?? '');
  const row = { ...leaseColumns(kept), ...writeSetColumns(kept) } as unknown as LeaseRow;
  expect(leaseFromRow(row)).toEqual(kept);
});
