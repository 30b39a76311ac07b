import { describe, expect, it } from 'vitest';
import { ATTACHED_FOR } from '../../src/domain/decide/acquire.js';
import { MAX_PAST_ENDED } from '../../src/domain/decide/granting.js';
import { decideCreateRun, decideStopRun, decideStopRuns, touches } from '../../src/domain/decide/runs.js';
import { SWEEP_LIMIT } from '../../src/domain/decide/upkeep.js';
import { SECOND } from '../../src/domain/time.js';
import { EVERYTHING, leased, Namespace, optimistic, START, stable } from '../support/domain.js';

const create = (ns: Namespace, overrides: object = {}): { runId: string } =>
  ns.decide((decision) =>
    decideCreateRun(decision, {
      principal: 'p',
      freshRunId: ns.fresh('run'),
      purpose: 'purpose',
      goalRevision: 'goal',
      initiator: 'alice',
      initiatorVerified: false,
      parentRunId: '',
      ceiling: null,
      allowed: EVERYTHING,
      authorityEndsAt: START + 60 * SECOND,
      escalation: ['group:on-call'],
      idempotencyKey: 'k',
      fingerprint: 'f',
      requestIds: [],
      ...overrides,
    }),
  );

const stopRuns = (ns: Namespace, overrides: object = {}): { runIds: string[]; effectiveAt: number } =>
  ns.decide((decision) =>
    decideStopRuns(decision, {
      caller: 'operator',
      principal: '',
      resource: '',
      reason: 'incident',
      idempotencyKey: 'k',
      fingerprint: 'f',
      requestIds: [],
      ...overrides,
    }),
  );

describe('CreateRun (R1, P6)', () => {
  it('keeps the contract and starts active', () => {
    const ns = new Namespace();
    const { runId } = create(ns);
    expect(ns.state.runs.get(runId)).toMatchObject({
      state: 'active',
      principal: 'p',
      initiator: 'alice',
      authorityEndsAt: START + 60 * SECOND,
      createdAt: ns.now,
      endedAt: null,
    });
  });

  it('the same key of the same principal is the same run; with another request it is refused', () => {
    const ns = new Namespace();
    const first = create(ns);
    expect(create(ns)).toEqual(first);
    expect(ns.last).toEqual([]);
    expect(() => create(ns, { fingerprint: 'g' })).toThrow(
      expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_REUSED' }),
    );
    expect(create(ns, { principal: 'q' })).not.toEqual(first);
  });

  it('the same key is the same run also after its authority has ended', () => {
    const ns = new Namespace();
    const first = create(ns);
    ns.advance(61 * SECOND);
    expect(create(ns)).toEqual(first);
  });

  it.each([0, START - 1, START])(
    'an end of authority that is not in the future is bad input (%d)',
    (authorityEndsAt) => {
      const ns = new Namespace();
      expect(() => create(ns, { authorityEndsAt })).toThrow(expect.objectContaining({ reason: 'INVALID_ARGUMENT' }));
      expect(ns.state.runs.size).toBe(0);
    },
  );
});

describe('UpdateRunState (R5)', () => {
  it('is idempotent by its key', () => {
    const ns = new Namespace().runs('a');
    ns.update('a', 'waiting_for_input', { key: 'k', reason: 'which region?' });
    expect(ns.state.runs.get('a')).toMatchObject({ state: 'waiting_for_input', stateReason: 'which region?' });
    ns.update('a', 'active');
    ns.update('a', 'waiting_for_input', { key: 'k' });
    expect(ns.last).toEqual([]);
    expect(ns.state.runs.get('a')?.state).toBe('active');
    expect(() => ns.update('a', 'blocked', { key: 'k' })).toThrow(
      expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_REUSED' }),
    );
  });

  it.each(['finished', 'failed'] as const)('%s ends all that the run holds and waits for', (state) => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('doc/x'));
    ns.hold('b', leased('doc/y'));
    const waiting = ns.queue('a', leased('doc/y'));
    ns.update('a', state);
    expect(ns.state.runs.get('a')).toMatchObject({ state, endedAt: ns.now });
    expect(ns.lease(lease)).toMatchObject({ state: 'ended', endReason: 'run_ended' });
    expect(ns.lease(waiting)).toMatchObject({ state: 'ended', endReason: 'run_ended' });
    expect(ns.check(lease, {}).results[0]?.reason).toBe('run_ended');
  });

  it('an ended run changes no more, but its last call may be repeated', () => {
    const ns = new Namespace().runs('a');
    ns.update('a', 'finished', { key: 'k' });
    expect(() => ns.update('a', 'active')).toThrow(expect.objectContaining({ reason: 'RUN_ENDED' }));
    ns.update('a', 'finished', { key: 'k' });
    expect(ns.last).toEqual([]);
  });

  it("nobody changes another principal's run, but an operator", () => {
    const ns = new Namespace();
    ns.run('b', { principal: 'q' });
    const as = (principal: string) => () =>
      ns.decide((decision) => decideStopRun(decision, { principal, runId: 'b', reason: 'x', requestIds: [] }));
    expect(as('p')).toThrow(expect.objectContaining({ reason: 'RUN_NOT_FOUND' }));
    expect(as('q')).not.toThrow();
  });
});

