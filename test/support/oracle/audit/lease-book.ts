import type { Audited } from './audited-lease.js';

const NOBODY: ReadonlyMap<string, Audited> = new Map();

/**
 * The leases that the log has spoken of, each as it is now; kept so that a history of very many leases is judged in a
 * time that grows with what happens, and not with all that there is.
 */
export class LeaseBook {
  private readonly all = new Map<string, Audited>();
  private readonly activeByRun = new Map<string, Map<string, Audited>>();
  private readonly waitingById = new Map<string, Audited>();
  /** Parts that have not ended, by what they are a part of. */
  private readonly partsByWhole = new Map<string, Map<string, Audited>>();
  private readonly partlySuspended = new Map<string, Audited>();
  private changed = new Set<string>();

  get(leaseId: string): Audited | undefined {
    return this.all.get(leaseId);
  }

  has(leaseId: string): boolean {
    return this.all.has(leaseId);
  }

  values(): Iterable<Audited> {
    return this.all.values();
  }

  /** Writes down a lease as it is from now on. */
  put(lease: Audited): void {
    const { leaseId, runId, delegatedFrom, state } = lease;
    this.all.set(leaseId, lease);
    this.changed.add(leaseId);
    const ofRun = this.activeByRun.get(runId) ?? new Map<string, Audited>();
    if (keep(ofRun, lease, state === 'active')) this.activeByRun.set(runId, ofRun);
    else this.activeByRun.delete(runId);
    keep(this.waitingById, lease, state === 'waiting');
    keep(this.partlySuspended, lease, state === 'active' && lease.entries.some(({ suspended }) => suspended));
    if (delegatedFrom === '') return;
    const parts = this.partsByWhole.get(delegatedFrom) ?? new Map<string, Audited>();
    if (keep(parts, lease, state !== 'ended')) this.partsByWhole.set(delegatedFrom, parts);
    else this.partsByWhole.delete(delegatedFrom);
  }

  /** Active leases, whether or not their time is over. */
  *active(): Iterable<Audited> {
    for (const ofRun of this.activeByRun.values()) yield* ofRun.values();
  }

  /** Active leases of every run but this one. */
  *activeOfOthers(runId: string): Iterable<Audited> {
    for (const [other, ofRun] of this.activeByRun) if (other !== runId) yield* ofRun.values();
  }

  get waiting(): ReadonlyMap<string, Audited> {
    return this.waitingById;
  }

  /** What has not ended of a lease's parts. */
  partsOf(leaseId: string): ReadonlyMap<string, Audited> {
    return this.partsByWhole.get(leaseId) ?? NOBODY;
  }

  /** Every part of a lease that is active. */
  *activeParts(): Iterable<Audited> {
    for (const parts of this.partsByWhole.values())
      for (const part of parts.values()) if (part.state === 'active') yield part;
  }

  /** Active leases of which a child run holds something. */
  get suspended(): Iterable<Audited> {
    return this.partlySuspended.values();
  }

  /** The active ones that were put since it was asked last. */
  takeChanged(): Audited[] {
    const changed = [...this.changed].map((leaseId) => this.all.get(leaseId) as Audited);
    this.changed = new Set();
    return changed.filter(({ state }) => state === 'active');
  }
}

/** Whether there are any after that. */
function keep(leases: Map<string, Audited>, lease: Audited, belongs: boolean): boolean {
  if (belongs) leases.set(lease.leaseId, lease);
  else leases.delete(lease.leaseId);
  return leases.size > 0;
}
