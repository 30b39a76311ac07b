import { becauseOf, type ConflictMap } from '../conflict-map/index.js';
import { blockerOfDoubt, type Doubt } from '../doubt.js';
import type { ExpandedEntry, RequestedEntry } from '../entry.js';
import { type Frozen, MAX_NAMED_FREEZES, thawsAt } from '../freeze.js';
import { type EndReason, type Lease, underLockDelay } from '../lease.js';
import { blockerOf, MAX_BLOCKERS, type Obstacle } from '../obstacles.js';
import { type Blocker, type Refusal, refuse } from '../refusal.js';
import type { Run } from '../run.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';
import { NEW_RUN } from './run-guard.js';

const ASK_ANEW = { action: 'Ask anew with a new idempotency key.', who: 'runner', retryable: false };

/** A repeated call by a key whose lease or place is gone. */
export function gone(message: string): Refusal {
  return refuse('ended', message, ASK_ANEW);
}

/** What the run of a waiting request is told that ended without a grant, by how it ended. */
const ENDED_WAITING: Readonly<Record<EndReason, Refusal>> = {
  timed_out: refuse('wait_timeout', 'The wait ended before the request could be granted.', {
    action: 'Ask anew with a new idempotency key, or with a longer wait.',
    who: 'runner',
    retryable: true,
  }),
  withdrawn: gone('The place in the queue was given up: its run withdrew it, or nobody came back for it in time.'),
  revoked: gone('An operator ended the waiting request.'),
  run_stopped: refuse('run_ended', 'The run was stopped while the request waited.', NEW_RUN),
  run_ended: refuse('run_ended', 'The run ended while the request waited.', NEW_RUN),
  database_changed: refuse('ended', 'The database lost history, which ended every lease and every waiting request.', {
    action: 'Ask an operator to check what the run did and to resume it; then ask anew with a new idempotency key.',
    who: 'operator',
    retryable: false,
  }),
  map_changed: gone('A change of the conflict map ended the waiting request.'),
  taken_over: gone('An emergency take-over ended the waiting request.'),
  parent_ended: gone("The parent run's lease ended, and the waiting request with it."),
  refused: gone('The waiting request was decided again and refused.'),
  released: gone('The waiting request was released.'),
  // These end what was granted, which a waiting request was not.
  expired: gone('The waiting request expired.'),
  no_progress: gone('The waiting request ended without progress.'),
  unclaimed: gone('Nobody claimed the grant in time.'),
};

/** How a waiting request ended without a grant, as its run is told. */
export function endedWaiting(lease: Lease | undefined): Refusal {
  if (lease === undefined || lease.endReason === null) return gone('The waiting request is not known any more.');
  const { endReason, endRefusal } = lease;
  if (endReason !== 'refused' || endRefusal === null) return ENDED_WAITING[endReason];
  const { kind, message, resource, resolution, cycle = [] } = endRefusal;
  const action = `${resolution.action.replace(/\.$/, '')}; a new try needs a new idempotency key.`;
  return refuse(
    kind,
    `When its turn came, the request was refused: ${message}`,
    { ...resolution, action },
    { resource, cycle },
  );
}

const BREAK_UP = {
  action: 'Release what the others wait for, then ask again; ask for everything in one write set to avoid it.',
  who: 'runner',
  retryable: true,
};

/** A grant to another request, or a new map, made runs wait for each other. */
export function deadlocked(why: string, cycle: readonly string[]): Refusal {
  return refuse('deadlock', `${why}.`, BREAK_UP, { cycle });
}

export function notYet(notBefore: Micros, now: Micros): Refusal {
  return refuse(
    'lock_delay',
    'The resource set cannot be had before its start time.',
    { action: 'Wait for the start time (set wait), or ask again after it.', who: 'runner', retryable: true },
    { retryAfter: notBefore - now },
  );
}

