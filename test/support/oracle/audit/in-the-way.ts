import type { Micros } from '../../../../src/domain/time.js';
import type { OracleEntry } from '../entry.js';
import { promise, Violation } from '../violation.js';
import { type Audited, enforced, pairOf } from './audited-lease.js';
import type { Facts } from './facts.js';

/** What a write to a resource is to anybody else: nothing stands beside it. */
const written = (resource: string): OracleEntry => ({
  resource,
  access: 'write',
  scope: 'exact',
  exclusive: true,
  mode: 'enforce',
  observedRefusal: null,
});

/** P9: nobody is granted while a conflicting request ahead of theirs waits, unless that one waits for their run. */
export function inTurn(facts: Facts, lease: Audited, time: Micros): void {
  if (facts.leases.waiting.size === 0) return;
  const asks = enforced(lease);
  const queue = facts.queueAt(time);
  for (const ahead of queue.waitersAhead(asks)) {
    const passed = queue.waitsFor(ahead.runId, lease.runId);
    promise(passed, `P9: ${lease.leaseId} was granted before ${ahead.leaseId}, which waits ahead of it`);
  }
}

/** C12: a take-over ends who is in its way, in its own append, and nobody else. */
export function tookOver(facts: Facts, lease: Audited): void {
  if (lease.takeOver === null) return;
  for (const leaseId of lease.takeOver.ended) {
    const ended = facts.takenOver.get(leaseId);
    promise(ended !== undefined, `C12: ${lease.leaseId} took over ${leaseId}, whose end is not written before it`);
    const why = facts.oracle.incompatible(enforced(lease).entries, ended.entries);
    promise(why !== '' && ended.runId !== lease.runId, `C12: ${leaseId} was ended, and not in the way`);
    facts.takenOver.delete(leaseId);
  }
  if (!lease.takeOver.acceptsOverlap) return;
  for (const other of facts.accepted.keys()) facts.excused.add(pairOf(other, lease.leaseId));
}

/**
 * P1: the end of what has expired is written before anything is granted over it. What comes back to a lease from its parts
 * (`isBack`) was held all along: a change of the map may since have tied it to another lease, and ended that one.
 */
export function overNobody(facts: Facts, lease: Audited, isBack = false): void {
  for (const other of facts.leases.activeOfOthers(lease.runId)) {
    // What had expired before the map was changed was not expanded anew.
    if ((other.grantedAt ?? 0) <= facts.mapPutAt) continue;
    if (facts.isRelated(lease, other)) continue;
    if (facts.oracle.incompatible(lease.entries, other.entries) === '') continue;
    throw new Violation(`P1: ${lease.leaseId} was granted over ${other.leaseId}, whose end is not written`);
  }
  if (lease.takeOver?.acceptsOverlap === true) return;
  for (const other of facts.delays.values()) {
    if (isBack && facts.endedByMap.has(other.leaseId)) continue;
    if (other.until <= facts.mapPutAt || other.runId === lease.runId) continue;
    const why = facts.oracle.incompatible(lease.entries, other.entries);
    promise(why === '', `P3: ${lease.leaseId} was granted over the lock delay of ${other.leaseId}: ${why}`);
  }
}

/** R4: nobody, its own run neither, is granted what a write in doubt may still change. */
export function overNoDoubt(facts: Facts, lease: Audited): void {
  if (lease.takeOver?.acceptsOverlap === true) return;
  const asked = enforced(lease).entries;
  for (const { resource, leaseId } of facts.inDoubt) {
    const why = facts.oracle.incompatible(asked, [written(resource)]);
    promise(why === '', `R4: ${lease.leaseId} was granted while a write of ${leaseId} is in doubt: ${why}`);
  }
}

/** C12: nothing is granted that an operator has frozen. */
export function underNoFreeze(facts: Facts, lease: Audited): void {
  for (const freeze of facts.freezes.values()) {
    const under = facts.oracle.frozen(freeze, lease.entries);
    promise(under === undefined, `C12: ${lease.leaseId} was granted ${under}, which ${freeze.pattern} has frozen`);
  }
}
