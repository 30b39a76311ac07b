import { Fault } from '../domain/fault.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import type { EventPlace } from './api.js';

/** Where readers of a log have got to, and whether it still goes on from there. */

/** The first revision that the log has: 1, unless it was cut. */
export async function firstOf(engine: NamespaceEngine): Promise<number> {
  return (await engine.store.readCut(engine.namespace))?.firstRevision ?? 1;
}

/**
 * A place that the log goes on from: 0 is where it begins, which is the cut in a log that was cut. Throws a Fault where the
 * log had another event there than the reader has seen, none any more, or none yet.
 */
export async function placeAt(engine: NamespaceEngine, head: number, place: EventPlace): Promise<EventPlace> {
  const { revision, hash } = place;
  if (revision > head) throw logIsShorter(revision, head);
  const first = await firstOf(engine);
  if (revision === 0) return { revision: first - 1, hash: null };
  if (revision < first - 1) throw wasCut(first);
  const read = (at: number) => engine.store.readEvent(engine.namespace, at);
  // The first event says what it follows, also where that was cut.
  const known = (await read(revision))?.hash ?? (await read(revision + 1))?.prevHash;
  if (known === undefined) throw wasCut(await firstOf(engine));
  if (hash !== null && hash !== known) throw historyForked(revision);
  return { revision, hash: known };
}

export function wasCut(first: number): Fault {
  return new Fault(
    'failed_precondition',
    'CURSOR_EXPIRED',
    `The log was cut: it begins at revision ${first}. What came before is in the archive.`,
    { metadata: { first_revision: String(first) } },
  );
}

export function logIsShorter(revision: number, head: number): Fault {
  return new Fault(
    'failed_precondition',
    'HISTORY_FORKED',
    `The log ends at revision ${head}, before ${revision}: the database lost history since you read it, or you read another log. Begin anew.`,
    { metadata: { revision: String(revision), head_revision: String(head) } },
  );
}

export function historyForked(revision: number): Fault {
  return new Fault(
    'failed_precondition',
    'HISTORY_FORKED',
    `The log does not continue what it had at revision ${revision}: the database lost history since you read it. Begin anew.`,
    { metadata: { revision: String(revision) } },
  );
}
