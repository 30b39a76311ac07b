import { randomBytes } from 'node:crypto';
import { chown, mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cluster, clusterVersion } from './cluster.js';
import { ensurePassword, ROLE } from './credentials.js';
import { removeTree, syncDirectory, writeDurably } from './files.js';
import { type Launcher, runBinary } from './launcher.js';

const INITDB_TIMEOUT_MS = 120_000;

/** Makes pgdata when there is none; a crash at any point leaves either no pgdata or a whole one. */
export async function ensureInitialised(cluster: Cluster, launcher: Launcher): Promise<void> {
  if (await isInitialised(cluster)) return;
  await sweepLeftovers(cluster);
  cluster.log(`creating the embedded Postgres in ${cluster.pgdata}`);
  const password = await ensurePassword(cluster);
  const staging = join(cluster.root, `init-${randomBytes(6).toString('hex')}`);
  const passwordCopy = join(staging, 'password');
  await mkdir(staging, { mode: 0o700 });
  try {
    // initdb may run as a user that cannot read ours.
    await writeDurably(passwordCopy, `${password}\n`);
    if (launcher.account !== undefined) {
      for (const path of [passwordCopy, staging]) await chown(path, launcher.account.uid, launcher.account.gid);
    }
    const made = join(staging, 'pgdata');
    const auth = ['--auth=scram-sha-256', `--username=${ROLE}`, `--pwfile=${passwordCopy}`];
    const shape = ['--encoding=UTF8', '--locale=C', '--data-checksums', '--no-instructions'];
    await runBinary(launcher, launcher.binaries.initdb, ['-D', made, ...auth, ...shape], INITDB_TIMEOUT_MS);
    await rename(made, cluster.pgdata).catch(async (error: unknown) => {
      if (await isInitialised(cluster)) return;
      throw new Error(`${cluster.pgdata} is in the way: neither empty nor a Postgres data directory`, { cause: error });
    });
    await syncDirectory(cluster.root);
  } finally {
    await removeTree(staging);
  }
}

async function isInitialised(cluster: Cluster): Promise<boolean> {
  return (await clusterVersion(cluster)) !== undefined;
}

/** Of starters that were killed half-way. */
async function sweepLeftovers(cluster: Cluster): Promise<void> {
  for (const name of await readdir(cluster.root)) {
    if (/^(init-|password\.)/.test(name)) await removeTree(join(cluster.root, name));
  }
}
