import { type Admission, isInDoubt, type KnownOutcome, type ReportedWrite } from './admission.js';
import { type ConflictMap, compileStored } from './conflict-map/index.js';
import type { Revocation } from './credential.js';
import { locksOfDoubt } from './doubt.js';
import type { DomainEvent, EventBody, LeaseAmended, Renewed } from './event.js';
import { locksOfLease } from './held-locks.js';
import { holderOf } from './holder-index.js';
import { changeReads, forgetReads, noteReads, noteWrites } from './inputs.js';
import { type KeyBinding, principalScope, runScope } from './key-binding.js';
import { type EndReason, type Lease, placeAt, underLockDelay } from './lease.js';
import { keptUntil } from './lock-delay.js';
import type { EndRefusal } from './refusal.js';
import { hasEnded, isOver, type Run } from './run.js';
import { bindingId, holdsAndWaits, openWritesUnder, type State } from './state.js';
import type { Micros } from './time.js';

type Body<Kind extends EventBody['kind']> = Extract<EventBody, { readonly kind: Kind }>;

/** Revocations that do not matter any more leave the state when there are this many. */
const REVOCATIONS_KEPT = 10_000;

/** How many unmatched resources are counted; past that, only those whose names are known. */
export const MAX_UNMATCHED = 10_000;

/**
 * Applies one event to a state: the only way in which state changes. No clock, no randomness, no
 * decisions; the same events give the same state on every replica.
 */
export function evolve(state: State, event: DomainEvent, revision: number): void {
  state.revision = revision;
  state.time = event.time;
  const { body } = event;
  switch (body.kind) {
    case 'namespace_created':
    case 'acquire_refused':
    case 'renewals_refused':
    case 'checks_denied':
    case 'override_reported':
    case 'credentials_refused':
    case 'signing_keys_changed':
    case 'write_set_taken_over':
    case 'texts_erased':
    case 'log_cut':
    case 'checkpoint_begun':
    case 'checkpoint_written':
      return;
    case 'database_identified':
      state.identity = body.identity;
      state.localKindsFrom = body.localKindsFrom;
      if (body.lostHistory) endEverything(state, event.time, body.localKindsFrom);
      return;
    case 'conflict_map_put':
      state.mapVersion = body.version;
      changeMap(state, compileStored(body.document));
      return;
    case 'run_created':
      insertRun(state, body.run);
      bind(state, {
        scope: principalScope(body.run.principal),
        key: body.run.idempotencyKey,
        use: 'create_run',
        fingerprint: body.fingerprint,
        runId: body.run.runId,
        leaseId: '',
        boundAt: event.time,
      });
      return;
    case 'run_state_changed':
      changeRun(state, body);
      return;
    case 'writes_admitted': {
      const { leaseId, runId, time: admittedAt } = event;
      const { requestId, target } = body;
      for (const write of body.writes) {
        const nothingKnown = { inDoubtSince: null, unsure: false, outcome: null };
        insertAdmission(state, { ...write, leaseId, runId, requestId, target, admittedAt, ...nothingKnown });
      }
      return;
    }
    case 'writes_reported':
      for (const write of body.writes) reported(state, write, event.time, body.target);
      return;
    case 'doubt_settled': {
      const result = body.happened ? 'succeeded' : 'failed';
      const outcome = { result, at: event.time, by: event.actor, settled: true, newVersion: body.newVersion } as const;
      close(state, must(state.admissions.get(body.admissionId), 'admission', body.admissionId), outcome);
      return;
    }
    case 'lease_queued':
      insert(state, body.lease, placeAt(revision, body.lease));
      bindAcquire(state, body.lease, body.fingerprint, event.time);
      return;
    case 'lease_granted':
      grant(state, body.lease, body.fingerprint, event.time);
      return;
    case 'lease_attached':
      for (const attachment of body.attachments) attach(state, attachment);
      return;
    case 'lease_claimed': {
      const lease = must(state.leases.get(body.leaseId), 'lease', body.leaseId);
      state.leases.set(body.leaseId, { ...lease, claimBy: null });
      return;
    }
    case 'leases_renewed':
      for (const renewed of body.renewals) renew(state, renewed);
      return;
    case 'lease_reexpanded': {
      const { leaseId, generation, entries, ruleLocks } = body;
      const lease = must(state.leases.get(leaseId), 'lease', leaseId);
      replaceWriteSet(state, lease, { ...lease, generation, entries, ruleLocks }, event.time);
      return;
    }
    case 'lease_amended':
      amended(state, body, event.time);
      return;
    case 'lease_ended': {
      const lease = must(state.leases.get(body.leaseId), 'lease', body.leaseId);
      end(state, lease, body.endReason, event.time, body.lockDelayUntil, body.refusal);
      return;
    }
    case 'credentials_issued': {
      if (event.leaseId === '') return;
      const lease = must(state.leases.get(event.leaseId), 'lease', event.leaseId);
      const credentialsUntil = Math.max(lease.credentialsUntil ?? 0, body.expiresAt);
      state.leases.set(lease.leaseId, { ...lease, credentialsUntil });
      return;
    }
    case 'credentials_revoked':
      revoke(state, { subject: body.subject, revokedAt: event.time, until: body.until });
      return;
    case 'lock_delay_ended':
      endLockDelay(state, must(state.leases.get(body.leaseId), 'lease', body.leaseId));
      return;
    case 'key_bound':
      bind(state, body.binding);
      return;
    case 'rehearsal_begun':
      for (const { pattern, window } of body.windows)
        state.rehearsals.set(pattern, { pattern, last: state.rehearsals.get(pattern)?.last ?? null, window });
      return;
    case 'rehearsal_recorded':
      state.rehearsals.set(body.pattern, { pattern: body.pattern, last: body.rehearsal, window: null });
      return;
    case 'pattern_frozen':
      state.freezes.set(body.freeze.pattern, body.freeze);
      return;
    case 'pattern_thawed':
      state.freezes.delete(body.pattern);
      return;
    case 'resources_unmatched':
      for (const seen of body.counts) countUnmatched(state, seen.resource, seen.times, event.time);
      return;
  }
}

