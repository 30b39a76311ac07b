import { uptime } from 'node:os';

const startedAt = performance.now();
const bootedAt = uptime();
/** The system's uptime comes in hundredths of a second. */
const UPTIME_GRAIN_MS = 20;

/**
 * Milliseconds that only go forward, whatever happens to the wall clock, and that count the time a laptop slept, which
 * `performance.now()` leaves out on Linux: a lease goes on expiring meanwhile (C6).
 */
export function elapsedMs(): number {
  return Math.max(performance.now() - startedAt, (uptime() - bootedAt) * 1_000 - UPTIME_GRAIN_MS);
}
