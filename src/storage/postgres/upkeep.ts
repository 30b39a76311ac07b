import type { Micros } from '../../domain/time.js';
import { type Heartbeat, StoreError } from '../store.js';
import type { Session } from './connections.js';
import { statement } from './statement.js';

/** What is written outside the log: heartbeats, and the purge of what is over. */

/**
 * The clock is read before the commit, so the heartbeat is never believed to be younger than it is. Rows of replicas
 * that are long gone leave with the first heartbeat of a new one.
 */
const BEAT = statement(
  'heartbeat',
  `
INSERT INTO writ.replica_heartbeat (replica_id, at_us)
VALUES ($replica_id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
ON CONFLICT (replica_id) DO UPDATE SET at_us = excluded.at_us
RETURNING at_us`,
);

const FORGET_REPLICAS = statement(
  'forget_replicas',
  `
DELETE FROM writ.replica_heartbeat AS h
WHERE h.at_us < ((extract(epoch FROM clock_timestamp()) - 86400) * 1000000)::bigint`,
);

export async function heartbeat(session: Session, replicaId: string, first: boolean): Promise<Heartbeat> {
  const [row] = await session.query<{ at_us: Micros }>(BEAT, { replica_id: replicaId });
  const warning = session.warning();
  if (warning !== null) throw new StoreError('unavailable', `the heartbeat was not confirmed as asked for: ${warning}`);
  if (row === undefined) throw new StoreError('bug', 'the heartbeat answered without its row');
  if (first) await session.query(FORGET_REPLICAS, {});
  return { replicaId, at: row.at_us };
}

/**
 * One bounded portion, the longest ended first. SKIP LOCKED: two replicas that purge at once share the work instead of
 * waiting for each other. A run with a lease that has not ended, or is under lock delay, stays, whatever its own row
 * says. Keys that belong to no run go by their age. Ids are handed on as arrays: an index is then the only way to look
 * them up, while a join could be planned as a scan of everything that the namespace has. `<> ''` is the
 * condition of the indexes by run and by lease.
 */
const PURGE = statement(
  'purge',
  `
WITH gone AS MATERIALIZED (
  SELECT r.run_id FROM writ.run AS r
  WHERE r.namespace = $namespace AND r.ended_at_us < $before_us::bigint
    AND NOT EXISTS (SELECT FROM writ.lease AS l
      WHERE l.namespace = r.namespace AND l.run_id = r.run_id AND l.run_id <> ''
        AND (l.state <> 'ended' OR l.lock_delayed))
  ORDER BY r.ended_at_us LIMIT $limit::bigint FOR UPDATE SKIP LOCKED
), leases AS (
  DELETE FROM writ.lease AS l
  WHERE l.namespace = $namespace AND l.run_id = ANY (ARRAY(SELECT gone.run_id FROM gone)) AND l.run_id <> ''
  RETURNING l.lease_id
), write_sets AS (
  DELETE FROM writ.lease_write_set AS w
  WHERE w.namespace = $namespace AND w.lease_id = ANY (ARRAY(SELECT leases.lease_id FROM leases))
), admissions AS (
  DELETE FROM writ.admission AS a
  WHERE a.namespace = $namespace AND a.lease_id = ANY (ARRAY(SELECT leases.lease_id FROM leases)) AND a.lease_id <> ''
), keys AS (
  DELETE FROM writ.key_binding AS k
  WHERE k.namespace = $namespace AND k.run_id = ANY (ARRAY(SELECT gone.run_id FROM gone)) AND k.run_id <> ''
), loose_keys AS (
  DELETE FROM writ.key_binding AS k
  WHERE k.ctid = ANY (ARRAY(
    SELECT b.ctid FROM writ.key_binding AS b
    WHERE b.namespace = $namespace AND b.run_id = '' AND b.bound_at_us < $before_us
    ORDER BY b.bound_at_us LIMIT $limit))
), revocations AS (
  DELETE FROM writ.credential_revocation AS r
  WHERE r.ctid = ANY (ARRAY(
    SELECT d.ctid FROM writ.credential_revocation AS d
    WHERE d.namespace = $namespace AND d.until_us < ((extract(epoch FROM clock_timestamp()) - 60) * 1000000)::bigint
    ORDER BY d.until_us LIMIT 10000))
), runs AS (
  DELETE FROM writ.run AS r
  WHERE r.namespace = $namespace AND r.run_id = ANY (ARRAY(SELECT gone.run_id FROM gone)) RETURNING 1
)
SELECT count(*) AS purged FROM runs`,
);

/**
 * One bounded portion, the oldest first. Revisions and times rise together, so the oldest texts are those of the lowest
 * revisions.
 */
const ERASE_TEXTS_BEFORE = statement(
  'erase_texts_before',
  `
WITH oldest AS MATERIALIZED (
  SELECT DISTINCT t.revision FROM (
    SELECT o.revision FROM writ.event_text AS o WHERE o.namespace = $namespace ORDER BY o.revision LIMIT $limit::bigint
  ) AS t
  JOIN writ.event AS e ON e.namespace = $namespace AND e.revision = t.revision
  WHERE e.time_us < $before_us::bigint
), erased AS (
  DELETE FROM writ.event_text AS t
  WHERE t.namespace = $namespace AND t.revision = ANY (ARRAY(SELECT oldest.revision FROM oldest)) RETURNING 1
)
SELECT count(*) AS erased FROM erased`,
);

const ERASE_TEXTS_OF_RUN = statement(
  'erase_texts_of_run',
  `
WITH erased AS (
  DELETE FROM writ.event_text AS t
  WHERE t.namespace = $namespace AND t.revision = ANY (ARRAY(
    SELECT e.revision FROM writ.event AS e
    WHERE e.namespace = $namespace AND e.run_id = $run_id AND e.run_id <> ''
      AND e.revision < $before::bigint AND e.body_version = 2)) RETURNING 1
)
SELECT count(*) AS erased FROM erased`,
);

export async function eraseTextsBefore(
  session: Session,
  namespace: string,
  before: Micros,
  limit: number,
): Promise<number> {
  const [row] = await session.query<{ erased: number }>(ERASE_TEXTS_BEFORE, { namespace, before_us: before, limit });
  return row?.erased ?? 0;
}

export async function eraseTextsOfRun(
  session: Session,
  namespace: string,
  runId: string,
  beforeRevision: number,
): Promise<number> {
  const values = { namespace, run_id: runId, before: beforeRevision };
  const [row] = await session.query<{ erased: number }>(ERASE_TEXTS_OF_RUN, values);
  return row?.erased ?? 0;
}

export async function purge(session: Session, namespace: string, before: Micros, limit: number): Promise<number> {
  const [row] = await session.query<{ purged: number }>(PURGE, { namespace, before_us: before, limit });
  return row?.purged ?? 0;
}
