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
 * them up, while a join could be planned as a scan of everything that the namespace has.
 */
const PURGE = statement(
  'purge',
  `
WITH gone AS MATERIALIZED (
  SELECT r.run_id FROM writ.run AS r
  WHERE r.namespace = $namespace AND r.ended_at_us < $before_us::bigint
    AND NOT EXISTS (SELECT FROM writ.lease AS l
      WHERE l.namespace = r.namespace AND l.run_id = r.run_id AND (l.state <> 'ended' OR l.lock_delayed))
  ORDER BY r.ended_at_us LIMIT $limit::bigint FOR UPDATE SKIP LOCKED
), leases AS (
  DELETE FROM writ.lease AS l
  WHERE l.namespace = $namespace AND l.run_id = ANY (ARRAY(SELECT gone.run_id FROM gone)) RETURNING l.lease_id
), write_sets AS (
  DELETE FROM writ.lease_write_set AS w
  WHERE w.namespace = $namespace AND w.lease_id = ANY (ARRAY(SELECT leases.lease_id FROM leases))
), keys AS (
  DELETE FROM writ.key_binding AS k
  WHERE k.namespace = $namespace AND k.run_id = ANY (ARRAY(SELECT gone.run_id FROM gone))
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

export async function purge(session: Session, namespace: string, before: Micros, limit: number): Promise<number> {
  const [row] = await session.query<{ purged: number }>(PURGE, { namespace, before_us: before, limit });
  return row?.purged ?? 0;
}
