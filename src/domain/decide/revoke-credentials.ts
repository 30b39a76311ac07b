import type { RevokedSubject } from '../credential.js';
import { CREDENTIAL_LIFE } from '../credential-times.js';
import { Fault } from '../fault.js';
import type { State } from '../state.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';
import { leaseNotFound, ownRun, runNotFound } from './run-guard.js';

/** Most revocations of one namespace that can matter at a time. */
export const MAX_REVOCATIONS = 10_000;

export interface RevokeCredentialsCommand {
  /** Null: an operator's call. Others revoke what is out for their own runs and leases. */
  readonly principal: string | null;
  readonly subject:
    | { readonly kind: 'jti'; readonly jti: string }
    | { readonly kind: 'lease'; readonly leaseId: string }
    | { readonly kind: 'run'; readonly runId: string };
  readonly reason: string;
  readonly requestIds: readonly string[];
}

/**
 * RevokeCredential: no check allows what was out when it was decided (P3). The lease lives on, and new credentials can be
 * had for it.
 */
export function decideRevokeCredentials(
  decision: Decision,
  command: RevokeCredentialsCommand,
): { effectiveAt: Micros } {
  const { subject, runId, leaseId } = subjectOf(decision, command);
  makeRoom(decision.state, decision.now);
  const until = decision.now + CREDENTIAL_LIFE;
  decision.emit(
    { kind: 'credentials_revoked', subject, until, reason: command.reason },
    { runId, leaseId, requestIds: command.requestIds },
  );
  return { effectiveAt: decision.now };
}

function subjectOf(
  decision: Decision,
  { subject, principal }: RevokeCredentialsCommand,
): { subject: RevokedSubject; runId: string; leaseId: string } {
  if (subject.kind === 'jti') {
    // Nobody keeps whose credential an id is; the operator who names it has seen it.
    if (principal !== null)
      throw new Fault(
        'permission_denied',
        'OPERATOR_REQUIRED',
        'Only an operator or admin revokes a credential by its id; revoke those of your lease or run.',
      );
    return { subject: `jti:${subject.jti}`, runId: '', leaseId: '' };
  }
  if (subject.kind === 'run') {
    const run = principal === null ? decision.run(subject.runId) : ownRun(decision, subject.runId, principal);
    if (run === undefined) throw runNotFound(subject.runId);
    return { subject: `run:${run.runId}`, runId: run.runId, leaseId: '' };
  }
  const lease = decision.lease(subject.leaseId);
  const owner = lease === undefined ? undefined : decision.run(lease.runId)?.principal;
  if (lease === undefined || (principal !== null && owner !== principal)) throw leaseNotFound(subject.leaseId);
  return { subject: `lease:${lease.leaseId}`, runId: lease.runId, leaseId: lease.leaseId };
}

/** Refuses when all there is room for still matters. */
function makeRoom(state: State, now: Micros): void {
  if (state.revocations.size < MAX_REVOCATIONS) return;
  let live = 0;
  for (const { until } of state.revocations.values()) if (until > now) live += 1;
  if (live < MAX_REVOCATIONS) return;
  throw new Fault(
    'resource_exhausted',
    'TOO_MANY_REVOCATIONS',
    `${MAX_REVOCATIONS} revocations of this namespace still matter; nothing was revoked. Stop the run, or revoke the lease: that needs no room.`,
  );
}
