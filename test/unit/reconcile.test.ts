import { describe, expect, it } from 'vitest';
import type { DomainEvent, EventBody } from '../../src/domain/event.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { Reconciliation, type TargetRecord } from '../../src/services/reconcile.js';

// A2: what a target recorded is compared with what the log can prove.

const T = 1_764_425_000_000_000;
const at = (seconds: number): number => T + seconds * SECOND;
const TARGET = 'svc:release';

interface Logged {
  readonly at: number;
  readonly body: EventBody;
  readonly runId?: string;
  /** Default: the target. */
  readonly actor?: string;
}

const granted = (leaseId: string, from: number, until: number, more: object = {}): Logged => {
  const entry = {
    resource: 'release/prod',
    access: 'write',
    scope: 'exact',
    actions: ['promote'],
    observedRefusal: null,
    ...more,
  };
  const lease = { leaseId, runId: 'run-1', entries: [entry], expiresAt: at(until) } as unknown as Lease;
  return { at: from, body: { kind: 'lease_granted', lease, fingerprint: null }, runId: 'run-1' };
};
const ended = (leaseId: string, when: number): Logged => ({
  at: when,
  body: { kind: 'lease_ended', leaseId, endReason: 'released', reason: '', lockDelayUntil: null },
});
const renewed = (leaseId: string, when: number, until: number): Logged => {
  const renewals = [{ leaseId, expiresAt: at(until) }] as unknown as Extract<
    EventBody,
    { kind: 'leases_renewed' }
  >['renewals'];
  return { at: when, body: { kind: 'leases_renewed', runId: 'run-1', renewals } };
};
const write = { resource: 'release/prod', action: 'promote' };
const admitted = (when: number, requestId: string): Logged => {
  const writes = [{ ...write, admissionId: 'a', token: 1, observedVersion: null }];
  return { at: when, runId: 'run-1', body: { kind: 'writes_admitted', target: TARGET, requestId, writes } };
};
const reported = (
  when: number,
  requestId: string,
  result: 'succeeded' | 'failed',
  newVersion: string | null = null,
) => {
  const one = {
    ...write,
    admissionId: '',
    result,
    observedVersion: null,
    newVersion,
    changedFields: [],
    contradicts: false,
  };
  const body: EventBody = { kind: 'writes_reported', target: TARGET, requestId, detail: '', writes: [one] };
  return { at: when, body, runId: 'run-1' };
};
const nothing = (when: number): Logged => ({ at: when, body: { kind: 'namespace_created', name: 'x' } });

const record = (seconds: number, more: Partial<TargetRecord> = {}): TargetRecord => ({
  ...{ line: 1, identity: 'run-1', runId: 'run-1', requestId: `r${seconds}`, ...write, result: 'written' },
  ...{ at: at(seconds), newVersion: null, ...more },
});

function reconciled(log: readonly Logged[], records: readonly TargetRecord[], firstRevision = 1) {
  const reconciliation = new Reconciliation(records, TARGET, 5 * SECOND);
  for (const [index, { body, at: seconds, runId = '', actor = TARGET }] of log.entries()) {
    const event: DomainEvent = {
      time: at(seconds),
      actor,
      runId,
      leaseId: '',
      resources: [],
      requestIds: [],
      body,
    };
    reconciliation.note(event, firstRevision + index);
  }
  const { findings, ...counts } = reconciliation.judge();
  return { ...counts, findings, kinds: findings.map(({ kind }) => kind) };
}

