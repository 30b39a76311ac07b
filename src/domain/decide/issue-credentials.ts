import {
  type Confirmation,
  type CredentialScope,
  credentialExpiry,
  type NewCredential,
  ownersOf,
  revokedSince,
  scopeFor,
} from '../credential.js';
import { isPastFreeze, isUnder } from '../freeze.js';
import { endsAt, isPast, type Lease } from '../lease.js';
import { type Refusal, refuse } from '../refusal.js';
import type { Run } from '../run.js';
import { MILLISECOND, type Micros, SECOND } from '../time.js';
import type { Decision } from './decision.js';
import { leaseNotFound, ownRun, runRefusal, withReason } from './run-guard.js';

export interface IssueCommand {
  /** The principal that asks; only the one that created the run is given anything. */
  readonly principal: string;
  readonly runId: string;
  /** Null: without a lease, and without write authority (C4). */
  readonly leaseId: string | null;
  /** Each with the random id that its credential will have. */
  readonly wanted: readonly { readonly audience: string; readonly jti: string }[];
  readonly boundTo: Confirmation | null;
  readonly maxClockSkew: Micros;
  readonly requestIds: readonly string[];
}

/** What became of one audience. */
export type IssueDecision =
  | { readonly kind: 'credential'; readonly audience: string; readonly credential: NewCredential }
  | { readonly kind: 'refusal'; readonly audience: string; readonly refusal: Refusal };

/**
 * IssueCredential: decided on the log, so that the append proves that the lease is alive and everybody knows until when
 * credentials of it are out (P10). Each audience for itself.
 */
export function decideIssueCredentials(decision: Decision, command: IssueCommand): IssueDecision[] {
  const run = ownRun(decision, command.runId, command.principal);
  const lease = command.leaseId === null ? null : leaseOf(decision, run, command.leaseId);
  const expiresAt = credentialExpiry(
    decision.now,
    lease === null ? run.authorityEndsAt : endsAt(lease),
    command.maxClockSkew,
  );
  const whole =
    wholeRefusal(decision, run, lease) ?? shortRefusal(decision.now, expiresAt, lease, command.maxClockSkew);
  const decided = command.wanted.map(({ audience, jti }): IssueDecision => {
    const wrong = whole ?? audienceRefusal(decision, lease, audience);
    const scope: CredentialScope =
      wrong !== null || lease === null ? { grants: [], proposals: [] } : scopeFor(decision.state.map, lease, audience);
    const refusal = wrong ?? frozenRefusal(decision, lease, scope);
    if (refusal !== null) return { kind: 'refusal', audience, refusal };
    const credential: NewCredential = {
      jti,
      audience,
      runId: run.runId,
      leaseId: lease?.leaseId ?? null,
      clientId: run.principal,
      actor: command.principal,
      issuedAt: Math.floor(decision.now / SECOND),
      expiresAt,
      boundTo: command.boundTo,
      scope,
    };
    return { kind: 'credential', audience, credential };
  });
  record(decision, command, decided, expiresAt);
  return decided.map((one) => (one.kind === 'refusal' ? { ...one, refusal: withReason(one.refusal, run) } : one));
}

function leaseOf(decision: Decision, run: Run, leaseId: string): Lease {
  const lease = decision.lease(leaseId);
  if (lease === undefined || lease.runId !== run.runId) throw leaseNotFound(leaseId);
  return lease;
}

function wholeRefusal(decision: Decision, run: Run, lease: Lease | null): Refusal | null {
  const { now, state } = decision;
  if (lease?.state === 'waiting')
    return refuse('ended', 'The request is still waiting; nothing is held that a credential could stand for.', {
      action: 'Call AcquireWriteSet again with the same key.',
      who: 'runner',
      retryable: true,
    });
  if (lease !== null && (lease.state === 'ended' || isPast(lease, now)))
    return refuse('ended', `The lease has ended: ${lease.endReason ?? 'expired'}.`, {
      action: 'Stop writing, read again what was left, and ask for a new lease.',
      who: 'runner',
      retryable: false,
    });
  const stopped = runRefusal(run, now, 'renew');
  if (stopped !== null) return stopped;
  const subjects = { leaseId: lease?.leaseId ?? null, runId: run.runId };
  const revoked = revokedSince(state.revocations, subjects, Math.floor(now / SECOND));
  if (revoked === undefined) return null;
  // A credential says its second only: one of the same second would be taken for one that was revoked.
  return refuse(
    'credentials_revoked',
    'Credentials of the lease or the run were revoked within this second.',
    { action: 'Ask again after `retry_after`.', who: 'runner', retryable: true },
    { retryAfter: (Math.floor(revoked.revokedAt / SECOND) + 1) * SECOND - now },
  );
}

