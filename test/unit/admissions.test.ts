import { describe, expect, it } from 'vitest';
import type { Admission } from '../../src/domain/admission.js';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import { ATTACHED_FOR } from '../../src/domain/decide/acquire.js';
import { checkId } from '../../src/domain/decide/decision.js';
import { decideStopRuns } from '../../src/domain/decide/runs.js';
import { evolve } from '../../src/domain/evolve.js';
import { Fault } from '../../src/domain/fault.js';
import { endsAt, type Lease } from '../../src/domain/lease.js';
import { emptyState } from '../../src/domain/state.js';
import { SECOND } from '../../src/domain/time.js';
import { toRecords } from '../../src/engine/batch.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import { DueTimes } from '../../src/engine/replica.js';
import { GENESIS } from '../../src/engine/replica-state.js';
import { codesOf } from '../support/conflict-map.js';
import { digestOf, leased, locksIn, Namespace, optimistic, read, START, stable, tokenOn } from '../support/domain.js';

const ACTIONS = {
  replace: { access: 'write', concurrency: 'lease', tracked: true, resolver: 'doc-owner' },
  patch: { access: 'write', tracked: true },
} as const;

const TRACKED: ConflictMapDocument = {
  version: 1,
  kinds: [
    { pattern: 'doc/{id...}', actions: ACTIONS },
    { pattern: 'owned/{id}', owner_service: ['svc:owner', 'svc:second'], actions: ACTIONS },
    { pattern: 'obs/{id...}', mode: 'observe', actions: ACTIONS },
    { pattern: 'plain/{id}', actions: { replace: { access: 'write', concurrency: 'lease' } } },
    { pattern: 'deployment/{env}', actions: ACTIONS },
    { pattern: 'dns/{env}', actions: ACTIONS },
    { pattern: 'token/{tenant}', actions: ACTIONS },
    { pattern: 'config/{tenant}', actions: ACTIONS },
    { pattern: 'paced/{id}', progress_window: 20 * SECOND, ttl: 60 * SECOND, actions: ACTIONS },
  ],
  implies: [
    {
      when: { pattern: 'deployment/{env}', access: 'write' },
      touches: [{ resource: 'dns/{env}', access: 'stable_read' }],
    },
  ],
  conflicts: [{ between: ['token/{tenant}', 'config/{tenant}'] }],
  aliases: [{ from: 'arn:doc:{id}', to: 'doc/{id}' }],
};

const world = (...runs: readonly string[]): Namespace => new Namespace(TRACKED).runs(...runs);

/** A lease of run `a` with one write let in and nothing known of it, ended; and what is in doubt by it. */
function doubtful(resource: string, ...more: readonly string[]): { ns: Namespace; lease: Lease; write: Admission } {
  const ns = world('a', 'b', 'c');
  const lease = ns.hold('a', leased(resource), ...more.map(leased));
  const write = ns.letIn(lease, resource);
  ns.revoke(lease);
  return { ns, lease, write };
}

