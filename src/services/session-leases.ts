import { setImmediate as nextTurn } from 'node:timers/promises';
import { endsAt, type Lease } from '../domain/lease.js';
import { concernedBy, type LeaseNotice, noticesOf } from '../domain/notices.js';
import type { Micros } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import type { LogPosition, PlacedEvent } from '../engine/recent-events.js';
import type { SessionEvent } from './api.js';

/** Who is told what happens to a lease. */
export type Tell = (event: SessionEvent) => void;

/** A lease of a session, and what its session was told of it. */
interface Attached {
  readonly engine: NamespaceEngine;
  readonly leaseId: string;
  readonly tell: Tell;
  inJeopardy: boolean;
  wanted: ReadonlySet<string>;
  changedAt: ReadonlyMap<string, Micros>;
}

const NOTHING: ReadonlySet<string> = new Set();
const NEVER: ReadonlyMap<string, Micros> = new Map();
const LOOK_EVERY_MS = 100;
/** At least so many are looked at in one look, or this part of all of them. */
const MIN_LOOKED_AT = 2_000;
const LOOKED_AT_SHARE = 1 / 20;
/** A renewal is overdue when this part of the ttl is left. */
const OVERDUE_SHARE = 1 / 2;

/** How far the log of a namespace was followed for its leases. */
interface Follow {
  from: LogPosition;
  isReading: boolean;
  more: boolean;
  readonly stop: () => void;
}

/**
 * The leases of all sessions on this replica. Those that an event is about are looked at as soon as it is known here. And
 * some are looked at ten times a second, all of them within two seconds however many there are: for what no event says,
 * such as a renewal that is overdue, and for what was missed (P11). Nothing rests on either being soon: only the
 * coordinator's clock ends a lease, and holders reckon for themselves.
 */
export class SessionLeases {
  private readonly attached = new Map<string, Attached>();
  private readonly bySession = new Map<Tell, Set<string>>();
  private readonly open = new Set<Tell>();
  private readonly follows = new Map<NamespaceEngine, Follow>();
  private timer: NodeJS.Timeout | null = null;
  private walk: Iterator<Attached> = [].values();

  /** Sessions that are open, and leases of theirs. */
  get counts(): { readonly sessions: number; readonly leases: number } {
    return { sessions: this.open.size, leases: this.attached.size };
  }

  opened(tell: Tell): void {
    this.open.add(tell);
  }

  /** The lease belongs to this session now, and to no other. */
  attach(engine: NamespaceEngine, leaseId: string, tell: Tell): void {
    const key = keyOf(engine, leaseId);
    const before = this.attached.get(key);
    if (before?.tell === tell) return;
    if (before !== undefined) this.remove(key, before.tell);
    this.attached.set(key, { engine, leaseId, tell, inJeopardy: false, wanted: NOTHING, changedAt: NEVER });
    const own = this.bySession.get(tell) ?? new Set();
    this.bySession.set(tell, own.add(key));
    this.follow(engine);
    this.timer ??= setInterval(() => this.look(), LOOK_EVERY_MS).unref();
  }

  /** Does nothing when it belongs to another one. */
  detach(engine: NamespaceEngine, leaseId: string, tell: Tell): void {
    const key = keyOf(engine, leaseId);
    if (this.attached.get(key)?.tell === tell) this.remove(key, tell);
  }

  /** All of a session that has ended. */
  detachAll(tell: Tell): void {
    for (const key of this.bySession.get(tell) ?? []) this.attached.delete(key);
    this.bySession.delete(tell);
    this.open.delete(tell);
  }

  stop(): void {
    if (this.timer !== null) clearInterval(this.timer);
    for (const { stop } of this.follows.values()) stop();
    this.attached.clear();
    this.bySession.clear();
  }

  private remove(key: string, tell: Tell): void {
    this.attached.delete(key);
    const own = this.bySession.get(tell);
    own?.delete(key);
    if (own?.size === 0) this.bySession.delete(tell);
  }

  private follow(engine: NamespaceEngine): void {
    if (this.follows.has(engine)) return;
    const stop = engine.onAdvance(() => void this.advanced(engine, follow));
    const follow: Follow = { from: engine.head, isReading: false, more: false, stop };
    this.follows.set(engine, follow);
  }

  /** Batches of one turn of the event loop are looked at together. */
  private async advanced(engine: NamespaceEngine, follow: Follow): Promise<void> {
    follow.more = true;
    if (follow.isReading) return;
    follow.isReading = true;
    await nextTurn();
    try {
      while (follow.more && this.attached.size > 0) {
        follow.more = false;
        const events = await engine.after(follow.from);
        const last = events.at(-1);
        if (last === undefined) continue;
        follow.from = last;
        follow.more = true;
        this.lookAt(this.concerned(engine, events));
      }
      if (this.attached.size === 0) follow.from = engine.head;
    } catch {
      // The looks find what is not told event by event.
      follow.from = engine.head;
    } finally {
      follow.isReading = false;
    }
  }

