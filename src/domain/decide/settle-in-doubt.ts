import { type Admission, isInDoubt, isOpen } from '../admission.js';
import { locksOfDoubt } from '../doubt.js';
import { Fault } from '../fault.js';
import { isPast } from '../lease.js';
import type { Decision } from './decision.js';
import { endIfResolved, endPastLeases } from './ending.js';
import { grantWaiters } from './granting.js';

export interface SettleCommand {
  readonly admissionId: string;
  readonly happened: boolean;
  /** Of the resource after a write that happened; null: not told. */
  readonly newVersion: string | null;
  readonly reason: string;
  readonly requestIds: readonly string[];
}

/**
 * SettleInDoubt: an operator has found out what became of a write. Whoever waited for its resource is granted it in the
 * same append; a run that is stopping has stopped once nothing of it is open (R4). Idempotent: the same finding again
 * changes nothing, another one is refused.
 */
export function decideSettleInDoubt(decision: Decision, command: SettleCommand): { readonly settledNow: boolean } {
  const { admissionId, happened, newVersion, reason, requestIds } = command;
  const admission = afterItsLease(decision, admissionId);
  if (admission === undefined) throw unknown(admissionId);
  if (!isOpen(admission)) {
    if ((admission.outcome?.result === 'succeeded') !== happened) throw alreadyKnown(admission);
    return { settledNow: false };
  }
  if (!isInDoubt(admission)) throw notInDoubt(admission);
  const { resource, action, runId, leaseId, requestId } = admission;
  const freed = locksOfDoubt(decision.state.map, admission);
  decision.emit(
    { kind: 'doubt_settled', admissionId, resource, action, happened, newVersion, reason },
    { runId, leaseId, resources: [resource], requestIds: [...new Set([requestId, ...requestIds])] },
  );
  grantWaiters(decision, freed);
  endIfResolved(decision, runId, requestIds);
  return { settledNow: true };
}

/** The admission, once its lease has ended whose time has come. */
function afterItsLease(decision: Decision, admissionId: string): Admission | undefined {
  const lease = decision.state.leases.get(decision.admission(admissionId)?.leaseId ?? '');
  if (lease?.state === 'active' && isPast(lease, decision.now)) endPastLeases(decision, [lease]);
  return decision.admission(admissionId);
}

function unknown(admissionId: string): Fault {
  return new Fault(
    'not_found',
    'ADMISSION_NOT_FOUND',
    'There is no write of this id. `writ in-doubt list` has those that are in doubt.',
    { metadata: { admission_id: admissionId } },
  );
}

function alreadyKnown({ resource, outcome }: Admission): Fault {
  const result = outcome?.result === 'succeeded' ? 'it happened' : 'it did not happen';
  const how = outcome?.settled === true ? 'An operator has settled' : 'Its target has reported';
  return new Fault(
    'failed_precondition',
    'OUTCOME_KNOWN',
    `Nothing was changed. ${how} that write to ${JSON.stringify(resource)} otherwise: ${result}.`,
    { metadata: { result: outcome?.result ?? '', by: outcome?.by ?? '' } },
  );
}

function notInDoubt({ resource }: Admission): Fault {
  return new Fault(
    'failed_precondition',
    'NOT_IN_DOUBT',
    `Nothing was changed: the lease under which that write to ${JSON.stringify(resource)} was let in still lives, and its target may report yet. Revoke the lease or stop the run first if you cannot wait.`,
  );
}
