import type { Lease } from '../../../../src/domain/lease.js';
import type { Micros } from '../../../../src/domain/time.js';
import { promise } from '../violation.js';
import { audited } from './audited-lease.js';
import type { Facts } from './facts.js';
import { inTurn, overNobody, overNoDoubt, tookOver, underNoFreeze } from './in-the-way.js';
import { partOfWhole } from './parts.js';
import { tokensInOrder } from './tokens.js';

/** Places of take-overs come before any place that an acquire was given. */
const BEFORE_ALL = 1e15;

export function leaseQueued(facts: Facts, lease: Lease, fingerprint: string): void {
  facts.bind(`run:${lease.runId}`, lease.idempotencyKey, lease.leaseId, 'acquire', fingerprint);
  promise(!facts.leases.has(lease.leaseId), `P6: lease ${lease.leaseId} is made twice`);
  promise(facts.run(lease.runId).mayAcquire, `P6: run ${lease.runId} was queued although it may not acquire`);
  const startsAt = facts.sets[lease.request?.resourceSet ?? '']?.not_before ?? 0;
  // "Jumps the queue (waiters stay in the queue behind it)."
  const order = lease.takeOver === null ? facts.revision : facts.revision - BEFORE_ALL;
  const waiting = { ...audited(lease, 'waiting', order, facts.oracle.ties), startsAt };
  tookOver(facts, waiting);
  facts.leases.put(waiting);
}

export function leaseGranted(
  facts: Facts,
  lease: Lease,
  fingerprint: string | null,
  time: Micros,
  databaseNow: Micros,
): void {
  const { leaseId, runId } = lease;
  const place = facts.leases.get(leaseId);
  if (fingerprint === null) promise(place?.state === 'waiting', `P6: ${leaseId} was granted without having waited`);
  else {
    promise(place === undefined, `P6: lease ${leaseId} is made twice`);
    facts.bind(`run:${runId}`, lease.idempotencyKey, leaseId, 'acquire', fingerprint);
  }
  promise((place?.startsAt ?? 0) <= databaseNow, `C1a: ${leaseId} was granted before the start of its set`);
  const run = facts.run(runId);
  promise(run.mayAcquire, `P6: run ${runId} was granted a lease although it may not acquire (F14)`);
  promise(run.authorityEndsAt > databaseNow, `P5: ${leaseId} was granted after the end of its run's authority`);
  const now = facts.withUnasked(audited(lease, 'active', place?.order ?? Number.POSITIVE_INFINITY, facts.oracle.ties));
  tokensInOrder(facts, now.entries, time);
  promise(Number.isSafeInteger(lease.expiresAt), `P5: ${leaseId} has no end`);
  promise((lease.expiresAt as Micros) <= run.authorityEndsAt, `P5: ${leaseId} outlives its run's authority`);
  promise((lease.expiresAt as Micros) <= (lease.maxExpiresAt as Micros), `P5: ${leaseId} outlives its max hold`);
  promise(
    facts.oracle.missing(now.entries).length === 0,
    `C3: ${leaseId} lacks ${facts.oracle.missing(now.entries)[0]}`,
  );
  if (place === undefined) tookOver(facts, now);
  if (now.delegatedFrom !== '') partOfWhole(facts, now, databaseNow);
  if (now.takeOver === null || place !== undefined) inTurn(facts, now, time);
  overNobody(facts, now);
  overNoDoubt(facts, now);
  underNoFreeze(facts, now);
  facts.leases.put(now);
}
