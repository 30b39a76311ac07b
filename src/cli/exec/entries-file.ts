import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { protoJson } from '../../contract/proto-json.js';
import { LeaseEntry } from '../../gen/writ/v1/types.js';

/** A file for the command with all entries of the lease, as the API's JSON has them; tokens are decimal strings. */
export interface EntriesFile {
  readonly path: string;
  /** Where it is, and where more for the command may go; removed with it. */
  readonly directory: string;
  remove(): Promise<void>;
}

/** In a directory of its own, both for their owner only: tokens and lease ids are handles. */
export async function writeEntriesFile(entries: readonly LeaseEntry[]): Promise<EntriesFile> {
  const directory = await mkdtemp(join(tmpdir(), 'writ-exec-'));
  const path = join(directory, 'entries.json');
  await writeFile(
    path,
    `${JSON.stringify(
      entries.map((entry) => protoJson(LeaseEntry, entry)),
      null,
      2,
    )}\n`,
    { mode: 0o600, flag: 'wx' },
  );
  return { path, directory, remove: () => rm(directory, { recursive: true, force: true }) };
}
