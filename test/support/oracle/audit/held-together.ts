import type { Micros } from '../../../../src/domain/time.js';
import { promise } from '../violation.js';
import { overAt, pairOf, usable } from './audited-lease.js';
import type { Facts } from './facts.js';

/**
 * P1, after an append: no two live leases of different runs are incompatible. Two that were found apart are still, as long as
 * both are as they were then; a change of the map changes every lease.
 */
export function nobodyOverlaps(facts: Facts, keptUntilEnd: ReadonlySet<string>, databaseNow: Micros): void {
  for (const a of facts.leases.takeChanged()) {
    if (overAt(a) <= databaseNow) continue;
    for (const b of facts.leases.activeOfOthers(a.runId)) {
      if (overAt(b) <= databaseNow || facts.isRelated(a, b)) continue;
      const why = facts.oracle.incompatible(a.entries, b.entries);
      if (why === '') continue;
      const pair = pairOf(a.leaseId, b.leaseId);
      if (keptUntilEnd.has(a.leaseId) && keptUntilEnd.has(b.leaseId)) facts.excused.add(pair);
      promise(facts.excused.has(pair), `P1: ${a.leaseId} and ${b.leaseId} of two runs are live together: ${why}`);
    }
  }
}

/** P3, after an append: no other run holds what some view or offline verifier still lets an ended lease write. */
export function nobodyIsStillBelieved(facts: Facts, keptUntilEnd: ReadonlySet<string>, databaseNow: Micros): void {
  for (const ended of facts.accepted.values()) {
    if (ended.until <= databaseNow) {
      facts.accepted.delete(ended.leaseId);
      continue;
    }
    for (const other of facts.leases.activeOfOthers(ended.runId)) {
      if (overAt(other) <= databaseNow) continue;
      const why = facts.oracle.incompatible(ended.entries, usable(other.entries));
      if (why === '') continue;
      const pair = pairOf(ended.leaseId, other.leaseId);
      if (keptUntilEnd.has(ended.leaseId) && keptUntilEnd.has(other.leaseId)) facts.excused.add(pair);
      promise(
        facts.excused.has(pair),
        `P3: ${other.leaseId} is held while some target may still believe ${ended.leaseId}: ${why}`,
      );
    }
  }
}

/** P9, after an append: no runs wait for each other in a circle. */
export function nobodyWaitsInACircle(facts: Facts, databaseNow: Micros): void {
  if (facts.leases.waiting.size < 2) return;
  const stuck = facts.queueAt(databaseNow).deadlocked();
  promise(stuck === null, `P9: ${stuck} waits for itself, and nothing but time can end that`);
}
