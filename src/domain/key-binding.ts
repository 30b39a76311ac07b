import type { Micros } from './time.js';

/** What an idempotency key was used for. */
export type KeyUse =
  | 'acquire'
  | 'tombstone'
  | 'create_run'
  | 'update_run_state'
  | 'stop_runs'
  | 'report_override'
  | 'amend';

/**
 * What an idempotency key is bound to (P6). A key binds grants and waits, not refusals; a tombstone
 * makes an acquire that is still in flight find that it was released already.
 */
export interface KeyBinding {
  /** Of a run for calls about it, of a principal for calls that create runs, stop many or report overrides. */
  readonly scope: string;
  readonly key: string;
  readonly use: KeyUse;
  /** SHA-256 in hex of the canonical request without wait and tracing. */
  readonly fingerprint: string;
  /** The run the key lives as long as; with `create_run` the run it made; empty when there is none. */
  readonly runId: string;
  /** The lease it made; empty when there is none. */
  readonly leaseId: string;
  readonly boundAt: Micros;
  /** With `stop_runs` only: the runs it stopped. */
  readonly stopped?: readonly string[];
  /** With `amend` only: when what was given up was out of force everywhere. */
  readonly effectiveAt?: Micros;
}

export const runScope = (runId: string): string => `run:${runId}`;
export const principalScope = (name: string): string => `principal:${name}`;
/** Of a target, for what it reports of its own overrides: apart from the keys that callers choose. */
export const overrideScope = (target: string): string => `override:${target}`;