function must<T>(record: T | undefined, what: string, id: string): T {
  if (record === undefined) throw new Error(`the log speaks of ${what} ${id.slice(0, 8)}…, which is not in the state`);
  return record;
}

/** Puts what a key is bound to into the state; also used when projections are loaded. */
export function bind(state: State, binding: KeyBinding): void {
  state.keys.set(bindingId(binding.scope, binding.key), binding);
}

function bindAcquire(state: State, lease: Lease, fingerprint: string, boundAt: Micros): void {
  bind(state, {
    scope: runScope(lease.runId),
    key: lease.idempotencyKey,
    use: 'acquire',
    fingerprint,
    runId: lease.runId,
    leaseId: lease.leaseId,
    boundAt,
  });
}

function addLocks(state: State, lease: Lease): void {
  const table = lease.state === 'waiting' ? state.queued : state.held;
  const holder = holderOf(lease);
  for (const lock of locksOfLease(lease)) table[lock.mode].add(lock.key, holder);
}

function removeLocks(state: State, lease: Lease): void {
  const table = lease.state === 'waiting' ? state.queued : state.held;
  for (const lock of locksOfLease(lease)) table[lock.mode].remove(lock.key, lease.leaseId);
}

/** Puts a run that has not ended into the state; also used when projections are loaded. */
export function insertRun(state: State, run: Run): void {
  state.runs.set(run.runId, run);
  use(state, run.principal, 1, 0);
  if (run.parentRunId !== '')
    state.childrenOf.set(run.parentRunId, [...(state.childrenOf.get(run.parentRunId) ?? []), run.runId]);
}

