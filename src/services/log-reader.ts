import { textDigest } from '../engine/event-texts.js';
import { hashEvent } from '../engine/hash-chain.js';
import type { EventRecord, EventText } from '../storage/store.js';
import type { Checkpoint } from './api.js';
import { type ExportLine, parseEvent } from './log-export.js';

/** How far an exported log has been read, and what makes the next event a good one (A2). */

export type LogFault =
  /** The header is missing or is no header of an export. */
  | 'header'
  /** The checkpoint's signature is not by the key given, or by none. */
  | 'signature'
  /** The file names another public key than the reader expects. */
  | 'key'
  /** One event is not what it was. */
  | 'changed'
  | 'removed'
  | 'inserted'
  | 'reordered'
  /** The end is missing. */
  | 'cut_off'
  /** Whole in itself, but its end is not what the checkpoint signed: events were changed and hashed anew to the end. */
  | 'rewritten';

/** What is wrong with one file. */
export interface Flaw {
  readonly fault: LogFault;
  /** The first bad event, by the revision it should have; null when the header is bad. */
  readonly revision: number | null;
  /** 1-based line of the file where it shows; the header is line 1. */
  readonly line: number;
  readonly message: string;
}

/** Where the walk is: everything up to `expected - 1` was good. */
export interface Position {
  readonly checkpoint: Checkpoint;
  readonly afterRevision: number;
  /** Hash that the first event follows; null: nobody knows, and the chain to the signed end vouches for it. */
  readonly before: string | null;
  expected: number;
  first: EventRecord | null;
  last: EventRecord | null;
}

/** A line that should be an event. */
export interface Reading {
  readonly line: number;
  readonly event: EventRecord | null;
  /** Why it is none. */
  readonly error: string;
  readonly complete: boolean;
}

/** Whether it is the event that should come now. */
export function follows(event: EventRecord | null, at: Position): event is EventRecord {
  return (
    event !== null &&
    event.namespace === at.checkpoint.namespace &&
    event.revision === at.expected &&
    linksTo(event, at) &&
    isWhole(event)
  );
}

export function linksTo(event: EventRecord, at: Position): boolean {
  const before = at.last?.hash ?? at.before;
  return before === null || event.prevHash === before;
}

/** The event's own hash, and of every free text that is still there the digest in its body (A3). */
export function isWhole(event: EventRecord): boolean {
  try {
    return hashEvent(event) === event.hash && event.texts.every((text) => isTextOf(event, text));
  } catch {
    return false;
  }
}

function isTextOf(event: EventRecord, { digest, salt, text }: EventText): boolean {
  return textDigest(salt, text) === digest && event.body.includes(`{"sha256":"${digest}"}`);
}

/** Lines with one of look-ahead. */
export class LogReader {
  private line = 0;
  private ahead: Reading | null | undefined;

  constructor(private readonly lines: AsyncIterator<ExportLine>) {}

  async nextLine(): Promise<ExportLine | null> {
    const result = await this.lines.next();
    if (result.done === true) return null;
    this.line += 1;
    return result.value;
  }

  async next(): Promise<Reading | null> {
    const reading = await this.peek();
    this.ahead = undefined;
    return reading;
  }

  async peek(): Promise<Reading | null> {
    if (this.ahead === undefined) this.ahead = await this.read();
    return this.ahead;
  }

  /** Reads on to the end: does a whole event of each revision come yet? */
  async scan(expected: number, other: number): Promise<{ expected: boolean; other: boolean }> {
    const seen = { expected: false, other: false };
    for (let reading = await this.next(); reading !== null; reading = await this.next()) {
      if (reading.event === null || !isWhole(reading.event)) continue;
      if (reading.event.revision === expected) seen.expected = true;
      if (reading.event.revision === other) seen.other = true;
      if (seen.expected && seen.other) break;
    }
    return seen;
  }

  private async read(): Promise<Reading | null> {
    const text = await this.nextLine();
    if (text === null) return null;
    const parsed = text.text === null ? { error: 'it is not UTF-8, or far too long' } : parseEvent(text.text);
    return 'error' in parsed
      ? { line: this.line, event: null, error: parsed.error, complete: text.complete }
      : { line: this.line, event: parsed.value, error: '', complete: text.complete };
  }
}
