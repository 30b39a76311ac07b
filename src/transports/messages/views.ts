import { createHmac } from 'node:crypto';
import type { Principal } from '../../auth/principal.js';
import { seesOtherRuns } from '../../auth/roles.js';
import type { ExpandedEntry, RequestedEntry } from '../../domain/entry.js';
import type { Freeze } from '../../domain/freeze.js';
import { endsAt, type Lease } from '../../domain/lease.js';
import type { Blocker, Refusal } from '../../domain/refusal.js';
import type { Micros } from '../../domain/time.js';
import type * as lease from '../../gen/writ/v1/lease_service.js';
import type * as run from '../../gen/writ/v1/run_service.js';
import * as types from '../../gen/writ/v1/types.js';
import type { RunView, WaitingPlace } from '../../services/api.js';
import {
  ACCESS_TO_WIRE,
  LEASE_STATE_TO_WIRE,
  REFUSAL_KIND_TO_WIRE,
  RUN_STATE_TO_WIRE,
  SCOPE_TO_WIRE,
  toDuration,
  toEndReason,
  toOptionalDuration,
  toOptionalTimestamp,
  toTimestamp,
  VALIDATION_TO_WIRE,
} from './convert.js';
import { MAX_OPEN_WRITES, toOpenWrites } from './open-writes.js';

const NONE: ReadonlySet<string> = new Set();

/** Names a lease, or a run, to those who may not know which it is; the same id always by the same name. */
export type BlockerNamer = (id: string) => string;

/** A keyed hash: without the key nobody can try out ids against a name. */
export function createBlockerNamer(key: Uint8Array): BlockerNamer {
  return (id) => createHmac('sha256', key).update(id).digest('hex').slice(0, 16);
}

/** A lease, in full: for its holder, operators, admins and auditors, as the services let them have it. */
export function toLease(lease: Lease, now: Micros): types.Lease {
  const ends = lease.state === 'active' ? endsAt(lease) : lease.expiresAt;
  return {
    leaseId: lease.leaseId,
    runId: lease.runId,
    state: LEASE_STATE_TO_WIRE[lease.state],
    generation: lease.generation,
    entries: lease.entries.map((entry) => ({
      ...toLeaseEntry(entry, entry.token, entry.observedRefusal),
      suspended: entry.suspended,
    })),
    grantedAt: toOptionalTimestamp(lease.grantedAt),
    expiresAt: toOptionalTimestamp(ends),
    expiresIn: ends === null ? undefined : toDuration(lease.state === 'active' ? Math.max(0, ends - now) : 0),
    maxExpiresAt: toOptionalTimestamp(lease.maxExpiresAt),
    endReason: toEndReason(lease.endReason),
    endedAt: toOptionalTimestamp(lease.endedAt),
    purpose: lease.purpose,
    progressWindow: toOptionalDuration(lease.progressWindow),
    lockDelayUntil: toOptionalTimestamp(lease.lockDelay?.until ?? null),
    delegatedFrom: lease.delegatedFrom,
    ttl: lease.state === 'waiting' ? undefined : toDuration(lease.ttl),
    requestedTtl: toOptionalDuration(cutTtl(lease)),
  };
}

/** The ttl that was asked for, where it is more than is allowed. */
const cutTtl = ({ requestedTtl, maxTtl }: Lease): Micros | null =>
  requestedTtl !== null && requestedTtl > maxTtl ? requestedTtl : null;

/** What a preview shows: the lease without id, tokens and times. */
export function toPreviewedLease(lease: Lease): types.Lease {
  return {
    leaseId: '',
    runId: lease.runId,
    state: types.LeaseState.LEASE_STATE_ACTIVE,
    generation: 1,
    entries: lease.entries.map((entry) => toLeaseEntry(entry, 0, entry.observedRefusal)),
    endReason: types.EndReason.END_REASON_UNSPECIFIED,
    purpose: lease.purpose,
    progressWindow: toOptionalDuration(lease.progressWindow),
    delegatedFrom: lease.delegatedFrom,
    ttl: toDuration(lease.ttl),
    requestedTtl: toOptionalDuration(cutTtl(lease)),
  };
}

/** An entry as expanded by the map; a token only where there is a grant. */
export function toLeaseEntry(entry: ExpandedEntry, token = 0, observedRefusal: string | null = null): types.LeaseEntry {
  return {
    resource: entry.resource,
    access: ACCESS_TO_WIRE[entry.access],
    scope: SCOPE_TO_WIRE[entry.scope],
    actions: entry.actions.slice(),
    fencingToken: BigInt(token),
    impliedBy: entry.impliedBy,
    exclusive: entry.exclusive,
    observedRefusal: observedRefusal ?? undefined,
    observedVersion: entry.observedVersion ?? undefined,
    validation: VALIDATION_TO_WIRE[entry.validation],
    suspended: false,
  };
}

