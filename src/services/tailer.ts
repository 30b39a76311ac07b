import { type Micros, SECOND } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import { GENESIS } from '../engine/replica-state.js';
import { type EventStream, HISTORY_FORKED, type StreamCursor, type StreamEntry } from '../storage/event-stream.js';
import type { EventRecord, LogCut, Store } from '../storage/store.js';
import { formatEvent } from './log-export.js';

const LEASE_TTL: Micros = 10 * SECOND;
const CLAIM_EVERY: Micros = 2 * SECOND;
const LOOK_EVERY_MS = 50;
/** Entries of one script, and about how many characters: Redis does nothing else meanwhile. */
const PAGE_EVENTS = 256;
const PAGE_CHARACTERS = 1 << 20;
/** So many published entries are looked at together for the last one that is still history. */
const FORK_PAGE = 500;

export interface TailerOptions {
  readonly replicaId: string;
  readonly store: Pick<Store, 'claimTailers' | 'yieldTailers' | 'readTail' | 'readEvent' | 'readCut'>;
  readonly stream: EventStream;
  /** Namespaces that are loaded. */
  readonly engines: () => readonly Pick<NamespaceEngine, 'namespace' | 'head' | 'notReady'>[];
  /** How many events a stream that was lost begins with again: as many as it keeps. */
  readonly maxLength: number;
  readonly monotonicNow: () => Micros;
  readonly onPublished: (namespace: string, events: number) => void;
  readonly onProblem: (message: string, error: unknown) => void;
}

/** What is known of a namespace whose log this replica publishes. */
interface Held {
  readonly token: number;
  /** Undefined: the stream has to be opened. Null: there is none. */
  cursor: StreamCursor | null | undefined;
  busy: boolean;
}

/**
 * Publishes the logs to Redis Streams: at least once, in order. Each log has one publisher at a time, by a lease of its
 * own in Postgres; its token fences the publisher that was replaced, and the cursor (revision, hash) in Redis keeps the
 * order whoever publishes. Redis may be gone at any time: nothing else notices, and publishing goes on at its cursor. A
 * stream that was lost with its cursor begins again with as many of the last events as it would have kept.
 */
export class Tailer {
  private readonly held = new Map<string, Held>();
  /** Nothing is published after it: another replica may have taken over. */
  private heldUntil: Micros = Number.NEGATIVE_INFINITY;
  private claimedAt: Micros = Number.NEGATIVE_INFINITY;
  private timer: NodeJS.Timeout | undefined;
  private claiming: Promise<void> | null = null;
  private readonly working = new Set<Promise<void>>();

  constructor(private readonly options: TailerOptions) {}

  start(): void {
    this.timer = setInterval(() => this.look(), LOOK_EVERY_MS);
    this.timer.unref();
  }

  /** Resolves when nothing is published any more, and another replica may go on at once. The stream stays open. */
  async stop(): Promise<void> {
    clearInterval(this.timer);
    this.heldUntil = Number.NEGATIVE_INFINITY;
    await this.claiming;
    await Promise.all(this.working);
    await this.options.store.yieldTailers(this.options.replicaId).catch(() => undefined);
  }

  /** By namespace that this replica publishes: how many events of its log Redis does not have yet. */
  lags(): readonly { readonly namespace: string; readonly events: number }[] {
    if (!this.mayPublish()) return [];
    return this.options.engines().flatMap(({ namespace, head }) => {
      const held = this.held.get(namespace);
      if (held === undefined) return [];
      return [{ namespace, events: Math.max(0, head.revision - (held.cursor?.revision ?? 0)) }];
    });
  }

  private mayPublish(): boolean {
    return this.options.monotonicNow() < this.heldUntil;
  }

  private look(): void {
    const { stream, monotonicNow, engines } = this.options;
    // Whoever cannot reach Redis does not keep the right to publish from those who can.
    if (!stream.connected) return;
    if (this.claiming === null && monotonicNow() - this.claimedAt >= CLAIM_EVERY) {
      this.claiming = this.claim().finally(() => {
        this.claiming = null;
      });
    }
    if (!this.mayPublish()) return;
    for (const { namespace, head } of engines()) {
      const held = this.held.get(namespace);
      if (held === undefined || held.busy || isAt(held.cursor, head)) continue;
      held.busy = true;
      const work = this.follow(namespace, held)
        .catch((error: unknown) => {
          held.cursor = undefined;
          this.options.onProblem(`the log of namespace ${namespace} could not be published to Redis`, error);
        })
        .finally(() => {
          held.busy = false;
          this.working.delete(work);
        });
      this.working.add(work);
    }
  }

