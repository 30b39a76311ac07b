import type { Command } from 'commander';
import { fromProtoJson, protoJson } from '../../contract/proto-json.js';
import { EVENT_KINDS } from '../../engine/event-codec.js';
import {
  EraseTextsResponse,
  GetCheckpointResponse,
  ListCheckpointsResponse,
  ListEventsResponse,
  type Checkpoint as WireCheckpoint,
} from '../../gen/writ/v1/audit_service.js';
import type { Checkpoint } from '../../services/api.js';
import { isSigned, keyFingerprint } from '../../services/checkpoint-signature.js';
import { type LogVerdict, verifyLogs } from '../../services/verify-log.js';
import { readInput, repeated, wholeNumber } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { toCheckpoint } from '../event-form.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { pages } from '../pages.js';
import { counted, momentText } from '../show.js';
import { momentJson } from '../time-json.js';
import { registerArchive } from './audit-archive.js';
import { bytesOf, registerExport } from './audit-export.js';
import { registerReconcile } from './audit-reconcile.js';
import { showEvent } from './why.js';

export function registerAudit(program: Command, cli: Cli): void {
  const audit = program.command('audit').description('the tamper-evident log');
  registerExport(audit, cli);
  registerArchive(audit, cli);
  registerVerify(audit, cli);
  registerReconcile(audit, cli);
  registerEvents(audit, cli);
  registerCheckpoint(audit, cli);
  registerCheckpoints(audit, cli);
  registerErase(audit, cli);
}

function registerVerify(audit: Command, cli: Cli): void {
  const verify = audit
    .command('verify')
    .argument('<file...>', 'an export; or archives, the oldest first, and the rest; - is standard input')
    .description('verify an export offline, with the public key only; names the first bad event')
    .option('--public-key <file>', 'public key that must have signed it, in PEM')
    .option('--after <revision>', 'the export is known to begin after this revision', wholeNumber())
    .option(
      '--checkpoint <file>',
      'checkpoint kept earlier (audit checkpoint --json, or a line `checkpoint` of a replica): the export must reach and fit it',
    )
    .addHelpText(
      'after',
      '\nWithout --public-key the key of the kept checkpoint is believed, else the one in the file: compare its fingerprint\nwith one you got some other way.',
    );
  interface VerifyOptions {
    readonly publicKey?: string;
    readonly after?: number;
    readonly checkpoint?: string;
  }
  action<VerifyOptions>(verify, cli, async ({ out, options, args: files }) => {
    const kept = options.checkpoint === undefined ? undefined : await checkpointFrom(options.checkpoint);
    const publicKey = options.publicKey === undefined ? kept?.publicKeyPem : await publicKeyFrom(options.publicKey);
    const verdict = await verifyLogs(
      files.map((file) => (file === '-' ? process.stdin : bytesOf(file))),
      {
        ...(publicKey === undefined ? {} : { publicKey }),
        ...(options.after === undefined ? {} : { afterRevision: options.after }),
        ...(kept === undefined ? {} : { kept }),
      },
    );
    out.result(
      () => verdictJson(verdict),
      () => showVerdict(out, verdict, files),
    );
    return verdict.ok ? EXIT.ok : EXIT.verification;
  });
}

async function publicKeyFrom(path: string): Promise<string> {
  const pem = await readInput(path);
  try {
    keyFingerprint(pem);
  } catch {
    throw new CliError(EXIT.usage, `${path} holds no public key in PEM.`);
  }
  return pem;
}

async function checkpointFrom(path: string): Promise<Checkpoint> {
  const text = await readInput(path);
  try {
    // A line of a replica's log has more around it.
    const { checkpoint: signed } = JSON.parse(text);
    const { checkpoint } = fromProtoJson(GetCheckpointResponse, { checkpoint: signed });
    if (checkpoint !== undefined && isSigned(toCheckpoint(checkpoint))) return toCheckpoint(checkpoint);
  } catch {
    // Said below.
  }
  throw new CliError(EXIT.usage, `${path} holds no signed checkpoint as \`writ audit checkpoint --json\` prints it.`);
}

