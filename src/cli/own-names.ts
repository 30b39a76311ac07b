import type { Command } from 'commander';
import type { WritViolation } from '../clients/common/errors.js';

/** What is wrong with a request, by the words of the command line that made it. */
export interface NamedViolation extends WritViolation {
  /** The option or argument that the field was given by; absent: by none of its own. */
  readonly option?: string;
}

/** Fields that a command line calls something else altogether, each by what it may be called there. */
const OTHERWISE: Readonly<Record<string, readonly string[]>> = {
  actions: ['action'],
  admission_id: ['write'],
  allowed: ['allow'],
  audiences: ['audience'],
  authority_ends_at: ['until', 'for'],
  credential: ['credential-file'],
  document: ['file'],
  fencing_token: ['token'],
  idempotency_key: ['key'],
  initiator_token: ['initiator-token-file'],
  lease_id: ['lease'],
  parent_run_id: ['parent'],
  presenter_run_id: ['run'],
  progress_marker: ['progress'],
  revision: ['upto'],
};

/** People look for `--new-version`, and not for `new_version`. */
export function inOwnNames(violations: readonly WritViolation[], command: Command): readonly NamedViolation[] {
  return violations.map((violation) => {
    const option = optionFor(violation.field, command);
    return option === undefined ? violation : { ...violation, option };
  });
}

/** As `field` is called in a message. */
export function shownAs({ field, option }: NamedViolation): string {
  if (option === undefined) return field;
  // One of many is told by its place in the request.
  return /[.[]/.test(field) ? `${option} (${field})` : option;
}

function optionFor(field: string, command: Command): string | undefined {
  const name =
    field
      .replace(/\[[^\]]*\]/g, '')
      .split('.')
      .at(-1) ?? '';
  const word = name.replaceAll('_', '-');
  const names = [word, word.replace(/-id$/, ''), ...(OTHERWISE[name] ?? [])];
  // Of several ways to say it, the one that was used.
  const used = names.filter((called) => isUsed(`--${called}`, command));
  for (const called of [...used, ...names]) {
    const argument = command.registeredArguments.find((one) => one.name() === called);
    if (argument !== undefined) return `<${called}>`;
    if (isOption(`--${called}`, command)) return `--${called}`;
  }
  return undefined;
}

function isUsed(name: string, command: Command): boolean {
  const option = command.options.find(({ long }) => long === name);
  return option !== undefined && command.getOptionValueSource(option.attributeName()) === 'cli';
}

/** Of the command itself, or of all. */
function isOption(name: string, { options, parent }: Command): boolean {
  return options.some(({ long }) => long === name) || (parent !== null && isOption(name, parent));
}
