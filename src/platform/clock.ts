/**
 * The process's two clocks, and the only place that reads them. Neither decides anything about a
 * lease: that is the database clock alone (P11). These measure durations, deadlines and log times.
 */

/** Microseconds since an arbitrary moment of this process; never goes back. */
export function monotonicMicros(): number {
  return Math.floor(performance.now() * 1000);
}

/** Microseconds since 1970 on this machine's clock, which may jump; for deadlines that callers send and for logs. */
export function wallClockMicros(): number {
  return Date.now() * 1000;
}
