import { answered, type Call, type Checker, type SeenLease, type Violation } from '../history.js';
import { auditOf } from './audit.js';
import { type KnownLease, knowledgeOf } from './knowledge.js';

/**
 * P5: an expiry never passes min(granted + max hold, end of the run's authority), and is never missing. A renewal is
 * decided before expiry and never revives an ended lease.
 */
export const p5: Checker = (history) => [...bounds(history), ...revived(history), ...auditOf('P5')(history)];

const bounds: Checker = (history) => {
  const authority = new Map(
    answered(history, 'create_run').map(({ asked, told }) => [told.runId, asked.authorityEndsAt]),
  );
  return [...knowledgeOf(history).leases.values()].flatMap((lease) => {
    const [first] = lease.seen.filter(({ lease: { state } }) => state === 'active');
    return lease.seen.flatMap(({ call, lease: seen }) => {
      const problem = seen.state === 'active' ? wrongWith(seen, first?.lease ?? seen, authority.get(seen.runId)) : '';
      return problem === '' ? [] : [violation(lease, [call.id], problem)];
    });
  });
};

function wrongWith(seen: SeenLease, first: SeenLease, authorityEndsAt = Number.POSITIVE_INFINITY): string {
  const { expiresAt, maxExpiresAt, grantedAt } = seen;
  if (!expiresAt || !maxExpiresAt || !grantedAt) return 'is active and has no end';
  if (expiresAt > maxExpiresAt) return `expires at ${expiresAt}, after its max hold ${maxExpiresAt}`;
  if (expiresAt > authorityEndsAt) return `expires at ${expiresAt}, after the authority of its run ${authorityEndsAt}`;
  if (grantedAt !== first.grantedAt) return `was granted at ${first.grantedAt}, and later at ${grantedAt}`;
  if (seen.generation === first.generation && maxExpiresAt > (first.maxExpiresAt ?? 0))
    return `moved its last end to ${maxExpiresAt}`;
  return '';
}

/** Renewed though it was over before that was asked. */
const revived: Checker = (history) => {
  const { leases, earliest } = knowledgeOf(history);
  return answered(history, 'renew').flatMap((call) => {
    const lease = leases.get(call.asked.leaseId);
    if (call.told.outcome !== 'lease' || lease === undefined) return [];
    if (call.sent > lease.overAt)
      return [violation(lease, [(lease.overBy as Call).id, call.id], 'was renewed after its end had been answered')];
    const given = call.told.lease.expiresAt ?? 0;
    const before = Math.max(0, ...[...lease.expiries].filter((expiry) => expiry < given));
    if (before > 0 && earliest(call.sent) >= before)
      return [violation(lease, [call.id], `was renewed by a call that was sent after its expiry ${before}`)];
    return [];
  });
};

function violation(lease: KnownLease, calls: readonly number[], what: string): Violation {
  return {
    promise: 'P5',
    what: `lease ${lease.leaseId} ${what}`,
    calls,
    revisions: [],
    about: [lease.leaseId, lease.runId],
  };
}
