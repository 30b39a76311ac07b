import { type Decision, type LoadedRecords, NeedsLoad, NOTHING_LOADED, View } from '../domain/decide/decision.js';
import { Fault } from '../domain/fault.js';
import { emptyState, type State } from '../domain/state.js';
import { type Micros, SECOND } from '../domain/time.js';
import { type Head, type Store, StoreError } from '../storage/store.js';
import { BatchRun, BatchTooLarge, type SettledBatch, Unwritable } from './append-loop.js';
import { type Command, newCommand, type Plan } from './batch.js';
import { CommandQueue, type NextBatch } from './command-queue.js';
import { establish } from './establish.js';
import { UnknownEvent } from './event-codec.js';
import { inTurns } from './in-turns.js';
import type { EngineOptions } from './options.js';
import { ReadIndex } from './read-index.js';
import type { LogPosition, PlacedEvent } from './recent-events.js';
import { BehindTheCut, DatabaseChanged, type ReplicaLog } from './replica-log.js';
import { GENESIS, LogForked } from './replica-state.js';
import type { Divergence, StateDigests } from './state-digest.js';
import { pause, toFault } from './trouble.js';
import { WaitingCalls } from './waiting-calls.js';

const MAX_LOADS = 100;
const ESTABLISH_RETRY_MS = 200;
const FINAL_RETRY_MS = 5_000;

/** An answer and when it was true. */
export interface Answer<R> {
  readonly value: R;
  readonly revision: number;
  readonly now: Micros;
}

const NOT_READY = new Fault(
  'unavailable',
  'NOT_READY',
  'The coordinator has not yet loaded this namespace; try again.',
);
/** A refused append counts for so long: who is sent no calls any more makes no append that could succeed. */
const REFUSAL_COUNTS: Micros = 5 * SECOND;
const SHUTTING_DOWN = new Fault('unavailable', 'SHUTTING_DOWN', 'This replica is shutting down; call another one.');

/**
 * One namespace on one replica.
 *
 * Commands that arrive while a batch is on its way form the next one. A batch is decided in memory on an
 * overlay of the acknowledged state and written by one statement, which proves that the head, the
 * database and the time are as assumed. If they are not, nothing is written and everything is decided
 * again. Reads and checks see only what is acknowledged, at a head that the database has just confirmed. What comes
 * while a batch is on its way is decided ahead (see ahead.ts).
 */
export class NamespaceEngine {
  private log: ReplicaLog | null = null;
  private trouble: Fault | null = NOT_READY;
  /** This replica is not to be believed any more, whatever it loads: until it is started anew. */
  private divergence: Fault | null = null;
  private establishing: Promise<void> | null = null;
  private working = false;
  private stopped = false;
  private readonly queue: CommandQueue;
  private looksAhead = false;
  private confirmedHead = 0;
  private confirmedAt: Micros = Number.NEGATIVE_INFINITY;
  private refusedAt: Micros = Number.NEGATIVE_INFINITY;
  private readonly readIndex: ReadIndex;
  private readonly waitingCalls = new WaitingCalls(this);
  private readonly followers = new Set<() => void>();
  private readonly nothing: State;

  constructor(
    readonly namespace: string,
    private readonly options: EngineOptions,
  ) {
    this.nothing = emptyState(namespace);
    this.queue = new CommandQueue(options.maxBatch, options.bounds);
    this.readIndex = new ReadIndex(
      () => options.store.readGate(namespace),
      options.observer.gateRead,
      options.monotonicNow,
    );
  }

  /** Loads the namespace, retrying while the database cannot be believed; resolves once it can decide. */
  start(): Promise<void> {
    return this.reestablish(NOT_READY);
  }

  stop(): void {
    this.stopped = true;
    this.trouble = SHUTTING_DOWN;
    for (const command of this.queue.clear()) command.reject(SHUTTING_DOWN);
    this.changed();
  }

