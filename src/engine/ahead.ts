import type { Bounds } from '../domain/decide/decision.js';
import { MILLISECOND, type Micros } from '../domain/time.js';
import type { Head } from '../storage/store.js';
import { type Command, type Plan, Planning } from './batch.js';
import type { ReplicaLog } from './replica-log.js';

/**
 * What was decided longer ago is decided again: a ttl counts from the decision, so that behind a batch that is held up, or
 * whose answer is looked for, the shortest leases would be over when they are granted.
 */
const FRESH_FOR: Micros = 250 * MILLISECOND;

/**
 * Commands that come while a batch is on its way to the database, decided on top of it as if it had been acknowledged. So
 * the next batch is ready when the one before is, and neither the database nor this process waits for the other. Nothing
 * of it is sent or told to anybody before: when that batch is lost, or something else comes in the log, what was decided is
 * dropped, and decided again (P7).
 */
export class Ahead {
  private readonly planning: Planning;
  private readonly before: Head;
  private readonly after: Head;
  private isSpoilt = false;
  /** The time of the first decision. */
  private decidedAt: Micros = Number.POSITIVE_INFINITY;

  /** `plan` is about to be sent, and writes something. */
  constructor(
    plan: Plan,
    private readonly log: ReplicaLog,
    bounds: Bounds,
  ) {
    this.before = log.head;
    this.after = headAfter(plan) ?? log.head;
    this.planning = new Planning({ base: plan.overlay, head: this.after, bounds, identity: log.identity });
  }

  /** In the order in which they came. */
  get commands(): readonly Command[] {
    return this.planning.commands;
  }

  /** Takes one more, unless what was decided will be dropped anyway; false: it is not taken. */
  add(command: Command): boolean {
    if (!this.holdsOn(this.log) && !this.isUndecided()) return false;
    const clock = this.log.estimatedNow();
    this.decidedAt = Math.min(this.decidedAt, clock);
    try {
      this.planning.add(command, clock);
    } catch {
      // Decided again, and told there: the batch is halved until what has no form stands alone.
      this.isSpoilt = true;
    }
    return true;
  }

  /** Whether the batch below is in the log, and nothing after it: then this goes on over the state that it became. */
  holdsOn(log: ReplicaLog | null): boolean {
    if (log !== this.log || !this.isSound() || !isSame(log.head, this.after)) return false;
    // The overlay below counts as changes what is in the state now.
    this.planning.rebase(log.state);
    return true;
  }

  /** Whether the batch below can still come into the log as it was sent. */
  private isUndecided(): boolean {
    return this.isSound() && isSame(this.log.head, this.before);
  }

  private isSound(): boolean {
    return !this.isSpoilt && this.log.estimatedNow() - this.decidedAt <= FRESH_FOR;
  }

  /** What was decided, where it holds. */
  plan(): Plan {
    return this.planning.plan();
  }
}

const isSame = (one: Head, other: Head): boolean => one.revision === other.revision && one.hash === other.hash;

function headAfter({ batch }: Plan): Head | null {
  const last = batch?.events.at(-1);
  return last === undefined ? null : { revision: last.revision, hash: last.hash, time: last.time };
}
