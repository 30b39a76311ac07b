import { answered, type Checker } from '../history.js';
import { knowledgeOf } from './knowledge.js';

/**
 * C6: a lease ends safely when the process or its network hangs. The runner kit never takes a lease to be held at a moment
 * at which the last expiry that anybody gave it had passed on the database's clock.
 */
export const c6: Checker = (history) => {
  const { leases, earliest } = knowledgeOf(history);
  return answered(history, 'holds').flatMap((look) => {
    const lease = leases.get(look.asked.leaseId);
    if (lease === undefined || !look.told.holds || lease.lastExpiry === 0) return [];
    if (earliest(look.sent) < lease.lastExpiry) return [];
    return [
      {
        promise: 'C6',
        what: `the runner kit took lease ${lease.leaseId} to be held after its last expiry ${lease.lastExpiry}`,
        calls: [look.id],
        revisions: [],
        about: [lease.leaseId],
      },
    ];
  });
};