export function limitRefusal(decision: Decision, run: Run, maxLiveLeases: number | null): Refusal | null {
  const { state, bounds } = decision;
  if (state.activeLeases + state.waitingLeases + state.delayedLeases >= bounds.maxLeases)
    return limit('live leases and lock delays of the namespace', bounds.maxLeases, 'operator');
  let own = 0;
  for (const _ of state.leasesOfRun.holders(run.runId)) own += 1;
  if (own >= bounds.maxLeasesPerRun) return limit('live leases of one run', bounds.maxLeasesPerRun, 'runner');
  const { leases } = state.usage.get(run.principal) ?? { leases: 0 };
  if (maxLiveLeases !== null && leases >= maxLiveLeases)
    return limit('live leases of all runs of one principal, by its ceiling', maxLiveLeases, 'runner');
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

export function alreadyHeld(own: Obstacle, entries: readonly ExpandedEntry[]): Refusal {
  const blocker = blockerOf(own, entries);
  return refuse(
    'already_held',
    `Another lease of the same run holds ${JSON.stringify(blocker.resource)}.`,
    { action: 'Use that lease, or release it first.', who: 'runner', retryable: false },
    { resource: blocker.requestedResource, blockers: [blocker] },
  );
}

export function held(
  map: ConflictMap,
  entries: readonly { readonly resource: string; readonly impliedBy: string }[],
  obstacles: readonly Obstacle[],
  now: Micros,
  grantable: readonly RequestedEntry[],
): Refusal {
  const blockers = obstacles.slice(0, MAX_BLOCKERS).map((obstacle) => blockerOf(obstacle, entries));
  const first = blockers[0];
  const latest = Math.max(now, ...blockers.map((blocker) => blocker.expiresAt ?? blocker.lockDelayUntil ?? now));
  const because = first === undefined ? '' : becauseOf(map, first.rule);
  const by = first?.rule ? ` (by rule ${first.rule}${because === '' ? '' : `, since ${because}`})` : '';
  const found = { resource: first?.requestedResource ?? '', blockers, grantable };
  const delayed = obstacles.length > 0 && obstacles.every(({ lease }) => underLockDelay(lease));
  if (delayed && first !== undefined) return lockDelay(`${meeting(first)}${by}, ${KEPT}`, latest - now, found);
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

/** Time alone does not end it: whoever waits, waits for a report or for a person. */
export function inDoubt(
  map: ConflictMap,
  entries: readonly { readonly resource: string; readonly impliedBy: string }[],
  doubts: readonly Doubt[],
  obstacles: readonly Obstacle[],
  grantable: readonly RequestedEntry[],
): Refusal {
  const doubted = doubts.map((doubt) => blockerOfDoubt(map, doubt, entries));
  const others = obstacles.map((obstacle) => blockerOf(obstacle, entries));
  const blockers = [...doubted, ...others].slice(0, MAX_BLOCKERS);
  const [first] = doubted;
  if (first === undefined) throw new Error('nothing is in doubt');
  const by = first.rule === '' ? '' : ` (by rule ${first.rule})`;
  return refuse(
    'in_doubt',
    `${meeting(first)}${by}, and nobody knows what became of a write to ${JSON.stringify(doubts[0]?.admission.resource)} that was let in under a lease which has ended.`,
    {
      action:
        'Wait (set wait) until its target reports the outcome, or have an operator find out and settle it (writ in-doubt list).',
      who: first.resolver || 'operator',
      retryable: true,
    },
    { resource: first.requestedResource, blockers, grantable },
  );
}

/**
 * No holder's end helps while an operator keeps everybody from it; `otherwise` is what stands in the way besides. The
 * message is also told to runners, and kept in plain: it has nothing of what the operator wrote.
 */
export function frozen({ resource, freezes }: Frozen, otherwise: Refusal, now: Micros): Refusal {
  const until = thawsAt(freezes);
  const thaws = until === null ? null : Math.max(until - now, otherwise.retryAfter ?? 0);
  return refuse(
    'frozen',
    `${JSON.stringify(resource)} is frozen: an operator has stopped all grants there.`,
    {
      action:
        'Wait (set wait) until it is thawed, or ask for the grantable part; an operator sees who froze it and why (writ freeze list).',
      who: 'operator',
      retryable: true,
    },
    {
      resource,
      blockers: otherwise.blockers,
      grantable: otherwise.grantable,
      retryAfter: thaws,
      freezes: freezes.slice(0, MAX_NAMED_FREEZES),
    },
  );
}

const KEPT =
  'which another run held until a short while ago: its target decides without asking, and may still accept what that run was given.';

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
  const message = `The database lost history, and with it perhaps a grant of ${JSON.stringify(resource)}, whose target decides without asking, and may still accept what a run was given.`;
  return lockDelay(message, localKindsFrom - now, { resource, grantable });
}

export function deadlock(heldBy: Refusal, cycle: readonly string[]): Refusal {
  return refuse(
    'deadlock',
    `Waiting would close a cycle of ${cycle.length - 1} runs that wait for each other; ${heldBy.message}`,
    BREAK_UP,
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
