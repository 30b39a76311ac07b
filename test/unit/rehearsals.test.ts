import { describe, expect, it } from 'vitest';
import type { ConflictMapDocument, DocumentKind } from '../../src/domain/conflict-map/document.js';
import { NOTHING_LOADED } from '../../src/domain/decide/decision.js';
import {
  type BeginRehearsalCommand,
  decideBeginRehearsal,
  decideRecordRehearsal,
  type RecordRehearsalCommand,
} from '../../src/domain/decide/rehearsals.js';
import { MAX_REHEARSED_KINDS, type RehearsedOutcome } from '../../src/domain/rehearsal.js';
import { SECOND } from '../../src/domain/time.js';
import { toRecords } from '../../src/engine/batch.js';
import { GENESIS, ReplicaState } from '../../src/engine/replica-state.js';
import { digestOf, leased, Namespace, optimistic, stable } from '../support/domain.js';

/** Rehearsals that a kind demands (C13). */

const PATCH = { access: 'write', change_class: 'derived' } as const;
const ACTIONS: NonNullable<DocumentKind['actions']> = {
  replace: { access: 'write', concurrency: 'lease', change_class: 'shared_document' },
  patch: PATCH,
};

const KIND: DocumentKind = { pattern: 'doc/{id}', require_rehearsal: true, actions: ACTIONS };

function documentOf(kind: DocumentKind = KIND): ConflictMapDocument {
  return {
    version: 1,
    kinds: [
      kind,
      { pattern: 'free/{id}', actions: ACTIONS },
      { pattern: 'watched/{id}', require_rehearsal: true, mode: 'observe', actions: ACTIONS },
      { pattern: 'owned/{id}', require_rehearsal: true, owner_service: ['svc:owner'], actions: ACTIONS },
      { pattern: 'order/{id}', actions: ACTIONS },
    ],
    implies: [
      {
        when: { pattern: 'order/{id}', access: 'write' },
        touches: [{ resource: 'doc/{id}', access: 'write', actions: ['patch'] }],
      },
    ],
  };
}

const PASSED = [
  'conflict',
  'undeclared_write',
  'coordinator_down',
  'stopped_run',
  'late_write',
  'write_past_open:verdict',
];

const outcomes = (more: Readonly<Record<string, RehearsedOutcome>> = {}) =>
  Object.entries({ ...Object.fromEntries(PASSED.map((name) => [name, 'passed' as const])), ...more }).map(
    ([name, outcome]) => ({ name, outcome }),
  );

function start(kind?: DocumentKind): Namespace {
  return new Namespace(documentOf(kind)).runs('r1', 'r2');
}

const begin = (ns: Namespace, command: Partial<BeginRehearsalCommand> = {}) =>
  ns.decide((decision) =>
    decideBeginRehearsal(decision, {
      target: null,
      resources: ['doc/a'],
      runIds: ['r1'],
      within: 60 * SECOND,
      requestIds: [],
      ...command,
    }),
  );

const record = (ns: Namespace, command: Partial<RecordRehearsalCommand> = {}) =>
  ns.decide((decision) =>
    decideRecordRehearsal(decision, {
      target: null,
      resource: 'doc/a',
      targetName: 'doc-api',
      suiteVersion: '1',
      digest: 'd'.repeat(64),
      cases: outcomes(),
      validFor: 3_600 * SECOND,
      requestIds: ['rehearsal-1'],
      ...command,
    }),
  );

const refusalOf = (ns: Namespace, runId: string, path: string) => ns.refused(ns.acquire(runId, [leased(path)]));

const isGranted = (ns: Namespace, path = 'doc/b') => {
  const answer = ns.acquire('r2', [leased(path)]);
  if (answer.lease !== undefined) ns.release(answer.lease);
  return answer.kind === 'lease';
};

