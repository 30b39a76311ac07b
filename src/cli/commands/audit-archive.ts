import { access } from 'node:fs/promises';
import type { Command } from 'commander';
import type { WritClient } from '../../clients/common/connect.js';
import { toTimestamp } from '../../clients/common/time.js';
import type { CutLogResponse, GetCheckpointRequest } from '../../gen/writ/v1/audit_service.js';
import { type ExportHeader, exportLines, parseHeader } from '../../services/log-export.js';
import { verifyLog } from '../../services/verify-log.js';
import { moment, wholeNumber } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { counted } from '../show.js';
import { bytesOf, exportToFile } from './audit-export.js';

interface ArchiveOptions {
  readonly before?: number;
  readonly upto?: number;
  readonly file: string;
  readonly cut?: boolean;
  readonly reason?: string;
  readonly evenYoung?: boolean;
}

/** An archive on the disk, found whole. */
interface Archive {
  readonly header: ExportHeader;
  readonly events: number;
  readonly sha256: string;
}

export function registerArchive(audit: Command, cli: Cli): void {
  const archive = audit
    .command('archive')
    .description('write the beginning of the log to a file and, with --cut, remove it from the database')
    .requiredOption('--file <file>', 'archive to write; one that is there already is not written over, but cut by')
    .option('--before <time>', 'all events before this time, RFC 3339', moment)
    .option('--upto <revision>', 'all events up to this revision', wholeNumber(1))
    .option('--cut', 'remove them, once the archive is on the disk and verified')
    .option('--reason <text>', 'why they are cut; recorded')
    .option('--even-young', 'cut also what is less than 24 h old')
    .addHelpText(
      'after',
      '\nThe archive is an export: verify it with the rest by `writ audit verify ARCHIVE... EXPORT`. When a call with --cut was\ninterrupted, the same call goes on.',
    );
  action<ArchiveOptions>(archive, cli, async ({ out, options, namespace, client }) => {
    const { file, cut = false, reason = '' } = options;
    if (cut && reason.trim() === '') throw new CliError(EXIT.usage, 'Say why it is cut: --reason.');
    const writ = await client(cut ? 'admin' : 'auditor');
    const isThere = await access(file).then(
      () => true,
      () => false,
    );
    if (isThere && !cut)
      throw new CliError(EXIT.usage, `${file} is there already, and an archive is not written over.`);
    if (!isThere) await exportToFile(writ, { after: 0, place: placeOf(options) }, file);
    const found = await wholeArchive(file, namespace || 'default');
    const { checkpoint, afterRevision } = found.header;
    const done = cut ? await cutBy(writ, found, options) : null;
    out.result(
      () => ({
        file,
        firstRevision: String(afterRevision + 1),
        lastRevision: String(checkpoint.revision),
        events: found.events,
        keyId: checkpoint.keyId,
        sha256: found.sha256,
        cut: done === null ? null : { firstRevision: String(done.firstRevision), removed: done.removed },
      }),
      () => {
        out.line(
          `${counted(found.events, 'event')}, revisions ${afterRevision + 1} to ${checkpoint.revision}, are in ${file} (SHA-256 ${found.sha256}).`,
        );
        if (done !== null)
          out.line(`${counted(done.removed, 'event')} removed; the log begins at revision ${done.firstRevision}.`);
      },
    );
    return EXIT.ok;
  });
}

function placeOf({ before, upto }: ArchiveOptions): NonNullable<GetCheckpointRequest['place']> {
  if (before !== undefined && upto === undefined) return { $case: 'before', value: toTimestamp(before) };
  if (upto !== undefined && before === undefined) return { $case: 'revision', value: BigInt(upto) };
  throw new CliError(EXIT.usage, 'Say how far: exactly one of --before and --upto.');
}

/** Reads back what is on the disk: nothing is cut for an archive that does not verify. */
async function wholeArchive(file: string, namespace: string): Promise<Archive> {
  const first = await exportLines(bytesOf(file)).next();
  const parsed = parseHeader((first.done === true ? null : first.value.text) ?? '');
  if ('error' in parsed) throw new CliError(EXIT.usage, `${file} is no archive: ${parsed.error}.`);
  const header = parsed.value;
  if (header.namespace !== namespace)
    throw new CliError(EXIT.usage, `${file} is an archive of namespace ${header.namespace}, not of ${namespace}.`);
  const verdict = await verifyLog(bytesOf(file), { afterRevision: header.afterRevision });
  if (verdict.problem !== null)
    throw new CliError(EXIT.verification, `${file} does not verify: ${verdict.problem.message}`);
  return { header, events: verdict.events, sha256: verdict.fileDigests[0] ?? '' };
}

/** Cuts, call by call, until all of it is gone. */
async function cutBy(
  writ: WritClient,
  { header, sha256 }: Archive,
  { reason = '', evenYoung = false }: ArchiveOptions,
) {
  const { afterRevision, checkpoint } = header;
  const { firstRevision: begins } = await writ.audit.listEvents({ page: { pageSize: 1 } });
  const isCut = Number(begins) === checkpoint.revision + 1;
  if (!isCut && Number(begins) !== afterRevision + 1)
    throw new CliError(
      EXIT.usage,
      `The archive begins at revision ${afterRevision + 1}, and the log at ${begins}: cut by it, events would be in no archive, or in two.`,
    );
  const { namespace, revision, hash, time, signature, keyId, publicKeyPem } = checkpoint;
  const request = {
    checkpoint: {
      namespace,
      revision: BigInt(revision),
      hash: Buffer.from(hash, 'hex'),
      time: toTimestamp(time),
      signature: Buffer.from(signature),
      keyId,
      publicKey: publicKeyPem,
    },
    archiveDigest: Buffer.from(sha256, 'hex'),
    reason,
    evenYoung,
  };
  let removed = 0;
  let answer: CutLogResponse;
  do {
    answer = await writ.audit.cutLog(request);
    removed += Number(answer.removed);
  } while (answer.left > 0n);
  return { firstRevision: answer.firstRevision, removed };
}
