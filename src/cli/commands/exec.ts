import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';
import { type Command, Option } from 'commander';
import type { WritClient } from '../../clients/common/connect.js';
import { WritError } from '../../clients/common/errors.js';
import { toTimestamp } from '../../clients/common/time.js';
import { acquire } from '../../clients/runner/acquire.js';
import { CredentialNotIssuedError, type LeaseLostError, RefusedError } from '../../clients/runner/errors.js';
import type { Lease } from '../../clients/runner/lease.js';
import { protoJson } from '../../contract/proto-json.js';
import { RunState } from '../../gen/writ/v1/run_service.js';
import { Refusal } from '../../gen/writ/v1/types.js';
import {
  type AskedWriteSet,
  addWriteSetOptions,
  askedWriteSet,
  duration,
  moment,
  repeated,
  type WriteSetFlags,
} from '../arguments.js';
import { action, type Cli, CliError, type Invocation } from '../cli.js';
import type { Environment } from '../environment.js';
import { contractFor } from '../exec/contract.js';
import { CredentialFiles } from '../exec/credential-files.js';
import { writeEntriesFile } from '../exec/entries-file.js';
import { Interrupts } from '../exec/interrupts.js';
import { ProcessGroup } from '../exec/process-group.js';
import { ProgressWatch } from '../exec/progress-watch.js';
import { EXIT } from '../exit-codes.js';
import type { Output } from '../output.js';
import { lasting, observedText, showRefusal, waitingText } from '../show.js';
import { authorityEnd } from './run.js';

interface ExecOptions extends WriteSetFlags {
  readonly run?: string;
  readonly purpose?: string;
  readonly initiator?: string;
  readonly for?: number;
  readonly until?: number;
  readonly ttl?: number;
  readonly wait?: number;
  readonly key?: string;
  readonly audience?: readonly string[];
  readonly progressCommand?: string;
  readonly progressInterval: number;
  readonly progressWindow?: number;
  readonly grace: number;
}

const HELP = `
The command gets WRIT_RUN_ID, WRIT_LEASE_ID, WRIT_FENCING_TOKEN (of the first resource), WRIT_NAMESPACE, and
WRIT_ENTRIES_FILE: all entries of the lease as a JSON array, removed at the end. With --audience it gets
WRIT_CREDENTIAL_FILE: the credential for the first one, kept fresh; read it anew for every request. WRIT_CREDENTIAL_FILES
has the file of each audience, as JSON.

Exit codes: that of the command (128 + n if signal n ended it); ${EXIT.refused} refused, and the command did not run;
${EXIT.leaseLost} the lease was lost, and the command was ended; ${EXIT.noCommand} no such command; ${EXIT.notExecutable} it cannot be executed.

Example: writ exec --resource release/prod-eu --action promote --wait 5m -- ./promote.sh 4.2`;

export function registerExec(program: Command, cli: Cli): void {
  const exec = program
    .command('exec')
    .argument('<command...>', 'after --: the command and its arguments')
    .description('run a command under a lease: take the write set, renew while the command lives, give it back');
  const resources = addWriteSetOptions(exec);
  exec
    .option('--run <id>', 'hold the lease in this run (default: a new run that may do exactly this)')
    .option('--purpose <text>', 'what for')
    .option('--initiator <person>', 'on whose behalf the new run works; recorded as not verified')
    .option('--for <duration>', "end of the new run's authority, from now (default: 1h)", duration)
    .option('--until <time>', "end of the new run's authority, such as 2026-12-01T10:00:00Z", moment)
    .option('--ttl <duration>', "how long the lease lives unless renewed (default: the conflict map's)", duration)
    .option('--wait <duration>', 'wait for what others hold', duration)
    .option('--key <key>', 'idempotency key of the acquire, with --run')
    .option('--audience <name>', 'target to get a credential for, kept fresh in a file; repeatable', repeated)
    .option('--progress-command <cmd>', 'shell command; the lease is renewed only while its output changes')
    .addOption(
      new Option('--progress-interval <duration>', 'how often to look at its output')
        .argParser(duration)
        .default(10_000, '10s'),
    )
    .option(
      '--progress-window <duration>',
      "how long it may stay the same (default: the kind's progress window, else the ttl)",
      duration,
    )
    .addOption(
      new Option('--grace <duration>', 'when the lease is lost: from SIGTERM to SIGKILL')
        .argParser(duration)
        .default(10_000, '10s'),
    )
    .addHelpText('after', HELP);
  action<ExecOptions>(exec, cli, async (invocation) => {
    const asked = await askedWriteSet(cli, invocation.options, resources);
    const interrupts = new Interrupts((text) => invocation.out.note(text));
    try {
      return await execute(invocation, asked, interrupts);
    } finally {
      interrupts.dispose();
    }
  });
}

