import { Command, Help, Option } from 'commander';
import { connectWrit } from '../clients/common/connect.js';
import { duration } from './arguments.js';
import { type Cli, CliError, exitCodeOf, reportError } from './cli.js';
import { registerAudit } from './commands/audit.js';
import { registerCerts } from './commands/certs.js';
import { registerCheck } from './commands/check.js';
import { registerCompletion } from './commands/completion.js';
import { registerCredential } from './commands/credential.js';
import { registerDoctor } from './commands/doctor.js';
import { registerExec } from './commands/exec.js';
import { registerFreeze } from './commands/freeze.js';
import { registerGuard } from './commands/guard.js';
import { registerInDoubt } from './commands/in-doubt.js';
import { registerKeys } from './commands/keys.js';
import { registerLease } from './commands/lease.js';
import { registerMap } from './commands/map.js';
import { registerMigrate } from './commands/migrate.js';
import { registerNamespace } from './commands/namespace.js';
import { registerRehearse } from './commands/rehearse.js';
import { registerRun } from './commands/run.js';
import { registerServe } from './commands/serve.js';
import { registerStatus } from './commands/status.js';
import { registerToken } from './commands/token.js';
import { registerWatch } from './commands/watch.js';
import { registerWho } from './commands/who.js';
import { registerWhy } from './commands/why.js';
import { type Environment, EnvironmentError, readClientConfig } from './environment.js';
import { EXIT } from './exit-codes.js';
import { Output, type Sink } from './output.js';

const ROLES = ['admin', 'runner', 'target', 'operator', 'approver', 'auditor'];

const FOOTER = `
Exit codes: 0 ok, 1 failure, 2 wrong command line or input, 3 refused, 4 denied, 5 coordinator or database out of reach,
6 not found, 7 looked and found something wrong, 75 lease lost (exec), 77 no permission. See docs/cli.md.`;

/** The tree of commands; made anew for every call, since options collect as they are read. */
export function buildProgram(cli: Cli, version: string): Command {
  const program = new Command('writ')
    .description('Coordinates agent runs that write to the same production accounts.')
    .version(version)
    .addOption(new Option('--endpoint <host:port>', 'the coordinator (WRIT_ENDPOINT, default 127.0.0.1:7410)'))
    .addOption(new Option('--token-file <file>', 'file with a bearer token (WRIT_TOKEN, WRIT_TOKEN_FILE)'))
    .addOption(new Option('--ca-file <file>', 'who vouches for the coordinator, for TLS (WRIT_CA_FILE)'))
    .addOption(new Option('--client-cert <file>', 'client certificate, for TLS (WRIT_CLIENT_CERT_FILE)'))
    .addOption(new Option('--client-key <file>', 'its private key (WRIT_CLIENT_KEY_FILE)'))
    .addOption(
      new Option(
        '--as <role>',
        'with the dev token of this role, from WRIT_DATA_DIR (default: the role that fits the command)',
      ).choices(ROLES),
    )
    .addOption(new Option('--namespace <name>', 'the namespace (WRIT_NAMESPACE, default "default")'))
    .addOption(new Option('--timeout <duration>', 'how long a call may take').argParser(duration))
    .addOption(new Option('--json', 'one JSON document on stdout instead of text'))
    .addHelpText('after', FOOTER)
    .showHelpAfterError('(add --help for what there is)')
    .configureHelp({ optionDescription: describeOption, showGlobalOptions: true })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => cli.out.raw(text),
      writeErr: (text) => {
        if (!cli.out.json) cli.out.note(text.trimEnd());
      },
    });
  for (const register of REGISTERED) register(program, cli);
  return program;
}

/** As commander has it, and whether the option must be given. */
function describeOption(option: Option): string {
  const description = new Help().optionDescription(option);
  return option.mandatory ? `${description} (required)` : description;
}

const REGISTERED = [
  registerServe,
  registerMigrate,
  registerStatus,
  registerWho,
  registerWhy,
  registerMap,
  registerRun,
  registerLease,
  registerInDoubt,
  registerFreeze,
  registerExec,
  registerCheck,
  registerWatch,
  registerGuard,
  registerRehearse,
  registerAudit,
  registerNamespace,
  registerCredential,
  registerKeys,
  registerToken,
  registerCerts,
  registerDoctor,
  registerCompletion,
];

/** What the outside gives: streams, and for tests another way to connect. */
export interface Surroundings {
  readonly stdout: Sink;
  readonly stderr: Sink;
  readonly stdin?: () => Promise<string>;
  readonly connect?: typeof connectWrit;
  readonly version?: string;
}

/** Says that what a command had to say could not be written, and returns the exit code. */
export function reportUnwritten(
  error: Error,
  args: readonly string[],
  streams: Pick<Surroundings, 'stdout' | 'stderr'>,
): number {
  const out = new Output(streams.stdout, streams.stderr, true);
  out.json = asksForJson(args);
  return reportError(
    new CliError(EXIT.failure, `Standard output cannot be written: ${error.message}. What was to be done may be done.`),
    out,
  );
}

/** Known before the command line is read, as it may be wrong; what comes after `--` is the command that `exec` runs. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).includes('--json');
}

/**
 * Runs one command line and returns its exit code. Never throws.
 *
 * @example
 * process.exitCode = await runCli(['status', '--json'], process.env, process);
 */
export async function runCli(args: readonly string[], env: Environment, surroundings: Surroundings): Promise<number> {
  const { stdout, stderr } = surroundings;
  let out = new Output(stdout, stderr, false);
  out.json = asksForJson(args);
  let endpoint: string | undefined;
  try {
    const config = readClientConfig(env);
    out = new Output(stdout, stderr, config.noColor);
    out.json = asksForJson(args);
    endpoint = config.endpoint;
    const connect = surroundings.connect ?? connectWrit;
    const cli: Cli = { env, config, out, connect, stdin: surroundings.stdin ?? (async () => '') };
    const program = buildProgram(cli, surroundings.version ?? '0.0.0');
    program.on('option:endpoint', (given: string) => {
      endpoint = given;
    });
    await program.parseAsync([...args], { from: 'user' });
    return exitCodeOf(program);
  } catch (error) {
    const told = error instanceof EnvironmentError ? new CliError(EXIT.usage, error.message) : error;
    return reportError(told, out, endpoint);
  }
}
