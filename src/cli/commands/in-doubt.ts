import { type Command, Option } from 'commander';
import { protoJson } from '../../contract/proto-json.js';
import {
  ListInDoubtResponse,
  type OpenWrite,
  SettledOutcome,
  SettleInDoubtResponse,
} from '../../gen/writ/v1/lease_service.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { pages } from '../pages.js';
import { counted, when } from '../show.js';

const OUTCOMES: Readonly<Record<string, SettledOutcome>> = {
  happened: SettledOutcome.SETTLED_OUTCOME_HAPPENED,
  'did-not-happen': SettledOutcome.SETTLED_OUTCOME_DID_NOT_HAPPEN,
};

export function registerInDoubt(program: Command, cli: Cli): void {
  const inDoubt = program
    .command('in-doubt')
    .description('tracked writes of which nobody knows what became, and which keep their resource from everybody');
  registerList(inDoubt, cli);
  registerSettle(inDoubt, cli);
}

interface ListOptions {
  readonly run?: string;
  readonly resource?: string;
  readonly open?: boolean;
}

function registerList(inDoubt: Command, cli: Cli): void {
  const list = inDoubt
    .command('list')
    .description('list writes in doubt')
    .option('--run <id>', 'only those of this run')
    .option('--resource <id>', 'only those at, above or below it')
    .option('--open', 'also writes that are open under a lease which lives');
  action<ListOptions>(list, cli, async ({ out, options, client }) => {
    const { run: runId = '', resource = '', open: includeOpen = false } = options;
    const writ = await client('operator');
    const writes = await pages(
      (page) => writ.lease.listInDoubt({ runId, resource, includeOpen, page }),
      (answer) => answer.writes,
    );
    out.result(
      () => protoJson(ListInDoubtResponse, { writes, nextPageToken: '', logRevision: 0n }),
      () => {
        if (writes.length === 0) out.line(includeOpen ? 'No tracked write is open.' : 'Nothing is in doubt.');
        else showWrites(out, writes);
      },
    );
    return EXIT.ok;
  });
}

/** Each with what it takes to find out. */
export function showWrites(out: Output, writes: readonly OpenWrite[]): void {
  out.table(
    ['WRITE', 'RESOURCE', 'ACTION', 'IN DOUBT SINCE', 'LET IN', 'TARGET', 'REQUEST', 'RUN'],
    writes.map((write) => [
      write.admissionId,
      write.resource,
      write.action,
      `${write.inDoubtSince === undefined ? 'open, its lease lives' : when(write.inDoubtSince)}${write.unsure ? ' (its target cannot tell)' : ''}`,
      when(write.admittedAt),
      write.target,
      write.requestId,
      write.runId,
    ]),
  );
  out.line();
  out.line('Look at the target by the request id, then: writ in-doubt settle WRITE --outcome … --reason …');
}

interface SettleOptions {
  readonly outcome: string;
  readonly reason: string;
  readonly newVersion?: string;
}

function registerSettle(inDoubt: Command, cli: Cli): void {
  const settle = inDoubt
    .command('settle')
    .argument('<write>', 'its id, as `writ in-doubt list` shows it')
    .description('say what became of a write in doubt; whoever waits for the resource is granted it')
    .addOption(
      new Option('--outcome <outcome>', 'what you found out').choices(Object.keys(OUTCOMES)).makeOptionMandatory(),
    )
    .requiredOption('--reason <text>', 'how you found out, for the log')
    .option('--new-version <version>', 'the version of the resource now, of a write that happened');
  action<SettleOptions>(settle, cli, async ({ out, options, args: [admissionId = ''], client }) => {
    const { reason, newVersion } = options;
    const outcome = OUTCOMES[options.outcome] ?? SettledOutcome.SETTLED_OUTCOME_UNSPECIFIED;
    const version = newVersion === undefined ? {} : { newVersion };
    const answer = await (await client('operator')).lease.settleInDoubt({ admissionId, outcome, reason, ...version });
    out.result(
      () => protoJson(SettleInDoubtResponse, answer),
      () => {
        out.line(answer.settledNow ? 'Settled.' : 'That was known before; nothing was changed.');
        const left = answer.stillOpen.length;
        if (left > 0) out.line(`Of its run ${counted(left, 'write')} more ${left === 1 ? 'is' : 'are'} unresolved.`);
      },
    );
    return EXIT.ok;
  });
}
