import type { Allowance } from '../domain/entry.js';
import type { Micros } from '../domain/time.js';

/**
 * The most that the runs of a principal may ever have (R1): nobody writes their own contract beyond it. A part that is
 * null sets no bound of its own; the coordinator's limits hold all the same.
 */
export interface Ceiling {
  /** Every pattern and action of a contract must lie within one of these. */
  readonly allowed: readonly Allowance[] | null;
  /** Longest ttl that a lease may ask for. */
  readonly maxTtl: Micros | null;
  /** How far after its creation a run's authority may end. */
  readonly maxAuthority: Micros | null;
  /** The last instant at which any run's authority may end. */
  readonly latestEnd: Micros | null;
  /** Runs that have not ended, in one namespace. */
  readonly maxLiveRuns: number | null;
  /** Active leases and waiting requests of all its runs, in one namespace. */
  readonly maxLiveLeases: number | null;
}
