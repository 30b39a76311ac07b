/** How far a log was published. */
export interface StreamCursor {
  readonly revision: number;
  /** Of the event at that revision: another one there means that history forked. */
  readonly hash: string;
}

/** One entry of a stream: an event, or the news that what was published after `cursor` is not history any more. */
export interface StreamEntry {
  readonly cursor: StreamCursor;
  readonly kind: string;
  /** The event's line in the form of an export, without free text; empty for `history_forked`. */
  readonly line: string;
}

/** Of an entry that is no event: readers take back what they read beyond its cursor. */
export const HISTORY_FORKED = 'history_forked';

export type PublishOutcome =
  | 'published'
  /** The stream does not end at the cursor given: read it again. */
  | 'moved'
  /** A later holder of the right to publish has opened it. */
  | 'fenced';

/** Where the tailer publishes a log: one stream per namespace, in order, bounded in length. */
export interface EventStream {
  /** Whether it can be reached now, as far as is known. */
  readonly connected: boolean;
  /**
   * A publisher's first act: whoever has a lower token is refused from here on. Where the stream ends; null: there is
   * none, or it was lost.
   */
  open(namespace: string, token: number): Promise<StreamCursor | null | 'fenced'>;
  /** Adds entries in one step, if the stream still ends at `after` and nobody with a higher token has opened it. */
  publish(
    namespace: string,
    token: number,
    after: StreamCursor | null,
    entries: readonly StreamEntry[],
  ): Promise<PublishOutcome>;
  /** What was published, newest first, at most `count`, before the entry with that id (null: the newest). */
  newest(namespace: string, beforeId: string | null, count: number): Promise<readonly PublishedEntry[]>;
  close(): Promise<void>;
}

export interface PublishedEntry {
  readonly id: string;
  readonly cursor: StreamCursor;
}
