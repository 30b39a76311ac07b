import type { Command } from 'commander';
import { guardSchemaSql } from '../../clients/target/postgres-guard-sql.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';

export function registerGuard(program: Command, cli: Cli): void {
  const guard = program.command('guard').description('what target services need beside their data');
  const sql = guard
    .command('sql')
    .description("print the guard for a target's own Postgres, for services in any language; offline")
    .option('--schema <name>', 'the schema that it lives in', 'writ_guard')
    .addHelpText(
      'after',
      '\nIt can be applied again and again, in one transaction: writ guard sql | psql -v ON_ERROR_STOP=1 -1 "$DATABASE_URL"',
    );
  action<{ schema: string }>(sql, cli, async ({ out, options: { schema } }) => {
    let text: string;
    try {
      text = guardSchemaSql(schema);
    } catch (error) {
      throw new CliError(EXIT.usage, (error as RangeError).message);
    }
    out.result(
      () => ({ schema, sql: text }),
      () => out.raw(`${text}\n`),
    );
    return EXIT.ok;
  });
}
