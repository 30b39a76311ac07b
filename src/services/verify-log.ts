import { createHash, createPublicKey, type Hash } from 'node:crypto';
import { textDigest } from '../engine/event-texts.js';
import { GENESIS_HASH, hashEvent } from '../engine/hash-chain.js';
import type { EventRecord, EventText } from '../storage/store.js';
import type { Checkpoint } from './api.js';
import { flawOfEvent, flawOfExport, isSigned } from './kept-checkpoint.js';
import {
  type ExportHeader,
  type ExportLine,
  exportLines,
  normalPublicKey,
  parseEvent,
  parseHeader,
} from './log-export.js';
import { cutIn, MissingTexts, type RecordedCut } from './log-remarks.js';

/**
 * Verifies an exported log offline (A2, F23): every event's hash is computed anew, every event follows the one before,
 * none is missing, and the last one is the one that the signed checkpoint names. A file that does not end with a line
 * feed was cut off. Memory does not grow with the log.
 *
 * The chain alone proves little, since anybody can compute hashes; what anchors it is the signature over its end. Hence
 * all the care for the key: the one in the file is only as good as the reader's reason to believe it.
 */

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

export interface LogProblem {
  readonly fault: LogFault;
  /** The first bad event, by the revision it should have; null when the header is bad. */
  readonly revision: number | null;
  /** 1-based line of the file where it shows; the header is line 1. */
  readonly line: number;
  /** Which of the files, from 0. */
  readonly part: number;
  readonly message: string;
}

/** A problem of one file. */
type Flaw = Omit<LogProblem, 'part'>;

export interface LogVerdict {
  readonly ok: boolean;
  readonly problem: LogProblem | null;
  readonly namespace: string;
  /** Events that were found good, from `firstRevision` to `lastRevision`. */
  readonly events: number;
  readonly firstRevision: number;
  readonly lastRevision: number;
  readonly checkpoint: Pick<Checkpoint, 'revision' | 'hash' | 'time' | 'keyId'> | null;
  /** SHA-256 of the public key (SPKI, DER), in hex: what to compare with a key from elsewhere. */
  readonly keyFingerprint: string;
  /** False: the key was taken from the file itself. */
  readonly keyGiven: boolean;
  /** What a reader should know beside that: a cut, texts that are not there. */
  readonly remarks: readonly string[];
}

export interface VerifyLogOptions {
  /** The public key that must have signed, in PEM. Absent: the one in the file, which proves only that the file fits itself. */
  readonly publicKey?: string;
  /**
   * The reader knows that the export begins after this revision. Default: it must be complete, or begin at a cut that
   * the log itself records.
   */
  readonly afterRevision?: number;
  /** A checkpoint of the same log that the reader has kept: the export must go as far, and have the same event there. */
  readonly kept?: Checkpoint;
}

/**
 * @example
 * const verdict = await verifyLog(createReadStream('audit.ndjson'), { publicKey });
 * if (!verdict.ok) console.error(verdict.problem?.message);
 */
export function verifyLog(chunks: AsyncIterable<Uint8Array>, options: VerifyLogOptions = {}): Promise<LogVerdict> {
  return verifyLogs([chunks], options);
}

/** The same for a log in several files, the oldest first: archives, and an export of the rest. */
export async function verifyLogs(
  files: readonly AsyncIterable<Uint8Array>[],
  options: VerifyLogOptions = {},
): Promise<LogVerdict> {
  const found: Found = { cuts: [], texts: new MissingTexts(), digests: new Map() };
  let first: Part | null = null;
  let before: Part | null = null;
  for (const [index, chunks] of files.entries()) {
    const part = await verifyPart(chunks, { ...options, before, more: index + 1 < files.length }, found);
    if ('fault' in part) return headerVerdict({ ...part, part: index }, options);
    first ??= part;
    if (part.problem !== null) return verdictOf(first, part, { ...part.problem, part: index }, found, options);
    before = part;
  }
  if (first === null || before === null) throw new RangeError('there is no file to verify');
  const problem = beginsAsItShould(first, found.cuts, options);
  return verdictOf(first, before, problem && { ...problem, part: 0 }, found, options);
}

/** A log begins at 1, or where the reader says, or at a cut that the log itself records further on. */
function beginsAsItShould(first: Part, cuts: readonly RecordedCut[], options: VerifyLogOptions): Flaw | null {
  const { afterRevision, afterHash } = first;
  if (afterRevision === (options.afterRevision ?? 0)) return null;
  const isCut = cuts.some((cut) => cut.firstRevision === afterRevision + 1 && cut.hashBefore === afterHash);
  if (options.afterRevision === undefined && isCut) return null;
  const unless =
    options.afterRevision === undefined
      ? `, and no event in it says that the log was cut there. Give --after ${afterRevision} if you expect that.`
      : '.';
  return {
    fault: 'header',
    revision: null,
    line: 1,
    message: `The export begins after revision ${afterRevision}, not after ${options.afterRevision ?? 0} as it should${unless}`,
  };
}