function shortRefusal(now: Micros, expiresAt: number, lease: Lease | null, maxClockSkew: Micros): Refusal | null {
  if (expiresAt * SECOND - now >= SECOND) return null;
  const margin = Math.ceil((CREDENTIAL_MARGIN + maxClockSkew) / SECOND);
  if (lease === null)
    return refuse('too_short', `The end of the run's authority is too near: a credential ends ${margin} s before it.`, {
      action: 'Create a new run with its own contract.',
      who: 'runner',
      retryable: false,
    });
  const left = Math.round((endsAt(lease) - now) / MILLISECOND);
  return refuse(
    'too_short',
    `${left} ms of the lease are left; a credential ends ${margin} s before its lease, so that no verifier's clock makes it outlive it.`,
    {
      action: `Renew the lease, or ask for a ttl of more than ${margin + 1} s; then ask again.`,
      who: 'runner',
      retryable: false,
    },
  );
}

/** The tolerance, and the second that is lost to whole seconds. */
const CREDENTIAL_MARGIN: Micros = 6 * SECOND;

/** Where the map names the targets of the write set, others are given nothing. */
function audienceRefusal(decision: Decision, lease: Lease | null, audience: string): Refusal | null {
  if (lease === null) return null;
  const owned = lease.entries
    .filter((entry) => entry.access === 'write')
    .map((entry) => ({ entry, owners: ownersOf(decision.state.map, entry) }))
    .filter(({ owners }) => owners.length > 0);
  const [first] = owned;
  if (first === undefined || owned.some(({ owners }) => owners.includes(audience))) return null;
  return refuse(
    'audience_not_allowed',
    `${JSON.stringify(audience)} owns nothing of the write set; ${JSON.stringify(first.entry.resource)} is owned by ${first.owners.slice(0, 8).join(', ')}.`,
    { action: 'Name a target that the conflict map names as owner_service.', who: 'runner', retryable: false },
    { resource: first.entry.resource },
  );
}

/** A target that does not ask would let in what a freeze denies: nothing that vouches for it is issued (P3). */
function frozenRefusal({ state, now }: Decision, lease: Lease | null, { grants }: CredentialScope): Refusal | null {
  if (lease === null || state.freezes.size === 0) return null;
  const told = new Set(grants.flatMap(({ resources }) => resources));
  const entries = lease.entries.filter((entry) => told.has(entry.resource) && entry.validation === 'local');
  for (const freeze of state.freezes.values()) {
    const entry = entries.find((one) => isUnder(freeze, one));
    if (entry === undefined || !freeze.deniesChecks || isPastFreeze(freeze, now)) continue;
    return refuse(
      'frozen',
      `An operator has frozen ${JSON.stringify(entry.resource)}, for writes under leases that live too.`,
      { action: 'Ask again once it is thawed.', who: 'operator', retryable: true },
      { resource: entry.resource, freezes: [freeze], retryAfter: freeze.until === null ? null : freeze.until - now },
    );
  }
  return null;
}

function record(decision: Decision, command: IssueCommand, decided: readonly IssueDecision[], expiresAt: number): void {
  const { runId, requestIds } = command;
  const about = { runId, leaseId: command.leaseId ?? '', requestIds };
  const credentials = decided.flatMap((one) =>
    one.kind === 'credential' ? [{ audience: one.audience, jti: one.credential.jti }] : [],
  );
  if (credentials.length > 0) {
    decision.relyOnFuture(expiresAt * SECOND);
    decision.emit(
      { kind: 'credentials_issued', credentials, expiresAt: expiresAt * SECOND, boundTo: command.boundTo },
      about,
    );
  }
  const refusals = decided.flatMap((one) =>
    one.kind === 'refusal' ? [{ audience: one.audience, refusal: one.refusal.kind, message: one.refusal.message }] : [],
  );
  if (refusals.length > 0) decision.emit({ kind: 'credentials_refused', refusals }, about);
}
