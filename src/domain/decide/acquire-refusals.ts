import type { ExpandedWriteSet } from '../conflict-map/index.js';
import type { ExpandedEntry, RequestedEntry } from '../entry.js';
import { type Lease, underLockDelay } from '../lease.js';
import { blockerOf, MAX_BLOCKERS, type Obstacle } from '../obstacles.js';
import { type Blocker, type Refusal, refuse } from '../refusal.js';
import type { Run } from '../run.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';

/** A repeated call by a key whose lease or place is gone. */
export function gone(message: string): Refusal {
  return refuse('ended', message, ASK_ANEW);
}

const ASK_ANEW = { action: 'Ask anew with a new idempotency key.', who: 'runner', retryable: false };

/** How a waiting request ended without a grant, as its run is told. */
export function endedWaiting(lease: Lease | undefined): Refusal {
  switch (lease?.endReason) {
    case 'timed_out':
      return refuse('wait_timeout', 'The wait ended before the locks were free.', {
        action: 'Ask anew with a new idempotency key, or with a longer wait.',
        who: 'runner',
        retryable: true,
      });
    case 'run_stopped':
    case 'run_ended':
      return refuse('run_ended', 'The run ended while the request waited.', {
        action: 'Create a new run with its own contract.',
        who: 'runner',
        retryable: false,
      });
    case 'withdrawn':
      return refuse(
        'ended',
        'The place in the queue was given up: it was withdrawn, or nobody came back for it in time.',
        ASK_ANEW,
      );
    case 'revoked':
      return refuse('ended', 'An operator ended the waiting request.', ASK_ANEW);
    default:
      return refuse(
        'ended',
        'The waiting request was decided again and refused: the map changed, another lease of the run holds it, or its run would wait for itself.',
        ASK_ANEW,
      );
  }
}

export function notYet(notBefore: Micros, now: Micros): Refusal {
  return refuse(
    'lock_delay',
    'The resource set cannot be had before its start time.',
    { action: 'Ask again after the start time.', who: 'runner', retryable: true },
    { retryAfter: notBefore - now },
  );
}

export function limitRefusal(decision: Decision, run: Run): Refusal | null {
  const { state, bounds } = decision;
  if (state.activeLeases + state.waitingLeases + state.delayedLeases >= bounds.maxLeases)
    return limit('live leases and lock delays of the namespace', bounds.maxLeases, 'operator');
  let own = 0;
  for (const _ of state.leasesOfRun.holders(run.runId)) own += 1;
  if (own >= bounds.maxLeasesPerRun) return limit('live leases of one run', bounds.maxLeasesPerRun, 'runner');
  return null;
}

export function waiterLimit(decision: Decision, run: Run): Refusal | null {
  const { state, bounds } = decision;
  if (state.waitingLeases >= bounds.maxWaiters)
    return limit('waiting requests of the namespace', bounds.maxWaiters, 'operator');
  let own = 0;
  for (const holder of state.leasesOfRun.holders(run.runId))
    if (state.leases.get(holder.leaseId)?.state === 'waiting') own += 1;
  return own >= bounds.maxWaitersPerRun
    ? limit('waiting requests of one run', bounds.maxWaitersPerRun, 'runner')
    : null;
}

function limit(what: string, bound: number, who: string): Refusal {
  return refuse('limit', `The bound on ${what} is met: ${bound}.`, {
    action: 'Release what is not needed, then ask again.',
    who,
    retryable: true,
  });
}

export function alreadyHeld(own: Obstacle, writeSet: ExpandedWriteSet): Refusal {
  const blocker = blockerOf(own, writeSet.entries);
  return refuse(
    'already_held',
    `Another lease of the same run holds ${JSON.stringify(blocker.resource)}.`,
    { action: 'Use that lease, or release it first.', who: 'runner', retryable: false },
    { resource: blocker.requestedResource, blockers: [blocker] },
  );
}

export function held(
  entries: readonly { readonly resource: string; readonly impliedBy: string }[],
  obstacles: readonly Obstacle[],
  now: Micros,
  grantable: readonly RequestedEntry[],
): Refusal {
  const blockers = obstacles.slice(0, MAX_BLOCKERS).map((obstacle) => blockerOf(obstacle, entries));
  const first = blockers[0];
  const latest = Math.max(now, ...blockers.map((blocker) => blocker.expiresAt ?? blocker.lockDelayUntil ?? now));
  const delayed = obstacles.length > 0 && obstacles.every(({ lease }) => underLockDelay(lease));
  const found = { resource: first?.requestedResource ?? '', blockers, grantable };
  if (delayed && first !== undefined) return lockDelay(`${meeting(first)}, ${KEPT}`, latest - now, found);
  const by = first?.rule ? ` (by rule ${first.rule})` : '';
  const how = first?.waiting ? 'is waited for by another run ahead of this one' : 'is held by another run';
  return refuse(
    'held',
    first === undefined ? 'Nothing stands in the way.' : `${meeting(first)}, which ${how}${by}.`,
    {
      action: 'Wait (set wait), ask again later, or ask for the grantable part.',
      who: first?.resolver || 'runner',
      retryable: true,
    },
    { ...found, retryAfter: latest > now ? latest - now : null },
  );
}

const KEPT =
  'which another run held until a short while ago: its target accepts what the run was given without asking, and may still do so.';

function lockDelay(message: string, left: Micros, more: Parameters<typeof refuse>[3]): Refusal {
  return refuse(
    'lock_delay',
    message,
    { action: 'Wait (set wait), or ask again after retry_after.', who: 'runner', retryable: true },
    { ...more, retryAfter: Math.max(0, left) },
  );
}

/** After lost history: what was granted then is not known, and may still be accepted. */
export function closedAfterLoss(
  { resource }: ExpandedEntry,
  localKindsFrom: Micros,
  now: Micros,
  grantable: readonly RequestedEntry[],
): Refusal {
  const message = `The database lost history, and with it perhaps a grant of ${JSON.stringify(resource)}, whose target accepts what a run was given without asking.`;
  return lockDelay(message, localKindsFrom - now, { resource, grantable });
}

export function deadlock(heldBy: Refusal, cycle: readonly string[]): Refusal {
  return refuse(
    'deadlock',
    `Waiting would close a cycle of ${cycle.length - 1} runs that wait for each other; ${heldBy.message}`,
    {
      action: 'Release what the others wait for, then ask again; ask for everything in one write set to avoid it.',
      who: 'runner',
      retryable: true,
    },
    { resource: heldBy.resource, blockers: heldBy.blockers, cycle },
  );
}

/** Where a request and its blocker meet; one name when both mean the same resource. */
function meeting({ requestedResource, resource }: Blocker): string {
  const theirs = JSON.stringify(resource);
  return requestedResource === '' || requestedResource === resource
    ? `The request needs ${theirs}`
    : `${JSON.stringify(requestedResource)} meets ${theirs}`;
}
