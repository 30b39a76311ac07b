import type { ProtectedWrite, WriteVerdict } from '../../domain/fence.js';
import type * as wire from '../../gen/writ/v1/fence_service.js';
import type { At, CheckedFence, CheckFenceInput } from '../../services/api.js';
import { FENCE_REASON_TO_WIRE, fromToken, toOptionalDuration, toOptionalTimestamp } from './convert.js';
import { fromConfirmation } from './credential-messages.js';

/** A check and its answer, on a call of its own and on a stream. */

export function fromCheck(request: wire.CheckFenceRequest): CheckFenceInput {
  return {
    leaseId: request.leaseId,
    credential: request.credential,
    presenter: fromConfirmation(request.presenter, 'presenter'),
    presenterRunId: request.presenterRunId,
    writes: request.writes.map(fromWrite),
    requestId: request.requestId,
  };
}

export function toCheckAnswer({ value, revision }: At<CheckedFence>): wire.CheckFenceResponse {
  return {
    allowed: value.allowed,
    results: value.results.map((verdict, index) => toVerdict(verdict, value.admissionIds?.[index] ?? '')),
    logRevision: BigInt(revision),
    validFor: toOptionalDuration(value.validFor),
    runId: value.holder?.runId ?? '',
    leaseId: value.holder?.leaseId ?? '',
    expiresAt: toOptionalTimestamp(value.holder?.expiresAt ?? null),
  };
}

function fromWrite(write: wire.ProtectedWrite): ProtectedWrite {
  return {
    resource: write.resource,
    action: write.action,
    token: fromToken(write.fencingToken),
    observedVersion: write.observedVersion ?? null,
  };
}

function toVerdict(verdict: WriteVerdict, admissionId: string): wire.WriteVerdict {
  return {
    allowed: verdict.allowed,
    reason: FENCE_REASON_TO_WIRE[verdict.reason],
    message: verdict.message,
    observedOnly: verdict.observedOnly,
    admissionId,
    fencingToken: BigInt(verdict.hold?.token ?? 0),
    exclusive: verdict.hold?.exclusive ?? false,
    explicit: verdict.hold?.explicit ?? false,
  };
}
