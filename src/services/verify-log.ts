import { createHash, type Hash } from 'node:crypto';
import { GENESIS_HASH } from '../engine/hash-chain.js';
import type { Checkpoint } from './api.js';
import { isSigned, keyFingerprint, keyIdOf, normalPublicKey } from './checkpoint-signature.js';
import { flawOfEvent, flawOfExport } from './kept-checkpoint.js';
import { type ExportHeader, type ExportLine, exportLines, parseHeader } from './log-export.js';
import { type Flaw, follows, type LogFault, LogReader, type Position } from './log-reader.js';
import { cutIn, MissingTexts, type RecordedCut } from './log-remarks.js';
import { flawAtEnd, nameFlaw } from './log-tampering.js';

/**
 * Verifies an exported log offline (A2, F23): every event's hash is computed anew, every event follows the one before,
 * none is missing, and the last one is the one that the signed checkpoint names. A file that does not end with a line
 * feed was cut off. Memory does not grow with the log.
 *
 * The chain alone proves little, since anybody can compute hashes; what anchors it is the signature over its end. Hence
 * all the care for the key: the one in the file is only as good as the reader's reason to believe it.
 */

/** What is wrong, and with which file. */
export interface LogProblem extends Flaw {
  /** Which of the files, from 0. */
  readonly part: number;
}

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
  /** SHA-256 of each file that was found whole, in hex. */
  readonly fileDigests: readonly string[];
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
    fileDigests: [...found.digests.values()],
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
  const reader = new LogReader(exportLines(passing(chunks, digest)));
  const opened = openHeader(await reader.nextLine(), options);
  if ('fault' in opened) return opened;
  const { checkpoint, afterRevision, afterHash, keyFingerprint } = opened;
  const before = options.before?.lastHash ?? (afterRevision === 0 ? GENESIS_HASH : afterHash);
  const at: Position = { checkpoint, expected: afterRevision + 1, last: null, first: null, before, afterRevision };
  const problem = (await walk(reader, at, options.kept, found)) ?? flawAtEnd(at);
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

/** Reads event by event; null: all are good. */
async function walk(reader: LogReader, at: Position, kept: Checkpoint | undefined, found: Found): Promise<Flaw | null> {
  for (let reading = await reader.next(); reading !== null; reading = await reader.next()) {
    if (!reading.complete || !follows(reading.event, at)) return nameFlaw(reading, at, reader);
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

async function* passing(chunks: AsyncIterable<Uint8Array>, digest: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    digest.update(chunk);
    yield chunk;
  }
}

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
    if (checkpoint.keyId !== keyIdOf(fingerprint)) {
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
    fileDigests: [],
    keyGiven: options.publicKey !== undefined,
    remarks: [],
  };
}
