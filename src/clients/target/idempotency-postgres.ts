import type { ClientBase, Pool, PoolClient } from 'pg';
import { type IdempotencyOptions, type IdempotencyStore, keptOf, keyTimes, LostClaimError } from './idempotency.js';
import { type Claim, isResult, type KeptAnswer, type KeyRecord, type KeyScope } from './idempotency-record.js';
import { inTransaction } from './postgres-transaction.js';
import type { Answer } from './problem-error.js';
import { installSchemaSql, plainSchemaName } from './schema-name.js';

/** Where keys are, and what their requests do. */
export interface PostgresIdempotencyOptions extends IdempotencyOptions {
  /**
   * `in_transaction`: all that the handler does, it does through the connection that it is given. Then a key that is
   * still in flight when nobody works on it any more proves that nothing was done, and the request may be done by who
   * sends it again. `elsewhere_too`: the handler also calls others; such a key's outcome is unknown.
   */
  readonly effects: 'in_transaction' | 'elsewhere_too';
  /** Default `writ_keys`. */
  readonly schema?: string;
}

/** A key whose outcome nobody knows. */
export interface UnknownOutcome extends KeyScope {
  /** When the attempt began, on the database's clock. */
  readonly begunAt: Date;
}

/** Idempotency keys in Postgres. */
export interface PostgresIdempotency extends IdempotencyStore<PoolClient> {
  /** Makes the table; safe to repeat, also by several replicas at once. */
  install(client?: Pick<Pool | ClientBase, 'query'>): Promise<void>;
  /** Keys whose outcome is unknown, the oldest first; for a person to settle. `limit` is 100 by default, 1,000 at most. */
  listUnknown(limit?: number): Promise<readonly UnknownOutcome[]>;
  /**
   * Removes answers whose retention is over, a batch at a time with a pause after each, so that it is never in the way;
   * returns how many. Keys without an answer stay until they are settled.
   */
  purge(options?: {
    readonly batch?: number;
    readonly pauseMs?: number;
    readonly signal?: AbortSignal;
  }): Promise<number>;
}

/**
 * Idempotency keys in the target's own Postgres (W2): the answer commits in the transaction of the handler's changes, so
 * that there is never one without the other. Times are the database's clock.
 *
 * @example
 * const keys = postgresIdempotency(pool, { retentionMs: 86_400_000, inDoubtMs: 3_600_000, effects: 'in_transaction' });
 * await keys.install();
 */
