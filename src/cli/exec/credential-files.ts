import { randomUUID } from 'node:crypto';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WritClient } from '../../clients/common/connect.js';
import { elapsedMs } from '../../clients/runner/clock.js';
import { CredentialKeeper } from '../../clients/runner/credentials.js';
import { CredentialNotIssuedError } from '../../clients/runner/errors.js';
import type { Lease } from '../../clients/runner/lease.js';
import type { Environment } from '../environment.js';

/** When one cannot be had now; what is in the file is good for a while yet. */
const RETRY_MS = 1_000;

/** One audience, its credential, and the file that the command reads. */
interface Kept {
  readonly audience: string;
  readonly path: string;
  readonly keeper: CredentialKeeper;
  /** That no new one can be had was said, and is not said again until one was. */
  told: boolean;
}

/**
 * Credentials for the command in files, since arguments and environment are read by others (`ps`, crash reports) and do
 * not change any more: each has nothing but the token, is readable by its owner only, and is replaced as a whole by a new
 * one at two thirds of its life. One that ended and could not be renewed goes away until one can be had.
 */
export class CredentialFiles {
  private readonly timers = new Set<NodeJS.Timeout>();
  private stopped = false;

  private constructor(
    private readonly kept: readonly Kept[],
    private readonly say: (text: string) => void,
  ) {}

  /**
   * Writes the first ones, in a directory that is its owner's only. Throws a CredentialNotIssuedError: a command whose
   * credentials cannot be had does not run.
   */
  static async start(
    directory: string,
    client: WritClient,
    lease: Lease,
    audiences: readonly string[],
    say: (text: string) => void,
  ): Promise<CredentialFiles> {
    const source = { client, namespace: lease.namespace, runId: lease.runId, leaseId: lease.id };
    const kept = audiences.map((audience, index) => ({
      audience,
      path: join(directory, `credential-${index + 1}`),
      keeper: new CredentialKeeper(source, audience),
      told: false,
    }));
    const files = new CredentialFiles(kept, say);
    try {
      for (const one of kept) await files.renew(one);
    } catch (error) {
      files.stop();
      throw error;
    }
    return files;
  }

  /** WRIT_CREDENTIAL_FILE, of the first audience, and WRIT_CREDENTIAL_FILES: the path for each audience, as JSON. */
  get variables(): Environment {
    const [first] = this.kept;
    if (first === undefined) return {};
    const byAudience = Object.fromEntries(this.kept.map(({ audience, path }) => [audience, path]));
    return { WRIT_CREDENTIAL_FILE: first.path, WRIT_CREDENTIAL_FILES: JSON.stringify(byAudience) };
  }

  /** The files stay; they go with their directory. */
  stop(): void {
    this.stopped = true;
    for (const timer of this.timers) clearTimeout(timer);
  }

  private async renew(one: Kept): Promise<void> {
    const { token, renewAt, endsAt } = await one.keeper.issue();
    if (this.stopped) return;
    await replace(one.path, token);
    one.told = false;
    this.schedule(one, renewAt - elapsedMs(), endsAt);
  }

  private schedule(one: Kept, inMs: number, endsAt: number): void {
    const attempt = () => {
      this.timers.delete(timer);
      this.renew(one).catch((error: Error) => this.failed(one, error, endsAt));
    };
    const timer = setTimeout(attempt, Math.max(0, inMs)).unref();
    this.timers.add(timer);
  }

  private async failed(one: Kept, error: Error, endsAt: number): Promise<void> {
    if (this.stopped) return;
    const isOver = endsAt <= elapsedMs();
    if (isOver) await rm(one.path, { force: true });
    if (!one.told && (isOver || error instanceof CredentialNotIssuedError)) {
      one.told = true;
      this.say(`writ: no new credential for ${one.audience}: ${error.message}`);
    }
    this.schedule(one, RETRY_MS, endsAt);
  }
}

/** Whoever reads meanwhile finds the old one or the new one, never half of one. */
async function replace(path: string, token: string): Promise<void> {
  const next = `${path}.${randomUUID()}`;
  await writeFile(next, `${token}\n`, { mode: 0o600, flag: 'wx' });
  await rename(next, path);
}
