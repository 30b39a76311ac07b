import { startOf } from './conflict-map/index.js';
import { isPartOf } from './delegation.js';
import { frozenAmong } from './freeze.js';
import { locksOfLease } from './held-locks.js';
import type { Holder } from './holder-index.js';
import { isLive, isPast, type Lease } from './lease.js';
import { INCOMPATIBLE, type Mode } from './modes.js';
import { liveLeasesOf, type State } from './state.js';
import type { Micros } from './time.js';

/** Who asks: its run, and its place in the queue (Infinity for a request that has none). */
export interface Asker {
  readonly runId: string;
  readonly order: number;
  readonly leaseId: string;
  /** The lease that a part is asked of; absent: what is known of `leaseId`. */
  readonly delegatedFrom?: string;
}

/** The waiting requests for a key in one mode, first come first. */
interface Line {
  readonly requests: readonly Holder[];
  /** Those before it have left the queue. */
  first: number;
}

/** How far a search has got in a line, and whom it met there only where somebody passes. */
interface Walk {
  at: number;
  readonly passed: Holder[];
}

const NOBODY: ReadonlySet<string> = new Set();

/**
 * The queue as one step of a decision sees it: in order, each key read once however many requests are
 * looked at, and who waits for whom. Requests may leave it meanwhile; a step in which any join needs
 * another one (P9).
 */
export class Queue {
  private readonly lines = new Map<string, Line>();
  private searchedAt = -1;
  private readonly waitingFor = new Map<string, ReadonlyMap<string, string>>();
  private readonly waitedFor = new Map<string, ReadonlySet<string>>();
  /** Those that some run which holds and waits waits for. */
  private waitedForByHolders: ReadonlySet<string> | null = null;
  /** Waiting requests, whether they are frozen: a step that freezes or thaws something needs another queue. */
  private readonly frozen = new Map<string, boolean>();
  private readonly waitingHeld = new Map<string, ReadonlySet<string>>();

  /** With `showsAll` those ahead are told also where everybody passes them. */
  constructor(
    private readonly view: { readonly state: State; readonly now: Micros },
    private readonly showsAll = false,
  ) {}

  isEmpty(mode: Mode, key: string): boolean {
    return this.view.state.queued[mode].isEmpty || this.line(mode, key).requests.length === 0;
  }

  /** The requests for a key before a place in the queue, in order. */
  *ahead(mode: Mode, key: string, place: number): Iterable<Lease> {
    const line = this.line(mode, key);
    const { requests } = line;
    while (line.first < requests.length && this.waiting(requests[line.first] as Holder) === undefined) line.first += 1;
    for (let at = line.first; at < requests.length; at += 1) {
      const request = requests[at] as Holder;
      if (request.order >= place) return;
      const lease = this.waiting(request);
      if (lease !== undefined && (this.showsAll || this.counts(lease))) yield lease;
    }
  }

  /** The runs whose requests a request passes although they stand ahead of it: they wait for its own run (P9). */
  passedBy(asker: Asker): { has(runId: string): boolean } {
    return this.mayPass(asker) ? this.runsWaitingFor(asker.runId) : NOBODY;
  }

  /** As `passedBy`; cheaper where many ask about the same one ahead, since whom that waits for is searched once for all. */
  passes(asker: Asker, runAhead: string): boolean {
    return this.mayPass(asker) && this.runsWaitedForBy(runAhead).has(asker.runId);
  }

  /**
   * A request passes only on a circle: it waits for who stands ahead, and that one for its run. Each step to whom a place
   * is behind leads to an earlier place, so a circle needs a run that another one waits for by something else than the
   * request by which it waits itself: one that holds and waits, or waits twice (Coffman's hold and wait). The asker is one
   * by all that its run has besides the request, also by the lease to which it asks to add; or such a run waits for it.
   */
  private mayPass({ runId, leaseId }: Asker): boolean {
    const { state } = this.view;
    for (const other of liveLeasesOf(state, runId))
      if (other.leaseId !== leaseId || other.state === 'active') return true;
    if (state.holdingAndWaiting.size === 0) return false;
    this.forgetOld();
    this.waitedForByHolders ??= this.waitedForByAny([...state.holdingAndWaiting.values()]);
    return this.waitedForByHolders.has(runId);
  }

