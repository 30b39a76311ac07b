import { type KeyBinding, runScope } from '../../domain/key-binding.js';
import type { Lease } from '../../domain/lease.js';
import { ENDED_RUN_STATES, type Run } from '../../domain/run.js';
import type { Loaded, MapVersion, Snapshot, UnmatchedResource } from '../store.js';
import { readOpenAdmissions } from './admissions.js';
import type { Session } from './connections.js';
import type { GateReader } from './gate.js';
import { type LeaseRow, leaseFromRow } from './lease-rows.js';
import { readRecorded } from './read.js';
import {
  type FreezeRow,
  freezeFromRow,
  type KeyRow,
  keyFromRow,
  type MapVersionRow,
  mapVersionFromRow,
  type RehearsalRow,
  type RevocationRow,
  type RunRow,
  rehearsalFromRow,
  revocationFromRow,
  runFromRow,
  type UnmatchedRow,
  unmatchedFromRow,
} from './rows.js';
import { type SqlValue, type Statement, statement } from './statement.js';

/** Reads of the projections. */

type Row<T> = T & { readonly [column: string]: unknown };

/**
 * The live part of a lease and its write set are two tables (see migrations/0002_projections.sql). The write set is
 * looked up per lease and never hash-joined, which would read all of them. LEFT, so that a lease without one is an error
 * and not an absent lease.
 */
const LEASE_COLUMNS = `l.lease_id, l.run_id, l.state, l.generation, l.requested_ttl_us, l.ttl_us, l.max_ttl_us,
  l.created_at_us, l.granted_at_us, l.expires_at_us, l.max_expires_at_us, l.progress_window_us, l.progress_marker,
  l.progress_at_us, l.claim_by_us, l.queued_at, l.waits_until_us, l.attached_until_us, l.attachment, l.attached,
  l.end_reason, l.ended_at_us, l.end_refusal, l.credentials_until_us, l.lock_delay_until_us, l.lock_delayed,
  l.delegated_from,
  w.idempotency_key, w.purpose, w.request, w.entries, w.rule_locks, w.take_over`;
const WRITE_SET = `
  LEFT JOIN LATERAL (SELECT * FROM writ.lease_write_set AS s
    WHERE s.namespace = l.namespace AND s.lease_id = l.lease_id LIMIT 1) AS w ON true`;

const RUN_COLUMNS = `r.run_id, r.idempotency_key, r.state, r.state_reason, r.block_cause, r.purpose, r.goal_revision,
  r.initiator, r.initiator_verified, r.principal, r.parent_run_id, r.max_ttl_us, r.allowed, r.escalation,
  r.authority_ends_at_us, r.created_at_us, r.ended_at_us, r.ends_as`;

// ---------------------------------------------------------------------------------------------------- the live state

/** Pages, so that neither side ever holds all rows as text; between two the event loop is free. */
const SNAPSHOT_PAGE = 4_000;

const LIVE_LEASES = statement(
  'live_leases',
  `
SELECT ${LEASE_COLUMNS} FROM (
  SELECT * FROM writ.lease AS live
  WHERE live.namespace = $namespace AND live.state <> 'ended' AND live.lease_id > $after::text
  ORDER BY live.lease_id LIMIT ${SNAPSHOT_PAGE}) AS l ${WRITE_SET}
ORDER BY l.lease_id`,
);

/** Ended ones of which some locks are still kept from other runs: found by an index that holds nothing else. */
const DELAYED_LEASES = statement(
  'delayed_leases',
  `
SELECT ${LEASE_COLUMNS} FROM (
  SELECT * FROM writ.lease AS delayed
  WHERE delayed.namespace = $namespace AND delayed.lock_delayed AND delayed.lease_id > $after::text
  ORDER BY delayed.lease_id LIMIT ${SNAPSHOT_PAGE}) AS l ${WRITE_SET}
ORDER BY l.lease_id`,
);

const LIVE_RUNS = statement(
  'live_runs',
  `
SELECT ${RUN_COLUMNS} FROM writ.run AS r
WHERE r.namespace = $namespace AND r.ended_at_us IS NULL AND r.run_id > $after::text
ORDER BY r.run_id LIMIT ${SNAPSHOT_PAGE}`,
);

