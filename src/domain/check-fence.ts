import type { WriteGrant } from './credential.js';
import type { FenceReason, FenceVerdict, ProtectedWrite, WriteHold, WriteVerdict } from './fence.js';
import { endReasonByTime, endsAt, isPast, type Lease, type LeaseEntry } from './lease.js';
import { covers } from './resource.js';
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
  /** Whether nobody knows what became of a write to the resource that was let in before. */
  readonly inDoubt: (resource: string) => boolean;
  /** Whether an operator has frozen the resource for writes too. */
  readonly frozen: (resource: string) => boolean;
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
  if (end === null || facts.lease === undefined) return { allowed, results, validFor: null, holder: null };
  const { runId, leaseId } = facts.lease;
  return { allowed, results, validFor: end - facts.now, holder: { runId, leaseId, expiresAt: endsAt(facts.lease) } };
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
  const judged = judge(facts, whole, credential, write, path);
  const [reason, hold] = typeof judged === 'string' ? [judged, null] : (['ok', judged] as const);
  const observedOnly = reason !== 'ok' && reason !== 'future_token' && path !== null && facts.observes(path);
  const allowed = reason === 'ok' || observedOnly;
  return { allowed, reason, message: messageOf(reason, write, facts), observedOnly, hold };
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

/** Why a write is not allowed. */
type Denied = Exclude<FenceReason, 'ok'>;

/** What holds the resource for the write, or why it is not allowed. */
function judge(
  facts: CheckFacts,
  whole: FenceReason,
  credential: CredentialView | undefined,
  write: ProtectedWrite,
  path: string | null,
): Denied | WriteHold {
  if (write.token > facts.now + facts.maxClockSkew) return 'future_token';
  if (credential !== undefined && credential.reason !== 'ok') return credential.reason;
  if (path !== null && !facts.ownedByCaller(path)) return 'wrong_target';
  if (whole !== 'ok') return whole;
  if (facts.lease === undefined) return 'unknown_lease';
  if (path === null) return 'not_covered';
  const judged = authorityFor(facts.lease, credential, write, path);
  if (typeof judged === 'string') return judged;
  if (facts.frozen(path)) return 'frozen';
  return facts.inDoubt(path) ? 'in_doubt' : judged;
}

function authorityFor(
  lease: Lease,
  credential: CredentialView | undefined,
  write: ProtectedWrite,
  path: string,
): Denied | WriteHold {
  if (credential === undefined) return leaseAllows(lease, write, path);
  return credential.grants === null ? 'stale_token' : bothAllow(lease, credential.grants, write, path);
}

/** What the credential says may be written is what its lease is asked for, by the credential's tokens (P10). */
function bothAllow(
  lease: Lease,
  grants: readonly WriteGrant[],
  write: ProtectedWrite,
  path: string,
): Denied | WriteHold {
  const covering = grants.filter(({ resources, scope }) =>
    resources.some((resource) => covers({ resource, scope }, path)),
  );
  if (covering.length === 0) return 'not_covered';
  const withAction = covering.filter(({ actions }) => actions.includes(write.action));
  if (withAction.length === 0) return 'action_not_allowed';
  const judged = withAction
    .filter(({ token }) => write.token === 0 || write.token === token)
    .map(({ token }) => leaseAllows(lease, { ...write, token }, path));
  return judged.find((one) => typeof one !== 'string') ?? judged[0] ?? 'stale_token';
}

function leaseAllows(lease: Lease, write: ProtectedWrite, path: string): Denied | WriteHold {
  const covering = lease.entries.filter((entry) => entry.access === 'write' && covers(entry, path));
  if (covering.length === 0) return 'not_covered';
  const withAction = covering.filter((entry) => entry.actions.includes(write.action));
  if (withAction.length === 0) return 'action_not_allowed';
  const named = withAction.filter((entry) => entry.token === write.token);
  const holdings = named.some(isHeld) ? named : withAction.filter((entry) => isHeldBy(entry, write.token, covering));
  const holding = holdings.find(isHeld) ?? holdings[0];
  if (holding === undefined) return 'stale_token';
  if (holding.suspended) return 'suspended';
  if (holding.observedRefusal !== null) return 'not_covered';
  if (!holding.exclusive && write.observedVersion === null) return 'version_required';
  const { exclusive } = holding;
  const token = Math.max(...covering.filter(isHeld).map((entry) => entry.token));
  return { token, exclusive, explicit: holdings.some((entry) => isExplicit(entry, path)) };
}

/**
 * An entry is held by its own token, and by a newer one that the same lease has for the resource. The newest is what a
 * guard is to compare: once it has seen that, it takes no older one any more.
 */
function isHeldBy(entry: LeaseEntry, token: number, covering: readonly LeaseEntry[]): boolean {
  if (entry.token === token) return true;
  return entry.token < token && covering.some((other) => other.token === token && isHeld(other));
}

const isHeld = ({ suspended, observedRefusal }: LeaseEntry): boolean => !suspended && observedRefusal === null;

/** Whether the run itself named the resource, to have it alone. */
function isExplicit({ resource, exclusive, impliedBy, observedRefusal }: LeaseEntry, path: string): boolean {
  return exclusive && impliedBy === '' && resource === path && observedRefusal === null;
}

/** What the lease has of the resource instead, if anything. */
function whyNotCovered(write: ProtectedWrite, { lease, pathOf }: CheckFacts): string {
  const path = pathOf(write.resource);
  if (path === null) return 'it is no path';
  const held = (lease?.entries ?? []).filter((entry) => covers(entry, path));
  const observed = held.find((entry) => entry.access === 'write')?.observedRefusal ?? null;
  if (observed !== null)
    return `it was granted only because nothing is enforced there; enforced, it would have been refused (${observed})`;
  return held.length > 0 && held.every(({ access }) => access !== 'write')
    ? 'it was declared to be read, not written'
    : 'it was never declared';
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
      return `The lease does not cover a write to ${resource}: ${whyNotCovered(write, facts)}.`;
    case 'action_not_allowed':
      return `The lease covers ${resource}, but not the action ${JSON.stringify(write.action)}.`;
    case 'suspended':
      return `A child run holds ${resource}, or is about to: the lease's entry there is suspended until that has come back.`;
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
    case 'in_doubt':
      return `Nobody knows what became of an earlier write to ${resource} that was let in: no other is, until its target reports or an operator settles it.`;
    case 'frozen':
      return `An operator has frozen ${resource}, for writes under leases that live too.`;
    case 'run_stopped':
      return sentence('The run was stopped', facts.run?.stateReason ?? '');
    default:
      return `The lease that covered ${resource} is over: ${reason}.`;
  }
}
