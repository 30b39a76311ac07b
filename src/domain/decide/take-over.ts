import { innermostFirst } from '../delegation.js';
import type { TakenOverlap } from '../event.js';
import { frozenAmong } from '../freeze.js';
import { runScope } from '../key-binding.js';
import { isFreeByTime, isLive, type Lease, type TakeOver } from '../lease.js';
import type { Lock } from '../locks.js';
import { holdersInTheWay, type Obstacle } from '../obstacles.js';
import type { Asker } from '../queue.js';
import { type Refusal, refuse } from '../refusal.js';
import type { Run } from '../run.js';
import {
  type AcquireCommand,
  type AcquireDecision,
  type Admissible,
  admissible,
  concerning,
  grantedLease,
  queuedLease,
  recordRefusal,
  repeat,
} from './acquire.js';
import { frozen, heldByItself, NO_START, waiterLimit } from './acquire-refusals.js';
import type { Decision } from './decision.js';
import { endOne, endPast } from './end-one.js';
import { freedBy, openLocalKinds } from './ending.js';
import { thawPast } from './freezes.js';
import { closedEntry, grantWaiters, lookAgainAtAll, pastInTheWay, refuseDeadlocked } from './granting.js';
import { firstDoubts, notNowRefusal } from './not-now.js';
import { runNotFound, withReason } from './run-guard.js';

/**
 * TakeOver (C12): in an emergency an operator gives a run what others hold. The holders in the way end and the run is
 * granted all that it asks for in one append, or nothing happens. Whoever waits stays in the queue, behind it. What
 * nobody can end is waited for, in a place before all others: lock delays, and writes in doubt, also those that the ends
 * leave behind; unless the operator accepts the overlap, which is recorded.
 */

export interface TakeOverCommand extends Omit<AcquireCommand, 'principal' | 'maxLiveLeases'> {
  readonly reason: string;
  /** Granted at once, whatever lock delays and writes in doubt there are. */
  readonly acceptsOverlap: boolean;
}

export interface TakeOverDecision {
  readonly decided: AcquireDecision;
  /** What a new place waits for; null: none was taken, or by an earlier call. */
  readonly waitsFor: Refusal | null;
  /** Leases that it ended, as they are now; also of a repeated call. */
  readonly ended: readonly Lease[];
}

/** Leases that one take-over may end, or write the end of: it is one append. */
const MAX_TAKEN_OVER = 1_000;

/** The same key, the same lease (P6): it lies beside the keys by which the run itself acquires. */
export function decideTakeOver(decision: Decision, command: TakeOverCommand): TakeOverDecision {
  const run = decision.run(command.runId);
  if (run === undefined) throw runNotFound(command.runId);
  const asked: AcquireCommand = { ...command, principal: run.principal, maxLiveLeases: null };
  const binding = decision.key(runScope(run.runId), command.idempotencyKey);
  if (binding !== undefined) {
    const decided = repeat(decision, asked, binding);
    return { decided, waitsFor: null, ended: endedBy(decision, decision.lease(binding.leaseId)) };
  }
  const considered = consider(decision, command, asked, run);
  if (considered.kind === 'refused') {
    recordRefusal(decision, asked, considered.refusal);
    return { decided: { kind: 'refusal', refusal: withReason(considered.refusal, run) }, waitsFor: null, ended: [] };
  }
  return takeOver(decision, command, asked, run, considered);
}

interface Takeable {
  readonly kind: 'takeable';
  readonly asked: Admissible;
  /** Leases and lock delays that are over by their time: their ends are written before anything is granted over them. */
  readonly past: readonly Lease[];
  readonly holders: readonly Lease[];
  /** What remains in the way once they have ended, and is waited for or accepted; null: nothing. */
  readonly remains: Refusal | null;
}

