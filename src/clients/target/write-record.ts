import type { ClientBase, Pool } from 'pg';
import { installSchemaSql, plainSchemaName } from './schema-name.js';

/**
 * What a target records of a write that was asked of it (W6), refused ones too (A1): facts only, no content, no secrets.
 * `audit reconcile` compares these with the coordinator's log.
 */
export interface WriteRecord {
  /** The caller as the target authenticated it. */
  readonly identity: string;
  readonly runId?: string | undefined;
  /** Correlates with the fence check, and with the coordinator's log. */
  readonly requestId: string;
  /** Of the approval it was made under; absent: none was needed. */
  readonly approvalId?: string | undefined;
  readonly resource: string;
  readonly action: string;
  /** HTTP or RPC method. */
  readonly method: string;
  /** As it was sent, such as `if-match "41"`. */
  readonly precondition?: string | undefined;
  /** The version that the write was made from. */
  readonly observedVersion?: string | undefined;
  /** Names of the fields that it changed, where the target knows them; never their values. At most 256. */
  readonly changedFields?: readonly string[] | undefined;
  /** `written`, or the stable code of the refusal. */
  readonly result: string;
  /** Status of the answer. */
  readonly status: number;
  /** Of the resource after the write; absent: nothing was written. */
  readonly newVersion?: string | undefined;
}

/** A record with its place and time. */
export interface KeptWriteRecord extends WriteRecord {
  /** Where to go on after this record. */
  readonly cursor: string;
  /** On the database's clock. */
  readonly recordedAt: Date;
}

/** The target's own record of writes, accepted and refused (W6). */
export interface WriteRecords {
  /** Makes the table; safe to repeat, also by several replicas at once. */
  install(client: Pick<Pool | ClientBase, 'query'>): Promise<void>;
  /**
   * Records writes. In the transaction of the write for what was written, so that there is neither without the other;
   * in one of its own, after the roll-back, for what was refused.
   */
  add(client: Pick<Pool | ClientBase, 'query'>, ...records: readonly WriteRecord[]): Promise<void>;
  /**
   * Records after a cursor, at most 1,000. A reader that goes on from the last cursor skips none: records are shown only
   * when no transaction that could still add one before them is open, so a long one anywhere on the server delays them.
   */
  list(
    client: Pick<Pool | ClientBase, 'query'>,
    page?: { readonly after?: string; readonly limit?: number },
  ): Promise<readonly KeptWriteRecord[]>;
}

/** Columns, with the member of a record that each holds. */
const COLUMNS = {
  identity: 'identity',
  run_id: 'runId',
  request_id: 'requestId',
  approval_id: 'approvalId',
  resource: 'resource',
  action: 'action',
  method: 'method',
  precondition: 'precondition',
  observed_version: 'observedVersion',
  changed_fields: 'changedFields',
  result: 'result',
  status: 'status',
  new_version: 'newVersion',
} as const satisfies Record<string, keyof WriteRecord>;

const MAX_FIELDS = 256;

/**
 * The target's own record of writes, in a table beside its data (W6). It does not depend on the coordinator.
 *
 * @example
 * const records = writeRecords();
 * await records.install(pool);
 * await inTransaction(pool, async (client) => {
 *   const { version } = await condition.change(client, { update, current });
 *   await records.add(client, {
 *     identity, runId, requestId, resource, action: 'promote', method: 'PUT', precondition: condition.text,
 *     observedVersion: condition.observedVersion, changedFields: ['image'], result: 'written', status: 200, newVersion: version,
 *   });
 * });
 */
