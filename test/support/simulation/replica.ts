import { type Bounds, type NeedsLoad, NOTHING_LOADED, View } from '../../../src/domain/decide/decision.js';
import type { FenceVerdict } from '../../../src/domain/fence.js';
import { bindingId } from '../../../src/domain/state.js';
import type { Micros } from '../../../src/domain/time.js';
import type { Ahead } from '../../../src/engine/ahead.js';
import { type Command, type Plan, planBatch } from '../../../src/engine/batch.js';
import { CommandQueue } from '../../../src/engine/command-queue.js';
import type { EngineOptions } from '../../../src/engine/options.js';
import { ReplicaLog } from '../../../src/engine/replica-log.js';
import { ReplicaState } from '../../../src/engine/replica-state.js';
import type { AppendBatch, AppendResult, EventRecord, Gate, Snapshot } from '../../../src/storage/store.js';
import type { SimDatabase } from './database.js';
import { type Check, verdictOf } from './fence-check.js';
import type { Network, Statement } from './network.js';
import type { Sabotage } from './sabotage.js';
import { BOUNDS, CARELESS, NAMESPACE } from './small-world.js';

/** What is around a replica: the database and the way to it, its clock, and those who look at what it does. */
export interface Surroundings {
  readonly sabotage: Sabotage | undefined;
  readonly database: Pick<SimDatabase, 'now' | 'tail' | 'snapshot' | 'lookUp'>;
  readonly network: Pick<Network, 'send' | 'carryOut' | 'abandonAllOf'>;
  readonly monotonic: Micros;
  count(what: string): void;
  /** It has another state than before. */
  compare(replica: SimReplica): void;
  /** It is about to answer what this batch wrote. */
  acknowledged(batchId: string): void;
}

interface BatchUnderway {
  readonly commands: readonly Command[];
  /** The commands as they were decided ahead. */
  ahead: Ahead | null;
  readonly attempted: Map<string, Plan>;
  losses: number;
  /** The revision of the oldest look-up for its commands; null: there was none. */
  lookedUpAt: number | null;
  /** What happens to it next; while a statement is on its way, that statement does. */
  next: 'attempt' | 'follow' | 'confirm' | 'answer';
  /** With `confirm`: a plan that writes nothing, and the head it was made on. */
  unwritten: { readonly plan: Plan; readonly revision: number } | null;
}

const LOSSES_BEFORE_EXCLUSIVE = 2;
const MAX_BATCH = 1_024;

/** One coordinator process: the engine's append loop and read index, a step at a time. */
export class SimReplica {
  log: ReplicaLog;
  readonly queue: CommandQueue;
  underway: BatchUnderway | null = null;
  readonly attachments = new Map<string, number>();
  readonly checks: Check[] = [];
  paused = false;

  constructor(
    readonly name: string,
    /** How many ended records it keeps in memory. */
    private readonly recentlyEnded: number,
    private readonly world: Surroundings,
  ) {
    this.log = this.load(null);
    this.queue = new CommandQueue(MAX_BATCH, this.bounds);
  }

  private get bounds(): Bounds {
    return this.world.sabotage === 'no_lock_delay' ? CARELESS : BOUNDS;
  }

  /** Killed and started again: what it was doing is lost, what it had sent is on its way. */
  restart(): void {
    for (const command of [...(this.underway?.commands ?? []), ...this.queue.clear()]) command.reject(new Crashed());
    this.world.network.abandonAllOf(this);
    this.underway = null;
    this.checks.length = 0;
    this.attachments.clear();
    this.paused = false;
    this.log = this.load(this.world.database.snapshot());
    this.world.compare(this);
  }

  submit(command: Command): void {
    this.queue.push(command);
    this.work();
  }

  /** What the process would do next, if it runs. */
  step(): void {
    const { underway } = this;
    if (underway === null) this.work();
    else if (underway.next === 'attempt') this.attempt(underway);
    else if (underway.next === 'follow') this.followAndFind(underway);
    else if (underway.next === 'confirm') this.confirm(underway);
  }

