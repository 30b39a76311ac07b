import type { Micros } from '../../../src/domain/time.js';
import type { AppendBatch, AppendResult } from '../../../src/storage/store.js';
import type { SimDatabase } from './database.js';
import type { Draw } from './draw.js';
import type { SimReplica } from './replica.js';

/** A statement on its way: sent, perhaps carried out, its answer perhaps lost. */
export interface Statement {
  readonly batch: AppendBatch;
  readonly sender: SimReplica;
  result: AppendResult | null;
  /** Nobody waits for the answer any more; it may still be carried out. */
  abandoned: boolean;
}

/** What is at the other end, and those who look at what gets there. */
interface Surroundings {
  readonly database: Pick<SimDatabase, 'now' | 'append'>;
  readonly draw: Draw;
  count(what: string): void;
  /** A batch is in the log; at this time of the database. */
  appended(batch: AppendBatch, now: Micros): void;
}

/** What is between replicas and the database: statements and answers, which may overtake each other and get lost. */
export class Network {
  readonly statements: Statement[] = [];

  constructor(private readonly world: Surroundings) {}

  send(statement: Statement): void {
    this.statements.push(statement);
  }

  /** The sender is dead. */
  abandonAllOf(sender: SimReplica): void {
    for (const statement of this.statements) if (statement.sender === sender) statement.abandoned = true;
  }

  /** One or two statements or answers arrive, in any order. */
  move(): void {
    for (let moves = 1 + this.world.draw.int(2); moves > 0; moves -= 1) {
      const statement = this.world.draw.pick(this.statements);
      if (statement === undefined) return;
      if (statement.result === null) this.carryOut(statement);
      else this.answer(statement);
    }
  }

  /** The answer reaches its sender, unless that one stands still. */
  answer(statement: Statement): void {
    if (statement.abandoned) this.statements.splice(this.statements.indexOf(statement), 1);
    else if (!statement.sender.paused) {
      this.statements.splice(this.statements.indexOf(statement), 1);
      statement.sender.received(statement);
    }
  }

  /** The statement reaches the database. */
  carryOut(statement: Statement): void {
    const { now } = this.world.database;
    statement.result = this.world.database.append(statement.batch);
    this.world.count(`append ${statement.result.outcome}`);
    if (statement.abandoned) this.world.count(`abandoned append ${statement.result.outcome}`);
    if (statement.result.outcome === 'appended') this.world.appended(statement.batch, now);
  }

  /** The answer of one statement is lost, or that is delayed on its way; now and then it never comes at all. */
  lose(): void {
    const { draw } = this.world;
    const statement = draw.pick(this.statements.filter((candidate) => !candidate.abandoned));
    if (statement === undefined) return;
    statement.abandoned = true;
    if (statement.result === null && draw.chance(30)) this.statements.splice(this.statements.indexOf(statement), 1);
    statement.sender.lost();
    this.world.count('lost reply');
  }
}