function faultOf(work: () => unknown): Fault {
  try {
    work();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
  throw new Error('it was not refused');
}

const stateOf = (ns: Namespace, runId: string) => ns.state.runs.get(runId)?.state;

describe('the map', () => {
  it('takes `tracked` on writes, and says where it cannot work', () => {
    const kind = {
      pattern: 'doc/{id}',
      actions: { edit: { access: 'write', change_class: 'derived', tracked: true } },
    } as const;
    expect(codesOf({ kinds: [kind] })).toEqual([]);
    expect(codesOf({ kinds: [{ pattern: 'doc/{id}', actions: { look: { access: 'read', tracked: true } } }] })).toEqual(
      ['tracked_read kinds[0].actions.look.tracked'],
    );
    expect(codesOf({ kinds: [{ ...kind, validation: 'local' }] })).toEqual(['tracked_unasked kinds[0]']);
  });
});

describe('an allowed check of a tracked action', () => {
  it('leaves an admission, which says who was let in for what', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/x'));
    const write = ns.letIn(lease, 'doc/x', 'replace', { requestId: 'r-1', target: 'svc' });
    expect(ns.kinds).toEqual(['writes_admitted']);
    expect(ns.last[0]).toMatchObject({ runId: 'a', leaseId: lease.leaseId, resources: ['doc/x'], requestIds: ['r-1'] });
    expect(write).toMatchObject({
      runId: 'a',
      leaseId: lease.leaseId,
      action: 'replace',
      token: lease.entries[0]?.token,
      target: 'svc',
      admittedAt: ns.state.time,
      inDoubtSince: null,
      outcome: null,
    });
  });

  it('relies on lease and authority, so that the append proves both (P3, P5)', () => {
    const ns = world();
    ns.run('short', { authorityEndsAt: START + 10 * SECOND });
    const lease = ns.hold('short', leased('doc/x'));
    ns.letIn(lease, 'doc/x');
    expect(ns.decision.reliedOnAsFuture).toBe(Math.min(endsAt(ns.lease(lease)), START + 10 * SECOND));
    const long = ns.run('long');
    const other = ns.hold(long, leased('doc/y'));
    ns.letIn(other, 'doc/y');
    expect(ns.decision.reliedOnAsFuture).toBe(endsAt(other));
  });

  it('repeated with its request id gets the same admission, and nothing new is written', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/x'), leased('doc/y'));
    const writes = [
      { resource: 'doc/x', action: 'replace' },
      { resource: 'doc/y', action: 'replace' },
    ];
    const first = ns.admit(lease, writes, { requestId: 'r' });
    expect(ns.admit(lease, writes, { requestId: 'r' })).toEqual(first);
    expect(ns.last).toEqual([]);
    expect(ns.admit(lease, writes, { requestId: 'r', target: 'another' })).not.toEqual(first);
    expect(ns.state.openWrites).toBe(4);
  });

  it('repeated after an amendment gave the lease a newer token for the resource is the same check', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/'));
    const first = ns.admit(lease, [{ resource: 'doc/x', action: 'replace', token: tokenOn(lease, 'doc') }], {
      requestId: 'r',
    });
    ns.advance(SECOND);
    const newer = tokenOn(ns.amended(lease, { add: [optimistic('doc/x')] }), 'doc/x');
    expect(ns.admit(lease, [{ resource: 'doc/x', action: 'replace', token: newer }], { requestId: 'r' })).toEqual(
      first,
    );
    expect(ns.state.openWrites).toBe(1);
  });

  it('with other writes by the same request id is refused', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/x'), leased('doc/y'));
    ns.admit(lease, [{ resource: 'doc/x', action: 'replace' }], { requestId: 'r' });
    const others = [
      [{ resource: 'doc/y', action: 'replace' }],
      [{ resource: 'doc/x', action: 'patch' }],
      [{ resource: 'doc/x', action: 'replace', token: 5 }],
      [{ resource: 'doc/x', action: 'replace', observedVersion: '7' }],
    ];
    for (const writes of others)
      expect(faultOf(() => ns.admit(lease, writes, { requestId: 'r' })).reason).toBe('REQUEST_ID_REUSED');
    expect(ns.state.openWrites).toBe(1);
  });

  it('after its outcome is known is another attempt, which must not go unseen', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/x'), leased('doc/y'));
    const writes = [
      { resource: 'doc/x', action: 'replace' },
      { resource: 'doc/y', action: 'replace' },
    ];
    const [x = '', y = ''] = ns.admit(lease, writes, { requestId: 'r' });
    ns.report([{ admissionId: x, result: 'failed' }]);
    const [again, same] = ns.admit(lease, writes, { requestId: 'r' });
    expect(same).toBe(y);
    expect(again).not.toBe(x);
    expect(ns.last).toHaveLength(1);
    expect(ns.state.openWrites).toBe(2);
  });

  it('needs a request id, and each write once', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/x'));
    const write = { resource: 'doc/x', action: 'replace' };
    const unnamed = faultOf(() => ns.admit(lease, [write], { requestId: '' }));
    expect(unnamed.details.violations?.[0]).toMatchObject({
      field: 'request_id',
      description: expect.stringContaining('replace on "doc/x"'),
    });
    const twice = faultOf(() => ns.admit(lease, [write, write]));
    expect(twice.details.violations?.[0]?.field).toBe('writes[1]');
    expect(ns.state.openWrites).toBe(0);
  });

  it('is refused beyond what may be open, of a run and of a namespace, and let in again after a report', () => {
    const ns = world('a', 'b');
    ns.bounds = { ...ns.bounds, maxOpenWritesPerRun: 2, maxOpenWrites: 3 };
    const a = ns.hold('a', leased('doc/x'));
    const b = ns.hold('b', leased('doc/y'));
    const first = ns.letIn(a, 'doc/x');
    ns.letIn(a, 'doc/x');
    const ofRun = faultOf(() => ns.letIn(a, 'doc/x'));
    expect(ofRun).toMatchObject({
      reason: 'OPEN_WRITES_LIMIT',
      message: expect.stringContaining('2 tracked writes of the run'),
    });
    ns.letIn(b, 'doc/y');
    expect(faultOf(() => ns.letIn(b, 'doc/y')).message).toContain('3 tracked writes of the namespace');
    ns.report([{ admissionId: first.admissionId }]);
    ns.letIn(b, 'doc/y');
  });
});

