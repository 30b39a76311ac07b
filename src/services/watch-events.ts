import { Fault } from '../domain/fault.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import { toFault } from '../engine/trouble.js';
import type { EventRecord } from '../storage/store.js';
import type { CallContext, EventWatch } from './api.js';
import { firstOf, wasCut } from './audit.js';
import { type Deps, engineOf } from './deps.js';

/** An event may be about as large as a conflict map, 1 MiB. */
const PAGE = 32;

/** The log from the head on, or from the event after a revision on. */
export async function watchEvents(
  deps: Deps,
  context: CallContext,
  { afterRevision }: { afterRevision: number | null },
): Promise<EventWatch> {
  const { name } = context.principal;
  deps.watches.take(name);
  try {
    const engine = await engineOf(deps, context);
    const { value: head } = await engine.read(() => engine.head);
    const from = afterRevision === null ? head : await placeAt(engine, head.revision, afterRevision);
    return new Watch(engine, from, () => deps.watches.release(name));
  } catch (error) {
    deps.watches.release(name);
    throw error;
  }
}

interface Place {
  readonly revision: number;
  /** Null: before the first event. */
  readonly hash: string | null;
}

async function placeAt(engine: NamespaceEngine, head: number, revision: number): Promise<Place> {
  if (revision > head) throw logIsShorter(revision, head);
  if (revision === 0) return { revision: 0, hash: null };
  const event = await engine.store.readEvent(engine.namespace, revision);
  if (event === null) throw wasCut(await firstOf(engine));
  return event;
}

class Watch implements EventWatch {
  #at: Place;
  #wake: () => void = () => undefined;
  #isClosed = false;
  readonly #engine: NamespaceEngine;
  readonly #release: () => void;
  readonly #unsubscribe: () => void;

  constructor(engine: NamespaceEngine, from: Place, release: () => void) {
    this.#engine = engine;
    this.#at = from;
    this.#release = release;
    this.#unsubscribe = engine.onAdvance(() => this.#wake());
  }

  get position(): number {
    return this.#at.revision;
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

function logIsShorter(revision: number, head: number): Fault {
  return new Fault(
    'failed_precondition',
    'HISTORY_FORKED',
    `The log ends at revision ${head}, before ${revision}: the database lost history since you read it, or you read another log. Begin anew.`,
    { metadata: { revision: String(revision), head_revision: String(head) } },
  );
}

function historyForked(revision: number): Fault {
  return new Fault(
    'failed_precondition',
    'HISTORY_FORKED',
    `The log does not continue what it had at revision ${revision}: the database lost history since you read it. Begin anew.`,
    { metadata: { revision: String(revision) } },
  );
}