describe('a record of a write', () => {
  const log = [nothing(0), granted('l', 100, 200), renewed('l', 190, 400), ended('l', 300), nothing(1_000)];

  it('is right while the lease lives, give or take the tolerance', () => {
    for (const time of [96, 150, 250, 304]) expect(reconciled(log, [record(time)]).kinds).toEqual([]);
  });

  it('is told when the lease was not live then, with the end that the log says', () => {
    for (const time of [50, 320, 900]) expect(reconciled(log, [record(time)]).kinds).toEqual(['not_live']);
    const [finding] = reconciled(log, [record(320)]).findings;
    expect(finding).toMatchObject({ loggedAt: at(300), revision: 2, meaning: expect.stringContaining('released') });
  });

  it('is told when nothing ever covered it: run, resource, action', () => {
    for (const other of [{ runId: 'run-2' }, { runId: '' }, { resource: 'release/dev' }, { action: 'delete' }])
      expect(reconciled(log, [record(150, other)]).kinds).toEqual(['no_lease']);
    expect(reconciled(log, [record(150, { runId: 'run-2', result: 'stale_token' })]).kinds).toEqual([]);
  });

  it('is covered by a subtree above it, as long as the lease has it', () => {
    const subtree = [nothing(0), granted('l', 100, 400, { resource: 'release', scope: 'subtree' })];
    const without: EventBody = { kind: 'lease_amended', leaseId: 'l', entries: [] } as unknown as EventBody;
    const amended = [...subtree, { at: 200, body: without }, nothing(900)];
    expect(reconciled(amended, [record(150)]).kinds).toEqual([]);
    expect(reconciled(amended, [record(250)]).kinds).toEqual(['not_live']);
  });

  it('is told when a child run held it meanwhile, and the lease was suspended there', () => {
    const entry = { ...write, access: 'write', scope: 'exact', actions: ['promote'], observedRefusal: null };
    const amended = (when: number, suspended: boolean): Logged => {
      const body = { kind: 'lease_amended', leaseId: 'l', entries: [{ ...entry, suspended }] };
      return { at: when, body: body as unknown as EventBody };
    };
    const delegated = [nothing(0), granted('l', 100, 400), amended(200, true), amended(300, false), nothing(900)];
    for (const time of [150, 350]) expect(reconciled(delegated, [record(time)]).kinds).toEqual([]);
    expect(reconciled(delegated, [record(250)]).kinds).toEqual(['not_live']);
  });

  it('is right of view and local kinds until their targets know of the end', () => {
    const end = (lockDelayUntil: number | null): Logged => ({
      at: 300,
      body: { kind: 'lease_ended', leaseId: 'l', endReason: 'taken_over', reason: '', lockDelayUntil },
    });
    for (const [validation, right, wrong] of [
      ['local', [290, 350], [380]],
      ['introspect', [290], [350, 380]],
    ] as const) {
      const held = granted('l', 100, 900, { validation });
      const { entries } = (held.body as Extract<EventBody, { kind: 'lease_granted' }>).lease;
      const left = { leaseId: 'l.1', entries, ruleLocks: [], until: at(360) };
      const amended = { kind: 'lease_amended', leaseId: 'l', entries: [], left: validation === 'local' ? left : null };
      const identified = { kind: 'database_identified', lostHistory: true, localKindsFrom: at(360) };
      for (const lost of [
        end(validation === 'local' ? at(360) : null),
        { at: 300, body: amended as unknown as EventBody },
        { at: 300, body: identified as unknown as EventBody },
      ]) {
        const told = [nothing(0), held, lost, nothing(1_000)];
        for (const time of right) expect(reconciled(told, [record(time)]).kinds).toEqual([]);
        for (const time of wrong) expect(reconciled(told, [record(time)]).kinds).toEqual(['not_live']);
      }
    }
  });

  it('is right no longer than its lease where the database lost history', () => {
    const identified = { kind: 'database_identified', lostHistory: true, localKindsFrom: at(360) };
    const lost = { at: 300, body: identified as unknown as EventBody };
    const told = [nothing(0), granted('l', 100, 320, { validation: 'local' }), lost, nothing(1_000)];
    expect(reconciled(told, [record(310)]).kinds).toEqual([]);
    expect(reconciled(told, [record(340)]).kinds).toEqual(['not_live']);
  });

  it('is not judged where the log says nothing: before its beginning, after its end, by what was cut', () => {
    expect(reconciled(log, [record(-20, { runId: 'x' }), record(2_000)])).toMatchObject({ kinds: [], unjudged: 2 });
    expect(reconciled([nothing(0), nothing(900)], [record(300)], 7)).toMatchObject({ kinds: [], unjudged: 1 });
  });

  it('alarms nobody whose lease was granted just after the end of the log (F23)', () => {
    const honest = [record(1_001, { runId: 'run-2' }), record(998, { runId: 'run-2' })];
    expect(reconciled([...log.slice(0, -1), nothing(1_000)], honest)).toMatchObject({ kinds: [], unjudged: 2 });
    expect(reconciled([...log, nothing(1_000)], [record(990, { runId: 'run-2' })]).kinds).toEqual(['no_lease']);
  });

  it('says by which word a record is one of a write, where the target has another', () => {
    const told = reconciled([...log, reported(300, 'r300', 'succeeded')], [record(300, { result: 'succeeded' })]);
    expect(told.findings.map(({ meaning }) => meaning)).toEqual([
      'The target reported succeeded, and no record of it says "written", only "succeeded".',
    ]);
  });

  const overrode = (when: number, requestId: string): EventBody => {
    const use = { requestId, usedAt: at(when), writes: [{ ...write, observedVersion: null }] };
    const override = { overrideId: 'o', who: 'ann', why: 'fire', until: at(600), patterns: [], use, notOwned: [] };
    return { kind: 'override_reported', ...override };
  };
  const byPerson = (seconds: number, more: Partial<TargetRecord> = {}) => record(seconds, { runId: '', ...more });

  it('is only told of when a person overrode', () => {
    // Twice, by requests that have one id.
    const told = [...log, { at: 900, body: overrode(500, 'r') }, { at: 1_000, body: overrode(700, 'r') }];
    for (const time of [498, 504, 699]) {
      const { findings } = reconciled(told, [byPerson(time, { requestId: 'r' })]);
      expect(findings).toMatchObject([{ kind: 'override', meaning: expect.stringContaining('ann') }]);
    }
    // As whom the gate tells the guard.
    expect(reconciled(told, [record(500, { requestId: 'r', runId: 'override:o' })]).kinds).toEqual(['override']);
  });

  it('is no override for another target’s word, by a run, at another time, or of something else', () => {
    const told = { at: 1_000, body: overrode(500, 'r500') };
    expect(reconciled([...log, { ...told, actor: 'svc:other' }], [byPerson(500)]).kinds).toEqual(['no_lease']);
    for (const other of [
      { runId: 'run-2' },
      { runId: 'override:p' },
      { at: at(600) },
      { resource: 'release/dev' },
      { requestId: 'r' },
    ])
      expect(reconciled([...log, told], [byPerson(500, other)]).kinds, JSON.stringify(other)).toEqual(['no_lease']);
  });

  const denied = (count: number, requestIds: string[], target = TARGET): EventBody => {
    const one = { ...write, reason: 'unknown_lease' as const, runId: '', leaseId: '', presentedRun: '', target, count };
    return { kind: 'checks_denied', denials: [{ ...one, requestIds, observedOnly: true }] };
  };

  it('is only told of when the kind only observes', () => {
    const observed = [...log, { at: 1_000, body: denied(1, ['r500']) }];
    expect(reconciled(observed, [byPerson(500)]).kinds).toEqual(['observed']);
    expect(reconciled(observed, [byPerson(501)]).kinds).toEqual(['no_lease']);
    const others = [...log, { at: 1_000, body: denied(1, ['r500'], 'svc:other') }];
    expect(reconciled(others, [byPerson(500)]).kinds).toEqual(['no_lease']);
  });

  it('may be one of many that were only counted, if it was made then', () => {
    const many = [
      ...log,
      { at: 500, body: denied(101, ['r1']) },
      { at: 700, body: denied(101, ['r2']) },
      nothing(1_000),
    ];
    for (const time of [494, 499, 504, 700]) expect(reconciled(many, [byPerson(time)]).kinds).toEqual(['observed']);
    // The kind may be enforced by then.
    for (const time of [450, 600, 900]) expect(reconciled(many, [byPerson(time)]).kinds).toEqual(['no_lease']);
  });
});

