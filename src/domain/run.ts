import type { Allowance } from './entry.js';
import type { Micros } from './time.js';

export type RunState =
  | 'active'
  | 'waiting_for_input'
  | 'blocked'
  | 'stopping'
  | 'stopped'
  | 'finished'
  | 'failed'
  | 'expired';

/** States that a run never leaves. */
export type EndedRunState = 'stopped' | 'finished' | 'failed' | 'expired';

/** Why a run is blocked; only an operator lifts `database_changed` (design: fail-over and restore). */
export type BlockCause = 'reported' | 'database_changed';

/** An agent run and its contract (R1, R5). Immutable: a change makes a new record. */
export interface Run {
  readonly runId: string;
  readonly idempotencyKey: string;
  readonly state: RunState;
  readonly stateReason: string;
  readonly blockCause: BlockCause | null;
  /** While it is stopping: the state it comes to once every outcome is known (R4). Null otherwise. */
  readonly endsAs: EndedRunState | null;
  readonly purpose: string;
  readonly goalRevision: string;
  /** On whose behalf (I2); empty: nobody is named. */
  readonly initiator: string;
  /** Whether a token of the person proved it; else it is what the caller says. */
  readonly initiatorVerified: boolean;
  /** The authenticated principal that created it. */
  readonly principal: string;
  /** The run that it is part of, and never wider than (R1); empty: none. */
  readonly parentRunId: string;
  /** Longest ttl of its leases, from the ceiling of its principal; null: the kinds' alone. */
  readonly maxTtl: Micros | null;
  readonly allowed: readonly Allowance[];
  /** Absolute end of authority; nothing moves it (R2). */
  readonly authorityEndsAt: Micros;
  readonly escalation: readonly string[];
  readonly createdAt: Micros;
  readonly endedAt: Micros | null;
}

export const ENDED_RUN_STATES: ReadonlySet<string> = new Set<EndedRunState>([
  'stopped',
  'finished',
  'failed',
  'expired',
]);

/** Whether the run is over for good: it can never acquire again (P6). */
export function hasEnded(run: Run): boolean {
  return ENDED_RUN_STATES.has(run.state);
}

/** Whether its authority has ended for good, also where outcomes are open. */
export function isOver(run: Run): boolean {
  return run.state === 'stopping' || hasEnded(run);
}