  /**
   * The runs that wait, directly or through others, for a run, each with the run it waits for on the
   * way there. One search backwards, in which each request is met once for each of its locks.
   */
  runsWaitingFor(target: string): ReadonlyMap<string, string> {
    this.forgetOld();
    const known = this.waitingFor.get(target);
    if (known !== undefined) return known;
    const found = new Map<string, string>();
    this.waitingFor.set(target, found);
    const walks = new Map<Line, Walk>();
    const reached = [target];
    for (const runId of this.view.state.waitingLeases === 0 ? [] : reached) {
      const isNews = (request: Holder): boolean => request.runId !== target && !found.has(request.runId);
      const passes = (request: Holder): boolean => isNews(request) && this.waitingForHeld(request.runId).has(runId);
      for (const lease of this.liveLeases(runId)) {
        if (lease.state === 'waiting' && !this.counts(lease)) continue;
        const place = lease.waiting?.queuedAt ?? Number.NEGATIVE_INFINITY;
        const unless =
          lease.state === 'waiting'
            ? (request: Holder) => this.asksForPart(request) || passes(request)
            : (request: Holder) => this.isPartOf(request, lease);
        for (const line of this.linesMeeting(lease)) {
          for (const request of this.notYetMet(line, walks, 'behind', place, unless)) {
            if (!isNews(request)) continue;
            found.set(request.runId, runId);
            reached.push(request.runId);
          }
        }
      }
    }
    return found;
  }

  /** The runs that a run waits for, directly or through others: what they hold, or their place ahead. */
  runsWaitedForBy(from: string): ReadonlySet<string> {
    this.forgetOld();
    let found = this.waitedFor.get(from);
    if (found === undefined) {
      found = this.waitedForByAny([from]);
      this.waitedFor.set(from, found);
    }
    return found;
  }

  /** Those that at least one of these runs waits for, besides themselves. */
  private waitedForByAny(runIds: readonly string[]): ReadonlySet<string> {
    const { state, now } = this.view;
    const found = new Set<string>();
    const walks = new Map<Line, Walk>();
    const heldMet = new Set<string>();
    const reached = new Set(runIds);
    const reach = (runId: string): void => {
      if (reached.has(runId)) return;
      found.add(runId);
      reached.add(runId);
    };
    for (const runId of reached) {
      const passes = (request: Holder): boolean => this.waitingForHeld(runId).has(request.runId);
      for (const lease of liveLeasesOf(state, runId)) {
        if (lease.state !== 'waiting') continue;
        for (const { key, mode } of locksOfLease(lease)) {
          for (const theirMode of INCOMPATIBLE[mode]) {
            const place = lease.waiting?.queuedAt ?? 0;
            const line = this.line(theirMode, key);
            const isPart = lease.delegatedFrom !== '';
            for (const request of isPart ? [] : this.notYetMet(line, walks, 'ahead', place, passes)) {
              const ahead = this.waiting(request);
              if (ahead !== undefined && this.counts(ahead)) reach(request.runId);
            }
            if (!isPart && heldMet.has(theirMode + key)) continue;
            if (!isPart) heldMet.add(theirMode + key);
            for (const holder of state.held[theirMode].holders(key)) {
              const held = state.leases.get(holder.leaseId);
              // What is under lock delay waits for time alone, and no run can end it.
              if (held !== undefined && isLive(held, now) && !isPartOf(state, lease, held.leaseId)) reach(holder.runId);
            }
          }
        }
      }
    }
    return found;
  }

  /**
   * The runs that wait, directly or through others, for what a run holds, whatever the queue is like. It
   * passes them for certain, so its own places behind theirs are not what it waits for. That this alone
   * says which places count is no approximation: a longer way, by places too, back to the run whose place
   * it is closes a circle in which any of the places may be the one that is passed.
   */
  private waitingForHeld(target: string): ReadonlySet<string> {
    const known = this.waitingHeld.get(target);
    if (known !== undefined) return known;
    const found = new Set<string>();
    this.waitingHeld.set(target, found);
    const walks = new Map<Line, Walk>();
    const reached = [target];
    for (const runId of reached) {
      for (const lease of this.liveLeases(runId)) {
        if (lease.state === 'waiting') continue;
        const isPart = (request: Holder): boolean => this.isPartOf(request, lease);
        for (const line of this.linesMeeting(lease)) {
          for (const request of this.notYetMet(line, walks, 'behind', Number.NEGATIVE_INFINITY, isPart)) {
            if (request.runId === target || found.has(request.runId)) continue;
            found.add(request.runId);
            reached.push(request.runId);
          }
        }
      }
    }
    return found;
  }

