import type { Bounds } from '../domain/decide/decision.js';
import { Ahead } from './ahead.js';
import type { Command, Plan } from './batch.js';
import type { ReplicaLog } from './replica-log.js';

/** Where other replicas write as well, what was decided ahead is lost as often as appends are: so many batches go without. */
const NOT_AHEAD_AFTER_LOSS = 16;

/** What makes up the next batch; `ahead`: it is decided already. */
export interface NextBatch {
  readonly commands: readonly Command[];
  readonly ahead: Ahead | null;
}

/** Commands that wait for the batch that is on its way, in the order in which they came, decided ahead as far as they can be. */
export class CommandQueue {
  private waiting: Command[] = [];
  private ahead: Ahead | null = null;
  private notAhead = 0;

  constructor(
    private readonly maxBatch: number,
    private readonly bounds: Bounds,
  ) {}

  /** All that wait, decided ahead or not. */
  get length(): number {
    return this.waiting.length + (this.ahead?.commands.length ?? 0);
  }

  push(command: Command): void {
    this.waiting.push(command);
  }

  /** A batch goes out: what comes now is decided on top of it. */
  sent(plan: Plan, log: ReplicaLog): void {
    this.dropAhead();
    if (this.notAhead > 0) this.notAhead -= 1;
    else this.ahead = new Ahead(plan, log, this.bounds);
  }

  /** Whether there is something to decide ahead, and something to decide it on. */
  get canDecideAhead(): boolean {
    return this.ahead !== null && this.waiting.length > 0;
  }

  decideAhead(): void {
    const { ahead } = this;
    if (ahead === null) return;
    let taken = 0;
    for (const command of this.waiting) {
      if (command.alone || ahead.commands.length >= this.maxBatch || !ahead.add(command)) break;
      taken += 1;
    }
    this.waiting.splice(0, taken);
  }

  /** What was decided ahead, with what has come since, or else what waits; no command: nothing waits. */
  next(log: ReplicaLog | null): NextBatch {
    if (this.ahead?.holdsOn(log)) this.decideAhead();
    else this.dropAhead();
    const { ahead } = this;
    this.ahead = null;
    if (ahead !== null && ahead.commands.length > 0) return { commands: ahead.commands, ahead };
    return { commands: this.take(), ahead: null };
  }

  /** Empties it. */
  clear(): Command[] {
    this.dropAhead();
    return this.waiting.splice(0);
  }

  private take(): Command[] {
    const alone = this.waiting.findIndex((command) => command.alone);
    const count = alone === 0 ? 1 : Math.min(alone < 0 ? this.maxBatch : alone, this.maxBatch);
    return this.waiting.splice(0, count);
  }

  /** The batch below did not come into the log as it was sent: what was decided on it waits again. */
  private dropAhead(): void {
    const { ahead } = this;
    this.ahead = null;
    if (ahead === null || ahead.commands.length === 0) return;
    this.waiting.unshift(...ahead.commands);
    this.notAhead = NOT_AHEAD_AFTER_LOSS;
  }
}
