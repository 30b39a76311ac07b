import { decideStopRun, decideStopRuns } from '../domain/decide/runs.js';
import type { Micros } from '../domain/time.js';
import type { At, CallContext, RunView } from './api.js';
import { type Deps, engineOf, fingerprint, hasRole, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';
import { runView } from './run-view.js';

/** StopRun: ends the run's authority to write (R4, P3); a runner stops its own runs only. */
export async function stopRun(
  deps: Deps,
  context: CallContext,
  input: { runId: string; reason: string },
): Promise<At<{ effectiveAt: Micros; run: RunView }>> {
  const checks = new FieldChecks();
  checks.id('run_id', input.runId);
  checks.text('reason', input.reason, 1_024, true);
  checks.done();
  const engine = await engineOf(deps, context);
  const principal = hasRole(context, 'operator', 'admin') ? null : context.principal.name;
  return engine.submit(context.principal.name, (decision) => {
    const { effectiveAt } = decideStopRun(decision, { ...input, principal, requestIds: requestIds(context.requestId) });
    const run = decision.run(input.runId);
    if (run === undefined) throw new Error('the run is gone');
    return { effectiveAt, run: runView(decision, run) };
  });
}

interface StopRunsInput {
  readonly principal: string;
  readonly resource: string;
  readonly all: boolean;
  readonly reason: string;
  readonly idempotencyKey: string;
}

/** StopRuns: every run that matches, in one append. */
export async function stopRuns(
  deps: Deps,
  context: CallContext,
  input: StopRunsInput,
): Promise<At<{ effectiveAt: Micros; runs: readonly RunView[] }>> {
  const { idempotencyKey, ...request } = input;
  const checks = new FieldChecks();
  checks.text('reason', input.reason, 1_024, true);
  checks.printable('idempotency_key', idempotencyKey, true);
  if (input.principal === '' && input.resource === '' && !input.all)
    checks.reject('all', 'must be true to stop every run of the namespace');
  checks.done();
  const engine = await engineOf(deps, context);
  const command = {
    ...request,
    caller: context.principal.name,
    idempotencyKey,
    fingerprint: fingerprint(request),
    requestIds: requestIds(context.requestId),
  };
  return engine.submit(context.principal.name, (decision) => {
    const { runIds, effectiveAt } = decideStopRuns(decision, command);
    const runs = runIds.map((runId) => decision.run(runId)).filter((run) => run !== undefined);
    return { effectiveAt, runs: runs.map((run) => runView(decision, run)) };
  });
}