function consider(
  decision: Decision,
  command: TakeOverCommand,
  asked: AcquireCommand,
  run: Run,
): Takeable | { readonly kind: 'refused'; readonly refusal: Refusal } {
  const refused = (refusal: Refusal) => ({ kind: 'refused', refusal }) as const;
  // The start of a resource set is waited for by acquiring it: nobody has to be ended for that.
  const judged = admissible(decision, { ...asked, wait: 0 }, run);
  if (judged.kind === 'refused') return judged;
  openLocalKinds(decision);
  thawPast(decision);
  const own = heldByItself(decision, judged.writeSet.entries, judged.locks, judged.asker);
  if (own !== null) return refused(own);
  const stopped = frozenAmong(decision.state.freezes, judged.writeSet.entries);
  if (stopped !== null) return refused(notThroughFreeze(frozen(stopped, notNow(decision, judged), decision.now)));
  const inTheWay = [...holdersInTheWay(decision.state, judged.locks, judged.asker)].map(({ lease }) => lease);
  const holders = inTheWay.filter((lease) => isLive(lease, decision.now));
  // Also of what is only observed: the grant takes its locks too.
  const past = pastInTheWay(decision, judged.writeSet, MAX_TAKEN_OVER);
  if (holders.length + past.length > MAX_TAKEN_OVER) return refused(tooMany());
  const remains = whatRemains(decision, judged, past, holders, command);
  if (remains !== null && !command.acceptsOverlap) {
    if (command.wait <= 0) return refused(endsNobody(remains));
    const full = waiterLimit(decision, run);
    if (full !== null) return refused(full);
  }
  return { kind: 'takeable', asked: judged, past, holders, remains };
}

/** The ends are tried on an overlay that is thrown away: they may leave lock delays, and writes in doubt. */
function whatRemains(
  decision: Decision,
  judged: Admissible,
  past: readonly Lease[],
  holders: readonly Lease[],
  { reason }: TakeOverCommand,
): Refusal | null {
  const trial = decision.preview(decision.actor, decision.bounds);
  endAll(trial, past, holders, reason, []);
  const isFree =
    obstacles(trial, judged.locks, judged.asker).length === 0 &&
    firstDoubts(trial, judged.locks).length === 0 &&
    closedEntry(trial, judged.writeSet.entries) === undefined;
  return isFree ? null : notNow(trial, judged);
}

function obstacles(decision: Decision, locks: readonly Lock[], asker: Asker): Obstacle[] {
  return [...holdersInTheWay(decision.state, locks, asker)].filter(({ lease }) => !isFreeByTime(lease, decision.now));
}

/** What is in the way now, whoever waits. */
function notNow(decision: Decision, { locks, asker, writeSet }: Admissible): Refusal {
  const inTheWay = { obstacles: obstacles(decision, locks, asker), doubts: firstDoubts(decision, locks) };
  return notNowRefusal(decision, writeSet.entries, inTheWay, NO_START, []);
}

/** Returns the locks that the ends free. */
function endAll(
  decision: Decision,
  past: readonly Lease[],
  holders: readonly Lease[],
  reason: string,
  requestIds: readonly string[],
): Lock[] {
  const freed = freedBy(decision, [...past, ...holders]);
  for (const lease of past) endPast(decision, lease);
  for (const lease of innermostFirst(decision.state, holders))
    endOne(decision, lease, 'taken_over', reason, requestIds);
  return freed;
}

