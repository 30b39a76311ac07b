import type { Access, RequestedEntry, Scope } from './entry.js';
import type { Freeze } from './freeze.js';
import type { Micros } from './time.js';

/** Why a request was refused: an expected outcome, never a fault. Stable codes. */
export type RefusalKind =
  | 'held'
  | 'already_held'
  | 'wait_timeout'
  | 'deadlock'
  | 'lock_delay'
  | 'in_doubt'
  | 'undescribed'
  | 'outside_contract'
  | 'forbidden'
  | 'propose_only'
  | 'approval_required'
  | 'limit'
  | 'run_ended'
  | 'run_blocked'
  | 'ended'
  | 'too_late'
  | 'max_hold'
  | 'no_progress'
  | 'too_short'
  | 'audience_not_allowed'
  | 'credentials_revoked'
  | 'rehearsal_required'
  | 'frozen';

/** Something that stands in the way; who may see the run behind it is decided by the service. */
export interface Blocker {
  readonly leaseId: string;
  readonly runId: string;
  readonly purpose: string;
  readonly resource: string;
  readonly access: Access;
  readonly scope: Scope;
  /** Null for a waiting request, and for a lease that has ended. */
  readonly expiresAt: Micros | null;
  /** The lease has ended, and what it held of view and local kinds is kept from others until then; null: it is not so. */
  readonly lockDelayUntil: Micros | null;
  /** Since when nobody knows what became of a write to it that was let in; null: it is not so. */
  readonly inDoubtSince: Micros | null;
  readonly waiting: boolean;
  /** The rule by which the two meet; empty when both named the resource. */
  readonly rule: string;
  readonly resolver: string;
  readonly requestedResource: string;
}

/** What to do about a refusal. */
export interface Resolution {
  readonly action: string;
  readonly who: string;
  readonly retryable: boolean;
}

/** A typed negative answer. */
export interface Refusal {
  readonly kind: RefusalKind;
  readonly message: string;
  readonly resource: string;
  readonly blockers: readonly Blocker[];
  readonly grantable: readonly RequestedEntry[];
  readonly retryAfter: Micros | null;
  readonly resolution: Resolution;
  /** Deadlock only: the runs of the cycle, in order. */
  readonly cycle: readonly string[];
  /** What an operator has frozen of what was asked for; who and why is decided by the service. */
  readonly freezes: readonly Freeze[];
}

/** What is kept of the refusal that ended a waiting request; who stood in its way then has moved on. */
export type EndRefusal = Pick<Refusal, 'kind' | 'message' | 'resource' | 'resolution'> & {
  /** Deadlock only. */
  readonly cycle?: readonly string[];
};

/** Makes a refusal; what is not given is empty. */
export function refuse(
  kind: RefusalKind,
  message: string,
  resolution: Resolution,
  more: Partial<Omit<Refusal, 'kind' | 'message' | 'resolution'>> = {},
): Refusal {
  return {
    kind,
    message,
    resource: '',
    blockers: [],
    grantable: [],
    retryAfter: null,
    cycle: [],
    freezes: [],
    ...more,
    resolution,
  };
}
