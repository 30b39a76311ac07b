import { createHash } from 'node:crypto';
import type { Command } from 'commander';
import { transportOf } from '../../clients/common/channel.js';
import type { WritClient } from '../../clients/common/connect.js';
import { toDuration } from '../../clients/common/time.js';
import { type Rehearsal, RehearsalOutcome, type RehearsedCase } from '../../gen/writ/v1/conflict_map_service.js';
import {
  CASES,
  type CaseResult,
  type Outcome,
  parseRehearsalConfig,
  type RehearsalConfig,
  RehearsalConfigError,
  type ResourceConfig,
  type ResourceResult,
  rehearse,
  SUITE_VERSION,
  TargetUnreachableError,
} from '../../rehearsal/index.js';
import { duration, readInput, repeated } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { clean, type Output, type Style } from '../output.js';
import { counted, when } from '../show.js';
import { refuseOtherClasses } from './rehearse-classes.js';

interface RehearseOptions {
  readonly target: string;
  readonly config: string;
  readonly case?: readonly string[];
  readonly steps?: boolean;
  readonly record?: boolean;
  readonly validFor?: number;
}

export function registerRehearse(program: Command, cli: Cli): void {
  const command = program
    .command('rehearse')
    .description('play the classic collisions against a target service, and say what it does wrong')
    .requiredOption('--target <url>', 'the service, such as http://127.0.0.1:8080')
    .requiredOption('--config <file>', 'how to speak to it: see docs/rehearsals.md')
    .option('--case <name>', 'play only this case; repeatable', repeated)
    .option('--steps', 'say what happened in cases that passed, too')
    .option('--record', 'record the result on the kinds, as a principal with the role target or admin')
    .option('--valid-for <duration>', 'how long a recorded result counts (default: 30d)', duration);
  action<RehearseOptions>(command, cli, async ({ out, options, client, connection }) => {
    const config = await readConfig(options);
    const recorder = options.record === true ? await client('admin') : undefined;
    const operator = await client('operator');
    await refuseOtherClasses(operator, config).catch((error: unknown) => notPlayed(options.config, error));
    const results = await rehearse({
      config,
      url: targetUrl(options.target),
      runner: await client('runner'),
      operator,
      // The proxy passes on what the service says it is; nothing of ours goes with it.
      upstream: () => transportOf([connection.endpoint].flat()[0] ?? '', connection),
      ...(options.case === undefined ? {} : { only: options.case }),
      onCase: (resource, result) => {
        if (!out.json) showCase(out, resource, result, options.steps === true);
      },
      ...(recorder === undefined ? {} : { onBegin: (resource, runIds) => begin(recorder, resource, runIds) }),
    }).catch((error: unknown) => notPlayed(options.config, error));
    const recorded = recorder === undefined ? [] : await record(recorder, config, results, options.validFor);
    out.result(
      () => ({
        suiteVersion: SUITE_VERSION,
        target: config.target.name,
        passed: hasPassed(results),
        resources: results,
        recorded: recorded.map(recordedJson),
      }),
      () => summarise(out, results, recorded),
    );
    return exitOf(results);
  });
}

function notPlayed(file: string, error: unknown): never {
  if (error instanceof RehearsalConfigError) throw noConfig(file, error);
  if (!(error instanceof TargetUnreachableError)) throw error;
  throw new CliError(
    EXIT.unavailable,
    `Nothing answers at the target ${error.message}. Nothing was rehearsed.`,
    'Start the service, and give its address with --target.',
  );
}

async function readConfig({ config: file, case: cases = [], record }: RehearseOptions): Promise<RehearsalConfig> {
  const unknown = cases.find((name) => !CASES.some((one) => one.name === name));
  if (unknown !== undefined)
    throw new CliError(
      EXIT.usage,
      `There is no case ${unknown}. There are: ${CASES.map(({ name }) => name).join(', ')}.`,
    );
  if (cases.length > 0 && record === true)
    throw new CliError(EXIT.usage, '--record needs all cases: leave --case out.');
  try {
    return parseRehearsalConfig(await readInput(file));
  } catch (error) {
    throw error instanceof RehearsalConfigError ? noConfig(file, error) : error;
  }
}

function noConfig(file: string, { message }: RehearsalConfigError): CliError {
  return new CliError(EXIT.usage, `${file} is no configuration of a rehearsal:\n${indented(message)}`);
}

function targetUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.search !== '' || url.username !== '')
    throw new CliError(EXIT.usage, '--target must be the address of the service, such as http://127.0.0.1:8080.');
  return url.href;
}

// -------------------------------------------------------------------------------------------------------- the record

function begin(recorder: WritClient, resource: ResourceConfig, runIds: readonly string[]): Promise<void> {
  const elsewhere = resource.elsewhere?.resource;
  const resources = [...new Set([resource.resource, ...(elsewhere === undefined ? [] : [elsewhere])])];
  return recorder.conflictMap.beginRehearsal({ resources, runIds: [...runIds] }).then(() => undefined);
}

