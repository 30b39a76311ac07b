import type { Session } from './connections.js';
import { statement } from './statement.js';

const READ_HOME = statement(
  'namespace_home',
  `
SELECT h.database FROM writ.namespace_home AS h WHERE h.namespace = $namespace`,
);

/** Returns the row that is there already, too, hence the update that changes nothing. */
const CLAIM_HOME = statement(
  'claim_namespace_home',
  `
INSERT INTO writ.namespace_home AS h (namespace, database) VALUES ($namespace, $database)
ON CONFLICT (namespace) DO UPDATE SET database = h.database
RETURNING h.database`,
);

export async function namespaceHome(session: Session, namespace: string): Promise<string | null> {
  const [row] = await session.query<{ database: string }>(READ_HOME, { namespace });
  return row?.database ?? null;
}

export async function claimNamespaceHome(session: Session, namespace: string, database: string): Promise<string> {
  const [row] = await session.query<{ database: string }>(CLAIM_HOME, { namespace, database });
  return row?.database ?? database;
}
