import { Command, Help, Option } from 'commander';
import { connectWrit } from '../clients/common/connect.js';
import { duration } from './arguments.js';
import { type Cli, CliError, exitCodeOf, reportError } from './cli.js';
import { type Environment, EnvironmentError, readClientConfig } from './environment.js';
import { EXIT } from './exit-codes.js';
import { Output, type Sink } from './output.js';

const ROLES = ['admin', 'runner', 'target', 'operator', 'approver', 'auditor'];

const FOOTER = `
Exit codes: 0 ok, 1 failure, 2 wrong command line or input, 3 refused, 4 denied, 5 coordinator or database out of reach,
6 not found, 7 looked and found something wrong, 75 lease lost (exec), 77 no permission. See docs/cli.md.`;

/**
 * The tree of commands, of all or of the one that the line calls; made anew for every call, since options collect as they
 * are read.
 */
export async function buildProgram(cli: Cli, version: string, args: readonly string[] = []): Promise<Command> {
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
  for (const register of await registersFor(args)) register(program, cli);
  return program;
}

/** As commander has it, and whether the option must be given. */
function describeOption(option: Option): string {
  const description = new Help().optionDescription(option);
  return option.mandatory ? `${description} (required)` : description;
}

type Register = (program: Command, cli: Cli) => void;

const serve = async () => (await import('./commands/serve.js')).registerServe;
const freeze = async () => (await import('./commands/freeze.js')).registerFreeze;

/** In the order of the help. A command is loaded when it is called: all of them take as long as everything else of a call. */
const COMMANDS: ReadonlyMap<string, () => Promise<Register>> = new Map([
  ['serve', serve],
  ['demo', serve],
  ['migrate', async () => (await import('./commands/migrate.js')).registerMigrate],
  ['status', async () => (await import('./commands/status.js')).registerStatus],
  ['who', async () => (await import('./commands/who.js')).registerWho],
  ['why', async () => (await import('./commands/why.js')).registerWhy],
  ['map', async () => (await import('./commands/map.js')).registerMap],
  ['run', async () => (await import('./commands/run.js')).registerRun],
  ['lease', async () => (await import('./commands/lease.js')).registerLease],
  ['in-doubt', async () => (await import('./commands/in-doubt.js')).registerInDoubt],
  ['freeze', freeze],
  ['thaw', freeze],
  ['exec', async () => (await import('./commands/exec.js')).registerExec],
  ['check', async () => (await import('./commands/check.js')).registerCheck],
  ['watch', async () => (await import('./commands/watch.js')).registerWatch],
  ['guard', async () => (await import('./commands/guard.js')).registerGuard],
  ['rehearse', async () => (await import('./commands/rehearse.js')).registerRehearse],
  ['audit', async () => (await import('./commands/audit.js')).registerAudit],
  ['namespace', async () => (await import('./commands/namespace.js')).registerNamespace],
  ['credential', async () => (await import('./commands/credential.js')).registerCredential],
  ['keys', async () => (await import('./commands/keys.js')).registerKeys],
  ['token', async () => (await import('./commands/token.js')).registerToken],
  ['certs', async () => (await import('./commands/certs.js')).registerCerts],
  ['doctor', async () => (await import('./commands/doctor.js')).registerDoctor],
  ['completion', async () => (await import('./commands/completion.js')).registerCompletion],
]);

/** Of the command that the line begins with; else of all, for help, and to guess at what was meant. */
async function registersFor([first = '']: readonly string[]): Promise<Register[]> {
  const called = first === 'completion' ? undefined : COMMANDS.get(first);
  return Promise.all(called === undefined ? [...new Set(COMMANDS.values())].map((load) => load()) : [called()]);
}

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
    const program = await buildProgram(cli, surroundings.version ?? '0.0.0', args);
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
