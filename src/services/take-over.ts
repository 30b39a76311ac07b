import type { Decision } from '../domain/decide/decision.js';
import { decideTakeOver, previewTakeOver, type TakeOverCommand } from '../domain/decide/take-over.js';
import { inForceAt } from '../domain/delegation.js';
import { invalidArgument } from '../domain/fault.js';
import type { Lease } from '../domain/lease.js';
import type { Refusal } from '../domain/refusal.js';
import { openWritesUnder } from '../domain/state.js';
import { checkInput, toCommand, waitForGrant } from './acquire-write-set.js';
import type { At, CallContext, EndedLeases, TakeOverInput, TakeOverOutcome } from './api.js';
import { type Deps, engineOf, fingerprint } from './deps.js';
import { FieldChecks } from './fields.js';

/** TakeOver: gives a run what others hold; blocks while it waits for what nobody can end, as an acquire does. */
export async function takeOver(deps: Deps, context: CallContext, input: TakeOverInput): Promise<At<TakeOverOutcome>> {
  const checks = new FieldChecks();
  checks.text('reason', input.reason, 1_024, true);
  checkInput(deps, input, { withKey: true, checks });
  const engine = await engineOf(deps, context);
  const command = takeOverCommand(context, input);
  const { value, revision, now } = await engine.submit(context.principal.name, (decision) => {
    const { decided, ended } = decideTakeOver(decision, command);
    const lease = decided.kind === 'refusal' ? undefined : decision.lease(decided.leaseId);
    return { decided, lease, ended: endedLeases(decision, ended) };
  });
  const { decided, lease, ended } = value;
  if (decided.kind === 'refusal')
    return { value: { outcome: { kind: 'refusal', refusal: decided.refusal }, ended }, revision, now };
  if (decided.kind === 'lease') {
    if (lease === undefined) throw new Error('a grant without its lease');
    return { value: { outcome: { kind: 'lease', lease, credentials: [] }, ended }, revision, now };
  }
  const answer = await waitForGrant(deps, engine, context, command.wait, decided);
  return { ...answer, value: { outcome: answer.value, ended } };
}

/** What TakeOver would answer, and whom it would end; nothing it decides is kept. */
export function previewOfTakeOver(
  decision: Decision,
  context: CallContext,
  input: TakeOverInput,
): { lease: Lease | null; refusal: Refusal | null; ended: EndedLeases } {
  const { lease, refusal, ended } = previewTakeOver(decision, takeOverCommand(context, input));
  return { lease, refusal, ended: endedLeases(decision, ended) };
}

function takeOverCommand(context: CallContext, input: TakeOverInput): TakeOverCommand {
  if (input.delegatedFrom !== '')
    throw invalidArgument([{ field: 'delegated_from', description: 'must be empty: a take-over takes the whole' }]);
  const { reason, acceptsOverlap, entries, task, resourceSet, ttl, purpose } = input;
  // Beside the keys of its run's own acquires: none of them is this request.
  const request = { takeOver: true, entries, task, resourceSet, ttl, purpose, reason, acceptsOverlap };
  return { ...toCommand(context, input), fingerprint: fingerprint(request), reason, acceptsOverlap };
}

function endedLeases({ state }: Decision, leases: readonly Lease[]): EndedLeases {
  return {
    leases: leases.map((lease) => ({
      lease,
      purpose: lease.purpose || (state.runs.get(lease.runId)?.purpose ?? ''),
      effectiveAt: inForceAt(state, [lease]),
    })),
    effectiveAt: leases.length === 0 ? null : inForceAt(state, leases),
    openWrites: leases.flatMap((lease) => openWritesUnder(state, lease)),
  };
}
