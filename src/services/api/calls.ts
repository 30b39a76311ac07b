import type { Principal } from '../../auth/principal.js';
import type { Micros } from '../../domain/time.js';

/** Who calls, where, and for how long. */
export interface CallContext {
  readonly principal: Principal;
  /** Empty means "default". */
  readonly namespace: string;
  /** Correlates logs, spans and events: the caller's, else made by the transport. */
  readonly requestId: string;
  /** Milliseconds the caller will still wait; null: no deadline. */
  readonly deadlineMs: number | null;
  /** Aborted when the caller has gone. */
  readonly signal: AbortSignal;
}

/** An answer, and the log revision at which it was true. */
export interface At<T> {
  readonly value: T;
  readonly revision: number;
  /** Database time of the decision; durations left are counted from it. */
  readonly now: Micros;
}

/** What came of one of many questions: its answer, or the Fault that it would have been rejected with. */
export type Outcome<T> =
  | { readonly ok: true; readonly answer: At<T> }
  | { readonly ok: false; readonly error: unknown };

export interface Page {
  /** 1 to 1,000. */
  readonly size: number;
  readonly token: string;
}

export interface Paged<T> {
  readonly items: readonly T[];
  /** Empty: this is the last page. */
  readonly nextToken: string;
}
