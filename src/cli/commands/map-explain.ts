import type { Command } from 'commander';
import { type RequestedResource, wireEntries } from '../../clients/runner/write-set.js';
import { protoJson } from '../../contract/proto-json.js';
import { ExplainConflictResponse } from '../../gen/writ/v1/conflict_map_service.js';
import { RefusalKind } from '../../gen/writ/v1/types.js';
import { parameter, ResourceOptions } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { readMapFiles } from '../map-files.js';
import { showEntries, showRefusal } from '../show.js';

interface ExplainOptions {
  readonly aTask?: string;
  readonly bTask?: string;
  readonly aParam?: Readonly<Record<string, string>>;
  readonly bParam?: Readonly<Record<string, string>>;
  readonly file?: string;
}

/** `map explain`: two resources, or two write sets, and whether two runs could hold them at once. */
export function registerExplain(map: Command, cli: Cli): void {
  const explain = map
    .command('explain')
    .argument('[a]', 'resource of one run')
    .argument('[b]', 'resource of the other run')
    .description('say whether two write sets conflict, every step by rule');
  const [a, b]: [RequestedResource[], RequestedResource[]] = [[], []];
  const sides = new ResourceOptions(explain, [
    { flag: 'a', help: 'resource of one run; repeatable', drafts: a },
    { flag: 'b', help: 'resource of the other run; repeatable', drafts: b },
  ]);
  explain
    .option('--a-task <name>', 'task of one run, instead of resources')
    .option('--a-param <name=value>', 'parameter of that task; repeatable', parameter)
    .option('--b-task <name>', 'task of the other run, instead of resources')
    .option('--b-param <name=value>', 'parameter of that task; repeatable', parameter)
    .option('--file <file>', 'explain by this map instead of the current one: a file, a directory of fragments, or -')
    .addHelpText(
      'after',
      '\nExamples:\n  writ map explain service-token/acme integration-config/acme\n  writ map explain --a-task rotate-token --a-param tenant=acme --b tenant/acme --subtree',
    );
  action<ExplainOptions>(explain, cli, async ({ out, options, args: [first, second], client }) => {
    if (second !== undefined && sides.saysSeveralActionsOfAll) {
      throw new CliError(
        EXIT.usage,
        'Which action is of which resource? Say it with --a <id> --action … --b <id> --action ….',
      );
    }
    const sideA = side(
      'a',
      [...(first === undefined ? [] : [{ resource: first }]), ...a],
      options.aTask,
      options.aParam,
      sides,
    );
    const sideB = side(
      'b',
      [...(second === undefined ? [] : [{ resource: second }]), ...b],
      options.bTask,
      options.bParam,
      sides,
    );
    const document = options.file === undefined ? '' : (await readMapFiles(cli, options.file)).text();
    const answer = await (await client('admin')).conflictMap.explainConflict({ a: sideA, b: sideB, document });
    const unknown = unanswered(answer);
    out.result(
      () => ({ ...(protoJson(ExplainConflictResponse, answer) as object), answered: unknown === null }),
      () => {
        if (unknown !== null) out.line(`${out.style('It cannot be told', 'yellow')}: ${unknown}`);
        else if (answer.conflict) out.line(`${out.style('They conflict', 'red')}: two runs cannot hold them at once.`);
        else out.line(`${out.style('They do not conflict', 'green')}.`);
        if (unknown === null && (answer.refusalA !== undefined || answer.refusalB !== undefined)) {
          out.line(out.style('But a side would be refused on its own, see below.', 'yellow'));
        }
        for (const step of answer.steps) {
          out.line(
            `  ${step.message === '' ? `${step.resourceA} and ${step.resourceB} meet on ${step.key}` : step.message}`,
          );
          const rules = [step.ruleA, step.ruleB].filter((rule) => rule !== '');
          out.line(
            `    key ${step.key}, modes ${step.modeA} and ${step.modeB}${rules.length === 0 ? '' : `, by ${rules.join(' and ')}`}`,
          );
        }
        for (const [name, entries, refusal] of [
          ['a', answer.entriesA, answer.refusalA],
          ['b', answer.entriesB, answer.refusalB],
        ] as const) {
          out.line();
          out.line(`${name} becomes:`);
          showEntries(out, entries);
          if (refusal !== undefined) showRefusal(out, refusal);
        }
      },
    );
    return unknown === null ? EXIT.ok : EXIT.refused;
  });
}

/** Why "no conflict" is no answer: the map does not say what a side is. Null: it is one. */
function unanswered(answer: ExplainConflictResponse): string | null {
  if (answer.conflict) return null;
  const sides = [
    ['a', answer.refusalA, answer.entriesA],
    ['b', answer.refusalB, answer.entriesB],
  ] as const;
  const unknown = sides.flatMap(([name, refusal, entries]) =>
    refusal !== undefined && (refusal.kind === RefusalKind.REFUSAL_KIND_UNDESCRIBED || entries.length === 0)
      ? [`${name}: ${refusal.message}`]
      : [],
  );
  return unknown.length === 0 ? null : unknown.join(' ');
}

function side(
  name: string,
  resources: readonly RequestedResource[],
  task: string | undefined,
  parameters: Readonly<Record<string, string>> = {},
  options: ResourceOptions,
) {
  if (resources.length > 0 === (task !== undefined))
    throw new CliError(EXIT.usage, `Say what ${name} is: a resource, or --${name}-task.`);
  return {
    entries: wireEntries(options.complete(resources)),
    task: task === undefined ? undefined : { name: task, parameters: { ...parameters } },
  };
}
