import type { Micros } from './time.js';

/** A write that a person let in at a target by hand (C12). */
export interface OverriddenWrite {
  readonly resource: string;
  readonly action: string;
  readonly observedVersion: string | null;
}

/** What a target reports of a local override: the override, or one request that it let in. */
export interface ReportedOverride {
  /** The target's own name of it. */
  readonly overrideId: string;
  /** The person, as the target authenticated them. */
  readonly who: string;
  readonly why: string;
  /** On the target's clock, like `usedAt`: claims, not facts. */
  readonly until: Micros;
  readonly patterns: readonly string[];
  /** Null: the override itself. */
  readonly use: {
    /** The target's own name of this use; absent: its request names it. */
    readonly useId?: string;
    /** Chosen by the caller; several uses can have the same. */
    readonly requestId: string;
    readonly usedAt: Micros;
    readonly writes: readonly OverriddenWrite[];
  } | null;
  /** Resources whose kind names other owner services than the target that reports. */
  readonly notOwned: readonly string[];
}