  /** The database that it lives in, for what is read past the state: history, and pages of what has ended. */
  get store(): Store {
    return this.options.store;
  }

  /** The acknowledged state, for what needs no proof: gauges, sweeping, waking. */
  get state(): State {
    return this.log?.state ?? this.nothing;
  }

  get head(): Head {
    return this.log?.head ?? GENESIS;
  }

  /** Of the live state; null before it is loaded. */
  get digests(): StateDigests | null {
    return this.log?.digests ?? null;
  }

  /** Why nothing can be decided now; null when all is well. */
  get notReady(): Fault | null {
    return this.trouble;
  }

  /** The last append was refused, and that lately: the disk is full, or the database is read-only (F24). */
  get cannotWrite(): boolean {
    return this.options.monotonicNow() - this.refusedAt < REFUSAL_COUNTS;
  }

  /** Time since the database last confirmed the head; the poller asks again and again. */
  sinceConfirmed(): Micros {
    return this.options.monotonicNow() - this.confirmedAt;
  }

  /** Revisions that the database has confirmed and this replica has not applied yet. */
  get lag(): number {
    return Math.max(0, this.confirmedHead - this.head.revision);
  }

  /** Commands that wait for the batch on its way, decided ahead or not. */
  get queueLength(): number {
    return this.queue.length;
  }

  /** A lower bound of the database clock, never before the last event. */
  estimatedNow(): Micros {
    return this.log?.estimatedNow() ?? 0;
  }

  /** Calls back when a waiting request is settled, or its place was taken over by another call. */
  onSettled(leaseId: string, attachment: number, wake: () => void): () => void {
    return this.waitingCalls.add(leaseId, attachment, wake);
  }

  /** Calls back whenever more of the log is known here, and when nothing can be decided any more. */
  onAdvance(listener: () => void): () => void {
    this.followers.add(listener);
    return () => this.followers.delete(listener);
  }

  /** What follows a place in the log, as far as it is known here: in order, without gaps, a page at most. */
  async after(from: LogPosition): Promise<readonly PlacedEvent[]> {
    return this.usable().after(from);
  }

  /** Decides a command and resolves once its events are committed (P7, P8). */
  submit<R>(actor: string, decide: (decision: Decision) => R, alone = false): Promise<Answer<R>> {
    if (this.trouble !== null) return Promise.reject(this.trouble);
    if (this.queue.length >= this.options.maxQueue) {
      const text = `${this.options.maxQueue} commands wait for the database already; try again later.`;
      return Promise.reject(new Fault('resource_exhausted', 'QUEUE_FULL', text));
    }
    const { command, answer } = newCommand(actor, decide, alone);
    this.queue.push(command);
    this.work();
    return answer;
  }

  /** Reads at a head and a time that the database confirmed after this call (P3). */
  async read<R>(question: (view: View) => R): Promise<Answer<R>> {
    let loaded: LoadedRecords = NOTHING_LOADED;
    for (let attempt = 0; attempt < MAX_LOADS; attempt += 1) {
      const { log, now } = await this.confirm();
      try {
        const view = new View(log.state, now, loaded);
        return { value: question(view), revision: log.head.revision, now: view.now };
      } catch (error) {
        if (!(error instanceof NeedsLoad)) throw error;
        loaded = await this.guarded(() => log.load(loaded, [error.wanted]));
      }
    }
    throw new Fault('unavailable', 'TOO_BUSY', 'The records asked for kept changing; try again.');
  }

  /** Follows the log to its end, unless that was done within `maxAge`; for the poller and for hints of other replicas. */
  async refresh(maxAge: Micros = 0): Promise<void> {
    const recent = this.options.monotonicNow() - this.confirmedAt < maxAge;
    if (this.trouble === null && !recent) await this.confirm();
  }