describe('a lease that ends while a tracked write of it is open', () => {
  const ENDS: readonly [how: string, end: (ns: Namespace, lease: Lease) => void][] = [
    ['released', (ns, lease) => void ns.release(lease)],
    ['revoked', (ns, lease) => void ns.revoke(lease)],
    ['run_stopped', (ns) => void ns.stop('a')],
    ['run_ended', (ns) => void ns.update('a', 'finished')],
    ['run_ended', (ns) => void ns.update('a', 'failed')],
    ['expired', (ns, lease) => void ns.advance(endsAt(lease) - ns.now).sweep()],
    ['database_changed', (ns) => ns.loseHistory()],
  ];

  it.each(ENDS)('%s: puts what was written in doubt, and nothing else', (how, end) => {
    const ns = world('a', 'b', 'c');
    const lease = ns.hold('a', leased('doc/x'), leased('doc/y'));
    const write = ns.letIn(lease, 'doc/x');
    end(ns, lease);
    const later = ns.run('later', { authorityEndsAt: ns.now + 3_600 * SECOND });
    expect(ns.lease(lease).endReason).toBe(how);
    expect(ns.admission(write.admissionId)).toMatchObject({ inDoubtSince: ns.lease(lease).endedAt, outcome: null });
    expect(ns.refused(ns.acquire(later, [leased('doc/x')])).kind).toBe('in_doubt');
    expect(ns.hold(later, leased('doc/y')).state).toBe('active');
    ns.report([{ admissionId: write.admissionId }]);
    expect(ns.hold(later, leased('doc/x')).state).toBe('active');
  });

  it('for want of progress, unclaimed, and by a new map', () => {
    const ns = world('a', 'b', 'c');
    const paced = ns.hold('a', leased('paced/x'));
    const first = ns.letIn(paced, 'paced/x');
    ns.advance(20 * SECOND).sweep();
    expect(ns.lease(paced).endReason).toBe('no_progress');
    expect(ns.admission(first.admissionId).inDoubtSince).not.toBeNull();

    const older = ns.hold('b', leased('doc/old'));
    const newer = ns.hold('c', leased('plain/new'), leased('doc/new'));
    const second = ns.letIn(newer, 'doc/new');
    const rule = { between: ['doc/old', 'plain/new'] as [string, string] };
    ns.putMap({ ...TRACKED, conflicts: [...(TRACKED.conflicts ?? []), rule] }, 'revoke_newer');
    expect([ns.lease(older).state, ns.lease(newer).endReason]).toEqual(['active', 'map_changed']);
    expect(ns.admission(second.admissionId).inDoubtSince).not.toBeNull();

    const holder = ns.hold('a', leased('doc/z'));
    const waiter = ns.queue('c', leased('doc/z'));
    ns.advance(ATTACHED_FOR);
    ns.release(holder);
    // Nobody had come back for the place: it is gone, and so nothing is in doubt by it.
    expect(ns.lease(waiter).endReason).toBe('withdrawn');
    expect(ns.state.inDoubt).toBe(2);
  });

  it('tells the release, the revocation and the stop what is open', () => {
    const ns = world('a', 'b', 'c');
    for (const [runId, end] of [
      ['a', (lease: Lease) => ns.release(lease).openWrites],
      ['b', (lease: Lease) => ns.revoke(lease).openWrites],
    ] as const) {
      const lease = ns.hold(runId, leased(`doc/${runId}`));
      const write = ns.letIn(lease, `doc/${runId}`);
      expect(end(lease).map(({ admissionId }) => admissionId)).toEqual([write.admissionId]);
      // Asked again, it is told once more, until it is known.
      expect(end(lease)).toHaveLength(1);
      ns.report([{ admissionId: write.admissionId }]);
      expect(end(lease)).toEqual([]);
    }
  });

  it('keeps what it puts in doubt from a run that takes its place over an expiry that is not written yet', () => {
    const ns = world('a', 'b');
    const lease = ns.granted(ns.acquire('a', [leased('doc/x'), leased('doc/y')], { ttl: 5 * SECOND }));
    ns.letIn(lease, 'doc/x');
    const waiting = ns.queue('b', leased('doc/x'));
    const own = ns.granted(ns.acquire('a', [leased('doc/other')], { ttl: 300 * SECOND }));
    ns.advance(endsAt(lease) - ns.now);
    // No sweep: the acquires themselves write the end.
    expect(ns.refused(ns.acquire('a', [leased('doc/x')])).kind).toBe('in_doubt');
    expect(ns.lease(waiting).state).toBe('waiting');
    expect(ns.hold('a', leased('doc/y')).state).toBe('active');
    expect(ns.lease(own).state).toBe('active');
  });

  it('its own run waits in the queue for its own expiry, and is not granted over the doubt', () => {
    const ns = world('a', 'b');
    const held = ns.granted(ns.acquire('b', [leased('doc/y')], { ttl: 300 * SECOND }));
    const lease = ns.hold('a', leased('doc/x'));
    ns.letIn(lease, 'doc/x');
    ns.advance(endsAt(lease) - ns.now - SECOND);
    const other = ns.run('c');
    const place = ns.queue(other, leased('doc/x'), leased('doc/y'));
    ns.advance(SECOND);
    ns.release(held);
    expect(ns.lease(place).state).toBe('waiting');
    expect(ns.state.inDoubt).toBe(1);
  });
});

