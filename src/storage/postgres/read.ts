import type { DatabaseIdentity, EventFilter, EventRecord, IdsInLog, Recorded } from '../store.js';
import type { Session } from './connections.js';
import { type EventRow, eventFromRow } from './rows.js';
import { type SqlValue, statement } from './statement.js';

/** Reads of the log. */

type Row<T> = T & { readonly [column: string]: unknown };

/** Free text is looked up for the events that had some: form 2 of a body. As JSON, since an event may have several. */
const COLUMNS = `e.namespace, e.revision, e.time_us, e.batch_id, e.kind, e.body_version, e.actor, e.run_id, e.lease_id,
  e.resources, e.request_ids, e.body, e.prev_hash, e.hash,
  CASE WHEN e.body_version = 2 THEN (
    SELECT json_agg(json_build_object('digest', encode(t.digest, 'hex'), 'salt', encode(t.salt, 'hex'), 'text', t.text))
    FROM writ.event_text AS t WHERE t.namespace = e.namespace AND t.revision = e.revision) END::text AS texts`;

/** A range of the primary key: following the log costs what it returns. */
const READ_TAIL = statement(
  'read_tail',
  `
SELECT ${COLUMNS} FROM writ.event AS e
WHERE e.namespace = $namespace AND e.revision > $after::bigint ORDER BY e.revision LIMIT $limit::bigint`,
);

/**
 * Of the bodies of one answer: most have a few hundred bytes, but one that has a conflict map can have some MiB, and a
 * thousand of them would not fit into memory. Two events come whatever they have, so that nobody takes one for the last.
 */
const MAX_BODY_BYTES = 1_048_576;
const ALWAYS_READ = 2;

/** How long a body is is known without reading it. */
function inParts(conditions: string, direction: 'ASC' | 'DESC'): string {
  return `
SELECT ${COLUMNS} FROM (
  SELECT e.*, row_number() OVER read AS place, sum(octet_length(e.body)) OVER read - octet_length(e.body) AS bytes_before
  FROM (SELECT e.* FROM writ.event AS e WHERE ${conditions} ORDER BY e.revision ${direction} LIMIT $limit::bigint) AS e
  WINDOW read AS (ORDER BY e.revision ${direction} ROWS UNBOUNDED PRECEDING)) AS e
WHERE e.place <= ${ALWAYS_READ} OR e.bytes_before < ${MAX_BODY_BYTES}
ORDER BY e.revision ${direction}`;
}

const READ_TAIL_IN_PARTS = statement(
  'read_tail_in_parts',
  inParts('e.namespace = $namespace AND e.revision > $after::bigint', 'ASC'),
);

/** At most `limit` events, and fewer where they are large: only none is the end. */
export async function readTailInParts(
  session: Session,
  namespace: string,
  after: number,
  limit: number,
): Promise<EventRecord[]> {
  const rows = await session.query<Row<EventRow>>(READ_TAIL_IN_PARTS, { namespace, after, limit });
  return rows.map(eventFromRow);
}

export async function readTail(
  session: Session,
  namespace: string,
  after: number,
  limit: number,
): Promise<EventRecord[]> {
  const rows = await session.query<Row<EventRow>>(READ_TAIL, { namespace, after, limit });
  return rows.map(eventFromRow);
}

const READ_EVENT = statement(
  'read_event',
  `SELECT ${COLUMNS} FROM writ.event AS e WHERE e.namespace = $namespace AND e.revision = $revision::bigint`,
);

export async function readEvent(session: Session, namespace: string, revision: number): Promise<EventRecord | null> {
  const [row] = await session.query<Row<EventRow>>(READ_EVENT, { namespace, revision });
  return row === undefined ? null : eventFromRow(row);
}

/** The newest `database_identified`, from a partial index that holds nothing else. */
const READ_IDENTITY = statement(
  'read_identity',
  `
SELECT e.body FROM writ.event AS e
WHERE e.namespace = $namespace AND e.kind = 'database_identified' ORDER BY e.revision DESC LIMIT 1`,
);

