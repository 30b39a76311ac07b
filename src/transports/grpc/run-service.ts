import type * as wire from '../../gen/writ/v1/run_service.js';
import type { At, CreateRunInput, RunView } from '../../services/api.js';
import { RequestReader, toOptionalTimestamp, toTimestamp } from './convert.js';
import type { CallHandler } from './handler.js';
import { toRun } from './views.js';

/** RunService over gRPC. */
export function runService(handler: CallHandler): wire.RunServiceServer {
  return {
    createRun: handler.unary('RunService/CreateRun', async (api, call, request) =>
      toRunAnswer(await api.createRun(call.within(request.namespace), fromCreateRun(request))),
    ),
    getRun: handler.unary('RunService/GetRun', async (api, call, request) =>
      toRunAnswer(await api.getRun(call.within(request.namespace), { runId: request.runId })),
    ),
    listRuns: handler.unary('RunService/ListRuns', async (api, call, request) => {
      const reader = new RequestReader();
      const states = reader.runStates(request.states, 'states');
      const page = reader.page(request.page, 'page');
      reader.done();
      const { value, revision } = await api.listRuns(call.within(request.namespace), { states, page });
      return { runs: value.items.map(toRun), nextPageToken: value.nextToken, logRevision: BigInt(revision) };
    }),
    updateRunState: handler.unary('RunService/UpdateRunState', async (api, call, request) => {
      const reader = new RequestReader();
      const state = reader.runState(request.state, 'state');
      reader.done();
      const { runId, reason, idempotencyKey } = request;
      const input = { runId, state, reason, idempotencyKey };
      const { value, revision } = await api.updateRunState(call.within(request.namespace), input);
      return {
        run: toRun(value.run),
        logRevision: BigInt(revision),
        effectiveAt: toOptionalTimestamp(value.effectiveAt),
      };
    }),
    stopRun: handler.unary('RunService/StopRun', async (api, call, request) => {
      const input = { runId: request.runId, reason: request.reason };
      const { value, revision } = await api.stopRun(call.within(request.namespace), input);
      return {
        effectiveAt: toTimestamp(value.effectiveAt),
        // Tracked actions are not built yet; without them no write is open.
        openWrites: [],
        logRevision: BigInt(revision),
        run: toRun(value.run),
      };
    }),
    stopRuns: handler.unary('RunService/StopRuns', async (api, call, request) => {
      const { principal, resource, all, reason, idempotencyKey } = request;
      const input = { principal, resource, all, reason, idempotencyKey };
      const { value, revision } = await api.stopRuns(call.within(request.namespace), input);
      return {
        runs: value.runs.map(toRun),
        effectiveAt: toTimestamp(value.effectiveAt),
        logRevision: BigInt(revision),
      };
    }),
  };
}

function toRunAnswer({ value, revision }: At<RunView>): { run: wire.Run; logRevision: bigint } {
  return { run: toRun(value), logRevision: BigInt(revision) };
}

function fromCreateRun(request: wire.CreateRunRequest): CreateRunInput {
  const reader = new RequestReader();
  const authorityEndsAt = reader.timestamp(request.authorityEndsAt, 'authority_ends_at');
  reader.done();
  return {
    purpose: request.purpose,
    goalRevision: request.goalRevision,
    initiator: request.initiator,
    initiatorToken: request.initiatorToken,
    parentRunId: request.parentRunId,
    allowed: request.allowed,
    authorityEndsAt: authorityEndsAt ?? 0,
    escalation: request.escalation,
    idempotencyKey: request.idempotencyKey,
  };
}
