import { Buffer } from 'node:buffer';
import { z } from 'zod';
import { inPortions } from '../platform/portions.js';
import type { EventRecord } from '../storage/store.js';
import type { Checkpoint } from './api.js';

/**
 * The form of an exported log: NDJSON. The first line is a header with a signed checkpoint, then come the events in
 * order, up to the checkpoint's revision. Every line is the canonical JSON (RFC 8785) of its content and ends with a
 * line feed; a reader takes no other spelling of the same content, so that no byte can be changed unseen.
 */
const EXPORT_FORMAT = 'writ-audit-export/1';

export interface ExportHeader {
  readonly namespace: string;
  /** Revision before the first event of the export; 0: the export is complete. */
  readonly afterRevision: number;
  /** Hash of the event at that revision, which the first event of the export follows; null: not said. */
  readonly afterHash: string | null;
  readonly checkpoint: Checkpoint;
}

/** The first line, without its line feed. */
export function formatHeader(header: ExportHeader): string {
  const { namespace, afterRevision, afterHash, checkpoint } = header;
  // Keys in the order of RFC 8785; JSON.stringify keeps it.
  return JSON.stringify({
    ...(afterHash !== null && { after_hash: afterHash }),
    after_revision: afterRevision,
    checkpoint: {
      hash: checkpoint.hash,
      key_id: checkpoint.keyId,
      namespace: checkpoint.namespace,
      public_key: checkpoint.publicKeyPem,
      revision: checkpoint.revision,
      signature: Buffer.from(checkpoint.signature).toString('base64'),
      time: checkpoint.time,
    },
    format: EXPORT_FORMAT,
    namespace,
  });
}

/** A portion of an export, as it is written. */
export interface ExportedText {
  readonly text: string;
  readonly events: number;
}

/**
 * An export as text: the part of a log after a revision and up to a checkpoint, of events in order that may go on beyond
 * it. Throws an Error when they end before: half an export looks like one that was cut off.
 */
export async function* exportText(
  checkpoint: Checkpoint,
  after: number,
  batches: () => AsyncIterable<readonly EventRecord[]>,
): AsyncGenerator<ExportedText> {
  const { namespace, revision } = checkpoint;
  const header = (afterRevision: number, afterHash: string | null): ExportedText => ({
    text: `${formatHeader({ namespace, afterRevision, afterHash, checkpoint })}\n`,
    events: 0,
  });
  if (after === revision) {
    yield header(after, checkpoint.hash);
    return;
  }
  let last = after;
  for await (const batch of batches()) {
    const wanted = batch.filter((event) => event.revision <= revision);
    const [first] = wanted;
    if (last === after && first !== undefined)
      yield header(first.revision - 1, first.revision === 1 ? null : first.prevHash);
    for await (const { text, count } of inPortions(wanted, (event) => `${formatEvent(event)}\n`))
      yield { text, events: count };
    last = wanted.at(-1)?.revision ?? last;
    if (last >= revision) break;
  }
  if (last !== revision) throw new Error(`The export ended at revision ${last}, before the checkpoint's ${revision}.`);
}

/** The line of an event, without its line feed. */
export function formatEvent(event: EventRecord): string {
  return JSON.stringify({
    actor: event.actor,
    batch_id: event.batchId,
    body: event.body,
    body_version: event.bodyVersion,
    hash: event.hash,
    kind: event.kind,
    lease_id: event.leaseId,
    namespace: event.namespace,
    prev_hash: event.prevHash,
    request_ids: event.requestIds,
    resources: event.resources,
    revision: event.revision,
    run_id: event.runId,
    // Erased texts, and exports of older logs, have none: their lines are as they always were.
    ...(event.texts.length > 0 && {
      texts: event.texts.map(({ digest, salt, text }) => ({ digest, salt, text })),
    }),
    time: event.time,
  });
}

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);

const headerForm = z.strictObject({
  after_hash: hash.exactOptional(),
  after_revision: count,
  checkpoint: z.strictObject({
    hash,
    key_id: z.string(),
    namespace: z.string(),
    public_key: z.string(),
    revision: count,
    signature: z.string(),
    time: z.int(),
  }),
  format: z.literal(EXPORT_FORMAT),
  namespace: z.string(),
});

