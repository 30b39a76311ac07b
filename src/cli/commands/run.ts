import { readFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import type { WritClient } from '../../clients/common/connect.js';
import { WritError } from '../../clients/common/errors.js';
import { timestampMicros, toTimestamp } from '../../clients/common/time.js';
import { protoJson } from '../../contract/proto-json.js';
import type { Timestamp } from '../../gen/google/protobuf/timestamp.js';
import {
  CreateRunResponse,
  GetRunResponse,
  ListRunsResponse,
  type Run,
  RunState,
  StopRunResponse,
  StopRunsResponse,
  UpdateRunStateResponse,
} from '../../gen/writ/v1/run_service.js';
import { wallClockMicros } from '../../platform/clock.js';
import { duration, moment, repeated } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { pages } from '../pages.js';
import { inForce, showOpenWrites, showRun, showRuns } from '../show.js';
import { noteStars } from '../stars.js';
import { wholeId } from '../whole-id.js';

const DEFAULT_AUTHORITY_MS = 3_600_000;

/** States by the names that options use. */
const STATES: Readonly<Record<string, RunState>> = {
  active: RunState.RUN_STATE_ACTIVE,
  waiting_for_input: RunState.RUN_STATE_WAITING_FOR_INPUT,
  blocked: RunState.RUN_STATE_BLOCKED,
  stopping: RunState.RUN_STATE_STOPPING,
  stopped: RunState.RUN_STATE_STOPPED,
  finished: RunState.RUN_STATE_FINISHED,
  failed: RunState.RUN_STATE_FAILED,
  expired: RunState.RUN_STATE_EXPIRED,
};

const REPORTABLE = ['active', 'waiting_for_input', 'blocked', 'finished', 'failed'];

export function registerRun(program: Command, cli: Cli): void {
  const run = program.command('run').description('runs and their execution contracts');
  registerCreate(run, cli);
  registerReads(run, cli);
  registerUpdate(run, cli);
  registerStops(run, cli);
}

interface CreateOptions {
  readonly purpose: string;
  readonly allow?: readonly string[];
  readonly for?: number;
  readonly until?: number;
  readonly goalRevision?: string;
  readonly initiator?: string;
  readonly initiatorTokenFile?: string;
  readonly parent?: string;
  readonly escalation?: readonly string[];
  readonly key?: string;
}

function registerCreate(run: Command, cli: Cli): void {
  const create = run
    .command('create')
    .description('create a run with its contract; prints its id')
    .requiredOption('--purpose <text>', 'what for')
    .option(
      '--allow <pattern=action,…>',
      'what it may ask for: a pattern and actions, or * for all; repeatable',
      repeated,
    )
    .option(
      '--for <duration>',
      'end of its authority, from now (default: 1h, or what its parent has left of one)',
      duration,
    )
    .option('--until <time>', 'end of its authority, such as 2026-12-01T10:00:00Z', moment)
    .option('--goal-revision <text>', 'revision of the goal it works towards')
    .option('--initiator <person>', 'on whose behalf; not verified without --initiator-token-file')
    .option('--initiator-token-file <path>', 'a token of the person, which verifies the initiator')
    .option('--parent <run>', 'the run that it is part of, and never wider than')
    .option('--escalation <who>', 'whom to turn to; repeatable, in order', repeated)
    .option('--key <key>', 'idempotency key: with the same --until, the same key returns the same run')
    .addHelpText(
      'after',
      "\nExample: writ run create --purpose 'release 4.2' --allow 'release/{env}=promote' --for 2h",
    );
  action<CreateOptions>(create, cli, async ({ out, options, client }) => {
    const writ = await client('runner');
    const request = {
      purpose: options.purpose,
      goalRevision: options.goalRevision ?? '',
      initiator: options.initiator ?? '',
      initiatorToken: await readToken(options.initiatorTokenFile),
      parentRunId: options.parent ?? '',
      allowed: (options.allow ?? []).map(allowance),
      authorityEndsAt: await endOfAuthority(writ, options),
      escalation: [...(options.escalation ?? [])],
      idempotencyKey: options.key ?? '',
    };
    const answer = await writ.run.createRun(request);
    out.result(
      () => protoJson(CreateRunResponse, answer),
      () => {
        showOne(answer.run, (one) => showRun(out, one));
        const patterns = request.allowed.map(({ pattern }) => pattern);
        noteStars(out, patterns);
      },
    );
    return EXIT.ok;
  });
}

/** From a file, since arguments are seen by every process of the machine. */
async function readToken(path: string | undefined): Promise<string> {
  if (path === undefined) return '';
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    throw new CliError(EXIT.usage, `--initiator-token-file ${path}: ${(error as Error).message}`);
  }
}

