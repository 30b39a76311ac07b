import { millisOf } from './moments.js';

/** Where a lease stands in the time that is shown, in parts of a thousand of its width. */
export interface Bar {
  /** From the grant, or the left edge. */
  readonly from: number;
  /** To the expiry, or the right edge. */
  readonly to: number;
  /** No renewal moves it past this; null: it is beyond the right edge. */
  readonly limit: number | null;
  readonly beginsBefore: boolean;
  readonly endsAfter: boolean;
}

const WIDTH = 1_000;

interface Times {
  readonly grantedAt?: string;
  readonly expiresAt?: string;
  readonly maxExpiresAt?: string;
}

export function barOf(lease: Times, fromMs: number, toMs: number): Bar {
  const at = (ms: number) => ((ms - fromMs) / (toMs - fromMs)) * WIDTH;
  const within = (place: number) => Math.min(WIDTH, Math.max(0, place));
  const begin = at(millisOf(lease.grantedAt) ?? fromMs);
  const end = at(millisOf(lease.expiresAt) ?? fromMs);
  const limit = at(millisOf(lease.maxExpiresAt) ?? Number.POSITIVE_INFINITY);
  return {
    from: within(begin),
    to: within(end),
    limit: limit >= 0 && limit <= WIDTH ? limit : null,
    beginsBefore: begin < 0,
    endsAfter: end > WIDTH,
  };
}
