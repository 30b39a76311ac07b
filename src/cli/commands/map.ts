import { writeFile } from 'node:fs/promises';
import { type Command, Option } from 'commander';
import type { WritClient } from '../../clients/common/connect.js';
import { WritError } from '../../clients/common/errors.js';
import { protoJson } from '../../contract/proto-json.js';
import {
  type AffectedLease,
  GetConflictMapResponse,
  GetTaskMatrixResponse,
  ListConflictMapVersionsResponse,
  ListUnmatchedResourcesResponse,
  OnLiveConflict,
  PreviewConflictMapResponse,
  PutConflictMapResponse,
} from '../../gen/writ/v1/conflict_map_service.js';
import { checkConflictMapText } from '../../services/conflict-map-text.js';
import { unifiedDiff } from '../../services/text-diff.js';
import { cannotWrite, wholeNumber } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { type MapFiles, readMapFiles } from '../map-files.js';
import type { Output } from '../output.js';
import { pages } from '../pages.js';
import { counted, several, when } from '../show.js';
import { droppedText, refuseDropping, wouldDrop } from './map-dropped-kinds.js';
import { registerExplain } from './map-explain.js';
import { livePairs, showLivePairs } from './map-live-pairs.js';
import { showMatrix } from './map-matrix.js';
import { registerRehearsals } from './map-rehearsals.js';

const FILE = 'a file, a directory of fragments, or - for standard input';

const HANDLING: Readonly<Record<string, OnLiveConflict>> = {
  refuse: OnLiveConflict.ON_LIVE_CONFLICT_REFUSE,
  revoke_newer: OnLiveConflict.ON_LIVE_CONFLICT_REVOKE_NEWER,
  keep_until_end: OnLiveConflict.ON_LIVE_CONFLICT_KEEP_UNTIL_END,
};

export function registerMap(program: Command, cli: Cli): void {
  const map = program.command('map').description('the conflict map');
  registerGet(map, cli);
  registerChecks(map, cli);
  registerExplain(map, cli);
  registerPreview(map, cli);
  registerMatrix(map, cli);
  registerDiff(map, cli);
  registerApply(map, cli);
  registerRollback(map, cli);
  registerLists(map, cli);
  registerRehearsals(map, cli);
}

function registerGet(map: Command, cli: Cli): void {
  const get = map
    .command('get')
    .description('print the map as it was put, comments and all')
    .option('--at <version>', 'an older version', wholeNumber(1))
    .option('-o, --output <file>', 'write it to a file');
  action<{ at?: number; output?: string }>(get, cli, async ({ out, options, client }) => {
    const answer = await (await client('admin')).conflictMap.getConflictMap({ version: BigInt(options.at ?? 0) });
    if (answer.version === 0n)
      throw new CliError(
        EXIT.notFound,
        'There is no conflict map yet.',
        'Put the first one with `writ map apply FILE`.',
      );
    const about = `version ${answer.version}, put by ${answer.author} at ${when(answer.createdAt)}${answer.reason === '' ? '' : `: ${answer.reason}`}`;
    const { output } = options;
    if (output !== undefined) {
      await writeFile(output, answer.document).catch((error: unknown) => {
        throw cannotWrite(output, error);
      });
    }
    out.result(
      () => protoJson(GetConflictMapResponse, answer),
      () => {
        if (output === undefined) out.raw(answer.document);
        out.note(about);
      },
    );
    return EXIT.ok;
  });
}

/** A problem of a document, from here or from the coordinator. */
interface Problem {
  readonly file?: string;
  readonly line: number;
  readonly column: number;
  readonly code: string;
  readonly message: string;
  readonly path: string;
  readonly warning: boolean;
}

function showProblems(
  out: Output,
  problems: readonly Problem[],
  say: (text: string) => void = (text) => out.line(text),
): void {
  for (const { file = '', line, column, code, message, path, warning } of problems) {
    const where = line === 0 ? path : `${file === '' ? 'line ' : `${file}:`}${line}:${column}`;
    const level = warning ? out.style('warning', 'yellow') : out.style('error', 'red');
    say(`${where === '' ? '' : `${where}: `}${level} (${code}): ${message}`);
  }
}

