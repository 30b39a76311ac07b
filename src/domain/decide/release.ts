import type { Admission } from '../admission.js';
import { inForceAt } from '../delegation.js';
import { Fault } from '../fault.js';
import { runScope } from '../key-binding.js';
import { type EndReason, isPast, type Lease } from '../lease.js';
import { openWritesUnder } from '../state.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';
import { endLeases, endPastLeases } from './ending.js';
import { leaseNotFound, ownRun } from './run-guard.js';

export interface ReleaseCommand {
  readonly principal: string;
  readonly runId: string;
  /** Exactly one of the two is given. */
  readonly leaseId: string | null;
  readonly acquireKey: string | null;
  readonly requestIds: readonly string[];
}

export interface ReleaseDecision {
  readonly outcome: 'released' | 'already_ended' | 'nothing_held';
  readonly endReason: EndReason | null;
  /** When the end is in force everywhere: with entries of view and local kinds, at the end of their lock delay (P3). */
  readonly effectiveAt: Micros;
  /** Let in under the lease, and nobody has said what became of them: their resources are in doubt. */
  readonly openWrites: readonly Admission[];
}

/** ReleaseLease: idempotent and typed; never touches another run's lease. */
export function decideRelease(decision: Decision, command: ReleaseCommand): ReleaseDecision {
  const run = ownRun(decision, command.runId, command.principal);
  if (command.acquireKey !== null) return releaseByKey(decision, run.runId, command.acquireKey, command.requestIds);
  const lease = decision.lease(command.leaseId ?? '');
  if (lease === undefined || lease.runId !== run.runId) throw leaseNotFound(command.leaseId ?? '');
  return releaseOne(decision, lease, command.requestIds);
}

/** Also for an acquire whose answer was lost, or that is still in flight: the tombstone makes it find nothing to do. */
function releaseByKey(decision: Decision, runId: string, key: string, requestIds: readonly string[]): ReleaseDecision {
  const scope = runScope(runId);
  const binding = decision.key(scope, key);
  if (binding === undefined) {
    decision.emit(
      {
        kind: 'key_bound',
        binding: { scope, key, use: 'tombstone', fingerprint: '', runId, leaseId: '', boundAt: decision.now },
      },
      { runId, requestIds },
    );
    return nothingHeld(decision.now);
  }
  if (binding.use === 'tombstone') return nothingHeld(binding.boundAt);
  if (binding.use !== 'acquire')
    throw new Fault(
      'failed_precondition',
      'KEY_NOT_OF_ACQUIRE',
      'This idempotency key was used for another kind of call.',
    );
  const lease = decision.lease(binding.leaseId);
  if (lease === undefined) return nothingHeld(binding.boundAt);
  return releaseOne(decision, lease, requestIds);
}

function nothingHeld(since: Micros): ReleaseDecision {
  return { outcome: 'nothing_held', endReason: null, effectiveAt: since, openWrites: [] };
}

/**
 * A release is never refused, also where a tracked write is open: whatever way a worker goes, all else is free at once.
 * What that write may still change is granted to nobody before its outcome is known.
 */
function releaseOne(decision: Decision, lease: Lease, requestIds: readonly string[]): ReleaseDecision {
  if (lease.state === 'active' && isPast(lease, decision.now)) endPastLeases(decision, [lease]);
  else if (lease.state !== 'ended') {
    const endReason: EndReason = lease.state === 'waiting' ? 'withdrawn' : 'released';
    endLeases(decision, [lease], endReason, '', requestIds);
    return endedAs('released', decision, lease);
  }
  return endedAs('already_ended', decision, lease);
}

function endedAs(outcome: ReleaseDecision['outcome'], decision: Decision, before: Lease): ReleaseDecision {
  const lease = decision.lease(before.leaseId) ?? before;
  const openWrites = openWritesUnder(decision.state, lease);
  return { outcome, endReason: lease.endReason, effectiveAt: inForceAt(decision.state, [lease]), openWrites };
}

export interface RevokeCommand {
  readonly leaseId: string;
  readonly reason: string;
  readonly requestIds: readonly string[];
}

/** RevokeLease: anybody's lease or waiting request; idempotent. */
export function decideRevoke(
  decision: Decision,
  command: RevokeCommand,
): { effectiveAt: Micros; endReason: EndReason; openWrites: readonly Admission[] } {
  const lease = decision.lease(command.leaseId);
  if (lease === undefined) throw leaseNotFound(command.leaseId);
  if (lease.state === 'active' && isPast(lease, decision.now)) endPastLeases(decision, [lease]);
  else if (lease.state !== 'ended') endLeases(decision, [lease], 'revoked', command.reason, command.requestIds);
  const after = decision.lease(command.leaseId) ?? lease;
  const openWrites = openWritesUnder(decision.state, after);
  return { effectiveAt: inForceAt(decision.state, [after]), endReason: after.endReason ?? 'revoked', openWrites };
}
