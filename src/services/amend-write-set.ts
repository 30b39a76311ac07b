import type { AmendRequest } from '../domain/amendment.js';
import { type AmendCommand, decideAmend } from '../domain/decide/amend.js';
import type { AmendInput, AmendOutcome, At, CallContext } from './api.js';
import { type Deps, engineOf, fingerprint, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/** AmendWriteSet: changes what a live lease holds, all of it or nothing (C5, P6). */
export async function amendWriteSet(deps: Deps, context: CallContext, input: AmendInput): Promise<At<AmendOutcome>> {
  checkInput(input, deps.bounds.maxEntries);
  const engine = await engineOf(deps, context);
  const { runId, leaseId, add, remove, downgrade, idempotencyKey } = input;
  const command: AmendCommand = {
    principal: context.principal.name,
    runId,
    leaseId,
    request: { add, remove, downgrade },
    idempotencyKey,
    fingerprint: fingerprint({ leaseId, add, remove, downgrade }),
    requestIds: requestIds(input.requestId),
    callId: context.requestId,
  };
  return engine.submit(context.principal.name, (decision): AmendOutcome => {
    const decided = decideAmend(decision, command);
    if (decided.kind === 'refusal') return decided;
    const lease = decision.lease(decided.leaseId);
    if (lease === undefined) throw new Error('an amended lease is gone while its run lives');
    return { kind: 'lease', lease, effectiveAt: decided.effectiveAt };
  });
}

function checkInput(input: AmendInput, maxEntries: number): void {
  const { add, remove, downgrade } = input;
  const checks = new FieldChecks();
  checks.id('run_id', input.runId);
  checks.printable('lease_id', input.leaseId, true);
  if (add.length + remove.length + downgrade.length === 0)
    checks.reject('add', 'give at least one of add, remove and downgrade');
  checks.entries('add', add, maxEntries);
  if (remove.length > maxEntries) checks.reject('remove', `must be at most ${maxEntries} (WRIT_MAX_ENTRIES)`);
  else remove.forEach((resource, index) => checks.resource(`remove[${index}]`, resource));
  checks.entries('downgrade', downgrade, maxEntries);
  bothWays(checks, input);
  checks.printable('idempotency_key', input.idempotencyKey, true);
  checks.printable('request_id', input.requestId, false);
  checks.done();
}

function bothWays(checks: FieldChecks, { remove, downgrade }: AmendRequest): void {
  const removed = new Set(remove);
  downgrade.forEach(({ resource }, index) => {
    if (removed.has(resource)) checks.reject(`downgrade[${index}].resource`, 'is to be removed by the same request');
  });
}