function takeOver(
  decision: Decision,
  command: TakeOverCommand,
  asked: AcquireCommand,
  run: Run,
  { asked: { writeSet, asker }, past, holders, remains }: Takeable,
): TakeOverDecision {
  const { acceptsOverlap, reason, requestIds, fingerprint, freshLeaseId: leaseId } = command;
  const about = concerning(asked, { runId: run.runId, leaseId, entries: writeSet.entries });
  const waitsFor = acceptsOverlap ? null : remains;
  decision.emit(
    {
      kind: 'write_set_taken_over',
      reason,
      ended: holders.map((holder) => ({ leaseId: holder.leaseId, runId: holder.runId })),
      acceptsOverlap,
      overlaps: waitsFor === null ? overlapsOf(decision, remains) : [],
    },
    about,
  );
  const freed = endAll(decision, past, holders, reason, requestIds);
  const taken: TakeOver = { ended: holders.map((holder) => holder.leaseId), acceptsOverlap };
  if (waitsFor !== null) {
    const lease = { ...queuedLease(decision, asked, run, writeSet), takeOver: taken };
    decision.emit({ kind: 'lease_queued', lease, fingerprint }, about);
    // Who waits behind the new place waits for this run from now on, and may be passed by it: no freed lock tells that.
    lookAgainAtAll(decision);
    const decided = { kind: 'waiting', leaseId, attachment: 1 } as const;
    return { decided, waitsFor, ended: endedBy(decision, lease) };
  }
  const lease = { ...grantedLease(decision, asked, run, writeSet, asker), takeOver: taken };
  decision.relyOnFuture(run.authorityEndsAt);
  decision.emit({ kind: 'lease_granted', lease, fingerprint }, about, lease.grantedAt ?? undefined);
  grantWaiters(decision, [...freed, ...refuseDeadlocked(decision, run)]);
  return { decided: { kind: 'lease', leaseId }, waitsFor, ended: endedBy(decision, lease) };
}

/** After lost history nobody knows whose credentials are out: the resource alone stands for them. */
function overlapsOf({ state }: Decision, remains: Refusal | null): TakenOverlap[] {
  if (remains === null) return [];
  const { resource, blockers } = remains;
  if (blockers.length === 0)
    return [{ leaseId: '', runId: '', resource, lockDelayUntil: state.localKindsFrom, inDoubtSince: null }];
  return blockers.map((blocker) => ({
    leaseId: blocker.leaseId,
    runId: blocker.runId,
    resource: blocker.resource,
    lockDelayUntil: blocker.lockDelayUntil,
    inDoubtSince: blocker.inDoubtSince,
  }));
}

/** The leases that the take-over of this one ended, as far as they are known. */
function endedBy(decision: Decision, lease: Lease | undefined): Lease[] {
  const ended = lease?.takeOver?.ended ?? [];
  decision.needLeases(ended);
  return ended.flatMap((leaseId) => decision.lease(leaseId) ?? []);
}

/** PreviewWriteSet of a take-over: the same decision on an overlay that is thrown away. The lease has no id and no tokens. */
export function previewTakeOver(
  decision: Decision,
  command: TakeOverCommand,
): { lease: Lease | null; refusal: Refusal | null; ended: readonly Lease[] } {
  const { decided, waitsFor, ended } = decideTakeOver(decision, command);
  if (decided.kind === 'refusal') return { lease: null, refusal: decided.refusal, ended };
  if (decided.kind === 'waiting') return { lease: null, refusal: waitsFor, ended };
  return { lease: decision.lease(decided.leaseId) ?? null, refusal: null, ended };
}

/** Both are an operator's orders, and the later one does not go over the other unseen. */
function notThroughFreeze(refusal: Refusal): Refusal {
  const action = 'Thaw it first (writ thaw), or freeze less; a take-over does not go through a freeze.';
  return { ...refusal, resolution: { action, who: 'operator', retryable: true } };
}

function endsNobody(remains: Refusal): Refusal {
  const action =
    'Set wait: the holders are ended now, and the run is granted it before all others once that is over. Or set accept_overlap: it is granted at once in spite of that, and the log says so.';
  const message = `Once its holders have ended: ${remains.message} Nobody was ended.`;
  return { ...remains, message, resolution: { action, who: 'operator', retryable: true } };
}

function tooMany(): Refusal {
  return refuse('limit', `More than ${MAX_TAKEN_OVER} leases hold what is to be taken over. Nobody was ended.`, {
    action: 'Take it over in smaller parts, or stop the runs first (writ run stop-all --resource).',
    who: 'operator',
    retryable: false,
  });
}
