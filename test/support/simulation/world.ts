import { type Decision, NOTHING_LOADED } from '../../../src/domain/decide/decision.js';
import { Fault } from '../../../src/domain/fault.js';
import { MILLISECOND, type Micros } from '../../../src/domain/time.js';
import type { Command } from '../../../src/engine/batch.js';
import { decodeEvent } from '../../../src/engine/event-codec.js';
import { GENESIS_HASH, hashEvent } from '../../../src/engine/hash-chain.js';
import type { AppendBatch } from '../../../src/storage/store.js';
import { MAX_SKEW } from '../domain.js';
import { Auditor } from '../oracle/auditor.js';
import { SimDatabase } from './database.js';
import { Draw } from './draw.js';
import { Network } from './network.js';
import { expectPromise } from './promise.js';
import { Reference } from './reference.js';
import { Crashed, type SimReplica, type Surroundings } from './replica.js';
import type { Sabotage } from './sabotage.js';
import { CREDENTIALS, UNIVERSE } from './small-world.js';
import type { Worker } from './worker.js';

/** What all who act in the simulation share, and what is known of it: the truth by the auditor, and what was answered. */
export class World implements Surroundings {
  readonly database: SimDatabase;
  readonly network = new Network(this);
  /** What the clocks of all replicas show: it goes on, and is never set. */
  monotonic: Micros = 0;
  /** How often which things happened, for tests that want them to. */
  readonly happened = new Map<string, number>();
  /** What the log says. */
  readonly reference: Reference;
  readonly replicas: SimReplica[] = [];
  readonly workers: Worker[] = [];
  /** Credentials of which the revocation was answered, and when. */
  readonly revoked = new Map<string, number>();
  /** Leases of which an end was answered, and when. */
  readonly ends = new Map<string, number>();
  /** How many there were; the time of answers and of checks. */
  steps = 0;
  /** What happens in the present step is drawn from it. */
  draw = new Draw(0);
  private made = 0;
  private readonly auditor = new Auditor(
    UNIVERSE,
    { genesisHash: GENESIS_HASH, hashOf: hashEvent, eventOf: decodeEvent },
    MAX_SKEW,
    {
      life: CREDENTIALS.credentialLife,
      tolerance: CREDENTIALS.credentialTolerance,
      skew: CREDENTIALS.maxClockSkew,
    },
  );

  constructor(readonly sabotage: Sabotage | undefined) {
    this.database = new SimDatabase(sabotage);
    this.reference = new Reference(this.facts);
  }

  /** What is true by the log, as the auditor reads it. */
  get facts(): Auditor['facts'] {
    return this.auditor.facts;
  }

  count(what: string): void {
    this.happened.set(what, (this.happened.get(what) ?? 0) + 1);
  }

  /** A name that nothing else has. */
  fresh(prefix: string): string {
    this.made += 1;
    return `${prefix}-${this.made}`;
  }

  pass(time: Micros): void {
    this.database.now += time;
    // Replicas' clocks run on their own, now a little slower than the database's, now a little faster.
    const ahead = this.sabotage === 'unproven_times' ? 20 : 0;
    this.monotonic += Math.floor((time * (18 + ahead + this.draw.int(4))) / 20);
  }

  /** Seconds go by, or the database clock steps forward and nobody else notices. */
  passTime(): void {
    const time = this.draw.int(this.draw.chance(20) ? 12_000 : 3_000) * MILLISECOND;
    if (this.draw.chance(30)) this.database.now += time;
    else this.pass(time);
  }

  /** A call to a replica, and what its caller does with the answer. */
  command<R>(
    actor: string,
    decide: (decision: Decision) => R,
    then: { answered: (value: R) => void; failed: (error: unknown) => void },
    alone = false,
  ): Command {
    return {
      actor,
      decide,
      alone,
      loaded: NOTHING_LOADED,
      resolve: ({ value }) => then.answered(value as R),
      reject: (error) => {
        // A crash leaves it open what happened; a fault is an answer. Anything else is a bug.
        if (!(error instanceof Crashed) && !(error instanceof Fault)) throw error;
        then.failed(error);
      },
    };
  }

  /** A batch is in the log. */
  appended(batch: AppendBatch, now: Micros): void {
    this.auditor.appended(batch.events, now);
    for (const record of batch.events) this.count(record.kind);
    this.reference.appended(batch, now);
  }

  compare(replica: SimReplica): void {
    // Its log has several histories.
    if (this.sabotage !== 'stale_head') this.reference.compare(replica.name, replica.log.state);
  }

  /** P8: what is acknowledged is in the log. */
  acknowledged(batchId: string): void {
    expectPromise(this.database.batches.has(batchId), 'P8: an append was acknowledged that had not happened');
  }

  /** The caller was told that a lease is over: it is, and nothing of it counts any more (P3). */
  endAnswered(leaseId: string, runId: string | null, inForceAt: Micros): void {
    const lease = this.facts.leases.get(leaseId);
    expectPromise(lease?.state === 'ended', `P8: the end of ${leaseId} was answered, but it has not ended`);
    expectPromise(runId === null || lease.runId === runId, `F16: ${leaseId} of another run was released`);
    const accepted = this.facts.acceptedUntil(leaseId);
    expectPromise(
      accepted <= inForceAt,
      `P3: ${leaseId} is accepted until ${accepted}, but its end in force at ${inForceAt}`,
    );
    if (!this.ends.has(leaseId)) this.ends.set(leaseId, this.steps);
  }
}
