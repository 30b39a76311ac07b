import { decideCreateRun } from '../domain/decide/runs.js';
import type { Allowance } from '../domain/entry.js';
import { parsePattern } from '../domain/pattern.js';
import { type Micros, SECOND } from '../domain/time.js';
import type { At, CallContext, CreateRunInput, RunView } from './api.js';
import { type Deps, engineOf, fingerprint, randomId, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';
import { runView } from './run-view.js';

/** The longest authority a contract can give. */
const MAX_AUTHORITY: Micros = 30 * 86_400 * SECOND;

/** CreateRun: a run with its contract (R1); the same key of the same principal, the same run. */
export async function createRun(deps: Deps, context: CallContext, input: CreateRunInput): Promise<At<RunView>> {
  const engine = await engineOf(deps, context);
  checkInput(input, engine.estimatedNow());
  const { idempotencyKey, ...request } = input;
  const command = {
    ...request,
    idempotencyKey,
    principal: context.principal.name,
    freshRunId: randomId(),
    fingerprint: fingerprint(request),
    requestIds: requestIds(context.requestId),
  };
  return engine.submit(context.principal.name, (decision) => {
    const { runId } = decideCreateRun(decision, command);
    const run = decision.run(runId);
    if (run === undefined) throw new Error('a key is bound to a run that does not exist');
    return runView(decision, run);
  });
}

function checkInput(input: CreateRunInput, now: Micros): void {
  const checks = new FieldChecks();
  checks.text('purpose', input.purpose, 1_024, true);
  checks.text('goal_revision', input.goalRevision, 256);
  checks.text('initiator', input.initiator, 256);
  checks.printable('idempotency_key', input.idempotencyKey, true);
  if (input.authorityEndsAt > now + MAX_AUTHORITY) checks.reject('authority_ends_at', 'must be at most 30 days ahead');
  if (input.escalation.length > 16) checks.reject('escalation', 'must be at most 16');
  input.escalation.forEach((name, index) => checks.text(`escalation[${index}]`, name, 256, true));
  if (input.allowed.length > 256) checks.reject('allowed', 'must be at most 256');
  input.allowed.forEach((allowance, index) => checkAllowance(checks, `allowed[${index}]`, allowance));
  checks.done();
}

function checkAllowance(checks: FieldChecks, field: string, allowance: Allowance): void {
  const parsed = parsePattern(allowance.pattern);
  if (!parsed.ok) checks.reject(`${field}.pattern`, parsed.reason);
  const { actions } = allowance;
  if (actions.length > 32) checks.reject(`${field}.actions`, 'must be at most 32');
  actions.forEach((action, index) => {
    if (action === '*' && actions.length === 1) return;
    if (action === '*') checks.reject(`${field}.actions[${index}]`, '"*" must stand alone');
    else checks.action(`${field}.actions[${index}]`, action);
  });
}
