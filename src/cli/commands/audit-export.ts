import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Command } from 'commander';
import type { WritClient } from '../../clients/common/connect.js';
import type { GetCheckpointRequest } from '../../gen/writ/v1/audit_service.js';
import { exportText } from '../../services/log-export.js';
import type { EventRecord } from '../../storage/store.js';
import { cannotWrite, wholeNumber } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { toCheckpoint, toRecord } from '../event-form.js';
import { EXIT } from '../exit-codes.js';
import { counted } from '../show.js';

/** Which part of the log. */
export interface ExportedPart {
  /** The part begins after this revision; 0: at the start, or where the log was cut. */
  readonly after: number;
  /** What its checkpoint is over, and so where it ends; absent: the head. */
  readonly place?: GetCheckpointRequest['place'];
}

export function registerExport(audit: Command, cli: Cli): void {
  const command = audit
    .command('export')
    .description('write the log to a file, with a signed checkpoint over its end')
    .requiredOption('-o, --output <file>', 'file to write; - is standard output')
    .option('--after <revision>', 'only events after this revision', wholeNumber(), 0);
  action<{ output: string; after: number }>(command, cli, async ({ out, options, client }) => {
    const { output, after } = options;
    const writ = await client('auditor');
    if (output === '-') {
      const { events } = await writeExport(writ, { after }, async (text) => out.raw(text));
      out.note(`${counted(events, 'event')}.`);
      return EXIT.ok;
    }
    const { events, revision, keyId } = await exportToFile(writ, { after }, output);
    out.result(
      () => ({ file: output, events, revision: String(revision), keyId }),
      () => {
        out.line(`${counted(events, 'event')}, up to revision ${revision}, written to ${output}.`);
        out.line(
          `Signed by key ${keyId}. Verify it with: writ audit verify ${after === 0 ? '' : `--after ${after} `}${output}`,
        );
      },
    );
    return EXIT.ok;
  });
}

/** Whole and on the disk, or not at all: half an export would look like one that was cut off. */
export async function exportToFile(writ: WritClient, part: ExportedPart, path: string) {
  const draft = `${path}.part`;
  const file = createWriteStream(draft, { mode: 0o600, flush: true });
  const ended = finished(file);
  ended.catch(() => undefined);
  try {
    const summary = await writeExport(writ, part, async (text) => {
      if (!file.write(text)) await Promise.race([new Promise<void>((resolve) => file.once('drain', resolve)), ended]);
    });
    file.end();
    await ended;
    await rename(draft, path);
    await syncDirectoryOf(path);
    return summary;
  } catch (error) {
    file.destroy();
    // Where it could not even be made, removing it fails the same way, and the first error tells more.
    await rm(draft, { force: true }).catch(() => undefined);
    throw cannotWrite(path, error);
  }
}

/** The name of a new file is on the disk once its directory is. */
async function syncDirectoryOf(path: string): Promise<void> {
  const directory = await open(dirname(path));
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** The checkpoint comes first, so the events end at it, also when more are written meanwhile. */
async function writeExport(writ: WritClient, { after, place }: ExportedPart, write: (text: string) => Promise<void>) {
  const { checkpoint: signed } = await writ.audit.getCheckpoint(place === undefined ? {} : { place });
  if (signed === undefined) throw new CliError(EXIT.failure, 'The coordinator gave no checkpoint.');
  const checkpoint = toCheckpoint(signed);
  const { revision, keyId } = checkpoint;
  if (after > revision)
    throw new CliError(EXIT.usage, `The log ends at revision ${revision}; there is nothing after ${after}.`);
  const batches = async function* (): AsyncGenerator<EventRecord[]> {
    for await (const { events } of writ.audit.exportEvents({ afterRevision: BigInt(after) }))
      yield events.map(toRecord);
  };
  let events = 0;
  for await (const part of exportText(checkpoint, after, batches)) {
    await write(part.text);
    events += part.events;
  }
  return { events, revision, keyId };
}

export async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path) as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw new CliError(EXIT.usage, `${path} cannot be read: ${(error as Error).message}`);
  }
}