  /** The read index: afterwards the state is at least as new as the database was after the call. */
  private confirm(): Promise<{ log: ReplicaLog; now: Micros }> {
    return this.guarded(async () => {
      const before = this.log;
      const seen = before?.head ?? null;
      const { gate, sentAt } = await this.readIndex.next();
      const log = this.usable();
      this.confirmedHead = gate.head?.revision ?? 0;
      // Of a log that was loaded meanwhile nothing had been seen.
      await log.accept(gate, sentAt, log === before ? seen : null);
      // Not when it was answered: what was confirmed may have waited behind other readers, or in a process that was stopped.
      this.confirmedAt = Math.max(this.confirmedAt, sentAt);
      if (!this.options.alive()) {
        throw new Fault(
          'unavailable',
          'REPLICA_STALE',
          'This replica could not write its heartbeat lately; call another one.',
        );
      }
      return { log, now: gate.now };
    });
  }

  private usable(): ReplicaLog {
    if (this.trouble !== null) throw this.trouble;
    if (this.log === null) throw NOT_READY;
    return this.log;
  }

  /** Turns failures into faults; what shakes the trust in the state makes it be loaded anew. */
  private async guarded<R>(work: () => Promise<R>): Promise<R> {
    try {
      return await work();
    } catch (error) {
      throw this.noted(error);
    }
  }

  private noted(error: unknown): Fault {
    const fault = toFault(error);
    if (error instanceof DatabaseChanged || error instanceof LogForked) {
      const changed = error instanceof DatabaseChanged ? error : new DatabaseChanged(error.message);
      const line = `namespace ${this.namespace}: ${error.message}`;
      if (error instanceof BehindTheCut) this.options.observer.notice(line);
      else this.options.observer.problem(line, error);
      void this.reestablish(changed).catch(() => undefined);
      return changed;
    }
    if (error instanceof UnknownEvent) {
      this.options.observer.problem(error.message, error);
      this.trouble = new Fault('unavailable', 'UNKNOWN_EVENT', error.message);
      return this.trouble;
    }
    if (fault.faultClass === 'internal') this.options.observer.problem(`namespace ${this.namespace} failed`, error);
    return fault;
  }

  /** Loads everything anew and judges the history; meanwhile nothing is decided. One at a time. */
  private reestablish(why: Fault): Promise<void> {
    if (this.stopped) return Promise.reject(SHUTTING_DOWN);
    if (this.divergence !== null) return Promise.reject(this.divergence);
    this.trouble = why;
    this.establishing ??= this.establishUntilDone().finally(() => {
      this.establishing = null;
    });
    return this.establishing;
  }

  private async establishUntilDone(): Promise<void> {
    for (;;) {
      if (this.stopped) throw SHUTTING_DOWN;
      try {
        this.log = await establish(this.namespace, this.options, this.log?.head ?? null, () => this.changed());
        this.trouble = this.divergence;
        this.log.digests.onDiverged = (divergence) => this.diverged(divergence);
        this.confirmedAt = this.options.monotonicNow();
        this.changed();
        this.work();
        return;
      } catch (error) {
        this.trouble = error instanceof Fault ? error : toFault(error);
        // A name that somebody made up is their problem, and no line in the log.
        if (this.log === null && isUnknownNamespace(error)) throw error;
        this.options.observer.problem(`namespace ${this.namespace} cannot be loaded yet`, error);
        // At the first start they fail loudly; a namespace that worked is tried again, more slowly.
        if (this.log === null && isFinal(error)) throw error;
        if (isFinal(error)) await pause(FINAL_RETRY_MS);
        await pause(ESTABLISH_RETRY_MS + Math.random() * ESTABLISH_RETRY_MS);
      }
    }
  }

