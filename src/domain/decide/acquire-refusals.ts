import { becauseOf, type ConflictMap } from '../conflict-map/index.js';
import { blockerOfDoubt, type Doubt } from '../doubt.js';
import type { ExpandedEntry, RequestedEntry } from '../entry.js';
import { type Frozen, MAX_NAMED_FREEZES, thawsAt } from '../freeze.js';
import { type EndReason, type Lease, underLockDelay } from '../lease.js';
import type { Lock } from '../locks.js';
import { blockerOf, MAX_BLOCKERS, type Obstacle, ownHolder } from '../obstacles.js';
import type { Asker } from '../queue.js';
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

/** What the run of a waiting request is told that ended without a grant, by how it ended; `what` it had asked for. */
const ENDED_WAITING: Readonly<Record<EndReason, (what: string) => Refusal>> = {
  timed_out: (what) =>
    refuse('wait_timeout', `The wait ended before ${what} could be granted.`, {
      action: 'Ask anew with a new idempotency key, or with a longer wait.',
      who: 'runner',
      retryable: true,
    }),
  withdrawn: (what) =>
    gone(`The place in the queue for ${what} was given up: its run withdrew it, or nobody came back for it in time.`),
  revoked: (what) => gone(`An operator ended the request that waited for ${what}.`),
  run_stopped: (what) => refuse('run_ended', `The run was stopped while its request waited for ${what}.`, NEW_RUN),
  run_ended: (what) => refuse('run_ended', `The run ended while its request waited for ${what}.`, NEW_RUN),
  database_changed: (what) =>
    refuse(
      'ended',
      `The database lost history, which ended every lease and every waiting request; this one waited for ${what}.`,
      {
        action: 'Ask an operator to check what the run did and to resume it; then ask anew with a new idempotency key.',
        who: 'operator',
        retryable: false,
      },
    ),
  map_changed: (what) => gone(`A change of the conflict map ended the request that waited for ${what}.`),
  taken_over: (what) => gone(`An emergency take-over ended the request that waited for ${what}.`),
  parent_ended: (what) =>
    gone(`The parent run's lease ended, and with it the request that waited for a part of it: ${what}.`),
  refused: (what) => gone(`The request that waited for ${what} was decided again and refused.`),
  released: (what) => gone(`The request that waited for ${what} was released.`),
  // These end what was granted, which a waiting request was not.
  expired: (what) => gone(`The request that waited for ${what} expired.`),
  no_progress: (what) => gone(`The request that waited for ${what} ended without progress.`),
  unclaimed: (what) => gone(`Nobody claimed the grant of ${what} in time.`),
};

/** How a waiting request ended without a grant, as its run is told. */
export function endedWaiting(lease: Lease | undefined): Refusal {
  if (lease === undefined || lease.endReason === null) return gone('The waiting request is not known any more.');
  const { endReason, endRefusal, entries } = lease;
  if (endReason !== 'refused' || endRefusal === null) {
    const asked = entries.filter(({ impliedBy }) => impliedBy === '').map(({ resource }) => resource);
    return { ...ENDED_WAITING[endReason](someOf(asked)), resource: asked[0] ?? '' };
  }
  const { kind, message, resource, resolution, cycle = [] } = endRefusal;
  const action = `${resolution.action.replace(/\.$/, '')}; a new try needs a new idempotency key.`;
  return refuse(
    kind,
    `When its turn came, the request was refused: ${message}`,
    { ...resolution, action },
    { resource, cycle },
  );
}

/** The first of what a request asked for, and how many there are besides. */
function someOf(resources: readonly string[]): string {
  const [first, ...others] = new Set(resources);
  if (first === undefined) return 'its write set';
  return others.length === 0 ? JSON.stringify(first) : `${JSON.stringify(first)} and ${others.length} more`;
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

/** When a named resource set can be had; null and 0 where none is named. */
export interface Start {
  readonly resourceSet: string | null;
  readonly notBefore: Micros;
}

export const NO_START: Start = { resourceSet: null, notBefore: 0 };

export function notYet({ resourceSet, notBefore }: Start, now: Micros): Refusal {
  return refuse(
    'lock_delay',
    `The resource set ${JSON.stringify(resourceSet ?? '')} cannot be had before its start time (not_before).`,
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
  for (const _ of state.waitingOfRun.holders(run.runId)) own += 1;
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

/** What the run itself holds of it by another lease; asked when all that time has ended is over, since that may grant it. */
export function heldByItself(
  { state, now }: Decision,
  entries: readonly ExpandedEntry[],
  locks: readonly Lock[],
  asker: Asker,
): Refusal | null {
  const own = ownHolder(state, locks, asker, now);
  if (own === null) return null;
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
  const by = freezes.some(({ pattern }) => pattern === resource) ? '' : `, by ${JSON.stringify(freezes[0]?.pattern)}`;
  return refuse(
    'frozen',
    `${JSON.stringify(resource)} is frozen${by}: an operator has stopped all grants there.`,
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
