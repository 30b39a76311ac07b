import { type LoadedRecords, NOTHING_LOADED } from '../domain/decide/decision.js';
import { Fault } from '../domain/fault.js';
import { bindingId } from '../domain/state.js';
import { MILLISECOND, type Micros, SECOND } from '../domain/time.js';
import { type AppendBatch, type AppendResult, type EventRecord, type Gate, StoreError } from '../storage/store.js';
import type { Ahead } from './ahead.js';
import { type Command, type Plan, planBatch } from './batch.js';
import type { EngineOptions } from './options.js';
import { DatabaseChanged, type ReplicaLog } from './replica-log.js';
import { LogForked } from './replica-state.js';
import { pause } from './trouble.js';

/** Lost appends in a row after which the namespace is taken exclusively. */
const LOSSES_BEFORE_EXCLUSIVE = 2;
/** How long one batch is tried before its callers are told to try again. */
const PATIENCE: Micros = 8 * SECOND;
/** How long a lost answer is looked for before the callers are told that it is unknown. */
const LOOK_FOR: Micros = 10 * SECOND;
/** A clock that was set back is waited for in portions of this. */
const CLOCK_PAUSE: Micros = 100 * MILLISECOND;

/** Of event bodies in one append; a single command is bounded by the size of a request. */
const MAX_BATCH_BYTES = 8 * 1_048_576;

/** The batch is to be decided in two halves. */
export class BatchTooLarge extends Error {
  override readonly name = 'BatchTooLarge';
}

/** Something in the batch has no form in the log: a mistake of ours, which is found by deciding it in halves. */
export class Unwritable extends Error {
  override readonly name = 'Unwritable';
}

function bytesOf(batch: AppendBatch): number {
  let bytes = 0;
  for (const event of batch.events) bytes += event.body.length;
  return bytes;
}

/** What became of one attempt. */
type Attempt = 'again' | 'lost' | { readonly settled: Plan };

/** How the commands are to be answered. */
export interface SettledBatch {
  readonly plan: Plan;
  /**
   * A reading of the database clock that was taken after the commands had come. Durations are counted from it: their
   * callers count them from when they sent, and what was estimated for the decision may lie before that (F8).
   */
  readonly readAt: Micros;
}

/** An attempt whose answer was lost: it can still come, for as long as the head is where it was. */
interface Unanswered {
  readonly at: number;
  readonly cause: StoreError;
}

/** Decides a batch and appends it, again and again until it is settled one way or the other. */
export class BatchRun {
  private readonly attempted = new Map<string, Plan>();
  /** One look-up serves all commands of the batch. */
  private loaded: LoadedRecords = NOTHING_LOADED;
  private loadedAt = 0;
  private lastOutcome = 'records had to be looked up';
  private readAt: Micros = 0;
  private unanswered: Unanswered | null = null;

  constructor(
    private readonly log: ReplicaLog,
    private readonly options: EngineOptions,
    private readonly commands: readonly Command[],
    /** Proves that the head is still the head: for a batch that writes nothing. Returns the time that it read. */
    private readonly confirm: () => Promise<Micros>,
    /** The commands as they were decided ahead; null: they were not. */
    private ahead: Ahead | null,
    /** Told of each attempt that goes out without the lock of the namespace. */
    private readonly onSend: (plan: Plan) => void,
  ) {}

  async settle(): Promise<SettledBatch> {
    try {
      return { plan: await this.tryForAWhile(), readAt: this.readAt };
    } catch (error) {
      throw this.openOr(error);
    } finally {
      this.log.unwatch(this.attempted.keys());
    }
  }

  private async tryForAWhile(): Promise<Plan> {
    let losses = 0;
    const since = this.options.monotonicNow();
    while (this.options.monotonicNow() - since < PATIENCE) {
      const outcome = losses >= LOSSES_BEFORE_EXCLUSIVE ? await this.exclusively() : await this.once();
      if (typeof outcome === 'object') return outcome.settled;
      if (outcome === 'lost') losses += 1;
    }
    throw new Fault(
      'unavailable',
      'TOO_BUSY',
      `Nothing was changed: the append did not succeed within ${PATIENCE / SECOND} s (last outcome: ${this.lastOutcome}); try again with the same key.`,
    );
  }

  /** Whatever failed since, nobody may be told that nothing was changed while an attempt can still come. */
  private openOr(error: unknown): unknown {
    const { unanswered } = this;
    if (unanswered === null || (unanswered.at !== this.log.head.revision && this.found() === null)) return error;
    return error instanceof DatabaseChanged || error instanceof LogForked ? error : unanswered.cause;
  }

  private async confirmed(): Promise<void> {
    this.readAt = Math.max(this.readAt, await this.confirm());
  }

  private observe(now: Micros, sentAt?: Micros): void {
    this.log.clock.observe(now, sentAt);
    this.readAt = Math.max(this.readAt, now);
  }

  private plan(): Plan {
    this.dropAged();
    const context = {
      base: this.log.state,
      head: this.log.head,
      clock: this.log.estimatedNow(),
      bounds: this.options.bounds,
      identity: this.log.identity,
    };
    const { ahead } = this;
    this.ahead = null;
    try {
      return ahead?.holdsOn(this.log) ? ahead.plan() : planBatch(context, this.commands);
    } catch (error) {
      throw new Unwritable('a batch cannot be written', { cause: error });
    }
  }

