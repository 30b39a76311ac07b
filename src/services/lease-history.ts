import type { DomainEvent } from '../domain/event.js';
import { type LeaseEntry, staysLocked } from '../domain/lease.js';
import { covers } from '../domain/resource.js';
import type { Micros } from '../domain/time.js';

/** A lease from one time to another, with what it covered. */
interface Span {
  readonly from: Micros;
  until: Micros;
  readonly entries: readonly LeaseEntry[];
}

interface Held {
  readonly leaseId: string;
  readonly runId: string;
  readonly spans: Span[];
  /** The last of them but for what is left over of view and local kinds. */
  current: Span;
  readonly revision: number;
  endReason: string;
}

const entryKey = (runId: string, resource: string): string => JSON.stringify([runId, resource]);

/** Adds to the list of a key. */
export function addTo<T>(lists: Map<string, T[]>, key: string, item: T): void {
  const known = lists.get(key);
  if (known === undefined) lists.set(key, [item]);
  else known.push(item);
}

/** A resource and all above it, up to its first segment. */
function* withAncestors(resource: string): Iterable<string> {
  yield resource;
  for (let end = resource.lastIndexOf('/'); end > 0; end = resource.lastIndexOf('/', end - 1))
    yield resource.slice(0, end);
}

/** Who held which of some resources when, as the log tells event by event. */
export class LeaseHistory {
  private readonly named = new Set<string>();
  /** Those that have not ended. */
  private readonly live = new Map<string, Held>();
  /** By run and resource of an entry, in the order of their grants: a record is judged by few, however long the log is. */
  private readonly byEntry = new Map<string, Held[]>();

  /** What covers none of the resources is passed over. */
  constructor(resources: readonly string[]) {
    for (const resource of resources) for (const path of withAncestors(resource)) this.named.add(path);
  }

  note({ body, time }: DomainEvent, revision: number): void {
    switch (body.kind) {
      case 'lease_granted':
        this.begin(body.lease.leaseId, body.lease.runId, body.lease.entries, time, body.lease.expiresAt, revision);
        return;
      case 'leases_renewed':
        for (const { leaseId, expiresAt } of body.renewals) this.extend(leaseId, expiresAt);
        return;
      case 'lease_amended':
        this.leave(body.leaseId, body.left?.entries ?? [], time, body.left?.until ?? time);
        this.change(body.leaseId, body.entries, time);
        return;
      case 'lease_reexpanded':
        this.change(body.leaseId, body.entries, time);
        return;
      case 'lease_ended':
        this.end(body.leaseId, time, body.endReason, body.lockDelayUntil);
        return;
      case 'database_identified':
        if (!body.lostHistory) return;
        for (const leaseId of this.live.keys()) this.end(leaseId, time, 'database_changed', body.localKindsFrom);
        return;
    }
  }

  /** Each time in which a lease of the run let it do that, in the order of their grants. */
  covering(runId: string, resource: string, action: string): { readonly held: Held; readonly span: Span }[] {
    return this.heldOn(runId, resource).flatMap((held) =>
      held.spans.filter((span) => allows(span, resource, action)).map((span) => ({ held, span })),
    );
  }

  private begin(
    leaseId: string,
    runId: string,
    entries: readonly LeaseEntry[],
    from: Micros,
    expiresAt: Micros | null,
    revision: number,
  ): void {
    const current = { from, until: expiresAt ?? from, entries: this.relevant(entries) };
    const held: Held = { leaseId, runId, revision, endReason: 'expired', spans: [], current };
    this.live.set(leaseId, held);
    this.addSpan(held, current);
  }

  private addSpan(held: Held, span: Span): void {
    held.spans.push(span);
    for (const resource of new Set(span.entries.map((entry) => entry.resource))) {
      const key = entryKey(held.runId, resource);
      if (this.byEntry.get(key)?.at(-1) !== held) addTo(this.byEntry, key, held);
    }
  }

  private extend(leaseId: string, until: Micros): void {
    const held = this.live.get(leaseId);
    if (held !== undefined) held.current.until = until;
  }

  /** What it loses of view and local kinds their targets may let it write until then: they do not ask (P3). */
  private leave(leaseId: string, entries: readonly LeaseEntry[], from: Micros, until: Micros): void {
    const held = this.live.get(leaseId);
    const left = this.relevant(entries.filter(staysLocked));
    if (held !== undefined && until > from && left.length > 0) this.addSpan(held, { from, until, entries: left });
  }

  private change(leaseId: string, entries: readonly LeaseEntry[], at: Micros): void {
    const held = this.live.get(leaseId);
    if (held === undefined) return;
    const { until } = held.current;
    held.current.until = Math.min(until, at);
    held.current = { from: at, until, entries: this.relevant(entries) };
    this.addSpan(held, held.current);
  }

  /** `inForceAt`: at view and local kinds, unless it expires before; null: at once. */
  private end(leaseId: string, at: Micros, reason: string, inForceAt: Micros | null): void {
    const held = this.live.get(leaseId);
    if (held === undefined) return;
    const { until, entries } = held.current;
    this.leave(leaseId, entries, at, Math.min(until, inForceAt ?? at));
    held.current.until = Math.min(until, at);
    held.endReason = reason;
    // Its life is known; nothing refers to it by its id any more.
    this.live.delete(leaseId);
  }

  private relevant(entries: readonly LeaseEntry[]): readonly LeaseEntry[] {
    return entries.filter(
      ({ access, observedRefusal, suspended, resource }) =>
        access === 'write' && observedRefusal === null && !suspended && this.named.has(resource),
    );
  }

  /** Leases of a run with an entry on a resource, or above it, in the order of their grants. */
  private heldOn(runId: string, resource: string): Held[] {
    const found = new Set<Held>();
    for (const path of withAncestors(resource))
      for (const held of this.byEntry.get(entryKey(runId, path)) ?? []) found.add(held);
    return [...found].sort((a, b) => a.revision - b.revision);
  }
}

function allows(span: Span, resource: string, action: string): boolean {
  return span.entries.some((entry) => covers(entry, resource) && entry.actions.includes(action));
}
