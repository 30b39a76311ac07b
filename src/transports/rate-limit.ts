import { Fault } from '../domain/fault.js';
import { monotonicMicros } from '../platform/clock.js';

/** The metadata key by which a fault says when to try again. */
export const RETRY_AFTER_MS = 'retry_after_ms';

/** Keeps each principal to a number of calls per second. */
export interface RateLimiter {
  /** Passes, or throws RESOURCE_EXHAUSTED (RATE_LIMITED) with the time after which a call would pass. */
  take(principal: string): void;
}

interface Bucket {
  tokens: number;
  refilledAt: number;
}

const UNLIMITED: RateLimiter = { take: () => undefined };

/** A bucket that nobody took from for so long is full again, and need not be remembered. */
const REFILLED_AFTER_MICROS = 1e6;

/**
 * A token bucket per principal that holds one second's worth of calls. There are as many buckets as principals have
 * called lately: claims can make any number of names.
 */
export function createRateLimiter(callsPerSecond: number, now: () => number = monotonicMicros): RateLimiter {
  if (callsPerSecond === 0) return UNLIMITED;
  const buckets = new Map<string, Bucket>();
  const forgetFull = (at: number): void => {
    for (const [principal, bucket] of buckets) {
      if (at - bucket.refilledAt < REFILLED_AFTER_MICROS) return;
      buckets.delete(principal);
    }
  };
  return {
    take(principal) {
      const at = now();
      forgetFull(at);
      let bucket = buckets.get(principal);
      bucket ??= { tokens: callsPerSecond, refilledAt: at };
      // Kept in the order of use.
      buckets.delete(principal);
      buckets.set(principal, bucket);
      const refill = ((at - bucket.refilledAt) * callsPerSecond) / 1e6;
      bucket.tokens = Math.min(callsPerSecond, bucket.tokens + refill);
      bucket.refilledAt = at;
      if (bucket.tokens < 1)
        throw rateLimited(callsPerSecond, Math.ceil(((1 - bucket.tokens) * 1000) / callsPerSecond));
      bucket.tokens -= 1;
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
