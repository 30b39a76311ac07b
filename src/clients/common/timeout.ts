import { WritError } from './errors.js';

/** Timers of Node that are longer fire at once. */
const MAX_TIMEOUT_MS = 2_147_000_000;

/** How long a call may take. Infinity is as long as timers go, 24 days; what is no number would end the process in grpc-js. */
export function timeoutOf(timeoutMs: number): number {
  if (typeof timeoutMs === 'number' && !Number.isNaN(timeoutMs)) return Math.min(timeoutMs, MAX_TIMEOUT_MS);
  throw WritError.wrong('timeoutMs', `must be a number of milliseconds, not ${String(timeoutMs)}`);
}