describe('StopRun (R4, P3, F14)', () => {
  it('ends everything at once, and is in force at the time it says', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('doc/x'));
    ns.hold('b', leased('doc/y'));
    const waiting = ns.queue('a', leased('doc/y'));
    const { effectiveAt } = ns.stop('a', 'because');
    expect(ns.state.runs.get('a')).toMatchObject({ state: 'stopped', stateReason: 'because', endedAt: effectiveAt });
    expect(ns.lease(lease)).toMatchObject({ state: 'ended', endReason: 'run_stopped', endedAt: effectiveAt });
    expect(ns.lease(waiting)).toMatchObject({ state: 'ended', endReason: 'run_stopped' });
    expect(ns.check(lease, {}).results[0]?.reason).toBe('run_stopped');
  });

  it('is idempotent, also for a run that ended otherwise', () => {
    const ns = new Namespace().runs('a', 'b');
    const first = ns.stop('a');
    ns.advance(SECOND);
    expect(ns.stop('a')).toEqual(first);
    expect(ns.last).toEqual([]);
    ns.update('b', 'finished');
    ns.stop('b');
    expect(ns.state.runs.get('b')?.state).toBe('finished');
  });

  it('sends whoever asks for more to an operator, and not into a new run; one that finished into a new run (R4)', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.stop('a');
    ns.update('b', 'finished');
    const refusal = (runId: string) => ns.refused(ns.acquire(runId, [leased('doc/x')]));
    expect(refusal('a')).toMatchObject({ kind: 'run_ended', resolution: { who: 'operator', retryable: false } });
    expect(refusal('b')).toMatchObject({ kind: 'run_ended', resolution: { who: 'runner', retryable: false } });
  });

  it('grants those who waited for what it held', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    ns.stop('a');
    expect(ns.lease(waiting).state).toBe('active');
  });

  it.each([
    ['', 'The run is stopped.'],
    ['no more money', 'The run is stopped: no more money.'],
    ['No more money.', 'The run is stopped: No more money.'],
  ])('the reason is told as it was given: %j', (reason, message) => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.stop('a', reason);
    expect(ns.refused(ns.acquire('a', [leased('doc/x')])).message).toBe(message);
    expect(ns.check(lease, {}).results[0]?.message).toBe(message.replace('is stopped', 'was stopped'));
  });

  it('an unknown run is not found', () => {
    const ns = new Namespace();
    ns.loaded = { ...ns.loaded, runs: new Map([['nobody', null]]) };
    expect(() => ns.stop('nobody')).toThrow(expect.objectContaining({ reason: 'RUN_NOT_FOUND' }));
  });
});

describe('StopRuns', () => {
  const three = (): Namespace => {
    const ns = new Namespace();
    ns.run('a', { principal: 'p' });
    ns.run('b', { principal: 'p' });
    ns.run('c', { principal: 'q' });
    ns.hold('a', leased('doc/x/1'));
    ns.hold('b', leased('doc/y'));
    ns.queue('c', optimistic('doc/x/'));
    return ns;
  };

  it('stops all, those of a principal, or those that hold or wait for something at, above or below a resource', () => {
    expect(stopRuns(three()).runIds).toEqual(['a', 'b', 'c']);
    expect(stopRuns(three(), { principal: 'p' }).runIds).toEqual(['a', 'b']);
    expect(stopRuns(three(), { resource: 'doc/x' }).runIds).toEqual(['a', 'c']);
    expect(stopRuns(three(), { resource: 'doc/x/1/deeper' }).runIds).toEqual(['a', 'c']);
    expect(stopRuns(three(), { resource: 'doc/xy' }).runIds).toEqual([]);
    expect(stopRuns(three(), { principal: 'q', resource: 'doc/y' }).runIds).toEqual([]);
  });

  it('a repeated call answers as the first, and stops nothing that came since', () => {
    const ns = three();
    const first = stopRuns(ns);
    ns.advance(SECOND);
    ns.run('d', { principal: 'p' });
    expect(stopRuns(ns)).toEqual(first);
    expect(ns.last).toEqual([]);
    expect(ns.state.runs.get('d')?.state).toBe('active');
    expect(() => stopRuns(ns, { fingerprint: 'g' })).toThrow(
      expect.objectContaining({ reason: 'IDEMPOTENCY_KEY_REUSED' }),
    );
  });

  it('a repeated call looks up together what is no longer in memory', () => {
    const ns = three();
    stopRuns(ns);
    ns.state.runs.delete('a');
    ns.state.runs.delete('b');
    expect(() => stopRuns(ns)).toThrow(expect.objectContaining({ wanted: { runIds: ['a', 'b'] } }));
    ns.loaded = {
      ...ns.loaded,
      runs: new Map([
        ['a', null],
        ['b', null],
      ]),
    };
    expect(stopRuns(ns).runIds).toEqual(['a', 'b', 'c']);
  });

  it('leaves nothing live, whoever waited for whom', () => {
    const ns = three();
    stopRuns(ns);
    expect([ns.state.activeLeases, ns.state.waitingLeases]).toEqual([0, 0]);
  });

  it('grants nothing to a run that it stops as well (F14)', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'));
    stopRuns(ns);
    expect(ns.kinds).not.toContain('lease_granted');
  });
});