/** A child's hour would nearly always end after its parent's, which began before: the parent's end is the default then (R2). */
async function endOfAuthority(writ: WritClient, options: CreateOptions): Promise<Timestamp> {
  const end = toTimestamp(authorityEnd(options.for, options.until));
  if (options.parent === undefined || options.for !== undefined || options.until !== undefined) return end;
  const theirs = (await parentOf(writ, options.parent))?.authorityEndsAt;
  const [parentEnds = Infinity, ends = 0] = [timestampMicros(theirs), timestampMicros(end)];
  return theirs !== undefined && parentEnds < ends ? theirs : end;
}

/** Undefined where there is no such run: that is told by the call that makes the child, in its own words. */
async function parentOf(writ: WritClient, runId: string): Promise<Run | undefined> {
  try {
    return (await writ.run.getRun({ runId })).run;
  } catch (error) {
    if (error instanceof WritError && ['NOT_FOUND', 'INVALID_ARGUMENT'].includes(error.code)) return undefined;
    throw error;
  }
}

/** The end of a run's authority in microseconds; its length is reckoned on this machine's clock. */
export function authorityEnd(forMs: number | undefined, until: number | undefined): number {
  if (forMs !== undefined && until !== undefined) throw new CliError(EXIT.usage, 'Say either --for or --until.');
  return until ?? wallClockMicros() + (forMs ?? DEFAULT_AUTHORITY_MS) * 1_000;
}

/** The last `=` separates, since a pattern may contain one. */
function allowance(text: string): { pattern: string; actions: string[] } {
  const at = text.lastIndexOf('=');
  if (at < 1 || at === text.length - 1)
    throw new CliError(EXIT.usage, `--allow ${text}: it must be pattern=action,action or pattern=*.`);
  return { pattern: text.slice(0, at), actions: text.slice(at + 1).split(',') };
}

function registerReads(run: Command, cli: Cli): void {
  const get = run
    .command('get')
    .argument('<run>', 'id of the run, or its beginning')
    .description('show a run, its contract and what is unresolved');
  action(get, cli, async ({ out, args: [asked = ''], client }) => {
    const writ = await client('operator');
    const answer = await writ.run.getRun({ runId: await wholeId(writ, asked, ['run']) });
    out.result(
      () => protoJson(GetRunResponse, answer),
      () => showOne(answer.run, (one) => showRun(out, one)),
    );
    return EXIT.ok;
  });

  const list = run
    .command('list')
    .description('list runs that have not ended')
    .option('--state <state>', `only these states, of ${Object.keys(STATES).join(', ')}; repeatable`, repeated);
  action<{ state?: readonly string[] }>(list, cli, async ({ out, options, client }) => {
    const states = (options.state ?? []).map(stateOf);
    const writ = await client('operator');
    const runs = await pages(
      (page) => writ.run.listRuns({ states, page }),
      (answer) => answer.runs,
    );
    out.result(
      () => protoJson(ListRunsResponse, { runs, nextPageToken: '', logRevision: 0n }),
      () => {
        const wanted = options.state ?? [];
        if (runs.length === 0)
          out.line(wanted.length === 0 ? 'No run is under way.' : `There is no run that is ${wanted.join(' or ')}.`);
        else showRuns(out, runs);
      },
    );
    return EXIT.ok;
  });
}

