import { afterEach, describe, expect, it, vi } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { WritError } from '../../src/clients/common/errors.js';
import { toDuration } from '../../src/clients/common/time.js';
import { type AcquireRequest, acquire, resume, tryAcquire } from '../../src/clients/runner/acquire.js';
import { LeaseLostError, LeaseReleasedError, RefusedError } from '../../src/clients/runner/errors.js';
import { InterruptedError, interruptSignal } from '../../src/clients/runner/interrupt.js';
import { toAcquireRefusal } from '../../src/clients/runner/refusals.js';
import { withWriteSet } from '../../src/clients/runner/with-write-set.js';
import {
  AcquireWriteSetResponse,
  type LeaseNotice,
  LeaseNoticeKind,
  ReleaseOutcome,
} from '../../src/gen/writ/v1/lease_service.js';
import {
  EndReason,
  Lease as LeaseRecord,
  LeaseState,
  Refusal,
  RefusalKind,
  Scope,
} from '../../src/gen/writ/v1/types.js';

// Before the kit is imported, since its clock counts from then.
const machine = vi.hoisted(() => {
  vi.useFakeTimers();
  return { sleptSeconds: 0 };
});
vi.mock('node:os', async (original) => ({
  ...(await original<typeof import('node:os')>()),
  uptime: () => 1_000 + machine.sleptSeconds,
}));
afterEach(() => {
  vi.clearAllTimers();
});

const record = (ttlMs: number, more: Partial<LeaseRecord> = {}): LeaseRecord =>
  LeaseRecord.fromPartial({
    leaseId: 'ab'.repeat(16),
    runId: 'r',
    state: LeaseState.LEASE_STATE_ACTIVE,
    expiresIn: toDuration(ttlMs),
    entries: [
      { resource: 'a/b', fencingToken: 7n, scope: Scope.SCOPE_EXACT },
      { resource: 't', fencingToken: 9n, scope: Scope.SCOPE_SUBTREE },
    ],
    ...more,
  });

const leased = (lease: LeaseRecord) =>
  AcquireWriteSetResponse.fromPartial({ outcome: { $case: 'lease', value: lease } });
const refused = (kind: RefusalKind) => Refusal.fromPartial({ kind, message: 'no' });
const down = () => Promise.reject(new WritError('UNAVAILABLE', 'down', { retryable: true }));

interface Calls {
  readonly acquire: ReturnType<typeof vi.fn>;
  readonly renew: ReturnType<typeof vi.fn>;
  readonly release: ReturnType<typeof vi.fn>;
}

function fake(ttlMs = 9_000): { client: WritClient; calls: Calls } {
  const renewed = (lease: LeaseRecord) => ({
    results: [{ leaseId: lease.leaseId, outcome: { $case: 'lease' as const, value: lease } }],
    logRevision: 1n,
  });
  const calls: Calls = {
    acquire: vi.fn(async () => leased(record(ttlMs))),
    renew: vi.fn(async () => renewed(record(ttlMs))),
    release: vi.fn(async () => ({
      outcome: ReleaseOutcome.RELEASE_OUTCOME_RELEASED,
      endReason: EndReason.END_REASON_RELEASED,
    })),
  };
  const lease = { acquireWriteSet: calls.acquire, renewLeases: calls.renew, releaseLease: calls.release };
  return { client: { namespace: '', lease } as unknown as WritClient, calls };
}

const refusal = (kind: RefusalKind) => async () => ({
  results: [{ leaseId: '', outcome: { $case: 'refusal', value: refused(kind) } }],
});
const REQUEST: AcquireRequest = { runId: 'r', resources: [{ resource: 'a/b', actions: ['write'] }] };

