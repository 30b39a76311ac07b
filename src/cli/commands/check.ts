import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { checkFence } from '../../clients/target/check.js';
import { fencingToken } from '../arguments.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';

interface CheckOptions {
  readonly lease: string;
  readonly resource: string;
  readonly action: string;
  readonly token: bigint;
  readonly run?: string;
  readonly observedVersion?: string;
  readonly requestId?: string;
}

export function registerCheck(program: Command, cli: Cli): void {
  const check = program
    .command('check')
    .description('ask, as a target service does, whether a write may be accepted; what cannot be decided is denied')
    .requiredOption('--lease <id>', 'the lease presented')
    .requiredOption('--resource <id>', 'the resource to be written')
    .requiredOption('--action <name>', 'the action')
    .requiredOption('--token <number>', 'the fencing token presented', fencingToken)
    .option('--run <id>', 'the run that presents it, as the target authenticated it')
    .option('--observed-version <version>', 'the version the run says it has read; optimistic actions need it')
    .option('--request-id <id>', 'finds the check later: writ why ID');
  action<CheckOptions>(check, cli, async ({ out, options, client }) => {
    const requestId = options.requestId ?? randomUUID();
    const { resource, action: verb, token, observedVersion } = options;
    const write = { resource, action: verb, token, ...(observedVersion === undefined ? {} : { observedVersion }) };
    const question = {
      leaseId: options.lease,
      writes: [write],
      requestId,
      ...(options.run === undefined ? {} : { presenterRunId: options.run }),
    };
    const decision = await checkFence(await client('target'), question);
    // A wrong question is no denial.
    if (decision.error !== undefined && decision.reason === 'check_failed') throw decision.error;
    const { allowed, reason, message, writes, logRevision } = decision;
    const observedOnly = writes[0]?.observedOnly === true;
    out.result(
      () => ({ allowed, reason, message, observedOnly, logRevision: logRevision?.toString(), requestId }),
      () => {
        out.line(
          `${allowed ? out.style('allowed', 'green') : out.style('denied', 'red')} (${writes[0]?.reason ?? reason})${message === '' ? '' : `: ${message}`}`,
        );
        if (observedOnly) out.line('Its kind is only observed; enforced, this write would be denied.');
      },
    );
    if (decision.error !== undefined) return EXIT.unavailable;
    return allowed ? EXIT.ok : EXIT.denied;
  });
}
