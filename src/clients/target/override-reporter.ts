import type { WritClient } from '../common/connect.js';
import { toTimestamp } from '../common/time.js';
import type { OverrideRecord } from './override.js';
import { type OverrideJournal, recordKey } from './override-journal.js';

export interface ReporterOptions {
  readonly client: WritClient;
  readonly namespace: string;
  readonly journal: OverrideJournal;
  readonly onProblem: (what: string, error: unknown) => void;
}

const BATCH = 100;
const TIMEOUT_MS = 5_000;
const FIRST_DELAY_MS = 1_000;
const MAX_DELAY_MS = 60_000;

/**
 * Tells the coordinator what overrides did, as soon as it is there (C12). It tries again for ever, ever more slowly and
 * with jitter; what the coordinator refuses holds up nothing else, stays in the journal, and is told to the service.
 */
export class OverrideReporter {
  private timer: NodeJS.Timeout | null = null;
  private round: Promise<void> | null = null;
  private delayMs = FIRST_DELAY_MS;
  private again = false;
  private closed = false;
  /**
   * What the coordinator has refused since it was last asked again: newer records are looked for past these. At most
   * what a journal takes (`MAX_PENDING`).
   */
  private readonly refused = new Set<string>();
  private readonly stopped = new AbortController();

  constructor(private readonly options: ReporterOptions) {}

  /** There is something new, or the coordinator may be back: look now. */
  nudge(): void {
    if (this.closed) return;
    if (this.round !== null) {
      this.again = true;
      return;
    }
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.round = this.report().then((done) => {
      this.round = null;
      if (this.again) {
        this.again = false;
        this.nudge();
      } else if (!done) this.later();
      else this.delayMs = FIRST_DELAY_MS;
    });
  }

  /** What is not told yet stays in the journal. Resolves when nothing runs any more. */
  async close(): Promise<void> {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.stopped.abort(new Error('the gate is closed'));
    await this.round;
  }

  private later(): void {
    if (this.closed) return;
    const retry = () => {
      this.refused.clear();
      this.nudge();
    };
    this.timer = setTimeout(retry, this.delayMs * (0.5 + Math.random() / 2));
    // A service that ends need not wait for this: the journal keeps it.
    this.timer.unref();
    this.delayMs = Math.min(MAX_DELAY_MS, this.delayMs * 2);
  }

  /** One look; true: nothing is left to tell. */
  private async report(): Promise<boolean> {
    try {
      for (;;) {
        // Those that were refused are among the pending ones, and would else fill every look.
        const pending = await this.options.journal.pending(BATCH + this.refused.size);
        const records = pending.filter((record) => !this.refused.has(recordKey(record)));
        if (records.length === 0) return this.refused.size === 0;
        for (const record of records) {
          if (this.closed) return true;
          if (!(await this.tell(record))) this.refused.add(recordKey(record));
        }
      }
    } catch (error) {
      if (!this.closed) this.options.onProblem('overrides could not be reported to the coordinator', error);
      return this.closed;
    }
  }

  /** False: the coordinator refuses this one. Throws when it cannot be reached. */
  private async tell(record: OverrideRecord): Promise<boolean> {
    const { client, namespace, journal, onProblem } = this.options;
    const { override, use } = record;
    try {
      await client.fence.reportOverride(
        {
          namespace,
          overrideId: override.id,
          who: override.who,
          why: override.why,
          until: timestamp(override.until),
          patterns: [...override.patterns],
          ...(use === null ? {} : { use: useOf(use) }),
        },
        { timeoutMs: TIMEOUT_MS, signal: this.stopped.signal, ...(use === null ? {} : { requestId: use.requestId }) },
      );
    } catch (error) {
      if (this.closed || isPassing(error)) throw error;
      onProblem(`the coordinator refuses the report of override ${override.id}; it stays in the journal`, error);
      return false;
    }
    await journal.reported(record);
    return true;
  }
}

function useOf({ id, requestId, usedAt, writes }: NonNullable<OverrideRecord['use']>) {
  return {
    useId: id,
    requestId,
    usedAt: timestamp(usedAt),
    writes: writes.map(({ resource, action, observedVersion }) => ({
      resource,
      action,
      ...(observedVersion === undefined ? {} : { observedVersion }),
    })),
  };
}

const timestamp = (date: Date) => toTimestamp(date.getTime() * 1_000);

/** Whether the next record would fare the same. */
function isPassing(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code !== 'INVALID_ARGUMENT' && code !== 'ALREADY_EXISTS' && code !== 'PERMISSION_DENIED';
}
