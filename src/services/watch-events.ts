import type { NamespaceEngine } from '../engine/namespace-engine.js';
import { toFault } from '../engine/trouble.js';
import type { EventRecord } from '../storage/store.js';
import type { CallContext, EventPlace, EventWatch } from './api.js';
import { type Deps, engineOf } from './deps.js';
import { firstOf, historyForked, logIsShorter, placeAt, wasCut } from './log-places.js';

/** An event may be about as large as a conflict map, 1 MiB. */
const PAGE = 32;

/** The log from the head on, or from the event after a revision on. */
export async function watchEvents(
  deps: Deps,
  context: CallContext,
  { after }: { after: EventPlace | null },
): Promise<EventWatch> {
  const { name } = context.principal;
  deps.logStreams.take(name);
  try {
    const engine = await engineOf(deps, context);
    const { value: head } = await engine.read(() => engine.head);
    const from = after === null ? head : await placeAt(engine, head.revision, after);
    return new Watch(engine, from, () => deps.logStreams.release(name));
  } catch (error) {
    deps.logStreams.release(name);
    throw error;
  }
}

class Watch implements EventWatch {
  #at: EventPlace;
  #wake: () => void = () => undefined;
  #isClosed = false;
  readonly #engine: NamespaceEngine;
  readonly #release: () => void;
  readonly #unsubscribe: () => void;

  constructor(engine: NamespaceEngine, from: EventPlace, release: () => void) {
    this.#engine = engine;
    this.#at = from;
    this.#release = release;
    this.#unsubscribe = engine.onAdvance(() => this.#wake());
  }

  get position(): EventPlace {
    return this.#at;
  }

  async next(): Promise<readonly EventRecord[]> {
    const engine = this.#engine;
    for (;;) {
      if (this.#isClosed) throw new Error('the watch was closed');
      if (engine.notReady !== null) throw engine.notReady;
      const { revision } = engine.head;
      if (revision < this.#at.revision) throw logIsShorter(this.#at.revision, revision);
      if (revision > this.#at.revision) return this.#read(revision);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unsubscribe();
    this.#release();
    this.#wake();
  }

  async #read(head: number): Promise<readonly EventRecord[]> {
    const { store, namespace } = this.#engine;
    const { revision, hash } = this.#at;
    const events = await store
      .readTail(namespace, revision, Math.min(PAGE, head - revision))
      .catch((error: unknown) => {
        throw toFault(error);
      });
    const [first] = events;
    if (first?.revision !== revision + 1) throw wasCut(await firstOf(this.#engine));
    if (hash !== null && first.prevHash !== hash) throw historyForked(revision);
    this.#at = events[events.length - 1] as EventRecord;
    return events;
  }
}
