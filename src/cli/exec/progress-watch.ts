import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { elapsedMs } from '../../clients/runner/clock.js';
import type { Environment } from '../environment.js';

const MAX_OUTPUT_BYTES = 1 << 20;

/**
 * Looks at the output of a command of the user's, again and again: as long as it changes, the work moves on. A hung
 * worker whose heartbeat goes on must not keep its lease (F4).
 */
export class ProgressWatch {
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;
  private current: string | undefined;
  private changedAt = elapsedMs();

  constructor(
    private readonly command: string,
    private readonly intervalMs: number,
    private readonly env: Environment,
    /** Told the new marker at each change. */
    private readonly onChange: (marker: string) => void,
    private readonly onFailure: (message: string) => void,
  ) {}

  start(): void {
    void this.look();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  /** Milliseconds since the output changed last, or since the beginning. */
  get unchangedForMs(): number {
    return elapsedMs() - this.changedAt;
  }

  private async look(): Promise<void> {
    const output = await this.run();
    if (this.stopped) return;
    if (output !== undefined) this.compare(createHash('sha256').update(output).digest('hex'));
    this.timer = setTimeout(() => void this.look(), this.intervalMs).unref();
  }

  private compare(marker: string): void {
    if (marker === this.current) return;
    // The first look says where the work stands, not that it moved.
    if (this.current !== undefined) this.changedAt = elapsedMs();
    this.current = marker;
    this.onChange(marker);
  }

  /** Standard output; undefined when the command failed, which tells nothing. */
  private run(): Promise<string | undefined> {
    return new Promise((resolve) => {
      const options = { env: { ...this.env }, timeout: Math.max(1_000, this.intervalMs), maxBuffer: MAX_OUTPUT_BYTES };
      execFile('/bin/sh', ['-c', this.command], options, (error, stdout) => {
        if (error !== null) this.onFailure(error.message.trim());
        resolve(error === null ? stdout : undefined);
      }).stdin?.end();
    });
  }
}
