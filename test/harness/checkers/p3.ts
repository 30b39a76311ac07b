import { answered, type Call, type Checker, type History, type Violation } from '../history.js';
import { auditOf } from './audit.js';
import { isAllowed, type KnownLease, knowledgeOf } from './knowledge.js';

/**
 * P3: once a release, revocation or stop has returned, or the expiry has passed on the database clock, no replica's
 * check allows the token. Linearizable: a check is decided on everything that was answered before it was sent.
 */
export const p3: Checker = (history) => [
  ...allowedAfterTheEnd(history),
  ...allowedByTheLog(history),
  ...staleAnswers(history),
  ...allowedByAView(history),
  ...auditOf('P3')(history),
];

const allowedAfterTheEnd: Checker = (history) => {
  const { leases, leaseOf, earliest } = knowledgeOf(history);
  return answered(history, 'check').flatMap((check) => {
    const lease = leases.get(leaseOf(check));
    if (lease === undefined || !isAllowed(check)) return [];
    if (check.sent > lease.overAt)
      return [
        violation(check, lease, `after its end by call ${lease.overBy?.id} (${lease.overBy?.kind}) was answered`),
      ];
    if (lease.lastExpiry > 0 && earliest(check.sent) >= lease.lastExpiry)
      return [violation(check, lease, `that was sent after its last expiry ${lease.lastExpiry}`)];
    return [];
  });
};

/** An end that is in the log at or before the revision that the check was decided at. */
const allowedByTheLog: Checker = (history) => {
  const { leases, leaseOf, events, mayBeLost } = knowledgeOf(history);
  const ends = new Map<string, number>();
  for (const { revision, event } of events)
    if (event.body.kind === 'lease_ended') ends.set(event.body.leaseId, revision);
  return answered(history, 'check').flatMap((check) => {
    const lease = leases.get(leaseOf(check));
    const end = ends.get(lease?.leaseId ?? '');
    // Revisions that were lost are given again.
    if (lease === undefined || end === undefined || !isAllowed(check) || mayBeLost(check as Call)) return [];
    if (check.told.revision < end) return [];
    return [violation(check, lease, `at revision ${check.told.revision}, its end is revision ${end}`)];
  });
};

/** Targets that decide by a view: the end is in force at the `effective_at` that was told, and the expiry is known. */
const allowedByAView: Checker = (history) => {
  const { leases, earliest } = knowledgeOf(history);
  return answered(history, 'view').flatMap((view) => {
    const lease = leases.get(view.asked.leaseId);
    if (lease === undefined || !view.told.allowed) return [];
    const now = earliest(view.sent);
    if (view.sent > lease.overAt && now >= lease.effectiveAt)
      return [violation(view, lease, `by a view after its end was in force at ${lease.effectiveAt}`)];
    if (lease.lastExpiry > 0 && now >= lease.lastExpiry)
      return [violation(view, lease, `by a view after its last expiry ${lease.lastExpiry}`)];
    return [];
  });
};

/** A check that does not know what somebody had been told before it was sent. */
const staleAnswers: Checker = (history) => {
  const { inOneEra } = knowledgeOf(history);
  const sources = history.calls
    .filter((call) => call.answered !== null && call.told !== null)
    .sort((a, b) => (a.answered ?? 0) - (b.answered ?? 0));
  const violations: Violation[] = [];
  let next = 0;
  let newest: Call | undefined;
  for (const check of answered(history, 'check').sort((a, b) => a.sent - b.sent)) {
    for (; next < sources.length && ((sources[next] as Call).answered ?? 0) < check.sent; next += 1) {
      const source = sources[next] as Call;
      // After a loss revisions begin again where the log was cut.
      if (newest === undefined || !inOneEra(newest, source) || revisionOf(source) > revisionOf(newest)) newest = source;
    }
    if (newest === undefined || revisionOf(newest) <= check.told.revision || !inOneEra(newest, check as Call)) continue;
    violations.push({
      promise: 'P3',
      what: `a check was decided at revision ${check.told.revision}, though call ${newest.id} had told of ${revisionOf(newest)} before it was sent`,
      calls: [newest.id, check.id],
      revisions: [check.told.revision, revisionOf(newest)],
      about: [check.asked.leaseId],
    });
  }
  return violations;
};

function revisionOf({ told }: Pick<History['calls'][number], 'told'>): number {
  return told !== null && 'revision' in told ? told.revision : 0;
}

function violation(check: Pick<Call, 'id'>, lease: KnownLease, how: string): Violation {
  return {
    promise: 'P3',
    what: `a check of lease ${lease.leaseId} was allowed ${how}`,
    calls: lease.overBy === null ? [check.id] : [lease.overBy.id, check.id],
    revisions: [],
    about: [lease.leaseId],
  };
}
