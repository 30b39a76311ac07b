import { CREDENTIAL_LIFE, CREDENTIAL_TOLERANCE } from './credential-times.js';
import { type LeaseEntry, type LeaseState, staysLocked } from './lease.js';
import { type Micros, SECOND } from './time.js';

/** How long something that a run was given can be accepted by a target that does not ask (design: credentials). */
export interface CredentialBounds {
  /** No credential lives longer than this after the database time that proved its lease alive. */
  readonly credentialLife: Micros;
  /** What a verifier allows past a credential's end. */
  readonly credentialTolerance: Micros;
  /** How far the clock of a verifier may be from that of the database. */
  readonly maxClockSkew: Micros;
}

/** With the default of WRIT_MAX_CLOCK_SKEW. */
export const CREDENTIAL_BOUNDS: CredentialBounds = {
  credentialLife: CREDENTIAL_LIFE,
  credentialTolerance: CREDENTIAL_TOLERANCE,
  maxClockSkew: 5 * SECOND,
};

/**
 * An end that is not in the log this long after its decision is decided anew: the append proves it. Until it is there,
 * another replica may take the lease to be alive and vouch for it.
 */
export const WRITTEN_WITHIN: Micros = 2 * SECOND;

/** When nothing that was vouched for before an end is accepted any more, whatever the lease's expiry and kinds were. */
export function credentialsDeadBy(endedAt: Micros, bounds: CredentialBounds): Micros {
  return endedAt + WRITTEN_WITHIN + bounds.credentialLife + bounds.credentialTolerance + bounds.maxClockSkew;
}

/**
 * When no view that has not heard of the end decides any more: the state that it last proved is older than the end's
 * event, and so, by its own clock, more than its greatest age ago.
 */
function viewsDeadBy(endedAt: Micros, maxViewAge: Micros, { maxClockSkew }: CredentialBounds): Micros {
  return endedAt + WRITTEN_WITHIN + maxViewAge + maxClockSkew;
}

/** What a lock delay depends on. */
export interface Delayable {
  readonly state: LeaseState;
  readonly entries: readonly LeaseEntry[];
  readonly expiresAt: Micros | null;
}

/**
 * Until when what a lease holds of view and local kinds is kept from other runs if the lease ends at this time; null: no
 * delay is needed. Assumes the worst: that a view was proved, or a credential issued, at the last moment. Nothing is
 * accepted past the lease's own expiry, since each credential ends earlier by tolerance and skew, and a view takes the
 * database clock to be as late as it can be (P3, P10).
 */
export function lockDelayUntil(lease: Delayable, endedAt: Micros, bounds: CredentialBounds): Micros | null {
  let deadBy = 0;
  for (const entry of lease.entries)
    if (staysLocked(entry)) deadBy = Math.max(deadBy, believedUntil(entry, endedAt, bounds));
  return keptUntil(lease, endedAt, deadBy);
}

/** An entry of several kinds is as late as the latest of them. */
function believedUntil({ validation, maxViewAge }: LeaseEntry, endedAt: Micros, bounds: CredentialBounds): Micros {
  const byViews = viewsDeadBy(endedAt, maxViewAge, bounds);
  return validation === 'local' ? Math.max(byViews, credentialsDeadBy(endedAt, bounds)) : byViews;
}

/** The same, when it is known by when all that was known or vouched for is dead. */
export function keptUntil(lease: Delayable, endedAt: Micros, deadBy: Micros): Micros | null {
  if (lease.state !== 'active' || lease.expiresAt === null || lease.expiresAt <= endedAt) return null;
  return lease.entries.some(staysLocked) ? Math.min(lease.expiresAt, deadBy) : null;
}