function verdictJson(verdict: LogVerdict): unknown {
  const { ok, problem, namespace, events, firstRevision, lastRevision, checkpoint } = verdict;
  return {
    ok,
    problem: problem === null ? null : { ...problem, revision: problem.revision?.toString() ?? null },
    namespace,
    eventsVerified: events,
    firstRevision: String(firstRevision),
    lastRevision: String(lastRevision),
    checkpoint:
      checkpoint === null
        ? null
        : {
            revision: String(checkpoint.revision),
            hash: Buffer.from(checkpoint.hash, 'hex').toString('base64'),
            time: momentJson(checkpoint.time),
            keyId: checkpoint.keyId,
          },
    keyFingerprint: verdict.keyFingerprint,
    keyGiven: verdict.keyGiven,
    remarks: verdict.remarks,
  };
}

function showVerdict(out: Output, verdict: LogVerdict, files: readonly string[]): void {
  const { problem, checkpoint } = verdict;
  if (problem !== null) {
    const where = problem.revision === null ? '' : ` First bad event: ${problem.revision}.`;
    out.line(
      `${out.style('NOT VERIFIED', 'red')} (${problem.fault.replace('_', ' ')}): ${problem.message}${where} Line ${problem.line}${files.length > 1 ? ` of ${files[problem.part]}` : ''}.`,
    );
    if (verdict.events > 0)
      out.line(
        `Events ${verdict.firstRevision} to ${verdict.lastRevision} before it are linked without a gap; no signature over them was reached.`,
      );
    return;
  }
  out.line(
    `${out.style('verified', 'green')}: ${counted(verdict.events, 'event')} of namespace ${verdict.namespace}, revisions ${verdict.firstRevision} to ${verdict.lastRevision}, none changed, removed, inserted or reordered.`,
  );
  if (checkpoint !== null) out.line(`The end is signed: ${momentText(checkpoint.time)}, hash ${checkpoint.hash}.`);
  for (const remark of verdict.remarks) out.line(remark);
  if (verdict.firstRevision > 1) out.line(`It says nothing about the events before revision ${verdict.firstRevision}.`);
  out.line(`Key ${checkpoint?.keyId ?? ''}, fingerprint (SHA-256) ${verdict.keyFingerprint}.`);
  if (!verdict.keyGiven)
    out.line(
      'The key came with the file: whoever could write the file could sign it. Compare the fingerprint, or give --public-key.',
    );
}

interface EventsOptions {
  readonly run?: string;
  readonly lease?: string;
  readonly resource?: string;
  readonly kind?: readonly string[];
  readonly requestId?: string;
  readonly after?: number;
  readonly newest?: boolean;
  readonly limit: number;
}

function registerEvents(audit: Command, cli: Cli): void {
  const events = audit
    .command('events')
    .description('search the log')
    .option('--run <id>', 'only of this run')
    .option('--lease <id>', 'only of this lease')
    .option('--resource <id>', 'only those that name this resource')
    .option('--kind <kind>', 'only these kinds, such as lease_granted; repeatable', repeated)
    .option('--request-id <id>', 'only those found by this request id')
    .option('--after <revision>', 'only after this revision', wholeNumber())
    .option('--newest', 'newest first')
    .option('--limit <count>', 'at most so many', wholeNumber(1), 50);
  action<EventsOptions>(events, cli, async ({ out, options, client }) => {
    for (const kind of options.kind ?? []) {
      if (!EVENT_KINDS.has(kind))
        throw new CliError(EXIT.usage, `There is no kind ${kind}; there are ${[...EVENT_KINDS].join(', ')}.`);
    }
    const writ = await client('auditor');
    const filter = {
      runId: options.run ?? '',
      leaseId: options.lease ?? '',
      resource: options.resource ?? '',
      kinds: [...(options.kind ?? [])],
      requestId: options.requestId ?? '',
      afterRevision: BigInt(options.after ?? 0),
      newestFirst: options.newest === true,
    };
    let firstRevision = 0n;
    const found = await pages(
      (page) => writ.audit.listEvents({ ...filter, page }),
      (answer) => {
        ({ firstRevision } = answer);
        return answer.events;
      },
      options.limit,
    );
    out.result(
      () => protoJson(ListEventsResponse, { events: found, nextPageToken: '', firstRevision }),
      () => {
        if (firstRevision > 1n)
          out.note(`The log was cut and begins at revision ${firstRevision}; what came before is in an archive.`);
        if (found.length === 0) out.line('The log has no such event.');
        for (const event of found) showEvent(out, event);
      },
    );
    return EXIT.ok;
  });
}

