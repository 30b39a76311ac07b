import { readFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { z } from 'zod';
import type { RequestedResource } from '../clients/runner/write-set.js';
import { parseDuration } from '../platform/durations.js';
import { type Cli, CliError } from './cli.js';
import { EXIT } from './exit-codes.js';

/** Milliseconds of a duration such as `500ms`, `10s`, `1h30m`, `2d`. */
export function duration(text: string): number {
  const micros = parseDuration(text);
  if (micros === null) throw new InvalidArgumentError('It must be a duration such as 500ms, 10s, 5m, 1h30m or 2d.');
  return micros / 1_000;
}

/** A whole number from `least` on. */
export function wholeNumber(least = 0): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least)) throw new InvalidArgumentError(`It must be a whole number from ${least} on.`);
    return value;
  };
}

/** A fencing token: a decimal number of up to 64 bits. */
export function fencingToken(text: string): bigint {
  if (!/^\d{1,20}$/.test(text) || BigInt(text) >= 2n ** 64n)
    throw new InvalidArgumentError('It must be a decimal number below 2^64.');
  return BigInt(text);
}

/** `name=value`, collected into one object; the value may contain more of `=`. */
export function parameter(text: string, earlier: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('It must be name=value.');
  return { ...earlier, [text.slice(0, at)]: text.slice(at + 1) };
}

/** Collects an option that may be given several times. */
export function repeated(text: string, earlier: readonly string[] = []): string[] {
  return [...earlier, text];
}

/** A moment: RFC 3339, in microseconds since 1970. */
export function moment(text: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
  if (Number.isNaN(ms))
    throw new InvalidArgumentError('It must be a time with its zone, such as 2026-12-01T10:00:00Z.');
  return ms * 1_000;
}

const ACCESSES = ['read', 'stable_read', 'write'] as const;

type Draft = { -readonly [K in keyof RequestedResource]: RequestedResource[K] };

/**
 * `--resource`, and the options that say more about the one before them: `--action` (repeatable), `--access`,
 * `--subtree`, `--observed-version`. Given before the first resource they are for all that say nothing else.
 */
export class ResourceOptions {
  private readonly common: Draft = { resource: '' };
  private readonly drafts: Draft[] = [];

  /** With `prefix` 'b' the option is `--b`, and those after it belong to it; several lists share the other options. */
  constructor(
    command: Command,
    lists: readonly { readonly flag: string; readonly help: string; readonly drafts?: Draft[] }[] = DEFAULT_LIST,
  ) {
    for (const { flag, help, drafts = this.drafts } of lists) {
      command.addOption(new Option(`--${flag} <id>`, help));
      command.on(`option:${flag}`, (resource: string) => {
        const draft = { resource };
        this.last = draft;
        drafts.push(draft);
      });
    }
    command
      .addOption(new Option('--action <name>', 'action on the resource before it; repeatable'))
      .addOption(new Option('--access <access>', 'access to the resource before it (default: write)').choices(ACCESSES))
      .addOption(new Option('--subtree', 'the resource before it and everything below'))
      .addOption(new Option('--observed-version <version>', 'version of the resource before it that was read'))
      .on('option:action', (action: string) => {
        this.last.actions = [...(this.last.actions ?? []), action];
      })
      .on('option:access', (access: (typeof ACCESSES)[number]) => {
        this.last.access = access;
      })
      .on('option:subtree', () => {
        this.last.scope = 'subtree';
      })
      .on('option:observed-version', (version: string) => {
        this.last.observedVersion = version;
      });
  }

  private last: Draft = this.common;

  /** Whether several actions were given before any resource: they count for all of them, which is seldom meant. */
  get saysSeveralActionsOfAll(): boolean {
    return (this.common.actions ?? []).length > 1;
  }

  get resources(): RequestedResource[] {
    return this.complete(this.drafts);
  }

  complete(drafts: readonly Draft[]): RequestedResource[] {
    return drafts.map((draft) => ({ ...this.common, ...draft }));
  }
}

const DEFAULT_LIST = [{ flag: 'resource', help: 'resource to ask for, a path or an alias; repeatable' }] as const;

/** What to ask for, as options say it. */
export interface WriteSetFlags {
  readonly entries?: string;
  readonly task?: string;
  readonly param?: Readonly<Record<string, string>>;
  readonly resourceSet?: string;
}

export interface AskedWriteSet {
  readonly resources?: readonly RequestedResource[];
  readonly task?: { readonly name: string; readonly parameters: Readonly<Record<string, string>> };
  readonly resourceSet?: string;
}

/** The ways to say a write set: resources, a file of entries, a task, a resource set. */
export function addWriteSetOptions(command: Command): ResourceOptions {
  const resources = new ResourceOptions(command);
  command
    .option(
      '--entries <file>',
      'JSON array of {resource, access, scope, actions, observedVersion}; - is standard input',
    )
    .option('--task <name>', 'task of the conflict map, instead of resources')
    .option('--param <name=value>', 'parameter of the task; repeatable', parameter)
    .option('--resource-set <name>', 'resource set of the conflict map, instead of resources');
  return resources;
}

const entryFile = z.array(
  z.strictObject({
    resource: z.string(),
    access: z.enum(ACCESSES).optional(),
    scope: z.enum(['exact', 'subtree']).optional(),
    actions: z.array(z.string()).optional(),
    observedVersion: z.string().optional(),
  }),
);

/** Exactly one of the ways. */
export async function askedWriteSet(cli: Cli, options: WriteSetFlags, listed: ResourceOptions): Promise<AskedWriteSet> {
  const { entries, task, resourceSet } = options;
  const resources = listed.resources;
  const ways = [resources.length > 0, entries !== undefined, task !== undefined, resourceSet !== undefined].filter(
    Boolean,
  );
  if (ways.length !== 1)
    throw new CliError(EXIT.usage, 'Say what to ask for in one way: --resource, --entries, --task or --resource-set.');
  if (task !== undefined) return { task: { name: task, parameters: options.param ?? {} } };
  if (options.param !== undefined) throw new CliError(EXIT.usage, '--param belongs to --task.');
  if (resourceSet !== undefined) return { resourceSet };
  if (entries === undefined) return { resources };
  return { resources: parseEntries(entries === '-' ? await cli.stdin() : await readInput(entries), entries) };
}

function parseEntries(text: string, from: string): RequestedResource[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new CliError(EXIT.usage, `${from} is not JSON: ${(error as Error).message}`);
  }
  const parsed = entryFile.safeParse(json);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `  [${issue.path.join('.')}] ${issue.message}`);
    throw new CliError(EXIT.usage, `${from} is no list of entries:\n${problems.join('\n')}`);
  }
  return parsed.data.map(({ observedVersion, access, scope, actions, resource }) => ({
    resource,
    ...(access === undefined ? {} : { access }),
    ...(scope === undefined ? {} : { scope }),
    ...(actions === undefined ? {} : { actions }),
    ...(observedVersion === undefined ? {} : { observedVersion }),
  }));
}

/** What to say when a file that the user named cannot be written; any other error is as it is. */
export function cannotWrite(path: string, error: unknown): unknown {
  const { syscall, message } = error as NodeJS.ErrnoException;
  return syscall === undefined ? error : new CliError(EXIT.usage, `${path} cannot be written: ${message}`);
}

/** A file that the user named. */
export async function readInput(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    throw new CliError(EXIT.usage, `${path} cannot be read: ${(error as Error).message}`);
  });
}