export function writeRecords(schema = 'writ_records'): WriteRecords {
  const table = `${plainSchemaName(schema, 'the schema of write records')}.write_record`;
  const names = Object.keys(COLUMNS);
  return {
    async install(client) {
      await client.query(schemaSql(schema, table));
    },
    async add(client, ...records) {
      for (const record of records) {
        if ((record.changedFields?.length ?? 0) > MAX_FIELDS)
          throw new RangeError(`changedFields: at most ${MAX_FIELDS}; name the groups that they are in`);
        const values = Object.values(COLUMNS).map((member) => record[member] ?? null);
        const places = values.map((_, index) => `$${index + 1}`);
        await client.query(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${places.join(', ')})`, values);
      }
    },
    async list(client, { after = '0.0', limit = 100 } = {}) {
      const [, transaction, id] = /^(\d{1,20})\.(\d{1,19})$/.exec(after) ?? [];
      if (transaction === undefined) throw new RangeError('after: not a cursor of a write record');
      const { rows } = await client.query<Record<string, unknown> & { cursor: string; recorded_at: Date }>(
        `SELECT transaction::text || '.' || id::text AS cursor, recorded_at, ${names.join(', ')} FROM ${table}
         WHERE (transaction, id) > ($1::xid8, $2::bigint) AND transaction < pg_snapshot_xmin(pg_current_snapshot())
         ORDER BY transaction, id LIMIT $3`,
        [transaction, id, Math.min(Math.max(1, limit), 1_000)],
      );
      return rows.map((row) => {
        const members = Object.entries(COLUMNS).flatMap(([column, member]) =>
          row[column] === null ? [] : [[member, row[column]] as const],
        );
        const record = Object.fromEntries(members) as unknown as WriteRecord;
        return { ...record, cursor: row.cursor, recordedAt: row.recorded_at };
      });
    },
  };
}

function schemaSql(schema: string, table: string): string {
  return `${installSchemaSql(schema, 'records')}
CREATE TABLE IF NOT EXISTS ${table} (
  id               bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- Ids are given in another order than transactions commit in: a reader by id alone would skip some (F21).
  transaction      xid8 NOT NULL DEFAULT pg_current_xact_id(),
  recorded_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  identity         text NOT NULL CHECK (identity <> '' AND length(identity) <= 512),
  run_id           text CHECK (length(run_id) <= 128),
  request_id       text NOT NULL CHECK (request_id <> '' AND length(request_id) <= 256),
  approval_id      text CHECK (length(approval_id) <= 128),
  resource         text NOT NULL CHECK (resource <> '' AND octet_length(resource) <= 1024),
  action           text NOT NULL CHECK (length(action) <= 128),
  method           text NOT NULL CHECK (length(method) <= 256),
  precondition     text CHECK (length(precondition) <= 8192),
  observed_version text CHECK (length(observed_version) <= 256),
  changed_fields   text[] CHECK (pg_catalog.cardinality(changed_fields) <= ${MAX_FIELDS}),
  result           text NOT NULL CHECK (result ~ '^[a-z][a-z0-9_]*$' AND length(result) <= 64),
  status           integer NOT NULL CHECK (status BETWEEN 100 AND 599),
  new_version      text CHECK (length(new_version) <= 256)
);
CREATE INDEX IF NOT EXISTS write_record_order ON ${table} (transaction, id);
CREATE INDEX IF NOT EXISTS write_record_request ON ${table} (request_id);
CREATE INDEX IF NOT EXISTS write_record_resource ON ${table} (resource, id);
-- A record that can be changed proves nothing. Old ones may be deleted.
CREATE OR REPLACE FUNCTION ${schema}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $writ$
BEGIN
  RAISE EXCEPTION 'write records are not changed' USING ERRCODE = 'integrity_constraint_violation';
END $writ$;
DO $writ$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_trigger WHERE tgrelid = '${table}'::regclass::oid AND tgname = 'write_record_stays') THEN
    CREATE TRIGGER write_record_stays BEFORE UPDATE ON ${table}
      FOR EACH ROW EXECUTE FUNCTION ${schema}.refuse_change();
  END IF;
END $writ$;
COMMENT ON TABLE ${table} IS 'Writ: what was asked of this target, by whom, on which version, and how it ended (W6).';`;
}