const NEWEST_MAP = statement(
  'newest_map',
  `
SELECT m.version, m.text, m.document, m.author, m.reason, m.created_at_us FROM writ.map_version AS m
WHERE m.namespace = $namespace ORDER BY m.version DESC LIMIT 1`,
);

const UNMATCHED = statement(
  'unmatched',
  `
SELECT u.resource, u.times, u.last_seen_at_us FROM writ.unmatched_resource AS u
WHERE u.namespace = $namespace ORDER BY u.resource`,
);

const REVOCATIONS = statement(
  'revocations',
  `
SELECT r.subject, r.revoked_at_us, r.until_us FROM writ.credential_revocation AS r
WHERE r.namespace = $namespace AND r.until_us > $now_us::bigint ORDER BY r.subject`,
);

const REHEARSALS = statement(
  'rehearsals',
  `
SELECT r.pattern, r.last, r.window_open FROM writ.rehearsal AS r
WHERE r.namespace = $namespace ORDER BY r.pattern`,
);

const FREEZES = statement(
  'freezes',
  `
SELECT f.pattern, f.scope, f.denies_checks, f.reason, f.frozen_by, f.frozen_at_us, f.until_us, f.effective_at_us
FROM writ.freeze AS f
WHERE f.namespace = $namespace ORDER BY f.pattern`,
);

/**
 * REPEATABLE READ gives all statements the snapshot of the first, which reads the head: what is loaded is exactly the
 * fold of the log up to there.
 */
