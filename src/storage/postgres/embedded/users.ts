import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isSameProcess, ownStartTime } from './process.js';

/**
 * Who uses an embedded database, so that whoever stops last stops it. A file each, named by its process, holds the
 * start time of that.
 */
export class DataDirectoryUsers {
  readonly #directory: string;
  readonly #own: string;

  constructor(dataDir: string) {
    this.#directory = join(dataDir, 'coordinators');
    // One process may have several.
    this.#own = join(this.#directory, `${process.pid}.${randomBytes(4).toString('hex')}`);
  }

  async enter(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await writeFile(this.#own, await ownStartTime(), { mode: 0o600 });
  }

  async leave(): Promise<void> {
    await rm(this.#own, { force: true });
  }

  /** Whether anybody else is there; forgets those who died. Asked after `leave`. */
  async others(): Promise<boolean> {
    let found = false;
    for (const name of await readdir(this.#directory).catch(() => [])) {
      const file = join(this.#directory, name);
      const started = await readFile(file, 'utf8').catch(() => null);
      if (await isSameProcess(Number.parseInt(name, 10), started)) found = true;
      else await rm(file, { force: true });
    }
    return found;
  }
}