describe('what is in doubt', () => {
  it('is granted to nobody: not in part, not from above, not by a rule, and not to its own run', () => {
    const { ns } = doubtful('doc/x/y');
    const refused: Parameters<Namespace['acquire']>[1][] = [
      [leased('doc/x/y')],
      [optimistic('doc/x/y')],
      [stable('doc/x/y')],
      [leased('doc/x/')],
      [stable('doc/')],
    ];
    for (const runId of ['a', 'b'])
      for (const entries of refused) expect(ns.refused(ns.acquire(runId, entries)).kind).toBe('in_doubt');
    expect(ns.hold('b', read('doc/x/y'), leased('doc/x/z')).state).toBe('active');
    expect(ns.hold('c', leased('doc/x')).state).toBe('active');
  });

  it('keeps what the map says the write touches: implied resources, and the other side of a conflict rule', () => {
    const deployment = doubtful('deployment/eu').ns;
    expect(deployment.refused(deployment.acquire('b', [leased('dns/eu')]))).toMatchObject({
      kind: 'in_doubt',
      blockers: [{ resource: 'dns/eu', access: 'stable_read', rule: 'implies[0]' }],
    });
    expect(deployment.hold('b', stable('dns/eu')).state).toBe('active');
    const token = doubtful('token/acme').ns;
    expect(token.refused(token.acquire('b', [leased('config/acme')]))).toMatchObject({
      kind: 'in_doubt',
      resource: 'config/acme',
      blockers: [{ rule: 'conflicts[0]' }],
    });
    expect(token.hold('b', leased('config/other')).state).toBe('active');
  });

  it('is what somebody meets who would need it by a rule', () => {
    const { ns } = doubtful('dns/eu');
    expect(ns.refused(ns.acquire('b', [leased('deployment/eu')]))).toMatchObject({
      kind: 'in_doubt',
      blockers: [{ resource: 'dns/eu', requestedResource: 'dns/eu', rule: 'implies[0]' }],
    });
  });

  it('is refused with what stands in the way, who can help, and what could be had', () => {
    const { ns, lease } = doubtful('doc/x');
    const refusal = ns.refused(ns.acquire('b', [leased('doc/x'), leased('doc/free')]));
    expect(refusal).toMatchObject({
      kind: 'in_doubt',
      resource: 'doc/x',
      retryAfter: null,
      grantable: [{ resource: 'doc/free' }],
      resolution: { who: 'doc-owner', retryable: true },
    });
    expect(refusal.message).toContain('nobody knows what became of a write to "doc/x"');
    expect(refusal.blockers[0]).toMatchObject({
      runId: 'a',
      leaseId: lease.leaseId,
      inDoubtSince: ns.lease(lease).endedAt,
      expiresAt: null,
      waiting: false,
    });
    expect(ns.preview('b', leased('doc/x')).refusal?.kind).toBe('in_doubt');
  });

  it('is waited for, in turn, and granted in the append in which the outcome becomes known (P9)', () => {
    for (const known of [
      (ns: Namespace, id: string) => ns.report([{ admissionId: id, result: 'failed' }]),
      (ns: Namespace, id: string) => ns.settle(id, true),
    ]) {
      const { ns, write } = doubtful('doc/x');
      const first = ns.queue('b', leased('doc/x'));
      const second = ns.queue('c', leased('doc/x'));
      expect(ns.refused(ns.acquire('a', [leased('doc/x')])).kind).toBe('in_doubt');
      known(ns, write.admissionId);
      expect(ns.kinds.slice(1)).toEqual(['lease_granted']);
      expect([ns.lease(first).state, ns.lease(second).state]).toEqual(['active', 'waiting']);
    }
  });

  it('of two writes to one resource both must be known', () => {
    const ns = world('a', 'b', 'c');
    const one = ns.hold('a', optimistic('doc/x'));
    const two = ns.hold('b', optimistic('doc/x'));
    const first = ns.letIn(one, 'doc/x', 'patch');
    const second = ns.letIn(two, 'doc/x', 'patch');
    ns.revoke(one);
    ns.revoke(two);
    const waiting = ns.queue('c', leased('doc/x'));
    ns.settle(first.admissionId, false);
    expect(ns.lease(waiting).state).toBe('waiting');
    ns.report([{ admissionId: second.admissionId }]);
    expect(ns.lease(waiting).state).toBe('active');
    expect(locksIn(ns.state.doubted)).toEqual([]);
  });

  it('denies a check by whoever else still holds the resource', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', optimistic('doc/x'));
    const beside = ns.hold('b', optimistic('doc/x'), optimistic('doc/y'));
    const write = ns.letIn(lease, 'doc/x', 'patch');
    const check = (resource: string) => ns.check(beside, { resource, observedVersion: '1' }).results[0]?.reason;
    expect(check('doc/x')).toBe('ok');
    ns.revoke(lease);
    expect([check('doc/x'), check('doc/y')]).toEqual(['in_doubt', 'ok']);
    const old = ns.check(ns.lease(lease), { resource: 'doc/x', observedVersion: '1' });
    expect(old.results[0]?.reason).toBe('revoked');
    // Whoever may not write it anyway is told that, and no more.
    expect(ns.check(beside, { resource: 'doc/x', token: 1 }).results[0]?.reason).toBe('stale_token');
    ns.settle(write.admissionId, true);
    expect(check('doc/x')).toBe('ok');
  });

  it('is only recorded where a kind is observed (C14)', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', leased('obs/x'));
    ns.letIn(lease, 'obs/x');
    ns.revoke(lease);
    expect(ns.hold('b', leased('obs/x')).entries[0]?.observedRefusal).toBe('in_doubt');
  });

  it('keeps what a new map says it touches', () => {
    const { ns, write } = doubtful('doc/x');
    const rule = { between: ['doc/{id}', 'plain/{id}'] as [string, string] };
    expect(ns.hold('c', leased('plain/y')).state).toBe('active');
    ns.putMap({ ...TRACKED, conflicts: [rule] });
    expect(ns.refused(ns.acquire('b', [leased('plain/x')])).kind).toBe('in_doubt');
    const waiting = ns.queue('b', leased('plain/x'));
    ns.putMap({ ...TRACKED, conflicts: [] });
    expect(ns.lease(waiting).state).toBe('active');
    ns.settle(write.admissionId, true);
    expect(locksIn(ns.state.doubted)).toEqual([]);
  });
});

