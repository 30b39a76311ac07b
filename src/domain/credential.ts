import { type ConflictMap, kindsOf } from './conflict-map/index.js';
import { CREDENTIAL_LIFE, CREDENTIAL_TOLERANCE } from './credential-times.js';
import type { Scope } from './entry.js';
import type { FenceReason } from './fence.js';
import type { Lease, LeaseEntry } from './lease.js';
import { type Micros, SECOND } from './time.js';

/**
 * Credentials: what a run presents to a target instead of its lease id (C9). One is for one lease and one target, says
 * what may be written there, and is dead before its lease can be (P10). Signing and reading them is done elsewhere; here
 * is what they may say and when they count.
 */

/** The key that a presenter must prove to have: a client certificate (RFC 8705) or a DPoP key (RFC 9449). */
export interface Confirmation {
  readonly kind: 'x5t#S256' | 'jkt';
  /** SHA-256, base64url. */
  readonly thumbprint: string;
}

/** Resources of a write set that share everything else. */
export interface WriteGrant {
  /** Paths, sorted. */
  readonly resources: readonly string[];
  /** Sorted; never empty. */
  readonly actions: readonly string[];
  readonly token: number;
  readonly scope: Scope;
  /** False: optimistic, the write must carry the version that was read (C8). */
  readonly exclusive: boolean;
}

/** What a credential says about resources. */
export interface CredentialScope {
  readonly grants: readonly WriteGrant[];
  /** Where the run may propose changes and write nothing, sorted (C4). */
  readonly proposals: readonly string[];
}

/** A credential as decided; signed once the decision is acknowledged. */
export interface NewCredential {
  readonly jti: string;
  readonly audience: string;
  readonly runId: string;
  /** Null: the run has no lease, and no write authority by it. */
  readonly leaseId: string | null;
  /** The principal that created the run. */
  readonly clientId: string;
  /** The principal that asked. */
  readonly actor: string;
  /** Seconds since 1970 on the database clock. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly boundTo: Confirmation | null;
  readonly scope: CredentialScope;
}

/** A credential as presented, its signature, issuer and audience verified. */
export interface PresentedCredential {
  readonly namespace: string;
  readonly jti: string;
  readonly runId: string;
  readonly leaseId: string | null;
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly boundTo: Confirmation | null;
}

/** The last whole second of a credential made now, of authority that ends at `end`, for verifiers whose clocks may be late. */
export function credentialExpiry(now: Micros, end: Micros, maxClockSkew: Micros): number {
  return Math.floor(Math.min(now + CREDENTIAL_LIFE, end - CREDENTIAL_TOLERANCE - maxClockSkew) / SECOND);
}

/** The target principals that the map names for an entry; empty: it names none, any may be asked. */
export function ownersOf(map: ConflictMap, entry: Pick<LeaseEntry, 'resource' | 'scope'>): readonly string[] {
  return [...new Set(kindsAt(map, entry).flatMap((kind) => kind.ownerService))];
}

function kindsAt(map: ConflictMap, { resource, scope }: Pick<LeaseEntry, 'resource' | 'scope'>) {
  return kindsOf(map, { resource, segments: resource.split('/'), scope });
}

/** What of a lease a target is told: the writes on resources that are its own, or nobody's. */
export function scopeFor(map: ConflictMap, lease: Lease, audience: string): CredentialScope {
  const groups = new Map<string, { readonly entry: LeaseEntry; readonly resources: Set<string> }>();
  const proposals = new Set<string>();
  for (const entry of lease.entries) {
    if (entry.access !== 'write') continue;
    const owners = ownersOf(map, entry);
    if (owners.length > 0 && !owners.includes(audience)) continue;
    const kinds = kindsAt(map, entry);
    if (kinds.some((kind) => kind.authority === 'propose')) proposals.add(entry.resource);
    // An entry that was only observed holds nothing (C14), one that is suspended is a child run's, and one without actions
    // allows none.
    const mayWrite = kinds.length > 0 && kinds.every((kind) => kind.authority === 'write');
    if (!mayWrite || entry.observedRefusal !== null || entry.suspended || entry.actions.length === 0) continue;
    const id = JSON.stringify([entry.actions.toSorted(), entry.token, entry.scope, entry.exclusive]);
    const group = groups.get(id) ?? { entry, resources: new Set() };
    group.resources.add(entry.resource);
    groups.set(id, group);
  }
  return {
    // In an order that does not depend on that of the lease's entries: the digest of equal write sets is equal.
    grants: [...groups]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { entry, resources }]) => ({
        resources: [...resources].toSorted(),
        actions: entry.actions.toSorted(),
        token: entry.token,
        scope: entry.scope,
        exclusive: entry.exclusive,
      })),
    proposals: [...proposals].toSorted(),
  };
}

// -------------------------------------------------------------------------------------------------------- revocation

/** What was revoked: one credential, or all that were out for a lease or a run. */
export type RevokedSubject = `jti:${string}` | `lease:${string}` | `run:${string}`;

/** Kept until the last credential it concerns would be dead anyway. */
export interface Revocation {
  readonly subject: RevokedSubject;
  /** Everything issued up to the second of it is dead. */
  readonly revokedAt: Micros;
  readonly until: Micros;
}

/** Finds what was revoked. */
export interface Revocations {
  get(subject: string): Revocation | undefined;
}

/** The revocation after which nothing was issued by this second for the lease or the run; undefined: there is none. */
export function revokedSince(
  revocations: Revocations,
  { leaseId, runId }: { readonly leaseId: string | null; readonly runId: string },
  second: number,
): Revocation | undefined {
  const subjects: RevokedSubject[] = leaseId === null ? [`run:${runId}`] : [`lease:${leaseId}`, `run:${runId}`];
  return subjects
    .map((subject) => revocations.get(subject))
    .find((revocation) => revocation !== undefined && Math.floor(revocation.revokedAt / SECOND) >= second);
}

// ------------------------------------------------------------------------------------------------------------- checks

/** What a credential is looked at with, besides itself. */
export interface CredentialFacts {
  readonly namespace: string;
  readonly now: Micros;
  readonly maxClockSkew: Micros;
  readonly revocations: Revocations;
  /** The key that the presenter proved to have, as the target authenticated it; null: none. */
  readonly presenter: Confirmation | null;
}

/** Why a credential counts for nothing, whatever its lease says; `ok` when it may count. */
export function credentialReason(credential: PresentedCredential, facts: CredentialFacts): FenceReason {
  const { now, presenter, revocations } = facts;
  if (credential.expiresAt * SECOND <= now) return 'credential_expired';
  if (credential.issuedAt * SECOND > now + facts.maxClockSkew) return 'not_yet_valid';
  if (credential.boundTo !== null && presenter === null) return 'not_bound';
  if (credential.boundTo !== null && !sameKey(credential.boundTo, presenter)) return 'binding_mismatch';
  if (revocations.get(`jti:${credential.jti}`) !== undefined) return 'credential_revoked';
  if (revokedSince(revocations, credential, credential.issuedAt) !== undefined) return 'credential_revoked';
  // A lease id means something in its namespace only.
  return credential.namespace === facts.namespace ? 'ok' : 'unknown_lease';
}

function sameKey(bound: Confirmation, presenter: Confirmation | null): boolean {
  return bound.kind === presenter?.kind && bound.thumbprint === presenter.thumbprint;
}
