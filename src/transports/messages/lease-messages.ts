import type { Principal } from '../../auth/principal.js';
import type { RequestedEntry, TaskCall, WriteSetRequest } from '../../domain/entry.js';
import type { Lease } from '../../domain/lease.js';
import type { LeaseNotice } from '../../domain/notices.js';
import type { Micros } from '../../domain/time.js';
import * as wire from '../../gen/writ/v1/lease_service.js';
import type { WriteSetEntry } from '../../gen/writ/v1/types.js';
import type {
  AcquireInput,
  AcquireOutcome,
  AmendInput,
  AmendOutcome,
  At,
  EndedLease,
  PreviewInput,
  PreviewOutcome,
  ReleaseInput,
  ReleaseOutcome,
  RenewalOutcome,
  RenewInput,
} from '../../services/api.js';
import { RELEASE_OUTCOME_TO_WIRE, RequestReader, toEndReason, toTimestamp } from './convert.js';
import { toAudienceCredential } from './credential-messages.js';
import { MAX_OPEN_WRITES, toOpenWrite } from './open-writes.js';
import { type RefusalViews, toLease, toPreviewedLease } from './views.js';

/** What runners ask about leases and are answered, on a call of its own and on a session. */

export function fromPreview({ request, takeOver, acceptOverlap }: wire.PreviewWriteSetRequest): PreviewInput {
  const reader = new RequestReader();
  if (request === undefined) {
    reader.wrong('request', 'is required');
    reader.done();
    throw new Error('unreachable');
  }
  const asked = takeOver ? { reason: '', acceptsOverlap: acceptOverlap } : null;
  return { ...fromAcquire(request, 'request.'), takeOver: asked };
}

/** A write set as it is asked for, with what goes with it. */
export function fromAcquire(request: wire.AcquireWriteSetRequest, prefix: string): AcquireInput {
  const reader = new RequestReader();
  const { entries, task, resourceSet } = fromWriteSet(request, request.resourceSet, reader, prefix);
  const input = {
    entries,
    task,
    resourceSet,
    runId: request.runId,
    delegatedFrom: request.delegatedFrom,
    ttl: reader.duration(request.ttl, `${prefix}ttl`),
    wait: reader.duration(request.wait, `${prefix}wait`) ?? 0,
    idempotencyKey: request.idempotencyKey,
    purpose: request.purpose,
    requestId: request.requestId,
    audiences: request.audiences,
  };
  reader.done();
  return input;
}

export function fromAmend(request: wire.AmendWriteSetRequest): AmendInput {
  const reader = new RequestReader();
  const { runId, leaseId, remove, idempotencyKey, requestId } = request;
  const add = request.add.map((entry, index) => fromEntry(entry, index, reader, 'add'));
  const downgrade = request.downgrade.map((entry, index) => fromEntry(entry, index, reader, 'downgrade'));
  reader.done();
  return { runId, leaseId, add, remove, downgrade, idempotencyKey, requestId };
}

/** The entries, task or set of a request, as the domain has them. */
export function fromWriteSet(
  given: { readonly entries: readonly WriteSetEntry[]; readonly task?: wire.TaskCall | undefined },
  resourceSet: string,
  reader: RequestReader,
  prefix: string,
): WriteSetRequest {
  const entries: RequestedEntry[] = [];
  const field = `${prefix}entries`;
  for (const entry of given.entries) entries.push(fromEntry(entry, entries.length, reader, field));
  return { entries, task: fromTask(given.task), resourceSet: resourceSet === '' ? null : resourceSet };
}

function fromEntry(entry: WriteSetEntry, index: number, reader: RequestReader, field: string): RequestedEntry {
  // Names in the order of canonical JSON, which the fingerprint of the request is taken of.
  return {
    access: reader.access(entry.access, field, index),
    actions: entry.actions,
    observedVersion: entry.observedVersion ?? null,
    resource: entry.resource,
    scope: reader.scope(entry.scope, field, index),
  };
}

function fromTask(task: wire.TaskCall | undefined): TaskCall | null {
  return task === undefined ? null : { name: task.name, parameters: task.parameters };
}

export function toAcquireAnswer(
  answer: At<AcquireOutcome>,
  viewer: Principal,
  views: RefusalViews,
): wire.AcquireWriteSetResponse {
  const { value, revision } = answer;
  const credentials = value.kind === 'lease' ? value.credentials : [];
  return {
    outcome: toOutcome(answer, viewer, views),
    logRevision: BigInt(revision),
    credentials: credentials.map((outcome) => toAudienceCredential(outcome, viewer, views)),
  };
}

