import { createReadStream, createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import type { Command } from 'commander';
import type { WritClient } from '../../clients/common/connect.js';
import { EVENT_KINDS } from '../../engine/event-codec.js';
import { GetCheckpointResponse, ListEventsResponse } from '../../gen/writ/v1/audit_service.js';
import type { Checkpoint } from '../../services/api.js';
import { isSigned } from '../../services/kept-checkpoint.js';
import { formatEvent, formatHeader } from '../../services/log-export.js';
import { keyFingerprint, type LogVerdict, verifyLog } from '../../services/verify-log.js';
import { cannotWrite, readInput, repeated, wholeNumber } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { toCheckpoint, toRecord } from '../event-form.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { pages } from '../pages.js';
import { fromProtoJson, momentJson, protoJson } from '../proto-json.js';
import { counted, momentText } from '../show.js';
import { showEvent } from './why.js';

export function registerAudit(program: Command, cli: Cli): void {
  const audit = program.command('audit').description('the tamper-evident log');
  registerExport(audit, cli);
  registerVerify(audit, cli);
  registerEvents(audit, cli);
  registerCheckpoint(audit, cli);
}

function registerExport(audit: Command, cli: Cli): void {
  const command = audit
    .command('export')
    .description('write the log to a file, with a signed checkpoint over its end')
    .requiredOption('-o, --output <file>', 'file to write; - is standard output')
    .option('--after <revision>', 'only events after this revision', wholeNumber(), 0);
  action<{ output: string; after: number }>(command, cli, async ({ out, options, client }) => {
    const { output, after } = options;
    const writ = await client('auditor');
    if (output === '-') {
      const { count } = await writeExport(writ, after, async (text) => out.raw(text));
      out.note(`${counted(count, 'event')}.`);
      return EXIT.ok;
    }
    const summary = await exportToFile(writ, after, output);
    const { events, revision, keyId } = summary;
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

async function exportToFile(writ: WritClient, after: number, path: string) {
  // Whole or not at all: half an export would look like one that was cut off.
  const draft = `${path}.part`;
  const file = createWriteStream(draft, { mode: 0o600 });
  const ended = finished(file);
  ended.catch(() => undefined);
  try {
    const { count, revision, keyId } = await writeExport(writ, after, async (text) => {
      if (!file.write(text)) await Promise.race([new Promise<void>((resolve) => file.once('drain', resolve)), ended]);
    });
    file.end();
    await ended;
    await rename(draft, path);
    return { events: count, revision, keyId };
  } catch (error) {
    file.destroy();
    await rm(draft, { force: true });
    throw cannotWrite(path, error);
  }
}

/** The checkpoint comes first, so the events end at it, also when more are written meanwhile. */
async function writeExport(writ: WritClient, after: number, write: (text: string) => Promise<void>) {
  const { checkpoint: signed } = await writ.audit.getCheckpoint({});
  if (signed === undefined) throw new CliError(EXIT.failure, 'The coordinator gave no checkpoint.');
  const checkpoint = toCheckpoint(signed);
  const { revision, keyId } = checkpoint;
  if (after > revision)
    throw new CliError(EXIT.usage, `The log ends at revision ${revision}; there is nothing after ${after}.`);
  await write(`${formatHeader({ namespace: checkpoint.namespace, afterRevision: after, checkpoint })}\n`);
  let last = after;
  if (last < revision) {
    for await (const { events } of writ.audit.exportEvents({ afterRevision: BigInt(after) })) {
      const wanted = events.map(toRecord).filter((event) => event.revision <= revision);
      await write(wanted.map((event) => `${formatEvent(event)}\n`).join(''));
      last = wanted.at(-1)?.revision ?? last;
      if (last >= revision) break;
    }
  }
  if (last !== revision)
    throw new CliError(EXIT.failure, `The export ended at revision ${last}, before the checkpoint's ${revision}.`);
  return { count: revision - after, revision, keyId };
}

function registerVerify(audit: Command, cli: Cli): void {
  const verify = audit
    .command('verify')
    .argument('<file>', 'an export; - is standard input')
    .description('verify an export offline, with the public key only; names the first bad event')
    .option('--public-key <file>', 'public key that must have signed it, in PEM')
    .option('--after <revision>', 'the export is known to begin after this revision', wholeNumber())
    .option(
      '--checkpoint <file>',
      'checkpoint kept earlier (audit checkpoint --json): the export must reach and fit it',
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
  action<VerifyOptions>(verify, cli, async ({ out, options, args: [file = ''] }) => {
    const kept = options.checkpoint === undefined ? undefined : await checkpointFrom(options.checkpoint);
    const publicKey = options.publicKey === undefined ? kept?.publicKeyPem : await publicKeyFrom(options.publicKey);
    const verdict = await verifyLog(file === '-' ? process.stdin : bytesOf(file), {
      ...(publicKey === undefined ? {} : { publicKey }),
      ...(options.after === undefined ? {} : { afterRevision: options.after }),
      ...(kept === undefined ? {} : { kept }),
    });
    out.result(
      () => verdictJson(verdict),
      () => showVerdict(out, verdict),
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
    const { checkpoint } = fromProtoJson(GetCheckpointResponse, JSON.parse(text));
    if (checkpoint !== undefined && isSigned(toCheckpoint(checkpoint))) return toCheckpoint(checkpoint);
  } catch {
    // Said below.
  }
  throw new CliError(EXIT.usage, `${path} holds no signed checkpoint as \`writ audit checkpoint --json\` prints it.`);
}

async function* bytesOf(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path) as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw new CliError(EXIT.usage, `${path} cannot be read: ${(error as Error).message}`);
  }
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
  };
}

function showVerdict(out: Output, verdict: LogVerdict): void {
  const { problem, checkpoint } = verdict;
  if (problem !== null) {
    const where = problem.revision === null ? '' : ` First bad event: ${problem.revision}.`;
    out.line(
      `${out.style('NOT VERIFIED', 'red')} (${problem.fault.replace('_', ' ')}): ${problem.message}${where} Line ${problem.line}.`,
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
    const found = await pages(
      (page) => writ.audit.listEvents({ ...filter, page }),
      (answer) => answer.events,
      options.limit,
    );
    out.result(
      () => protoJson(ListEventsResponse, { events: found, nextPageToken: '' }),
      () => {
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