  private async claim(): Promise<void> {
    const { store, replicaId, engines, monotonicNow, onProblem } = this.options;
    const namespaces = engines().flatMap(({ namespace, notReady }) => (notReady === null ? [namespace] : []));
    // Counted from the send: the lease cannot end before.
    const sentAt = monotonicNow();
    this.claimedAt = sentAt;
    try {
      const leases = await store.claimTailers(replicaId, namespaces, LEASE_TTL);
      const tokens = new Map(leases.map(({ namespace, token }) => [namespace, token]));
      for (const [namespace, { token }] of this.held) if (tokens.get(namespace) !== token) this.held.delete(namespace);
      for (const [namespace, token] of tokens) {
        if (!this.held.has(namespace)) this.held.set(namespace, { token, cursor: undefined, busy: false });
      }
      this.heldUntil = sentAt + LEASE_TTL;
    } catch (error) {
      onProblem('the right to publish to Redis could not be claimed', error);
    }
  }

  /** Publishes page after page until the end of the log, or until somebody else does. */
  private async follow(namespace: string, held: Held): Promise<void> {
    const { store, stream, onPublished } = this.options;
    while (this.mayPublish() && this.held.get(namespace) === held) {
      const cursor = held.cursor === undefined ? await stream.open(namespace, held.token) : held.cursor;
      if (cursor === 'fenced') return this.giveUp(namespace, held);
      const { after, news } = await this.goOnAt(namespace, cursor);
      const events = boundedPage(await store.readTail(namespace, after, PAGE_EVENTS));
      const entries = [...news, ...events.map(entryOf)];
      if (entries.length === 0) held.cursor = cursor;
      if (entries.length === 0 || !this.mayPublish()) return;
      const outcome = await stream.publish(namespace, held.token, cursor, entries);
      if (outcome === 'fenced') return this.giveUp(namespace, held);
      held.cursor = outcome === 'published' ? entries.at(-1)?.cursor : undefined;
      if (outcome === 'published') onPublished(namespace, events.length);
    }
  }

  private giveUp(namespace: string, held: Held): void {
    if (this.held.get(namespace) === held) this.held.delete(namespace);
  }

  /** The revision to go on after, and what has to be said first: that what was published is not history any more. */
  private async goOnAt(
    namespace: string,
    cursor: StreamCursor | null,
  ): Promise<{ readonly after: number; readonly news: readonly StreamEntry[] }> {
    if (cursor === null) {
      const { engines, maxLength } = this.options;
      const head = engines().find((engine) => engine.namespace === namespace)?.head.revision ?? 0;
      return { after: Math.max(0, head - maxLength), news: [] };
    }
    // Also what this publisher wrote itself: history can be lost at any time (F13).
    if (await this.isHistory(namespace, cursor)) return { after: cursor.revision, news: [] };
    const cut = await this.options.store.readCut(namespace);
    if (cut !== null && isBelow(cursor, cut)) return { after: cut.firstRevision - 1, news: [] };
    const common = await this.lastInHistory(namespace);
    return { after: common.revision, news: [{ cursor: common, kind: HISTORY_FORKED, line: '' }] };
  }

  private async isHistory(namespace: string, { revision, hash }: StreamCursor): Promise<boolean> {
    if (revision === GENESIS.revision) return hash === GENESIS.hash;
    return (await this.options.store.readEvent(namespace, revision))?.hash === hash;
  }

  /** The last published event that is still in the log; revision 0 when none of those that the stream keeps is. */
  private async lastInHistory(namespace: string): Promise<StreamCursor> {
    for (let before: string | null = null; ; ) {
      const page = await this.options.stream.newest(namespace, before, FORK_PAGE);
      for (const { cursor } of page) if (await this.isHistory(namespace, cursor)) return cursor;
      const last = page.at(-1);
      if (last === undefined || page.length < FORK_PAGE) return GENESIS;
      before = last.id;
    }
  }
}

function isAt(cursor: StreamCursor | null | undefined, head: StreamCursor): boolean {
  return cursor?.revision === head.revision && cursor.hash === head.hash;
}

/** Whether what was published last was cut: readers miss what came between, and find it in the archive. */
function isBelow({ revision, hash }: StreamCursor, cut: LogCut): boolean {
  return revision === cut.firstRevision - 1 ? hash === cut.hashBefore : revision < cut.firstRevision;
}

/** Free text stays out: it can be erased from the log, and could not be from what was published (A3). */
function entryOf(event: EventRecord): StreamEntry {
  const { revision, hash, kind } = event;
  return { cursor: { revision, hash }, kind, line: formatEvent({ ...event, texts: [] }) };
}

/** At least one event; no more than a script should handle at once. */
function boundedPage(events: readonly EventRecord[]): readonly EventRecord[] {
  let characters = 0;
  const end = events.findIndex((event, index) => {
    characters += event.body.length;
    return index > 0 && characters > PAGE_CHARACTERS;
  });
  return end < 0 ? events : events.slice(0, end);
}
