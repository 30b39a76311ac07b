import type { Micros } from '../../domain/time.js';
import type { SignedCheckpoint } from '../store.js';
import type { Session } from './connections.js';
import { statement } from './statement.js';

/** Checkpoints that were signed on schedule, the last ones of each namespace (A2). */

/** About five weeks of one replica at the default schedule; more replicas share them. */
const KEPT = 10_000;

/** Older ones go, a bounded portion each time: a table that is written again and again must not grow for ever. */
const KEEP = statement(
  'keep_checkpoint',
  `
WITH gone AS (
  DELETE FROM writ.signed_checkpoint AS c
  WHERE c.namespace = $namespace AND c.number = ANY (ARRAY(
    SELECT o.number FROM writ.signed_checkpoint AS o
    WHERE o.namespace = $namespace ORDER BY o.number DESC OFFSET $kept::bigint LIMIT 100))
)
INSERT INTO writ.signed_checkpoint (namespace, revision, hash, time_us, signature, key_id, public_key, sent_to)
VALUES ($namespace, $revision::bigint, decode($hash, 'hex'), $time_us::bigint, decode($signature, 'base64'), $key_id,
  $public_key, $sent_to)`,
);

const LIST = statement(
  'list_checkpoints',
  `
SELECT c.namespace, c.number, c.revision, encode(c.hash, 'hex') AS hash, c.time_us,
  encode(c.signature, 'base64') AS signature, c.key_id, c.public_key, c.sent_to
FROM writ.signed_checkpoint AS c
WHERE c.namespace = $namespace AND c.number < $below::bigint ORDER BY c.number DESC LIMIT $limit::bigint`,
);

interface CheckpointRow {
  readonly namespace: string;
  readonly number: number;
  readonly revision: number;
  readonly hash: string;
  readonly time_us: Micros;
  readonly signature: string;
  readonly key_id: string;
  readonly public_key: string;
  readonly sent_to: string;
}

export async function keepCheckpoint(session: Session, checkpoint: Omit<SignedCheckpoint, 'number'>): Promise<void> {
  const { namespace, revision, hash, time, signature, keyId, publicKeyPem, sentTo } = checkpoint;
  await session.query(KEEP, {
    ...{ namespace, revision, hash, time_us: time, key_id: keyId, public_key: publicKeyPem, sent_to: sentTo },
    ...{ signature: Buffer.from(signature).toString('base64'), kept: KEPT },
  });
}

export async function listCheckpoints(
  session: Session,
  namespace: string,
  below: number | null,
  limit: number,
): Promise<SignedCheckpoint[]> {
  const values = { namespace, below: below ?? Number.MAX_SAFE_INTEGER, limit };
  return (await session.query<CheckpointRow>(LIST, values)).map((row) => ({
    ...{ namespace: row.namespace, number: row.number, revision: row.revision, hash: row.hash, time: row.time_us },
    ...{ signature: Buffer.from(row.signature, 'base64'), keyId: row.key_id, publicKeyPem: row.public_key },
    sentTo: row.sent_to,
  }));
}