describe('a held lease', () => {
  it('renews at about a third of its ttl, and stays', async () => {
    const { client, calls } = fake(9_000);
    const lease = await acquire(client, REQUEST);
    await vi.advanceTimersByTimeAsync(2_600);
    expect(calls.renew).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(800);
    expect(calls.renew).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(lease.lost).toBeUndefined();
    expect(calls.renew.mock.calls.length).toBeGreaterThan(17);
    await lease.release();
  });

  it('fires its signal before the expiry, with margin, when no renewal comes through (F8)', async () => {
    const { client, calls } = fake(10_000);
    const events: string[] = [];
    const lease = await acquire(client, {
      ...REQUEST,
      onJeopardy: () => events.push('jeopardy'),
      onSafe: () => events.push('safe'),
      onLost: () => events.push('lost'),
    });
    calls.renew.mockImplementation(down);
    await vi.advanceTimersByTimeAsync(8_900);
    expect(lease.signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(150);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toBeInstanceOf(LeaseLostError);
    expect(lease.lost).toMatchObject({ reason: 'unreachable' });
    expect(events).toEqual(['jeopardy', 'lost']);
  });

  it('fires in time also when renewals neither come back nor fail', async () => {
    const { client, calls } = fake(10_000);
    const lease = await acquire(client, REQUEST);
    calls.renew.mockImplementation(() => new Promise(() => undefined));
    await vi.advanceTimersByTimeAsync(9_050);
    expect(lease.lost).toMatchObject({ reason: 'unreachable' });
  });

  it('counts from when the request was sent, not from when the answer came', async () => {
    const { client, calls } = fake();
    calls.acquire.mockImplementation(async () => {
      await vi.advanceTimersByTimeAsync(3_000);
      return leased(record(10_000));
    });
    calls.renew.mockImplementation(down);
    const lease = await acquire(client, REQUEST);
    expect(lease.remainingMs).toBeCloseTo(6_000, -2);
  });

  it('keeps at least 250 ms of margin', async () => {
    const { client, calls } = fake(1_000);
    calls.renew.mockImplementation(down);
    const lease = await acquire(client, REQUEST);
    expect(lease.remainingMs).toBeLessThanOrEqual(750);
    await vi.advanceTimersByTimeAsync(760);
    expect(lease.signal.aborted).toBe(true);
  });

  it('survives an outage that is shorter than its ttl, and says so (F6)', async () => {
    const { client, calls } = fake(9_000);
    const events: string[] = [];
    const lease = await acquire(client, {
      ...REQUEST,
      onJeopardy: () => events.push('jeopardy'),
      onSafe: () => events.push('safe'),
    });
    const answer = calls.renew.getMockImplementation();
    calls.renew.mockImplementation(down);
    await vi.advanceTimersByTimeAsync(6_000);
    if (answer !== undefined) calls.renew.mockImplementation(answer);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(lease.lost).toBeUndefined();
    expect(events).toEqual(['jeopardy', 'safe']);
    await lease.release();
  });

  it.each([RefusalKind.REFUSAL_KIND_ENDED, RefusalKind.REFUSAL_KIND_RUN_ENDED])(
    'is lost at once when the coordinator says that it has ended (%d)',
    async (kind) => {
      const { client, calls } = fake(9_000);
      calls.renew.mockImplementation(refusal(kind));
      const lease = await acquire(client, REQUEST);
      await vi.advanceTimersByTimeAsync(3_400);
      expect(lease.lost).toMatchObject({ reason: 'ended' });
    },
  );

  it('lives to its expiry, and is not renewed again, when it cannot be extended', async () => {
    const { client, calls } = fake(9_000);
    calls.renew.mockImplementation(refusal(RefusalKind.REFUSAL_KIND_MAX_HOLD));
    const lease = await acquire(client, REQUEST);
    await vi.advanceTimersByTimeAsync(8_000);
    expect(lease.signal.aborted).toBe(false);
    expect(calls.renew).toHaveBeenCalledTimes(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(lease.lost).toMatchObject({ reason: 'not_renewed', message: expect.stringContaining('max_hold') });
  });

  it('claims progress only when the work says so, and is saved by it (F4)', async () => {
    const { client, calls } = fake(9_000);
    const lease = await acquire(client, REQUEST);
    await vi.advanceTimersByTimeAsync(3_400);
    expect(calls.renew.mock.lastCall?.[0].renewals[0].progressMarker).toBeUndefined();
    const answer = calls.renew.getMockImplementation();
    calls.renew.mockImplementation(refusal(RefusalKind.REFUSAL_KIND_NO_PROGRESS));
    await vi.advanceTimersByTimeAsync(3_400);
    if (answer !== undefined) calls.renew.mockImplementation(answer);
    lease.progress('step 2');
    await vi.advanceTimersByTimeAsync(10);
    expect(calls.renew.mock.lastCall?.[0].renewals[0].progressMarker).toBe('step 2');
    await vi.advanceTimersByTimeAsync(30_000);
    expect(lease.lost).toBeUndefined();
    expect(() => lease.progress('x'.repeat(257))).toThrow(RangeError);
    await lease.release();
  });

  it('ends by itself while it may not be renewed', async () => {
    const { client, calls } = fake(9_000);
    const lease = await acquire(client, { ...REQUEST, mayRenew: () => false });
    await vi.advanceTimersByTimeAsync(8_200);
    expect(calls.renew).not.toHaveBeenCalled();
    expect(lease.lost).toMatchObject({ reason: 'not_renewed' });
  });

  it('is released once, and nothing happens to it afterwards (F7)', async () => {
    const { client, calls } = fake(9_000);
    const lost = vi.fn();
    const lease = await acquire(client, { ...REQUEST, onLost: lost });
    await Promise.all([lease.release(), lease.release()]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(calls.release).toHaveBeenCalledTimes(1);
    expect(calls.renew).not.toHaveBeenCalled();
    expect([lost.mock.calls.length, lease.signal.aborted, lease.remainingMs]).toEqual([0, false, 0]);
  });

  it('is in jeopardy when a renewal is overdue, also while one neither comes back nor fails', async () => {
    const { client, calls } = fake(9_000);
    const told: string[] = [];
    const lease = await acquire(client, { ...REQUEST, onJeopardy: (left) => told.push(`jeopardy ${left > 3_000}`) });
    calls.renew.mockImplementation(() => new Promise(() => undefined));
    await vi.advanceTimersByTimeAsync(4_400);
    expect(told).toEqual([]);
    await vi.advanceTimersByTimeAsync(200);
    expect(told).toEqual(['jeopardy true']);
    await lease.release();
  });

  it('is not lost for want of progress that was made while the refusal was on its way', async () => {
    const { client, calls } = fake(9_000);
    const lease = await acquire(client, REQUEST);
    const answer = calls.renew.getMockImplementation();
    calls.renew.mockImplementationOnce(async () => {
      lease.progress('just now');
      return refusal(RefusalKind.REFUSAL_KIND_NO_PROGRESS)();
    });
    if (answer !== undefined) calls.renew.mockImplementation(answer);
    await vi.advanceTimersByTimeAsync(3_400);
    expect(calls.renew.mock.lastCall?.[0].renewals[0].progressMarker).toBe('just now');
    await vi.advanceTimersByTimeAsync(20_000);
    expect(lease.lost).toBeUndefined();
    await lease.release();
  });

  it('has the entries and tokens that a renewal brings, when the conflict map changed them', async () => {
    const { client, calls } = fake(9_000);
    const lease = await acquire(client, REQUEST);
    const entries = [{ resource: 'a/b', fencingToken: 12n, scope: Scope.SCOPE_EXACT }];
    calls.renew.mockImplementation(async () => ({
      results: [
        { leaseId: lease.id, outcome: { $case: 'lease', value: record(9_000, { generation: 2, entries } as never) } },
      ],
    }));
    await vi.advanceTimersByTimeAsync(3_400);
    expect(lease.token('a/b')).toBe(12n);
    await lease.release();
  });

  it('knows the token of what it covers', async () => {
    const lease = await acquire(fake().client, REQUEST);
    expect(['a/b', 'a', 'a/b/c', 't', 't/x', 'tt'].map((resource) => lease.token(resource))).toEqual([
      7n,
      undefined,
      undefined,
      9n,
      9n,
      undefined,
    ]);
    await lease.release();
  });
});

describe('what a lease tells', () => {
  const notice = (kind: LeaseNoticeKind, resource: string, changedAt = 0): LeaseNotice => ({
    kind,
    resource,
    changedAt: changedAt === 0 ? undefined : { seconds: BigInt(changedAt), nanos: 0 },
  });
  const YIELD = LeaseNoticeKind.LEASE_NOTICE_KIND_ASKED_TO_YIELD;
  const CHANGED = LeaseNoticeKind.LEASE_NOTICE_KIND_INPUT_CHANGED;

  async function hearing(...answers: readonly (readonly LeaseNotice[])[]) {
    const { client, calls } = fake(9_000);
    const lease = await acquire(client, REQUEST);
    const told: string[] = [];
    lease.on('asked_to_yield', ({ resources }) => told.push(`yield ${resources.join(' ')}`));
    lease.on('input_changed', ({ resource, changedAtMicros }) => told.push(`changed ${resource} ${changedAtMicros}`));
    for (const notices of answers) {
      calls.renew.mockImplementationOnce(async () => ({
        results: [{ leaseId: lease.id, outcome: { $case: 'lease', value: record(9_000) }, notices }],
      }));
      await vi.advanceTimersByTimeAsync(3_350);
    }
    await lease.release();
    return { told, lease };
  }

  it('asked_to_yield once for each resource that is wanted, and again when it is wanted anew', async () => {
    const { told, lease } = await hearing(
      [notice(YIELD, 'a/b')],
      [notice(YIELD, 'a/b')],
      [notice(YIELD, 'a/b'), notice(YIELD, 't')],
      [],
      [notice(YIELD, 'a/b')],
    );
    expect(told).toEqual(['yield a/b', 'yield t', 'yield a/b']);
    expect(lease.askedToYield).toEqual(['a/b']);
  });

  it('input_changed once for each change', async () => {
    const { told, lease } = await hearing(
      [notice(CHANGED, 'c', 5)],
      [notice(CHANGED, 'c', 5)],
      [notice(CHANGED, 'c', 6), notice(CHANGED, 'd', 6)],
    );
    expect(told).toEqual(['changed c 5000000', 'changed c 6000000', 'changed d 6000000']);
    expect(lease.changedInputs).toEqual(['c', 'd']);
  });

  it('that it is lost also to who listens too late, and nothing to who has stopped listening', async () => {
    const { client, calls } = fake(9_000);
    calls.renew.mockImplementation(refusal(RefusalKind.REFUSAL_KIND_ENDED));
    const lease = await acquire(client, REQUEST);
    const never = vi.fn();
    lease.on('lost', never)();
    await vi.advanceTimersByTimeAsync(3_400);
    const late = vi.fn();
    lease.on('lost', late);
    await vi.advanceTimersByTimeAsync(0);
    expect(late).toHaveBeenCalledWith(lease.lost);
    expect(never).not.toHaveBeenCalled();
  });

  it('by no other name, and to functions alone', async () => {
    const { client } = fake();
    const lease = await acquire(client, { runId: 'r', resources: [{ resource: 'a/b' }] });
    expect(() => lease.on('lsot' as never, () => undefined)).toThrow('lsot; there are jeopardy, safe, lost');
    expect(() => lease.on('lost', undefined as never)).toThrow('must be a function');
    await lease.release();
  });

  it('to the others too when a listener throws, and goes on', async () => {
    const warnings = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    const { client, calls } = fake(9_000);
    const lease = await acquire(client, {
      ...REQUEST,
      onJeopardy: () => {
        throw new Error('a bug');
      },
    });
    const told = vi.fn();
    lease.on('jeopardy', told);
    calls.renew.mockImplementationOnce(down);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(told).toHaveBeenCalledTimes(1);
    expect(warnings.mock.calls[0]?.[0]).toContain('a bug');
    expect(lease.lost).toBeUndefined();
    warnings.mockRestore();
    await lease.release();
  });
});

describe('whether it is held, asked right before a write', () => {
  it('is no after a release, and after an interruption', async () => {
    const { client } = fake(9_000);
    const released = await acquire(client, REQUEST);
    await released.release();
    expect(() => released.assertHeld()).toThrow(LeaseReleasedError);
    const interrupted = await acquire(client, REQUEST);
    interrupted.interrupt(new Error('stop'));
    expect(() => interrupted.assertHeld()).toThrow('stop');
    expect(interrupted.lost).toBeUndefined();
    await interrupted.release();
  });
});

describe('acquire', () => {
  it('throws the refusal', async () => {
    const { client, calls } = fake();
    calls.acquire.mockResolvedValue(
      AcquireWriteSetResponse.fromPartial({
        outcome: { $case: 'refusal', value: refused(RefusalKind.REFUSAL_KIND_HELD) },
      }),
    );
    await expect(acquire(client, REQUEST)).rejects.toThrow(RefusedError);
    expect(calls.release).not.toHaveBeenCalled();
  });

  it('calls again by the same key while it waits, also through an outage', async () => {
    const { client, calls } = fake();
    const waiting = AcquireWriteSetResponse.fromPartial({
      outcome: { $case: 'waiting', value: { requestId: 'q', place: 2 } },
    });
    calls.acquire.mockResolvedValueOnce(waiting).mockImplementationOnce(down).mockResolvedValueOnce(waiting);
    const places: number[] = [];
    const acquired = acquire(client, { ...REQUEST, waitMs: 60_000, onWaiting: (place) => places.push(place.place) });
    await vi.advanceTimersByTimeAsync(2_000);
    const lease = await acquired;
    const keys = calls.acquire.mock.calls.map(([request]) => request.idempotencyKey);
    expect([keys.length, new Set(keys).size, places]).toEqual([4, 1, [2, 2]]);
    await lease.release();
  });

  it('counts from the grant when it waited longer than the lease lives, by asking once more', async () => {
    const { client, calls } = fake(3_000);
    calls.acquire.mockImplementationOnce(async () => {
      await vi.advanceTimersByTimeAsync(8_000);
      return leased(record(3_000));
    });
    const lease = await acquire(client, { ...REQUEST, waitMs: 60_000 });
    expect(lease.lost).toBeUndefined();
    expect(lease.remainingMs).toBeGreaterThan(2_000);
    expect(calls.acquire).toHaveBeenCalledTimes(2);
    expect(new Set(calls.acquire.mock.calls.map(([request]) => request.idempotencyKey)).size).toBe(1);
    await lease.release();
  });

  it('does not ask for ever where every answer is slow', async () => {
    const { client, calls } = fake(3_000);
    calls.acquire.mockImplementation(async () => {
      await vi.advanceTimersByTimeAsync(1_000);
      return leased(record(3_000));
    });
    const lease = await acquire(client, { ...REQUEST, waitMs: 60_000 });
    expect(calls.acquire).toHaveBeenCalledTimes(3);
    expect(lease.remainingMs).toBeLessThanOrEqual(1_750);
    await lease.release();
  });

  it('withdraws by the key when it is given up, or when nobody knows what happened (F1)', async () => {
    const { client, calls } = fake();
    calls.acquire.mockImplementation(() => Promise.reject(new WritError('DEADLINE_EXCEEDED', 'late')));
    await expect(acquire(client, { ...REQUEST, idempotencyKey: 'k' })).rejects.toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    });
    expect(calls.release.mock.lastCall?.[0]).toMatchObject({ runId: 'r', lease: { $case: 'acquireKey', value: 'k' } });

    const giveUp = new AbortController();
    const reason = new Error('enough');
    calls.acquire.mockImplementation(
      (_request, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    );
    const acquired = acquire(client, { ...REQUEST, signal: giveUp.signal });
    giveUp.abort(reason);
    await expect(acquired).rejects.toBe(reason);
    expect(calls.release).toHaveBeenCalledTimes(2);
  });

  it('answers a refusal by its course, for who would rather branch', async () => {
    const { client, calls } = fake();
    const courses: string[] = [];
    for (const kind of ['HELD', 'DEADLOCK', 'PROPOSE_ONLY', 'OUTSIDE_CONTRACT', 'RUN_ENDED'] as const) {
      const value = Refusal.fromPartial({
        kind: RefusalKind[`REFUSAL_KIND_${kind}`],
        message: 'no',
        retryAfter: toDuration(1_500),
        resolution: { action: 'Wait.', who: 'runner', retryable: true },
      });
      calls.acquire.mockResolvedValue(AcquireWriteSetResponse.fromPartial({ outcome: { $case: 'refusal', value } }));
      const asked = await tryAcquire(client, REQUEST);
      if (asked.granted) throw new Error('granted');
      courses.push(`${asked.refusal.kind} ${asked.refusal.course}`);
      expect(asked.refusal).toMatchObject({ retryAfterMs: 1_500, resolution: { who: 'runner', retryable: true } });
    }
    expect(courses).toEqual([
      'held wait',
      'deadlock give_back',
      'propose_only propose',
      'outside_contract ask',
      'run_ended stop',
    ]);
    calls.acquire.mockImplementation(async () => leased(record(9_000)));
    const granted = await tryAcquire(client, REQUEST);
    expect(granted.granted).toBe(true);
    if (granted.granted) await granted.lease.release();
  });

  it('knows the course of every refusal that an acquire can meet', () => {
    const elsewhere = [
      ...['UNSPECIFIED', 'TOO_LATE', 'MAX_HOLD', 'NO_PROGRESS'],
      ...['TOO_SHORT', 'AUDIENCE_NOT_ALLOWED', 'CREDENTIALS_REVOKED'],
    ].map((name) => `REFUSAL_KIND_${name}`);
    const kinds = Object.values(RefusalKind).filter(
      (kind): kind is RefusalKind => typeof kind === 'number' && kind >= 0,
    );
    const unknown = kinds.filter((kind) => toAcquireRefusal(Refusal.fromPartial({ kind })).kind === 'unknown');
    expect(unknown.map((kind) => RefusalKind[kind])).toEqual(elsewhere);
    // As the coordinator says of it: time, or a report, ends it without anybody asking a person.
    const doubt = Refusal.fromPartial({ kind: RefusalKind.REFUSAL_KIND_IN_DOUBT });
    expect(toAcquireRefusal(doubt).course).toBe('wait');
  });

  it('asks again by the same key when the answer does not come, for as long as it may wait (F1)', async () => {
    const { client, calls } = fake();
    calls.acquire.mockImplementationOnce(() => Promise.reject(new WritError('DEADLINE_EXCEEDED', 'late')));
    const acquired = acquire(client, { ...REQUEST, waitMs: 60_000 });
    await vi.advanceTimersByTimeAsync(3_000);
    const lease = await acquired;
    expect(new Set(calls.acquire.mock.calls.map(([request]) => request.idempotencyKey)).size).toBe(1);
    expect(calls.acquire.mock.calls.length).toBe(2);
    await lease.release();
  });

  it('names what is wrong with the targets before it asks for anything', async () => {
    const { client, calls } = fake();
    const wrong = [
      [{ origins: ['https://a.example/path'] }],
      [{ origins: ['http://a.example'] }],
      [{ origins: [] }],
      [{ origins: ['https://a.example'] }, { origins: ['https://a.example:443'] }],
      [{ audience: 'has space', origins: ['https://a.example'] }],
      [{ origins: ['https://a.example'], dpop: {} as never }],
    ];
    for (const targets of wrong)
      await expect(acquire(client, { ...REQUEST, targets })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        violations: [{ field: expect.stringMatching(/^targets\[\d\]/) }],
      });
    expect(calls.acquire).not.toHaveBeenCalled();
  });

  // A word that is not known would be taken for the default: less, or more, than was meant.
  it.each([
    [{ resource: 'a/b', scope: 'tree' }, 'resources[0].scope'],
    [{ resource: 'a/b', access: 'WRITE' }, 'resources[0].access'],
    [{ resource: 'a/b', access: 'toString' }, 'resources[0].access'],
    [{ resource: 'a/b', actions: 'promote' }, 'resources[0].actions'],
    [{ resource: 'a/b', actions: [1] }, 'resources[0].actions'],
    ['a/b', 'resources[0]'],
  ])('asks for nothing where a resource is not of its type: %j', async (resource, field) => {
    const { client, calls } = fake();
    await expect(acquire(client, { runId: 'r', resources: [resource as never] })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      violations: [{ field }],
    });
    await expect(acquire(client, { runId: 'r', resources: 'a/b' as never })).rejects.toMatchObject({
      violations: [{ field: 'resources', description: 'must be a list' }],
    });
    expect(calls.acquire).not.toHaveBeenCalled();
  });

  it('does not withdraw what another request owns', async () => {
    const { client, calls } = fake();
    calls.acquire.mockImplementation(() => Promise.reject(new WritError('ALREADY_EXISTS', 'key reused')));
    await expect(acquire(client, REQUEST)).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
    expect(calls.release).not.toHaveBeenCalled();
  });

  it('does not take a lease that has ended for a lease', async () => {
    const { client, calls } = fake();
    calls.acquire.mockResolvedValue(
      leased(record(0, { state: LeaseState.LEASE_STATE_ENDED, endReason: EndReason.END_REASON_REVOKED })),
    );
    await expect(acquire(client, REQUEST)).rejects.toMatchObject({
      name: 'LeaseLostError',
      message: expect.stringContaining('revoked'),
    });
  });
});

