import type { ProtectedWrite, WriteVerdict } from '../../domain/fence.js';
import type * as wire from '../../gen/writ/v1/fence_service.js';
import { FENCE_REASON_TO_WIRE, fromToken, toOptionalDuration } from './convert.js';
import { fromConfirmation } from './credential-service.js';
import type { CallHandler } from './handler.js';

/** FenceService over gRPC. */
export function fenceService(handler: CallHandler): wire.FenceServiceServer {
  return {
    checkFence: handler.unary('FenceService/CheckFence', async (api, call, request) => {
      const { value, revision } = await api.checkFence(call.within(request.namespace), {
        leaseId: request.leaseId,
        credential: request.credential,
        presenter: fromConfirmation(request.presenter, 'presenter'),
        presenterRunId: request.presenterRunId,
        writes: request.writes.map(fromWrite),
        requestId: request.requestId,
      });
      return {
        allowed: value.allowed,
        results: value.results.map(toVerdict),
        logRevision: BigInt(revision),
        validFor: toOptionalDuration(value.validFor),
      };
    }),
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

function toVerdict(verdict: WriteVerdict): wire.WriteVerdict {
  return {
    allowed: verdict.allowed,
    reason: FENCE_REASON_TO_WIRE[verdict.reason],
    message: verdict.message,
    observedOnly: verdict.observedOnly,
  };
}
