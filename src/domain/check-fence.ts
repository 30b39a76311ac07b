import type { WriteGrant } from './credential.js';
import type { FenceReason, FenceVerdict, ProtectedWrite, WriteVerdict } from './fence.js';
import { endReasonByTime, endsAt, isPast, type Lease, type LeaseEntry } from './lease.js';
import { hasEnded, type Run } from './run.js';
import { sentence } from './sentence.js';
import type { Micros } from './time.js';

/** What a check is decided on: all read at one log revision and one database time. */
export interface CheckFacts {
  readonly now: Micros;
  /** A token later than the clock by more than this is forged, or evidence of lost history. */
  readonly maxClockSkew: Micros;
  readonly lease: Lease | undefined;
  readonly run: Run | undefined;
  /** The resource's path, when it was an alias; null when it has no normal form. */
  readonly pathOf: (resource: string) => string | null;
  /** Whether the resource's kind, or the map for unmatched ones, only observes (C14). */
  readonly observes: (resource: string) => boolean;
  /** Whether the calling target may check the resource: its kind names no owner services, or this one. */
  readonly ownedByCaller: (resource: string) => boolean;
}

export interface CheckQuestion {
  /** Empty: the target relies on the lease id alone. */
  readonly presenterRunId: string;
  readonly writes: readonly ProtectedWrite[];
  /** What was presented in place of the lease id; absent: the id itself, and each write brings its token. */
  readonly credential?: CredentialView;
}

/** A credential, looked at for itself. */
export interface CredentialView {
  /** Why it counts for nothing; `ok` when it is as good as its lease. */
  readonly reason: FenceReason;
  /** What it says may be written, with the tokens for it; null: it stands for a write set that its lease no longer has. */
  readonly grants: readonly WriteGrant[] | null;
  /** When it ends by itself; null: unknown, as it counts for nothing. */
  readonly expiresAt: Micros | null;
}

/** The fence check: only resources and actions that the lease covers, only for the run that holds it (P3, P4). */
export function checkFence(facts: CheckFacts, question: CheckQuestion): FenceVerdict {
  const { credential } = question;
  const whole = ofCredential(credential) ?? leaseReason(facts, question.presenterRunId);
  const results = question.writes.map((write) => verdictOn(facts, whole, credential, write));
  const allowed = results.every((result) => result.allowed);
  const valid = allowed && whole === 'ok' && facts.lease !== undefined;
  const end = valid ? Math.min(endsAt(facts.lease), credential?.expiresAt ?? Number.POSITIVE_INFINITY) : null;
  return { allowed, results, validFor: end === null ? null : end - facts.now };
}

/** Why the credential allows nothing; null when there is none, or its lease decides. */
function ofCredential(credential: CredentialView | undefined): FenceReason | null {
  if (credential === undefined) return null;
  if (credential.reason !== 'ok') return credential.reason;
  return credential.grants?.length === 0 ? 'no_write_authority' : null;
}

function verdictOn(
  facts: CheckFacts,
  whole: FenceReason,
  credential: CredentialView | undefined,
  write: ProtectedWrite,
): WriteVerdict {
  const path = facts.pathOf(write.resource);
  const reason = reasonFor(facts, whole, credential, write, path);
  const observedOnly = reason !== 'ok' && reason !== 'future_token' && path !== null && facts.observes(path);
  return { allowed: reason === 'ok' || observedOnly, reason, message: messageOf(reason, write, facts), observedOnly };
}

/** Why the lease as a whole allows nothing; `ok` when it may allow something. */
export function leaseReason(
  { lease, run, now }: Pick<CheckFacts, 'lease' | 'run' | 'now'>,
  presenterRunId: string,
): FenceReason {
  if (lease === undefined) return 'unknown_lease';
  if (presenterRunId !== '' && presenterRunId !== lease.runId) return 'wrong_holder';
  if (lease.state === 'waiting') return 'not_granted';
  if (lease.state === 'ended') return endedReason(lease);
  if (isPast(lease, now)) return endReasonByTime(lease);
  if (run === undefined || run.state === 'stopping' || run.state === 'stopped') return 'run_stopped';
  if (hasEnded(run) || run.authorityEndsAt <= now) return 'run_ended';
  return 'ok';
}

function endedReason(lease: Lease): FenceReason {
  switch (lease.endReason) {
    case null:
      return 'expired';
    case 'withdrawn':
    case 'timed_out':
    case 'refused':
      return 'not_granted';
    default:
      return lease.endReason;
  }
}