function stateOf(name: string): RunState {
  const state = STATES[name];
  if (state === undefined)
    throw new CliError(EXIT.usage, `There is no state ${name}; there are ${Object.keys(STATES).join(', ')}.`);
  return state;
}

function registerUpdate(run: Command, cli: Cli): void {
  const update = run
    .command('update')
    .argument('<run>', 'id of the run')
    .description('report the state of the work; finished and failed end all its leases')
    .addOption(new Option('--state <state>', 'the state').choices(REPORTABLE).makeOptionMandatory())
    .option('--reason <text>', 'why')
    .option('--key <key>', 'idempotency key')
    .addHelpText('after', '\nAfter lost history only an operator resumes a blocked run: --as operator --state active.');
  action<{ state: string; reason?: string; key?: string }>(
    update,
    cli,
    async ({ out, options, args: [runId = ''], client }) => {
      const writ = await client('runner');
      const request = {
        runId,
        state: stateOf(options.state),
        reason: options.reason ?? '',
        idempotencyKey: options.key ?? '',
      };
      const answer = await writ.run.updateRunState(request);
      out.result(
        () => protoJson(UpdateRunStateResponse, answer),
        () => {
          showOne(answer.run, (one) => showRun(out, one));
          if (answer.effectiveAt !== undefined) out.line(`The run is over: ${inForce(answer.effectiveAt)}.`);
        },
      );
      return EXIT.ok;
    },
  );
}

function registerStops(run: Command, cli: Cli): void {
  const stop = run
    .command('stop')
    .argument('<run>', 'id of the run')
    .description("end a run's authority to write; when it returns, no check allows any of its tokens")
    .requiredOption('--reason <text>', 'why, for the log');
  action<{ reason: string }>(stop, cli, async ({ out, options, args: [runId = ''], client }) => {
    const answer = await (await client('operator')).run.stopRun({ runId, reason: options.reason });
    out.result(
      () => protoJson(StopRunResponse, answer),
      () => {
        const state = answer.run?.state === RunState.RUN_STATE_STOPPING ? 'stopping' : 'stopped';
        out.line(`Run ${runId} is ${state}: ${inForce(answer.effectiveAt)}.`);
        showOpenWrites(out, answer.openWrites);
      },
    );
    return EXIT.ok;
  });

  const stopAll = run
    .command('stop-all')
    .description('stop all runs that match')
    .requiredOption('--reason <text>', 'why, for the log')
    .option('--principal <name>', 'only runs of this principal')
    .option('--resource <id>', 'only runs that hold or wait for something at, above or below it')
    .option('--all', 'every run of the namespace')
    .option('--key <key>', 'idempotency key');
  interface StopAll {
    readonly reason: string;
    readonly principal?: string;
    readonly resource?: string;
    readonly all?: boolean;
    readonly key?: string;
  }
  action<StopAll>(stopAll, cli, async ({ out, options, client }) => {
    const { principal = '', resource = '', all = false } = options;
    if (principal === '' && resource === '' && !all) {
      throw new CliError(
        EXIT.usage,
        'Say which runs: --principal, --resource, or --all for every run of the namespace.',
      );
    }
    const writ = await client('operator');
    const answer = await writ.run.stopRuns({
      principal,
      resource,
      all,
      reason: options.reason,
      idempotencyKey: options.key ?? '',
    });
    out.result(
      () => protoJson(StopRunsResponse, answer),
      () => {
        if (answer.runs.length === 0) out.line('No run matches.');
        else {
          out.line(`Of each of these runs, ${inForce(answer.effectiveAt)}:`);
          showRuns(out, answer.runs);
        }
      },
    );
    return EXIT.ok;
  });
}

function showOne(run: Run | undefined, show: (run: Run) => void): void {
  if (run !== undefined) show(run);
}