export function postgresIdempotency(pool: Pool, options: PostgresIdempotencyOptions): PostgresIdempotency {
  const schema = plainSchemaName(options.schema ?? 'writ_keys', 'the schema of idempotency keys');
  const times = keyTimes(options);
  const sql = statements(schema);
  const provable = options.effects === 'in_transaction';

  const read = async (scope: KeyScope): Promise<(KeyRecord & { readonly over: boolean }) | null> => {
    const { rows } = await pool.query<Row>(sql.read, scopeOf(scope));
    return rows[0] === undefined ? null : recordOf(rows[0]);
  };

  return {
    times,
    async install(client = pool) {
      await client.query(sql.install);
    },

    async claim(claim) {
      // Twice at least: between the attempt to insert and the look at what is there, that can be gone.
      for (let round = 0; round < 5; round += 1) {
        const { rowCount } = await pool.query(sql.claim, [
          ...scopeOf(claim),
          claim.fingerprint,
          claim.attempt,
          times.leaseMs,
        ]);
        if (rowCount === 1) return 'claimed';
        const found = await read(claim);
        if (found !== null && !found.over) return found;
        if (found !== null) await pool.query(sql.dropOver, scopeOf(claim));
      }
      throw new Error('an idempotency key came and went too often to be claimed');
    },

    async lapse(claim, attempt) {
      const { rowCount } = await pool.query(provable ? sql.takeOver : sql.loseTrack, [
        ...scopeOf(claim),
        attempt,
        ...(provable ? [claim.attempt, times.leaseMs] : []),
      ]);
      if (provable && rowCount === 1) return 'claimed';
      return (await read(claim)) ?? { state: 'in_flight', fingerprint: claim.fingerprint, attempt, leaseLeftMs: 0 };
    },

    async perform(claim, work) {
      try {
        return await inTransaction(pool, async (client) => {
          // Held to the end: as long as this transaction can commit, nobody can take the key's place.
          const { rowCount } = await client.query(sql.hold, [...scopeOf(claim), claim.attempt]);
          if (rowCount === 0) throw new LostClaimError('another attempt has taken the place of this one');
          await client.query('SAVEPOINT work');
          const answer = await work(client);
          if (answer.status >= 400) await client.query('ROLLBACK TO SAVEPOINT work');
          await keep(client, claim, answer);
          return answer;
        });
      } catch (error) {
        // This attempt has not begun to work: whoever lost track of it can be told.
        if (error instanceof LostClaimError) await pool.query(sql.neverBegun, [...scopeOf(claim), claim.attempt]);
        throw error;
      }
    },

    async abandon(claim) {
      await pool.query(provable ? sql.free : sql.abandon, [...scopeOf(claim), claim.attempt]);
    },

    async settle(scope, outcome) {
      const { rowCount } = outcome.happened
        ? await pool.query(sql.settleHappened, [
            ...scopeOf(scope),
            ...answerValues(keptOf(outcome.answer, times)),
            times.retentionMs,
          ])
        : await pool.query(sql.settleNot, scopeOf(scope));
      return rowCount === 1;
    },

    async listUnknown(limit = 100) {
      const { rows } = await pool.query<UnknownOutcome>(sql.listUnknown, [Math.min(Math.max(1, limit), 1_000)]);
      return rows;
    },

    async purge({ batch = 1_000, pauseMs = 100, signal } = {}) {
      let removed = 0;
      for (;;) {
        const { rowCount } = await pool.query(sql.purge, [batch]);
        removed += rowCount ?? 0;
        if ((rowCount ?? 0) < batch || signal?.aborted === true) return removed;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    },
  };

  async function keep(client: PoolClient, claim: Claim, answer: Answer): Promise<void> {
    if (!isResult(answer.status)) {
      await client.query(sql.free, [...scopeOf(claim), claim.attempt]);
      return;
    }
    const values = answerValues(keptOf(answer, times));
    const { rowCount } = await client.query(sql.finish, [
      ...scopeOf(claim),
      claim.attempt,
      ...values,
      times.retentionMs,
    ]);
    if (rowCount !== 1) throw new Error('the row of the idempotency key is gone, although it was held');
  }
}

const scopeOf = ({ principal, route, key }: KeyScope): string[] => [principal, route, key];

const answerValues = ({ status, headers, body, complete }: KeptAnswer): unknown[] => [
  status,
  JSON.stringify(headers),
  Buffer.from(body),
  complete,
];

interface Row {
  readonly state: KeyRecord['state'];
  readonly fingerprint: string;
  readonly attempt: string;
  readonly lease_left_ms: number | null;
  readonly over: boolean;
  readonly status: number | null;
  readonly headers: Record<string, string> | null;
  readonly body: Buffer | null;
  readonly complete: boolean | null;
}

function recordOf(row: Row): KeyRecord & { readonly over: boolean } {
  const { state, fingerprint, attempt, over } = row;
  if (state === 'unknown') return { state, fingerprint, over };
  if (state === 'in_flight') return { state, fingerprint, attempt, leaseLeftMs: row.lease_left_ms ?? 0, over };
  const { status, headers, body, complete } = row;
  const answer = {
    status: status ?? 0,
    headers: headers ?? {},
    body: body ?? new Uint8Array(),
    complete: complete === true,
  };
  return { state, fingerprint, answer, over };
}

/** All statements are of one key but the last two. A row that a transaction holds is skipped, never waited for. */
function statements(schema: string) {
  const table = `${schema}.request_key`;
  const scope = 'principal = $1 AND route = $2 AND key = $3';
  const mine = `${scope} AND attempt = $4 AND state = 'in_flight'`;
  const unsettled = `(state = 'unknown' OR (state = 'in_flight' AND lease_until <= clock_timestamp()))`;
  const unheld = (condition: string) => `ctid = (SELECT ctid FROM ${table} WHERE ${condition} FOR UPDATE SKIP LOCKED)`;
  const finished = (first: number) =>
    `state = 'finished', status = $${first}, headers = $${first + 1}, body = $${first + 2}, complete = $${first + 3},
       expires_at = clock_timestamp() + $${first + 4}::float8 * interval '1 millisecond'`;
  return {
    install: `${installSchemaSql(schema, 'keys')}
CREATE TABLE IF NOT EXISTS ${table} (
  principal   text COLLATE "C" NOT NULL CHECK (principal <> ''),
  route       text COLLATE "C" NOT NULL CHECK (route <> ''),
  key         text COLLATE "C" NOT NULL CHECK (key <> ''),
  state       text NOT NULL CHECK (state IN ('in_flight', 'finished', 'unknown')),
  fingerprint text NOT NULL,
  attempt     uuid NOT NULL,
  begun_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  lease_until timestamptz NOT NULL,
  -- From here on the answer.
  status      integer,
  headers     jsonb,
  body        bytea,
  complete    boolean,
  expires_at  timestamptz,
  PRIMARY KEY (principal, route, key),
  CHECK ((state = 'finished') = (pg_catalog.num_nonnulls(status, headers, body, complete, expires_at) = 5)),
  CHECK (state = 'finished' OR pg_catalog.num_nonnulls(status, headers, body, complete, expires_at) = 0)
);
CREATE INDEX IF NOT EXISTS request_key_over ON ${table} (expires_at) WHERE state = 'finished';
CREATE INDEX IF NOT EXISTS request_key_unfinished ON ${table} (begun_at) WHERE state <> 'finished';
COMMENT ON TABLE ${table} IS 'Writ: idempotency keys with the answers that their requests got.';`,
    claim: `
INSERT INTO ${table} (principal, route, key, state, fingerprint, attempt, lease_until)
VALUES ($1, $2, $3, 'in_flight', $4, $5, clock_timestamp() + $6::float8 * interval '1 millisecond')
ON CONFLICT DO NOTHING`,
    read: `
SELECT state, fingerprint, attempt, status, headers, body, complete,
       extract(epoch FROM lease_until - clock_timestamp())::float8 * 1000::float8 AS lease_left_ms,
       coalesce(expires_at <= clock_timestamp(), false) AS over
FROM ${table} WHERE ${scope}`,
    dropOver: `DELETE FROM ${table} WHERE ${scope} AND state = 'finished' AND expires_at <= clock_timestamp()`,
    takeOver: `
UPDATE ${table} SET attempt = $5, lease_until = clock_timestamp() + $6::float8 * interval '1 millisecond'
WHERE ${unheld(`${mine} AND lease_until <= clock_timestamp()`)}`,
    loseTrack: `UPDATE ${table} SET state = 'unknown' WHERE ${unheld(`${mine} AND lease_until <= clock_timestamp()`)}`,
    hold: `SELECT FROM ${table} WHERE ${mine} FOR UPDATE`,
    finish: `UPDATE ${table} SET ${finished(5)} WHERE ${mine}`,
    free: `DELETE FROM ${table} WHERE ${unheld(mine)}`,
    abandon: `UPDATE ${table} SET state = 'unknown' WHERE ${unheld(mine)}`,
    neverBegun: `DELETE FROM ${table} WHERE ${scope} AND attempt = $4 AND state = 'unknown'`,
    settleHappened: `UPDATE ${table} SET ${finished(4)} WHERE ${unheld(`${scope} AND ${unsettled}`)}`,
    settleNot: `DELETE FROM ${table} WHERE ${unheld(`${scope} AND ${unsettled}`)}`,
    listUnknown: `
SELECT principal, route, key, begun_at AS "begunAt" FROM ${table}
WHERE state <> 'finished' AND ${unsettled} ORDER BY begun_at LIMIT $1`,
    purge: `
DELETE FROM ${table} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM ${table} WHERE state = 'finished' AND expires_at <= clock_timestamp()
  ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED))`,
  };
}
