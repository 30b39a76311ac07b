import type * as wire from '../../gen/writ/v1/fence_service.js';
import type { ReportWriteInput } from '../../services/api.js';
import { REPORT_OUTCOME_TO_WIRE, RequestReader } from '../messages/convert.js';
import { fromCheck, toCheckAnswer } from '../messages/fence-messages.js';
import type { UnaryMethods } from './method.js';

/** The methods of FenceService with one answer. */
export const fenceMethods: UnaryMethods<wire.FenceServiceServer> = {
  checkFence: async (api, call, request) => {
    return toCheckAnswer(await api.checkFence(call.within(request.namespace), fromCheck(request)));
  },
  reportOverride: async (api, call, request) => {
    const { value, revision } = await api.reportOverride(call.within(request.namespace), fromOverride(request));
    return { alreadyReported: value.alreadyReported, logRevision: BigInt(revision) };
  },
  reportWrite: async (api, call, request) => {
    const input = fromReport(request);
    const { value, revision } = await api.reportWrite(call.within(request.namespace), input);
    return { outcomes: value.map((outcome) => REPORT_OUTCOME_TO_WIRE[outcome]), logRevision: BigInt(revision) };
  },
};

function fromReport(request: wire.ReportWriteRequest): ReportWriteInput {
  const reader = new RequestReader();
  const writes = request.writes.map((write, index) => ({
    admissionId: write.admissionId,
    resource: write.resource,
    action: write.action,
    result: reader.writeResult(write.result, `writes[${index}].result`),
    observedVersion: write.observedVersion ?? null,
    newVersion: write.newVersion ?? null,
    changedFields: write.changedFields,
  }));
  reader.done();
  const { leaseId, requestId, credential, detail } = request;
  return { leaseId, requestId, credential, detail, writes };
}

function fromOverride({ overrideId, who, why, until, patterns, use }: wire.ReportOverrideRequest) {
  const reader = new RequestReader();
  const report = {
    overrideId,
    who,
    why,
    until: reader.timestamp(until, 'until') ?? 0,
    patterns,
    use: use === undefined ? null : fromUse(use, reader),
  };
  reader.done();
  return report;
}

function fromUse({ useId, requestId, usedAt, writes }: wire.OverrideUse, reader: RequestReader) {
  return {
    // Absent as before there were any: a report that is repeated then is the same one.
    ...(useId === '' ? {} : { useId }),
    requestId,
    usedAt: reader.timestamp(usedAt, 'use.used_at') ?? 0,
    writes: writes.map(({ resource, action, observedVersion = null }) => ({ resource, action, observedVersion })),
  };
}
