import type { Command } from 'commander';
import { DATABASE_URL_FORM, isDatabaseUrl } from '../../platform/settings.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';

export function registerMigrate(program: Command, cli: Cli): void {
  const migrate = program
    .command('migrate')
    .description('create the schema in WRIT_DATABASE_URL, or bring it up to date; safe to run by several at once')
    .addHelpText('after', '\nThe embedded Postgres is migrated by `writ serve` itself.');
  action(migrate, cli, async ({ out }) => {
    const url = cli.env.WRIT_DATABASE_URL?.trim() ?? '';
    if (url === '')
      throw new CliError(EXIT.usage, 'WRIT_DATABASE_URL is not set.', 'The embedded Postgres needs no `writ migrate`.');
    if (!isDatabaseUrl(url)) throw new CliError(EXIT.usage, `WRIT_DATABASE_URL: ${DATABASE_URL_FORM}.`);
    const { migrate: run, SchemaError } = await import('../../storage/postgres/migrate.js');
    const done: string[] = [];
    try {
      await run(url, { log: (line) => (out.json ? done.push(line) : out.line(line)) });
    } catch (error) {
      if (error instanceof SchemaError) throw new CliError(EXIT.refused, error.message);
      const message = `The database${placeOf(url)} cannot be migrated: ${reasonOf(error)}`;
      throw new CliError(EXIT.unavailable, message, isForbidden(error) ? NEEDED_RIGHTS : '');
    }
    out.result(
      () => ({ migrated: true, log: done }),
      () => out.line('The schema is current.'),
    );
    return EXIT.ok;
  });
}

const NEEDED_RIGHTS =
  'The role that migrates needs CREATE on the database, or must own its schema `writ`: see docs/operations.md#your-own.';

function isForbidden(error: unknown): boolean {
  return (error as { code?: unknown }).code === '42501';
}

/** Where it is and as whom, without the password; empty: the URL has another form. */
function placeOf(url: string): string {
  if (!URL.canParse(url)) return '';
  const { host, pathname, username } = new URL(url);
  return ` at ${host}${pathname}${username === '' ? '' : ` (as ${username})`}`;
}

/** Connection errors of several addresses have no message of their own. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  return error instanceof Error && error.message !== ''
    ? error.message
    : String((error as { code?: unknown }).code ?? error);
}