describe('a kind that demands a rehearsal', () => {
  it('gives nobody authority to write before one is recorded, says how, and gives it then', () => {
    const ns = start();
    expect(refusalOf(ns, 'r1', 'doc/a')).toMatchObject({
      kind: 'rehearsal_required',
      resource: 'doc/a',
      message: expect.stringContaining('no rehearsal of it was ever recorded'),
      resolution: { action: expect.stringContaining('writ rehearse'), who: 'admin', retryable: false },
    });
    expect(ns.refused(ns.acquire('r1', [optimistic('doc/a')])).kind).toBe('rehearsal_required');
    // Reading and other kinds are not concerned.
    expect(ns.acquire('r1', [stable('doc/a')]).kind).toBe('lease');
    expect(ns.acquire('r1', [leased('free/a')]).kind).toBe('lease');
    record(ns);
    expect(ns.last[0]).toMatchObject({ resources: ['doc/a'], requestIds: ['rehearsal-1'], actor: 'test' });
    expect(isGranted(ns)).toBe(true);
  });

  it('is met by nothing that failed, is undecided, or left out what matters', () => {
    const refused = (cases: ReturnType<typeof outcomes>, kind?: DocumentKind) => {
      const ns = start(kind);
      record(ns, { cases });
      const answer = ns.acquire('r2', [optimistic('doc/b')]);
      return answer.kind === 'lease' ? '' : ns.refused(answer).message;
    };
    expect(refused(outcomes({ race: 'failed' }))).toContain('failed or are undecided: race');
    expect(refused(outcomes({ race: 'undecided' }))).toContain('race');
    expect(refused(outcomes({ late_write: 'not_applicable' }))).toContain('not passed: late_write');
    expect(refused(outcomes({ 'write_past_open:verdict': 'not_applicable' }))).toContain('write_past_open');
    // One way of playing it is enough, and what has no meaning for the kind is not asked for.
    const otherWay: Readonly<Record<string, RehearsedOutcome>> = {
      'write_past_open:verdict': 'not_applicable',
      'write_past_open:before_commit': 'passed',
      membership: 'not_applicable',
    };
    expect(refused(outcomes(otherWay))).toBe('');
    const withoutLeases = outcomes({ late_write: 'not_applicable', 'write_past_open:verdict': 'not_applicable' });
    const onlyOptimistic = { ...KIND, actions: { patch: PATCH } };
    expect(refused(withoutLeases, onlyOptimistic)).toBe('');
    expect(
      refused(outcomes({ stopped_run: 'not_applicable' }), { ...KIND, validation: 'local', ttl: 60 * SECOND }),
    ).toBe('');
    expect(refused(outcomes({ stopped_run: 'not_applicable' }))).toContain('stopped_run');
  });

  it('counts the newest result, also a bad one', () => {
    const ns = start();
    record(ns);
    record(ns, { cases: outcomes({ conflict: 'failed' }) });
    expect(isGranted(ns)).toBe(false);
    record(ns);
    expect(isGranted(ns)).toBe(true);
  });

  it('forgets a result that is too old, and a grant relies on its time', () => {
    const ns = start();
    record(ns, { validFor: 100 * SECOND });
    const until = ns.now + 100 * SECOND;
    ns.advance(100 * SECOND - 1);
    expect(isGranted(ns)).toBe(true);
    ns.acquire('r2', [leased('doc/c')]);
    expect(ns.decision.reliedOnAsFuture).toBe(until);
    ns.now = until;
    expect(refusalOf(ns, 'r1', 'doc/a').message).toContain('too old');
  });

  it('wants another one when its actions or its validation are others, and only then', () => {
    const ns = start();
    record(ns);
    ns.putMap(documentOf({ ...KIND, ttl: 30 * SECOND, owner_service: ['svc:doc'] }));
    expect(isGranted(ns)).toBe(true);
    ns.putMap(documentOf({ ...KIND, actions: { ...ACTIONS, remove: { access: 'write', concurrency: 'lease' } } }));
    expect(refusalOf(ns, 'r1', 'doc/a').message).toContain('says something else about its actions');
    ns.putMap(documentOf());
    expect(isGranted(ns)).toBe(true);
    ns.putMap(documentOf({ ...KIND, validation: 'local', ttl: 60 * SECOND }));
    expect(isGranted(ns)).toBe(false);
  });

  it('is not got round by a subtree, a rule, a queue or a change of the map', () => {
    const ns = start();
    expect(ns.refused(ns.acquire('r1', [leased('doc/')])).kind).toBe('rehearsal_required');
    expect(ns.refused(ns.acquire('r1', [leased('order/a')])).kind).toBe('rehearsal_required');

    // Granted while it was good; whoever waits is told when its turn comes.
    record(ns);
    const held = ns.hold('r1', leased('doc/q'));
    const waiting = ns.queue('r2', leased('doc/q'));
    record(ns, { cases: outcomes({ conflict: 'failed' }) });
    ns.release(held);
    expect(ns.lease(waiting)).toMatchObject({
      state: 'ended',
      endReason: 'refused',
      endRefusal: { kind: 'rehearsal_required' },
    });

    // A rule that comes later brings the lock, and no authority.
    const before = { ...documentOf(), implies: [] };
    const late = new Namespace(before).runs('r1');
    const order = late.hold('r1', leased('order/a'));
    late.putMap(documentOf());
    expect(late.lease(order).entries.map(({ resource, actions }) => [resource, actions])).toEqual([
      ['order/a', ['replace']],
      ['doc/a', []],
    ]);
  });

  it('is said of what is only observed', () => {
    const ns = start();
    const lease = ns.hold('r1', leased('watched/a'));
    expect(lease.entries[0]?.observedRefusal).toBe('rehearsal_required');
  });

  it('leaves what is held alone', () => {
    const ns = start({ ...KIND, require_rehearsal: false });
    const lease = ns.hold('r1', leased('doc/a'));
    ns.putMap(documentOf());
    ns.renew(lease);
    expect(ns.last.map(({ body }) => body.kind)).toEqual(['leases_renewed']);
    expect(isGranted(ns)).toBe(false);
  });
});