describe('resume', () => {
  const again = { ...REQUEST, idempotencyKey: 'deploy-1' };

  it('renews at once, since nobody knows how much is left', async () => {
    const { client, calls } = fake(9_000);
    calls.acquire.mockResolvedValueOnce(leased(record(2_000)));
    const lease = await resume(client, again);
    await vi.advanceTimersByTimeAsync(1);
    expect(calls.renew).toHaveBeenCalledTimes(1);
    expect(calls.acquire.mock.lastCall?.[0].idempotencyKey).toBe('deploy-1');
    await vi.advanceTimersByTimeAsync(20_000);
    expect(lease.lost).toBeUndefined();
    await lease.release();
  });

  it('gives nothing back when the coordinator is out of reach, but does when it is given up', async () => {
    const { client, calls } = fake();
    calls.acquire.mockImplementation(down);
    await expect(resume(client, again)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(calls.release).not.toHaveBeenCalled();
    await expect(
      resume(client, { ...again, signal: AbortSignal.abort(new Error('enough')), waitMs: 60_000 }),
    ).rejects.toThrow('enough');
    expect(calls.release.mock.lastCall?.[0]).toMatchObject({ lease: { $case: 'acquireKey', value: 'deploy-1' } });
  });
});

describe('withWriteSet', () => {
  it('gives the lease back on every way out', async () => {
    const { client, calls } = fake();
    expect(await withWriteSet(client, REQUEST, async (lease) => lease.token('a/b'))).toBe(7n);
    const failure = new Error('work');
    await expect(withWriteSet(client, REQUEST, () => Promise.reject(failure))).rejects.toBe(failure);
    calls.release.mockImplementation(down);
    await expect(withWriteSet(client, REQUEST, () => Promise.reject(failure))).rejects.toBe(failure);
    expect(await withWriteSet(client, REQUEST, async () => 'done')).toBe('done');
    expect(calls.release).toHaveBeenCalledTimes(4);
  });

  it('says so when the lease was lost under work that did not notice', async () => {
    const { client, calls } = fake(9_000);
    calls.renew.mockImplementation(refusal(RefusalKind.REFUSAL_KIND_ENDED));
    const work = withWriteSet(client, REQUEST, async () => {
      await vi.advanceTimersByTimeAsync(4_000);
      return 'done';
    });
    await expect(work).rejects.toMatchObject({ name: 'LeaseLostError', reason: 'ended' });
  });
});

describe('an interruption', () => {
  it('by the first signal fires that of the work; the lease is renewed until the work has ended, and then given back', async () => {
    const { client, calls } = fake(9_000);
    const interrupt = interruptSignal(['SIGUSR2']);
    const working = withWriteSet(client, { ...REQUEST, signal: interrupt.signal }, async (lease, signal) => {
      process.emit('SIGUSR2', 'SIGUSR2');
      expect(signal.reason).toBeInstanceOf(InterruptedError);
      await vi.advanceTimersByTimeAsync(20_000);
      expect(calls.renew.mock.calls.length).toBeGreaterThan(4);
      expect(calls.release).not.toHaveBeenCalled();
      expect(lease.lost).toBeUndefined();
      throw signal.reason;
    });
    await expect(working).rejects.toThrow('interrupted by SIGUSR2');
    expect(calls.release).toHaveBeenCalledTimes(1);
    // The second one would end the process.
    expect(process.listenerCount('SIGUSR2')).toBe(0);
    interrupt.dispose();
  });

  it('is not heard any more by work that has ended', async () => {
    const { client } = fake(9_000);
    const giveUp = new AbortController();
    let kept: AbortSignal | undefined;
    await withWriteSet(client, { ...REQUEST, signal: giveUp.signal }, async (_, signal) => {
      kept = signal;
    });
    giveUp.abort();
    expect(kept?.aborted).toBe(false);
  });

  it('`await using` gives the lease back, and is no error when that fails', async () => {
    const { client, calls } = fake(9_000);
    const lease = await acquire(client, REQUEST);
    calls.release.mockImplementation(down);
    await lease[Symbol.asyncDispose]();
    expect(calls.release).toHaveBeenCalledTimes(1);
  });
});

describe('at the end, since the clock never goes back', () => {
  it('whether it is held is looked up by the clock, not by whether a timer has fired (F12)', async () => {
    const { client } = fake(10_000);
    const lease = await acquire(client, REQUEST);
    vi.setSystemTime(Date.now() + 3_600_000);
    lease.assertHeld();
    machine.sleptSeconds += 10;
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
    expect(lease.signal.aborted).toBe(true);
    expect(() => lease.assertHeld()).toThrow(LeaseLostError);
  });

  it('counts the time that the machine slept', async () => {
    const { client } = fake(10_000);
    const lease = await acquire(client, REQUEST);
    machine.sleptSeconds += 3_600;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(lease.signal.aborted).toBe(true);
  });
});
