import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import type { WritClient } from '../../clients/common/connect.js';
import { protoJson } from '../../contract/proto-json.js';
import {
  type EndedLease,
  PreviewWriteSetResponse,
  TakeOverResponse,
  type WaitingPlace,
} from '../../gen/writ/v1/lease_service.js';
import { addWriteSetOptions, askedWriteSet, duration } from '../arguments.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { short, showEntries, showLease, showOpenWrites, showRefusal, waitingText, when } from '../show.js';
import { type AcquireOptions, type AcquireRequest, MIN_ROUND_MS, requestOf } from '../write-set-request.js';

interface TakeOverOptions extends AcquireOptions {
  readonly reason: string;
  readonly acceptOverlap?: boolean;
  readonly dryRun?: boolean;
}

export function registerTakeOver(lease: Command, cli: Cli): void {
  const take = lease
    .command('take-over')
    .description('in an emergency: end who holds a write set, and give it to a run; whoever waits stays behind it')
    .requiredOption('--run <id>', 'the run that is to have it; its contract must allow it')
    .requiredOption('--reason <text>', 'why, for the log of each lease that ends');
  const resources = addWriteSetOptions(take);
  take
    .option('--accept-overlap', 'take it in spite of lock delays and writes in doubt; the log says so')
    .option('--wait <duration>', 'wait for lock delays and writes in doubt, before all others', duration)
    .option('--dry-run', 'say whom it would end, and end nobody')
    .option('--ttl <duration>', "how long it lives unless its run renews it (default: the conflict map's)", duration)
    .option('--key <key>', 'idempotency key: the same key returns the same lease')
    .option('--purpose <text>', 'what for')
    .option('--request-id <id>', 'finds the attempt later: writ why ID');
  action<TakeOverOptions>(take, cli, async ({ out, options, client }) => {
    const asked = await askedWriteSet(cli, options, resources);
    const { reason, acceptOverlap = false, dryRun = false } = options;
    const writ = await client('operator');
    const requestId = options.requestId ?? randomUUID();
    const request = { ...requestOf(asked, options), idempotencyKey: options.key ?? randomUUID(), requestId };
    if (dryRun) {
      const answer = await writ.lease.previewWriteSet({ request, takeOver: true, acceptOverlap });
      out.result(
        () => protoJson(PreviewWriteSetResponse, answer),
        () => {
          showEnded(out, answer.wouldEnd, 'WOULD END');
          if (answer.outcome?.$case === 'lease') showEntries(out, answer.outcome.value.entries);
          if (answer.outcome?.$case === 'refusal') showRefusal(out, answer.outcome.value);
        },
      );
      return answer.outcome?.$case === 'lease' ? EXIT.ok : EXIT.refused;
    }
    const taking = { ...request, reason, acceptOverlap };
    const answer = await untilTaken(writ, taking, (place) => out.note(waitingText(place)));
    out.result(
      () => ({
        ...(protoJson(TakeOverResponse, answer) as object),
        requestId,
        idempotencyKey: request.idempotencyKey,
      }),
      () => showTaken(out, answer, requestId),
    );
    return answer.outcome?.$case === 'lease' ? EXIT.ok : EXIT.refused;
  });
}

/** The same key again resumes the same place, until the wait is over. */
async function untilTaken(
  writ: WritClient,
  request: AcquireRequest & { readonly reason: string; readonly acceptOverlap: boolean },
  onWaiting: (place: WaitingPlace) => void,
): Promise<TakeOverResponse> {
  for (;;) {
    const answer = await writ.lease.takeOver(request, { requestId: request.requestId });
    if (answer.outcome?.$case !== 'waiting') return answer;
    onWaiting(answer.outcome.value);
    await pause(MIN_ROUND_MS);
  }
}

function showTaken(out: Output, { outcome, ended, openWrites }: TakeOverResponse, requestId: string): void {
  showEnded(out, ended, 'ENDED');
  if (outcome?.$case === 'lease') showLease(out, outcome.value);
  if (outcome?.$case === 'refusal') showRefusal(out, outcome.value);
  showOpenWrites(out, openWrites);
  out.line(`  more: writ why ${requestId}`);
}

function showEnded(out: Output, ended: readonly EndedLease[], heading: string): void {
  if (ended.length === 0) return;
  out.table(
    [heading, 'RUN', 'IN FORCE EVERYWHERE', 'PURPOSE'],
    ended.map(({ leaseId, runId, effectiveAt, purpose }) => [leaseId, runId, when(effectiveAt), short(purpose)]),
  );
  out.line();
}