describe('a run whose authority ends while a write of it is open (R4, R5)', () => {
  const ENDS: readonly [state: string, end: (ns: Namespace) => unknown][] = [
    ['stopped', (ns) => ns.stop('a', 'enough')],
    ['finished', (ns) => ns.update('a', 'finished', { reason: 'enough' })],
    ['failed', (ns) => ns.update('a', 'failed', { reason: 'enough' })],
    ['expired', (ns) => ns.advance(86_400 * SECOND).sweep()],
  ];

  it.each(ENDS)('is stopping, and %s only once nothing is open', (state, end) => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/x'), leased('doc/y'));
    const first = ns.letIn(lease, 'doc/x');
    const second = ns.letIn(lease, 'doc/y');
    end(ns);
    expect(ns.state.runs.get('a')).toMatchObject({ state: 'stopping', endsAs: state, endedAt: null });
    expect(ns.check(ns.lease(lease), {}).allowed).toBe(false);
    expect(ns.refused(ns.acquire('a', [leased('doc/z')])).kind).toBe('run_ended');
    ns.report([{ admissionId: first.admissionId }]);
    ns.report([{ admissionId: second.admissionId, result: 'unknown' }]);
    expect(stateOf(ns, 'a')).toBe('stopping');
    ns.settle(second.admissionId, false);
    expect(ns.kinds).toEqual(['doubt_settled', 'run_state_changed']);
    expect(ns.state.runs.get('a')).toMatchObject({ state, endsAs: null, endedAt: ns.state.time });
    if (state !== 'expired') expect(ns.state.runs.get('a')?.stateReason).toBe('enough');
  });

  it('is stopped at once when its writes are known', () => {
    const ns = world('a');
    const write = ns.letIn(ns.hold('a', leased('doc/x')), 'doc/x');
    ns.report([{ admissionId: write.admissionId }]);
    ns.stop('a');
    expect(stateOf(ns, 'a')).toBe('stopped');
  });

  it('stays as it is when it is stopped, swept or lost history once more', () => {
    const ns = world('a', 'b');
    const write = ns.letIn(ns.hold('a', leased('doc/x')), 'doc/x');
    ns.stop('a');
    ns.stop('a');
    expect(ns.last).toEqual([]);
    ns.advance(86_400 * SECOND).sweep();
    expect(stateOf(ns, 'a')).toBe('stopping');
    expect(new DueTimes().isDue(ns.state, ns.now)).toBe(false);
    ns.sweep();
    expect(ns.last).toEqual([]);
    ns.loseHistory();
    expect([stateOf(ns, 'a'), stateOf(ns, 'b')]).toEqual(['stopping', 'expired']);
    expect(faultOf(() => ns.update('a', 'active', { asOperator: true })).reason).toBe('RUN_ENDED');
    ns.settle(write.admissionId, true);
    expect(stateOf(ns, 'a')).toBe('stopped');
  });

  it('is stopping as long as one below it is', () => {
    const ns = world();
    ns.run('parent', { principal: 'p' });
    ns.run('child', { principal: 'p', parentRunId: 'parent' });
    ns.run('grandchild', { principal: 'p', parentRunId: 'child' });
    const write = ns.letIn(ns.hold('grandchild', leased('doc/x')), 'doc/x');
    ns.stop('parent');
    expect(['parent', 'child', 'grandchild'].map((runId) => stateOf(ns, runId))).toEqual([
      'stopping',
      'stopping',
      'stopping',
    ]);
    ns.report([{ admissionId: write.admissionId }]);
    expect(ns.kinds.filter((kind) => kind === 'run_state_changed')).toHaveLength(3);
    expect(['parent', 'child', 'grandchild'].map((runId) => stateOf(ns, runId))).toEqual([
      'stopped',
      'stopped',
      'stopped',
    ]);
  });

  it('StopRuns stops by what is open, answers with those that are stopping already, and does not stop them twice', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', leased('doc/x'));
    ns.letIn(lease, 'doc/x');
    ns.revoke(lease);
    const stop = (idempotencyKey: string) =>
      ns.decide((decision) =>
        decideStopRuns(decision, {
          caller: 'operator',
          principal: '',
          resource: 'doc',
          reason: 'because',
          idempotencyKey,
          fingerprint: '',
          requestIds: [],
        }),
      );
    expect(stop('one').runIds).toEqual(['a']);
    expect([stateOf(ns, 'a'), stateOf(ns, 'b')]).toEqual(['stopping', 'active']);
    expect(stop('two').runIds).toEqual(['a']);
    expect(ns.kinds).toEqual(['key_bound']);
  });

  it('parents and children whose authority ends together expire in one sweep, each by one event', () => {
    const ns = world();
    const authorityEndsAt = START + 100 * SECOND;
    ns.run('parent', { principal: 'p', authorityEndsAt });
    ns.advance(SECOND).run('child', { principal: 'p', parentRunId: 'parent', authorityEndsAt });
    ns.advance(100 * SECOND).sweep();
    expect(ns.kinds).toEqual(['run_state_changed', 'run_state_changed']);
    expect([stateOf(ns, 'parent'), stateOf(ns, 'child')]).toEqual(['expired', 'expired']);
  });
});

