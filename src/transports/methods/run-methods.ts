import type * as wire from '../../gen/writ/v1/run_service.js';
import type { At, CreateRunInput, RunView } from '../../services/api.js';
import { RequestReader, toOptionalTimestamp, toTimestamp } from '../messages/convert.js';
import { MAX_LISTED_WRITES } from '../messages/open-writes.js';
import { toRun } from '../messages/views.js';
import type { MethodCall, UnaryMethods } from './method.js';

/** The methods of RunService. */
export const runMethods: UnaryMethods<wire.RunServiceServer> = {
  createRun: async (api, call, request) =>
    toRunAnswer(await api.createRun(call.within(request.namespace), fromCreateRun(request)), call),
  getRun: async (api, call, request) =>
    toRunAnswer(await api.getRun(call.within(request.namespace), { runId: request.runId }), call),
  listRuns: async (api, call, request) => {
    const reader = new RequestReader();
    const states = reader.runStates(request.states, 'states');
    const page = reader.page(request.page, 'page');
    reader.done();
    const { value, revision } = await api.listRuns(call.within(request.namespace), { states, page });
    const runs = value.items.map((view) => toRun(view, call.principal, MAX_LISTED_WRITES));
    return { runs, nextPageToken: value.nextToken, logRevision: BigInt(revision) };
  },
  updateRunState: async (api, call, request) => {
    const reader = new RequestReader();
    const state = reader.runState(request.state, 'state');
    reader.done();
    const { runId, reason, idempotencyKey } = request;
    const input = { runId, state, reason, idempotencyKey };
    const { value, revision } = await api.updateRunState(call.within(request.namespace), input);
    return {
      run: toRun(value.run, call.principal),
      logRevision: BigInt(revision),
      effectiveAt: toOptionalTimestamp(value.effectiveAt),
    };
  },
  stopRun: async (api, call, request) => {
    const input = { runId: request.runId, reason: request.reason };
    const { value, revision } = await api.stopRun(call.within(request.namespace), input);
    const run = toRun(value.run, call.principal);
    return {
      effectiveAt: toTimestamp(value.effectiveAt),
      openWrites: run.openWrites,
      logRevision: BigInt(revision),
      run,
    };
  },
  stopRuns: async (api, call, request) => {
    const { principal, resource, all, reason, idempotencyKey } = request;
    const input = { principal, resource, all, reason, idempotencyKey };
    const { value, revision } = await api.stopRuns(call.within(request.namespace), input);
    return {
      runs: value.runs.map((view) => toRun(view, call.principal, MAX_LISTED_WRITES)),
      effectiveAt: toTimestamp(value.effectiveAt),
      logRevision: BigInt(revision),
    };
  },
};

function toRunAnswer({ value, revision }: At<RunView>, call: MethodCall): { run: wire.Run; logRevision: bigint } {
  return { run: toRun(value, call.principal), logRevision: BigInt(revision) };
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