function registerCheckpoint(audit: Command, cli: Cli): void {
  const checkpoint = audit
    .command('checkpoint')
    .description('a signed statement of how far the log goes and what it hashes to');
  action(checkpoint, cli, async ({ out, client }) => {
    const answer = await (await client('auditor')).audit.getCheckpoint({});
    if (answer.checkpoint === undefined) throw new CliError(EXIT.failure, 'The coordinator gave no checkpoint.');
    const { namespace, revision, hash, time, keyId, publicKeyPem } = toCheckpoint(answer.checkpoint);
    out.result(
      () => protoJson(GetCheckpointResponse, answer),
      () => {
        out.facts([
          ['namespace', namespace],
          ['revision', String(revision)],
          ['hash', hash],
          ['time', momentText(time)],
          ['key', `${keyId}, fingerprint (SHA-256) ${keyFingerprint(publicKeyPem)}`],
        ]);
        out.raw(`\n${publicKeyPem}`);
      },
    );
    return EXIT.ok;
  });
}

function registerCheckpoints(audit: Command, cli: Cli): void {
  const checkpoints = audit
    .command('checkpoints')
    .description('the checkpoints that replicas signed on schedule, newest first, and where each was sent')
    .option('--limit <count>', 'at most so many', wholeNumber(1), 50);
  action<{ limit: number }>(checkpoints, cli, async ({ out, options, client }) => {
    const writ = await client('auditor');
    const found = await pages(
      (page) => writ.audit.listCheckpoints({ page }),
      (answer) => answer.checkpoints,
      options.limit,
    );
    out.result(
      () => protoJson(ListCheckpointsResponse, { checkpoints: found, nextPageToken: '' }),
      () => {
        if (found.length === 0) out.line('No checkpoint has been signed yet: see WRIT_CHECKPOINT_EVERY.');
        else
          out.table(
            ['WHEN', 'REVISION', 'HASH', 'SIGNED BY', 'SENT TO'],
            found.flatMap(({ checkpoint, sentTo }) => (checkpoint === undefined ? [] : [row(checkpoint, sentTo)])),
          );
      },
    );
    return EXIT.ok;
  });
}

function row(checkpoint: WireCheckpoint, sentTo: string): string[] {
  const { time, revision, hash, keyId } = toCheckpoint(checkpoint);
  return [momentText(time), String(revision), hash, keyId, sentTo];
}

function registerErase(audit: Command, cli: Cli): void {
  const erase = audit
    .command('erase')
    .argument('<run>', 'a run that has ended')
    .description('erase the free texts (purposes, reasons) of all events of a run; the log itself does not change')
    .requiredOption('--reason <text>', 'why; recorded');
  action<{ reason: string }>(erase, cli, async ({ out, args: [runId = ''], options, client }) => {
    const answer = await (await client('admin')).audit.eraseTexts({ runId, reason: options.reason });
    out.result(
      () => protoJson(EraseTextsResponse, answer),
      () => {
        out.line(
          `${counted(Number(answer.erased), 'text')} of run ${runId} erased; their salted hashes stay in the log.`,
        );
        out.note(
          'The records of the run and its leases keep their texts until they are purged, WRIT_PURGE_AFTER after its end.',
        );
      },
    );
    return EXIT.ok;
  });
}
