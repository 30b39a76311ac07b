import { status } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { Fault, type FaultClass, invalidArgument } from '../../src/domain/fault.js';
import { BadRequest, ErrorInfo, RetryInfo } from '../../src/gen/google/rpc/error_details.js';
import { Status } from '../../src/gen/google/rpc/status.js';
import { toWireStatus, type WireStatus } from '../../src/transports/grpc/status.js';
import { createRateLimiter } from '../../src/transports/rate-limit.js';

function detailsOf(wire: WireStatus) {
  const [bytes] = wire.metadata.get('grpc-status-details-bin');
  const decoded = Status.decode(bytes as Buffer);
  const find = (type: string) =>
    decoded.details.find(({ typeUrl }) => typeUrl === `type.googleapis.com/google.rpc.${type}`)?.value;
  const [info, badRequest, retry] = [find('ErrorInfo'), find('BadRequest'), find('RetryInfo')];
  return {
    decoded,
    info: info === undefined ? undefined : ErrorInfo.decode(info),
    violations: badRequest === undefined ? [] : BadRequest.decode(badRequest).fieldViolations,
    retry: retry === undefined ? undefined : RetryInfo.decode(retry).retryDelay,
  };
}

/** What the status weighs in the trailers, as the client counts it. */
function bytesInTrailers(wire: WireStatus): number {
  const [bytes] = wire.metadata.get('grpc-status-details-bin');
  return encodeURI(wire.details).length + Math.ceil((bytes as Buffer).length / 3) * 4;
}

describe('the status of a fault', () => {
  it.each([
    ['invalid_argument', status.INVALID_ARGUMENT],
    ['not_found', status.NOT_FOUND],
    ['already_exists', status.ALREADY_EXISTS],
    ['permission_denied', status.PERMISSION_DENIED],
    ['unauthenticated', status.UNAUTHENTICATED],
    ['failed_precondition', status.FAILED_PRECONDITION],
    ['aborted', status.ABORTED],
    ['resource_exhausted', status.RESOURCE_EXHAUSTED],
    ['unavailable', status.UNAVAILABLE],
    ['unknown_outcome', status.UNAVAILABLE],
    ['internal', status.INTERNAL],
  ] as const)('%s', (faultClass: FaultClass, code) => {
    const wire = toWireStatus(new Fault(faultClass, 'SOME_REASON', 'words'), 'req-1');
    const { decoded, info } = detailsOf(wire);
    expect(wire.code).toBe(code);
    expect(decoded.code).toBe(code);
    expect(info).toMatchObject({ domain: 'writ', metadata: { request_id: 'req-1' } });
    expect(info?.reason).toBe(faultClass === 'unknown_outcome' ? 'UNKNOWN_OUTCOME' : 'SOME_REASON');
    expect(wire.metadata.get('x-request-id')).toEqual(['req-1']);
  });

  it('carries facts and violations', () => {
    const fault = new Fault('invalid_argument', 'INVALID_ARGUMENT', 'bad', {
      violations: [{ field: 'entries[0].access', description: 'is required' }],
      metadata: { limit: 'WRIT_MAX_ENTRIES' },
    });
    const { info, violations } = detailsOf(toWireStatus(fault, 'r'));
    expect(info?.metadata).toEqual({ limit: 'WRIT_MAX_ENTRIES', request_id: 'r' });
    expect(violations).toMatchObject([{ field: 'entries[0].access', description: 'is required' }]);
  });

  it('says when to try again where that helps', () => {
    expect(detailsOf(toWireStatus(new Fault('unavailable', 'DATABASE_UNAVAILABLE', ''), 'r')).retry).toEqual({
      seconds: 1n,
      nanos: 0,
    });
    expect(detailsOf(toWireStatus(new Fault('unknown_outcome', 'X', ''), 'r')).retry).toEqual({
      seconds: 0n,
      nanos: 200_000_000,
    });
    expect(detailsOf(toWireStatus(new Fault('not_found', 'X', ''), 'r')).retry).toBeUndefined();
    const said = new Fault('aborted', 'X', '', { metadata: { retry_after_ms: '1500' } });
    expect(detailsOf(toWireStatus(said, 'r')).retry).toEqual({ seconds: 1n, nanos: 500_000_000 });
  });

  it.each([
    ['an unknown error', new Error('password=hunter2')],
    ['a string', 'hunter2'],
    ['an internal fault', new Fault('internal', 'INTERNAL', 'hunter2', { metadata: { what: 'hunter2' } })],
  ])('of %s leaks nothing but the request id', (_, error) => {
    const wire = toWireStatus(error, 'req-9');
    const [bytes] = wire.metadata.get('grpc-status-details-bin');
    expect(wire.code).toBe(status.INTERNAL);
    expect(`${wire.details}${(bytes as Buffer).toString('latin1')}`).not.toContain('hunter2');
    expect(wire.details).toContain('req-9');
  });

  it('stays below what stock clients accept in trailers, however much is wrong', () => {
    const violations = Array.from({ length: 256 }, (_, i) => ({
      field: `entries[${i}].resource`,
      description: '資源'.repeat(50),
    }));
    const wire = toWireStatus(invalidArgument(violations), 'r');
    expect(bytesInTrailers(wire)).toBeLessThan(7500);
    const told = detailsOf(wire).violations;
    expect(told.length).toBeGreaterThan(3);
    // Without a number: those who collect them stop at 50, so that nobody knows how many there are.
    expect(told.at(-1)).toMatchObject({ field: '', description: 'and more' });
    const long = toWireStatus(new Fault('aborted', 'X', '😀'.repeat(5000), { metadata: { a: 'é'.repeat(9999) } }), 'r');
    expect(bytesInTrailers(long)).toBeLessThan(7500);
  });

  it('survives half a surrogate pair', () => {
    const wire = toWireStatus(new Fault('not_found', 'X', `cut \ud83d`), 'r');
    expect(() => encodeURI(wire.details)).not.toThrow();
    expect(wire.details).toBe('cut \uFFFD');
  });
});

