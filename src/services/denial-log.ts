import { decideNoteUnmatched, decideRecordDenials, MAX_DENIAL_IDS } from '../domain/decide/upkeep.js';
import type { DenialCount } from '../domain/event.js';
import { Fault, type FaultClass } from '../domain/fault.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';

/** Denials are appended this long after the first of them, together; a crash can lose that much (A1). */
const FLUSH_AFTER_MS = 200;
/** After an append that failed. */
const RETRY_AFTER_MS = 1_000;
/** Different denials of one namespace at a time; the rest are counted under `other`. */
const MAX_KINDS = 200;
const MAX_UNMATCHED = 200;

/** What the next append may cure; anything else would fail for ever and is given up. */
const PASSING: ReadonlySet<FaultClass> = new Set(['unavailable', 'resource_exhausted', 'unknown_outcome', 'aborted']);

export type Denial = Omit<DenialCount, 'count' | 'requestIds'>;

const OTHER: Denial = {
  reason: 'other',
  resource: '',
  action: '',
  runId: '',
  leaseId: '',
  presentedRun: '',
  target: '',
  observedOnly: false,
};

/** Gathers denied checks and appends them after they were answered, aggregated and bounded. */
export class DenialLog {
  private readonly namespaces = new Map<string, NamespaceDenials>();

  constructor(
    private readonly open: (namespace: string) => Promise<Pick<NamespaceEngine, 'submit'>>,
    private readonly onProblem: (error: unknown) => void,
  ) {}

  /** The first of the ids is the one that it is looked for by: where there are too many, the others are left out first. */
  note(namespace: string, denial: Denial, requestIds: readonly string[]): void {
    this.of(namespace).note(denial, requestIds);
  }

  /** A resource that no kind matches was checked (C14). */
  noteUnmatched(namespace: string, resource: string): void {
    this.of(namespace).noteUnmatched(resource);
  }

  /** Appends what is left, once; what cannot be appended then is lost, and said to be. */
  async close(): Promise<void> {
    await Promise.all([...this.namespaces.values()].map((denials) => denials.close()));
  }

  private of(namespace: string): NamespaceDenials {
    let denials = this.namespaces.get(namespace);
    if (denials === undefined) {
      denials = new NamespaceDenials(() => this.open(namespace), this.onProblem);
      this.namespaces.set(namespace, denials);
    }
    return denials;
  }
}

/** Those of one namespace: each namespace fails and is tried again for itself. */
class NamespaceDenials {
  private tally = new Tally();
  private timer: NodeJS.Timeout | null = null;
  private flushing: Promise<void> | null = null;
  private closed = false;

  constructor(
    private readonly open: () => Promise<Pick<NamespaceEngine, 'submit'>>,
    private readonly onProblem: (error: unknown) => void,
  ) {}

  note(denial: Denial, requestIds: readonly string[]): void {
    this.tally.add(denial, requestIds);
    this.flushAfter(FLUSH_AFTER_MS);
  }

  noteUnmatched(resource: string): void {
    this.tally.addUnmatched(resource, 1);
    this.flushAfter(FLUSH_AFTER_MS);
  }

  async close(): Promise<void> {
    this.closed = true;
    if (this.timer !== null) clearTimeout(this.timer);
    await this.flushing;
    await this.flush();
  }

  private flushAfter(milliseconds: number): void {
    if (this.timer !== null || this.flushing !== null || this.closed) return;
    this.timer = setTimeout(() => {
      this.timer = null;
      this.flushing = this.flush().then((done) => {
        this.flushing = null;
        if (!this.tally.isEmpty) this.flushAfter(done ? FLUSH_AFTER_MS : RETRY_AFTER_MS);
      });
    }, milliseconds);
  }

  /** One try. What failed in passing is counted in again; if it was appended all the same, it is counted twice. */
  private async flush(): Promise<boolean> {
    if (this.tally.isEmpty) return true;
    const taken = this.tally;
    this.tally = new Tally();
    try {
      const engine = await this.open();
      await engine.submit('system', (decision) => {
        if (taken.denials.size > 0) decideRecordDenials(decision, taken.denialCounts());
        if (taken.unmatched.size > 0) decideNoteUnmatched(decision, taken.unmatchedCounts());
      });
      return true;
    } catch (error) {
      if (error instanceof Fault && PASSING.has(error.faultClass)) this.tally.addAll(taken);
      this.onProblem(error);
      return false;
    }
  }
}

function idOf({ reason, resource, action, runId, leaseId, presentedRun, target, observedOnly }: Denial): string {
  return JSON.stringify([reason, resource, action, runId, leaseId, presentedRun, target, observedOnly]);
}

const ID_OF_OTHER = idOf(OTHER);

interface Counted {
  readonly denial: Denial;
  count: number;
  /** What callers named their checks. */
  readonly firstIds: Set<string>;
  /** Of calls that named their check otherwise. */
  readonly otherIds: Set<string>;
}

/** Counts, bounded whatever is counted. */
class Tally {
  readonly denials = new Map<string, Counted>();
  readonly unmatched = new Map<string, number>();

  get isEmpty(): boolean {
    return this.denials.size === 0 && this.unmatched.size === 0;
  }

  add(denial: Denial, [firstId, ...otherIds]: readonly string[]): void {
    this.merge({
      denial,
      count: 1,
      firstIds: new Set(firstId === undefined ? [] : [firstId]),
      otherIds: new Set(otherIds),
    });
  }

  addUnmatched(resource: string, times: number): void {
    if (this.unmatched.has(resource) || this.unmatched.size < MAX_UNMATCHED)
      this.unmatched.set(resource, (this.unmatched.get(resource) ?? 0) + times);
  }

  addAll(other: Tally): void {
    for (const counted of other.denials.values()) this.merge(counted);
    for (const [resource, times] of other.unmatched) this.addUnmatched(resource, times);
  }

  denialCounts(): DenialCount[] {
    return [...this.denials.values()].map(({ denial, count, firstIds, otherIds }) => {
      const requestIds = [...new Set([...firstIds, ...otherIds])].slice(0, MAX_DENIAL_IDS);
      return { ...denial, count, requestIds };
    });
  }

  unmatchedCounts(): { resource: string; times: number }[] {
    return [...this.unmatched].map(([resource, times]) => ({ resource, times }));
  }

  private merge(more: Counted): void {
    const id = idOf(more.denial);
    if (this.denials.has(id) || this.denials.size < MAX_KINDS) this.mergeAs(id, more);
    else this.mergeAs(ID_OF_OTHER, { ...more, denial: OTHER });
  }

  private mergeAs(id: string, more: Counted): void {
    const known = this.denials.get(id);
    if (known === undefined) {
      this.denials.set(id, more);
      return;
    }
    known.count += more.count;
    addBounded(known.firstIds, more.firstIds);
    addBounded(known.otherIds, more.otherIds);
  }
}

function addBounded(ids: Set<string>, more: ReadonlySet<string>): void {
  for (const id of more) if (ids.size < MAX_DENIAL_IDS) ids.add(id);
}