  private concerned(engine: NamespaceEngine, events: readonly PlacedEvent[]): Set<Attached> {
    const concerned = new Set<Attached>();
    for (const { event } of events) {
      for (const leaseId of concernedBy(engine.state, event)) {
        const attached = this.attached.get(keyOf(engine, leaseId));
        if (attached !== undefined) concerned.add(attached);
      }
    }
    return concerned;
  }

  /** Looks at the next of them. */
  look(): void {
    this.lookAt(this.next());
  }

  private lookAt(leases: Iterable<Attached>): void {
    const byEngine = new Map<NamespaceEngine, [Attached, Lease][]>();
    for (const attached of leases) {
      const { engine, leaseId } = attached;
      // What is not known now is not told; it will be known again.
      if (engine.notReady !== null) continue;
      const lease = engine.state.leases.get(leaseId);
      if (lease === undefined) this.lookUp(attached);
      else if (lease.state === 'ended') this.lost(attached, lease);
      else {
        this.reckon(attached, lease);
        const others = byEngine.get(engine) ?? [];
        others.push([attached, lease]);
        byEngine.set(engine, others);
      }
    }
    for (const [engine, leases] of byEngine) this.notice(engine, leases);
  }

  private *next(): Iterable<Attached> {
    const count = Math.max(MIN_LOOKED_AT, this.attached.size * LOOKED_AT_SHARE);
    for (let looked = 0; looked < count; looked += 1) {
      const { value, done } = this.walk.next();
      if (done === true) {
        this.walk = this.attached.values();
        return;
      }
      yield value;
    }
  }

  /** It ended long ago, as far as memory goes. */
  private lookUp(attached: Attached): void {
    const { engine, leaseId, tell } = attached;
    this.detach(engine, leaseId, tell);
    engine
      .read((view) => view.lease(leaseId))
      .then(
        ({ value }) => {
          if (value !== undefined) this.lost(attached, value);
        },
        () => this.attach(engine, leaseId, tell),
      );
  }

  private lost({ engine, leaseId, tell }: Attached, lease: Lease): void {
    this.detach(engine, leaseId, tell);
    const { endReason, endedAt } = lease;
    tell({ namespace: engine.namespace, leaseId, kind: 'lost', endReason, endedAt, refusal: null });
  }

  private reckon(attached: Attached, lease: Lease): void {
    const { engine, leaseId, tell } = attached;
    const now = engine.estimatedNow();
    const validUntil = endsAt(lease);
    const isOverdue = now >= validUntil - lease.ttl * OVERDUE_SHARE;
    // Past its time its end is about to be written.
    if (isOverdue === attached.inJeopardy || now >= validUntil) return;
    attached.inJeopardy = isOverdue;
    const { namespace } = engine;
    if (isOverdue) tell({ namespace, leaseId, kind: 'jeopardy', validUntil, validFor: validUntil - now });
    else tell({ namespace, leaseId, kind: 'safe', validUntil });
  }

  private notice(engine: NamespaceEngine, leases: readonly [Attached, Lease][]): void {
    const { state } = engine;
    // Most of the time nobody waits and nobody reads.
    if (state.waitingLeases === 0 && state.inputs.readingLeases === 0) {
      for (const [attached] of leases) attached.wanted = NOTHING;
      return;
    }
    const notices = noticesOf(
      { state, now: engine.estimatedNow() },
      leases.map(([, lease]) => lease),
    );
    leases.forEach(([attached], index) => tellNew(attached, notices[index] ?? []));
  }
}

/** Each is told once; what is wanted, again when it is wanted anew. */
function tellNew(attached: Attached, notices: readonly LeaseNotice[]): void {
  const { engine, leaseId, tell } = attached;
  const { namespace } = engine;
  if (notices.length === 0) {
    attached.wanted = NOTHING;
    return;
  }
  const wanted = new Set<string>();
  const changedAt = new Map(attached.changedAt);
  for (const notice of notices) {
    const { kind, resource } = notice;
    if (kind === 'asked_to_yield') {
      wanted.add(resource);
      if (!attached.wanted.has(resource)) tell({ namespace, leaseId, kind, resource });
    } else if (notice.changedAt > (changedAt.get(resource) ?? 0)) {
      changedAt.set(resource, notice.changedAt);
      tell({ namespace, leaseId, kind, resource, changedAt: notice.changedAt });
    }
  }
  attached.wanted = wanted;
  attached.changedAt = changedAt;
}

function keyOf({ namespace }: NamespaceEngine, leaseId: string): string {
  return `${namespace}\n${leaseId}`;
}
