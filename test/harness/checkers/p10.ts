import { answered, type Call, type Checker, type SeenCredential, type Violation } from '../history.js';
import { auditOf } from './audit.js';
import { isAllowed, knowledgeOf } from './knowledge.js';

const SECOND = 1_000_000;
/** How long after its end a credential may still be taken: what verifiers are allowed (docs/credentials.md). */
const TOLERANCE = 5 * SECOND;

/** P10: a credential never outlives its lease nor exceeds its write set. */
export const p10: Checker = (history) => {
  const { leases, credentials, earliest } = knowledgeOf(history);
  const issued = [...credentials.values()].flatMap(({ call, credential }) => {
    const lease = leases.get(credential.leaseId);
    if (lease === undefined) return [violation(call, credential, 'is of a lease that nobody was granted')];
    const problems: string[] = [];
    if (lease.lastExpiry > 0 && credential.expires * SECOND > lease.lastExpiry)
      problems.push(`ends at ${credential.expires} s, after its lease (${lease.lastExpiry} µs)`);
    if (credential.runId !== lease.runId) problems.push(`names run ${credential.runId}, not ${lease.runId}`);
    for (const { resources, actions, token } of credential.grants) {
      const exceeds = resources.find(
        (resource) =>
          !lease.entries.some(
            (entry) =>
              entry.access === 'write' &&
              entry.resource === resource &&
              entry.token === token &&
              actions.every((action) => entry.actions.includes(action)),
          ),
      );
      if (exceeds !== undefined)
        problems.push(`grants ${actions.join(', ')} of ${exceeds} with token ${token}, its lease does not`);
    }
    return problems.map((problem) => violation(call, credential, problem));
  });
  const outlived = answered(history, 'check').flatMap((check) => {
    const credential = credentials.get(check.asked.jti)?.credential;
    if (credential === undefined || !isAllowed(check)) return [];
    if (earliest(check.sent) < credential.expires * SECOND + TOLERANCE) return [];
    return [violation(check as Call, credential, 'was taken after its end')];
  });
  return [...issued, ...outlived, ...auditOf('P10')(history)];
};

function violation(call: Call, credential: SeenCredential, what: string): Violation {
  return {
    promise: 'P10',
    what: `credential ${credential.jti} ${what}`,
    calls: [call.id],
    revisions: [],
    about: [credential.leaseId, credential.runId],
  };
}