function verdictOf(
  first: Part,
  last: Part,
  problem: LogProblem | null,
  found: Found,
  options: VerifyLogOptions,
): LogVerdict {
  return {
    ok: problem === null,
    problem,
    namespace: last.checkpoint.namespace,
    events: last.lastRevision - first.afterRevision,
    firstRevision: first.afterRevision + 1,
    lastRevision: last.lastRevision,
    checkpoint: last.checkpoint,
    keyFingerprint: last.keyFingerprint,
    keyGiven: options.publicKey !== undefined,
    remarks: problem === null ? [...cutRemarks(first, found), ...found.texts.remarks()] : [],
  };
}

function cutRemarks(first: Part, { cuts, digests }: Found): string[] {
  const remarks: string[] = [];
  if (first.afterRevision > 0 && cuts.some(({ firstRevision }) => firstRevision === first.afterRevision + 1))
    remarks.push(
      `The log was cut: what came before revision ${first.afterRevision + 1} is in an archive. Verify them together.`,
    );
  for (const { firstRevision, archiveDigest } of cuts) {
    const given = digests.get(firstRevision - 1);
    if (given !== undefined && given !== archiveDigest)
      remarks.push(
        `The file that ends at revision ${firstRevision - 1} holds the events that were cut, and is not byte for byte the archive that the log records (SHA-256 ${archiveDigest}).`,
      );
  }
  return remarks;
}

/** What is found in all parts. */
interface Found {
  readonly cuts: RecordedCut[];
  readonly texts: MissingTexts;
  /** SHA-256 of the files, by the revision that they end at. */
  readonly digests: Map<number, string>;
}

/** One file. */
interface Part {
  readonly problem: Flaw | null;
  readonly checkpoint: Checkpoint;
  readonly afterRevision: number;
  /** Hash of the event at that revision, as the first event has it; null: the file has no event. */
  readonly afterHash: string | null;
  readonly lastRevision: number;
  /** Hash of the last event; null: as `afterHash`. */
  readonly lastHash: string | null;
  readonly keyFingerprint: string;
}

interface PartOptions extends VerifyLogOptions {
  readonly before: Part | null;
  readonly more: boolean;
}

async function verifyPart(chunks: AsyncIterable<Uint8Array>, options: PartOptions, found: Found): Promise<Part | Flaw> {
  const digest = createHash('sha256');
  const reader = new Reader(exportLines(passing(chunks, digest)));
  const opened = openHeader(await reader.nextLine(), options);
  if ('fault' in opened) return opened;
  const { checkpoint, afterRevision, afterHash, keyFingerprint } = opened;
  const before = options.before?.lastHash ?? (afterRevision === 0 ? GENESIS_HASH : afterHash);
  const at: Position = { checkpoint, expected: afterRevision + 1, last: null, first: null, before, afterRevision };
  const problem = (await walk(reader, at, options.kept, found)) ?? checkEnd(at);
  if (problem === null) found.digests.set(checkpoint.revision, digest.digest('hex'));
  return {
    problem,
    checkpoint,
    afterRevision,
    afterHash: at.first?.prevHash ?? before,
    lastRevision: at.expected - 1,
    lastHash: at.last?.hash ?? before,
    keyFingerprint,
  };
}

async function* passing(chunks: AsyncIterable<Uint8Array>, digest: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    digest.update(chunk);
    yield chunk;
  }
}

/** A key's name is the beginning of its fingerprint. */
const KEY_ID_LENGTH = 16;

/** SHA-256 of the SPKI DER of a public key, in hex. */
export function keyFingerprint(pem: string): string {
  const der = createPublicKey(pem).export({ type: 'spki', format: 'der' });
  return createHash('sha256').update(der).digest('hex');
}

// ------------------------------------------------------------------------------------------------------ the header

interface Opened {
  readonly checkpoint: Checkpoint;
  readonly afterRevision: number;
  readonly afterHash: string | null;
  readonly keyFingerprint: string;
}

