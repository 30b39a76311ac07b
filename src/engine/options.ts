import type { Bounds } from '../domain/decide/decision.js';
import type { DomainEvent } from '../domain/event.js';
import type { Micros } from '../domain/time.js';
import type { Store } from '../storage/store.js';
import type { Failover } from './history.js';
import type { Witness } from './witness.js';

/** What the engine tells whoever counts and logs; never decides anything. */
export interface EngineObserver {
  batchAppended(namespace: string, commands: number, events: readonly DomainEvent[], duration: Micros): void;
  appendLost(outcome: string): void;
  gateRead(waiting: number, duration: Micros): void;
  problem(message: string, error?: unknown): void;
  notice(message: string, facts?: Record<string, unknown>): void;
}

export interface EngineOptions {
  readonly store: Store;
  readonly bounds: Bounds;
  /** Between any two clocks that matter; also how far a token may be ahead of the database clock. */
  readonly maxClockSkew: Micros;
  readonly failover: Failover;
  readonly witness: Witness;
  readonly monotonicNow: () => Micros;
  /** False when this replica's last committed heartbeat is too old to be believed. */
  readonly alive: () => boolean;
  /** Resolves once whatever was committed before this call is as safe as a commit that is acknowledged: by another commit. */
  readonly proveCommits: () => Promise<void>;
  readonly observer: EngineObserver;
  /** Most commands in one append. */
  readonly maxBatch: number;
  /** Most commands that wait for the next append; one more is refused. */
  readonly maxQueue: number;
  /** Other replicas' appends are seen at least this often (P11). */
  readonly pollInterval: Micros;
}
