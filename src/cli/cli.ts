import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Command, CommanderError } from 'commander';
import type { ConnectOptions, connectWrit, WritClient } from '../clients/common/connect.js';
import { WritError } from '../clients/common/errors.js';
import type { TlsOptions } from '../clients/common/tls.js';
import { LeaseLostError, RefusedError } from '../clients/runner/errors.js';
import type { ClientConfig, Environment } from './environment.js';
import { EXIT } from './exit-codes.js';
import type { Output } from './output.js';
import { inOwnNames, type NamedViolation, shownAs } from './own-names.js';

/** A role whose dev token a command takes when it was given none. */
export type Role = 'admin' | 'runner' | 'target' | 'operator' | 'approver' | 'auditor';

/** Options that every command takes. */
export interface GlobalOptions {
  readonly endpoint?: string;
  readonly tokenFile?: string;
  readonly caFile?: string;
  readonly clientCert?: string;
  readonly clientKey?: string;
  readonly as?: Role;
  readonly namespace?: string;
  readonly json?: boolean;
  /** Milliseconds. */
  readonly timeout?: number;
}

/** Ends a command with this code and these words. */
export class CliError extends Error {
  override readonly name = 'CliError';
  constructor(
    readonly exitCode: number,
    message: string,
    /** What to do about it. */
    readonly hint = '',
  ) {
    super(message);
  }
}

/** What the commands need of the outside; tests put in their own. */
export interface Cli {
  readonly env: Environment;
  readonly config: ClientConfig;
  readonly out: Output;
  readonly stdin: () => Promise<string>;
  readonly connect: typeof connectWrit;
}

/** One command under way. */
export interface Invocation<O> {
  readonly cli: Cli;
  readonly out: Output;
  readonly options: O & GlobalOptions;
  readonly args: readonly string[];
  readonly namespace: string;
  /** A client with the token given, else with the dev token of this role. Closed when the command ends. */
  client(role: Role): Promise<WritClient>;
  /** Where the coordinator is and how it is known, without who calls. */
  readonly connection: Omit<ConnectOptions, 'token'>;
}

/** Runs `work` when the command is called; what it returns is the exit code. */
export function action<O>(command: Command, cli: Cli, work: (invocation: Invocation<O>) => Promise<number>): Command {
  return command.action(async () => {
    const options = command.optsWithGlobals<O & GlobalOptions>();
    cli.out.json = options.json === true;
    const clients = new Map<Role, WritClient>();
    const client = async (role: Role): Promise<WritClient> => {
      const open = clients.get(role) ?? (await connectAs(cli, options, role));
      clients.set(role, open);
      return open;
    };
    const namespace = options.namespace ?? cli.config.namespace;
    try {
      const connection = connectionOf(cli, options);
      exitCodes.set(
        command,
        await work({ cli, out: cli.out, options, args: command.args, namespace, client, connection }),
      );
    } catch (error) {
      if (error instanceof WritError) askedBy.set(error, command);
      throw error;
    } finally {
      for (const one of clients.values()) one.close();
    }
  });
}

const exitCodes = new WeakMap<Command, number>();
/** The command whose call came to this. */
const askedBy = new WeakMap<WritError, Command>();

/** The code that the command which ran, somewhere below this one, ended with. */
export function exitCodeOf(command: Command): number {
  return exitCodes.get(command) ?? command.commands.map(exitCodeOf).find((code) => code !== EXIT.ok) ?? EXIT.ok;
}

async function connectAs(cli: Cli, options: GlobalOptions, role: Role): Promise<WritClient> {
  const connection = connectionOf(cli, options);
  const token = await findToken(cli.config, options, role, connection.tls?.certFile !== undefined);
  return cli.connect({ ...connection, ...(token === null ? {} : { token }) });
}

function connectionOf(cli: Cli, options: GlobalOptions): Omit<ConnectOptions, 'token'> {
  const namespace = options.namespace ?? cli.config.namespace;
  const tls = tlsOf(cli.config, options);
  return {
    endpoint: options.endpoint ?? cli.config.endpoint,
    ...(tls === null ? {} : { tls }),
    ...(cli.config.allowInsecure ? { allowInsecure: 'beyond-loopback' as const } : {}),
    ...(namespace === '' ? {} : { namespace }),
    ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout }),
    ...(cli.config.traceparent === null ? {} : { traceparent: cli.config.traceparent }),
  };
}