  follow(): void {
    this.log.clock.observe(this.world.database.now);
    this.take(this.world.database.tail(this.log.head.revision));
  }

  /** The answer of an append has come. */
  received(statement: Statement): void {
    const { underway } = this;
    const plan = underway?.attempted.get(statement.batch.batchId);
    if (underway === null || plan === undefined || statement.result === null) return;
    this.conclude(underway, plan, statement.result);
  }

  /** The connection was lost before the answer came. */
  lost(): void {
    if (this.underway !== null) this.underway.next = 'follow';
  }

  answerCheck(check: Check): { verdict: FenceVerdict; revision: number } {
    const gate = check.gate as Gate;
    if (this.world.sabotage !== 'no_read_index') {
      this.log.clock.observe(gate.now);
      this.take(this.world.database.tail(this.log.head.revision));
    }
    const now = this.world.sabotage === 'no_read_index' ? this.log.estimatedNow() : gate.now;
    let loaded = NOTHING_LOADED;
    for (;;) {
      const view = new View(this.log.state, now, loaded);
      try {
        return { verdict: verdictOf(view, check), revision: this.log.head.revision };
      } catch (error) {
        loaded = this.lookUp(loaded, error);
      }
    }
  }

  private lookUp(before: Command['loaded'], error: unknown): Command['loaded'] {
    const wanted = (error as NeedsLoad).wanted as NeedsLoad['wanted'] | undefined;
    if (wanted === undefined) throw error;
    this.world.count('look-up');
    return this.world.database.lookUp(before, wanted);
  }

  private load(snapshot: Snapshot | null): ReplicaLog {
    const options = { monotonicNow: () => this.world.monotonic, witness: { note: () => undefined } };
    const log = new ReplicaLog(
      NAMESPACE,
      options as unknown as EngineOptions,
      new ReplicaState(NAMESPACE, snapshot, this.recentlyEnded),
      null,
      () => undefined,
    );
    if (snapshot !== null) log.clock.observe(snapshot.gate.now);
    return log;
  }

  private work(): void {
    if (this.underway !== null) {
      this.queue.decideAhead();
      return;
    }
    const { commands, ahead } = this.queue.next(this.log);
    if (commands.length === 0) return;
    this.underway = {
      commands,
      ahead,
      attempted: new Map(),
      losses: 0,
      lookedUpAt: null,
      next: 'attempt',
      unwritten: null,
    };
  }

  private plan(underway: BatchUnderway): Plan {
    const { commands } = underway;
    for (;;) {
      this.dropAged(underway);
      const { state, head } = this.log;
      const clock = this.log.estimatedNow();
      const plan = planBatch({ base: state, head, clock, bounds: this.bounds, identity: null }, commands);
      if (plan.missing.length === 0) return plan;
      underway.lookedUpAt ??= head.revision;
      for (const { command, wanted } of plan.missing) {
        command.loaded = this.lookUp(command.loaded, { wanted });
      }
      this.take(this.world.database.tail(this.log.head.revision));
    }
  }

  /** What ended and was forgotten since the look-up must be looked up again. */
  private dropAged(underway: BatchUnderway): void {
    const { lookedUpAt, commands } = underway;
    if (lookedUpAt === null || this.log.forgottenThrough <= lookedUpAt) return;
    underway.lookedUpAt = null;
    for (const command of commands) command.loaded = NOTHING_LOADED;
    this.world.count('aged look-up');
  }

  private attempt(underway: BatchUnderway): void {
    if (underway.losses >= LOSSES_BEFORE_EXCLUSIVE) {
      this.exclusively(underway);
      return;
    }
    const plan = this.decidedAhead(underway) ?? this.plan(underway);
    if (plan.batch === null) {
      underway.unwritten = { plan, revision: this.log.head.revision };
      underway.next = 'confirm';
      return;
    }
    this.queue.sent(plan, this.log);
    this.send(underway, plan, plan.batch);
  }

