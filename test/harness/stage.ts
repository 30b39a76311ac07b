import { rm } from 'node:fs/promises';
import { makeTestDirectory } from '../support/global-setup.js';

/**
 * Everything that a scenario has started, ended in reverse order whatever happens: processes by their own ids,
 * directories by their own names, nothing else.
 */
export class Stage {
  private readonly ends: { readonly what: string; readonly end: () => Promise<unknown> }[] = [];

  /** Returns how to end it before the others. */
  add(what: string, end: () => Promise<unknown>): () => Promise<void> {
    const entry = { what, end };
    this.ends.push(entry);
    return async () => {
      const at = this.ends.indexOf(entry);
      if (at < 0) return;
      this.ends.splice(at, 1);
      await end();
    };
  }

  async directory(kind: string): Promise<string> {
    const directory = await makeTestDirectory(kind);
    this.add(directory, () => rm(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));
    return directory;
  }

  /** Returns what would not end. */
  async end(): Promise<string[]> {
    const stuck: string[] = [];
    for (let entry = this.ends.pop(); entry !== undefined; entry = this.ends.pop()) {
      const { what, end } = entry;
      await end().catch((error: unknown) => stuck.push(`${what}: ${error}`));
    }
    return stuck;
  }
}
