import type { Micros } from '../../domain/time.js';
import type { TailerLease } from '../store.js';
import type { Session } from './connections.js';
import { statement } from './statement.js';

/**
 * Who publishes the log to Redis: a lease per namespace, decided by the database clock (P11). A new holder's token is
 * higher than any before, also after a restore, since it is at least the clock; one who keeps it keeps the token.
 */
const CLAIM = statement(
  'claim_tailers',
  `
WITH clock AS MATERIALIZED (
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us
)
INSERT INTO writ.tailer_lease AS held (namespace, replica_id, token, expires_at_us)
SELECT n.namespace, $replica_id, clock.now_us, clock.now_us + $ttl_us::bigint
FROM clock, unnest($namespaces::text[]) AS n(namespace)
ORDER BY n.namespace
ON CONFLICT (namespace) DO UPDATE SET
  replica_id = excluded.replica_id,
  token = CASE WHEN held.replica_id = excluded.replica_id AND held.expires_at_us > excluded.token
               THEN held.token ELSE greatest(held.token + 1, excluded.token) END,
  expires_at_us = excluded.expires_at_us
WHERE held.replica_id = excluded.replica_id OR held.expires_at_us <= excluded.token
RETURNING held.namespace, held.token`,
);

const YIELD = statement(
  'yield_tailers',
  `
UPDATE writ.tailer_lease AS held SET expires_at_us = 0 WHERE held.replica_id = $replica_id AND held.expires_at_us > 0`,
);

export function claimTailers(
  session: Session,
  replicaId: string,
  namespaces: readonly string[],
  ttl: Micros,
): Promise<TailerLease[]> {
  return session.query<TailerLease>(CLAIM, { replica_id: replicaId, namespaces, ttl_us: ttl });
}

export async function yieldTailers(session: Session, replicaId: string): Promise<void> {
  await session.query(YIELD, { replica_id: replicaId });
}