  private decidedAhead(underway: BatchUnderway): Plan | null {
    const { ahead } = underway;
    underway.ahead = null;
    if (!ahead?.holdsOn(this.log)) return null;
    const plan = ahead.plan();
    if (plan.missing.length > 0) return null;
    this.world.count('decided ahead');
    if (plan.batch === null) this.world.count('decided ahead, without an event');
    return plan;
  }

  private send(underway: BatchUnderway, plan: Plan, batch: AppendBatch): Statement {
    underway.attempted.set(batch.batchId, plan);
    this.log.watch(batch.batchId);
    underway.next = 'answer';
    const statement: Statement = { batch, sender: this, result: null, abandoned: false };
    this.world.network.send(statement);
    if (this.world.sabotage === 'early_answers') this.settle(underway, plan);
    return statement;
  }

  /** Tail, decision and append while nobody else can append. */
  private exclusively(underway: BatchUnderway): void {
    this.follow();
    const found = this.found(underway);
    if (found !== null) {
      this.settle(underway, found);
      return;
    }
    const plan = this.plan(underway);
    if (plan.batch === null) {
      underway.unwritten = { plan, revision: this.log.head.revision };
      underway.next = 'confirm';
      return;
    }
    this.world.network.carryOut(this.send(underway, plan, plan.batch));
  }

  private conclude(underway: BatchUnderway, plan: Plan, result: AppendResult): void {
    if (result.gate !== null) this.log.clock.observe(result.gate.now);
    switch (result.outcome) {
      case 'appended':
        this.log.commit(plan);
        this.world.compare(this);
        this.settle(underway, plan);
        return;
      case 'stale':
        underway.losses += 1;
        underway.next = 'follow';
        return;
      case 'known_keys': {
        const known = new Map(result.keys.map((binding) => [bindingId(binding.scope, binding.key), binding]));
        underway.lookedUpAt ??= this.log.head.revision;
        for (const command of underway.commands) {
          command.loaded = { ...command.loaded, keys: new Map([...command.loaded.keys, ...known]) };
        }
        underway.next = 'attempt';
        return;
      }
      default:
        underway.next = 'attempt';
    }
  }

  /** Follows the log; an attempt whose answer was lost may turn up there. */
  private followAndFind(underway: BatchUnderway): void {
    this.follow();
    const found = this.found(underway);
    if (found === null) underway.next = 'attempt';
    else this.settle(underway, found);
  }

  private found(underway: BatchUnderway): Plan | null {
    for (const [batchId, plan] of underway.attempted) if (this.log.saw(batchId)) return plan;
    return null;
  }

  /** A batch that writes nothing is answered only at a head that is still the head. */
  private confirm(underway: BatchUnderway): void {
    this.follow();
    const { unwritten } = underway;
    if (unwritten !== null && this.log.head.revision === unwritten.revision) this.settle(underway, unwritten.plan);
    else underway.next = 'attempt';
  }

  private settle(underway: BatchUnderway, plan: Plan): void {
    this.log.unwatch(underway.attempted.keys());
    this.underway = null;
    if (plan.batch !== null) this.world.acknowledged(plan.batch.batchId);
    underway.commands.forEach((command, index) => {
      const outcome = plan.outcomes[index];
      if (outcome === undefined) throw new Error('a command without outcome');
      if ('error' in outcome) command.reject(outcome.error);
      else command.resolve(outcome);
    });
    this.work();
  }

  private take(records: readonly EventRecord[]): void {
    const skips = this.world.sabotage === 'skipped_events' && this.name === 'replica-1';
    this.log.take(skips ? records.map(withoutEnd) : records);
    this.world.compare(this);
  }
}

/** The same row, but that it says nothing. */
function withoutEnd(record: EventRecord): EventRecord {
  if (record.kind !== 'lease_ended') return record;
  return { ...record, kind: 'checks_denied', body: '{"denials":[]}' };
}

/** The replica was killed while the call was with it: nobody knows what came of it. */
export class Crashed extends Error {}
