import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { OverrideRecord } from './override.js';
import { fromJson, MAX_PENDING, type OverrideJournal, recordKey, toJson } from './override-journal.js';

/** Past this nothing is appended: move the file away once all is reported. */
const MAX_BYTES = 64 << 20;

/** A line of the file: a record, or that one was reported. */
type Line = { readonly record: object } | { readonly reported: string };

/** A journal of overrides in a file of one process. */
export interface FileOverrideJournal extends OverrideJournal {
  /** Lets go of the file. */
  close(): Promise<void>;
}

/**
 * Keeps what overrides did in a file of JSON lines, each synced to the disk before it counts. One file for one process.
 * A line that was cut off by a crash was never acknowledged, and is cut away at the next start.
 *
 * @example
 * const journal = await fileOverrideJournal('/var/lib/releases/overrides.jsonl');
 */
export async function fileOverrideJournal(path: string): Promise<FileOverrideJournal> {
  const file = await open(path, 'a+', 0o600);
  try {
    await syncDirectory(dirname(path));
    return new Journal(file, await readWhole(file));
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** A file that is new is safe only when its directory is. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** What the file holds, without a last line that a crash cut off. */
async function readWhole(file: FileHandle): Promise<string> {
  const { size } = await file.stat();
  if (size > MAX_BYTES) throw new Error(`the journal of overrides is larger than ${MAX_BYTES} bytes: move it away`);
  const bytes = Buffer.alloc(size);
  await file.read(bytes, 0, size, 0);
  const whole = bytes.subarray(0, bytes.lastIndexOf('\n') + 1);
  if (whole.length < size) await file.truncate(whole.length);
  return whole.toString('utf8');
}

class Journal implements FileOverrideJournal {
  private readonly waiting = new Map<string, OverrideRecord>();
  private readonly known = new Set<string>();
  private size: number;
  /** One line after the other. */
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly file: FileHandle,
    text: string,
  ) {
    this.size = Buffer.byteLength(text);
    for (const line of text.split('\n')) if (line !== '') this.take(JSON.parse(line) as Line);
  }

  append(record: OverrideRecord): Promise<void> {
    return this.inTurn(async () => {
      if (this.known.has(recordKey(record))) return;
      if (this.waiting.size >= MAX_PENDING)
        throw new Error(`${MAX_PENDING} uses of overrides are not reported yet: no more are let in`);
      await this.write({ record: toJson(record) });
    });
  }

  async pending(limit: number): Promise<readonly OverrideRecord[]> {
    return [...this.waiting.values()].slice(0, limit);
  }

  reported(record: OverrideRecord): Promise<void> {
    return this.inTurn(async () => {
      const key = recordKey(record);
      if (this.waiting.has(key)) await this.write({ reported: key });
    });
  }

  close(): Promise<void> {
    return this.inTurn(() => this.file.close());
  }

  private take(line: Line): void {
    if ('reported' in line) {
      this.waiting.delete(line.reported);
      return;
    }
    const record = fromJson(line.record);
    this.known.add(recordKey(record));
    this.waiting.set(recordKey(record), record);
  }

  private async write(line: Line): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`);
    if (this.size + bytes.length > MAX_BYTES) throw new Error('the journal of overrides is full: move the file away');
    try {
      await this.file.appendFile(bytes);
      await this.file.datasync();
    } catch (error) {
      // Half a line would spoil the next one.
      await this.file.truncate(this.size).catch(() => undefined);
      throw error;
    }
    this.size += bytes.length;
    this.take(line);
  }

  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.last.then(work);
    this.last = done.catch(() => undefined);
    return done;
  }
}
