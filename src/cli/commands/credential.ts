import { type Command, Option } from 'commander';
import { protoJson } from '../../contract/proto-json.js';
import { type RevokeCredentialRequest, RevokeCredentialResponse } from '../../gen/writ/v1/credential_service.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { when } from '../show.js';

type Subject = NonNullable<RevokeCredentialRequest['subject']>;

interface RevokeOptions {
  readonly jti?: string;
  readonly lease?: string;
  readonly run?: string;
  readonly reason: string;
}

export function registerCredential(program: Command, cli: Cli): void {
  const credential = program.command('credential').description('the credentials that runs present to targets');
  const revoke = credential
    .command('revoke')
    .description('refuse credentials that are out, from now on; the lease stays, and new ones can be issued')
    .addOption(new Option('--jti <id>', 'one credential, by its jti').conflicts(['lease', 'run']))
    .addOption(new Option('--lease <id>', 'all that are out for this lease').conflicts('run'))
    .option('--run <id>', 'all that are out for this run, of its leases and of none')
    .requiredOption('--reason <text>', 'why, for the log');
  action<RevokeOptions>(revoke, cli, async ({ out, options, client }) => {
    const subject = subjectOf(options);
    const answer = await (await client('operator')).credential.revokeCredential({ subject, reason: options.reason });
    out.result(
      () => protoJson(RevokeCredentialResponse, answer),
      () => out.line(`Revoked: what was out is refused since ${when(answer.effectiveAt)}.`),
    );
    return EXIT.ok;
  });
}

function subjectOf({ jti, lease, run }: RevokeOptions): Subject {
  if (jti !== undefined) return { $case: 'jti', value: jti };
  if (lease !== undefined) return { $case: 'leaseId', value: lease };
  if (run !== undefined) return { $case: 'runId', value: run };
  throw new CliError(EXIT.usage, 'Say which: --jti, --lease or --run.');
}
