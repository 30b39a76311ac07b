import type { Micros } from '../../domain/time.js';
import { type AppendBatch, type AppendResult, type Gate, StoreError } from '../store.js';
import { admissionColumns } from './admissions.js';
import { appendStatement, type Part } from './append-statement.js';
import type { Session } from './connections.js';
import { asStoreError, isLostRace, isReadOnly, toStoreError } from './errors.js';
import { type GateReader, type GateRow, gateFromRow, lockKey } from './gate.js';
import { leaseColumns, writeSetColumns } from './lease-rows.js';
import { type Row, rowsLiteral } from './row-literals.js';
import {
  eventColumns,
  freezeColumns,
  type KeyRow,
  keyColumns,
  keyFromRow,
  mapVersionColumns,
  rehearsalColumns,
  revocationColumns,
  runColumns,
  textColumns,
  unmatchedColumns,
} from './rows.js';
import type { SqlValue } from './statement.js';
import type { WriteSetMemory } from './write-set-memory.js';

interface AppendRow extends GateRow {
  readonly [column: string]: unknown;
  readonly identity_ok: boolean;
  readonly is_free: boolean;
  readonly head_ok: boolean;
  readonly keys_ok: boolean;
  readonly time_ok: boolean;
  readonly ok: boolean;
  readonly appended: number;
  /** JSON array of key bindings. */
  readonly known: string | null;
}

/** What a store remembers from one append to the next. */
export interface AppendContext {
  readonly gates: GateReader;
  readonly memory: WriteSetMemory;
}

/**
 * Sends the batch. `exclusive`: this transaction holds the namespace's lock alone. Throws StoreErrors; a lost race is
 * the outcome `stale` without a gate.
 */
export async function append(
  session: Session,
  batch: AppendBatch,
  { gates, memory }: AppendContext,
  exclusive: boolean,
): Promise<AppendResult> {
  checkBatch(batch);
  const { parts, values } = encode(batch, gates, memory, exclusive);
  let rows: AppendRow[];
  try {
    rows = await session.query<AppendRow>(appendStatement(parts), values);
  } catch (error) {
    if (isLostRace(error)) return { outcome: 'stale', gate: null };
    if (isReadOnly(error) && !exclusive) return refusedByStandby(session, batch.namespace, gates, error);
    // Inside a transaction nothing is committed, whatever was lost.
    throw toStoreError(error, exclusive ? 'read' : 'write');
  }
  const warning = session.warning();
  if (warning !== null) {
    throw new StoreError('unknown_outcome', `the commit was not confirmed as asked for: ${warning}`);
  }
  const [row] = rows;
  if (row === undefined) throw new StoreError('bug', 'the append answered without its gate');
  const result = resultOf(row, batch);
  // Inside the exclusive transaction nothing is committed yet; its caller remembers.
  if (result.outcome === 'appended' && !exclusive) memory.stored(result.gate.identity, batch.namespace, batch.leases);
  return result;
}

/**
 * A server in recovery refuses the statement as a whole, before its gate could say so; another read-only one (by its
 * settings) is the same database and will take writes again.
 */
async function refusedByStandby(
  session: Session,
  namespace: string,
  gates: GateReader,
  error: unknown,
): Promise<AppendResult> {
  const gate = await gates.read(session, namespace).catch(asStoreError('read'));
  if (gate.inRecovery) return { outcome: 'identity', gate };
  throw toStoreError(error, 'write');
}

/** In this order: a later answer means nothing when an earlier one holds. */
function resultOf(row: AppendRow, batch: AppendBatch): AppendResult {
  const gate: Gate = gateFromRow(row, '');
  if (row.ok) {
    if (row.appended === batch.events.length) return { outcome: 'appended', gate };
    throw new StoreError('bug', `${row.appended} of ${batch.events.length} events went in`);
  }
  if (!row.identity_ok) return { outcome: 'identity', gate };
  if (!row.is_free) return { outcome: 'busy', gate };
  if (!row.head_ok) return { outcome: 'stale', gate };
  if (!row.keys_ok) {
    return { outcome: 'known_keys', gate, keys: (JSON.parse(row.known ?? '[]') as KeyRow[]).map(keyFromRow) };
  }
  if (!row.time_ok) return { outcome: 'time', gate };
  throw new StoreError('bug', 'the append was refused for no reason that its gate names');
}

