import { chmod } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Account, chooseAccount } from './account.js';
import { type Binaries, findBinaries, linkLibraries } from './binaries.js';
import { type Cluster, clusterVersion } from './cluster.js';
import { cannotRun, messageOf } from './errors.js';
import { type Launcher, runBinary } from './launcher.js';

const PROBE_TIMEOUT_MS = 10_000;

/**
 * Finds a way to run the binaries against this directory, tried with the real thing. Postgres refuses to be root, and
 * the account it runs as instead often cannot reach a directory that only root may traverse (`mktemp -d`, /root), so
 * it gets a capability that opens the way, the weakest that does.
 */
export async function chooseLauncher(cluster: Cluster): Promise<Launcher> {
  const binaries = await findBinaries();
  const account = process.geteuid?.() === 0 ? await chooseAccount(cluster.pgdata) : undefined;
  const complaints = new Set<string>();
  for (const launcher of account === undefined ? [{ binaries, prefix: [], ids: {} }] : asAccount(binaries, account)) {
    // Without capabilities the account must at least traverse the directory; what lies in it has modes of its own.
    if (account !== undefined && launcher.prefix.length === 0 && cluster.created) await chmod(cluster.root, 0o711);
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

/** Has the server look itself up and enter the directory, as far as it goes without being one. */
async function probe(cluster: Cluster, launcher: Launcher): Promise<{ version: string } | { complaint: string }> {
  const attempt = async () => {
    const args = ['-D', cluster.root, '-c', 'config_file=/dev/null', '-C', 'server_version'];
    return { version: (await runBinary(launcher, launcher.binaries.postgres, args, PROBE_TIMEOUT_MS)).trim() };
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
  const existing = await clusterVersion(cluster);
  if (existing === undefined || existing === major) return;
  throw new Error(
    `${cluster.pgdata} was made by Postgres ${existing}, and the embedded one is ${major ?? version}: dump it with ` +
      `the old version and load it into a new data directory, or serve it with Postgres ${existing} and set ` +
      'WRIT_DATABASE_URL',
  );
}
