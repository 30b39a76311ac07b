import type { ClientBase, Pool, PoolClient } from 'pg';
import {
  type Guard,
  type GuardedOpen,
  type GuardedPath,
  type GuardedWrite,
  type GuardReason,
  GuardRefusedError,
  inResourceOrder,
  refuseNone,
} from './guard.js';
import { guardSchemaSql, REFUSED_SQLSTATE } from './postgres-guard-sql.js';
import { inTransaction } from './postgres-transaction.js';

/** A connection inside a transaction. */
export type GuardClient = Pick<ClientBase, 'query'> & Partial<Pick<ClientBase, 'getTransactionStatus'>>;

/** Changes data in the transaction that the guard has opened; whatever it throws rolls everything back. */
export type PostgresChange<T> = (client: PoolClient) => Promise<T>;

/** A guard whose marks lie in the Postgres database of what it guards (C7). */
export interface PostgresGuard extends Guard<Pool, PostgresChange<unknown>> {
  /** Makes the guard's schema; safe to repeat, also by several replicas at once. */
  install(client: Pick<Pool | ClientBase, 'query'>): Promise<void>;
  /** As every guard's; outside a transaction, or in one of its own: its locks last to the end of it. */
  open(client: Pick<Pool | ClientBase, 'query'>, ...opens: readonly GuardedOpen[]): Promise<void>;
  /** One transaction: the guard, then the change. Commits if neither throws. */
  write<T>(pool: Pool, writes: readonly GuardedWrite[], change: PostgresChange<T>): Promise<T>;
  /**
   * For a transaction of the target's own: lets writes in, or throws GuardRefusedError. To be called in the transaction
   * of the writes, under READ COMMITTED, and before them. An optimistic write still needs its own `WHERE version =
   * observed`: zero rows is the conflict.
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
 * // the new holder's first act, before it reads
 * await guard.open(pool, { resource: 'release/prod-eu', token, runId });
 *
 * const write = { resource: 'release/prod-eu', action: 'promote', token, exclusive: true, runId };
 * await guard.write(pool, [write], (client) =>
 *   client.query('UPDATE release SET version = version + 1, image = $1 WHERE id = $2', [image, 'prod-eu']),
 * );
 */
export function postgresGuard(schema = 'writ_guard'): PostgresGuard {
  const sql = guardSchemaSql(schema);
  const guard: PostgresGuard = {
    async install(client) {
      await client.query(sql);
    },
    async open(client, ...opens) {
      refuseNone(opens);
      for (const open of inResourceOrder(opens)) {
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
      for (const write of inResourceOrder(writes)) {
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
    write: (pool, writes, change) =>
      inTransaction(pool, async (client) => {
        await guard.admit(client, ...writes);
        return change(client);
      }),
  };
  return guard;
}

interface Asked extends GuardedPath {
  readonly resource: string;
  readonly action?: string;
  readonly token: bigint;
}

const MAX_BIGINT = 2n ** 63n - 1n;

async function decided(asked: Asked, ask: () => Promise<unknown>): Promise<void> {
  const refused = (reason: GuardReason, cause: unknown) =>
    new GuardRefusedError(reason, asked.resource, asked.action ?? '', asked, { cause });
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
