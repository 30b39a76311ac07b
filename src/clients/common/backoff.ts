/** Between which bounds the pause before another try lies. */
export interface Backoff {
  /** After the first failure. */
  readonly firstMs: number;
  /** However many there were. */
  readonly mostMs: number;
}

/**
 * How long to wait after so many failures in a row, counted from 1: twice as long each time, half of it left to chance
 * at every step, also at the longest. Many who lost one coordinator at one moment then do not come back at one moment
 * (F5), and nobody comes back at once.
 *
 * @example
 * backoffMs(1, { firstMs: 100, mostMs: 2_000 }); // 50 to 100
 * backoffMs(9, { firstMs: 100, mostMs: 2_000 }); // 1,000 to 2,000
 */
export function backoffMs(failures: number, { firstMs, mostMs }: Backoff): number {
  const whole = Math.min(mostMs, firstMs * 2 ** Math.min(Math.max(0, failures - 1), 30));
  return (whole / 2) * (1 + Math.random());
}