export async function readRecorded(session: Session, namespace: string): Promise<Recorded | null> {
  const [row] = await session.query<{ body: string }>(READ_IDENTITY, { namespace });
  if (row === undefined) return null;
  const { identity, localKindsFrom = null } = JSON.parse(row.body) as {
    identity?: Partial<DatabaseIdentity>;
    localKindsFrom?: number | null;
  };
  const { systemIdentifier, timeline, databaseOid, eventTableOid, postmasterStart } = identity ?? {};
  if (
    typeof systemIdentifier !== 'string' ||
    typeof timeline !== 'number' ||
    typeof databaseOid !== 'number' ||
    typeof eventTableOid !== 'number' ||
    typeof postmasterStart !== 'number'
  ) {
    throw new TypeError(`the recorded identity of ${namespace} cannot be read`);
  }
  const known = { systemIdentifier, timeline, databaseOid, eventTableOid, postmasterStart };
  return { identity: known, localKindsFrom };
}

/**
 * Each namespace by one descent of the primary key to the first one after the last found (a loose index scan): the cost
 * is the number of namespaces, not of events.
 */
const LIST_NAMESPACES = statement(
  'list_namespaces',
  `
WITH RECURSIVE found AS (
  (SELECT e.namespace FROM writ.event AS e WHERE e.namespace > $after::text ORDER BY e.namespace LIMIT 1)
  UNION ALL
  SELECT next.namespace FROM found CROSS JOIN LATERAL (
    SELECT e.namespace FROM writ.event AS e WHERE e.namespace > found.namespace ORDER BY e.namespace LIMIT 1) AS next
)
SELECT namespace FROM found LIMIT $limit::bigint`,
);

export async function listNamespaces(session: Session, after: string, limit: number): Promise<string[]> {
  const rows = await session.query<{ namespace: string }>(LIST_NAMESPACES, { after, limit });
  return rows.map((row) => row.namespace);
}

/**
 * Search of the log. The statement holds only the conditions that are asked for, so that each has a plan of its own: by
 * request, run or lease an index leads to the events. By resource or kind none does (see RESOURCE_WINDOW), and the log is
 * read in the order asked for, in windows of bounded size.
 */
export async function listEvents(session: Session, namespace: string, filter: EventFilter): Promise<EventRecord[]> {
  const indexed = filter.requestId !== undefined || filter.runId !== undefined || filter.leaseId !== undefined;
  const selective = filter.resource !== undefined || filter.kinds !== undefined;
  if (indexed || !selective) return searchOnce(session, namespace, filter, filter);
  return searchInWindows(session, namespace, filter);
}

interface Range {
  readonly afterRevision?: number;
  readonly beforeRevision?: number;
}

async function searchOnce(
  session: Session,
  namespace: string,
  filter: EventFilter,
  range: Range,
): Promise<EventRecord[]> {
  const conditions: [name: string, sql: string, value: SqlValue | undefined][] = [
    ['after', 'e.revision > $after::bigint', range.afterRevision],
    ['before', 'e.revision < $before::bigint', range.beforeRevision],
    ['run', `e.run_id = $run::text AND e.run_id <> ''`, filter.runId],
    ['lease', `e.lease_id = $lease::text AND e.lease_id <> ''`, filter.leaseId],
    ['kinds', 'e.kind = ANY ($kinds::text[])', filter.kinds],
    ['resource', 'e.resources @> ARRAY[$resource::text]', filter.resource],
    [
      'request',
      // As an array, so that its few revisions are looked up, and the log is not walked in search of them.
      `e.revision = ANY (ARRAY(SELECT q.revision FROM writ.event_request AS q
         WHERE q.namespace = $namespace AND q.request_id = $request::text))`,
      filter.requestId,
    ],
  ];
  const used = conditions.filter(([, , value]) => value !== undefined);
  const values: Record<string, SqlValue> = { namespace, limit: filter.limit };
  for (const [name, , value] of used) values[name] = value ?? null;
  const direction = filter.newestFirst === true ? 'DESC' : 'ASC';
  const search = statement(
    // Postgres cuts names of statements at 63 characters.
    ['find', direction.toLowerCase(), ...used.map(([name]) => name)].join('_'),
    inParts(['e.namespace = $namespace', ...used.map(([, sql]) => sql)].join(' AND '), direction),
  );
  return (await session.query<Row<EventRow>>(search, values)).map(eventFromRow);
}

