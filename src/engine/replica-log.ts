import type { LoadedRecords, NeedsLoad } from '../domain/decide/decision.js';
import { Fault } from '../domain/fault.js';
import type { State } from '../domain/state.js';
import type { Micros } from '../domain/time.js';
import type { DatabaseIdentity, EventRecord, Gate, Head } from '../storage/store.js';
import type { Plan } from './batch.js';
import { DatabaseClock } from './database-clock.js';
import { sameIdentity } from './history.js';
import { loadMissing } from './load-missing.js';
import type { EngineOptions } from './options.js';
import { eventsAfter, type LogPosition, type PlacedEvent } from './recent-events.js';
import { LogForked, type ReplicaState } from './replica-state.js';
import type { StateDigests } from './state-digest.js';

/** Events read at once while following the log. */
const TAIL_PAGE = 1_000;

/** The database is another one than assumed; the namespace must be established anew. */
export class DatabaseChanged extends Fault {
  constructor(why: string) {
    super('unavailable', 'DATABASE_CHANGED', `Nothing is decided until the database is known again: ${why}.`);
  }
}

/** The log was cut beyond what this replica has read: it loads the state from the projections. */
export class BehindTheCut extends DatabaseChanged {
  constructor(revision: number) {
    super(`the log was cut beyond revision ${revision}, up to which this replica had read it`);
  }
}

/**
 * This replica's copy of one namespace's log: the acknowledged state, the head, the database's identity
 * and clock. It moves by committing what was acknowledged and by reading the tail.
 */
export class ReplicaLog {
  readonly clock: DatabaseClock;
  private following: Promise<void> | null = null;
  private readonly watched = new Set<string>();
  private readonly seen = new Set<string>();

  constructor(
    readonly namespace: string,
    private readonly options: EngineOptions,
    private replica: ReplicaState,
    /** Null before the first start on a database. */
    public identity: DatabaseIdentity | null,
    private readonly onAdvance: () => void,
  ) {
    this.clock = new DatabaseClock(options.monotonicNow);
  }

  get state(): State {
    return this.replica.state;
  }

  get head(): Head {
    return this.replica.head;
  }

  get digests(): StateDigests {
    return this.replica.digests;
  }

  /** Records looked up at an earlier revision may be out of date. */
  get forgottenThrough(): number {
    return this.replica.forgottenThrough;
  }

  /** A lower bound of the database clock, never before the last event. */
  estimatedNow(): Micros {
    return Math.max(this.clock.lowerBound(), this.state.time);
  }

  /** Throws unless the gate is of the database this state belongs to, and of one that may be believed. */
  believe(gate: Gate): void {
    if (gate.inRecovery) throw new DatabaseChanged('the server is in recovery, and a standby is never believed');
    if (!gate.durable) {
      throw new Fault(
        'unavailable',
        'DATABASE_NOT_DURABLE',
        'fsync or synchronous_commit is off; nothing is decided on such a database.',
      );
    }
    if (this.identity !== null && !sameIdentity(gate.identity, this.identity)) {
      throw new DatabaseChanged('the database answers with another identity');
    }
  }

  /**
   * Takes over what a gate says, and follows the log as far as it goes. It must go on from `seen`, the head here when the
   * gate was asked for at `sentAt`: data can be loaded in the place of newer data without a restart or a new table.
   */
  async accept(gate: Gate, sentAt: Micros, seen: Head | null): Promise<void> {
    this.believe(gate);
    this.clock.observe(gate.now, sentAt);
    if (gate.head === null) throw new LogForked('the namespace is gone from the database');
    if (seen !== null && !goesOnFrom(seen, gate.head))
      throw new LogForked(`the log does not go on from revision ${seen.revision} as this replica knows it`);
    await this.follow(gate.head.revision);
  }

  /** Reads the tail up to a revision at least; one reader at a time. */
  async follow(revision: number): Promise<void> {
    while (this.head.revision < revision) {
      this.following ??= this.followPage().finally(() => {
        this.following = null;
      });
      await this.following;
    }
  }

  private async followPage(): Promise<void> {
    const before = this.head.revision;
    const records = await this.options.store.readTail(this.namespace, before, TAIL_PAGE);
    if (records.length === 0)
      throw new LogForked(`the log ends before revision ${before + 1}, which the database had confirmed`);
    this.take(records);
  }

  /** What follows a place in the log, as far as this replica knows it; see `eventsAfter`. */
  after(from: LogPosition): Promise<readonly PlacedEvent[]> {
    return eventsAfter(this.options.store, this.namespace, this.head, this.replica.recent, from);
  }

  /** Applies events that were read from the log. */
  take(records: readonly EventRecord[]): void {
    const before = this.head.revision;
    // The log has no gaps, so what is missing was cut, or else the history is lost: that is judged when it is loaded.
    if (records[0] !== undefined && records[0].revision > before + 1) throw new BehindTheCut(before);
    this.replica.follow(records);
    for (const { batchId } of records) if (this.watched.has(batchId)) this.seen.add(batchId);
    if (this.head.revision !== before) this.advanced();
  }

  /** Makes an acknowledged plan the state; the tail may have brought some of it already. */
  commit(plan: Plan): void {
    const batch = plan.batch;
    if (batch === null) return;
    const base = batch.expectedHead?.revision ?? 0;
    if (this.head.revision === base) {
      this.replica.commit(plan.overlay, batch.events, plan.events);
      this.advanced();
    } else {
      this.take(batch.events);
    }
  }

  /** From now on, notes when the tail brings this batch. */
  watch(batchId: string): void {
    this.watched.add(batchId);
  }

  /** Whether the tail brought it: the append happened although its answer was lost. */
  saw(batchId: string): boolean {
    return this.seen.has(batchId);
  }

  unwatch(batchIds: Iterable<string>): void {
    for (const batchId of batchIds) {
      this.watched.delete(batchId);
      this.seen.delete(batchId);
    }
  }

  /** Loads records from the projections, and follows the log at least to where they were read. */
  async load(before: LoadedRecords, wanted: readonly NeedsLoad['wanted'][]): Promise<LoadedRecords> {
    const { records, revision } = await loadMissing(this.options.store, this.namespace, before, wanted);
    await this.follow(revision);
    // What ended and was forgotten since the look-up must be looked up again.
    return this.replica.forgottenThrough > revision ? before : records;
  }

  private advanced(): void {
    this.options.witness.note(this.namespace, this.head);
    this.onAdvance();
  }
}

/** As far as a head can tell; what follows it is told by the hashes of the events. */
function goesOnFrom(seen: Head, { revision, hash }: Head): boolean {
  return revision > seen.revision || (revision === seen.revision && hash === seen.hash);
}