  /** It waits behind nobody: the whole keeps those ahead of it waiting as it is. */
  private asksForPart({ leaseId }: Holder): boolean {
    const { delegations, leases } = this.view.state;
    return delegations.size > 0 && (leases.get(leaseId)?.delegatedFrom ?? '') !== '';
  }

  /** A request for a part of a lease does not wait for it: it is met again on the way from another one. */
  private isPartOf(request: Holder, lease: Lease): boolean {
    const { state } = this.view;
    const waiting = state.delegations.size === 0 ? undefined : state.leases.get(request.leaseId);
    return waiting !== undefined && isPartOf(state, waiting, lease.leaseId);
  }

  private *liveLeases(runId: string): Iterable<Lease> {
    for (const lease of liveLeasesOf(this.view.state, runId)) if (!isPast(lease, this.view.now)) yield lease;
  }

  private *linesMeeting(lease: Lease): Iterable<Line> {
    for (const { key, mode } of locksOfLease(lease))
      for (const theirMode of INCOMPATIBLE[mode]) yield this.line(theirMode, key);
  }

  /**
   * The requests of a line on one side of a place that this search has not met, save those between whom
   * and the place somebody passes; it keeps how far it got, and meets those again from another place.
   */
  private *notYetMet(
    line: Line,
    walks: Map<Line, Walk>,
    side: 'ahead' | 'behind',
    place: number,
    passed: (request: Holder) => boolean,
  ): Iterable<Holder> {
    const { requests } = line;
    if (requests.length === 0) return;
    let walk = walks.get(line);
    if (walk === undefined) {
      walk = { at: side === 'ahead' ? 0 : requests.length - 1, passed: [] };
      walks.set(line, walk);
    }
    const isBeyond = (request: Holder): boolean => (side === 'ahead' ? request.order >= place : request.order <= place);
    for (const request of walk.passed.splice(0)) {
      if (isBeyond(request) || passed(request)) walk.passed.push(request);
      else yield request;
    }
    for (let next = requests[walk.at]; next !== undefined && !isBeyond(next); next = requests[walk.at]) {
      walk.at += side === 'ahead' ? 1 : -1;
      if (this.waiting(next) === undefined) continue;
      if (passed(next)) walk.passed.push(next);
      else yield next;
    }
  }

  private line(mode: Mode, key: string): Line {
    const id = mode + key;
    let line = this.lines.get(id);
    if (line === undefined) {
      line = { requests: this.view.state.queued[mode].inOrder(key), first: 0 };
      this.lines.set(id, line);
    }
    return line;
  }

  /** Until its resource set may be had, or while it is frozen, a request keeps its place, and everybody passes it. */
  private counts(lease: Lease): boolean {
    const { state, now } = this.view;
    return startOf(state.map, lease.request) <= now && !this.isFrozen(lease);
  }

  private isFrozen({ leaseId, entries }: Lease): boolean {
    const { freezes } = this.view.state;
    if (freezes.size === 0) return false;
    let isFrozen = this.frozen.get(leaseId);
    if (isFrozen === undefined) {
      isFrozen = frozenAmong(freezes, entries) !== null;
      this.frozen.set(leaseId, isFrozen);
    }
    return isFrozen;
  }

  /** The request as it is now; undefined: it has left the queue. */
  private waiting(request: Holder): Lease | undefined {
    const lease = this.view.state.leases.get(request.leaseId);
    return lease?.state === 'waiting' ? lease : undefined;
  }

  /** Who waits for whom is another question after every event. */
  private forgetOld(): void {
    const { revision } = this.view.state;
    if (revision === this.searchedAt) return;
    this.searchedAt = revision;
    this.waitingFor.clear();
    this.waitedFor.clear();
    this.waitedForByHolders = null;
    this.waitingHeld.clear();
  }
}
