import type { ClientBase, Pool } from 'pg';
import { guardSchemaSql, REFUSED_SQLSTATE } from './postgres-guard-sql.js';

export { guardSchemaSql };

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
 * The guard refused a token; the transaction it was in can only be rolled back. Says nothing about the current mark.
 * Answer it as a conflict (HTTP 412 or 409), never as a server error: the run must not send the same body again (T1).
 */
export class GuardRefusedError extends Error {
  override readonly name = 'GuardRefusedError';

  constructor(
    readonly reason: GuardReason,
    readonly resource: string,
    readonly action: string,
    cause: unknown,
  ) {
    super(`the guard refuses the fencing token for ${resource}: ${reason}`, { cause });
  }
}

/** Who holds a resource; kept beside the mark (C1b). */
export interface GuardHolder {
  readonly runId?: string;
  /** The lease's expiry, for people who look; the guard decides nothing by it. */
  readonly expiresAt?: Date;
}

/** What a new holder raises first. */
export interface GuardedOpen extends GuardHolder {
  readonly resource: string;
  /** Default `exact`. */
  readonly scope?: 'exact' | 'subtree';
  readonly token: bigint;
  readonly action?: string;
}

/** A write about to be made. */
export interface GuardedWrite extends GuardHolder {
  readonly resource: string;
  readonly action: string;
  readonly token: bigint;
  /** The entry's `exclusive`: true for a leased write, false for an optimistic one. */
  readonly exclusive: boolean;
}

/** A connection inside a transaction. */
export type GuardClient = Pick<ClientBase, 'query'> & Partial<Pick<ClientBase, 'getTransactionStatus'>>;

export interface PostgresGuard {
  /** Makes the guard's schema; safe to repeat, also by several replicas at once. */
  install(client: Pick<Pool | ClientBase, 'query'>): Promise<void>;
  /**
   * A new holder's first act, before it reads (C7): when it returns, every write that an older token was let in for is
   * committed, and no further one will be. For entries that are exclusive or stable reads; never for optimistic writes,
   * which would shut each other out. Outside a transaction, or in one of its own: its locks last to the end of it.
   */
  open(client: Pick<Pool | ClientBase, 'query'>, ...opens: readonly GuardedOpen[]): Promise<void>;
  /**
   * Lets writes in, or throws GuardRefusedError. To be called in the transaction of the writes, under READ COMMITTED,
   * and before them. An optimistic write still needs its own `WHERE version = observed`: zero rows is the conflict.
   */
  admit(client: GuardClient, ...writes: readonly GuardedWrite[]): Promise<void>;
}

/**
 * The guard of a target's own Postgres: compares the fencing token where the data lives, in the transaction of the
 * write, so that a delayed write of an old holder is refused even while the coordinator is down.
 *
 * It complements the fence check and does not replace it: the guard knows what newer holders did, the coordinator knows
 * whether the lease still lives and covers the write. Ask for both, and commit only if both agree.
 *
 * @example
 * const guard = postgresGuard();
 * await guard.install(pool);
 *
 * await client.query('BEGIN');
 * try {
 *   await guard.admit(client, { resource: 'release/prod-eu', action: 'promote', token, exclusive: true, runId });
 *   await client.query('UPDATE release SET version = version + 1, image = $1 WHERE id = $2', [image, 'prod-eu']);
 *   await client.query('COMMIT');
 * } catch (error) {
 *   await client.query('ROLLBACK');
 *   throw error;
 * }
 */
export function postgresGuard(schema = 'writ_guard'): PostgresGuard {
  const sql = guardSchemaSql(schema);
  return {
    async install(client) {
      await client.query(sql);
    },
    async open(client, ...opens) {
      for (const open of inOrder(opens)) {
        await decided(open, () =>
          client.query(`SELECT ${schema}.open($1, $2, $3, $4, $5, $6)`, [
            open.resource,
            open.scope ?? 'exact',
            open.token.toString(),
            open.runId ?? '',
            open.action ?? '',
            open.expiresAt ?? null,
          ]),
        );
      }
    },
    async admit(client, ...writes) {
      if (client.getTransactionStatus?.() === 'I') {
        throw new Error(
          'admit must be called inside the transaction of the write: outside, its locks are gone at once',
        );
      }
      for (const write of inOrder(writes)) {
        await decided(write, () =>
          client.query(`SELECT ${schema}.admit($1, $2, $3, $4, $5, $6)`, [
            write.resource,
            write.token.toString(),
            write.exclusive,
            write.runId ?? '',
            write.action,
            write.expiresAt ?? null,
          ]),
        );
      }
    },
  };
}

/** In one order for all, or two transactions could wait for each other. */
function inOrder<T extends { readonly resource: string }>(list: readonly T[]): readonly T[] {
  return list.toSorted((a, b) => (a.resource < b.resource ? -1 : a.resource > b.resource ? 1 : 0));
}

interface Asked {
  readonly resource: string;
  readonly action?: string;
  readonly token: bigint;
}

const MAX_BIGINT = 2n ** 63n - 1n;

async function decided(asked: Asked, ask: () => Promise<unknown>): Promise<void> {
  const refused = (reason: GuardReason, cause: unknown) =>
    new GuardRefusedError(reason, asked.resource, asked.action ?? '', cause);
  // A uint64 on the wire, a bigint in the table: what does not fit is a future token like any other made-up one.
  if (asked.token > MAX_BIGINT) throw refused('future_token', undefined);
  try {
    await ask();
  } catch (error) {
    const { code, detail } = error as { code?: unknown; detail?: unknown };
    if (code === REFUSED_SQLSTATE) throw refused(String(detail) as GuardReason, error);
    throw error;
  }
}