function changeRun(
  state: State,
  { runId, state: became, reason, blockCause, endsAs, endedAt }: Body<'run_state_changed'>,
): void {
  const run = must(state.runs.get(runId), 'run', runId);
  state.runs.set(runId, { ...run, state: became, stateReason: reason, blockCause, endsAs, endedAt });
  if (endedAt !== null && !hasEnded(run)) removeRun(state, run);
}

/** What an ended run no longer counts for. */
function removeRun(state: State, run: Run): void {
  use(state, run.principal, -1, 0);
  const siblings = state.childrenOf.get(run.parentRunId)?.filter((runId) => runId !== run.runId) ?? [];
  if (siblings.length > 0) state.childrenOf.set(run.parentRunId, siblings);
  else if (run.parentRunId !== '') state.childrenOf.delete(run.parentRunId);
}

/** A live lease's run is in memory, live or just ended. */
function principalOf(state: State, lease: Lease): string {
  return state.runs.get(lease.runId)?.principal ?? '';
}

function use(state: State, principal: string, runs: number, leases: number): void {
  const before = state.usage.get(principal) ?? { runs: 0, leases: 0 };
  const after = { runs: before.runs + runs, leases: before.leases + leases };
  if (after.runs === 0 && after.leases === 0) state.usage.delete(principal);
  else state.usage.set(principal, after);
}

/** Puts a lease that is live, or under lock delay, into the state; also used when projections are loaded. */
export function insert(state: State, lease: Lease, queuedAt: number | null): void {
  const placed =
    lease.waiting !== null && queuedAt !== null ? { ...lease, waiting: { ...lease.waiting, queuedAt } } : lease;
  state.leases.set(placed.leaseId, placed);
  if (placed.delegatedFrom !== '') addPart(state, placed);
  if (placed.state !== 'ended') addToRun(state, placed);
  if (placed.state === 'waiting') state.waitingLeases += 1;
  else if (placed.state === 'active') state.activeLeases += 1;
  else state.delayedLeases += 1;
  if (placed.state !== 'ended') use(state, principalOf(state, placed), 0, 1);
  addLocks(state, placed);
  if (placed.state === 'active') noteReads(state.inputs, placed);
}

function addToRun(state: State, lease: Lease): void {
  const before = holdsAndWaits(state, lease.runId);
  const holder = holderOf(lease);
  state.leasesOfRun.add(lease.runId, holder);
  if (lease.state === 'waiting') state.waitingOfRun.add(lease.runId, holder);
  noteHoldingAndWaiting(state, lease.runId, before);
}

function removeFromRun(state: State, { runId, leaseId, state: was }: Lease): void {
  const before = holdsAndWaits(state, runId);
  state.leasesOfRun.remove(runId, leaseId);
  if (was === 'waiting') state.waitingOfRun.remove(runId, leaseId);
  noteHoldingAndWaiting(state, runId, before);
}

function noteHoldingAndWaiting(state: State, runId: string, before: boolean): void {
  const after = holdsAndWaits(state, runId);
  if (after && !before) state.holdingAndWaiting.set(runId, runId);
  if (before && !after) state.holdingAndWaiting.delete(runId);
}

function addPart(state: State, { delegatedFrom, leaseId }: Lease): void {
  const parts = state.delegations.get(delegatedFrom) ?? [];
  if (!parts.includes(leaseId)) state.delegations.set(delegatedFrom, [...parts, leaseId]);
}

function removePart(state: State, { delegatedFrom, leaseId }: Lease): void {
  const parts = state.delegations.get(delegatedFrom)?.filter((id) => id !== leaseId) ?? [];
  if (parts.length > 0) state.delegations.set(delegatedFrom, parts);
  else state.delegations.delete(delegatedFrom);
}

function grant(state: State, lease: Lease, fingerprint: string | null, time: Micros): void {
  const waiting = state.leases.get(lease.leaseId);
  if (waiting?.state === 'waiting') {
    removeLocks(state, waiting);
    removeFromRun(state, waiting);
    state.waitingLeases -= 1;
    use(state, principalOf(state, waiting), 0, -1);
  }
  insert(state, lease, null);
  noteWrites(state.inputs, lease, time);
  if (fingerprint !== null) bindAcquire(state, lease, fingerprint, time);
}

