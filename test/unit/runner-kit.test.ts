import { afterEach, describe, expect, it, vi } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { WritError } from '../../src/clients/common/errors.js';
import { toDuration } from '../../src/clients/common/time.js';
import { type AcquireRequest, acquire, withWriteSet } from '../../src/clients/runner/acquire.js';
import { LeaseLostError, RefusedError } from '../../src/clients/runner/errors.js';
import { AcquireWriteSetResponse, ReleaseOutcome } from '../../src/gen/writ/v1/lease_service.js';
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

describe('at the end, since the clock never goes back', () => {
  it('counts the time that the machine slept', async () => {
    const { client } = fake(10_000);
    const lease = await acquire(client, REQUEST);
    machine.sleptSeconds += 3_600;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(lease.signal.aborted).toBe(true);
  });
});
