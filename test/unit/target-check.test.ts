import { describe, expect, it } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { WritError } from '../../src/clients/common/errors.js';
import { toDuration } from '../../src/clients/common/time.js';
import { checkFence } from '../../src/clients/target/check.js';
import { CheckFenceResponse, FenceReason } from '../../src/gen/writ/v1/fence_service.js';

const QUESTION = {
  leaseId: 'l',
  writes: [
    { resource: 'a', action: 'w', token: 5n },
    { resource: 'b', action: 'w', token: 5n },
  ],
};

function answering(answer: () => Promise<CheckFenceResponse>): { client: WritClient; asked: unknown[] } {
  const asked: unknown[] = [];
  const check = (request: unknown) => {
    asked.push(request);
    return answer();
  };
  return { client: { fence: { checkFence: check } } as unknown as WritClient, asked };
}

const OK = { allowed: true, reason: FenceReason.FENCE_REASON_OK, message: '' };
const STALE = { allowed: false, reason: FenceReason.FENCE_REASON_STALE_TOKEN, message: 'the token for b is stale' };

describe('checkFence', () => {
  it('tells the verdict, per write', async () => {
    const { client, asked } = answering(async () =>
      CheckFenceResponse.fromPartial({
        allowed: true,
        results: [OK, OK],
        logRevision: 9n,
        validFor: toDuration(1_000),
      }),
    );
    const decision = await checkFence(client, { ...QUESTION, presenterRunId: 'r' });
    expect(decision).toMatchObject({ allowed: true, reason: 'ok', logRevision: 9n, error: undefined });
    expect(decision.validUntil).toBeGreaterThan(performance.now());
    expect(asked[0]).toMatchObject({
      leaseId: 'l',
      presenterRunId: 'r',
      writes: [{ resource: 'a', fencingToken: 5n }, { resource: 'b' }],
    });
  });

  it('asks by a credential, with the key that its presenter proved to have', async () => {
    const { client, asked } = answering(async () => CheckFenceResponse.fromPartial({ allowed: true, results: [OK] }));
    const writes = [{ resource: 'a', action: 'w' }];
    await checkFence(client, { credential: 'e.y.J', presenter: { jkt: 'k' }, writes });
    await checkFence(client, { credential: 'e.y.J', presenter: { x5tS256: 'c' }, writes });
    expect(asked).toMatchObject([
      {
        leaseId: '',
        credential: 'e.y.J',
        presenter: { key: { $case: 'jkt', value: 'k' } },
        writes: [{ fencingToken: 0n }],
      },
      { presenter: { key: { $case: 'x5tS256', value: 'c' } } },
    ]);
  });

  it('denies all when one write is not allowed, with its reason', async () => {
    const { client } = answering(async () => CheckFenceResponse.fromPartial({ allowed: false, results: [OK, STALE] }));
    expect(await checkFence(client, QUESTION)).toMatchObject({
      allowed: false,
      reason: 'stale_token',
      message: STALE.message,
      writes: [{ allowed: true }, { allowed: false, reason: 'stale_token' }],
      validUntil: undefined,
    });
  });

  it.each([
    ['unreachable', new WritError('UNAVAILABLE', 'x', { retryable: true }), 'coordinator_unreachable', 'be asked'],
    ['too slow', new WritError('DEADLINE_EXCEEDED', 'late'), 'coordinator_unreachable', 'could not be asked'],
    ['of another opinion about the token', new WritError('UNAUTHENTICATED', 'who?'), 'check_failed', 'did not decide'],
    ['broken', new TypeError('oops'), 'check_failed', 'did not decide'],
  ])('fails closed when the coordinator is %s', async (_name, error, reason, words) => {
    const { client } = answering(() => Promise.reject(error));
    const decision = await checkFence(client, QUESTION);
    expect(decision).toMatchObject({ allowed: false, reason, writes: [{ allowed: false }, { allowed: false }] });
    expect(decision.error).toBeInstanceOf(WritError);
    expect(decision.message).toContain(words);
  });

  it.each([
    ['too few verdicts', { allowed: true, results: [OK] }],
    ['no verdicts', { allowed: true, results: [] }],
    ['a sum that does not add up', { allowed: true, results: [OK, STALE] }],
    ['a denial of what is allowed', { allowed: false, results: [OK, OK] }],
  ])('fails closed on an answer with %s', async (_name, answer) => {
    const { client } = answering(async () => CheckFenceResponse.fromPartial(answer));
    expect(await checkFence(client, QUESTION)).toMatchObject({ allowed: false, reason: 'check_failed' });
  });

  it('allows nothing when nothing is asked', async () => {
    const { client } = answering(async () => CheckFenceResponse.fromPartial({ allowed: true, results: [] }));
    expect((await checkFence(client, { leaseId: 'l', writes: [] })).allowed).toBe(false);
  });
});