/** Both work without a coordinator, as in a pull request's checks. */
function registerChecks(map: Command, cli: Cli): void {
  const validate = map.command('validate').argument('<file>', FILE).description('check a map, offline');
  action(validate, cli, async ({ out, args: [path = ''] }) => {
    const { files } = await readMapFiles(cli, path);
    const { map: compiled, problems } = checkConflictMapText(files);
    const valid = compiled !== undefined;
    out.result(
      () => ({ valid, problems }),
      () => {
        showProblems(out, problems);
        const count = problems.length === 0 ? '' : ` (${counted(problems.length, valid ? 'warning' : 'problem')})`;
        out.line(valid ? `${out.style('valid', 'green')}${count}` : `${out.style('not valid', 'red')}${count}`);
      },
    );
    return valid ? EXIT.ok : EXIT.usage;
  });

  const test = map.command('test').argument('<file>', FILE).description('run the assertions of a map, offline');
  action(test, cli, async ({ out, args: [path = ''] }) => {
    const { files } = await readMapFiles(cli, path);
    const { document, problems } = checkConflictMapText(files);
    const errors = problems.filter((problem) => !problem.warning);
    const failed = errors.filter((problem) => problem.code === 'assertion_failed');
    // The other problems come first: with them no assertion means anything.
    const broken = errors.length > failed.length;
    const passed = !broken && failed.length === 0;
    out.result(
      () => ({ passed, failed, problems: broken ? errors : [] }),
      () => {
        showProblems(out, broken ? errors : failed);
        if (broken) out.line(out.style('not valid', 'red'));
        else if (failed.length > 0) out.line(`${out.style('failed', 'red')}: ${counted(failed.length, 'assertion')}`);
        else out.line(`${out.style('passed', 'green')}: ${counted(document?.assertions?.length ?? 0, 'assertion')}`);
      },
    );
    if (broken) return EXIT.usage;
    return passed ? EXIT.ok : EXIT.verification;
  });
}

const onLiveConflict = () =>
  new Option('--on-live-conflict <handling>', 'what to do with live leases that the map puts in conflict')
    .choices(Object.keys(HANDLING))
    .default('refuse');

function registerPreview(map: Command, cli: Cli): void {
  const preview = map
    .command('preview')
    .argument('<file>', FILE)
    .description('say which live leases a map would hit')
    .addOption(onLiveConflict());
  action<{ onLiveConflict: string }>(preview, cli, async ({ out, options, args: [path = ''], client }) => {
    const files = await readMapFiles(cli, path);
    const accepted = await previewMap(out, await client('admin'), files, { ...options, dropKinds: true });
    return accepted ? EXIT.ok : EXIT.refused;
  });
}

/** Whether it would be taken: by the coordinator, and by the command that it is a preview of. */
async function previewMap(
  out: Output,
  writ: WritClient,
  files: MapFiles,
  { onLiveConflict: handling, dropKinds }: Pick<ApplyOptions, 'onLiveConflict' | 'dropKinds'>,
): Promise<boolean> {
  const document = files.text();
  const answer = await writ.conflictMap.previewConflictMap({ document, onLiveConflict: HANDLING[handling] ?? 0 });
  const pairs = await livePairs(writ, document, answer.affected);
  const dropped = await wouldDrop(writ, document);
  out.result(
    () => ({ ...(protoJson(PreviewConflictMapResponse, answer) as object), pairs, droppedKinds: dropped }),
    () => {
      showProblems(out, locally(files, answer.problems));
      if (dropped.length > 0) out.line(`${droppedText(dropped)}.`);
      showAffected(out, answer.affected, 'would be');
      showLivePairs(out, pairs);
      if (answer.accepted && dropped.length > 0)
        out.line(`It would be taken with --drop-kinds; without it \`writ map apply\` refuses what takes kinds away.`);
      else if (answer.accepted) out.line(out.style('It would be taken.', 'green'));
      else out.line(`${out.style('It would not be taken', 'red')}: ${whyNotTaken(answer, pairs.length)}`);
    },
  );
  return answer.accepted && (dropped.length === 0 || dropKinds === true);
}

function whyNotTaken({ problems }: PreviewConflictMapResponse, pairs: number): string {
  if (problems.some(({ warning }) => !warning)) return 'it is not valid. Correct the errors above.';
  return (
    `it puts ${counted(pairs, 'pair')} of live leases in conflict (LIVE_CONFLICT). It would be once they have ended, ` +
    'or with --on-live-conflict revoke_newer, which ends the newer of each pair, or keep_until_end, which lets both live.'
  );
}

