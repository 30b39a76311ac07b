import { createHash } from 'node:crypto';
import type { Closing, EndedBecause, Fence, WatchedKind } from '../domain/fence-watch.js';
import type { Micros } from '../domain/time.js';
import type { LogPosition } from '../engine/recent-events.js';

/** What a watch of fences is asked for and tells. */
export interface WatchFencesInput {
  /** Absent: from a snapshot. */
  readonly from: LogPosition | null;
  readonly viewKindsOnly: boolean;
}

export type FenceUpdate =
  /** Forget what you know: all of it follows, up to the next place that is `reached`. */
  | { readonly kind: 'snapshot'; readonly mapVersion: number; readonly maxClockSkew: Micros }
  | { readonly kind: 'watched_kind'; readonly watchedKind: WatchedKind }
  | { readonly kind: 'fence'; readonly digest: Buffer; readonly fence: Omit<Fence, 'leaseId'> }
  | { readonly kind: 'renewed'; readonly digest: Buffer; readonly endsAt: Micros }
  | { readonly kind: 'ended'; readonly digest: Buffer; readonly reason: EndedBecause }
  /** Writes are refused for this reason, or are so no more. */
  | { readonly kind: 'closed'; readonly closing: Closing; readonly isClosed: boolean }
  /** Everything up to this place has been told. */
  | { readonly kind: 'reached'; readonly position: LogPosition }
  /** The same, and it was the end of the log at `now` of the database clock, after the ping had come. */
  | { readonly kind: 'mark'; readonly ping: number; readonly position: LogPosition; readonly now: Micros };

/** A watch under way: asked for more whenever its reader has room for it. */
export interface FenceWatch {
  /** The next updates, as soon as there are some. Rejects with the Fault that ends the watch. */
  next(): Promise<readonly FenceUpdate[]>;
  /** Asks for a mark; of several that are not answered yet the last one is. */
  ping(number: number): void;
  /** Ends it; idempotent. */
  close(): void;
}

/** SHA-256: whoever has the lease id recognises it, and nobody finds the id by it, which is random. */
export function leaseDigest(leaseId: string): Buffer {
  return createHash('sha256').update(leaseId, 'utf8').digest();
}
