import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import type { WritClient } from '../../clients/common/connect.js';
import { durationMs, toDuration } from '../../clients/common/time.js';
import { protoJson } from '../../contract/proto-json.js';
import {
  AcquireWriteSetResponse,
  GetLeaseResponse,
  ListLeasesResponse,
  PreviewWriteSetResponse,
  ReleaseLeaseResponse,
  ReleaseOutcome,
  RenewLeasesResponse,
  RevokeLeaseResponse,
  type WaitingPlace,
} from '../../gen/writ/v1/lease_service.js';
import { LeaseState } from '../../gen/writ/v1/types.js';
import { addWriteSetOptions, askedWriteSet, duration, repeated } from '../arguments.js';
import { action, type Cli, CliError } from '../cli.js';
import { Interrupts } from '../exec/interrupts.js';
import { EXIT } from '../exit-codes.js';
import { pages } from '../pages.js';
import {
  cutText,
  endReasonWord,
  inForce,
  lasting,
  showEntries,
  showLease,
  showLeases,
  showOpenWrites,
  showRefusal,
  waitingText,
} from '../show.js';
import { wholeId } from '../whole-id.js';
import { type AcquireOptions, type AcquireRequest, MIN_ROUND_MS, requestOf } from '../write-set-request.js';
import { registerAmend } from './lease-amend.js';
import { registerTakeOver } from './lease-take-over.js';

export function registerLease(program: Command, cli: Cli): void {
  const lease = program.command('lease').description('write sets and leases');
  registerAcquire(lease, cli);
  registerPreview(lease, cli);
  registerTakeOver(lease, cli);
  registerReads(lease, cli);
  registerAmend(lease, cli);
  registerRenew(lease, cli);
  registerEnds(lease, cli);
}

const GIVE_UP_TIMEOUT_MS = 3_000;

function registerAcquire(lease: Command, cli: Cli): void {
  const acquire = lease
    .command('acquire')
    .description('ask for a write set, once; nothing renews it, see `writ exec` for that')
    .requiredOption('--run <id>', 'the run that will hold it');
  const resources = addWriteSetOptions(acquire);
  acquire
    .option('--ttl <duration>', "how long it lives unless renewed (default: the conflict map's)", duration)
    .option('--wait <duration>', 'wait for what others hold', duration)
    .option('--key <key>', 'idempotency key: the same key returns the same lease')
    .option('--delegated-from <lease>', "a part of this lease of the run's parent (writ run create --parent)")
    .option('--purpose <text>', 'what for')
    .option('--request-id <id>', 'finds the attempt later: writ why ID');
  action<AcquireOptions>(acquire, cli, async ({ out, options, client }) => {
    const asked = await askedWriteSet(cli, options, resources);
    const requestId = options.requestId ?? randomUUID();
    const key = options.key ?? randomUUID();
    const writ = await client('runner');
    const request = { ...requestOf(asked, options), idempotencyKey: key, requestId };
    const { wait = 0 } = options;
    // A call that waits answers after some 20 s at the earliest; nobody should look at nothing for so long.
    if (wait > 0)
      out.note(`Asking, and waiting up to ${lasting(wait)} for what others hold. Ctrl-C gives the place up.`);
    const interrupts = new Interrupts();
    let answer: AcquireWriteSetResponse;
    try {
      answer = await untilDecided(writ, request, interrupts.signal, (place) => out.note(waitingText(place)));
    } catch (error) {
      if (interrupts.exitCode === undefined) throw error;
      out.note(await giveUp(writ, options.run, key));
      return interrupts.exitCode;
    } finally {
      interrupts.dispose();
    }
    const { outcome } = answer;
    const machine = () => ({
      ...(protoJson(AcquireWriteSetResponse, answer) as object),
      requestId,
      idempotencyKey: key,
    });
    out.result(machine, () => {
      if (outcome?.$case === 'lease') showLease(out, outcome.value);
      if (outcome?.$case === 'refusal') {
        showRefusal(out, outcome.value);
        out.line(`  more: writ why ${requestId}`);
      }
    });
    const live = outcome?.$case === 'lease' && outcome.value.state === LeaseState.LEASE_STATE_ACTIVE;
    return live ? EXIT.ok : EXIT.refused;
  });
}

/** The same key again resumes the same place, until the wait is over. */
async function untilDecided(
  writ: WritClient,
  request: AcquireRequest,
  signal: AbortSignal,
  onWaiting: (place: WaitingPlace) => void,
): Promise<AcquireWriteSetResponse> {
  for (;;) {
    const answer = await writ.lease.acquireWriteSet(request, { requestId: request.requestId, signal });
    if (answer.outcome?.$case !== 'waiting') return answer;
    onWaiting(answer.outcome.value);
    await pause(MIN_ROUND_MS, undefined, { signal });
  }
}