function toWriteSetEntry(entry: RequestedEntry): types.WriteSetEntry {
  return {
    resource: entry.resource,
    access: ACCESS_TO_WIRE[entry.access],
    scope: SCOPE_TO_WIRE[entry.scope],
    actions: entry.actions.slice(),
    observedVersion: entry.observedVersion ?? undefined,
  };
}

/** Who ordered them, and why, is for those who may see other runs: free text is a way to inject instructions. */
export function toFreezes(freezes: readonly Freeze[], viewer: Principal): types.Freeze[] {
  const full = seesOtherRuns(viewer);
  return freezes.map((freeze) => ({
    pattern: freeze.pattern,
    scope: SCOPE_TO_WIRE[freeze.scope],
    denyChecks: freeze.deniesChecks,
    frozenAt: toTimestamp(freeze.frozenAt),
    until: toOptionalTimestamp(freeze.until),
    frozenBy: full ? freeze.frozenBy : '',
    reason: full ? freeze.reason : '',
  }));
}

/** `most`: of what is unresolved. */
export function toRun(view: RunView, viewer: Principal, most = MAX_OPEN_WRITES): run.Run {
  const { run, openWrites } = view;
  return {
    runId: run.runId,
    state: RUN_STATE_TO_WIRE[run.state],
    purpose: run.purpose,
    goalRevision: run.goalRevision,
    initiator: run.initiator,
    initiatorVerified: run.initiatorVerified,
    principal: run.principal,
    allowed: run.allowed.map(({ pattern, actions }) => ({ pattern, actions: actions.slice() })),
    authorityEndsAt: toTimestamp(run.authorityEndsAt),
    escalation: run.escalation.slice(),
    createdAt: toTimestamp(run.createdAt),
    endedAt: toOptionalTimestamp(run.endedAt),
    stateReason: run.stateReason,
    openWrites: toOpenWrites(openWrites, viewer, run.principal, most),
    liveLeases: view.liveLeases,
    waitingRequests: view.waitingRequests,
    mayWrite: view.mayWrite,
    parentRunId: run.parentRunId,
    maxTtl: toOptionalDuration(run.maxTtl),
    openWriteCount: openWrites.length,
    endsAs: run.endsAs === null ? 0 : RUN_STATE_TO_WIRE[run.endsAs],
  };
}

/**
 * Refusals and blockers, as much of them as the caller may see: another run's id, lease and words only
 * for operators, admins and auditors. Free text of another agent is a way to inject instructions.
 */
export class RefusalViews {
  readonly #name: BlockerNamer;

  constructor(name: BlockerNamer) {
    this.#name = name;
  }

  refusal(refusal: Refusal, viewer: Principal): types.Refusal {
    const full = seesOtherRuns(viewer);
    return {
      kind: REFUSAL_KIND_TO_WIRE[refusal.kind],
      message: refusal.message,
      blockers: this.blockers(refusal.blockers, viewer),
      grantable: refusal.grantable.map(toWriteSetEntry),
      retryAfter: toOptionalDuration(refusal.retryAfter),
      resolution: { ...refusal.resolution },
      resource: refusal.resource,
      cycle: full ? refusal.cycle.slice() : refusal.cycle.map(this.#name),
      freezes: toFreezes(refusal.freezes, viewer),
    };
  }

  waiting(place: WaitingPlace, viewer: Principal): lease.WaitingPlace {
    return {
      requestId: place.leaseId,
      place: place.place,
      waitsFor: this.blockers(place.refusal.blockers, viewer),
      callAgainWithin: toDuration(place.callAgainWithin),
      waitsUntil: toTimestamp(place.waitsUntil),
      earliestAfter: toOptionalDuration(place.refusal.retryAfter),
      freezes: toFreezes(place.refusal.freezes, viewer),
    };
  }

  /** `own`: leases of the viewer's own runs. */
  blockers(blockers: readonly Blocker[], viewer: Principal, own: ReadonlySet<string> = NONE): types.Blocker[] {
    const full = seesOtherRuns(viewer);
    return blockers.map((blocker) => this.#blocker(blocker, full || own.has(blocker.leaseId)));
  }

  #blocker(blocker: Blocker, full: boolean): types.Blocker {
    return {
      blockerRef: this.#name(blocker.leaseId),
      resource: blocker.resource,
      access: ACCESS_TO_WIRE[blocker.access],
      scope: SCOPE_TO_WIRE[blocker.scope],
      expiresAt: toOptionalTimestamp(blocker.expiresAt),
      waiting: blocker.waiting,
      rule: blocker.rule,
      resolver: blocker.resolver,
      requestedResource: blocker.requestedResource,
      runId: full ? blocker.runId : '',
      leaseId: full ? blocker.leaseId : '',
      purpose: full ? blocker.purpose : '',
      lockDelayUntil: toOptionalTimestamp(blocker.lockDelayUntil),
      inDoubtSince: toOptionalTimestamp(blocker.inDoubtSince),
    };
  }
}