async function execute(
  invocation: Invocation<ExecOptions>,
  asked: AskedWriteSet,
  interrupts: Interrupts,
): Promise<number> {
  const { options, args, client, out } = invocation;
  const writ = await client('runner');
  const purpose = options.purpose ?? `writ exec ${basename(args[0] ?? '')}`;
  const own = options.run === undefined ? await createRun(writ, asked, options, purpose) : undefined;
  let code: number = EXIT.failure;
  try {
    code = await underLease(invocation, asked, own ?? options.run ?? '', purpose, interrupts);
    return code;
  } finally {
    if (own !== undefined) await finishRun(out, writ, own, code);
  }
}

async function createRun(
  writ: WritClient,
  asked: AskedWriteSet,
  options: ExecOptions,
  purpose: string,
): Promise<string> {
  const { run } = await writ.run.createRun({
    purpose,
    initiator: options.initiator ?? '',
    allowed: await contractFor(writ, asked),
    authorityEndsAt: toTimestamp(authorityEnd(options.for, options.until)),
  });
  if (run === undefined) throw new CliError(EXIT.failure, 'The coordinator made no run.');
  return run.runId;
}

/** The command gets the lease, not what the runner or the coordinator know (least privilege). */
const OWN_SECRETS: ReadonlySet<string> = new Set([
  'WRIT_TOKEN',
  'WRIT_DATABASE_URL',
  'WRIT_REDIS_URL',
  'WRIT_KEY_ENCRYPTION_KEY',
]);

/** The run was made for this command, so it ends with it. That it cannot be said is no failure of the command. */
async function finishRun(out: Output, writ: WritClient, runId: string, code: number): Promise<void> {
  const finished = code === EXIT.ok;
  const state = finished ? RunState.RUN_STATE_FINISHED : RunState.RUN_STATE_FAILED;
  const reason = finished ? '' : `exit code ${code}`;
  const timeoutMs = code === EXIT.leaseLost ? 1_000 : 5_000;
  await writ.run.updateRunState({ runId, state, reason }, { timeoutMs }).catch((error: Error) => {
    // An operator was faster.
    if (error instanceof WritError && error.reason === 'RUN_ENDED') return;
    out.note(`writ: the run ${runId} could not be ended (${error.message}); it ends with its authority.`);
  });
}

async function underLease(
  { cli, out, options, args, namespace, client }: Invocation<ExecOptions>,
  asked: AskedWriteSet,
  runId: string,
  purpose: string,
  interrupts: Interrupts,
): Promise<number> {
  const requestId = randomUUID();
  const keeper = new Keeper(out, options);
  let lease: Lease;
  try {
    lease = await acquire(await client('runner'), {
      runId,
      ...asked,
      purpose,
      requestId,
      signal: interrupts.signal,
      onWaiting: (place) => out.note(`writ: ${waitingText(place)}`),
      onJeopardy: (remainingMs, cause) =>
        out.note(`writ: the lease is in jeopardy, valid for another ${lasting(remainingMs)}: ${cause.message}`),
      onSafe: () => out.note('writ: the lease is safe again.'),
      onAskedToYield: (wanted) => out.note(`writ: another run waits for ${wanted.join(', ')}.`),
      onInputChanged: (input) =>
        out.note(`writ: another run was granted a write on ${input}, which is only read here.`),
      mayRenew: () => keeper.mayRenew(),
      ...(options.ttl === undefined ? {} : { ttlMs: options.ttl }),
      ...(options.wait === undefined ? {} : { waitMs: options.wait }),
      ...(options.key === undefined ? {} : { idempotencyKey: options.key }),
    });
  } catch (error) {
    return notGranted(error, out, requestId, interrupts);
  }
  for (const { resource, observedRefusal } of lease.entries)
    if (observedRefusal !== undefined) out.note(`writ: ${observedText(resource, observedRefusal)}`);
  const entries = await writeEntriesFile(lease.entries);
  const inherited = Object.fromEntries(Object.entries(cli.env).filter(([name]) => !OWN_SECRETS.has(name)));
  let credentials: CredentialFiles | undefined;
  try {
    const { audience = [] } = options;
    credentials = await CredentialFiles.start(entries.directory, await client('runner'), lease, audience, (text) =>
      out.note(text),
    );
    const env = { ...inherited, ...leaseVariables(lease, namespace, entries.path), ...credentials.variables };
    keeper.keep(lease, env);
    return await supervise(out, lease, args, env, options.grace, interrupts);
  } catch (error) {
    if (!(error instanceof CredentialNotIssuedError)) throw error;
    return notGranted(new RefusedError(error.refusal), out, requestId, interrupts);
  } finally {
    credentials?.stop();
    keeper.stop();
    await entries.remove();
    await lease.release().catch((error: Error) => {
      out.note(`writ: the lease could not be given back (${error.message}); it ends at its expiry.`);
    });
  }
}