const OUTCOMES: Readonly<Record<Outcome, RehearsalOutcome>> = {
  passed: RehearsalOutcome.REHEARSAL_OUTCOME_PASSED,
  failed: RehearsalOutcome.REHEARSAL_OUTCOME_FAILED,
  // What the service cannot hold it cannot hold, whoever knows it: no authority rests on that (C13).
  declared_gap: RehearsalOutcome.REHEARSAL_OUTCOME_FAILED,
  not_applicable: RehearsalOutcome.REHEARSAL_OUTCOME_NOT_APPLICABLE,
  undecided: RehearsalOutcome.REHEARSAL_OUTCOME_UNDECIDED,
};

/** One result for each kind: what several resources of it came to, each case by the worst. */
async function record(
  recorder: WritClient,
  config: RehearsalConfig,
  results: readonly ResourceResult[],
  validForMs: number | undefined,
): Promise<Rehearsal[]> {
  const byKind = new Map<string, ResourceResult[]>();
  for (const result of results) {
    const { kind } = await recorder.conflictMap.resolveResource({ resource: result.resource });
    byKind.set(kind, [...(byKind.get(kind) ?? []), result]);
  }
  const recorded: Rehearsal[] = [];
  for (const ofKind of byKind.values()) {
    const { rehearsal } = await recorder.conflictMap.recordRehearsal({
      resource: ofKind[0]?.resource ?? '',
      targetName: config.target.name,
      suiteVersion: SUITE_VERSION,
      resultDigest: createHash('sha256').update(JSON.stringify(ofKind)).digest('hex'),
      cases: worstOf(ofKind),
      ...(validForMs === undefined ? {} : { validFor: toDuration(validForMs) }),
    });
    if (rehearsal !== undefined) recorded.push(rehearsal);
  }
  return recorded;
}

const WORST_FIRST: readonly Outcome[] = ['failed', 'declared_gap', 'undecided', 'passed', 'not_applicable'];

function worstOf(results: readonly ResourceResult[]): RehearsedCase[] {
  const worst = new Map<string, Outcome>();
  for (const { name, outcome } of results.flatMap(({ cases }) => cases)) {
    const before = worst.get(name);
    if (before === undefined || WORST_FIRST.indexOf(outcome) < WORST_FIRST.indexOf(before)) worst.set(name, outcome);
  }
  return [...worst].map(([name, outcome]) => ({ name, outcome: OUTCOMES[outcome] }));
}

function recordedJson({ kind, counts, whyNot, resultDigest }: Rehearsal) {
  return { kind, counts, whyNot, resultDigest };
}

// -------------------------------------------------------------------------------------------------------- the answer

const STYLES: Readonly<Record<Outcome, Style>> = {
  passed: 'green',
  failed: 'red',
  declared_gap: 'yellow',
  not_applicable: 'dim',
  undecided: 'yellow',
};

function showCase(out: Output, at: ResourceConfig, result: CaseResult, steps: boolean): void {
  const { name, outcome, title, proves, message } = result;
  const word = out.style(outcome.replace('_', ' ').padEnd(14), STYLES[outcome]);
  out.line(`${word}  ${named(at)}  ${name} (${proves.join(', ')}): ${title}`);
  if (message !== '') out.line(`                ${clean(message)}`);
  if (steps || outcome === 'failed' || outcome === 'declared_gap' || outcome === 'undecided')
    for (const step of result.steps) out.line(`                · ${clean(step)}`);
}

/** One resource may be rehearsed by several of its actions. */
function named({ resource, action }: { readonly resource: string; readonly action: string }): string {
  return `${resource} ${action}`;
}

function summarise(out: Output, results: readonly ResourceResult[], recorded: readonly Rehearsal[]): void {
  out.line();
  for (const result of results) {
    const { cases, passed } = result;
    const count = (outcome: Outcome) => cases.filter((one) => one.outcome === outcome).length;
    const parts = WORST_FIRST.filter((outcome) => count(outcome) > 0).map(
      (outcome) => `${count(outcome)} ${outcome.replace('_', ' ')}`,
    );
    out.line(
      `${out.style(passed ? 'passed' : 'not passed', passed ? 'green' : 'red')}  ${named(result)}: ${parts.join(', ')}`,
    );
  }
  for (const { kind, counts, whyNot, validUntil } of recorded)
    out.line(
      `Recorded for the kind ${kind}: ${counts ? `it counts until ${when(validUntil)}` : `it does not count, since ${whyNot}`}.`,
    );
  const all = results.flatMap(({ cases }) => cases);
  const gaps = all.filter(({ outcome }) => outcome === 'declared_gap').length;
  if (gaps > 0)
    out.line(`${counted(gaps, 'declared gap')}: there the service does not hold, as its configuration says.`);
  const failed = all.filter(({ outcome }) => outcome === 'failed').length;
  if (failed > 0)
    out.line(
      `${failed} ${failed === 1 ? 'breach' : 'breaches'}: mend the service before any run's authority over it grows.`,
    );
}

function hasPassed(results: readonly ResourceResult[]): boolean {
  return results.every(({ passed }) => passed);
}

/** A breach is found even where something else could not be played. */
function exitOf(results: readonly ResourceResult[]): number {
  const breached = results.some(({ cases }) => cases.some(({ outcome }) => outcome === 'failed'));
  if (breached) return EXIT.verification;
  return hasPassed(results) ? EXIT.ok : EXIT.failure;
}

function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n');
}