function openHeader(line: ExportLine | null, options: PartOptions): Opened | Flaw {
  const bad = (fault: LogFault, message: string): Flaw => ({ fault, revision: null, line: 1, message });
  if (line === null || line.text === null)
    return bad('header', 'The file has no header line; this is no audit export.');
  const parsed = parseHeader(line.text);
  if ('error' in parsed) return bad('header', `Line 1 is no header of an audit export: ${parsed.error}.`);
  if (!line.complete)
    return bad('cut_off', 'The export is cut off at the end of its first line: the line feed is missing.');
  const { checkpoint, namespace, afterRevision, afterHash } = parsed.value;
  if (namespace !== checkpoint.namespace) {
    return bad('header', `The header is for namespace "${namespace}", its checkpoint for "${checkpoint.namespace}".`);
  }
  const { before } = options;
  if (before !== null && before.checkpoint.namespace !== namespace)
    return bad(
      'header',
      `The file before is of namespace "${before.checkpoint.namespace}", this one of "${namespace}".`,
    );
  if (before !== null && before.lastRevision !== afterRevision)
    return bad(
      'header',
      `The file before ends at revision ${before.lastRevision}; this one begins after ${afterRevision}. Give the files in order, without gap or overlap.`,
    );
  const known = before?.lastHash ?? (afterRevision === 0 ? GENESIS_HASH : null);
  if (afterHash !== null && known !== null && afterHash !== known)
    return bad('header', 'The hash that the export says it continues from (after_hash) is not the one before it.');
  if (afterRevision > checkpoint.revision)
    return bad(
      'header',
      `The export begins after revision ${afterRevision}, beyond its checkpoint at ${checkpoint.revision}.`,
    );
  try {
    // Only the PEM's own spelling is accepted, so that the header's text is the only text that reads like this.
    const key = normalPublicKey(checkpoint.publicKeyPem);
    if (key !== checkpoint.publicKeyPem) return bad('header', 'The public key is not written as an export writes it.');
    if (options.publicKey !== undefined && normalPublicKey(options.publicKey) !== key) {
      return bad('key', 'The checkpoint names another public key than the one given.');
    }
    const fingerprint = keyFingerprint(key);
    if (checkpoint.keyId !== fingerprint.slice(0, KEY_ID_LENGTH)) {
      return bad('key', 'The name of the key (key_id) is not the one of the public key.');
    }
    if (!isSigned(checkpoint)) return bad('signature', 'The signature of the checkpoint is not by its public key.');
    const flaw = concerns(options, parsed.value) ? flawOfExport(options.kept, parsed.value) : null;
    if (flaw !== null) return { ...flaw, line: 1 };
    return { checkpoint, afterRevision, afterHash, keyFingerprint: fingerprint };
  } catch (error) {
    return bad('key', `The public key cannot be read: ${error instanceof Error ? error.message : String(error)}.`);
  }
}

/** Whether the checkpoint that the reader has kept should be in this file, and not in one before or after it. */
function concerns(
  options: PartOptions,
  { afterRevision, checkpoint }: ExportHeader,
): options is PartOptions & { kept: Checkpoint } {
  const { kept, before, more } = options;
  if (kept === undefined) return false;
  return !(more && checkpoint.revision < kept.revision) && !(before !== null && kept.revision <= afterRevision);
}

function headerVerdict(problem: LogProblem, options: VerifyLogOptions): LogVerdict {
  return {
    ok: false,
    problem,
    namespace: '',
    events: 0,
    firstRevision: 0,
    lastRevision: 0,
    checkpoint: null,
    keyFingerprint: '',
    keyGiven: options.publicKey !== undefined,
    remarks: [],
  };
}

// ------------------------------------------------------------------------------------------------------- the events

/** Where the walk is: everything up to `expected - 1` was good. */
interface Position {
  readonly checkpoint: Checkpoint;
  readonly afterRevision: number;
  /** Hash that the first event follows; null: nobody knows, and the chain to the signed end vouches for it. */
  readonly before: string | null;
  expected: number;
  first: EventRecord | null;
  last: EventRecord | null;
}

/** A line that should be an event. */
interface Reading {
  readonly line: number;
  readonly event: EventRecord | null;
  /** Why it is none. */
  readonly error: string;
  readonly complete: boolean;
}

async function walk(reader: Reader, at: Position, kept: Checkpoint | undefined, found: Found): Promise<Flaw | null> {
  for (let reading = await reader.next(); reading !== null; reading = await reader.next()) {
    if (!reading.complete || !follows(reading.event, at)) return classify(reading, at, reader);
    const flaw = kept === undefined ? null : flawOfEvent(kept, reading.event);
    if (flaw !== null) return { ...flaw, line: reading.line };
    found.texts.note(reading.event);
    const cut = cutIn(reading.event);
    if (cut !== null) found.cuts.push(cut);
    at.first ??= reading.event;
    at.last = reading.event;
    at.expected += 1;
  }
  return null;
}

function follows(event: EventRecord | null, at: Position): event is EventRecord {
  return (
    event !== null &&
    event.namespace === at.checkpoint.namespace &&
    event.revision === at.expected &&
    linksTo(event, at) &&
    isWhole(event)
  );
}

function linksTo(event: EventRecord, at: Position): boolean {
  const before = at.last?.hash ?? at.before;
  return before === null || event.prevHash === before;
}

/** The event's own hash, and of every free text that is still there the digest in its body (A3). */
function isWhole(event: EventRecord): boolean {
  try {
    return hashEvent(event) === event.hash && event.texts.every((text) => isTextOf(event, text));
  } catch {
    return false;
  }
}

function isTextOf(event: EventRecord, { digest, salt, text }: EventText): boolean {
  return textDigest(salt, text) === digest && event.body.includes(`{"sha256":"${digest}"}`);
}

function checkEnd(at: Position): Flaw | null {
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

// --------------------------------------------------------------------------------------- what is wrong, and with whom

/** Names what happened to the first event that is not as it should be, or not whole. Each branch is one way to tamper (F23). */
async function classify(reading: Reading, at: Position, reader: Reader): Promise<Flaw> {
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
async function classifyBroken(event: EventRecord, at: Position, reader: Reader, problem: MakeProblem): Promise<Flaw> {
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
async function classifyAhead(event: EventRecord, at: Position, reader: Reader, problem: MakeProblem): Promise<Flaw> {
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

/** Lines with one of look-ahead. */
class Reader {
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
