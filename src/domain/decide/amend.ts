import { type Amendment, type AmendRequest, amend } from '../amendment.js';
import { type ExpandedWriteSet, type ExpandResult, expandWriteSet } from '../conflict-map/index.js';
import type { AmendedTimes } from '../event.js';
import { frozenAmong } from '../freeze.js';
import { locksOfLease } from '../held-locks.js';
import { type KeyBinding, runScope } from '../key-binding.js';
import { endsAt, isPast, type Lease, type LeaseEntry } from '../lease.js';
import { type Asker, Queue } from '../queue.js';
import type { Refusal } from '../refusal.js';
import type { Run } from '../run.js';
import type { Micros } from '../time.js';
import { noteUnmatched } from './acquire.js';
import { heldByItself, NO_START } from './acquire-refusals.js';
import {
  misfitFault,
  openRefusal,
  partRefusal,
  sizeRefusal,
  suspendedRefusal,
  timesRefusal,
  withoutWait,
} from './amend-refusals.js';
import { changeWriteSet } from './change-write-set.js';
import type { Decision } from './decision.js';
import { endPastLeases, openLocalKinds } from './ending.js';
import { thawPast } from './freezes.js';
import {
  closedEntry,
  enforcedLocks,
  entriesWithToken,
  grantWaiters,
  MAX_PAST_ENDED,
  overInTheWay,
  pastInTheWay,
  refuseDeadlocked,
} from './granting.js';
import { keyReused } from './idempotency.js';
import { firstDoubts, grantableNow, notNowRefusal, obstaclesNow } from './not-now.js';
import { rehearsalRefusal } from './rehearsals.js';
import { endedRefusal } from './renew.js';
import { leaseNotFound, ownRun, runRefusal, withReason } from './run-guard.js';
import { settleParent } from './settle-parent.js';

export interface AmendCommand {
  readonly principal: string;
  readonly runId: string;
  readonly leaseId: string;
  readonly request: AmendRequest;
  readonly idempotencyKey: string;
  readonly fingerprint: string;
  readonly requestIds: readonly string[];
  /** By which a refusal is found as well: the call's own id. */
  readonly callId: string;
}

export type AmendDecision =
  /** When the loss of what was given up is in force everywhere (P3). */
  | { readonly kind: 'amended'; readonly leaseId: string; readonly effectiveAt: Micros }
  | { readonly kind: 'refusal'; readonly refusal: Refusal };

/**
 * AmendWriteSet: all of it or nothing, the same key the same answer (P6). What is added is decided as an acquire without
 * wait; what is given up is free for those who wait for it, in the same append (P9).
 */
export function decideAmend(decision: Decision, command: AmendCommand): AmendDecision {
  const run = ownRun(decision, command.runId, command.principal);
  const binding = decision.key(runScope(run.runId), command.idempotencyKey);
  if (binding !== undefined) {
    const isSame = binding.use === 'amend' && binding.fingerprint === command.fingerprint;
    if (!isSame) throw keyReused(command.idempotencyKey);
    return { kind: 'amended', leaseId: binding.leaseId, effectiveAt: binding.effectiveAt ?? binding.boundAt };
  }
  const lease = decision.lease(command.leaseId);
  if (lease === undefined || lease.runId !== run.runId) throw leaseNotFound(command.leaseId);
  const considered = overRefusal(decision, lease, run) ?? consider(decision, command, run, lease);
  if ('kept' in considered) return carryOut(decision, command, run, lease, considered);
  recordRefusal(decision, command, considered);
  return { kind: 'refusal', refusal: withReason(considered, run) };
}

function overRefusal(decision: Decision, lease: Lease, run: Run): Refusal | null {
  if (lease.state !== 'active') return endedRefusal(lease);
  if (isPast(lease, decision.now)) {
    endPastLeases(decision, [lease]);
    return endedRefusal(decision.lease(lease.leaseId) ?? lease);
  }
  return runRefusal(run, decision.now, 'renew');
}

/** What may be done, with the times that the kinds of what is added bound; null: they bound none. */
type Allowed = Amendment & { readonly times: AmendedTimes | null };

function consider(decision: Decision, command: AmendCommand, run: Run, lease: Lease): Allowed | Refusal {
  const expanded = expandAdded(decision, command, run);
  if (expanded !== null) noteUnmatched(decision, expanded.ok ? expanded.writeSet.unmatched : expanded.unmatched);
  if (expanded !== null && !expanded.ok) return expanded.refusal;
  const asked = expanded?.writeSet ?? null;
  const amendment = amend(decision.state.map, lease, command.request, run.allowed, asked);
  if ('field' in amendment) throw misfitFault(amendment);
  const kept = openRefusal(decision, lease, amendment) ?? suspendedRefusal(amendment);
  if (kept !== null) return kept;
  if (amendment.added.length === 0) return { ...amendment, times: null };
  // What is added is new authority, as a grant is; giving up is possible for as long as the lease lives.
  const refusal =
    runRefusal(run, decision.now, 'acquire') ??
    partRefusal(lease) ??
    sizeRefusal(decision, amendment) ??
    (asked === null ? null : timesRefusal(decision, lease, asked)) ??
    rehearsalRefusal(decision, amendment.added, run.runId) ??
    takenRefusal(decision, command, run, amendment);
  return refusal ?? { ...amendment, times: asked === null ? null : timesWith(decision, lease, asked) };
}

function expandAdded({ state, bounds }: Decision, { request }: AmendCommand, run: Run): ExpandResult | null {
  if (request.add.length === 0) return null;
  return expandWriteSet(state.map, { entries: request.add, task: null, resourceSet: null }, run.allowed, bounds);
}

