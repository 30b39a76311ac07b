import { Fault } from '../domain/fault.js';
import { monotonicMicros } from '../platform/clock.js';

/** The metadata key by which a fault says when to try again. */
export const RETRY_AFTER_MS = 'retry_after_ms';

/** Keeps each principal to a number of calls per second. */
export interface RateLimiter {
  /** Passes, or throws RESOURCE_EXHAUSTED (RATE_LIMITED) with the time after which a call would pass. */
  take(principal: string): void;
  /**
   * As many calls more, that came in one that has passed: the same. More than a second's worth pass from a full share,
   * and what is beyond is owed: nothing else passes until time has refilled it.
   */
  takeMore(principal: string, calls: number): void;
  /** Principals that are remembered now. */
  readonly size: number;
}

interface Bucket {
  /** Below zero: owed. */
  tokens: number;
  refilledAt: number;
}

const UNLIMITED: RateLimiter = { take: () => undefined, takeMore: () => undefined, size: 0 };

/** A bucket that owes nothing and that nobody took from for so long is full again, and need not be remembered. */
const REFILLED_AFTER_MICROS = 1e6;

/**
 * A token bucket per principal that holds one second's worth of calls. There are as many buckets as principals have
 * called lately: claims can make any number of names.
 */
export function createRateLimiter(callsPerSecond: number, now: () => number = monotonicMicros): RateLimiter {
  if (callsPerSecond === 0) return UNLIMITED;
  const buckets = new Map<string, Bucket>();
  const refilled = ({ tokens, refilledAt }: Bucket, at: number): number =>
    Math.min(callsPerSecond, tokens + ((at - refilledAt) * callsPerSecond) / 1e6);
  const forgetFull = (at: number): void => {
    for (const [principal, bucket] of buckets) {
      if (at - bucket.refilledAt < REFILLED_AFTER_MICROS) return;
      if (refilled(bucket, at) >= callsPerSecond) buckets.delete(principal);
    }
  };
  const bucketOf = (principal: string): Bucket => {
    const at = now();
    forgetFull(at);
    const known = buckets.get(principal);
    const bucket = { tokens: known === undefined ? callsPerSecond : refilled(known, at), refilledAt: at };
    // Kept in the order of use.
    buckets.delete(principal);
    buckets.set(principal, bucket);
    return bucket;
  };
  const refuseBelow = (needed: number, tokens: number): void => {
    if (tokens < needed) throw rateLimited(callsPerSecond, Math.ceil(((needed - tokens) * 1000) / callsPerSecond));
  };
  return {
    get size() {
      return buckets.size;
    },
    take(principal) {
      const bucket = bucketOf(principal);
      refuseBelow(1, bucket.tokens);
      bucket.tokens -= 1;
    },
    takeMore(principal, calls) {
      const bucket = bucketOf(principal);
      // The call that they came in has taken its own already, and will again.
      refuseBelow(Math.min(callsPerSecond, calls + 1), bucket.tokens + 1);
      bucket.tokens -= calls;
    },
  };
}

function rateLimited(callsPerSecond: number, retryMs: number): Fault {
  return new Fault(
    'resource_exhausted',
    'RATE_LIMITED',
    `more than ${callsPerSecond} calls per second (WRIT_MAX_CALLS_PER_SECOND); try again in ${retryMs} ms`,
    { metadata: { [RETRY_AFTER_MS]: String(retryMs), limit: 'WRIT_MAX_CALLS_PER_SECOND' } },
  );
}
