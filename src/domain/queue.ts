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

/** How far one search has got in a line, and the requests that it left out so far because passing applies to them. */
interface Walk {
  at: number;
  readonly passed: Holder[];
}

const NOBODY: ReadonlySet<string> = new Set();

/**
 * Who waits for whom, as one step of a decision sees it (P9).
 *
 * A waiting request waits for every run that holds a lock incompatible with one of its own, and for every request ahead
 * of it, by place, that asks for such a lock. There is one exception: a request **passes** those ahead of it whose runs
 * wait, directly or through others, for its own run. Say A holds x, B waits for x and y, and A now asks for y. B stands
 * ahead of A at y, but will get nothing before A is done; if A waited behind it, both would wait for ever.
 *
 * Each key is read once, however many requests are looked at. Requests may leave the queue while a Queue is in use;
 * after one has joined, another Queue is needed.
 */
export class Queue {
  private readonly lines = new Map<string, Line>();
  private searchedAt = -1;
  private readonly waitingFor = new Map<string, ReadonlyMap<string, string>>();
  private readonly waitedFor = new Map<string, ReadonlySet<string>>();
  /** The runs that are waited for by some run that holds and waits. */
  private waitedForByHolders: ReadonlySet<string> | null = null;
  /** By lease id, whether a waiting request is frozen. A step that freezes or thaws something needs another Queue. */
  private readonly frozen = new Map<string, boolean>();
  private readonly waitingHeld = new Map<string, ReadonlySet<string>>();

  /** With `showsAll`, `ahead` also yields requests that everybody passes (see `counts`): for showing the queue to people. */
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

  /**
   * Whether the asker passes this run. The same answer as `passedBy`, and cheaper where many ask about one run ahead: the
   * search is for whom that run waits for, and is made once.
   */
  passes(asker: Asker, runAhead: string): boolean {
    return this.mayPass(asker) && this.runsWaitedForBy(runAhead).has(asker.runId);
  }

  /**
   * Whether the asker can pass anybody at all: a cheap test that spares the search in most cases.
   *
   * Where somebody is passed, there would be a circle without passing: the asker behind them, and they waiting for the
   * asker's run. Steps from a request to those ahead of it lead to ever earlier places and never come back, so a circle
   * contains a run that is waited for because of something other than the request by which it waits: a run that holds
   * and waits, or has two waiting requests (hold and wait, one of Coffman's conditions for a deadlock). Either that is
   * the asker's run, by whatever it has beside this request (the lease it asks to add to included), or it is another
   * run, which waits for the asker's.
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
   * The runs that wait for this one, directly or through others; each with the run that it waits for on the way there,
   * from which a deadlock's cycle is told. One search backwards from the target, in which each request is met once for
   * each of its locks.
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

  /** The runs that this one waits for, directly or through others, because of what they hold or of their places. */
  runsWaitedForBy(from: string): ReadonlySet<string> {
    this.forgetOld();
    let found = this.waitedFor.get(from);
    if (found === undefined) {
      found = this.waitedForByAny([from]);
      this.waitedFor.set(from, found);
    }
    return found;
  }

  /** The runs that at least one of these waits for, directly or through others; these themselves are left out. */
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
   * The runs that wait for this one because of locks that are held, directly or through others; places are not looked
   * at. This run passes all of them, so where it stands behind one of them it does not wait.
   *
   * Held locks are enough to tell which places do not count. If a run ahead waits for this one only by a way that also
   * uses places, that way and the place in question form a circle of places and locks, and it makes no difference to
   * the answer which of its places is taken as the passed one.
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

  /** A request for a part of its parent's lease waits behind nobody: the parent holds it, so those ahead wait anyway. */
  private asksForPart({ leaseId }: Holder): boolean {
    const { delegations, leases } = this.view.state;
    return delegations.size > 0 && (leases.get(leaseId)?.delegatedFrom ?? '') !== '';
  }

  /** A request for a part of a lease does not wait for that lease; it may wait for another one. */
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
   * The requests of a line that stand ahead of, or behind, a place and that this search has not met yet. Those for which
   * `passed` holds are left out and kept: seen from another place, of another run, they may count. The walk remembers how
   * far it got, so that a line is gone through once for a search.
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

  /** Whether others wait behind it. Before its resource set may be had, and while it is frozen, everybody passes it; its place stays. */
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

  /** Every event can change who waits for whom. */
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