/** By the key, which also stops an acquire that is still on its way. */
async function giveUp(writ: WritClient, runId: string, key: string): Promise<string> {
  const lease = { $case: 'acquireKey' as const, value: key };
  try {
    const { outcome } = await writ.lease.releaseLease({ runId, lease }, { timeoutMs: GIVE_UP_TIMEOUT_MS });
    return outcome === ReleaseOutcome.RELEASE_OUTCOME_RELEASED
      ? 'Interrupted: what the request held, its place or its lease, is given back.'
      : 'Interrupted: the request held nothing, and will be granted nothing.';
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return `Interrupted, and the place could not be given back (${why}). It ends by itself when nobody comes back for it; or: writ lease release --run ${runId} --key ${key}`;
  }
}

function registerPreview(lease: Command, cli: Cli): void {
  const preview = lease
    .command('preview')
    .description('say what acquire would answer now; grants nothing')
    .requiredOption('--run <id>', 'the run that would hold it');
  const resources = addWriteSetOptions(preview);
  preview.option('--ttl <duration>', 'as in acquire', duration).option('--delegated-from <lease>', 'as in acquire');
  action<AcquireOptions>(preview, cli, async ({ out, options, client }) => {
    const asked = await askedWriteSet(cli, options, resources);
    const answer = await (await client('runner')).lease.previewWriteSet({ request: requestOf(asked, options) });
    const { outcome } = answer;
    out.result(
      () => protoJson(PreviewWriteSetResponse, answer),
      () => {
        if (outcome?.$case === 'lease') {
          const { ttl, requestedTtl } = outcome.value;
          const askedMs = durationMs(requestedTtl);
          const cut = askedMs === undefined ? '' : ` (${cutText(askedMs)})`;
          out.line(`It would be granted, for ${lasting(durationMs(ttl) ?? 0)}${cut}:`);
          showEntries(out, outcome.value.entries);
        }
        if (outcome?.$case === 'refusal') showRefusal(out, outcome.value);
      },
    );
    return outcome?.$case === 'lease' ? EXIT.ok : EXIT.refused;
  });
}

interface ListOptions {
  readonly run?: string;
  readonly resource?: string;
  readonly state?: readonly string[];
  readonly lockDelayed?: boolean;
}

const STATES: Readonly<Record<string, LeaseState>> = {
  waiting: LeaseState.LEASE_STATE_WAITING,
  active: LeaseState.LEASE_STATE_ACTIVE,
  ended: LeaseState.LEASE_STATE_ENDED,
};

function registerReads(lease: Command, cli: Cli): void {
  const get = lease.command('get').argument('<lease>', 'id of the lease, or its beginning').description('show a lease');
  action(get, cli, async ({ out, args: [asked = ''], client }) => {
    const writ = await client('operator');
    const answer = await writ.lease.getLease({ leaseId: await wholeId(writ, asked, ['lease']) });
    out.result(
      () => protoJson(GetLeaseResponse, answer),
      () => {
        if (answer.lease !== undefined) showLease(out, answer.lease);
      },
    );
    return EXIT.ok;
  });

  const list = lease
    .command('list')
    .description('list live leases and waiting requests')
    .option('--run <id>', 'only of this run')
    .option('--resource <id>', 'only those at, above or below it')
    .option('--state <state>', 'only these states, of waiting, active, ended; repeatable', repeated)
    .option('--lock-delayed', 'also ended leases of which something is still closed to others');
  action<ListOptions>(list, cli, async ({ out, options, client }) => {
    const states = (options.state ?? []).map((name) => {
      const state = STATES[name];
      if (state === undefined)
        throw new CliError(EXIT.usage, `There is no state ${name}; there are waiting, active and ended.`);
      return state;
    });
    const writ = await client('operator');
    const { run = '', resource = '', lockDelayed = false } = options;
    const filter = { runId: run, resource, states, lockDelayed };
    const leases = await pages(
      (page) => writ.lease.listLeases({ ...filter, page }),
      (answer) => answer.leases,
    );
    out.result(
      () => protoJson(ListLeasesResponse, { leases, nextPageToken: '', logRevision: 0n }),
      () => {
        if (leases.length === 0) out.line(nothingListed(options));
        else showLeases(out, leases);
      },
    );
    return EXIT.ok;
  });
}