/** Of fragments the coordinator sees one merged text, whose lines are in no file. */
function locally(files: MapFiles, told: readonly Problem[]): readonly Problem[] {
  const { problems } = checkConflictMapText(files.files);
  return problems.length > 0 ? problems : told;
}

function showAffected(out: Output, affected: readonly AffectedLease[], verb: string): void {
  if (affected.length === 0) {
    out.line(`No live lease ${verb === 'were' ? 'was' : 'would be'} touched.`);
    return;
  }
  out.line(`These live leases ${verb} touched:`);
  out.table(
    ['LEASE', 'RUN', 'ADDED', 'IN CONFLICT WITH', 'THEN'],
    affected.map((one) => [
      one.leaseId,
      one.runId,
      several(one.added.map((entry) => entry.resource)),
      several(one.conflictsWith),
      one.ended ? 'ended' : one.noLongerGranted === '' ? 'lives on' : `lives on, though ${one.noLongerGranted}`,
    ]),
  );
}

function registerMatrix(map: Command, cli: Cli): void {
  const matrix = map
    .command('matrix')
    .argument('[file]', `judge by this instead of the current map: ${FILE}`)
    .description('which pairs of tasks can collide, and why');
  action(matrix, cli, async ({ out, args: [path], client }) => {
    const document = path === undefined ? '' : (await readMapFiles(cli, path)).text();
    const answer = await (await client('admin')).conflictMap.getTaskMatrix({ document });
    out.result(
      () => protoJson(GetTaskMatrixResponse, answer),
      () => {
        showMatrix(out, answer.pairs);
      },
    );
    return EXIT.ok;
  });
}

function registerDiff(map: Command, cli: Cli): void {
  const diff = map
    .command('diff')
    .argument('<file>', FILE)
    .description('compare with the current map, or an older one')
    .option('--at <version>', 'compare with this version', wholeNumber(1))
    .option('--exit-code', `end with ${EXIT.failure} when they differ`);
  action<{ at?: number; exitCode?: boolean }>(diff, cli, async ({ out, options, args: [path = ''], client }) => {
    const files = await readMapFiles(cli, path);
    const answer = await (await client('admin')).conflictMap.getConflictMap({ version: BigInt(options.at ?? 0) });
    const lines = unifiedDiff(answer.document, files.text(), `version ${answer.version}`, path);
    const machine = () => ({ version: answer.version.toString(), differs: lines.length > 0, diff: lines.join('\n') });
    out.result(machine, () => {
      for (const line of lines)
        out.line(
          line.startsWith('+') ? out.style(line, 'green') : line.startsWith('-') ? out.style(line, 'red') : line,
        );
      if (lines.length === 0) out.line(`The same as version ${answer.version}.`);
    });
    return lines.length > 0 && options.exitCode === true ? EXIT.failure : EXIT.ok;
  });
}

interface ApplyOptions {
  readonly reason?: string;
  readonly expectedVersion?: number;
  readonly onLiveConflict: string;
  readonly dryRun?: boolean;
  readonly dropKinds?: boolean;
}

function registerApply(map: Command, cli: Cli): void {
  const apply = map
    .command('apply')
    .argument('<file>', FILE)
    .description('replace the whole map; one file is put as it is, fragments as one document')
    .option('--reason <text>', 'why, for the history')
    .option(
      '--expected-version <number>',
      'refuse unless this is the current version (default: the current one now)',
      wholeNumber(),
    )
    .addOption(onLiveConflict())
    .option('--drop-kinds', 'let kinds go away that are in force and not in the file; without it that is refused')
    .option('--dry-run', 'preview only');
  action<ApplyOptions>(apply, cli, async ({ out, options, args: [path = ''], client }) => {
    const files = await readMapFiles(cli, path);
    const { map: compiled, problems } = checkConflictMapText(files.files);
    if (compiled === undefined) {
      out.result(
        () => ({ valid: false, problems }),
        () => showProblems(out, problems, (text) => out.note(text)),
      );
      return EXIT.usage;
    }
    const writ = await client('admin');
    if (options.dryRun === true) return (await previewMap(out, writ, files, options)) ? EXIT.ok : EXIT.refused;
    await put(out, writ, files.text(), options, problems);
    return EXIT.ok;
  });
}