const eventForm = z.strictObject({
  actor: z.string(),
  batch_id: z.string(),
  body: z.string(),
  body_version: count,
  hash,
  kind: z.string(),
  lease_id: z.string(),
  namespace: z.string(),
  prev_hash: hash,
  request_ids: z.array(z.string()),
  resources: z.array(z.string()),
  revision: count,
  run_id: z.string(),
  texts: z
    .array(z.strictObject({ digest: hash, salt: z.string().regex(/^[0-9a-f]{32}$/), text: z.string().min(1) }))
    .min(1)
    .exactOptional(),
  time: z.int(),
});

/** What a line holds, or why it is not a line of an export. */
export type Parsed<T> = { readonly value: T } | { readonly error: string };

export function parseHeader(line: string): Parsed<ExportHeader> {
  const parsed = parseWith(headerForm, line);
  if ('error' in parsed) return parsed;
  const { after_revision: afterRevision, after_hash: afterHash = null, namespace, checkpoint: c } = parsed.value;
  const value: ExportHeader = {
    namespace,
    afterRevision,
    afterHash,
    checkpoint: {
      namespace: c.namespace,
      revision: c.revision,
      hash: c.hash,
      time: c.time,
      signature: Buffer.from(c.signature, 'base64'),
      keyId: c.key_id,
      publicKeyPem: c.public_key,
    },
  };
  return exactly(value, formatHeader(value), line);
}

export function parseEvent(line: string): Parsed<EventRecord> {
  const parsed = parseWith(eventForm, line);
  if ('error' in parsed) return parsed;
  const e = parsed.value;
  const value: EventRecord = {
    namespace: e.namespace,
    revision: e.revision,
    time: e.time,
    batchId: e.batch_id,
    kind: e.kind,
    bodyVersion: e.body_version,
    actor: e.actor,
    runId: e.run_id,
    leaseId: e.lease_id,
    resources: e.resources,
    requestIds: e.request_ids,
    body: e.body,
    prevHash: e.prev_hash,
    hash: e.hash,
    texts: e.texts ?? [],
  };
  return exactly(value, formatEvent(value), line);
}

function parseWith<T>(form: z.ZodType<T>, line: string): Parsed<T> {
  let json: unknown;
  try {
    json = JSON.parse(line);
  } catch {
    return { error: 'it is not JSON' };
  }
  const checked = form.safeParse(json);
  if (checked.success) return { value: checked.data };
  const [issue] = checked.error.issues;
  return { error: `${issue?.path.join('.') || 'it'}: ${issue?.message ?? 'is not of the expected form'}` };
}

/** Two spellings of one content are not the same bytes: a key given twice, another escape, another base64. */
function exactly<T>(value: T, written: string, line: string): Parsed<T> {
  return written === line ? { value } : { error: 'it is not written as an export writes it' };
}

/** Longer lines are no events of ours: the conflict map, at most 1 MiB, is the longest part of any. */
const MAX_LINE_BYTES = 16 << 20;

/**
 * The lines of a file, in bounded memory. `complete` is false for a last line without a line feed. Bytes that are not
 * UTF-8 become `null`: decoded leniently, two different files could read the same.
 */
export interface ExportLine {
  readonly text: string | null;
  readonly complete: boolean;
}

export async function* exportLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ExportLine> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const decode = (parts: readonly Uint8Array[]): string | null => {
    try {
      return decoder.decode(Buffer.concat(parts));
    } catch {
      return null;
    }
  };
  let parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      parts.push(chunk.subarray(start, end));
      yield { text: decode(parts), complete: true };
      parts = [];
      size = 0;
      start = end + 1;
    }
    if (start === chunk.length) continue;
    size += chunk.length - start;
    if (size > MAX_LINE_BYTES) {
      yield { text: null, complete: true };
      return;
    }
    parts.push(chunk.subarray(start));
  }
  if (size > 0) yield { text: decode(parts), complete: false };
}
