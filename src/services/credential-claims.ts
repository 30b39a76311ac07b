import { createHash } from 'node:crypto';
import type { AuthorizationDetail, CredentialClaims } from '../auth/credentials.js';
import type {
  Confirmation,
  CredentialScope,
  NewCredential,
  PresentedCredential,
  WriteGrant,
} from '../domain/credential.js';
import { CREDENTIAL_LIFE } from '../domain/credential-times.js';
import { SECOND } from '../domain/time.js';
import { canonicalJson } from '../engine/canonical-json.js';

/** What a credential says, as claims, and back. */

/** More resources are told as a digest, which only the check resolves. */
const MAX_TOLD = 25;
/** So is what is longer than this: tokens travel in headers, of which many servers take 8 KiB. */
const MAX_TOLD_BYTES = 4_096;
/** Proposals give no authority: a list that is longer is left out. */
const MAX_PROPOSED_BYTES = 1_024;

export function claimsOf(credential: NewCredential, namespace: string, issuer: string): CredentialClaims {
  const { runId, leaseId, boundTo } = credential;
  return {
    iss: issuer,
    aud: credential.audience,
    sub: runId,
    client_id: credential.clientId,
    act: { sub: credential.actor },
    jti: credential.jti,
    iat: credential.issuedAt,
    exp: credential.expiresAt,
    txn: correlation(leaseId ?? runId),
    namespace,
    ...(leaseId === null ? {} : { lease_id: leaseId }),
    ...(boundTo === null ? {} : { cnf: cnfOf(boundTo) }),
    authorization_details: detailsOf(credential.scope, credential.audience),
  };
}

/** The same for all credentials of a lease, and not the lease's id: what a target may log. */
function correlation(of: string): string {
  return createHash('sha256').update(`txn${of}`).digest('hex').slice(0, 32);
}

function cnfOf({ kind, thumbprint }: Confirmation): NonNullable<CredentialClaims['cnf']> {
  return kind === 'jkt' ? { jkt: thumbprint } : { 'x5t#S256': thumbprint };
}

function detailsOf({ grants, proposals }: CredentialScope, audience: string): AuthorizationDetail[] {
  const told = grants.map((grant) => detailOf(grant, audience));
  const writes: AuthorizationDetail[] = fits(told, told.flatMap(({ resources }) => resources).length, MAX_TOLD_BYTES)
    ? told
    : [{ type: 'writ_write_set', locations: [audience], digest: digestOf(grants, audience) }];
  const proposed = fits(proposals, proposals.length, MAX_PROPOSED_BYTES) ? [...proposals] : [];
  // Without any write authority it says so in so many words (C4).
  return proposals.length > 0 || grants.length === 0
    ? [...writes, { type: 'writ_propose', locations: [audience], resources: proposed }]
    : writes;
}

function fits(list: readonly unknown[], resources: number, maxBytes: number): boolean {
  return resources <= MAX_TOLD && Buffer.byteLength(JSON.stringify(list)) <= maxBytes;
}

function detailOf(grant: WriteGrant, audience: string) {
  return {
    type: 'writ_write_set' as const,
    locations: [audience] as [string],
    actions: [...grant.actions],
    resources: [...grant.resources],
    fence: String(grant.token),
    scope: grant.scope,
    concurrency: grant.exclusive ? ('lease' as const) : ('optimistic' as const),
  };
}

/** Of the list that was too long to tell. */
function digestOf(grants: readonly WriteGrant[], audience: string): string {
  const list = grants.map((grant) => detailOf(grant, audience));
  return `sha-256:${createHash('sha256').update(canonicalJson(list)).digest('base64url')}`;
}

/** What the check needs of the claims. */
export function presentedOf(claims: CredentialClaims): PresentedCredential {
  return {
    namespace: claims.namespace,
    jti: claims.jti,
    runId: claims.sub,
    leaseId: claims.lease_id ?? null,
    issuedAt: claims.iat,
    // None that we make lives longer, whatever it says.
    expiresAt: Math.min(claims.exp, claims.iat + CREDENTIAL_LIFE / SECOND),
    boundTo: confirmationOf(claims),
  };
}

export function confirmationOf({ cnf }: Pick<CredentialClaims, 'cnf'>): Confirmation | null {
  if (cnf === undefined) return null;
  return 'jkt' in cnf ? { kind: 'jkt', thumbprint: cnf.jkt } : { kind: 'x5t#S256', thumbprint: cnf['x5t#S256'] };
}

/**
 * What the claims say may be written. A digest stands for the write set as it was: while it is still that of the lease,
 * the lease tells it; null: it is another one by now.
 */
export function grantsOf(claims: CredentialClaims, now: () => CredentialScope): readonly WriteGrant[] | null {
  const grants: WriteGrant[] = [];
  for (const detail of claims.authorization_details) {
    if (detail.type === 'writ_propose') continue;
    if ('digest' in detail) {
      const current = now().grants;
      if (digestOf(current, claims.aud) !== detail.digest) return null;
      grants.push(...current);
    } else {
      const { resources, actions, fence, scope, concurrency } = detail;
      grants.push({ resources, actions, token: Number(fence), scope, exclusive: concurrency === 'lease' });
    }
  }
  return grants;
}