function notGranted(error: unknown, out: Output, requestId: string, interrupts: Interrupts): number {
  if (interrupts.exitCode !== undefined && interrupts.signal.aborted) return interrupts.exitCode;
  if (!(error instanceof RefusedError)) throw error;
  if (out.json) {
    out.note(JSON.stringify({ refusal: protoJson(Refusal, error.refusal), requestId, exitCode: EXIT.refused }));
    return EXIT.refused;
  }
  showRefusal(out, error.refusal, (text) => out.note(text));
  out.note(`  more: writ why ${requestId}`);
  return EXIT.refused;
}

function leaseVariables(lease: Lease, namespace: string, entriesFile: string): Environment {
  const first = lease.entries.find((entry) => entry.fencingToken > 0n);
  return {
    WRIT_RUN_ID: lease.runId,
    WRIT_LEASE_ID: lease.id,
    WRIT_FENCING_TOKEN: (first?.fencingToken ?? 0n).toString(),
    WRIT_NAMESPACE: namespace === '' ? 'default' : namespace,
    WRIT_ENTRIES_FILE: entriesFile,
  };
}

/** Runs the command until it ends, or until the lease is lost and the command has been ended. */
async function supervise(
  out: Output,
  lease: Lease,
  command: readonly string[],
  env: Environment,
  graceMs: number,
  interrupts: Interrupts,
): Promise<number> {
  if (interrupts.exitCode !== undefined) return interrupts.exitCode;
  if (lease.lost !== undefined) throw lease.lost;
  const group = await ProcessGroup.start(command, env);
  interrupts.passTo((signal) => group.signal(signal));
  const lost = new Promise<'lost'>((resolve) => {
    if (lease.signal.aborted) resolve('lost');
    lease.signal.addEventListener('abort', () => resolve('lost'), { once: true });
  });
  const first = await Promise.race([group.exited, lost]);
  if (first !== 'lost') {
    if (await group.isRunning()) {
      out.note(
        'writ: the command has ended, but processes it started still run; the lease is given back, and their writes will be refused.',
      );
    }
    return first;
  }
  out.note(`writ: ${(lease.signal.reason as LeaseLostError).message}`);
  out.note(`writ: ending the command (SIGTERM, and SIGKILL after ${lasting(graceMs)}).`);
  await group.end(graceMs);
  out.note(
    'writ: the command has been ended. A dead process proves nothing about remote effects: what it had sent may still ' +
      'take effect. Look at the targets before you go on.',
  );
  return EXIT.leaseLost;
}

/** Claims progress: always, as the command lives; or, with --progress-command, only while its output changes (C6). */
class Keeper {
  private watch: ProgressWatch | undefined;
  private lease: Lease | undefined;
  private windowMs = Number.POSITIVE_INFINITY;
  private beats = 0;

  constructor(
    private readonly out: Output,
    private readonly options: ExecOptions,
  ) {}

  keep(lease: Lease, env: Environment): void {
    this.lease = lease;
    const { progressCommand, progressInterval, progressWindow } = this.options;
    if (progressCommand === undefined) return;
    this.windowMs = progressWindow ?? lease.progressWindowMs ?? Math.max(lease.remainingMs, 2 * progressInterval);
    const failed = (message: string) =>
      this.out.note(`writ: the progress command failed, so it shows no progress: ${message}`);
    this.watch = new ProgressWatch(progressCommand, progressInterval, env, (marker) => lease.progress(marker), failed);
    this.watch.start();
  }

  mayRenew(): boolean {
    if (this.options.progressCommand !== undefined)
      return this.watch === undefined || this.watch.unchangedForMs < this.windowMs;
    this.beats += 1;
    this.lease?.progress(`writ exec: alive, ${this.beats}`);
    return true;
  }

  stop(): void {
    this.watch?.stop();
  }
}
