import type { Micros } from '../../../../src/domain/time.js';
import { covers } from '../entry.js';
import { promise } from '../violation.js';
import { type Audited, overAt, usable } from './audited-lease.js';
import type { Facts } from './facts.js';

/** P5: "Expiry of the child never passes the parent's." */
export function withinWhole(facts: Facts, part: Audited): void {
  const whole = facts.wholeOf(part);
  if (whole === undefined) return;
  promise(
    (part.expiresAt ?? 0) <= overAt(whole),
    `P5: ${part.leaseId} outlives ${whole.leaseId}, which it is a part of`,
  );
}

/** "A child run may hold a subset of its parent's write set." */
export function partOfWhole(facts: Facts, part: Audited, databaseNow: Micros): void {
  const whole = facts.wholeOf(part);
  promise(whole !== undefined && facts.isLive(whole.leaseId, databaseNow), `P4: ${part.leaseId} is a part of nothing`);
  promise(facts.run(part.runId).parentRunId === whole.runId, `P4: ${part.leaseId} is a part of a lease of no parent`);
  withinWhole(facts, part);
  for (const entry of part.entries) {
    if (entry.access === 'read') continue;
    const within = whole.entries.some(
      (outer) =>
        covers(outer, entry.resource) &&
        (outer.scope === 'subtree' || entry.scope === 'exact') &&
        (outer.access === 'write' || entry.access === 'stable_read') &&
        (outer.exclusive || !entry.exclusive) &&
        entry.actions.every((action) => outer.actions.includes(action)),
    );
    promise(within, `P4: ${part.leaseId} has more of ${entry.resource} than what it is a part of`);
  }
}

/** P1's exception, after an append: where a child run holds something, its parent has nothing that it may use. */
export function partsAreSuspended(facts: Facts, databaseNow: Micros): void {
  for (const part of facts.leases.activeParts()) {
    const whole = facts.wholeOf(part);
    if (whole === undefined || overAt(part) <= databaseNow) continue;
    const why = facts.oracle.incompatible(part.entries, usable(whole.entries));
    promise(why === '', `P1: ${part.leaseId} is held, and not suspended in ${whole.leaseId}: ${why}`);
  }
  for (const whole of facts.leases.suspended) {
    if (overAt(whole) <= databaseNow) continue;
    const kept = [...facts.delays.values()].some(({ delegatedFrom }) => delegatedFrom === whole.leaseId);
    promise(
      facts.leases.partsOf(whole.leaseId).size > 0 || kept,
      `P2: ${whole.leaseId} is suspended, and nobody holds a part of it`,
    );
  }
}
