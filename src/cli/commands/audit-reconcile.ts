import type { Command } from 'commander';
import { decodeEvent } from '../../engine/event-codec.js';
import { exportLines, parseEvent } from '../../services/log-export.js';
import { type Finding, NOTICES, Reconciliation } from '../../services/reconcile.js';
import { verifyLogs } from '../../services/verify-log.js';
import { duration, readInput } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { counted, momentText } from '../show.js';
import { readTargetRecords } from '../target-records.js';
import { momentJson } from '../time-json.js';
import { bytesOf } from './audit-export.js';

/** Findings that are told one by one; the rest are counted. */
const MAX_FINDINGS = 1_000;
const DEFAULT_TOLERANCE_MS = 5_000;

interface ReconcileOptions {
  readonly records: string;
  readonly target: string;
  readonly tolerance?: number;
  readonly publicKey?: string;
}

export function registerReconcile(audit: Command, cli: Cli): void {
  const reconcile = audit
    .command('reconcile')
    .argument('<export...>', 'an export; or archives, the oldest first, and the rest')
    .description("compare an export, offline, with a target's own record of writes")
    .requiredOption('--records <file>', 'records of the target, NDJSON as `writeRecords().list` gives them')
    .requiredOption('--target <principal>', 'as whom the target asks and reports')
    .option(
      '--tolerance <duration>',
      'by how much its clock may differ, and how long it takes to write (default: 5s)',
      duration,
    )
    .option('--public-key <file>', 'public key that must have signed the export, in PEM');
  action<ReconcileOptions>(reconcile, cli, async ({ out, options, args: files }) => {
    const publicKey = options.publicKey === undefined ? undefined : await readInput(options.publicKey);
    const verdict = await verifyLogs(files.map(bytesOf), publicKey === undefined ? {} : { publicKey });
    if (verdict.problem !== null)
      throw new CliError(EXIT.verification, `The export does not verify: ${verdict.problem.message}`);
    const records = await readTargetRecords(options.records, bytesOf(options.records));
    const reconciliation = new Reconciliation(
      records,
      options.target,
      (options.tolerance ?? DEFAULT_TOLERANCE_MS) * 1_000,
    );
    for (const file of files) await noteAll(file, reconciliation);
    const { findings, ...counts } = reconciliation.judge();
    const told = findings.slice(0, MAX_FINDINGS);
    const wrong = findings.filter(({ kind }) => !NOTICES.has(kind)).length;
    out.result(
      () => ({ ok: wrong === 0, ...counts, findingsCounted: findings.length, findings: told.map(findingJson) }),
      () => {
        for (const finding of told) showFinding(out, finding);
        if (findings.length > told.length) out.line(`${findings.length - told.length} more findings are not shown.`);
        out.line(
          `${counted(counts.records, 'record')}, of them ${counts.written} written: ${counted(wrong, 'difference')}, ${counted(findings.length - wrong, 'write')} let in without a lease. The log cannot judge ${counts.unjudged} of them.`,
        );
      },
    );
    return wrong === 0 ? EXIT.ok : EXIT.verification;
  });
}

async function noteAll(file: string, reconciliation: Reconciliation): Promise<void> {
  let isHeader = true;
  for await (const { text } of exportLines(bytesOf(file))) {
    if (isHeader) {
      isHeader = false;
      continue;
    }
    const parsed = parseEvent(text ?? '');
    if ('error' in parsed) throw new CliError(EXIT.verification, `${file} has changed since it was verified.`);
    reconciliation.note(decodeEvent(parsed.value), parsed.value.revision);
  }
}

function findingJson(finding: Finding): unknown {
  const { recordedAt, loggedAt, revision, ...rest } = finding;
  return {
    ...rest,
    recordedAt: recordedAt === null ? null : momentJson(recordedAt),
    loggedAt: loggedAt === null ? null : momentJson(loggedAt),
    revision: revision === null ? null : String(revision),
  };
}

function showFinding(out: Output, finding: Finding): void {
  const { kind, resource, action: verb, runId, requestId, identity, recordedAt, line, loggedAt, revision } = finding;
  out.line(`${out.style(kind, NOTICES.has(kind) ? 'yellow' : 'red')}: ${finding.meaning}`);
  out.facts([
    ['write', `${verb} on ${resource}`],
    ['run', runId],
    ['request', requestId],
    ['recorded', recordedAt === null ? '' : `${momentText(recordedAt)}, line ${line}, by ${identity}`],
    ['in the log', loggedAt === null ? '' : `${momentText(loggedAt)}, revision ${revision}`],
  ]);
}