describe('what the target reported', () => {
  const lease = granted('l', 0, 1_000);
  const around = [record(1), record(900)];

  it('is what it recorded', () => {
    const log = [lease, reported(150, 'r150', 'succeeded', '7')];
    expect(reconciled(log, [...around, record(150, { newVersion: '7' })]).kinds).toEqual([]);
    expect(reconciled(log, [...around, record(150, { newVersion: '8' })]).kinds).toEqual(['version_differs']);
    expect(reconciled(log, [...around, record(150, { result: 'version_conflict' })]).kinds).toEqual(['result_differs']);
    const failed = [lease, reported(150, 'r150', 'failed')];
    expect(reconciled(failed, [...around, record(150)]).kinds).toEqual(['result_differs']);
    // A repeated request: refused, then written, and reported both times.
    const twice = [lease, reported(150, 'r150', 'failed'), reported(160, 'r150', 'succeeded')];
    const both = [record(150, { result: 'version_conflict' }), record(160, { requestId: 'r150' })];
    expect(reconciled(twice, [...around, ...both]).kinds).toEqual([]);
  });

  it('has a record, and so has what a check let in, in the time that the records are of', () => {
    expect(reconciled([lease, reported(150, 'r150', 'succeeded')], around).kinds).toEqual(['reported_without_record']);
    expect(reconciled([lease, admitted(150, 'r150')], around).kinds).toEqual(['admitted_without_record']);
    expect(reconciled([lease, admitted(150, 'r150'), reported(151, 'r150', 'failed')], around).kinds).toEqual([]);
    expect(reconciled([lease, admitted(150, 'r150')], [...around, record(150)]).kinds).toEqual([]);
    expect(reconciled([lease, admitted(950, 'r950'), reported(960, 'r960', 'succeeded')], around).kinds).toEqual([]);
  });
});
