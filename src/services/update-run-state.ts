import { decideUpdateRunState } from '../domain/decide/runs.js';
import type { RunState } from '../domain/run.js';
import type { Micros } from '../domain/time.js';
import type { At, CallContext, RunView } from './api.js';
import { type Deps, engineOf, fingerprint, hasRole, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';
import { runView } from './run-view.js';

const REPORTABLE = ['active', 'waiting_for_input', 'blocked', 'finished', 'failed'] as const;
type Reportable = (typeof REPORTABLE)[number];

function isReportable(state: RunState): state is Reportable {
  return (REPORTABLE as readonly RunState[]).includes(state);
}

/** UpdateRunState: what the run says of itself; an operator also resumes a run after lost history. */
export async function updateRunState(
  deps: Deps,
  context: CallContext,
  input: { runId: string; state: RunState; reason: string; idempotencyKey: string },
): Promise<At<{ run: RunView; effectiveAt: Micros | null }>> {
  const { runId, state, reason, idempotencyKey } = input;
  const checks = new FieldChecks();
  checks.id('run_id', runId);
  if (!isReportable(state))
    checks.reject('state', 'must be ACTIVE, WAITING_FOR_INPUT, BLOCKED, FINISHED or FAILED; StopRun stops a run');
  checks.text('reason', reason, 1_024);
  checks.printable('idempotency_key', idempotencyKey, true);
  checks.done();
  const engine = await engineOf(deps, context);
  const command = {
    principal: context.principal.name,
    asOperator: hasRole(context, 'operator'),
    runId,
    state: state as Reportable,
    reason,
    idempotencyKey,
    fingerprint: fingerprint({ runId, state, reason }),
    requestIds: requestIds(context.requestId),
  };
  return engine.submit(context.principal.name, (decision) => {
    const { effectiveAt } = decideUpdateRunState(decision, command);
    const run = decision.run(runId);
    if (run === undefined) throw new Error('the run is gone');
    return { run: runView(decision, run), effectiveAt };
  });
}
