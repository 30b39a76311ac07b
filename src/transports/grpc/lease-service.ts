import type { RequestedEntry, TaskCall, WriteSetRequest } from '../../domain/entry.js';
import type { Micros } from '../../domain/time.js';
import type * as wire from '../../gen/writ/v1/lease_service.js';
import type { WriteSetEntry } from '../../gen/writ/v1/types.js';
import type { AcquireInput, AcquireOutcome, At, RenewalInput, RenewalOutcome } from '../../services/api.js';
import { RELEASE_OUTCOME_TO_WIRE, RequestReader, toEndReason, toTimestamp } from './convert.js';
import { toAudienceCredential } from './credential-service.js';
import type { Call, CallHandler } from './handler.js';
import { type RefusalViews, toLease, toPreviewedLease } from './views.js';

/** LeaseService over gRPC. */
export function leaseService(handler: CallHandler, views: RefusalViews): wire.LeaseServiceServer {
  return {
    acquireWriteSet: handler.unary('LeaseService/AcquireWriteSet', async (api, call, request) => {
      const answer = await api.acquireWriteSet(call.within(request.namespace), fromAcquire(request, ''));
      const { value, revision } = answer;
      const credentials = value.kind === 'lease' ? value.credentials : [];
      return {
        outcome: toOutcome(answer, call, views),
        logRevision: BigInt(revision),
        credentials: credentials.map((outcome) => toAudienceCredential(outcome, call, views)),
      };
    }),
    renewLeases: handler.unary('LeaseService/RenewLeases', async (api, call, request) => {
      const input = { runId: request.runId, renewals: fromRenewals(request.renewals) };
      const { value, revision, now } = await api.renewLeases(call.within(request.namespace), input);
      const results = value.map((outcome) => toRenewalResult(outcome, now, call, views));
      return { results, logRevision: BigInt(revision) };
    }),
    releaseLease: handler.unary('LeaseService/ReleaseLease', async (api, call, request) => {
      const input = { runId: request.runId, ...fromReleased(request.lease) };
      const { value, revision } = await api.releaseLease(call.within(request.namespace), input);
      return {
        outcome: RELEASE_OUTCOME_TO_WIRE[value.outcome],
        endReason: toEndReason(value.endReason),
        effectiveAt: toTimestamp(value.effectiveAt),
        logRevision: BigInt(revision),
      };
    }),
    revokeLease: handler.unary('LeaseService/RevokeLease', async (api, call, request) => {
      const input = { leaseId: request.leaseId, reason: request.reason };
      const { value, revision } = await api.revokeLease(call.within(request.namespace), input);
      return {
        effectiveAt: toTimestamp(value.effectiveAt),
        // Tracked actions are not built yet; without them no write is open.
        openWrites: [],
        logRevision: BigInt(revision),
        endReason: toEndReason(value.endReason),
      };
    }),
    getLease: handler.unary('LeaseService/GetLease', async (api, call, request) => {
      const { value, revision, now } = await api.getLease(call.within(request.namespace), { leaseId: request.leaseId });
      return { lease: toLease(value, now), logRevision: BigInt(revision) };
    }),
    listLeases: handler.unary('LeaseService/ListLeases', async (api, call, request) => {
      const reader = new RequestReader();
      const states = reader.leaseStates(request.states, 'states');
      const page = reader.page(request.page, 'page');
      reader.done();
      const { runId, resource, lockDelayed } = request;
      const input = { runId, resource, states, lockDelayed, page };
      const { value, revision, now } = await api.listLeases(call.within(request.namespace), input);
      const leases = value.items.map((lease) => toLease(lease, now));
      return { leases, nextPageToken: value.nextToken, logRevision: BigInt(revision) };
    }),
    previewWriteSet: handler.unary('LeaseService/PreviewWriteSet', async (api, call, { request }) => {
      const { value, revision } = await api.previewWriteSet(
        call.within(request?.namespace ?? ''),
        fromPreview(request),
      );
      const { lease, refusal } = value;
      return {
        outcome:
          lease !== null
            ? { $case: 'lease', value: toPreviewedLease(lease) }
            : refusal !== null
              ? { $case: 'refusal', value: views.refusal(refusal, call.principal) }
              : undefined,
        logRevision: BigInt(revision),
      };
    }),
    findBlockers: handler.unary('LeaseService/FindBlockers', async (api, call, request) => {
      const { value, revision } = await api.findBlockers(call.within(request.namespace), {
        resource: request.resource,
      });
      return {
        resource: value.resource,
        blockers: views.blockers(value.blockers, call.principal, value.own),
        more: value.more,
        rules: value.rules.slice(),
        logRevision: BigInt(revision),
      };
    }),
  };
}