describe('while a suite plays', () => {
  it('its runs, and no others, may have its resources, and no others, for so long, and until the result is there', () => {
    const ns = start();
    const { until } = begin(ns);
    expect(until).toBe(ns.now + 60 * SECOND);
    ns.release(ns.hold('r1', leased('doc/a')));
    expect(ns.decision).toBeDefined();
    expect(refusalOf(ns, 'r2', 'doc/a').kind).toBe('rehearsal_required');
    expect(refusalOf(ns, 'r1', 'doc/b').kind).toBe('rehearsal_required');
    expect(ns.refused(ns.acquire('r1', [leased('doc/a/')])).kind).toBe('rehearsal_required');
    ns.advance(60 * SECOND);
    expect(refusalOf(ns, 'r1', 'doc/a').kind).toBe('rehearsal_required');
    begin(ns);
    record(ns, { cases: outcomes({ conflict: 'failed' }) });
    expect(refusalOf(ns, 'r1', 'doc/a').kind).toBe('rehearsal_required');
  });

  it('does not make a good result count for nothing', () => {
    const ns = start();
    record(ns);
    begin(ns, { runIds: ['r1'] });
    expect(isGranted(ns)).toBe(true);
  });

  it('begins for resources of several kinds, and for runs that there are', () => {
    const ns = start();
    begin(ns, { resources: ['doc/a', 'doc/b', 'owned/a'], runIds: ['r1', 'r2'] });
    for (const path of ['doc/a', 'doc/b', 'owned/a']) expect(ns.acquire('r2', [leased(path)]).kind).toBe('lease');
    ns.loaded = { ...NOTHING_LOADED, runs: new Map([['nobody', null]]) };
    expect(() => begin(ns, { runIds: ['nobody'] })).toThrow('nobody');
  });
});

describe('who may say it', () => {
  it('is an admin, or a target that the kind names', () => {
    const ns = start();
    expect(() => record(ns, { resource: 'owned/a', target: 'svc:other' })).toThrow('svc:owner');
    expect(() => begin(ns, { resources: ['owned/a'], target: 'svc:other' })).toThrow('svc:owner');
    record(ns, { resource: 'owned/a', target: 'svc:owner' });
    expect(isGranted(ns, 'owned/a')).toBe(true);
    // A kind that names nobody takes any target's word, as it takes any target's checks.
    record(ns, { target: 'svc:other' });
    expect(isGranted(ns)).toBe(true);
  });

  it('names a resource of a kind', () => {
    const ns = start();
    expect(() => record(ns, { resource: 'nowhere/a' })).toThrow('no kind');
    expect(() => record(ns, { resource: 'doc//a' })).toThrow('resource');
  });
});

describe('what is kept', () => {
  it('is bounded, and what is there already can be renewed', () => {
    const ns = start();
    record(ns);
    for (let i = 1; i < MAX_REHEARSED_KINDS; i += 1)
      ns.state.rehearsals.set(`p/${i}`, { pattern: `p/${i}`, last: null, window: null });
    expect(() => record(ns, { resource: 'free/a' })).toThrow(`${MAX_REHEARSED_KINDS}`);
    expect(() => record(ns)).not.toThrow();
  });

  it('is the same on a replica that follows the log', () => {
    const ns = start();
    begin(ns);
    record(ns);
    begin(ns, { resources: ['free/a'] });
    const replica = new ReplicaState('test', null);
    replica.follow(toRecords('test', 'batch', GENESIS, ns.events));
    expect(digestOf(replica.state)).toBe(digestOf(ns.state));
    expect(replica.state.rehearsals.get('doc/{id}')?.last?.lacks).toBe('');
    expect(replica.state.rehearsals.get('free/{id}')?.window?.resources).toEqual(['free/a']);
  });
});
