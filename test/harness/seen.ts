import { decodeJwt } from 'jose';
import { timestampMicros } from '../../src/clients/common/time.js';
import { type ReleaseLeaseResponse, ReleaseOutcome, type SessionEvent } from '../../src/gen/writ/v1/lease_service.js';
import {
  Access,
  type AudienceCredential,
  type Credential,
  EndReason,
  type Lease,
  type LeaseEntry,
  LeaseState,
  Scope,
} from '../../src/gen/writ/v1/types.js';
import type { AskedEntry, CallShapes, SeenCredential, SeenEntry, SeenLease } from './history.js';

// Between the contract's words and those of a history.

const ACCESS = {
  read: Access.ACCESS_READ,
  stable_read: Access.ACCESS_STABLE_READ,
  write: Access.ACCESS_WRITE,
} as const;
const SCOPE = { exact: Scope.SCOPE_EXACT, subtree: Scope.SCOPE_SUBTREE } as const;

export const wireEntry = ({ access, scope, actions, ...entry }: AskedEntry) => ({
  ...entry,
  access: ACCESS[access],
  scope: SCOPE[scope],
  actions: [...actions],
});

/** A word of the contract, as the domain has it: `FENCE_REASON_STALE_TOKEN` is `stale_token`. */
export function word(names: Readonly<Record<number, string>>, value: number, prefix: string): string {
  const name = names[value] ?? '';
  return name.startsWith(prefix) ? name.slice(prefix.length).toLowerCase() : '';
}

/** A credential with its token, which no history holds. */
export interface Presentable {
  readonly token: string;
  readonly seen: SeenCredential;
}

export function seenLease(lease: Lease): SeenLease {
  return {
    leaseId: lease.leaseId,
    runId: lease.runId,
    state: word(LeaseState, lease.state, 'LEASE_STATE_') as SeenLease['state'],
    generation: lease.generation,
    entries: lease.entries.map(seenEntry),
    grantedAt: timestampMicros(lease.grantedAt) ?? null,
    expiresAt: timestampMicros(lease.expiresAt) ?? null,
    maxExpiresAt: timestampMicros(lease.maxExpiresAt) ?? null,
    endReason: word(EndReason, lease.endReason, 'END_REASON_'),
  };
}

export function seenEntry(entry: LeaseEntry): SeenEntry {
  return {
    resource: entry.resource,
    access: word(Access, entry.access, 'ACCESS_') as AskedEntry['access'],
    scope: word(Scope, entry.scope, 'SCOPE_') as AskedEntry['scope'],
    actions: entry.actions,
    token: Number(entry.fencingToken),
    exclusive: entry.exclusive,
    observed: entry.observedRefusal !== undefined,
    suspended: entry.suspended,
  };
}

export function releaseTold(answer: ReleaseLeaseResponse): CallShapes['release']['told'] {
  return {
    outcome: word(ReleaseOutcome, answer.outcome, 'RELEASE_OUTCOME_') as 'released' | 'already_ended' | 'nothing_held',
    endReason: word(EndReason, answer.endReason, 'END_REASON_'),
    effectiveAt: timestampMicros(answer.effectiveAt) ?? 0,
    revision: Number(answer.logRevision),
  };
}

/** What a session pushed. */
export function pushedTold(event: NonNullable<SessionEvent['event']>): CallShapes['pushed']['told'] | null {
  switch (event.$case) {
    case 'granted': {
      const { lease, logRevision } = event.value;
      return lease === undefined ? null : { event: 'granted', lease: seenLease(lease), revision: Number(logRevision) };
    }
    case 'lost':
      return { event: 'lost', endReason: word(EndReason, event.value.endReason, 'END_REASON_') };
    case 'askedToYield':
      return { event: 'asked_to_yield' };
    case 'inputChanged':
      return { event: 'input_changed' };
    case 'placeMoved':
      return { event: 'place_moved' };
    default:
      return { event: event.$case };
  }
}

export function presentables({ outcome }: AudienceCredential): Presentable[] {
  return outcome?.$case === 'credential' ? [presentable(outcome.value)] : [];
}

interface Claims {
  readonly jti: string;
  readonly aud: string;
  readonly sub: string;
  readonly lease_id: string;
  readonly exp: number;
  readonly authorization_details: readonly {
    readonly type: string;
    readonly resources?: readonly string[];
    readonly actions?: readonly string[];
    readonly fence?: string;
  }[];
}

export function presentable({ token }: Credential): Presentable {
  const claims = decodeJwt(token) as unknown as Claims;
  const grants = claims.authorization_details
    .filter(({ type, resources }) => type === 'writ_write_set' && resources !== undefined)
    .map(({ resources = [], actions = [], fence = '0' }) => ({ resources, actions, token: Number(fence) }));
  const { jti, aud, sub, lease_id, exp } = claims;
  return { token, seen: { jti, audience: aud, runId: sub, leaseId: lease_id, expires: exp, grants } };
}