/** Who or what stands in the way of what is added; whoever waits for the run itself is passed (P9). */
function takenRefusal(decision: Decision, command: AmendCommand, run: Run, amendment: Amendment): Refusal | null {
  const { added: entries, addedRuleLocks: ruleLocks } = amendment;
  const asker = askerOf(run, command);
  const locks = enforcedLocks({ entries, ruleLocks });
  openLocalKinds(decision);
  thawPast(decision);
  const queue = new Queue(decision);
  const past = [
    ...pastInTheWay(decision, { entries, ruleLocks }, MAX_PAST_ENDED),
    ...overInTheWay(decision, locks, asker, queue),
  ];
  if (past.length > 0) endPastLeases(decision, past);
  // What time has ended may have granted a request of the run itself.
  const own = heldByItself(decision, entries, locks, asker);
  if (own !== null) return own;
  const obstacles = [...obstaclesNow(decision, locks, asker, queue)];
  const doubts = firstDoubts(decision, locks);
  const isClosed = closedEntry(decision, entries) !== undefined;
  const isFrozen = frozenAmong(decision.state.freezes, entries) !== null;
  if (obstacles.length === 0 && doubts.length === 0 && !isClosed && !isFrozen) return null;
  const grantable = grantableNow(decision, command.request.add, run, asker, queue);
  return withoutWait(notNowRefusal(decision, entries, { obstacles, doubts }, NO_START, grantable));
}

const askerOf = (run: Run, { leaseId }: AmendCommand): Asker => ({
  runId: run.runId,
  order: Number.POSITIVE_INFINITY,
  leaseId,
});

/** Max hold and the progress window of what is added count from now on; neither moves what was set at the grant (P5). */
function timesWith({ now }: Decision, lease: Lease, asked: ExpandedWriteSet): AmendedTimes {
  const maxExpiresAt = Math.min(lease.maxExpiresAt ?? Number.POSITIVE_INFINITY, now + asked.maxHold);
  const maxTtl = Math.min(lease.maxTtl, asked.maxTtl);
  const { progressWindow, progressAt } = lease;
  const narrower = asked.progressWindow !== null && asked.progressWindow < (progressWindow ?? Number.POSITIVE_INFINITY);
  if (!narrower || asked.progressWindow === null) return { maxTtl, maxExpiresAt, progressWindow, progressAt };
  const ends = progressWindow === null ? Number.POSITIVE_INFINITY : (progressAt ?? now) + progressWindow;
  const window = asked.progressWindow;
  return { maxTtl, maxExpiresAt, progressWindow: window, progressAt: Math.min(now, ends - window) };
}

function carryOut(
  decision: Decision,
  command: AmendCommand,
  run: Run,
  before: Lease,
  { kept, added, addedRuleLocks, observedRefusals, givenUp, times }: Allowed,
): AmendDecision {
  const { leaseId, idempotencyKey: key, fingerprint, requestIds } = command;
  const lease = decision.lease(leaseId) ?? before;
  const binding = { scope: runScope(run.runId), key, use: 'amend', fingerprint, runId: run.runId, leaseId } as const;
  const isChange = added.length > 0 || kept.some((entry) => !lease.entries.includes(entry)) || givenUp.length > 0;
  if (!isChange) return unchanged(decision, command, { ...binding, boundAt: decision.now });
  const freed = givenUp.length === 0 ? [] : locksOfLease(lease);
  const at = decision.nextToken();
  const writeSet = { entries: added, ruleLocks: addedRuleLocks, observedRefusals };
  const fresh: LeaseEntry[] = added.length === 0 ? [] : entriesWithToken(decision, writeSet, askerOf(run, command), at);
  decision.relyOnFuture(endsAt(lease));
  decision.relyOnFuture(run.authorityEndsAt);
  const effectiveAt = changeWriteSet(decision, lease, at, {
    cause: 'amended',
    entries: [...kept, ...fresh],
    givenUp,
    times,
    binding: { ...binding, boundAt: at },
    resources: [...new Set([...givenUp, ...fresh].map(({ resource }) => resource))],
    requestIds,
  });
  settleParent(decision, leaseId);
  settleParent(decision, lease.delegatedFrom);
  const unstuck = added.length === 0 ? [] : refuseDeadlocked(decision, run);
  grantWaiters(decision, [...freed, ...unstuck]);
  return { kind: 'amended', leaseId, effectiveAt };
}

/** All that was to be added is held already; the key is bound all the same, so that it answers the same for ever. */
function unchanged(decision: Decision, { leaseId, requestIds }: AmendCommand, binding: KeyBinding): AmendDecision {
  const effectiveAt = binding.boundAt;
  decision.emit(
    { kind: 'key_bound', binding: { ...binding, effectiveAt } },
    { runId: binding.runId, leaseId, requestIds },
  );
  return { kind: 'amended', leaseId, effectiveAt };
}

function recordRefusal(decision: Decision, command: AmendCommand, refusal: Refusal): void {
  const { runId, leaseId, request, requestIds, callId } = command;
  const named = [...request.add, ...request.downgrade].map(({ resource }) => resource);
  decision.emit(
    {
      kind: 'acquire_refused',
      refusal: refusal.kind,
      message: refusal.message,
      purpose: '',
      blockers: refusal.blockers.map((blocker) => blocker.leaseId),
    },
    {
      runId,
      leaseId,
      resources: [...new Set([...named, ...request.remove])],
      requestIds: [...new Set([...requestIds, callId])].filter((id) => id !== ''),
    },
  );
}