  private async once(): Promise<Attempt> {
    const plan = this.plan();
    if (plan.missing.length > 0) {
      await this.loadFor(plan);
      return 'again';
    }
    if (plan.batch === null) return this.unchanged(plan);
    if (this.commands.length > 1 && bytesOf(plan.batch) > MAX_BATCH_BYTES) throw new BatchTooLarge();
    this.remember(plan, plan.batch);
    const sentAt = this.options.monotonicNow();
    try {
      const appending = this.options.store.append(plan.batch);
      this.onSend(plan);
      const result = await appending;
      return await this.conclude(plan, result, sentAt);
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'unknown_outcome') throw error;
      return this.lookFor(plan, error);
    }
  }

  /** A batch that writes nothing is answered only at a head that is still the head. */
  private async unchanged(plan: Plan): Promise<Attempt> {
    const before = this.log.head.revision;
    await this.confirmed();
    return this.log.head.revision === before ? { settled: plan } : 'again';
  }

  private async loadFor(plan: Plan): Promise<void> {
    if (this.loaded === NOTHING_LOADED) this.loadedAt = this.log.head.revision;
    this.loaded = await this.log.load(
      this.loaded,
      plan.missing.map(({ wanted }) => wanted),
    );
    for (const command of this.commands) command.loaded = this.loaded;
  }

  /** What ended and was forgotten since the look-up must be looked up again. */
  private dropAged(): void {
    if (this.loaded === NOTHING_LOADED || this.log.forgottenThrough <= this.loadedAt) return;
    this.loaded = NOTHING_LOADED;
    for (const command of this.commands) command.loaded = NOTHING_LOADED;
  }

  private remember(plan: Plan, batch: AppendBatch): void {
    this.attempted.set(batch.batchId, plan);
    this.log.watch(batch.batchId);
  }

  private async conclude(plan: Plan, result: AppendResult, sentAt: Micros): Promise<Attempt> {
    if (result.gate !== null) this.observe(result.gate.now, sentAt);
    this.lastOutcome = result.outcome;
    if (result.outcome !== 'appended') this.options.observer.appendLost(result.outcome);
    switch (result.outcome) {
      case 'appended':
        this.log.commit(plan);
        this.options.observer.batchAppended(
          this.log.namespace,
          this.commands.length,
          plan.events,
          this.options.monotonicNow() - sentAt,
        );
        return { settled: plan };
      case 'stale':
        this.refuseShrunk(plan, result.gate);
        return this.followAndFind('lost');
      case 'busy':
        await pause(5 + Math.random() * 15);
        return this.followAndFind('again');
      case 'time':
        // Usually a hair's breadth; a clock that was set back is waited for.
        await pause(Math.max(1, Math.min(this.log.head.time - result.gate.now, CLOCK_PAUSE) / MILLISECOND));
        return 'again';
      case 'known_keys':
        this.learnKeys(result.keys);
        return 'again';
      case 'identity':
        this.log.believe(result.gate);
        throw new DatabaseChanged('the append was refused at the gate');
    }
  }

  /** A log that became shorter is another log. */
  private refuseShrunk(plan: Plan, gate: Gate | null): void {
    if (gate !== null && (gate.head?.revision ?? 0) < (plan.batch?.expectedHead?.revision ?? 0)) {
      throw new LogForked('the log is shorter than this replica knows it');
    }
  }

  /** Follows the log; an earlier attempt whose answer was lost may turn up there. */
  private async followAndFind(otherwise: Attempt): Promise<Attempt> {
    await this.confirmed();
    return this.proven(this.found() ?? otherwise);
  }

  /** What was found is committed, and may be on this server alone yet: a commit that was cancelled is no success (P8). */
  private async proven(attempt: Attempt): Promise<Attempt> {
    if (typeof attempt === 'object') await this.options.proveCommits();
    return attempt;
  }

  private found(): Attempt | null {
    for (const [batchId, plan] of this.attempted) if (this.log.saw(batchId)) return { settled: plan };
    return null;
  }

  /** The answer was lost: the batch is at the tail, or it can still come before whatever is appended next. */
  private async lookFor({ batch }: Plan, cause: StoreError): Promise<Attempt> {
    this.options.observer.appendLost('unknown');
    this.unanswered = { at: batch?.expectedHead?.revision ?? 0, cause };
    const since = this.options.monotonicNow();
    for (;;) {
      try {
        return await this.followAndFind('again');
      } catch (error) {
        if (error instanceof DatabaseChanged) throw error;
        if (this.options.monotonicNow() - since > LOOK_FOR) throw cause;
        await pause(50 + Math.random() * 50);
      }
    }
  }

  private learnKeys(keys: Extract<AppendResult, { outcome: 'known_keys' }>['keys']): void {
    const known = keys.map((binding) => [bindingId(binding.scope, binding.key), binding] as const);
    if (this.loaded === NOTHING_LOADED) this.loadedAt = this.log.head.revision;
    this.loaded = { ...this.loaded, keys: new Map([...this.loaded.keys, ...known]) };
    for (const command of this.commands) command.loaded = this.loaded;
  }

  /** Decides and appends while nobody else can: for a batch that keeps losing. */
  private async exclusively(): Promise<Attempt> {
    let plan: Plan | null = null;
    const sentAt = this.options.monotonicNow();
    const decide = (tail: readonly EventRecord[], gate: Gate): AppendBatch | null => {
      this.log.believe(gate);
      this.observe(gate.now);
      this.log.take(tail);
      if (this.found() !== null) return null;
      plan = this.plan();
      if (plan.missing.length > 0 || plan.batch === null) return null;
      this.remember(plan, plan.batch);
      return plan.batch;
    };
    try {
      const result = await this.options.store.appendExclusively(this.log.namespace, this.log.head.revision, decide);
      const found = this.found();
      if (found !== null) return await this.proven(found);
      if (plan === null || result === null) return this.once();
      return await this.conclude(plan, result, sentAt);
    } catch (error) {
      if (!(error instanceof StoreError) || error.kind !== 'unknown_outcome' || plan === null) throw error;
      return this.lookFor(plan, error);
    }
  }
}