describe('the end of authority (R2)', () => {
  it('is the same sequence, by the sweeper: expired, with everything the run held', () => {
    const ns = new Namespace();
    ns.run('a', { authorityEndsAt: START + ATTACHED_FOR });
    ns.run('b');
    const lease = ns.hold('a', leased('doc/x'));
    ns.hold('b', leased('doc/y'));
    const waiting = ns.queue('a', leased('doc/y'));
    ns.advance(ATTACHED_FOR);
    expect(ns.check(lease, {}).allowed).toBe(false);
    ns.sweep();
    expect(ns.state.runs.get('a')).toMatchObject({ state: 'expired', endedAt: ns.now });
    expect(ns.lease(lease)).toMatchObject({ state: 'ended', endReason: 'expired' });
    expect(ns.lease(waiting).state).toBe('ended');
    // The latest of what was taken to be over: the place in the queue, a moment after the authority.
    expect(ns.decision.reliedOnAsPast).toBe(waiting.waiting?.attachedUntil);
  });
});

describe('the sweeper', () => {
  it('ends what is over and nothing else, and says when there is more', () => {
    const ns = new Namespace().runs('a');
    for (let index = 0; index < SWEEP_LIMIT + 20; index += 1) ns.hold('a', leased(`doc/${index}`));
    ns.advance(30 * SECOND);
    const late = ns.hold('a', leased('doc/late'));
    ns.advance(31 * SECOND);
    expect(ns.sweep().more).toBe(true);
    expect(ns.sweep().more).toBe(false);
    expect(ns.state.activeLeases).toBe(1);
    expect(ns.lease(late).state).toBe('active');
    ns.sweep();
    expect(ns.last).toEqual([]);
  });
});

it('touches: at, above or below, by whole segments', () => {
  expect(touches('a/b', 'a/b')).toBe(true);
  expect(touches('a/b', 'a')).toBe(true);
  expect(touches('a', 'a/b')).toBe(true);
  expect(touches('a/b', 'a/bc')).toBe(false);
});

describe('runs whose authority has ended, many at once', () => {
  it('are ended with all that they hold and wait for, in bounded appends', () => {
    const ns = new Namespace().runs('other');
    ns.hold('other', leased('doc/x'));
    const names = Array.from({ length: 100 }, (_, index) => `run-${index}`);
    for (const runId of names) {
      ns.run(runId, { authorityEndsAt: START + 60 * SECOND });
      for (let index = 0; index < 10; index += 1) ns.hold(runId, leased(`doc/${runId}/${index}`));
      for (let index = 0; index < 10; index += 1) ns.queue(runId, leased('doc/x'));
    }
    expect(ns.state.waitingLeases).toBe(1_000);
    ns.advance(61 * SECOND);
    let sweeps = 0;
    for (let more = true; more; sweeps += 1) {
      more = ns.sweep().more;
      expect(ns.last.length).toBeLessThanOrEqual(SWEEP_LIMIT + MAX_PAST_ENDED + 10);
    }
    expect(sweeps).toBeGreaterThan(2);
    expect(names.map((runId) => ns.state.runs.get(runId)?.state)).toEqual(names.map(() => 'expired'));
    expect([ns.state.activeLeases, ns.state.waitingLeases]).toEqual([0, 0]);
  });

  it('a run that holds more than one sweep ends goes alone', () => {
    const ns = new Namespace().runs('other');
    ns.bounds = { ...ns.bounds, maxWaitersPerRun: 2 * SWEEP_LIMIT };
    ns.hold('other', leased('doc/x'));
    ns.run('wide', { authorityEndsAt: START + 5 * SECOND });
    for (let index = 0; index < SWEEP_LIMIT + 1; index += 1) ns.queue('wide', stable('doc/x'));
    ns.advance(6 * SECOND);
    expect(ns.sweep()).toEqual({ more: false });
    expect(ns.state.runs.get('wide')?.state).toBe('expired');
    expect(ns.state.waitingLeases).toBe(0);
  });
});
