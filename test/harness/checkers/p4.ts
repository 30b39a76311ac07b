import { mayWrite } from '../../support/oracle/fence-check.js';
import { type Answered, answered, type Call, type CheckedWrite, type Checker, type SeenEntry } from '../history.js';
import { auditOf } from './audit.js';
import { knowledgeOf } from './knowledge.js';

/** P4: a check allows only resources and actions that the lease covers, and only for the run that holds it. */
export const p4: Checker = (history) => {
  const { leases, credentials, leaseOf } = knowledgeOf(history);
  const bySight = answered(history, 'check').flatMap((check) => {
    const lease = leases.get(leaseOf(check));
    const credential = credentials.get(check.asked.jti)?.credential;
    return check.asked.writes.flatMap((write, index) => {
      const result = check.told.results[index];
      if (result?.allowed !== true || result.observedOnly) return [];
      const entries = lease?.entries ?? [];
      const covered =
        lease !== undefined &&
        (credential === undefined
          ? isCovered(check, write, entries, lease.runId)
          : isGranted(write, credential.grants));
      return covered ? [] : [violation(check, write, lease?.leaseId)];
    });
  });
  return [...bySight, ...byTheLog(history), ...auditOf('P4')(history)];
};

/** What the lease covered at the revision that the check was decided at, and its run could use. */
const byTheLog: Checker = (history) => {
  const { leases, credentials, leaseOf, mayBeLost } = knowledgeOf(history);
  if (history.log.length === 0) return [];
  return answered(history, 'check').flatMap((check) => {
    const lease = leases.get(leaseOf(check));
    if (lease === undefined || mayBeLost(check as Call)) return [];
    const entries = lease.logged.findLast(({ revision }) => revision <= check.told.revision)?.entries ?? [];
    const tokens = credentials.get(check.asked.jti)?.credential.grants.map(({ token }) => token);
    return check.asked.writes.flatMap((write, index) => {
      const result = check.told.results[index];
      if (result?.allowed !== true || result.observedOnly) return [];
      const presented = tokens?.map((token) => ({ ...write, token })) ?? [write];
      if (presented.some((one) => isCovered(check, one, entries, lease.runId))) return [];
      return [violation(check, write, lease.leaseId, ` at revision ${check.told.revision}`)];
    });
  });
};

function isCovered(
  check: Answered<'check'>,
  write: CheckedWrite,
  entries: readonly SeenEntry[],
  runId: string,
): boolean {
  const all = entries.map((entry) => ({
    ...entry,
    mode: 'enforce' as const,
    observedRefusal: entry.observed ? 'held' : null,
  }));
  return mayWrite({ runId, live: true, entries: all }, check.asked.runId, write);
}

/** A credential brings its own tokens; subtrees are of the entries. */
function isGranted(
  write: CheckedWrite,
  grants: readonly { readonly resources: readonly string[]; readonly actions: readonly string[] }[],
): boolean {
  return grants.some(
    ({ resources, actions }) =>
      actions.includes(write.action) &&
      resources.some((resource) => write.resource === resource || write.resource.startsWith(`${resource}/`)),
  );
}

function violation(check: Answered<'check'>, write: CheckedWrite, leaseId = check.asked.leaseId, when = '') {
  return {
    promise: 'P4',
    what: `${write.action} of ${write.resource} with token ${write.token} was allowed under ${leaseId || 'no lease'} for run ${check.asked.runId || '(not named)'}, which does not cover it${when}`,
    calls: [check.id],
    revisions: [],
    about: [leaseId, write.resource],
  };
}
