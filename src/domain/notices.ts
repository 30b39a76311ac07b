import { startOf } from './conflict-map/index.js';
import { isPartOf } from './delegation.js';
import type { DomainEvent } from './event.js';
import { frozenAmong } from './freeze.js';
import { locksOfLease } from './held-locks.js';
import type { Holder } from './holder-index.js';
import { changedInputs, readersOf } from './inputs.js';
import { type Lease, queueEnd } from './lease.js';
import { INCOMPATIBLE } from './modes.js';
import type { State } from './state.js';
import type { Micros } from './time.js';

/**
 * What a holder is told with a renewal. Each is told again with every renewal for as long as it is so, so that a lost
 * answer loses nothing; none says who the other run is.
 */
export type LeaseNotice =
  /** Another run waits for what the lease holds. */
  | { readonly kind: 'asked_to_yield'; readonly resource: string }
  /** Another run was granted a write, at that time, on what the lease reads: its writes are to check the version again. */
  | { readonly kind: 'input_changed'; readonly resource: string; readonly changedAt: Micros };

/** Places in the queue looked at for all leases of one renewal; past that, who waits is not told this time. */
const MAX_LOOKS = 20_000;

/** The notices for leases that were renewed together, in their order. Where nobody waits and nobody reads there is nothing to do. */
export function noticesOf(
  view: { readonly state: State; readonly now: Micros },
  leases: readonly Lease[],
  maxLooks = MAX_LOOKS,
): LeaseNotice[][] {
  if (view.state.waitingLeases === 0 && view.state.inputs.readingLeases === 0) return leases.map(() => []);
  const looks = { left: maxLooks };
  // Each renewal begins with another lease: no lease is always past the bound.
  const first = view.now % Math.max(1, leases.length);
  const inTurn = [...leases.slice(first), ...leases.slice(0, first)];
  const wanted = new Map(inTurn.map((lease) => [lease.leaseId, wantedResources(view, lease, looks)]));
  return leases.map((lease) => [
    ...(wanted.get(lease.leaseId) ?? []).map((resource) => ({ kind: 'asked_to_yield', resource }) as const),
    ...changedInputs(view.state.inputs, lease).map((changed) => ({ kind: 'input_changed', ...changed }) as const),
  ]);
}

/** Holders that one event is news to; who is past that hears of it later. */
const MAX_CONCERNED = 1_000;

/**
 * Leases whose holders may have something to hear because of an event: how it ended, that it was renewed, that somebody
 * waits for it, or was granted a write on what it reads.
 */
export function* concernedBy(state: State, { body }: DomainEvent, most = MAX_CONCERNED): Iterable<string> {
  if (body.kind === 'lease_ended') yield body.leaseId;
  else if (body.kind === 'leases_renewed') for (const { leaseId } of body.renewals) yield leaseId;
  else if (body.kind === 'lease_queued') yield* idsOf(inTheWay(state, body.lease), most);
  else if (body.kind === 'lease_granted') yield* idsOf(readersOf(state.inputs, body.lease), most);
}

function* idsOf(holders: Iterable<Holder>, most: number): Iterable<string> {
  let left = most;
  for (const { leaseId } of holders) {
    if (left <= 0) return;
    left -= 1;
    yield leaseId;
  }
}

function* inTheWay(state: State, waiting: Lease): Iterable<Holder> {
  for (const { key, mode } of locksOfLease(waiting))
    for (const theirMode of INCOMPATIBLE[mode]) yield* state.held[theirMode].holders(key);
}

/** What the lease names that another run waits for, each once. */
function wantedResources(
  { state, now }: { readonly state: State; readonly now: Micros },
  lease: Lease,
  looks: { left: number },
): string[] {
  if (state.waitingLeases === 0) return [];
  const wanted = new Set<string>();
  for (const lock of locksOfLease(lease)) {
    const resource = lease.entries[lock.entry]?.resource ?? '';
    for (const theirMode of INCOMPATIBLE[lock.mode]) {
      if (looks.left <= 0) return [...wanted];
      looks.left -= 1;
      if (wanted.has(resource)) break;
      for (const waiter of state.queued[theirMode].holders(lock.key)) {
        looks.left -= 1;
        if (waiter.runId !== lease.runId && waits(state, waiter.leaseId, lease, now)) wanted.add(resource);
        if (wanted.has(resource) || looks.left <= 0) break;
      }
    }
  }
  return [...wanted];
}

/** Whether the place still counts, and the request could be granted now if nobody held it. */
function waits(state: State, leaseId: string, holder: Lease, now: Micros): boolean {
  const waiting = state.leases.get(leaseId);
  // Who asks for a part of a lease has been given it; nothing is to be yielded.
  if (waiting === undefined || isPartOf(state, waiting, holder.leaseId)) return false;
  if (waiting.waiting === null || queueEnd(waiting.waiting, now) !== null) return false;
  return startOf(state.map, waiting.request) <= now && frozenAmong(state.freezes, waiting.entries) === null;
}
