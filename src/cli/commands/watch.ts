import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from 'commander';
import { backoffMs } from '../../clients/common/backoff.js';
import type { WritClient } from '../../clients/common/connect.js';
import { WritError } from '../../clients/common/errors.js';
import { protoJson } from '../../contract/proto-json.js';
import {
  type Fence,
  FenceReason,
  FenceUpdate,
  type LogPosition,
  type WatchedKind,
} from '../../gen/writ/v1/fence_service.js';
import { action, type Cli, CliError } from '../cli.js';
import { Interrupts } from '../exec/interrupts.js';
import { EXIT } from '../exit-codes.js';
import { clean, type Output } from '../output.js';
import { covered, when } from '../show.js';

interface WatchOptions {
  readonly from?: string;
  readonly once?: boolean;
  readonly viewKinds?: boolean;
}

const RECONNECT = { firstMs: 200, mostMs: 5_000 };

export function registerWatch(program: Command, cli: Cli): void {
  const watch = program
    .command('watch')
    .description(
      'follow, as a target service does, which leases are live: a snapshot, then each change, until interrupted; with --json one document a line',
    )
    .option('--from <revision:hash>', 'go on from this place in the log, without a snapshot')
    .option('--once', 'the snapshot, or what has happened since --from, and no more')
    .option('--view-kinds', 'only what kinds with `validation: view` are about');
  action<WatchOptions>(watch, cli, async ({ out, options, client }) => {
    const writ = await client('target');
    const interrupts = new Interrupts();
    try {
      await follow(writ, out, options, interrupts.signal);
    } catch (error) {
      if (!interrupts.signal.aborted) throw error;
    } finally {
      interrupts.dispose();
    }
    return interrupts.exitCode ?? EXIT.ok;
  });
}

/** Opened again, on any replica, from the last place that was reached. */
async function follow(writ: WritClient, out: Output, options: WatchOptions, signal: AbortSignal): Promise<void> {
  let from = options.from === undefined ? undefined : placeOf(options.from);
  const told = new Telling(out);
  for (let failures = 0; ; ) {
    const watch = await writ.fence.watchFences({ signal });
    try {
      const open = { namespace: writ.namespace, resumeFrom: from, viewKindsOnly: options.viewKinds === true };
      watch.send({ said: { $case: 'open', value: open } });
      for await (const { updates, goingAway } of watch.received) {
        failures = 0;
        for (const update of updates) {
          told.say(update);
          if (update.update?.$case !== 'reached') continue;
          from = update.update.value;
          if (options.once === true) return;
        }
        if (goingAway) watch.leave();
      }
    } catch (error) {
      const cut = error instanceof WritError && (error.code === 'UNAVAILABLE' || error.code === 'CANCELLED');
      if (signal.aborted || !cut || from === undefined) throw error;
      out.note(`the watch was cut off, and goes on: ${error.message}`);
    } finally {
      watch.cancel();
    }
    failures += 1;
    await pause(backoffMs(failures, RECONNECT), undefined, { signal });
  }
}

function placeOf(text: string): LogPosition {
  const [, revision = '', hash = ''] = /^([1-9]\d{0,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (revision === '') throw new CliError(EXIT.usage, '--from is a revision and its hash: 17:0f3a…, 64 digits.');
  return { revision: BigInt(revision), hash };
}

/** A line for each thing that is told. */
class Telling {
  constructor(private readonly out: Output) {}

  say(update: FenceUpdate): void {
    const { out } = this;
    if (out.json) {
      out.line(JSON.stringify(protoJson(FenceUpdate, update)));
      return;
    }
    const line = this.lineOf(update.update);
    if (line !== '') out.line(line);
  }

  private lineOf(update: FenceUpdate['update']): string {
    switch (update?.$case) {
      case 'snapshot':
        return `snapshot  conflict map version ${update.value.mapVersion}`;
      case 'kind':
        return kindLine(update.value);
      case 'fence':
        return fenceLine(update.value);
      case 'renewed':
        return `renewed   ${short(update.value.leaseDigest)}  until ${when(update.value.endsAt)}`;
      case 'ended':
        return `ended     ${short(update.value.leaseDigest)}  ${reasonWord(update.value.reason)}`;
      case 'closed': {
        const { resource, scope, reason, closed } = update.value;
        return `${closed ? 'closed' : 'open'}    ${covered(clean(resource), scope)}  ${reasonWord(reason)}`;
      }
      case 'reached':
        return `up to     revision ${update.value.revision}:${update.value.hash}`;
      default:
        return '';
    }
  }
}

function kindLine({ pattern, decides, observes }: WatchedKind): string {
  const how = decides ? 'decided by a view' : 'ask for each write';
  return `kind      ${clean(pattern)}  ${how}${observes ? ', observed only' : ''}`;
}

function fenceLine({ leaseDigest, runId, endsAt, entries }: Fence): string {
  const what = entries.map(({ resource, scope, actions }) => {
    const verbs = actions.length === 0 ? '' : `=${actions.join(',')}`;
    return `${covered(clean(resource), scope)}${verbs}`;
  });
  return `live      ${short(leaseDigest)}  run ${runId}  until ${when(endsAt)}  ${what.join(' ')}`;
}

/** Enough of a digest to tell leases apart. */
const short = (digest: Uint8Array): string => Buffer.from(digest).toString('hex').slice(0, 12);

function reasonWord(reason: FenceReason): string {
  return (FenceReason[reason] ?? '').replace('FENCE_REASON_', '').toLowerCase();
}
