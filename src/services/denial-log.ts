import { decideNoteUnmatched, decideRecordDenials } from '../domain/decide/upkeep.js';
import type { DenialCount } from '../domain/event.js';
import type { Replica } from '../engine/replica.js';

/** Denials are appended this long after the first of them, together; a crash can lose that much (A1). */
const FLUSH_AFTER_MS = 200;
/** Different denials in one event; the rest are counted under `other`. */
const MAX_KINDS = 200;
/** Request ids by which `why` finds the event. */
const MAX_REQUEST_IDS = 100;
const MAX_UNMATCHED = 200;

interface Pending {
  readonly counts: Map<string, DenialCount>;
  readonly requestIds: Set<string>;
  readonly unmatched: Map<string, number>;
}

/** Gathers denied checks and appends them after they were answered, aggregated and bounded. */
export class DenialLog {
  private readonly pending = new Map<string, Pending>();
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly replica: Replica,
    private readonly onProblem: (error: unknown) => void,
  ) {}

  note(namespace: string, denial: Omit<DenialCount, 'count'>, requestIds: readonly string[]): void {
    const pending = this.of(namespace);
    const id = JSON.stringify([
      denial.reason,
      denial.resource,
      denial.action,
      denial.runId,
      denial.target,
      denial.observedOnly,
    ]);
    const known = pending.counts.get(id);
    if (known !== undefined || pending.counts.size < MAX_KINDS) {
      pending.counts.set(id, { ...denial, count: (known?.count ?? 0) + 1 });
    } else {
      const other = pending.counts.get('other');
      pending.counts.set('other', {
        reason: 'other',
        resource: '',
        action: '',
        runId: '',
        target: '',
        observedOnly: false,
        count: (other?.count ?? 0) + 1,
      });
    }
    for (const requestId of requestIds)
      if (pending.requestIds.size < MAX_REQUEST_IDS) pending.requestIds.add(requestId);
  }

  /** A resource that no kind matches was checked (C14). */
  noteUnmatched(namespace: string, resource: string): void {
    const { unmatched } = this.of(namespace);
    if (unmatched.has(resource) || unmatched.size < MAX_UNMATCHED)
      unmatched.set(resource, (unmatched.get(resource) ?? 0) + 1);
  }

  async flush(): Promise<void> {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    const all = [...this.pending];
    this.pending.clear();
    for (const [namespace, { counts, requestIds, unmatched }] of all) {
      const engine = await this.replica.open(namespace);
      await engine.submit('system', (decision) => {
        if (counts.size > 0) decideRecordDenials(decision, [...counts.values()], [...requestIds]);
        if (unmatched.size > 0)
          decideNoteUnmatched(
            decision,
            [...unmatched].map(([resource, times]) => ({ resource, times })),
          );
      });
    }
  }

  private of(namespace: string): Pending {
    let pending = this.pending.get(namespace);
    if (pending === undefined) {
      pending = { counts: new Map(), requestIds: new Set(), unmatched: new Map() };
      this.pending.set(namespace, pending);
    }
    this.timer ??= setTimeout(() => void this.flush().catch(this.onProblem), FLUSH_AFTER_MS);
    return pending;
  }
}
