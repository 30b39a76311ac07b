import type { Lease } from '../../domain/lease.js';
import type { DatabaseIdentity } from '../store.js';

/** Which write sets the database holds already, so that a renewal, which changes none, need not send them. */
export interface WriteSetMemory {
  isStored(database: DatabaseIdentity | null, namespace: string, lease: Lease): boolean;
  stored(database: DatabaseIdentity, namespace: string, leases: readonly Lease[]): void;
}

interface Mark {
  readonly database: DatabaseIdentity;
  readonly namespace: string;
  readonly leaseId: string;
  readonly generation: number;
  readonly request: Lease['request'];
  readonly ruleLocks: Lease['ruleLocks'];
}

/**
 * Leases are immutable records: a change that keeps the write set keeps its very arrays. So the arrays themselves tell,
 * and are forgotten with the lease that holds them. What is not recognised is sent again, which is always right. Two
 * things more must be as they were: the generation, which rises with every change of a write set, so that one that came
 * back is sent; and the identity that the append insists on, down to the start of the server, since another server may
 * have lost the row.
 */
export function createWriteSetMemory(): WriteSetMemory {
  const marks = new WeakMap<Lease['entries'], Mark>();
  // One object for all marks of one server.
  let current: DatabaseIdentity | null = null;
  return {
    isStored(database, namespace, lease) {
      const mark = marks.get(lease.entries);
      return (
        mark !== undefined &&
        database !== null &&
        isSame(mark.database, database) &&
        mark.leaseId === lease.leaseId &&
        mark.namespace === namespace &&
        mark.generation === lease.generation &&
        mark.request === lease.request &&
        mark.ruleLocks === lease.ruleLocks
      );
    },
    stored(seen, namespace, leases) {
      if (current === null || !isSame(current, seen)) current = seen;
      const database = current;
      for (const lease of leases) {
        // Nothing writes an ended lease again.
        if (lease.state === 'ended') continue;
        const { leaseId, generation, request, ruleLocks } = lease;
        marks.set(lease.entries, { database, namespace, leaseId, generation, request, ruleLocks });
      }
    },
  };
}

function isSame(a: DatabaseIdentity, b: DatabaseIdentity): boolean {
  return (
    a === b ||
    (a.postmasterStart === b.postmasterStart &&
      a.systemIdentifier === b.systemIdentifier &&
      a.timeline === b.timeline &&
      a.databaseOid === b.databaseOid &&
      a.eventTableOid === b.eventTableOid)
  );
}