/** What is not there, in the words of what was asked for. */
function nothingListed({ run, resource, state = [], lockDelayed = false }: ListOptions): string {
  const live = state.length === 0 ? 'live lease and no waiting request' : `lease that is ${state.join(' or ')}`;
  const what = lockDelayed ? `${live}, nor one under lock delay,` : live;
  const where = [
    ...(run === undefined ? [] : [` of run ${run}`]),
    ...(resource === undefined ? [] : [` at, above or below ${resource}`]),
  ];
  return `There is no ${what}${where.join('')}.`;
}

function registerRenew(lease: Command, cli: Cli): void {
  const renew = lease
    .command('renew')
    .argument('<lease>', 'id of the lease')
    .description('extend a lease')
    .requiredOption('--run <id>', 'the run that holds it')
    .option('--ttl <duration>', 'time to live from now (default: that of the grant)', duration)
    .option('--progress <marker>', 'any value that changes when the work has moved on');
  action<{ run: string; ttl?: number; progress?: string }>(
    renew,
    cli,
    async ({ out, options, args: [leaseId = ''], client }) => {
      const { run: runId, ttl, progress } = options;
      const renewal = { leaseId, ttl: ttl === undefined ? undefined : toDuration(ttl), progressMarker: progress };
      const answer = await (await client('runner')).lease.renewLeases({ runId, renewals: [renewal] });
      const outcome = answer.results[0]?.outcome;
      out.result(
        () => protoJson(RenewLeasesResponse, answer),
        () => {
          if (outcome?.$case === 'lease') showLease(out, outcome.value);
          if (outcome?.$case === 'refusal') showRefusal(out, outcome.value);
        },
      );
      const livesMs = outcome?.$case === 'lease' ? durationMs(outcome.value.ttl) : undefined;
      if (ttl !== undefined && livesMs !== undefined && livesMs < ttl)
        out.note(`It lives ${lasting(livesMs)} from now: ${cutText(ttl)}.`);
      return outcome?.$case === 'lease' ? EXIT.ok : EXIT.refused;
    },
  );
}

function registerEnds(lease: Command, cli: Cli): void {
  const release = lease
    .command('release')
    .argument('[lease]', 'id of the lease')
    .description('give a lease back; idempotent')
    .requiredOption('--run <id>', 'the run that holds it')
    .option('--key <key>', 'instead of the id: the idempotency key of the acquire, also one whose answer was lost');
  action<{ run: string; key?: string }>(release, cli, async ({ out, options, args: [leaseId], client }) => {
    if ((leaseId === undefined) === (options.key === undefined))
      throw new CliError(EXIT.usage, 'Say which: the id of the lease, or --key.');
    const lease =
      leaseId === undefined
        ? { $case: 'acquireKey' as const, value: options.key ?? '' }
        : { $case: 'leaseId' as const, value: leaseId };
    const answer = await (await client('runner')).lease.releaseLease({ runId: options.run, lease });
    out.result(
      () => protoJson(ReleaseLeaseResponse, answer),
      () => {
        out.line(releaseText(answer));
        showOpenWrites(out, answer.openWrites);
      },
    );
    return EXIT.ok;
  });

  const revoke = lease
    .command('revoke')
    .argument('<lease>', 'id of the lease or of the waiting request')
    .description("end anybody's lease; when it returns, no check allows its tokens")
    .requiredOption('--reason <text>', 'why, for the log and the holder');
  action<{ reason: string }>(revoke, cli, async ({ out, options, args: [leaseId = ''], client }) => {
    const answer = await (await client('operator')).lease.revokeLease({ leaseId, reason: options.reason });
    out.result(
      () => protoJson(RevokeLeaseResponse, answer),
      () => {
        const how = endReasonWord(answer.endReason);
        out.line(how === 'revoked' ? `Revoked: ${inForce(answer.effectiveAt)}.` : `It had ended before (${how}).`);
        showOpenWrites(out, answer.openWrites);
      },
    );
    return EXIT.ok;
  });
}

function releaseText(answer: ReleaseLeaseResponse): string {
  switch (answer.outcome) {
    case ReleaseOutcome.RELEASE_OUTCOME_RELEASED:
      return `Released: ${inForce(answer.effectiveAt)}.`;
    case ReleaseOutcome.RELEASE_OUTCOME_NOTHING_HELD:
      return 'Nothing was granted by this key, and nothing will be.';
    default:
      return `It had ended before (${endReasonWord(answer.endReason)}).`;
  }
}
