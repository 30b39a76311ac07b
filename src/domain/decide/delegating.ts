import { keptFromOthers } from '../amendment.js';
import type { ExpandedWriteSet } from '../conflict-map/index.js';
import { beyondParent, newlyMet } from '../delegation.js';
import { endsAt, isLive, type Lease } from '../lease.js';
import { lockDelayUntil } from '../lock-delay.js';
import { locksOf } from '../locks.js';
import { INCOMPATIBLE } from '../modes.js';
import { type Refusal, refuse } from '../refusal.js';
import { covers } from '../resource.js';
import type { Run } from '../run.js';
import { openWritesUnder } from '../state.js';
import type { Micros } from '../time.js';
import { stillOpen } from './amend-refusals.js';
import type { Decision } from './decision.js';
import { leaseNotFound } from './run-guard.js';

type Asked = Pick<ExpandedWriteSet, 'entries' | 'ruleLocks'>;

/** Why a request may not have a part of this lease of its run's parent; null: it may, or asks for a part of none. */
export function delegationRefusal(decision: Decision, run: Run, leaseId: string, asked: Asked): Refusal | null {
  if (leaseId === '') return null;
  const parent = decision.lease(leaseId);
  // One of another run, be it of the same principal, looks as if it were not there.
  if (parent === undefined || run.parentRunId === '' || parent.runId !== run.parentRunId) throw leaseNotFound(leaseId);
  if (!isLive(parent, decision.now)) return overRefusal(parent);
  const beyond = beyondParent(parent, asked.entries);
  if (beyond !== undefined)
    return refuse(
      'outside_contract',
      `The lease that is to be delegated does not cover ${beyond.access} on ${JSON.stringify(beyond.resource)} as it is asked for: a part lies at or below what it holds, with no stronger access and no other actions.`,
      {
        action: 'Ask for less, name the actions, or have the parent run add it to its lease (AmendWriteSet).',
        who: 'runner',
        retryable: false,
      },
      { resource: beyond.resource },
    );
  const met = newlyMet(parent, asked);
  const open = openWritesUnder(decision.state, parent).find(({ resource }) =>
    met.some((entry) => entry.access === 'write' && covers(entry, resource)),
  );
  if (open === undefined) return null;
  return stillOpen(open.resource, open.action, 'What it may still change is delegated to nobody.');
}

function overRefusal({ state, endReason }: Lease): Refusal {
  const why = state === 'waiting' ? 'it is still waited for' : `it has ended: ${endReason ?? 'expired'}`;
  return refuse('ended', `The lease that a part is asked of is not held: ${why}.`, {
    action: 'Have the parent run acquire it, then ask for a part of that.',
    who: 'runner',
    retryable: false,
  });
}

/**
 * Until when targets that do not ask may believe the parent where it would be suspended: nobody is granted that before
 * (P3). Null: there is nothing of that kind that the part would meet. Waiting suspends it, so that this time is certain.
 */
export function believedUntil(decision: Decision, leaseId: string, asked: Asked): Micros | null {
  const parent = leaseId === '' ? undefined : decision.state.leases.get(leaseId);
  if (parent === undefined) return null;
  const left = keptFromOthers(parent, newlyMet(parent, asked));
  if (left.entries.length === 0) return null;
  const askedLocks = new Set(locksOf(asked.entries, asked.ruleLocks).map(({ key, mode }) => mode + key));
  const isMet = locksOf(left.entries, left.ruleLocks).some(({ key, mode }) =>
    INCOMPATIBLE[mode].some((other) => askedLocks.has(other + key)),
  );
  return isMet ? lockDelayUntil({ ...parent, entries: left.entries }, decision.now, decision.bounds) : null;
}

export function notYetSuspended(until: Micros, now: Micros): Refusal {
  return refuse(
    'lock_delay',
    "The parent's target lets it write without asking, and may do so for a while after it is suspended.",
    {
      action:
        'Wait (set wait): that suspends the parent there, and the part is granted when no target believes it any more.',
      who: 'runner',
      retryable: true,
    },
    { retryAfter: until - now },
  );
}

/** A part never lives longer than the whole, nor may it ever be renewed beyond that (P5). */
export function withinParent(
  decision: Decision,
  leaseId: string,
  times: { readonly expiresAt: Micros; readonly maxExpiresAt: Micros },
): { expiresAt: Micros; maxExpiresAt: Micros } {
  const latest = endOfParent(decision, leaseId);
  const parent = decision.state.leases.get(leaseId);
  return {
    expiresAt: Math.min(times.expiresAt, latest),
    maxExpiresAt: Math.min(times.maxExpiresAt, parent?.maxExpiresAt ?? Number.POSITIVE_INFINITY),
  };
}

/** When the lease ends unless renewed, which the append proves to be ahead; Infinity: there is no parent. */
export function endOfParent(decision: Decision, leaseId: string): Micros {
  const parent = leaseId === '' ? undefined : decision.state.leases.get(leaseId);
  if (parent === undefined) return Number.POSITIVE_INFINITY;
  decision.relyOnFuture(endsAt(parent));
  return endsAt(parent);
}
