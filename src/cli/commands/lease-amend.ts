import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { type RequestedResource, wireChange } from '../../clients/runner/write-set.js';
import { protoJson } from '../../contract/proto-json.js';
import { AmendWriteSetResponse } from '../../gen/writ/v1/lease_service.js';
import { ResourceOptions, repeated } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { showLease, showRefusal, when } from '../show.js';

interface AmendOptions {
  readonly run: string;
  readonly remove?: readonly string[];
  readonly key?: string;
  readonly requestId?: string;
}

export function registerAmend(lease: Command, cli: Cli): void {
  const amend = lease
    .command('amend')
    .argument('<lease>', 'id of the lease')
    .description('change what a lease covers: all of it or nothing, its expiry stays')
    .requiredOption('--run <id>', 'the run that holds it');
  const [added, downgraded]: [RequestedResource[], RequestedResource[]] = [[], []];
  const lists = new ResourceOptions(amend, [
    { flag: 'add', help: 'resource to add, a path or an alias; repeatable', drafts: added },
    {
      flag: 'downgrade',
      help: 'resource to hold with less, as the options after it say; repeatable',
      drafts: downgraded,
    },
  ]);
  amend
    .option('--remove <id>', 'resource to give up, with what only it implied; repeatable', repeated)
    .option('--key <key>', 'idempotency key: the same key is the same change')
    .option('--request-id <id>', 'finds the attempt later: writ why ID')
    .addHelpText(
      'after',
      '\nExamples:\n  writ lease amend LEASE --run RUN --add dns/prod-eu --action point --remove release/prod-eu\n  writ lease amend LEASE --run RUN --downgrade release/prod-eu --access stable_read',
    );
  action<AmendOptions>(amend, cli, async ({ out, options, args: [leaseId = ''], client }) => {
    const { run: runId, remove = [], key = randomUUID(), requestId = randomUUID() } = options;
    if (added.length + remove.length + downgraded.length === 0)
      throw new CliError(EXIT.usage, 'Say what to change: --add, --remove or --downgrade.');
    const change = wireChange({
      add: lists.complete(added),
      remove,
      downgrade: lists.complete(downgraded),
      idempotencyKey: key,
      requestId,
    });
    const answer = await (await client('runner')).lease.amendWriteSet({ runId, leaseId, ...change }, { requestId });
    const { outcome } = answer;
    const machine = () => ({
      ...(protoJson(AmendWriteSetResponse, answer) as object),
      requestId,
      idempotencyKey: key,
    });
    out.result(machine, () => {
      if (outcome?.$case === 'lease') {
        out.line(`Amended; from ${when(answer.effectiveAt)} no target accepts what was given up.`);
        showLease(out, outcome.value);
      }
      if (outcome?.$case === 'refusal') {
        showRefusal(out, outcome.value);
        out.line(`  more: writ why ${requestId}`);
      }
    });
    return outcome?.$case === 'lease' ? EXIT.ok : EXIT.refused;
  });
}