async function put(
  out: Output,
  writ: WritClient,
  document: string,
  options: ApplyOptions,
  local: readonly Problem[] = [],
): Promise<void> {
  const current = await writ.conflictMap.getConflictMap({});
  const expected = options.expectedVersion === undefined ? current.version : BigInt(options.expectedVersion);
  // The same text again would only be noise in the history; a change of comments is a change.
  if (expected === current.version && current.version > 0n && document === current.document) {
    const version = current.version.toString();
    out.result(
      () => ({ version, unchanged: true }),
      () => out.line(`Unchanged: this is version ${version}, which is in force.`),
    );
    return;
  }
  // Against another version than the current one it is the coordinator that refuses.
  if (options.dropKinds !== true && expected === current.version) refuseDropping(current.document, document);
  const request = {
    document,
    expectedVersion: expected,
    reason: options.reason ?? '',
    onLiveConflict: HANDLING[options.onLiveConflict] ?? 0,
  };
  const answer = await writ.conflictMap.putConflictMap(request).catch(async (error: unknown) => {
    if (error instanceof WritError && error.reason === 'LIVE_CONFLICT') await namePairs(out, writ, document);
    throw error;
  });
  out.result(
    () => protoJson(PutConflictMapResponse, answer),
    () => {
      showProblems(out, local.length > 0 ? local : answer.warnings);
      showAffected(out, answer.affected, 'were');
      out.line(`Version ${answer.version} is in force.`);
    },
  );
}

/** The error names some pairs, by the beginnings of their ids; a preview says who they are and where they meet. */
async function namePairs(out: Output, writ: WritClient, document: string): Promise<void> {
  const onLiveConflict = OnLiveConflict.ON_LIVE_CONFLICT_REFUSE;
  const preview = await writ.conflictMap.previewConflictMap({ document, onLiveConflict });
  const pairs = await livePairs(writ, document, preview.affected);
  out.result(
    () => ({ ...(protoJson(PreviewConflictMapResponse, preview) as object), pairs }),
    () => showLivePairs(out, pairs),
  );
}

function registerRollback(map: Command, cli: Cli): void {
  const rollback = map
    .command('rollback')
    .argument('<version>', 'the version to go back to', wholeNumber(1))
    .description('put an older version again, as a new one')
    .option('--reason <text>', 'why, for the history')
    .addOption(onLiveConflict());
  action<ApplyOptions>(rollback, cli, async ({ out, options, args: [text = ''], client }) => {
    const version = Number(text);
    const writ = await client('admin');
    const { document } = await writ.conflictMap.getConflictMap({ version: BigInt(version) });
    const reason = options.reason ?? `rolled back to version ${version}`;
    await put(out, writ, document, { ...options, reason, dropKinds: true });
    return EXIT.ok;
  });
}

function registerLists(map: Command, cli: Cli): void {
  const versions = map.command('versions').description('list the versions of the map, newest first');
  action(versions, cli, async ({ out, client }) => {
    const writ = await client('admin');
    const all = await pages(
      (page) => writ.conflictMap.listConflictMapVersions({ page }),
      (answer) => answer.versions,
    );
    out.result(
      () => protoJson(ListConflictMapVersionsResponse, { versions: all, nextPageToken: '' }),
      () => {
        if (all.length === 0) out.line('There is no conflict map yet.');
        else
          out.table(
            ['VERSION', 'PUT AT', 'BY', 'REASON'],
            all.map((one) => [one.version.toString(), when(one.createdAt), one.author, one.reason]),
          );
      },
    );
    return EXIT.ok;
  });

  const unmatched = map
    .command('unmatched')
    .description('resources that were asked for or checked, and that no kind matches');
  action(unmatched, cli, async ({ out, client }) => {
    const writ = await client('admin');
    const resources = await pages(
      (page) => writ.conflictMap.listUnmatchedResources({ page }),
      (answer) => answer.resources,
    );
    out.result(
      () => protoJson(ListUnmatchedResourcesResponse, { resources, nextPageToken: '' }),
      () => {
        if (resources.length === 0) out.line('None was seen.');
        else
          out.table(
            ['RESOURCE', 'TIMES', 'LAST SEEN'],
            resources.map((one) => [one.resource, one.times.toString(), when(one.lastSeenAt)]),
          );
      },
    );
    return EXIT.ok;
  });
}