describe('ReportWrite', () => {
  it('closes an admission by its id or by the check, and says so again when it is repeated', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/x'), leased('doc/y'));
    const x = ns.letIn(lease, 'doc/x', 'replace', { requestId: 'r-x' });
    const byId = [{ admissionId: x.admissionId, newVersion: '2', changedFields: ['title'] }];
    expect(ns.report(byId)).toEqual(['closed']);
    expect(ns.last[0]).toMatchObject({ runId: 'a', leaseId: lease.leaseId, requestIds: ['r-x'], resources: ['doc/x'] });
    expect(ns.admission(x.admissionId).outcome).toMatchObject({
      result: 'succeeded',
      by: 'target',
      settled: false,
      newVersion: '2',
    });
    expect(ns.report(byId)).toEqual(['already_known']);
    expect(ns.last).toEqual([]);
    ns.letIn(lease, 'doc/y', 'replace', { requestId: 'r-y' });
    const byCheck = [{ resource: 'doc/y', action: 'replace' }];
    expect(ns.report(byCheck, { leaseId: lease.leaseId, requestId: 'r-y' })).toEqual(['closed']);
    expect(ns.state.openWrites).toBe(0);
  });

  it('of what is not known leaves it open, and is no news the second time', () => {
    const ns = world('a');
    const write = ns.letIn(ns.hold('a', leased('doc/x')), 'doc/x');
    const unknown = [{ admissionId: write.admissionId, result: 'unknown' as const }];
    expect(ns.report(unknown)).toEqual(['recorded']);
    expect(ns.admission(write.admissionId)).toMatchObject({ unsure: true, outcome: null });
    expect(ns.report(unknown)).toEqual(['already_known']);
    expect(ns.report([{ admissionId: write.admissionId, result: 'failed' }])).toEqual(['closed']);
    expect(ns.report(unknown)).toEqual(['already_known']);
  });

  it('that says otherwise than what is known is written down, and changes nothing', () => {
    const { ns, write } = doubtful('doc/x');
    ns.settle(write.admissionId, false);
    const settled = ns.admission(write.admissionId);
    expect(ns.report([{ admissionId: write.admissionId }])).toEqual(['contradicts']);
    expect(ns.last[0]?.body).toMatchObject({ kind: 'writes_reported', writes: [{ contradicts: true }] });
    expect(ns.admission(write.admissionId)).toEqual(settled);
    expect(ns.state.openWrites).toBe(0);
  });

  it('is made by the target that was let in, or an owner service of the kind', () => {
    const ns = world('a');
    const doc = ns.letIn(ns.hold('a', leased('doc/x')), 'doc/x', 'replace', { target: 'svc' });
    const owned = ns.letIn(ns.hold('a', leased('owned/x')), 'owned/x', 'replace', { target: 'svc:owner' });
    const by = (target: string, { admissionId }: Admission) => ns.report([{ admissionId }], { target });
    expect(faultOf(() => by('other', doc)).reason).toBe('WRONG_TARGET');
    expect(by('svc', doc)).toEqual(['closed']);
    expect(faultOf(() => by('svc', owned)).reason).toBe('WRONG_TARGET');
    expect(by('svc:second', owned)).toEqual(['closed']);
  });

  it('by its check is made by the same, and nobody else is told that it was recorded', () => {
    const ns = world('a');
    const { leaseId, admissionId } = ns.letIn(ns.hold('a', leased('doc/x')), 'doc/x', 'replace', {
      target: 'svc',
      requestId: 'r',
    });
    ns.loaded = { ...ns.loaded, checks: new Map([[checkId({ leaseId, requestId: 'r' }), [admissionId]]]) };
    const by = (target: string) =>
      ns.report([{ resource: 'doc/x', action: 'replace' }], { leaseId, requestId: 'r', target });
    expect(faultOf(() => by('other')).reason).toBe('WRONG_TARGET');
    expect(by('svc')).toEqual(['closed']);
    expect(faultOf(() => by('other')).reason).toBe('WRONG_TARGET');
    expect(by('svc')).toEqual(['already_known']);
  });

  it('of what is not tracked is an outcome in the log (A1), if the lease covered it', () => {
    const ns = world('a', 'b');
    const lease = ns.hold('a', leased('plain/x'), leased('owned/y'));
    ns.release(lease);
    const check = checkId({ leaseId: lease.leaseId, requestId: 'r' });
    ns.loaded = { ...ns.loaded, checks: new Map([[check, []]]) };
    const report = (resource: string, action: string, target = 'target') =>
      ns.report([{ resource, action, newVersion: '3' }], {
        leaseId: lease.leaseId,
        requestId: 'r',
        detail: 'fine',
        target,
      });
    expect(report('plain/x', 'replace')).toEqual(['recorded']);
    expect(ns.last[0]).toMatchObject({ runId: 'a', leaseId: lease.leaseId, requestIds: ['r'] });
    expect(ns.last[0]?.body).toMatchObject({
      detail: 'fine',
      writes: [{ admissionId: '', resource: 'plain/x', newVersion: '3' }],
    });
    // There is no admission to know it by.
    expect(report('plain/x', 'replace')).toEqual(['recorded']);
    expect(ns.kinds).toEqual(['writes_reported']);
    expect(faultOf(() => report('plain/z', 'replace')).reason).toBe('NOT_COVERED');
    expect(faultOf(() => report('plain/x', 'delete')).reason).toBe('NOT_COVERED');
    expect(faultOf(() => report('owned/y', 'replace')).reason).toBe('WRONG_TARGET');
    expect(faultOf(() => report(' bad', 'replace')).details.violations?.[0]?.field).toBe('writes[0].resource');
  });

  it('of leases and admissions that there are not is refused as a whole', () => {
    const ns = world('a');
    const none = new Map();
    ns.loaded = { ...ns.loaded, leases: none.set('nobody', null), admissions: new Map([['nothing', null]]) };
    const lease = ns.hold('a', leased('doc/x'));
    const write = ns.letIn(lease, 'doc/x');
    const good = { admissionId: write.admissionId };
    expect(faultOf(() => ns.report([good, { admissionId: 'nothing' }])).reason).toBe('ADMISSION_NOT_FOUND');
    const unknown = () => ns.report([{ resource: 'doc/x', action: 'replace' }], { leaseId: 'nobody' });
    expect(faultOf(unknown).reason).toBe('LEASE_NOT_FOUND');
    expect(faultOf(() => ns.report([good, good])).details.violations?.[0]?.field).toBe('writes[1]');
    const other = ns.letIn(ns.hold('a', leased('doc/y')), 'doc/y');
    expect(faultOf(() => ns.report([good, { admissionId: other.admissionId }])).details.violations?.[0]?.field).toBe(
      'writes',
    );
    expect(ns.state.openWrites).toBe(2);
  });

  it('finds a resource by its alias', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.letIn(lease, 'doc/x', 'replace', { requestId: 'r' });
    const report = ns.report([{ resource: 'arn:doc:x', action: 'replace' }], {
      leaseId: lease.leaseId,
      requestId: 'r',
    });
    expect(report).toEqual(['closed']);
  });
});

