import type { ChangeClass } from '../../route-table/index.js';

/**
 * What every guard does, whatever a target keeps its data in (design: fencing; C7, C1b). A guard compares the fencing
 * token where the data lives, in one step with the change, so that a delayed write of an old holder is refused even
 * while the coordinator is down.
 *
 * It keeps marks: one per resource and one per subtree, each the highest token that opened it or wrote to it. What
 * counts for a resource is the highest of its own mark and the subtree marks of itself and of everything above it. A
 * token below that is refused. A leased write raises the resource's own mark; an optimistic one never raises any. `open`
 * raises a mark before its holder reads: after it, what older holders still had under way is there to be read, or never
 * will be.
 *
 * A guard complements the fence check and does not replace it: the guard knows what newer holders did, the coordinator
 * knows whether the lease still lives and covers the write.
 */

/** Why the guard refuses; stable codes. */
export type GuardReason =
  /** A newer holder has opened or written the resource, or a subtree it is in. */
  | 'stale_token'
  /** Later than the clock by more than an hour: made up. */
  | 'future_token'
  /** Zero, negative or none. */
  | 'no_token'
  /** The marks could not be read, so nothing is decided. */
  | 'no_mark';

/**
 * The guard refused a token, and nothing was changed; a transaction it was in can only be rolled back. Says nothing
 * about the current mark. Answer it as a conflict (HTTP 409), never as a server error: the run must not send the
 * same body again (T1).
 */
export class GuardRefusedError extends Error {
  override readonly name = 'GuardRefusedError';

  /** Of the write path, as far as the write said so. */
  readonly changeClass: ChangeClass | undefined;
  readonly resolver: string | undefined;

  constructor(
    readonly reason: GuardReason,
    readonly resource: string,
    readonly action: string,
    { changeClass, resolver }: GuardedPath = {},
    options?: ErrorOptions,
  ) {
    super(`the guard refuses the fencing token for ${resource}: ${reason}`, options);
    this.changeClass = changeClass;
    this.resolver = resolver;
  }
}

/** The write path, for the refusal: a gate's `toGuard` says it. The guard decides nothing by it. */
export interface GuardedPath {
  /** Of the write path (W4), for the problem that a refused caller gets. */
  readonly changeClass?: ChangeClass;
  /** Who decides about conflicts. */
  readonly resolver?: string;
}

/** Who holds a resource; kept beside the mark (C1b). */
export interface GuardHolder {
  /** For people who look; the guard decides nothing by it. */
  readonly runId?: string;
  /** The lease's expiry, for people who look; the guard decides nothing by it. */
  readonly expiresAt?: Date;
}

/** What a new holder raises first. */
export interface GuardedOpen extends GuardHolder, GuardedPath {
  readonly resource: string;
  /** Default `exact`. */
  readonly scope?: 'exact' | 'subtree';
  /** The lease's token for the resource. */
  readonly token: bigint;
  /** For people who look at the guard; it decides nothing by it. */
  readonly action?: string;
}

/** A write about to be made. */
export interface GuardedWrite extends GuardHolder, GuardedPath {
  readonly resource: string;
  readonly action: string;
  /** The lease's token for the resource, as the check answered it. */
  readonly token: bigint;
  /** The entry's `exclusive`: true for a leased write, false for an optimistic one. */
  readonly exclusive: boolean;
}

/**
 * A guard of a store. `Change` is how the store is told what to change, so that marks and data change in one step: work
 * in a transaction, a script. Another store's guard implements this, and passes the conformance suite that these pass
 * (test/support/guard-conformance.ts).
 */
export interface Guard<Store, Change> {
  /**
   * A new holder's first act, before it reads (C7): when it returns, every write that an older token was let in for has
   * taken effect, and no further one will. For entries that are exclusive or stable reads; never for optimistic writes,
   * which would shut each other out.
   */
  open(store: Store, ...opens: readonly GuardedOpen[]): Promise<void>;
  /**
   * Makes the change if every write is let in, in one step with the comparison; else throws GuardRefusedError, and
   * nothing has happened. Answers what the change answers. An optimistic write still needs its own version condition
   * inside the change. Without writes there is nothing to compare: kinds that are only observed have none.
   */
  write(store: Store, writes: readonly GuardedWrite[], change: Change): Promise<unknown>;
}

/** In one order for all, or two transactions could wait for each other. */
export function inResourceOrder<T extends { readonly resource: string }>(list: readonly T[]): readonly T[] {
  return list.toSorted((a, b) => (a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : 0));
}

/** An open of nothing shuts nobody out: whoever relies on it must hear that. */
export function refuseNone(opens: readonly unknown[]): void {
  if (opens.length === 0) throw new RangeError('name the resources that are opened: none were given');
}