/** Mistakes of the engine that the statement would carry out faithfully, or report less clearly. */
function checkBatch(batch: AppendBatch): void {
  const { events, expectedHead, namespace } = batch;
  if (events.length === 0) throw new StoreError('bug', 'an append without events');
  let revision = expectedHead?.revision ?? 0;
  for (const event of events) {
    revision += 1;
    if (event.revision !== revision || event.namespace !== namespace || event.batchId !== batch.batchId) {
      throw new StoreError(
        'bug',
        `event ${event.revision} of ${event.namespace} does not belong at ${revision} of ${namespace}`,
      );
    }
    if (event.body.includes('\n')) {
      throw new StoreError('bad_data', `the body of event ${revision} is not canonical JSON: it has a line break`);
    }
  }
  refuseDuplicates(
    'lease',
    batch.leases.map((lease) => lease.leaseId),
  );
  refuseDuplicates(
    'run',
    batch.runs.map((run) => run.runId),
  );
  refuseDuplicates(
    'key',
    batch.keys.map((binding) => `${binding.scope}\n${binding.key}`),
  );
  refuseDuplicates(
    'unmatched resource',
    batch.unmatched.map((unmatched) => unmatched.resource),
  );
  refuseDuplicates(
    'admission',
    batch.admissions.map((admission) => admission.admissionId),
  );
  refuseDuplicates(
    'revocation',
    batch.revocations.map((revocation) => revocation.subject),
  );
  refuseDuplicates(
    'rehearsed kind',
    batch.rehearsals.map((rehearsal) => rehearsal.pattern),
  );
  refuseDuplicates('frozen pattern', [...batch.freezes.map((freeze) => freeze.pattern), ...batch.thawed]);
}

function refuseDuplicates(what: string, ids: readonly string[]): void {
  if (ids.length > 1 && new Set(ids).size !== ids.length) throw new StoreError('bug', `two final rows for one ${what}`);
}

function encode(
  batch: AppendBatch,
  gates: GateReader,
  memory: WriteSetMemory,
  exclusive: boolean,
): { parts: Set<Part>; values: Record<string, SqlValue> } {
  const parts = new Set<Part>();
  const values: Record<string, SqlValue> = { ...gateValues(batch, gates, exclusive) };
  const add = <R extends object | string>(
    part: Part,
    parameter: string,
    rows: readonly R[],
    literal: (rows: readonly R[]) => string = JSON.stringify,
  ): void => {
    if (rows.length === 0) return;
    parts.add(part);
    values[parameter] = literal(rows);
  };
  const unsent = batch.leases.filter((lease) => !memory.isStored(batch.identity, batch.namespace, lease));
  add('leases', 'leases', batch.leases.map(leaseColumns), rowsLiteral);
  add('writeSets', 'write_sets', unsent.map(writeSetColumns), rowsLiteral);
  add('keys', 'keys', batch.keys.map(keyColumns), rowsLiteral);
  add('known', 'new_keys', batch.newKeys.map(keyName), rowsLiteral);
  add('runs', 'runs', batch.runs.map(runColumns));
  add('unmatched', 'unmatched', batch.unmatched.map(unmatchedColumns));
  add('revocations', 'revocations', batch.revocations.map(revocationColumns));
  add('texts', 'texts', batch.events.flatMap(textColumns));
  add('admissions', 'admissions', batch.admissions.map(admissionColumns));
  add('rehearsals', 'rehearsals', batch.rehearsals.map(rehearsalColumns));
  add('freezes', 'freezes', batch.freezes.map(freezeColumns));
  add('thawed', 'thawed', batch.thawed);
  add('requests', 'requests', requestRows(batch));
  if (batch.mapVersion !== null) {
    parts.add('mapVersion');
    values.map_version = JSON.stringify(mapVersionColumns(batch.mapVersion));
  }
  return { parts, values };
}

/** A writ.key_name, in the order of its columns. */
const keyName = ({ scope, key }: AppendBatch['newKeys'][number]): Row => ({ scope, key });

function gateValues(batch: AppendBatch, { known }: GateReader, exclusive: boolean): Record<string, SqlValue> {
  const { expectedHead, identity } = batch;
  return {
    namespace: batch.namespace,
    exclusive,
    lock_key: lockKey(batch.namespace),
    any_identity: identity === null,
    system_identifier: identity?.systemIdentifier ?? null,
    timeline: identity?.timeline ?? null,
    database_oid: identity?.databaseOid ?? null,
    event_table_oid: identity?.eventTableOid ?? null,
    postmaster_start_us: identity?.postmasterStart ?? null,
    known_postmaster_start_us: known?.postmasterStart ?? null,
    known_system_identifier: known?.systemIdentifier ?? null,
    head_revision: expectedHead?.revision ?? null,
    head_hash: expectedHead === null ? null : `\\x${expectedHead.hash}`,
    // The latest and the earliest of none are infinite.
    past_us: finiteOrNull(batch.reliedOnAsPast),
    future_us: finiteOrNull(batch.reliedOnAsFuture),
    events: rowsLiteral(batch.events.map(eventColumns)),
    bodies: batch.events.map((event) => event.body).join('\n'),
  };
}

const finiteOrNull = (time: Micros | null): Micros | null => (time === null || Number.isFinite(time) ? time : null);

/** One row per request id and event, whatever an event repeats. */
function requestRows(batch: AppendBatch): { request_id: string; revision: number }[] {
  return batch.events.flatMap((event) =>
    [...new Set(event.requestIds)].map((id) => ({ request_id: id, revision: event.revision })),
  );
}