function tlsOf(config: ClientConfig, options: GlobalOptions): TlsOptions | null {
  const caFile = options.caFile ?? config.caFile;
  const certFile = options.clientCert ?? config.clientCertFile;
  const keyFile = options.clientKey ?? config.clientKeyFile;
  if (caFile === null && certFile === null && keyFile === null) return null;
  return {
    ...(caFile === null ? {} : { caFile }),
    ...(certFile === null ? {} : { certFile }),
    ...(keyFile === null ? {} : { keyFile }),
  };
}

/**
 * --token-file, WRIT_TOKEN, WRIT_TOKEN_FILE; then, unless a client certificate says who calls (null), the token that the
 * embedded mode made for the role.
 */
async function findToken(
  config: ClientConfig,
  options: GlobalOptions,
  role: Role,
  certified: boolean,
): Promise<string | null> {
  if (options.tokenFile !== undefined) return readToken(options.tokenFile);
  if (options.as === undefined && config.token !== null) return config.token;
  if (options.as === undefined && config.tokenFile !== null) return readToken(config.tokenFile);
  if (options.as === undefined && certified) return null;
  const wanted = options.as ?? role;
  const path = join(config.dataDir, 'dev-tokens.json');
  const text = await readFile(path, 'utf8').catch(() => null);
  const hint = `Give one with --token-file FILE or WRIT_TOKEN, or set WRIT_DATA_DIR to the data directory of the coordinator.`;
  if (text === null) throw new CliError(EXIT.permission, `There is no token: ${path} cannot be read.`, hint);
  const token = tokenOfRole(text, wanted);
  if (token === null) throw new CliError(EXIT.permission, `${path} holds no token for the role ${wanted}.`, hint);
  return token;
}

function tokenOfRole(text: string, role: Role): string | null {
  try {
    const tokens = JSON.parse(text) as Partial<Record<Role, unknown>>;
    const token = tokens[role];
    return typeof token === 'string' ? token : null;
  } catch {
    return null;
  }
}

async function readToken(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new CliError(EXIT.usage, `The token file cannot be read: ${messageOf(error)}`);
  });
  const token = text.trim();
  if (!/^[\x21-\x7e]+$/.test(token)) throw new CliError(EXIT.usage, `${path} must hold one token and nothing else.`);
  return token;
}

/** Says what went wrong, also which coordinator was called, and returns the exit code. */
export function reportError(error: unknown, out: Output, endpoint = ''): number {
  // What commander finds wrong it has said itself; to machines it is told as all else is.
  if (error instanceof CommanderError && (isNoError(error) || !out.json))
    return isNoError(error) ? EXIT.ok : EXIT.usage;
  const report = describe(error, endpoint);
  if (out.json) {
    const { exit, ...told } = report;
    out.note(JSON.stringify({ error: told, exitCode: exit }));
    return report.exit;
  }
  out.note(`${out.style('error', 'red')}: ${report.message}`);
  for (const violation of report.violations) out.note(`  ${shownAs(violation)}: ${violation.description}`);
  if (report.hint !== '') out.note(report.hint);
  if (report.requestId !== '')
    out.note(`(${[`request id ${report.requestId}`, report.reason, report.endpoint].filter(Boolean).join(', ')})`);
  return report.exit;
}

