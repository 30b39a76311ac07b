import { decideCreateRun } from '../domain/decide/runs.js';
import type { Allowance } from '../domain/entry.js';
import { Fault, invalidArgument } from '../domain/fault.js';
import { parsePattern } from '../domain/pattern.js';
import { type Micros, SECOND } from '../domain/time.js';
import { randomId } from '../engine/random-id.js';
import type { At, CallContext, CreateRunInput, RunView } from './api.js';
import { type Deps, engineOf, fingerprint, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';
import { runView } from './run-view.js';

/** The longest authority a contract can give. */
const MAX_AUTHORITY: Micros = 30 * 86_400 * SECOND;

const MAX_TOKEN_LENGTH = 16_384;

/** CreateRun: a run with its contract (R1); the same key of the same principal, the same run. */
export async function createRun(deps: Deps, context: CallContext, input: CreateRunInput): Promise<At<RunView>> {
  const engine = await engineOf(deps, context);
  checkInput(input, engine.estimatedNow());
  const { idempotencyKey, initiatorToken, ...request } = input;
  const initiator = initiatorToken === '' ? null : await verified(deps, context, initiatorToken, input.initiator);
  const command = {
    ...request,
    initiator: initiator ?? input.initiator,
    initiatorVerified: initiator !== null,
    idempotencyKey,
    principal: context.principal.name,
    ceiling: context.principal.ceiling ?? null,
    freshRunId: randomId(),
    // A token is made anew for each attempt; whom it names is what the request says.
    fingerprint: fingerprint({ ...request, ...(initiator === null ? {} : { verifiedInitiator: initiator }) }),
    requestIds: requestIds(context.requestId),
  };
  return engine.submit(context.principal.name, (decision) => {
    const { runId } = decideCreateRun(decision, command);
    const run = decision.run(runId);
    if (run === undefined) throw new Error('a key is bound to a run that does not exist');
    return runView(decision, run);
  });
}

/** The person whose token it is; a name that the caller gave beside it must be the same. */
async function verified(deps: Deps, context: CallContext, token: string, named: string): Promise<string> {
  if (deps.verifyInitiator === null)
    throw invalidArgument([{ field: 'initiator_token', description: 'no issuer of such tokens is configured here' }]);
  const person = await deps.verifyInitiator(token, context.principal.name).catch((error: unknown) => {
    // It is a field that is wrong, not the caller.
    if (!(error instanceof Fault) || error.faultClass !== 'unauthenticated') throw error;
    throw invalidArgument([{ field: 'initiator_token', description: error.message }]);
  });
  if (named !== '' && named !== person)
    throw invalidArgument([{ field: 'initiator', description: 'is not the person whose token initiator_token is' }]);
  return person;
}

function checkInput(input: CreateRunInput, now: Micros): void {
  const checks = new FieldChecks();
  checks.text('purpose', input.purpose, 1_024, true);
  checks.text('goal_revision', input.goalRevision, 256);
  checks.text('initiator', input.initiator, 256);
  if (input.initiatorToken.length > MAX_TOKEN_LENGTH)
    checks.reject('initiator_token', `must be at most ${MAX_TOKEN_LENGTH} characters`);
  if (input.parentRunId !== '') checks.id('parent_run_id', input.parentRunId);
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
  if (!parsed.ok)
    checks.reject(
      `${field}.pattern`,
      `${parsed.reason}; a contract takes patterns of paths, no aliases of the conflict map`,
    );
  const { actions } = allowance;
  if (actions.length > 32) checks.reject(`${field}.actions`, 'must be at most 32');
  actions.forEach((action, index) => {
    if (action === '*' && actions.length === 1) return;
    if (action === '*') checks.reject(`${field}.actions[${index}]`, '"*" must stand alone');
    else checks.action(`${field}.actions[${index}]`, action);
  });
}
