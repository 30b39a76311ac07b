import type { EventBody } from '../../../../src/domain/event.js';
import type { EndReason } from '../../../../src/domain/lease.js';
import type { Micros } from '../../../../src/domain/time.js';
import { nameOf } from '../entry.js';
import { SECOND } from '../time.js';
import { promise } from '../violation.js';
import { type Audited, overAt } from './audited-lease.js';
import type { Facts } from './facts.js';

export function leaseEnded(
  facts: Facts,
  leaseId: string,
  endReason: EndReason,
  reason: string,
  databaseNow: Micros,
  delayedUntil: Micros | null,
): void {
  const before = facts.lease(leaseId);
  promise(before.state !== 'ended', `P5: ${leaseId} ended twice`);
  if (endReason === 'expired' || endReason === 'no_progress' || endReason === 'unclaimed') {
    promise(overAt(before) <= databaseNow, `P1: ${leaseId} was ended by time before its time`);
  }
  if (endReason === 'timed_out') {
    promise(before.waitsUntil <= databaseNow, `P9: ${leaseId} was timed out before its time`);
  }
  // Given up by its own run it has no reason.
  if (endReason === 'withdrawn' && reason !== '') {
    promise(before.attachedUntil <= databaseNow, `P9: ${leaseId} was withdrawn before its time`);
  }
  if (endReason === 'taken_over') facts.takenOver.set(leaseId, before);
  if (endReason === 'map_changed') facts.endedByMap.add(leaseId);
  for (const part of facts.leases.partsOf(leaseId).keys())
    promise(false, `P5: ${part} outlives ${leaseId}, which it is a part of`);
  facts.leases.put({ ...before, state: 'ended' });
  const entries = before.entries.filter((entry) => before.unasked.has(nameOf(entry)));
  const { runId, delegatedFrom } = before;
  if (delayedUntil !== null) facts.delays.set(leaseId, { leaseId, runId, delegatedFrom, entries, until: delayedUntil });
  const until = before.state === 'active' ? lastBelieved(facts, before, databaseNow) : 0;
  if (entries.length > 0 && until > databaseNow) facts.accepted.set(leaseId, { leaseId, runId, entries, until });
}

export function lockDelayEnded(
  facts: Facts,
  body: Extract<EventBody, { kind: 'lock_delay_ended' }>,
  databaseNow: Micros,
): void {
  const delay = facts.delays.get(body.leaseId);
  promise(delay !== undefined, `P3: a lock delay of ${body.leaseId} ended that there was not`);
  promise(delay.until <= databaseNow, `P3: the lock delay of ${body.leaseId} ended before its time`);
  facts.delays.delete(body.leaseId);
}

/** "Every live lease ends, every run is blocked until an operator resumes it." */
export function historyLost(facts: Facts, databaseNow: Micros): void {
  const { leases } = facts;
  // What a lease is a part of was there before it.
  const live = [...leases.values()].filter(({ state }) => state !== 'ended').reverse();
  for (const lease of live) {
    leaseEnded(facts, lease.leaseId, 'database_changed', '', databaseNow, null);
    // How long its locks stay is judged by what verifiers accept; that they go is written.
    if (lease.unasked.size > 0) facts.delays.set(lease.leaseId, { ...lease, entries: [], until: 0 });
  }
  for (const [runId, run] of facts.runs)
    if (!run.ended && run.state !== 'stopping') facts.runs.set(runId, { ...run, mayAcquire: false, state: 'blocked' });
}

/** When the last target that does not ask stops to let its run write, of a lease that ends now. */
export function lastBelieved(facts: Facts, lease: Audited, databaseNow: Micros): Micros {
  const known = [...lease.unasked.values()];
  const byCredential = known.some((one) => one.byCredential) ? lastAccepted(facts, lease, databaseNow) : 0;
  // Proved right before this append, a view goes on for its greatest age; it expires what it knows by itself.
  const byView = Math.min(databaseNow + Math.max(0, ...known.map(({ viewAge }) => viewAge)), overAt(lease));
  return Math.max(byCredential, byView);
}

/**
 * When the last verifier stops to accept the last credential of a lease that ends now: issued at the last moment at
 * which the database took it to be alive, for whole seconds, and never reaching its expiry by less than what a verifier
 * may be wrong by.
 */
function lastAccepted(facts: Facts, lease: Audited, databaseNow: Micros): Micros {
  const { life, tolerance, skew } = facts.credentials;
  const issuedAt = Math.min(databaseNow, overAt(lease));
  const expires = lease.expiresAt as Micros;
  const exp = Math.floor(Math.min(issuedAt + life, expires - tolerance - skew) / SECOND) * SECOND;
  return exp + tolerance + skew;
}