describe('SettleInDoubt', () => {
  it('says who found out what and how; the same again is no news, another finding is refused', () => {
    const { ns, write } = doubtful('doc/x');
    expect(ns.settle(write.admissionId, true, 'the log of the target has it')).toEqual({ settledNow: true });
    expect(ns.last[0]).toMatchObject({
      actor: 'operator',
      runId: 'a',
      requestIds: [write.requestId],
      body: { happened: true, reason: 'the log of the target has it' },
    });
    expect(ns.admission(write.admissionId).outcome).toMatchObject({
      by: 'operator',
      settled: true,
      result: 'succeeded',
    });
    expect(ns.settle(write.admissionId, true)).toEqual({ settledNow: false });
    const other = faultOf(() => ns.settle(write.admissionId, false));
    expect(other).toMatchObject({
      reason: 'OUTCOME_KNOWN',
      message: expect.stringContaining('An operator has settled'),
    });
  });

  it('does not overrule what a target has reported', () => {
    const { ns, write } = doubtful('doc/x');
    ns.report([{ admissionId: write.admissionId, result: 'failed' }]);
    expect(faultOf(() => ns.settle(write.admissionId, true)).message).toContain('Its target has reported');
    expect(ns.settle(write.admissionId, false)).toEqual({ settledNow: false });
  });

  it('is refused while the lease lives, and not once its time is over', () => {
    const ns = world('a');
    const lease = ns.hold('a', leased('doc/x'));
    const write = ns.letIn(lease, 'doc/x');
    expect(faultOf(() => ns.settle(write.admissionId, true)).reason).toBe('NOT_IN_DOUBT');
    ns.advance(endsAt(lease) - ns.now);
    expect(ns.settle(write.admissionId, true)).toEqual({ settledNow: true });
    expect(ns.kinds).toEqual(['lease_ended', 'doubt_settled']);
    ns.loaded = { ...ns.loaded, admissions: new Map([['nothing', null]]) };
    expect(faultOf(() => ns.settle('nothing', true)).reason).toBe('ADMISSION_NOT_FOUND');
  });
});

describe('the log', () => {
  it('read from its beginning gives the same state', () => {
    const { ns, write } = doubtful('doc/x', 'doc/y');
    const lease = ns.hold('b', leased('deployment/eu'));
    ns.letIn(lease, 'deployment/eu');
    ns.report([{ admissionId: write.admissionId, result: 'unknown' }]);
    ns.stop('b');
    ns.stop('a');
    const state = emptyState('test');
    for (const record of toRecords('test', 'batch', GENESIS, ns.events))
      evolve(state, decodeEvent(record), record.revision);
    expect(digestOf(state)).toBe(digestOf(ns.state));
    expect(state.inDoubt).toBe(2);
  });

  it('nothing is left once all is known (F10)', () => {
    const { ns, write } = doubtful('deployment/eu');
    ns.stop('a');
    ns.settle(write.admissionId, true);
    expect(locksIn(ns.state.doubted)).toEqual([]);
    expect([ns.state.openWrites, ns.state.inDoubt, ns.state.openWritesOf.size]).toEqual([0, 0, 0]);
  });
});