  /** What it holds in memory is not what the log says: nobody can know since when, so it decides nothing more (P8). */
  private diverged({ revision, own, logged }: Divergence): void {
    this.divergence = new Fault(
      'unavailable',
      'STATE_DIVERGED',
      `The state of namespace ${this.namespace} on this replica is not the one that the log tells of at revision ${revision}. It decides nothing more: call another replica. An operator keeps its logs and starts it anew.`,
    );
    this.trouble = this.divergence;
    this.options.observer.problem(`${this.divergence.message} Digest ${own}, in the log ${logged}.`, this.divergence);
    this.changed();
  }

  private changed(): void {
    this.waitingCalls.changed();
    for (const listener of this.followers) listener();
  }

  private work(): void {
    if (this.working) {
      this.lookAhead();
      return;
    }
    if (this.queue.length === 0) return;
    this.working = true;
    // Commands of the same turn of the event loop share one batch.
    setImmediate(() => void this.workQueue());
  }

  private async workQueue(): Promise<void> {
    for (let next = this.queue.next(this.log); next.commands.length > 0; next = this.queue.next(this.log)) {
      await this.runBatch(next);
    }
    this.working = false;
  }

  /** In a turn of its own, so that the answers of the batch before are given in between. */
  private lookAhead(): void {
    if (this.looksAhead || !this.queue.canDecideAhead) return;
    this.looksAhead = true;
    setImmediate(() => {
      this.looksAhead = false;
      this.queue.decideAhead();
    });
  }

  /** What cannot be written fails only the command that brought it: the batch is halved until it stands alone; so is one too large. */
  private async runBatch({ commands, ahead }: NextBatch): Promise<void> {
    try {
      const log = this.usable();
      const confirm = async (): Promise<Micros> => (await this.confirm()).now;
      const onSend = (plan: Plan): void => {
        this.queue.sent(plan, log);
        this.lookAhead();
      };
      const settled = await new BatchRun(log, this.options, commands, confirm, ahead, onSend).settle();
      if (settled.plan.batch !== null) this.refusedAt = Number.NEGATIVE_INFINITY;
      answerAll(commands, settled);
    } catch (error) {
      if (error instanceof StoreError && error.kind === 'read_only') this.refusedAt = this.options.monotonicNow();
      if (commands.length > 1 && isPerhapsOfOne(error)) {
        const half = Math.ceil(commands.length / 2);
        // What was looked up for all of them may be out of date when the second half is decided.
        for (const command of commands) command.loaded = NOTHING_LOADED;
        await this.runBatch({ commands: commands.slice(0, half), ahead: null });
        await this.runBatch({ commands: commands.slice(half), ahead: null });
        return;
      }
      const fault = this.noted(error instanceof Unwritable ? error.cause : error);
      for (const command of commands) command.reject(fault);
    }
  }
}

/** Nothing was written, and smaller batches may be. */
function isPerhapsOfOne(error: unknown): boolean {
  if (error instanceof BatchTooLarge || error instanceof Unwritable) return true;
  return error instanceof StoreError && error.kind === 'bad_data';
}

/** Trying again soon would meet the same. */
function isFinal(error: unknown): boolean {
  return error instanceof UnknownEvent || (error instanceof StoreError && error.kind === 'bug');
}

/** A name that was never created is no reason to keep looking; one that vanished may come back. */
function isUnknownNamespace(error: unknown): boolean {
  return error instanceof Fault && error.reason === 'NAMESPACE_NOT_FOUND';
}

/** Callers that are answered in one turn of the event loop. */
const ANSWERED_PER_TURN = 16;

function answerAll(commands: readonly Command[], { plan, readAt }: SettledBatch): void {
  inTurns(commands.length, ANSWERED_PER_TURN, (index) => answer(commands[index], plan.outcomes[index], readAt));
}

function answer(command: Command | undefined, outcome: Plan['outcomes'][number] | undefined, readAt: Micros): void {
  if (outcome === undefined) command?.reject(new Error('a command without outcome'));
  else if ('error' in outcome) command?.reject(toFault(outcome.error));
  else command?.resolve({ ...outcome, now: Math.max(outcome.now, readAt) });
}
