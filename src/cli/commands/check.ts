import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { checkFence, type FenceQuestion } from '../../clients/target/check.js';
import { fencingToken } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';

interface CheckOptions {
  readonly lease?: string;
  readonly credentialFile?: string;
  readonly presenterJkt?: string;
  readonly presenterX5t?: string;
  readonly resource: string;
  readonly action: string;
  readonly token?: bigint;
  readonly run?: string;
  readonly observedVersion?: string;
  readonly requestId?: string;
}

export function registerCheck(program: Command, cli: Cli): void {
  const check = program
    .command('check')
    .description('ask, as a target service does, whether a write may be accepted; what cannot be decided is denied')
    .option('--lease <id>', 'the lease presented; goes with --token')
    .option('--credential-file <path>', 'the credential presented instead, in a file; - is standard input')
    .requiredOption('--resource <id>', 'the resource to be written')
    .requiredOption('--action <name>', 'the action')
    .option('--token <number>', 'the fencing token presented; a credential brings its own', fencingToken)
    .option('--presenter-jkt <thumbprint>', 'the DPoP key that the presenter proved to have, base64url')
    .option('--presenter-x5t <thumbprint>', 'the SHA-256 of the client certificate it showed, base64url')
    .option('--run <id>', 'the run that presents it, as the target authenticated it')
    .option('--observed-version <version>', 'the version the run says it has read; optimistic actions need it')
    .option('--request-id <id>', 'finds the check later: writ why ID');
  action<CheckOptions>(check, cli, async ({ out, options, client }) => {
    const requestId = options.requestId ?? randomUUID();
    const { resource, action: verb, token, observedVersion } = options;
    const write = {
      resource,
      action: verb,
      ...(token === undefined ? {} : { token }),
      ...(observedVersion === undefined ? {} : { observedVersion }),
    };
    const question = {
      ...(await presented(cli, options)),
      writes: [write],
      requestId,
      ...(options.run === undefined ? {} : { presenterRunId: options.run }),
    };
    const decision = await checkFence(await client('target'), question);
    // A wrong question is no denial.
    if (decision.error !== undefined && decision.reason === 'check_failed') throw decision.error;
    const { allowed, reason, message, writes, logRevision } = decision;
    const observedOnly = writes[0]?.observedOnly === true;
    const admissionId = writes[0]?.admissionId ?? '';
    out.result(
      () => ({ allowed, reason, message, observedOnly, admissionId, logRevision: logRevision?.toString(), requestId }),
      () => {
        out.line(
          `${allowed ? out.style('allowed', 'green') : out.style('denied', 'red')} (${writes[0]?.reason ?? reason})${message === '' ? '' : `: ${message}`}`,
        );
        if (admissionId !== '')
          out.line(`The action is tracked: write ${admissionId} is open until its target reports what became of it.`);
        if (observedOnly) out.line('Its kind is only observed; enforced, this write would be denied.');
      },
    );
    if (decision.error !== undefined) return EXIT.unavailable;
    return allowed ? EXIT.ok : EXIT.denied;
  });
}

const PRESENTED = 'Give --lease and --token, as a run presents them, or --credential-file.';

/** What the run presents: the lease, with a token, or a credential, with the key it is bound to. */
async function presented(cli: Cli, options: CheckOptions): Promise<Omit<FenceQuestion, 'writes'>> {
  const { lease, token, credentialFile, presenterJkt, presenterX5t } = options;
  if ((lease === undefined) === (credentialFile === undefined))
    throw new CliError(EXIT.usage, 'A check is of a lease or of a credential.', PRESENTED);
  if (credentialFile === undefined) {
    if (token === undefined) throw new CliError(EXIT.usage, 'A lease is presented with a fencing token.', PRESENTED);
    return { leaseId: lease ?? '' };
  }
  if (presenterJkt !== undefined && presenterX5t !== undefined)
    throw new CliError(EXIT.usage, 'A credential is bound to one key: give --presenter-jkt or --presenter-x5t.');
  const presenter =
    presenterJkt !== undefined
      ? { jkt: presenterJkt }
      : presenterX5t !== undefined
        ? { x5tS256: presenterX5t }
        : undefined;
  const credential = await readCredential(cli, credentialFile);
  return { credential, ...(presenter === undefined ? {} : { presenter }) };
}

async function readCredential(cli: Cli, path: string): Promise<string> {
  let text: string;
  try {
    text = path === '-' ? await cli.stdin() : await readFile(path, 'utf8');
  } catch (error) {
    throw new CliError(EXIT.usage, `The credential cannot be read: ${(error as Error).message}`);
  }
  const credential = text.trim();
  if (credential === '') throw new CliError(EXIT.usage, `There is no credential in ${path}.`);
  return credential;
}
