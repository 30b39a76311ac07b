import type { Renewed } from '../../../../src/domain/event.js';
import type { Micros } from '../../../../src/domain/time.js';
import { promise } from '../violation.js';
import { overAt } from './audited-lease.js';
import type { Facts } from './facts.js';
import { withinWhole } from './parts.js';

export function leaseRenewed(facts: Facts, renewed: Renewed, databaseNow: Micros): void {
  const { expiresAt, progressAt } = renewed;
  const before = facts.change(renewed.leaseId, 'active', { expiresAt, progressAt, claimBy: null });
  const { leaseId } = before;
  const run = facts.run(before.runId);
  promise(!run.ended, `P6: ${leaseId} of an ended run was renewed`);
  promise(overAt(before) > databaseNow, `P5: ${leaseId} was renewed after its end`);
  promise(expiresAt >= (before.expiresAt as Micros), `P5: ${leaseId} was shortened by a renewal`);
  promise(expiresAt <= (before.maxExpiresAt as Micros), `P5: ${leaseId} outlives its max hold`);
  promise(expiresAt <= run.authorityEndsAt, `P5: ${leaseId} outlives its run's authority`);
  withinWhole(facts, { ...before, expiresAt });
  const window = before.progressWindow ?? Number.POSITIVE_INFINITY;
  promise(expiresAt <= progressAt + window, `P5: ${leaseId} outlives its progress window`);
}

export function leaseClaimed(facts: Facts, leaseId: string, databaseNow: Micros): void {
  const lease = facts.change(leaseId, 'active', { claimBy: null });
  promise(overAt(lease) > databaseNow, `P5: ${leaseId} was claimed after its end`);
}
