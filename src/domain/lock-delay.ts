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

/** When nothing that was vouched for before an end is accepted any more, whatever the lease's expiry was. */
export function credentialsDeadBy(endedAt: Micros, bounds: CredentialBounds): Micros {
  return endedAt + WRITTEN_WITHIN + bounds.credentialLife + bounds.credentialTolerance + bounds.maxClockSkew;
}

/** What a lock delay depends on. */
export interface Delayable {
  readonly state: LeaseState;
  readonly entries: readonly LeaseEntry[];
  readonly expiresAt: Micros | null;
}

/**
 * Until when what a lease holds of local kinds is kept from other runs if the lease ends at this time; null: no delay
 * is needed. Assumes the worst: that a credential was issued at the last moment. No credential is accepted past the
 * lease's own expiry, since each ends earlier by tolerance and skew (P3, P10).
 */
export function lockDelayUntil(lease: Delayable, endedAt: Micros, bounds: CredentialBounds): Micros | null {
  return keptUntil(lease, endedAt, credentialsDeadBy(endedAt, bounds));
}

/** The same, when it is known by when all that was vouched for is dead. */
export function keptUntil(lease: Delayable, endedAt: Micros, deadBy: Micros): Micros | null {
  if (lease.state !== 'active' || lease.expiresAt === null || lease.expiresAt <= endedAt) return null;
  return lease.entries.some(staysLocked) ? Math.min(lease.expiresAt, deadBy) : null;
}
