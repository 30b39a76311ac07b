import { access, constants, mkdir, readFile, realpath, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { accountName } from './account.js';
import { absent, hasCode, withCause } from './errors.js';

/** A database cluster: where its things lie, and who listens. The layout is described in ../embedded.ts. */
export interface Cluster {
  readonly root: string;
  readonly pgdata: string;
  readonly passwordFile: string;
  readonly logFile: string;
  readonly lockFile: string;
  /** Whether this start made `root`, and so decides its mode. */
  readonly created: boolean;
  readonly log: (line: string) => void;
}

/** Makes the directory when it is missing; refuses one that this user cannot work in. */
export async function openCluster(dataDir: string, log: (line: string) => void = () => undefined): Promise<Cluster> {
  const wanted = resolve(dataDir);
  let created: boolean;
  try {
    created = (await mkdir(wanted, { recursive: true, mode: 0o700 })) !== undefined;
    await access(wanted, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (!hasCode(error, 'EACCES', 'EPERM')) throw error;
    throw await foreignDirectory(await nearestVisible(wanted), error);
  }
  // One spelling for everybody, since it is compared with the one on a running server's command line.
  const root = await realpath(wanted);
  const pgdata = join(root, 'pgdata');
  const owner = await stat(pgdata).catch(absent);
  const self = process.geteuid?.();
  if (owner !== undefined && self !== 0 && owner.uid !== self) throw await foreignDirectory(pgdata);
  return {
    root,
    pgdata,
    passwordFile: join(root, 'password'),
    logFile: join(root, 'postgres.log'),
    lockFile: join(root, 'start.lock'),
    created,
    log,
  };
}

/** The major version that made pgdata; undefined when there is no pgdata yet. */
export async function clusterVersion(cluster: Cluster): Promise<string | undefined> {
  return (await readFile(join(cluster.pgdata, 'PG_VERSION'), 'utf8').catch(absent))?.trim();
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
