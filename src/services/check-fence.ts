import { type CheckFacts, checkFence as decideCheck } from '../domain/check-fence.js';
import { type ConflictMap, kindOf, observes, resolveResource } from '../domain/conflict-map/index.js';
import type { View } from '../domain/decide/decision.js';
import type { FenceVerdict, ProtectedWrite } from '../domain/fence.js';
import type { Lease } from '../domain/lease.js';
import { monotonicMicros } from '../platform/clock.js';
import type { At, CallContext } from './api.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

export interface CheckInput {
  readonly leaseId: string;
  readonly presenterRunId: string;
  readonly writes: readonly ProtectedWrite[];
  readonly requestId: string;
}

/** CheckFence: linearizable, all writes of one request together; a denial is recorded after the answer (P3, P4, C10). */
export async function checkFence(deps: Deps, context: CallContext, input: CheckInput): Promise<At<FenceVerdict>> {
  const arrivedAt = monotonicMicros();
  checkFields(input);
  const engine = await engineOf(deps, context);
  const { value, revision, now } = await engine.read((view) => {
    const lease = view.lease(input.leaseId);
    return {
      verdict: verdict(deps, view, lease, context.principal.name, input),
      // Of an unknown lease no run is known: a target must not be able to write into the history of any it names.
      runId: lease?.runId ?? '',
      map: view.state.map,
    };
  });
  deps.metrics.checked(monotonicMicros() - arrivedAt);
  if (value.verdict.results.some((result) => result.reason !== 'ok'))
    recordDenials(deps, engine.namespace, context, input, value);
  return { value: value.verdict, revision, now };
}

function checkFields(input: CheckInput): void {
  const checks = new FieldChecks();
  checks.printable('lease_id', input.leaseId, true);
  checks.printable('presenter_run_id', input.presenterRunId, false);
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

function verdict(deps: Deps, view: View, lease: Lease | undefined, target: string, input: CheckInput): FenceVerdict {
  const { map } = view.state;
  const facts: CheckFacts = {
    now: view.now,
    maxClockSkew: deps.maxClockSkew,
    lease,
    run: lease === undefined ? undefined : view.run(lease.runId),
    pathOf: (resource) => pathOf(map, resource),
    observes: (resource) => observes(map, resource),
    ownedByCaller: (resource) => {
      const owners = kindOf(map, resource)?.ownerService ?? [];
      return owners.length === 0 || owners.includes(target);
    },
  };
  return decideCheck(facts, input);
}

function pathOf(map: ConflictMap, resource: string): string | null {
  const resolved = resolveResource(map, resource);
  return resolved.ok ? resolved.resource : null;
}

interface Decided {
  readonly verdict: FenceVerdict;
  readonly runId: string;
  readonly map: ConflictMap;
}

function recordDenials(
  deps: Deps,
  namespace: string,
  context: CallContext,
  input: CheckInput,
  { verdict, runId, map }: Decided,
): void {
  const ids = requestIds(input.requestId, context.requestId);
  const target = context.principal.name;
  const presentedRun = input.presenterRunId === runId ? '' : input.presenterRunId;
  input.writes.forEach(({ resource, action }, index) => {
    const result = verdict.results[index];
    if (result === undefined || result.reason === 'ok') return;
    const { reason, observedOnly } = result;
    deps.metrics.denied(namespace, reason);
    if (reason === 'future_token') deps.futureTokens.note(target, resource);
    deps.denials.note(namespace, { reason, resource, action, runId, presentedRun, target, observedOnly }, ids);
    const path = pathOf(map, resource);
    if (path !== null && kindOf(map, path) === null) deps.denials.noteUnmatched(namespace, path);
  });
}
