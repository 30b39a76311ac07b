import { uptime } from 'node:os';

const startedAt = performance.now();
const bootedAt = uptime();
/** The system's uptime comes in hundredths of a second. */
const UPTIME_GRAIN_MS = 20;

/**
 * Milliseconds that only go forward, whatever happens to the wall clock, and that count the time a machine slept (C6).
 *
 * On Linux `performance.now()` is CLOCK_MONOTONIC, which stands still while the machine is suspended, and the lease goes
 * on expiring meanwhile; `uptime()` counts that time too (CLOCK_BOOTTIME). It is coarse, so the further one of the two
 * counts. A process that was only stopped (SIGSTOP, a debugger, a container's freezer) finds that both went on. A virtual
 * machine that was saved and resumed may see neither move: no clock inside it can tell, and the target's check refuses.
 */
export function elapsedMs(): number {
  return Math.max(performance.now() - startedAt, (uptime() - bootedAt) * 1_000 - UPTIME_GRAIN_MS);
}