interface Report {
  readonly exit: number;
  readonly code: string;
  readonly reason: string;
  readonly message: string;
  readonly hint: string;
  readonly violations: readonly NamedViolation[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly requestId: string;
  /** The coordinator that was called; empty: none was. */
  readonly endpoint: string;
}

function describe(error: unknown, endpoint: string): Report {
  const base: Report = {
    exit: EXIT.failure,
    code: '',
    reason: '',
    message: messageOf(error),
    hint: '',
    violations: [],
    metadata: {},
    requestId: '',
    endpoint: '',
  };
  if (error instanceof CommanderError)
    return { ...base, exit: EXIT.usage, message: isHelp(error) ? NO_COMMAND : error.message.replace(/^error: /, '') };
  if (error instanceof CliError) return { ...base, exit: error.exitCode, hint: error.hint };
  if (error instanceof RefusedError) return { ...base, exit: EXIT.refused };
  if (error instanceof LeaseLostError) return { ...base, exit: EXIT.leaseLost, reason: error.reason };
  if (!(error instanceof WritError)) return base;
  // The fields are shown one by one; their text need not be repeated before.
  const message = error.violations.length > 0 ? 'The request is not valid.' : error.message;
  const { code, reason, metadata, requestId } = error;
  const command = askedBy.get(error);
  const violations = command === undefined ? error.violations : inOwnNames(error.violations, command);
  return {
    ...base,
    exit: EXIT_OF[code] ?? EXIT.failure,
    code,
    reason,
    message,
    hint: hintFor(error),
    violations,
    metadata,
    requestId,
    endpoint,
  };
}

const EXIT_OF: Partial<Record<WritError['code'], number>> = {
  INVALID_ARGUMENT: EXIT.usage,
  OUT_OF_RANGE: EXIT.usage,
  NOT_FOUND: EXIT.notFound,
  UNAUTHENTICATED: EXIT.permission,
  PERMISSION_DENIED: EXIT.permission,
  UNAVAILABLE: EXIT.unavailable,
  DEADLINE_EXCEEDED: EXIT.unavailable,
  ABORTED: EXIT.refused,
  ALREADY_EXISTS: EXIT.refused,
  FAILED_PRECONDITION: EXIT.refused,
  RESOURCE_EXHAUSTED: EXIT.refused,
};

const NOBODY_THERE =
  'Does a coordinator run there? `writ doctor` looks, `writ serve` (or `npm start`) starts one; --endpoint or WRIT_ENDPOINT says where it is, with https:// where it speaks TLS.';
const NOT_TRUSTED =
  'Is it the right coordinator? --ca-file or WRIT_CA_FILE names the authority that vouches for its certificate.';
const NO_TLS = 'Something else than gRPC over TLS listens there: is it the HTTP port, or a coordinator without TLS?';

/** Somebody is there, and TLS did not come about. */
function hintOnTls(message: string): string | undefined {
  if (/SSL routines|SSL alert|wrong version number/.test(message)) return NO_TLS;
  return /certificate|Hostname\/IP/.test(message) ? NOT_TRUSTED : undefined;
}

const HINTS: Partial<Record<WritError['code'], string>> = {
  DEADLINE_EXCEEDED: NOBODY_THERE,
  UNAUTHENTICATED:
    'Is it the token of this coordinator? --token-file, WRIT_TOKEN or WRIT_DATA_DIR says which is taken.',
};

/** A coordinator that gives a reason is there, and the reason says it. */
const READINESS =
  'A coordinator is there and cannot decide now: its /readyz says why, `writ doctor` looks at its database.';

function hintFor({ code, reason, message }: WritError): string {
  const byReason = HINTS_BY_REASON[reason];
  if (byReason !== undefined) return byReason;
  if (code !== 'UNAVAILABLE') return HINTS[code] ?? '';
  return hintOnTls(message) ?? (reason === '' ? NOBODY_THERE : READINESS);
}

const HINTS_BY_REASON: Readonly<Record<string, string>> = {
  IDEMPOTENCY_KEY_REUSED:
    'All of a request counts. A run is created again by the same --until, since --for, and the end that is taken without either, count from now.',
  LOG_TOO_YOUNG: '--even-young insists.',
  LIVE_CONFLICT:
    '`writ map preview FILE` says all that the map would hit; --on-live-conflict refuse|revoke_newer|keep_until_end says what to do with such pairs.',
};

/** What a command line without a command is answered with. */
const isHelp = ({ code }: CommanderError): boolean => code === 'commander.help';
const NO_COMMAND = 'the command line names no command; --help says which there are';

/** Help and version are no errors; everything else that commander finds is a wrong command line. */
function isNoError({ code }: CommanderError): boolean {
  return ['commander.helpDisplayed', 'commander.version'].includes(code);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