describe('the rate limiter', () => {
  it('lets one second’s worth through at once, then as many as time refills', () => {
    let now = 0;
    const limiter = createRateLimiter(10, () => now);
    const passes = (n: number, who = 'a') => {
      let passed = 0;
      for (let i = 0; i < n; i += 1) {
        try {
          limiter.take(who);
          passed += 1;
        } catch (error) {
          expect(error).toMatchObject({ faultClass: 'resource_exhausted', reason: 'RATE_LIMITED' });
        }
      }
      return passed;
    };
    expect(passes(15)).toBe(10);
    expect(passes(15, 'b')).toBe(10);
    now += 250_000;
    expect(passes(15)).toBe(2);
    now += 3600e6;
    expect(passes(15)).toBe(10);
  });

  it('says when the next call passes', () => {
    const limiter = createRateLimiter(4, () => 0);
    for (let i = 0; i < 4; i += 1) limiter.take('a');
    try {
      limiter.take('a');
    } catch (error) {
      expect(detailsOf(toWireStatus(error, 'r')).retry).toEqual({ seconds: 0n, nanos: 250_000_000 });
    }
  });

  it('remembers who called lately, and forgets nobody who has used up their share', () => {
    let now = 0;
    const limiter = createRateLimiter(2, () => now);
    for (let i = 0; i < 5_000; i += 1) limiter.take(`ci:${i}`);
    expect(limiter.size).toBe(5_000);
    const refused = () => {
      try {
        limiter.take('busy');
        return false;
      } catch {
        return true;
      }
    };
    let passed = 0;
    for (let i = 0; i < 100; i += 1) {
      if (!refused()) passed += 1;
      now += 100_000;
    }
    // Two at once and two in each of ten seconds: calling on and on is no way to be forgotten.
    expect(passed).toBeLessThanOrEqual(2 + 20);
    expect(limiter.size).toBe(1);
  });

  it('counts calls that came in one; more than a second’s worth pass from a full share, and are owed', () => {
    let now = 0;
    const limiter = createRateLimiter(10, () => now);
    const passes = (calls: number, who = 'a'): boolean => {
      try {
        limiter.take(who);
        limiter.takeMore(who, calls - 1);
        return true;
      } catch (error) {
        expect(error).toMatchObject({ reason: 'RATE_LIMITED' });
        return false;
      }
    };
    expect([passes(4), passes(4), passes(4)]).toEqual([true, true, false]);
    // The call itself is taken all the same, as for any that is refused for what it holds.
    expect([passes(1), passes(1)]).toEqual([true, false]);
    expect(passes(30, 'b')).toBe(true);
    now += 2e6;
    expect(passes(1, 'b')).toBe(false);
    now += 100_000;
    expect(passes(1, 'b')).toBe(true);
    // Whoever owes is not forgotten, whoever owes nothing any more is.
    now += 3600e6;
    expect(passes(30, 'c')).toBe(true);
    expect(limiter.size).toBe(1);
    now += 1.5e6;
    passes(1, 'd');
    expect(limiter.size).toBe(2);
    expect(passes(1, 'c')).toBe(false);
  });

  it('is off at 0', () => {
    const limiter = createRateLimiter(0);
    for (let i = 0; i < 10_000; i += 1) limiter.take('a');
  });
});
