import { GENESIS_HASH } from '../engine/hash-chain.js';
import type { EventRecord } from '../storage/store.js';
import {
  type Flaw,
  follows,
  isWhole,
  type LogFault,
  type LogReader,
  linksTo,
  type Position,
  type Reading,
} from './log-reader.js';

/** What is wrong with a log, and from which event on. */

/** Null: it ends where and as the signed checkpoint says. */
export function flawAtEnd(at: Position): Flaw | null {
  const { checkpoint } = at;
  const lastRevision = at.expected - 1;
  const line = lastRevision - at.afterRevision + 1;
  if (lastRevision < checkpoint.revision) {
    const message = `The log is cut off: event ${at.expected} is missing, and the checkpoint says that it goes on to ${checkpoint.revision}.`;
    return { fault: 'cut_off', revision: at.expected, line: line + 1, message };
  }
  if (lastRevision > checkpoint.revision) {
    const revision = checkpoint.revision + 1;
    const message = `Event ${revision} was inserted: the checkpoint ends at ${checkpoint.revision}, so nothing vouches for what comes after.`;
    return { fault: 'inserted', revision, line: line - (lastRevision - revision), message };
  }
  const end = at.last?.hash ?? at.before;
  if (end !== null && end !== checkpoint.hash) {
    const message =
      `Event ${lastRevision} is not the one that the checkpoint signed: it was changed and hashed anew, ` +
      'or an earlier event was and all hashes after it. Compare with another copy to find where they part.';
    return { fault: 'rewritten', revision: lastRevision, line, message };
  }
  return null;
}

/** Names what happened to the first event that is not as it should be, or not whole. Each branch is one way to tamper (F23). */
export async function nameFlaw(reading: Reading, at: Position, reader: LogReader): Promise<Flaw> {
  const { event, line } = reading;
  const next = await reader.peek();
  const problem = (fault: LogFault, message: string, revision = at.expected): Flaw => ({
    fault,
    revision,
    line,
    message,
  });
  if (!reading.complete && (event === null || follows(event, at))) {
    const where = event === null ? 'in the middle' : 'at the end';
    return problem('cut_off', `The log is cut off ${where} of event ${at.expected}: its line has no line feed.`);
  }
  const nextIsExpected = follows(next?.event ?? null, at);
  const whole = event !== null && event.namespace === at.checkpoint.namespace && isWhole(event);
  if (!whole && nextIsExpected) {
    return problem('inserted', `Line ${line} was inserted before event ${at.expected}: it is no event of this log.`);
  }
  if (event === null) return problem('changed', `Event ${at.expected} was changed: ${reading.error}.`);
  if (!whole) return classifyBroken(event, at, reader, problem);
  if (event.revision > at.expected) return classifyAhead(event, at, reader, problem);
  if (event.revision < at.expected) return classifyRepeated(event, at, next, problem);
  return classifyMislinked(event, at, next, problem);
}

type MakeProblem = (fault: LogFault, message: string, revision?: number) => Flaw;

/** Its hash is not that of its content. */
async function classifyBroken(
  event: EventRecord,
  at: Position,
  reader: LogReader,
  problem: MakeProblem,
): Promise<Flaw> {
  const { expected } = at;
  const prevHash = at.last?.hash ?? at.before ?? GENESIS_HASH;
  if (event.revision !== expected && isWhole({ ...event, revision: expected })) {
    return problem('changed', `Event ${expected} was changed: its revision reads ${event.revision}.`);
  }
  if (event.revision === expected && isWhole({ ...event, prevHash })) {
    return problem('changed', `Event ${expected} was changed: its prev_hash is not the hash of the event before.`);
  }
  if (event.revision === expected && !linksTo(event, at)) {
    const former = trueRevision(event);
    if (former !== null && former > expected) {
      return problem(
        'removed',
        `Event ${expected} was removed, and those after it renumbered: here is the former event ${former}.`,
      );
    }
    if (former !== null) {
      return problem('inserted', `Event ${expected - 1} was inserted, and those after it renumbered.`, expected - 1);
    }
  }
  if (event.revision !== expected) {
    const seen = await reader.scan(expected, event.revision);
    if (seen.expected)
      return problem('inserted', `A line was inserted before event ${expected}: its hash is not that of its content.`);
    if (event.revision > expected)
      return problem('removed', `Event ${expected} was removed; the next one is ${event.revision}, and was changed.`);
  }
  return problem('changed', `Event ${expected} was changed: its hash is not that of its content.`);
}

/** A whole event that should come later. */
async function classifyAhead(event: EventRecord, at: Position, reader: LogReader, problem: MakeProblem): Promise<Flaw> {
  const { expected } = at;
  const seen = await reader.scan(expected, event.revision);
  if (!seen.expected) {
    const range =
      event.revision - 1 === expected ? `Event ${expected} was` : `Events ${expected} to ${event.revision - 1} were`;
    return problem('removed', `${range} removed: here comes event ${event.revision}.`);
  }
  if (seen.other)
    return problem('inserted', `A copy of event ${event.revision} was inserted before event ${expected}.`);
  return problem(
    'reordered',
    `The order was changed: here should be event ${expected}, and comes event ${event.revision}.`,
  );
}

/** A whole event with a revision that was there already. */
function classifyRepeated(event: EventRecord, at: Position, next: Reading | null, problem: MakeProblem): Flaw {
  const { revision } = event;
  if (event.hash === at.last?.hash)
    return problem('inserted', `A second copy of event ${revision} was inserted.`, revision);
  // Two events of one revision: the one that the next event follows is the true one.
  const thisIsTrue = revision === at.expected - 1 && isVouchedFor(event, at, next);
  const which = thisIsTrue ? 'the line before this one was inserted' : 'this line was inserted';
  return problem('inserted', `There are two events with the revision ${revision}: ${which}.`, revision);
}

/** A whole event of the right revision that follows another event than the one before it. */
function classifyMislinked(event: EventRecord, at: Position, next: Reading | null, problem: MakeProblem): Flaw {
  const { expected } = at;
  if (at.last !== null && isVouchedFor(event, at, next)) {
    return problem(
      'changed',
      `Event ${expected - 1} was changed and hashed anew: event ${expected} follows another one.`,
      expected - 1,
    );
  }
  return problem('changed', `Event ${expected} was changed and hashed anew: it does not follow the event before.`);
}

/** Whether what comes after says that this one is genuine: the next event, or the signature when it is the last. */
function isVouchedFor(event: EventRecord, at: Position, next: Reading | null): boolean {
  if (event.revision === at.checkpoint.revision) return event.hash === at.checkpoint.hash;
  return next?.event?.revision === event.revision + 1 && next.event.prevHash === event.hash;
}

const RENUMBERING_REACH = 64;

/** The revision that an event was hashed with, if it is near the one it shows. */
function trueRevision(event: EventRecord): number | null {
  for (let distance = 1; distance <= RENUMBERING_REACH; distance += 1) {
    if (isWhole({ ...event, revision: event.revision + distance })) return event.revision + distance;
    if (isWhole({ ...event, revision: event.revision - distance })) return event.revision - distance;
  }
  return null;
}
