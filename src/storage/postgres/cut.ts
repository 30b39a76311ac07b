import type { LogCut } from '../store.js';
import type { Session } from './connections.js';
import { statement } from './statement.js';

/** The cut of a log at a checkpoint: what is kept of it is said by the log itself. */

/** Few rows ever: the events of older cuts are cut by later ones. A later one may be of an earlier place. */
const READ_CUT = statement(
  'read_cut',
  `
SELECT e.body, (
  SELECT f.revision FROM writ.event AS f WHERE f.namespace = $namespace ORDER BY f.revision LIMIT 1) AS lowest
FROM writ.event AS e WHERE e.namespace = $namespace AND e.kind = 'log_cut'
ORDER BY (e.body::json ->> 'firstRevision')::bigint DESC LIMIT 1`,
);

export async function readCut(session: Session, namespace: string): Promise<LogCut | null> {
  const [row] = await session.query<{ body: string; lowest: number }>(READ_CUT, { namespace });
  if (row === undefined) return null;
  const { firstRevision, checkpoint } = JSON.parse(row.body) as { firstRevision: number; checkpoint: { hash: string } };
  return { firstRevision, hashBefore: checkpoint.hash, lowest: row.lowest };
}

const CUT_LOG = statement('cut_log', 'SELECT writ.cut_log($namespace, $limit::bigint) AS removed');

export async function cutLog(session: Session, namespace: string, limit: number): Promise<number> {
  const [row] = await session.query<{ removed: number }>(CUT_LOG, { namespace, limit });
  return row?.removed ?? 0;
}