/**
 * There is no index over the resources of events. Measured with 8 of them, a GIN index makes each grant write 1.55 times
 * the WAL and each release twice, and it grows with every resource ever named, for searches that people make now and
 * then. Without it a search by resource alone reads 0.2 (cold) to 0.7 million events a second until it has found enough;
 * together with a run or a lease it is as fast as these. Each window is one short statement: no snapshot is held for
 * long, and no statement runs into its timeout.
 */
const RESOURCE_WINDOW = 50_000;

async function searchInWindows(session: Session, namespace: string, filter: EventFilter): Promise<EventRecord[]> {
  const [bounds] = await session.query<{ first: number | null; last: number | null }>(BOUNDS, { namespace });
  const low = Math.max(filter.afterRevision ?? 0, (bounds?.first ?? 1) - 1);
  const high = Math.min(filter.beforeRevision ?? Number.POSITIVE_INFINITY, (bounds?.last ?? 0) + 1);
  const found: EventRecord[] = [];
  // Both bounds of a window are exclusive, as those of the filter are.
  for (let done = 0; low + 1 + done < high && !isEnough(found, filter); done += RESOURCE_WINDOW) {
    const range =
      filter.newestFirst === true
        ? { afterRevision: Math.max(low, high - 1 - done - RESOURCE_WINDOW), beforeRevision: high - done }
        : { afterRevision: low + done, beforeRevision: Math.min(high, low + done + RESOURCE_WINDOW + 1) };
    found.push(...(await searchOnce(session, namespace, { ...filter, limit: filter.limit - found.length }, range)));
  }
  return found;
}

function isEnough(found: readonly EventRecord[], { limit }: EventFilter): boolean {
  if (found.length >= limit) return true;
  const bytes = found.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
  return found.length >= ALWAYS_READ && bytes >= MAX_BODY_BYTES;
}

const BOUNDS = statement(
  'bounds',
  `
SELECT (SELECT e.revision FROM writ.event AS e WHERE e.namespace = $namespace ORDER BY e.revision LIMIT 1) AS first,
  (SELECT e.revision FROM writ.event AS e WHERE e.namespace = $namespace ORDER BY e.revision DESC LIMIT 1) AS last`,
);

/** As LIST_NAMESPACES: each id by one descent of its index, so that the cost is the number of ids and not of events. */
const idsThatBegin = (column: 'run_id' | 'lease_id') =>
  statement(
    `${column}s_that_begin`,
    `
WITH RECURSIVE found AS (
  (SELECT e.${column} AS id FROM writ.event AS e
    WHERE e.namespace = $namespace AND e.${column} <> '' AND e.${column} >= $beginning::text ORDER BY e.${column} LIMIT 1)
  UNION ALL
  SELECT next.id FROM found CROSS JOIN LATERAL (
    SELECT e.${column} AS id FROM writ.event AS e
    WHERE e.namespace = $namespace AND e.${column} <> '' AND e.${column} > found.id ORDER BY e.${column} LIMIT 1) AS next
  WHERE starts_with(found.id, $beginning::text)
)
SELECT id FROM found WHERE starts_with(id, $beginning::text) LIMIT $limit::bigint`,
  );

const RUN_IDS = idsThatBegin('run_id');
const LEASE_IDS = idsThatBegin('lease_id');

export async function findIds(
  session: Session,
  namespace: string,
  beginning: string,
  limit: number,
): Promise<IdsInLog> {
  const values = { namespace, beginning, limit };
  const runs = await session.query<{ id: string }>(RUN_IDS, values);
  const leases = await session.query<{ id: string }>(LEASE_IDS, values);
  return { runIds: runs.map(({ id }) => id), leaseIds: leases.map(({ id }) => id) };
}