function fromPreview(request: wire.AcquireWriteSetRequest | undefined): AcquireInput {
  const reader = new RequestReader();
  if (request === undefined) {
    reader.wrong('request', 'is required');
    reader.done();
    throw new Error('unreachable');
  }
  return fromAcquire(request, 'request.');
}

function fromAcquire(request: wire.AcquireWriteSetRequest, prefix: string): AcquireInput {
  const reader = new RequestReader();
  const { entries, task, resourceSet } = fromWriteSet(request, request.resourceSet, reader, prefix);
  const input = {
    entries,
    task,
    resourceSet,
    runId: request.runId,
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

/** The entries, task or set of a request, as the domain has them. */
export function fromWriteSet(
  given: { readonly entries: readonly WriteSetEntry[]; readonly task?: wire.TaskCall | undefined },
  resourceSet: string,
  reader: RequestReader,
  prefix: string,
): WriteSetRequest {
  const entries: RequestedEntry[] = [];
  for (const entry of given.entries) entries.push(fromEntry(entry, entries.length, reader, prefix));
  return { entries, task: fromTask(given.task), resourceSet: resourceSet === '' ? null : resourceSet };
}

function fromEntry(entry: WriteSetEntry, index: number, reader: RequestReader, prefix: string): RequestedEntry {
  return {
    resource: entry.resource,
    access: reader.access(entry.access, prefix, index),
    scope: reader.scope(entry.scope, prefix, index),
    actions: entry.actions,
    observedVersion: entry.observedVersion ?? null,
  };
}

function fromTask(task: wire.TaskCall | undefined): TaskCall | null {
  return task === undefined ? null : { name: task.name, parameters: task.parameters };
}

function toOutcome(
  answer: At<AcquireOutcome>,
  call: Call,
  views: RefusalViews,
): wire.AcquireWriteSetResponse['outcome'] {
  const { value, now } = answer;
  switch (value.kind) {
    case 'lease':
      return { $case: 'lease', value: toLease(value.lease, now) };
    case 'waiting':
      return { $case: 'waiting', value: views.waiting(value.waiting, call.principal) };
    case 'refusal':
      return { $case: 'refusal', value: views.refusal(value.refusal, call.principal) };
  }
}

function fromRenewals(renewals: readonly wire.Renewal[]): RenewalInput[] {
  const reader = new RequestReader();
  const inputs = renewals.map(({ leaseId, ttl, progressMarker }, index) => ({
    leaseId,
    ttl: ttl === undefined ? null : reader.duration(ttl, `renewals[${index}].ttl`),
    progressMarker: progressMarker ?? null,
  }));
  reader.done();
  return inputs;
}

function toRenewalResult(outcome: RenewalOutcome, now: Micros, call: Call, views: RefusalViews): wire.RenewalResult {
  const { leaseId, lease, refusal } = outcome;
  if (lease !== null) return { leaseId, outcome: { $case: 'lease', value: toLease(lease, now) } };
  if (refusal !== null)
    return { leaseId, outcome: { $case: 'refusal', value: views.refusal(refusal, call.principal) } };
  throw new Error('a renewal without outcome');
}

function fromReleased(lease: wire.ReleaseLeaseRequest['lease']): { leaseId: string | null; acquireKey: string | null } {
  if (lease === undefined) {
    const reader = new RequestReader();
    reader.wrong('lease', 'one of lease_id and acquire_key is required');
    reader.done();
  }
  return {
    leaseId: lease?.$case === 'leaseId' ? lease.value : null,
    acquireKey: lease?.$case === 'acquireKey' ? lease.value : null,
  };
}