/** A place in the queue is kept for whoever calls; one that is no more is nobody's. */
function attach(
  state: State,
  { leaseId, attachedUntil, attached, attachment }: Body<'lease_attached'>['attachments'][number],
): void {
  const lease = state.leases.get(leaseId);
  if (lease?.waiting == null) return;
  state.leases.set(leaseId, { ...lease, waiting: { ...lease.waiting, attachedUntil, attached, attachment } });
}

function renew(state: State, renewed: Renewed): void {
  const lease = must(state.leases.get(renewed.leaseId), 'lease', renewed.leaseId);
  const { ttl, expiresAt, progressMarker, progressAt } = renewed;
  state.leases.set(lease.leaseId, { ...lease, ttl, expiresAt, progressMarker, progressAt, claimBy: null });
}

/** A lease with another write set comes in the place of what it was. */
function replaceWriteSet(state: State, before: Lease, after: Lease, time: Micros): void {
  removeLocks(state, before);
  state.leases.set(after.leaseId, after);
  addLocks(state, after);
  if (after.state !== 'active') return;
  changeReads(state.inputs, before, after);
  noteWrites(state.inputs, after, time);
}

function amended(state: State, body: LeaseAmended, time: Micros): void {
  const { cause, generation, entries, ruleLocks, times, left, binding } = body;
  const lease = must(state.leases.get(body.leaseId), 'lease', body.leaseId);
  const changed: Lease = { ...lease, ...times, generation, entries, ruleLocks };
  replaceWriteSet(state, lease, cause === 'amended' ? { ...changed, claimBy: null } : changed, time);
  if (left !== null) insert(state, leftOver(lease, left, time), null);
  if (binding !== null) bind(state, binding);
}

/** What a lease has given up and is kept from others: a lease that ended, and that nobody ever held by its own id. */
function leftOver(lease: Lease, left: NonNullable<LeaseAmended['left']>, endedAt: Micros): Lease {
  const { leaseId, entries, ruleLocks, until } = left;
  const lockDelay = { until, over: false };
  const end = { state: 'ended', endReason: 'released', endedAt, claimBy: null, lockDelay } as const;
  return { ...lease, ...end, leaseId, entries, ruleLocks };
}

function end(
  state: State,
  lease: Lease,
  endReason: EndReason,
  endedAt: Micros,
  delayedUntil: Micros | null,
  endRefusal: EndRefusal | null = null,
): void {
  if (lease.state === 'ended') return;
  removeLocks(state, lease);
  if (lease.delegatedFrom !== '') removePart(state, lease);
  removeFromRun(state, lease);
  if (lease.state === 'active') forgetReads(state.inputs, lease);
  if (lease.state === 'waiting') state.waitingLeases -= 1;
  else state.activeLeases -= 1;
  use(state, principalOf(state, lease), 0, -1);
  for (const admission of openWritesUnder(state, lease)) doubt(state, admission, endedAt);
  const lockDelay = delayedUntil === null ? null : { until: delayedUntil, over: false };
  const ended: Lease = { ...lease, state: 'ended', endReason, endedAt, endRefusal, claimBy: null, lockDelay };
  if (lockDelay === null) state.leases.set(lease.leaseId, ended);
  else insert(state, ended, null);
}

function endLockDelay(state: State, lease: Lease): void {
  if (lease.lockDelay === null || !underLockDelay(lease)) return;
  removeLocks(state, lease);
  if (lease.delegatedFrom !== '') removePart(state, lease);
  state.delayedLeases -= 1;
  state.leases.set(lease.leaseId, { ...lease, lockDelay: { ...lease.lockDelay, over: true } });
}