export function toOutcome(
  answer: At<AcquireOutcome>,
  viewer: Principal,
  views: RefusalViews,
): wire.AcquireWriteSetResponse['outcome'] {
  const { value, now } = answer;
  switch (value.kind) {
    case 'lease':
      return { $case: 'lease', value: toLease(value.lease, now) };
    case 'waiting':
      return { $case: 'waiting', value: views.waiting(value.waiting, viewer) };
    case 'refusal':
      return { $case: 'refusal', value: views.refusal(value.refusal, viewer) };
  }
}

export function toAmendAnswer(
  { value, revision, now }: At<AmendOutcome>,
  viewer: Principal,
  views: RefusalViews,
): wire.AmendWriteSetResponse {
  const logRevision = BigInt(revision);
  if (value.kind === 'refusal')
    return { outcome: { $case: 'refusal', value: views.refusal(value.refusal, viewer) }, logRevision };
  const effectiveAt = toTimestamp(value.effectiveAt);
  return { outcome: { $case: 'lease', value: toLease(value.lease, now) }, effectiveAt, logRevision };
}

export function fromRenew({ runId, renewals }: wire.RenewLeasesRequest): RenewInput {
  const reader = new RequestReader();
  const inputs = renewals.map(({ leaseId, ttl, progressMarker }, index) => ({
    leaseId,
    ttl: ttl === undefined ? null : reader.duration(ttl, `renewals[${index}].ttl`),
    progressMarker: progressMarker ?? null,
  }));
  reader.done();
  return { runId, renewals: inputs };
}

export function toRenewAnswer(
  { value, revision, now }: At<readonly RenewalOutcome[]>,
  viewer: Principal,
  views: RefusalViews,
): wire.RenewLeasesResponse {
  return {
    results: value.map((outcome) => toRenewalResult(outcome, now, viewer, views)),
    logRevision: BigInt(revision),
  };
}

function toRenewalResult(
  outcome: RenewalOutcome,
  now: Micros,
  viewer: Principal,
  views: RefusalViews,
): wire.RenewalResult {
  const { leaseId, lease, refusal } = outcome;
  const notices = outcome.notices.map(toNotice);
  if (lease !== null) return { leaseId, outcome: { $case: 'lease', value: toLease(lease, now) }, notices };
  if (refusal !== null)
    return { leaseId, outcome: { $case: 'refusal', value: views.refusal(refusal, viewer) }, notices };
  throw new Error('a renewal without outcome');
}

function toNotice(notice: LeaseNotice): wire.LeaseNotice {
  const { kind, resource } = notice;
  return kind === 'asked_to_yield'
    ? { kind: wire.LeaseNoticeKind.LEASE_NOTICE_KIND_ASKED_TO_YIELD, resource }
    : {
        kind: wire.LeaseNoticeKind.LEASE_NOTICE_KIND_INPUT_CHANGED,
        resource,
        changedAt: toTimestamp(notice.changedAt),
      };
}

export function fromRelease({ runId, lease }: wire.ReleaseLeaseRequest): ReleaseInput {
  if (lease === undefined) {
    const reader = new RequestReader();
    reader.wrong('lease', 'one of lease_id and acquire_key is required');
    reader.done();
  }
  return {
    runId,
    leaseId: lease?.$case === 'leaseId' ? lease.value : null,
    acquireKey: lease?.$case === 'acquireKey' ? lease.value : null,
  };
}

export function toReleaseAnswer({ value, revision }: At<ReleaseOutcome>): wire.ReleaseLeaseResponse {
  return {
    outcome: RELEASE_OUTCOME_TO_WIRE[value.outcome],
    endReason: toEndReason(value.endReason),
    effectiveAt: toTimestamp(value.effectiveAt),
    logRevision: BigInt(revision),
    openWrites: value.openWrites.slice(0, MAX_OPEN_WRITES).map((write) => toOpenWrite(write)),
  };
}

export function toGetAnswer({ value, revision, now }: At<Lease>): wire.GetLeaseResponse {
  return { lease: toLease(value, now), logRevision: BigInt(revision) };
}

export function toPreviewAnswer(
  { value: { lease, refusal, wouldEnd }, revision }: At<PreviewOutcome>,
  viewer: Principal,
  views: RefusalViews,
): wire.PreviewWriteSetResponse {
  return {
    outcome:
      lease !== null
        ? { $case: 'lease', value: toPreviewedLease(lease) }
        : refusal !== null
          ? { $case: 'refusal', value: views.refusal(refusal, viewer) }
          : undefined,
    logRevision: BigInt(revision),
    wouldEnd: wouldEnd.map(toEndedLease),
  };
}

/** For operators, who may see every run. */
export function toEndedLease({ lease, purpose, effectiveAt }: EndedLease): wire.EndedLease {
  const { leaseId, runId } = lease;
  return { leaseId, runId, purpose, effectiveAt: toTimestamp(effectiveAt) };
}
