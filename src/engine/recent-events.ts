import type { DomainEvent } from '../domain/event.js';
import { Fault } from '../domain/fault.js';
import type { Head, Store } from '../storage/store.js';
import { decodeEvent } from './event-codec.js';
import { toFault } from './trouble.js';

/** A place in the log; whoever goes on from there says which history they have read. */
export type LogPosition = Pick<Head, 'revision' | 'hash'>;

/** An event at its place. */
export interface PlacedEvent extends LogPosition {
  readonly event: DomainEvent;
}

/** Events of one namespace that stay in memory for those who follow them: some batches. Who is further back reads the log. */
const KEPT = 1_024;
/** Further back than this nobody is told event by event: a snapshot is shorter. */
export const MAX_REPLAYED = 10_000;
/** Read from the database at once. */
const PAGE = 1_000;

/** The end of the log as this replica knows it, event by event. */
export class RecentEvents {
  private events: PlacedEvent[] = [];

  push(placed: PlacedEvent): void {
    this.events.push(light(placed));
    if (this.events.length >= 2 * KEPT) this.events = this.events.slice(-KEPT);
  }

  /** The events after a place; null when they reach no further back, `forked` when another event is there. */
  after({ revision, hash }: LogPosition, limit: number): readonly PlacedEvent[] | 'forked' | null {
    const first = this.events[0];
    if (first === undefined || revision < first.revision) return null;
    const at = revision - first.revision;
    if (this.events[at]?.hash !== hash) return 'forked';
    return this.events.slice(at + 1, at + 1 + limit);
  }
}

/** A map is large, and whoever is told that there is another one looks at the state: thousands of them are not kept. */
function light(placed: PlacedEvent): PlacedEvent {
  const { event } = placed;
  if (event.body.kind !== 'conflict_map_put') return placed;
  return { ...placed, event: { ...event, body: { ...event.body, text: '', document: null } } };
}

/**
 * What follows a place in the log, in order and without gaps, at most a page of it; empty at the head. Fails with
 * HISTORY_FORKED when the log does not continue that place, and with CURSOR_EXPIRED when it is too long ago.
 */
export async function eventsAfter(
  store: Store,
  namespace: string,
  head: LogPosition,
  recent: RecentEvents,
  from: LogPosition,
): Promise<readonly PlacedEvent[]> {
  if (from.revision > head.revision) throw historyForked(from);
  if (from.revision === head.revision) {
    if (from.hash !== head.hash) throw historyForked(from);
    return [];
  }
  const known = recent.after(from, PAGE);
  if (known === 'forked') throw historyForked(from);
  return known ?? (await readAfter(store, namespace, head, from));
}

async function readAfter(
  store: Store,
  namespace: string,
  head: LogPosition,
  from: LogPosition,
): Promise<readonly PlacedEvent[]> {
  try {
    const at = await store.readEvent(namespace, from.revision);
    if (at !== null && at.hash !== from.hash) throw historyForked(from);
    if (at === null || head.revision - from.revision > MAX_REPLAYED) throw cursorExpired(from);
    const records = await store.readTail(namespace, from.revision, Math.min(PAGE, head.revision - from.revision));
    // Cut since it was looked for.
    if (records[0]?.revision !== from.revision + 1) throw cursorExpired(from);
    if (records[0].prevHash !== from.hash) throw historyForked(from);
    return records.map((record) => ({ revision: record.revision, hash: record.hash, event: decodeEvent(record) }));
  } catch (error) {
    throw toFault(error);
  }
}

function historyForked({ revision }: LogPosition): Fault {
  return new Fault(
    'failed_precondition',
    'HISTORY_FORKED',
    `The log has another event at revision ${revision}, or none: the database lost history since you read it. Forget what you know from it, and begin anew with a snapshot.`,
    { metadata: { revision: String(revision) } },
  );
}

function cursorExpired({ revision }: LogPosition): Fault {
  return new Fault(
    'failed_precondition',
    'CURSOR_EXPIRED',
    `What happened since revision ${revision} is not told event by event any more. Begin anew with a snapshot.`,
    { metadata: { revision: String(revision) } },
  );
}
