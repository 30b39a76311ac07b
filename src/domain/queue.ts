import { locksOfLease } from './held-locks.js';
import type { Holder } from './holder-index.js';
import { isLive, isPast } from './lease.js';
import { INCOMPATIBLE, type Mode } from './modes.js';
import { liveLeasesOf, type State } from './state.js';
import type { Micros } from './time.js';

/** The waiting requests for a key in one mode, first come first. */
interface Line {
  readonly requests: readonly Holder[];
  /** Those before it have left the queue. */
  first: number;
}

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

  constructor(private readonly view: { readonly state: State; readonly now: Micros }) {}

  /** The requests for a key before a place in the queue, in order. */
  *ahead(mode: Mode, key: string, place: number): Iterable<Holder> {
    const line = this.line(mode, key);
    const { requests } = line;
    while (line.first < requests.length && !this.waits(requests[line.first] as Holder)) line.first += 1;
    for (let at = line.first; at < requests.length; at += 1) {
      const request = requests[at] as Holder;
      if (request.order >= place) return;
      if (this.waits(request)) yield request;
    }
  }

  /**
   * The runs that wait, directly or through others, for a run, each with the run it waits for on the
   * way there. One search backwards, in which each request is met once for each of its locks.
   */
  runsWaitingFor(target: string): ReadonlyMap<string, string> {
    this.forgetOld();
    const known = this.waitingFor.get(target);
    if (known !== undefined) return known;
    const { state, now } = this.view;
    const found = new Map<string, string>();
    this.waitingFor.set(target, found);
    const ends = new Map<Line, number>();
    const reached = [target];
    for (const runId of state.waitingLeases === 0 ? [] : reached) {
      for (const lease of liveLeasesOf(state, runId)) {
        if (isPast(lease, now)) continue;
        const place = lease.state === 'waiting' ? (lease.waiting?.queuedAt ?? 0) : Number.NEGATIVE_INFINITY;
        for (const { key, mode } of locksOfLease(lease)) {
          for (const theirMode of INCOMPATIBLE[mode]) {
            for (const request of this.notYetMet(this.line(theirMode, key), ends, 'behind', place)) {
              if (request.runId === target || found.has(request.runId)) continue;
              found.set(request.runId, runId);
              reached.push(request.runId);
            }
          }
        }
      }
    }
    return found;
  }

  /** The runs that a run waits for, directly or through others: what they hold, or their place ahead. */
  runsWaitedForBy(from: string): ReadonlySet<string> {
    this.forgetOld();
    const known = this.waitedFor.get(from);
    if (known !== undefined) return known;
    const { state, now } = this.view;
    const found = new Set<string>();
    this.waitedFor.set(from, found);
    const ends = new Map<Line, number>();
    const heldMet = new Set<string>();
    const reached = [from];
    const reach = (runId: string): void => {
      if (runId === from || found.has(runId)) return;
      found.add(runId);
      reached.push(runId);
    };
    for (const runId of reached) {
      for (const lease of liveLeasesOf(state, runId)) {
        if (lease.state !== 'waiting') continue;
        for (const { key, mode } of locksOfLease(lease)) {
          for (const theirMode of INCOMPATIBLE[mode]) {
            const place = lease.waiting?.queuedAt ?? 0;
            for (const request of this.notYetMet(this.line(theirMode, key), ends, 'ahead', place)) reach(request.runId);
            if (heldMet.has(theirMode + key)) continue;
            heldMet.add(theirMode + key);
            for (const holder of state.held[theirMode].holders(key)) {
              const held = state.leases.get(holder.leaseId);
              // What is under lock delay waits for time alone, and no run can end it.
              if (held !== undefined && isLive(held, now)) reach(holder.runId);
            }
          }
        }
      }
    }
    return found;
  }

  /** The requests of a line on one side of a place that this search has not met; it keeps how far it got. */
  private *notYetMet(line: Line, ends: Map<Line, number>, side: 'ahead' | 'behind', place: number): Iterable<Holder> {
    const { requests } = line;
    const step = side === 'ahead' ? 1 : -1;
    let at = ends.get(line) ?? (side === 'ahead' ? 0 : requests.length - 1);
    for (let next = requests[at]; next !== undefined; next = requests[at]) {
      if (side === 'ahead' ? next.order >= place : next.order <= place) break;
      at += step;
      ends.set(line, at);
      if (this.waits(next)) yield next;
    }
  }

  private line(mode: Mode, key: string): Line {
    const id = mode + key;
    let line = this.lines.get(id);
    if (line === undefined) {
      const requests = [...this.view.state.queued[mode].holders(key)].sort((a, b) => a.order - b.order);
      line = { requests, first: 0 };
      this.lines.set(id, line);
    }
    return line;
  }

  private waits(request: Holder): boolean {
    return this.view.state.leases.get(request.leaseId)?.state === 'waiting';
  }

  /** Who waits for whom is another question after every event. */
  private forgetOld(): void {
    const { revision } = this.view.state;
    if (revision === this.searchedAt) return;
    this.searchedAt = revision;
    this.waitingFor.clear();
    this.waitedFor.clear();
  }
}
