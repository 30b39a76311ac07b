import type { Command } from 'commander';
import { toTimestamp } from '../../clients/common/time.js';
import { protoJson } from '../../contract/proto-json.js';
import {
  FreezeOutcome,
  FreezeResponse,
  ListFreezesResponse,
  ThawOutcome,
  ThawResponse,
} from '../../gen/writ/v1/lease_service.js';
import { type Freeze, Scope } from '../../gen/writ/v1/types.js';
import { wallClockMicros } from '../../platform/clock.js';
import { duration, moment } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { pages } from '../pages.js';
import { counted, covered, showFreezes, when } from '../show.js';
import { noteStars } from '../stars.js';

export function registerFreeze(program: Command, cli: Cli): void {
  const freeze = program.command('freeze').description('patterns under which nothing is granted');
  registerAdd(freeze, cli);
  registerList(freeze, cli);
  registerThaw(program, cli);
}

interface FreezeOptions {
  readonly reason: string;
  readonly exact?: boolean;
  readonly denyChecks?: boolean;
  readonly for?: number;
  readonly until?: number;
}

function registerAdd(freeze: Command, cli: Cli): void {
  const add = freeze
    .command('add', { isDefault: true })
    .argument('<pattern>', 'a pattern such as release/{env}, a path, or an alias')
    .description(
      'stop all grants under a pattern until it is thawed; `add` may be left out: writ freeze <pattern> --reason …',
    )
    .requiredOption('--reason <text>', 'why, for the log and for other operators')
    .option('--exact', 'only what the pattern matches, and nothing below it')
    .option('--deny-checks', 'also deny the writes of leases that are live; without it they may finish')
    .option('--for <duration>', 'thaws by itself after this (default: only by `writ thaw`)', duration)
    .option('--until <time>', 'thaws by itself at this time, such as 2026-12-01T10:00:00Z', moment);
  action<FreezeOptions>(add, cli, async ({ out, options, args: [pattern = ''], client }) => {
    const { reason, exact = false, denyChecks = false } = options;
    const scope = exact ? Scope.SCOPE_EXACT : Scope.SCOPE_SUBTREE;
    const end = endOf(options);
    const until = end === undefined ? {} : { until: toTimestamp(end) };
    const answer = await (await client('operator')).lease.freeze({ pattern, scope, denyChecks, reason, ...until });
    out.result(
      () => protoJson(FreezeResponse, answer),
      () => {
        showFrozen(out, answer);
        noteStars(out, [pattern]);
      },
    );
    return EXIT.ok;
  });
}

/** In microseconds; a length of time is reckoned on this machine's clock. */
function endOf(options: FreezeOptions): number | undefined {
  if (options.for !== undefined && options.until !== undefined)
    throw new CliError(EXIT.usage, 'Say either --for or --until.');
  return options.for === undefined ? options.until : wallClockMicros() + options.for * 1_000;
}

const OUTCOMES: Readonly<Record<number, string>> = {
  [FreezeOutcome.FREEZE_OUTCOME_FROZEN]: 'Frozen: nothing is granted there any more.',
  [FreezeOutcome.FREEZE_OUTCOME_ALREADY_FROZEN]: 'It was frozen already, on these terms or stricter ones.',
  [FreezeOutcome.FREEZE_OUTCOME_STRENGTHENED]: 'It was frozen already; of each term the stricter one holds now.',
};

function showFrozen(out: Output, answer: FreezeResponse): void {
  const { freeze, liveLeases, waitingRequests, kinds } = answer;
  if (freeze === undefined) return;
  out.line(OUTCOMES[answer.outcome] ?? 'It is frozen.');
  showFreezes(out, [freeze]);
  if (kinds.length === 0)
    out.line(out.style('No kind of the conflict map is there: is the pattern spelt right?', 'yellow'));
  if (liveLeases > 0) out.line(livesOn(liveLeases, freeze));
  if (waitingRequests > 0) out.line(`${counted(waitingRequests, 'request')} there will wait until it is thawed.`);
  if (freeze.denyChecks)
    out.line(`Checks deny writes there; targets that do not ask let none in from ${when(answer.effectiveAt)} on.`);
}

function livesOn(liveLeases: number, { denyChecks }: Freeze): string {
  const who = `${counted(liveLeases, 'live lease')} there ${liveLeases === 1 ? 'goes' : 'go'} on`;
  return denyChecks ? `${who}, and may not write.` : `${who}, and may write: --deny-checks stops that too.`;
}

function registerList(freeze: Command, cli: Cli): void {
  const list = freeze
    .command('list')
    .description('list what is frozen, by whom and why')
    .option('--resource <id>', 'only what is over it, or over something below it');
  action<{ resource?: string }>(list, cli, async ({ out, options, client }) => {
    const { resource = '' } = options;
    const writ = await client('operator');
    const freezes = await pages(
      (page) => writ.lease.listFreezes({ resource, page }),
      (answer) => answer.freezes,
    );
    out.result(
      () => protoJson(ListFreezesResponse, { freezes, nextPageToken: '', logRevision: 0n }),
      () => {
        if (freezes.length === 0) out.line('Nothing is frozen.');
        else showFreezes(out, freezes);
      },
    );
    return EXIT.ok;
  });
}

function registerThaw(program: Command, cli: Cli): void {
  const thaw = program
    .command('thaw')
    .argument('<pattern>', 'as it was frozen; `writ freeze list` shows it')
    .description('let grants under a frozen pattern go on; whoever waited there is granted in turn')
    .option('--reason <text>', 'why, for the log');
  action<{ reason?: string }>(thaw, cli, async ({ out, options, args: [pattern = ''], client }) => {
    const answer = await (await client('operator')).lease.thaw({ pattern, reason: options.reason ?? '' });
    const isThawed = answer.outcome === ThawOutcome.THAW_OUTCOME_THAWED;
    out.result(
      () => protoJson(ThawResponse, answer),
      () => {
        out.line(isThawed ? thawedText(answer) : 'No freeze has exactly this pattern: writ freeze list');
        if (answer.stillFrozenBy.length === 0) return;
        out.line(out.style('A part of it stays frozen by:', 'yellow'));
        showFreezes(out, answer.stillFrozenBy);
      },
    );
    return isThawed ? EXIT.ok : EXIT.notFound;
  });
}

/** What is open again, since when it was not, and who has something by that. */
function thawedText({ freeze, granted }: ThawResponse): string {
  const { pattern = '', scope = Scope.SCOPE_EXACT, frozenAt, frozenBy = '', reason = '' } = freeze ?? {};
  const by = frozenBy === '' ? '' : ` by ${frozenBy}`;
  const why = reason === '' ? '' : `: "${reason}"`;
  const who = granted === 0 ? 'No waiting request' : counted(granted, 'waiting request');
  return `Thawed: ${covered(pattern, scope)}, frozen${by} since ${when(frozenAt)}${why}. ${who} got a lease by this.`;
}