/** Puts an open write into the state; also used when projections are loaded, after the map. */
export function insertAdmission(state: State, admission: Admission): void {
  state.admissions.set(admission.admissionId, admission);
  state.openWrites += 1;
  const others = state.openWritesOf.get(admission.runId) ?? [];
  state.openWritesOf.set(admission.runId, [...others, admission.admissionId]);
  if (!isInDoubt(admission)) return;
  state.inDoubt += 1;
  addDoubt(state, admission);
}

function doubt(state: State, admission: Admission, inDoubtSince: Micros): void {
  const doubted = { ...admission, inDoubtSince };
  state.admissions.set(admission.admissionId, doubted);
  state.inDoubt += 1;
  addDoubt(state, doubted);
}

function reported(state: State, write: ReportedWrite, at: Micros, by: string): void {
  const { admissionId, result, newVersion } = write;
  if (admissionId === '' || write.contradicts) return;
  const admission = must(state.admissions.get(admissionId), 'admission', admissionId);
  if (result === 'unknown') state.admissions.set(admissionId, { ...admission, unsure: true });
  else close(state, admission, { result, at, by, settled: false, newVersion });
}

/** What became of it is known: it keeps nothing from anybody. */
function close(state: State, admission: Admission, outcome: KnownOutcome): void {
  const { admissionId, runId } = admission;
  if (isInDoubt(admission)) {
    removeDoubt(state, admission);
    state.inDoubt -= 1;
  }
  state.openWrites -= 1;
  const others = state.openWritesOf.get(runId)?.filter((id) => id !== admissionId) ?? [];
  if (others.length > 0) state.openWritesOf.set(runId, others);
  else state.openWritesOf.delete(runId);
  state.admissions.set(admissionId, { ...admission, outcome });
}

function addDoubt(state: State, admission: Admission): void {
  const holder = { leaseId: admission.admissionId, runId: admission.runId, order: 0 };
  for (const { key, mode } of locksOfDoubt(state.map, admission)) state.doubted[mode].add(key, holder);
}

function removeDoubt(state: State, admission: Admission): void {
  for (const { key, mode } of locksOfDoubt(state.map, admission))
    state.doubted[mode].remove(key, admission.admissionId);
}

/** What a write in doubt keeps from others is what the map says now. */
function changeMap(state: State, map: ConflictMap): void {
  const doubts = state.inDoubt === 0 ? [] : [...state.admissions.values()].filter(isInDoubt);
  for (const admission of doubts) removeDoubt(state, admission);
  state.map = map;
  for (const admission of doubts) addDoubt(state, admission);
}

/** What is dead by itself makes room, so that there are never more than can matter. */
function revoke(state: State, revocation: Revocation): void {
  if (state.revocations.size >= REVOCATIONS_KEPT) {
    for (const { subject, until } of [...state.revocations.values()])
      if (until <= revocation.revokedAt) state.revocations.delete(subject);
  }
  state.revocations.set(revocation.subject, revocation);
}

/** Lost history (P2): every live lease ends, every run waits for an operator, lest a lost stop comes back to life. */
function endEverything(state: State, time: Micros, localKindsFrom: Micros | null): void {
  for (const lease of [...state.leases.values()]) {
    const delayedUntil = localKindsFrom === null ? null : keptUntil(lease, time, localKindsFrom);
    end(state, lease, 'database_changed', time, delayedUntil);
  }
  for (const run of [...state.runs.values()]) {
    // One that is stopping was stopped, and does not come back.
    if (isOver(run)) continue;
    state.runs.set(run.runId, {
      ...run,
      state: 'blocked',
      blockCause: 'database_changed',
      stateReason: 'The database lost history; an operator must resume the run.',
    });
  }
}

function countUnmatched(state: State, resource: string, times: number, time: Micros): void {
  const before = state.unmatched.get(resource);
  if (before === undefined && state.unmatched.size >= MAX_UNMATCHED) return;
  state.unmatched.set(resource, { resource, times: (before?.times ?? 0) + times, lastSeenAt: time });
}
