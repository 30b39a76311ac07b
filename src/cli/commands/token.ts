import type { Command } from 'commander';
import { ROLES } from '../../auth/principal.js';
import { makeToken } from '../../auth/tokens.js';
import { repeated } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';

export function registerToken(program: Command, cli: Cli): void {
  const token = program
    .command('token')
    .description('make a bearer token and its entry for WRIT_TOKENS_FILE; the token is shown this once')
    .requiredOption('--name <principal>', 'name of the principal, such as svc:release-runner')
    .requiredOption('--role <role>', `role, of ${ROLES.join(', ')}; repeatable`, repeated)
    .addHelpText(
      'after',
      '\nAdd the entry to "principals" in the file. The coordinator keeps only the SHA-256 of the token.',
    );
  action<{ name: string; role: readonly string[] }>(token, cli, async ({ out, options }) => {
    const { name, role: roles } = options;
    const unknown = roles.filter((role) => !(ROLES as readonly string[]).includes(role));
    if (unknown.length > 0)
      throw new CliError(EXIT.usage, `There is no role ${unknown.join(', ')}; there are ${ROLES.join(', ')}.`);
    if (!/^[\x21-\x7e]{1,128}$/.test(name) || name === 'system') {
      throw new CliError(
        EXIT.usage,
        'The name must be 1 to 128 printable ASCII characters without spaces, and not "system".',
      );
    }
    const made = makeToken();
    const entry = { name, roles: [...new Set(roles)], token_sha256: made.tokenSha256 };
    out.result(
      () => ({ token: made.token, entry }),
      () => {
        out.line(made.token);
        out.line();
        out.line(JSON.stringify(entry));
      },
    );
    return EXIT.ok;
  });
}
