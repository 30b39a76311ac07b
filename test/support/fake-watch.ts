import { View } from '../../src/domain/decide/decision.js';
import type { DomainEvent } from '../../src/domain/event.js';
import { toRecords } from '../../src/engine/batch.js';
import type { NamespaceEngine } from '../../src/engine/namespace-engine.js';
import { eventsAfter, type LogPosition, type PlacedEvent, RecentEvents } from '../../src/engine/recent-events.js';
import { GENESIS } from '../../src/engine/replica-state.js';
import type { FenceUpdate as WireUpdate } from '../../src/gen/writ/v1/fence_service.js';
import type { CallContext } from '../../src/services/api.js';
import type { Deps } from '../../src/services/deps.js';
import type { FenceWatch } from '../../src/services/fence-watches.js';
import { watchFences } from '../../src/services/watch-fences.js';
import { WatchLimit } from '../../src/services/watch-limit.js';
import type { EventRecord, Head, Store } from '../../src/storage/store.js';
import { toUpdate } from '../../src/transports/messages/fence-updates.js';
import { MAX_SKEW, type Namespace } from './domain.js';

/** An engine over a namespace of the tests, as far as a watch looks at one: no database, nothing waits. */
export class WatchedNamespace {
  recent = new RecentEvents();
  readonly records: EventRecord[] = [];
  readonly watches = new WatchLimit('watches of fences');
  private readonly listeners = new Set<() => void>();

  constructor(readonly ns: Namespace) {}

  get head(): Head {
    return this.records[this.records.length - 1] ?? GENESIS;
  }

  /** What has happened since is in the log now. */
  advance(): void {
    const events: readonly DomainEvent[] = this.ns.events.slice(this.records.length);
    for (const [index, record] of toRecords('test', 'batch', this.head, events).entries()) {
      this.records.push(record);
      this.recent.push({ revision: record.revision, hash: record.hash, event: events[index] as DomainEvent });
    }
    for (const listener of this.listeners) listener();
  }

  /** As after a restart: nothing is in memory but the state. */
  forgetRecent(): void {
    this.recent = new RecentEvents();
  }

  watch(input: { from?: LogPosition | null; viewKindsOnly?: boolean } = {}, target = 'target'): Promise<FenceWatch> {
    const deps = {
      fenceWatches: this.watches,
      maxClockSkew: MAX_SKEW,
      installation: { open: async () => this.engine() },
    };
    const context = { principal: { name: target, roles: new Set(['target']) }, namespace: '' };
    const { from = null, viewKindsOnly = false } = input;
    return watchFences(deps as unknown as Deps, context as unknown as CallContext, { from, viewKindsOnly });
  }

  private engine(): NamespaceEngine {
    const self = this;
    const store = {
      readEvent: async (_: string, revision: number) => this.records[revision - 1] ?? null,
      readTail: async (_: string, after: number, limit: number) => this.records.slice(after, after + limit),
    };
    const engine = {
      notReady: null,
      get head() {
        return self.head;
      },
      get state() {
        return self.ns.state;
      },
      onAdvance(listener: () => void) {
        self.listeners.add(listener);
        return () => self.listeners.delete(listener);
      },
      async read<R>(question: (view: View) => R) {
        self.advance();
        const view = new View(self.ns.state, self.ns.now);
        return { value: question(view), revision: self.head.revision, now: view.now };
      },
      after: (from: LogPosition): Promise<readonly PlacedEvent[]> =>
        eventsAfter(store as unknown as Store, 'test', self.head, self.recent, from),
    };
    return engine as unknown as NamespaceEngine;
  }
}

type Told = NonNullable<WireUpdate['update']>;

let pings = 0;

/** Everything there is to tell, as it is sent, up to the mark that answers a ping. */
export async function everythingTold(watch: FenceWatch): Promise<Told[]> {
  pings += 1;
  watch.ping(pings);
  const told: Told[] = [];
  for (;;) {
    for (const { update } of (await watch.next()).map(toUpdate)) {
      if (update === undefined) throw new Error('nothing was told');
      told.push(update);
      if (update.$case === 'mark' && Number(update.value.number) === pings) return told;
    }
  }
}