function reasonFor(
  facts: CheckFacts,
  whole: FenceReason,
  credential: CredentialView | undefined,
  write: ProtectedWrite,
  path: string | null,
): FenceReason {
  if (write.token > facts.now + facts.maxClockSkew) return 'future_token';
  if (credential !== undefined && credential.reason !== 'ok') return credential.reason;
  if (path !== null && !facts.ownedByCaller(path)) return 'wrong_target';
  if (whole !== 'ok' || facts.lease === undefined) return whole;
  if (path === null) return 'not_covered';
  if (credential === undefined) return leaseAllows(facts.lease, write, path);
  return credential.grants === null ? 'stale_token' : bothAllow(facts.lease, credential.grants, write, path);
}

/** What the credential says may be written is what its lease is asked for, by the credential's tokens (P10). */
function bothAllow(lease: Lease, grants: readonly WriteGrant[], write: ProtectedWrite, path: string): FenceReason {
  const covering = grants.filter(({ resources, scope }) =>
    resources.some((resource) => covers({ resource, scope }, path)),
  );
  if (covering.length === 0) return 'not_covered';
  const withAction = covering.filter(({ actions }) => actions.includes(write.action));
  if (withAction.length === 0) return 'action_not_allowed';
  const reasons = withAction
    .filter(({ token }) => write.token === 0 || write.token === token)
    .map(({ token }) => leaseAllows(lease, { ...write, token }, path));
  return reasons.find((reason) => reason === 'ok') ?? reasons[0] ?? 'stale_token';
}

function leaseAllows(lease: Lease, write: ProtectedWrite, path: string): FenceReason {
  const covering = lease.entries.filter((entry) => entry.access === 'write' && covers(entry, path));
  if (covering.length === 0) return 'not_covered';
  const withAction = covering.filter((entry) => entry.actions.includes(write.action));
  if (withAction.length === 0) return 'action_not_allowed';
  const holding = withAction.find((entry) => entry.token === write.token);
  if (holding === undefined) return 'stale_token';
  if (holding.observedRefusal !== null) return 'not_covered';
  if (!holding.exclusive && write.observedVersion === null) return 'version_required';
  return 'ok';
}

function covers(entry: Pick<LeaseEntry, 'resource' | 'scope'>, path: string): boolean {
  return entry.resource === path || (entry.scope === 'subtree' && path.startsWith(`${entry.resource}/`));
}

/** Never says what a current token is. */
function messageOf(reason: FenceReason, write: ProtectedWrite, facts: CheckFacts): string {
  const resource = JSON.stringify(write.resource);
  switch (reason) {
    case 'ok':
      return '';
    case 'stale_token':
      return `The token presented for ${resource} is not the lease's token for it.`;
    case 'future_token':
      return `The token presented for ${resource} is later than the database clock.`;
    case 'not_covered':
      return `The lease does not cover a write to ${resource}: it was never declared.`;
    case 'action_not_allowed':
      return `The lease covers ${resource}, but not the action ${JSON.stringify(write.action)}.`;
    case 'wrong_holder':
      return 'The lease belongs to another run than the presenter.';
    case 'wrong_target':
      return `Only the owner services that the conflict map names may check ${resource}; the caller is none of them.`;
    case 'unknown_lease':
      return 'There is no such lease.';
    case 'not_granted':
      return 'The lease was never granted; nothing is held.';
    case 'version_required':
      return `The action ${JSON.stringify(write.action)} on ${resource} is optimistic: it must carry the version the run has read.`;
    case 'oversize':
    case 'malformed':
    case 'header_not_allowed':
    case 'alg_not_allowed':
    case 'wrong_type':
    case 'unknown_key':
    case 'bad_signature':
    case 'wrong_issuer':
    case 'claim_missing':
    case 'claim_invalid':
    case 'not_yet_valid':
      return `What was presented is no credential that counts here: ${reason}.`;
    case 'wrong_audience':
      return 'The credential is for another target.';
    case 'credential_expired':
      return 'The credential has expired; its lease may live on.';
    case 'credential_revoked':
      return 'The credential was revoked; its lease may live on.';
    case 'not_bound':
      return 'The credential is bound to a key, and the target did not say which key the presenter proved to have.';
    case 'binding_mismatch':
      return 'The credential is bound to another key than the presenter proved to have.';
    case 'no_write_authority':
      return `The credential allows proposals only, no write to ${resource}.`;
    case 'run_stopped':
      return sentence('The run was stopped', facts.run?.stateReason ?? '');
    default:
      return `The lease that covered ${resource} is over: ${reason}.`;
  }
}