export async function loadSnapshot(session: Session, gates: GateReader, namespace: string): Promise<Snapshot | null> {
  await session.command('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
  const gate = await gates.read(session, namespace);
  if (gate.head === null) {
    await session.command('COMMIT');
    return null;
  }
  const readLeases = (page: Statement) =>
    readPages<LeaseRow, Lease>(session, page, namespace, leaseFromRow, (row) => row.lease_id);
  const live = await readLeases(LIVE_LEASES);
  const delayed = await readLeases(DELAYED_LEASES);
  const runs = await readPages<RunRow, Run>(session, LIVE_RUNS, namespace, runFromRow, (row) => row.run_id);
  const keys = await readKeysOfWaiting(session, namespace, live);
  const [map] = await session.query<Row<MapVersionRow>>(NEWEST_MAP, { namespace });
  const unmatched = await session.query<Row<UnmatchedRow>>(UNMATCHED, { namespace });
  const values = { namespace, now_us: gate.now };
  const revocations = await session.query<Row<RevocationRow>>(REVOCATIONS, values);
  const admissions = await readOpenAdmissions(session, namespace);
  const rehearsals = await session.query<Row<RehearsalRow>>(REHEARSALS, { namespace });
  const freezes = await session.query<Row<FreezeRow>>(FREEZES, { namespace });
  const recorded = await readRecorded(session, namespace);
  await session.command('COMMIT');
  return {
    gate,
    leases: delayed.length === 0 ? live : [...live, ...delayed],
    runs,
    keys,
    mapVersion: map === undefined ? null : mapVersionFromRow(map),
    unmatched: unmatched.map((row): UnmatchedResource => unmatchedFromRow(row)),
    revocations: revocations.map(revocationFromRow),
    admissions,
    rehearsals: rehearsals.map(rehearsalFromRow),
    freezes: freezes.map(freezeFromRow),
    recorded,
  };
}

async function readKeysOfWaiting(session: Session, namespace: string, live: readonly Lease[]): Promise<KeyBinding[]> {
  const wanted = live
    .filter((lease) => lease.state === 'waiting')
    .map(({ runId, idempotencyKey }) => ({ scope: runScope(runId), key: idempotencyKey }));
  const keys: KeyBinding[] = [];
  for (let from = 0; from < wanted.length; from += SNAPSHOT_PAGE)
    keys.push(...(await loadKeys(session, namespace, wanted.slice(from, from + SNAPSHOT_PAGE))).records);
  return keys;
}

/** While rows become records, the server already reads the next page: on one connection, one statement after another. */
async function readPages<R, T>(
  session: Session,
  page: Statement,
  namespace: string,
  fromRow: (row: R) => T,
  idOf: (row: R) => string,
): Promise<T[]> {
  const records: T[] = [];
  let rows = await session.query<Row<R>>(page, { namespace, after: '' });
  for (;;) {
    const last = rows.at(-1);
    const more = last !== undefined && rows.length === SNAPSHOT_PAGE;
    const next = more ? session.query<Row<R>>(page, { namespace, after: idOf(last) }) : null;
    // Its failure is met where it is awaited, also when a row before it cannot be read.
    next?.catch(() => undefined);
    for (const row of rows) records.push(fromRow(row));
    if (next === null) return records;
    rows = await next;
  }
}

// -------------------------------------------------------------------------------------- what is no longer in memory

/**
 * The head comes with the rows, in one statement: the caller must know at which revision the answer was right. A row is
 * expected even when no record is found, hence the LEFT JOIN.
 */
const HEAD_REVISION = `(SELECT e.revision FROM writ.event AS e WHERE e.namespace = $namespace
  ORDER BY e.revision DESC LIMIT 1)`;

const LOAD_LEASES = statement(
  'load_leases',
  `
SELECT head.revision AS head_revision, found.* FROM (SELECT ${HEAD_REVISION} AS revision) AS head
LEFT JOIN (SELECT ${LEASE_COLUMNS} FROM writ.lease AS l ${WRITE_SET}
  WHERE l.namespace = $namespace AND l.lease_id = ANY ($ids::text[])) AS found ON true`,
);

const LOAD_RUNS = statement(
  'load_runs',
  `
SELECT head.revision AS head_revision, found.* FROM (SELECT ${HEAD_REVISION} AS revision) AS head
LEFT JOIN (SELECT ${RUN_COLUMNS} FROM writ.run AS r
  WHERE r.namespace = $namespace AND r.run_id = ANY ($ids::text[])) AS found ON true`,
);

const LOAD_KEYS = statement(
  'load_keys',
  `
SELECT head.revision AS head_revision, found.* FROM (SELECT ${HEAD_REVISION} AS revision) AS head
LEFT JOIN (
  SELECT k.scope, k.key, k.use, k.fingerprint, k.run_id, k.lease_id, k.bound_at_us, k.stopped,
    k.effective_at_us
  FROM unnest($scopes::text[], $keys::text[]) AS wanted (scope, key)
  CROSS JOIN LATERAL (SELECT * FROM writ.key_binding AS b
    WHERE b.namespace = $namespace AND b.scope = wanted.scope AND b.key = wanted.key LIMIT 1) AS k) AS found ON true`,
);

export async function loadLeases(session: Session, namespace: string, ids: readonly string[]): Promise<Loaded<Lease>> {
  const rows = await session.query<Row<LeaseRow & WithHead>>(LOAD_LEASES, { namespace, ids: [...ids] });
  return loaded(rows, (row) => row.lease_id, leaseFromRow);
}

export async function loadRuns(session: Session, namespace: string, ids: readonly string[]): Promise<Loaded<Run>> {
  const rows = await session.query<Row<RunRow & WithHead>>(LOAD_RUNS, { namespace, ids: [...ids] });
  return loaded(rows, (row) => row.run_id, runFromRow);
}

export async function loadKeys(
  session: Session,
  namespace: string,
  keys: readonly { scope: string; key: string }[],
): Promise<Loaded<KeyBinding>> {
  const values = { namespace, scopes: keys.map((k) => k.scope), keys: keys.map((k) => k.key) };
  const rows = await session.query<Row<KeyRow & WithHead>>(LOAD_KEYS, values);
  return loaded(rows, (row) => row.key, keyFromRow);
}

interface WithHead {
  readonly head_revision: number | null;
}

/** Revision 0: the namespace does not exist. */
function loaded<R extends WithHead, T>(
  rows: readonly R[],
  idOf: (row: R) => string | null,
  fromRow: (row: R) => T,
): Loaded<T> {
  const records = rows.filter((row) => idOf(row) !== null).map(fromRow);
  return { revision: rows[0]?.head_revision ?? 0, records };
}

// ------------------------------------------------------------------------------------------------------------- lists

/** A condition, left out when it was not asked for: each combination has a plan of its own. */
type Condition = readonly [name: string, sql: string, value: SqlValue | undefined];

function withConditions(namespace: string, limit: number, conditions: readonly Condition[]) {
  const used = conditions.filter(([, , value]) => value !== undefined);
  const values: Record<string, SqlValue> = { namespace, limit };
  for (const [name, , value] of used) values[name] = value ?? null;
  return { suffix: used.map(([name]) => name).join('_'), where: used.map(([, sql]) => ` AND ${sql}`).join(''), values };
}

export async function listLeases(
  session: Session,
  namespace: string,
  filter: { runId?: string; states?: readonly string[]; afterId?: string; limit: number },
): Promise<Lease[]> {
  const { suffix, where, values } = withConditions(namespace, filter.limit, [
    ['after', 'l.lease_id > $after::text', filter.afterId],
    ['run_id', `l.run_id = $run_id::text AND l.run_id <> ''`, filter.runId],
    ['states', 'l.state::text = ANY ($states::text[])', filter.states],
  ]);
  // Said once more in the words of the index of live leases, which the planner cannot derive from a list.
  const live = filter.states !== undefined && !filter.states.includes('ended');
  const list = statement(
    `list_leases_${suffix}${live ? '_live' : ''}`,
    `
SELECT ${LEASE_COLUMNS} FROM writ.lease AS l ${WRITE_SET}
WHERE l.namespace = $namespace${where}${live ? ` AND l.state <> 'ended'` : ''}
ORDER BY l.lease_id LIMIT $limit::bigint`,
  );
  return (await session.query<Row<LeaseRow>>(list, values)).map(leaseFromRow);
}

export async function listRuns(
  session: Session,
  namespace: string,
  filter: { principal?: string; states?: readonly string[]; afterId?: string; limit: number },
): Promise<Run[]> {
  const { suffix, where, values } = withConditions(namespace, filter.limit, [
    ['after', 'r.run_id > $after::text', filter.afterId],
    ['principal', 'r.principal = $principal::text', filter.principal],
    ['states', 'r.state::text = ANY ($states::text[])', filter.states],
  ]);
  const live = filter.states?.every((state) => !ENDED_RUN_STATES.has(state)) === true;
  const list = statement(
    `list_runs_${suffix}${live ? '_live' : ''}`,
    `
SELECT ${RUN_COLUMNS} FROM writ.run AS r
WHERE r.namespace = $namespace${where}${live ? ' AND r.ended_at_us IS NULL' : ''}
ORDER BY r.run_id LIMIT $limit::bigint`,
  );
  return (await session.query<Row<RunRow>>(list, values)).map(runFromRow);
}

const MAP_COLUMNS = 'm.version, m.text, m.document, m.author, m.reason, m.created_at_us';

const READ_MAP_VERSION = statement(
  'read_map_version',
  `SELECT ${MAP_COLUMNS} FROM writ.map_version AS m WHERE m.namespace = $namespace AND m.version = $version::bigint`,
);

const LIST_MAP_VERSIONS = statement(
  'list_map_versions',
  `
SELECT ${MAP_COLUMNS} FROM writ.map_version AS m
WHERE m.namespace = $namespace AND m.version < $below::bigint ORDER BY m.version DESC LIMIT $limit::bigint`,
);

export async function readMapVersion(session: Session, namespace: string, version: number): Promise<MapVersion | null> {
  const [row] = await session.query<Row<MapVersionRow>>(READ_MAP_VERSION, { namespace, version });
  return row === undefined ? null : mapVersionFromRow(row);
}

export async function listMapVersions(
  session: Session,
  namespace: string,
  below: number | null,
  limit: number,
): Promise<MapVersion[]> {
  const values = { namespace, below: below ?? Number.MAX_SAFE_INTEGER, limit };
  const rows = await session.query<Row<MapVersionRow>>(LIST_MAP_VERSIONS, values);
  return rows.map(mapVersionFromRow);
}
