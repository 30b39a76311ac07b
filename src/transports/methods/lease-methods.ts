import type * as wire from '../../gen/writ/v1/lease_service.js';
import { RequestReader, toEndReason, toTimestamp } from '../messages/convert.js';
import {
  fromAcquire,
  fromAmend,
  fromPreview,
  fromRelease,
  fromRenew,
  toAcquireAnswer,
  toAmendAnswer,
  toGetAnswer,
  toPreviewAnswer,
  toReleaseAnswer,
  toRenewAnswer,
} from '../messages/lease-messages.js';
import { MAX_OPEN_WRITES, toOpenWrite } from '../messages/open-writes.js';
import { type RefusalViews, toFreezes, toLease } from '../messages/views.js';
import { freezeMethods } from './freeze-methods.js';
import type { UnaryMethods } from './method.js';
import { takeOverMethod } from './take-over-method.js';

/** The methods of LeaseService with one answer. */
export function leaseMethods(views: RefusalViews): UnaryMethods<wire.LeaseServiceServer> {
  return {
    ...freezeMethods,
    ...takeOverMethod(views),
    acquireWriteSet: async (api, call, request) => {
      const answer = await api.acquireWriteSet(call.within(request.namespace), fromAcquire(request, ''));
      return toAcquireAnswer(answer, call.principal, views);
    },
    amendWriteSet: async (api, call, request) => {
      const answer = await api.amendWriteSet(call.within(request.namespace), fromAmend(request));
      return toAmendAnswer(answer, call.principal, views);
    },
    renewLeases: async (api, call, request) => {
      const answer = await api.renewLeases(call.within(request.namespace), fromRenew(request));
      return toRenewAnswer(answer, call.principal, views);
    },
    releaseLease: async (api, call, request) =>
      toReleaseAnswer(await api.releaseLease(call.within(request.namespace), fromRelease(request))),
    revokeLease: async (api, call, request) => {
      const input = { leaseId: request.leaseId, reason: request.reason };
      const { value, revision } = await api.revokeLease(call.within(request.namespace), input);
      return {
        effectiveAt: toTimestamp(value.effectiveAt),
        openWrites: value.openWrites.slice(0, MAX_OPEN_WRITES).map((write) => toOpenWrite(write)),
        logRevision: BigInt(revision),
        endReason: toEndReason(value.endReason),
      };
    },
    getLease: async (api, call, request) =>
      toGetAnswer(await api.getLease(call.within(request.namespace), { leaseId: request.leaseId })),
    listLeases: async (api, call, request) => {
      const reader = new RequestReader();
      const states = reader.leaseStates(request.states, 'states');
      const page = reader.page(request.page, 'page');
      reader.done();
      const { runId, resource, lockDelayed } = request;
      const input = { runId, resource, states, lockDelayed, page };
      const { value, revision, now } = await api.listLeases(call.within(request.namespace), input);
      const leases = value.items.map((lease) => toLease(lease, now));
      return { leases, nextPageToken: value.nextToken, logRevision: BigInt(revision) };
    },
    previewWriteSet: async (api, call, asked) => {
      const answer = await api.previewWriteSet(call.within(asked.request?.namespace ?? ''), fromPreview(asked));
      return toPreviewAnswer(answer, call.principal, views);
    },
    findBlockers: async (api, call, request) => {
      const { value, revision } = await api.findBlockers(call.within(request.namespace), {
        resource: request.resource,
      });
      return {
        resource: value.resource,
        blockers: views.blockers(value.blockers, call.principal, value.own),
        more: value.more,
        rules: value.rules.slice(),
        freezes: toFreezes(value.freezes, call.principal),
        logRevision: BigInt(revision),
      };
    },
    listInDoubt: async (api, call, request) => {
      const reader = new RequestReader();
      const page = reader.page(request.page, 'page');
      reader.done();
      const { runId, resource, includeOpen } = request;
      const input = { runId, resource, includeOpen, page };
      const { value, revision } = await api.listInDoubt(call.within(request.namespace), input);
      const writes = value.items.map((write) => toOpenWrite(write));
      return { writes, nextPageToken: value.nextToken, logRevision: BigInt(revision) };
    },
    settleInDoubt: async (api, call, request) => {
      const reader = new RequestReader();
      const happened = reader.settled(request.outcome, 'outcome');
      reader.done();
      const { admissionId, reason } = request;
      const input = { admissionId, happened, newVersion: request.newVersion ?? null, reason };
      const { value, revision } = await api.settleInDoubt(call.within(request.namespace), input);
      const { settledNow, runId } = value;
      const stillOpen = value.stillOpen.slice(0, MAX_OPEN_WRITES).map((write) => toOpenWrite(write));
      return { settledNow, runId, stillOpen, logRevision: BigInt(revision) };
    },
  };
}
