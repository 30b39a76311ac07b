import { checkFence as decideCheck } from '../domain/check-fence.js';
import { observes, resolveResource } from '../domain/conflict-map/index.js';
import type { View } from '../domain/decide/decision.js';
import type { FenceVerdict, ProtectedWrite } from '../domain/fence.js';
import type { At, CallContext } from './api.js';
import { type Deps, engineOf } from './deps.js';
import { FieldChecks } from './fields.js';

export interface CheckInput {
  readonly leaseId: string;
  readonly presenterRunId: string;
  readonly writes: readonly ProtectedWrite[];
  readonly requestId: string;
}

/** CheckFence: linearizable, all writes of one request together; a denial is recorded after the answer (P3, P4, C10). */
export async function checkFence(deps: Deps, context: CallContext, input: CheckInput): Promise<At<FenceVerdict>> {
  checkFields(input);
  const engine = await engineOf(deps, context);
  const answer = await engine.read((view) => verdict(deps, view, input));
  const denied = !answer.value.allowed || answer.value.results.some((result) => result.observedOnly);
  if (denied) recordDenial(deps, engine.namespace, context, input, answer.value);
  return answer;
}

function checkFields(input: CheckInput): void {
  const checks = new FieldChecks();
  if (input.leaseId === '' || input.leaseId.length > 128) checks.reject('lease_id', 'must be 1 to 128 characters');
  if (input.presenterRunId.length > 128) checks.reject('presenter_run_id', 'must be at most 128 characters');
  if (input.writes.length < 1 || input.writes.length > 256) checks.reject('writes', 'must be 1 to 256');
  input.writes.forEach((write, index) => {
    const field = `writes[${index}]`;
    if (write.resource === '') checks.reject(`${field}.resource`, 'is required');
    else checks.text(`${field}.resource`, write.resource, 2_048);
    checks.action(`${field}.action`, write.action);
    if (write.observedVersion !== null) checks.text(`${field}.observed_version`, write.observedVersion, 256);
  });
  checks.printable('request_id', input.requestId, false);
  checks.done();
}

function verdict(deps: Deps, view: View, input: CheckInput): FenceVerdict {
  const { map } = view.state;
  const lease = view.lease(input.leaseId);
  return decideCheck(
    {
      now: view.now,
      maxClockSkew: deps.maxClockSkew,
      lease,
      run: lease === undefined ? undefined : view.run(lease.runId),
      pathOf: (resource) => {
        const resolved = resolveResource(map, resource);
        return resolved.ok ? resolved.resource : null;
      },
      observes: (resource) => observes(map, resource),
    },
    input,
  );
}

function recordDenial(
  deps: Deps,
  namespace: string,
  context: CallContext,
  input: CheckInput,
  verdict: FenceVerdict,
): void {
  input.writes.forEach((write, index) => {
    const result = verdict.results[index];
    if (result === undefined || result.reason === 'ok') return;
    deps.metrics.denied(namespace, result.reason);
    const { resource, action } = write;
    deps.denials.note(
      namespace,
      {
        reason: result.reason,
        resource,
        action,
        runId: input.presenterRunId,
        target: context.principal.name,
        observedOnly: result.observedOnly,
      },
      input.requestId,
    );
  });
}
