import type { Lease } from '../../domain/lease.js';

/** Which write sets the database holds already, so that a renewal, which changes none, need not send them. */
export interface WriteSetMemory {
  isStored(namespace: string, lease: Lease): boolean;
  stored(namespace: string, leases: readonly Lease[]): void;
}

interface Mark {
  readonly namespace: string;
  readonly leaseId: string;
  readonly generation: number;
  readonly request: Lease['request'];
  readonly ruleLocks: Lease['ruleLocks'];
}

/**
 * Leases are immutable records: a change that keeps the write set keeps its very arrays. So the arrays themselves tell,
 * and are forgotten with the lease that holds them. What is not recognised is sent again, which is always right. The
 * generation is compared too: it rises with every change of a write set, so that one that came back is sent.
 */
export function createWriteSetMemory(): WriteSetMemory {
  const marks = new WeakMap<Lease['entries'], Mark>();
  return {
    isStored(namespace, lease) {
      const mark = marks.get(lease.entries);
      return (
        mark !== undefined &&
        mark.leaseId === lease.leaseId &&
        mark.namespace === namespace &&
        mark.generation === lease.generation &&
        mark.request === lease.request &&
        mark.ruleLocks === lease.ruleLocks
      );
    },
    stored(namespace, leases) {
      for (const lease of leases) {
        // Nothing writes an ended lease again.
        if (lease.state === 'ended') continue;
        const { leaseId, generation, request, ruleLocks } = lease;
        marks.set(lease.entries, { namespace, leaseId, generation, request, ruleLocks });
      }
    },
  };
}
