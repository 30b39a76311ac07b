import { createHash } from 'node:crypto';
import type { Micros } from '../../domain/time.js';
import type { Gate } from '../store.js';
import type { Session } from './connections.js';
import { statement } from './statement.js';

/**
 * What every statement that decides sees of the database: the head of the log, one reading of the clock, and which
 * database this is. The fragments are shared by the append and by the read index.
 */

/** The gate as columns. The system identifier is null when the caller knows it from the same postmaster. */
export interface GateRow {
  readonly now_us: Micros;
  readonly in_recovery: boolean;
  readonly durable: boolean;
  readonly system_identifier: string | null;
  readonly timeline: number;
  readonly database_oid: number;
  readonly event_table_oid: number;
  readonly postmaster_start_us: Micros;
  readonly head_revision: number | null;
  readonly head_hash: string | null;
  readonly head_time_us: Micros | null;
}

/**
 * One reading of the clock, and what is cheap to know about the server. clock_timestamp(), never now(): a statement may
 * have waited. Integer microseconds by numeric arithmetic, which is exact.
 *
 * - durable: `local` and the replicated settings of synchronous_commit all wait for the local flush; only `off` does not.
 * - timeline: of the WAL that is being written, since the control file lags after a promotion. There is none in
 *   recovery (and the function would fail), so it is 0 there.
 * - The event table's oid is looked up when the statement is planned, and again when the table was replaced.
 */
export const SERVER_COLUMNS = `
  (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us,
  pg_is_in_recovery() AS in_recovery,
  current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off' AS durable,
  CASE WHEN pg_is_in_recovery() THEN 0
       ELSE ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint END AS timeline,
  (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database()) AS database_oid,
  'writ.event'::regclass::oid AS event_table_oid,
  (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS postmaster_start_us`;

/** The last event: one descent of the primary key, however long the log is. */
export const HEAD = `
  SELECT e.revision AS head_revision, e.hash AS head_hash, e.time_us AS head_time_us
  FROM writ.event AS e WHERE e.namespace = $namespace ORDER BY e.revision DESC LIMIT 1`;

/**
 * The read index (P3): takes no lock, so any number of checks may share it. Reading the system identifier means reading
 * the control file; it cannot change while a postmaster lives, so it is read only when the postmaster is not the one
 * that the caller knows. (Known per server and not per connection: behind a pooler, connections change servers.)
 */
const READ_GATE = statement(
  'read_gate',
  `
SELECT server.*, head.*,
  CASE WHEN server.postmaster_start_us = $known_postmaster_start_us::bigint THEN NULL
       ELSE (SELECT c.system_identifier::text FROM pg_control_system() AS c) END AS system_identifier
FROM (SELECT ${SERVER_COLUMNS} OFFSET 0) AS server
LEFT JOIN (${HEAD}) AS head ON true`,
);

/** A postmaster, and the system identifier that was read while it lived. */
export interface KnownPostmaster {
  readonly postmasterStart: Micros;
  readonly systemIdentifier: string;
}

/** Remembers the postmaster that was seen last. */
export class GateReader {
  #known: KnownPostmaster | null = null;

  get known(): KnownPostmaster | null {
    return this.#known;
  }

  async read(session: Session, namespace: string): Promise<Gate> {
    const known = this.#known;
    const values = { namespace, known_postmaster_start_us: known?.postmasterStart ?? -1 };
    const [row] = await session.query<GateRow & { [column: string]: unknown }>(READ_GATE, values);
    if (row === undefined) throw new TypeError('the gate is one row');
    const gate = gateFromRow(row, known?.systemIdentifier ?? '');
    const { postmasterStart, systemIdentifier } = gate.identity;
    if (row.system_identifier !== null) this.#known = { postmasterStart, systemIdentifier };
    return gate;
  }
}

/** `knownSystemIdentifier` stands in where the statement did not read it. */
export function gateFromRow(row: GateRow, knownSystemIdentifier: string): Gate {
  const { head_revision: revision, head_hash: hash, head_time_us: time } = row;
  return {
    head: revision === null || hash === null || time === null ? null : { revision, hash, time },
    now: row.now_us,
    inRecovery: row.in_recovery,
    durable: row.durable,
    identity: {
      systemIdentifier: row.system_identifier ?? knownSystemIdentifier,
      timeline: row.timeline,
      databaseOid: row.database_oid,
      eventTableOid: row.event_table_oid,
      postmasterStart: row.postmaster_start_us,
    },
  };
}

// --------------------------------------------------------------------------------------------- the namespace's lock

/**
 * Advisory locks with two keys: a class of our own (`writ` in ASCII) and the namespace. Every append shares it for as
 * long as it runs; a replica that keeps losing holds it alone. Advisory locks are per database. Two namespaces with the
 * same hash only wait for each other now and then. Every version of Writ on one database must compute the same key.
 */
export const LOCK_CLASS = 0x77726974;

const lockKeys = new Map<string, number>();
const MAX_LOCK_KEYS = 10_000;

export function lockKey(namespace: string): number {
  const known = lockKeys.get(namespace);
  if (known !== undefined) return known;
  const key = createHash('sha256').update(namespace).digest().readInt32BE(0);
  if (lockKeys.size >= MAX_LOCK_KEYS) lockKeys.clear();
  lockKeys.set(namespace, key);
  return key;
}
