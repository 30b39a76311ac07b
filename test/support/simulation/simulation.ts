import type { ConflictMapDocument } from '../../../src/domain/conflict-map/document.js';
import { decidePutMap } from '../../../src/domain/decide/put-map.js';
import { decideSweep } from '../../../src/domain/decide/upkeep.js';
import { emptyState } from '../../../src/domain/state.js';
import { MILLISECOND, SECOND } from '../../../src/domain/time.js';
import { newCommand, planBatch } from '../../../src/engine/batch.js';
import { GENESIS } from '../../../src/engine/replica-state.js';
import type { AppendBatch } from '../../../src/storage/store.js';
import { locksIn, START } from '../domain.js';
import { Violation } from '../oracle/violation.js';
import { Acquiring } from './acquiring.js';
import { Amending } from './amending.js';
import { Clients } from './clients.js';
import { Draw } from './draw.js';
import { Operators } from './operators.js';
import { Processes } from './processes.js';
import { expectPromise } from './promise.js';
import { SimReplica } from './replica.js';
import type { Sabotage } from './sabotage.js';
import { BOUNDS, DOCUMENTS, NAMESPACE, putMap } from './small-world.js';
import { Targets } from './targets.js';
import { World } from './world.js';

/**
 * A world in one thread and without time: a database, a few replicas of the coordinator, and many clients. Everything
 * that happens is a step; what happens next is drawn from numbers that the test gives, so that a failure is a list of
 * numbers, and shrinks. The database is a model of the append statement (design: the engine); the replicas are the real
 * ReplicaLog, planBatch and decisions, with the append loop's retries as steps. After each append and each answer the
 * auditor of oracle/ and the checks of this folder look for a broken promise, and throw a Violation.
 */

/** How many ended records each replica keeps in memory: one keeps all, the others forget most of them at once. */
const RECENTLY_ENDED = [1_000, 1, 5];

class Simulation {
  readonly world: World;
  private readonly processes: Processes;
  private readonly acquiring: Acquiring;
  private readonly amending: Amending;
  private readonly clients: Clients;
  private readonly targets: Targets;
  private readonly operators: Operators;

  constructor(sabotage: Sabotage | undefined) {
    this.world = new World(sabotage);
    this.processes = new Processes(this.world);
    this.acquiring = new Acquiring(this.world);
    this.amending = new Amending(this.world);
    this.clients = new Clients(this.world);
    this.targets = new Targets(this.world);
    this.operators = new Operators(this.world, this.targets);
    this.create();
    RECENTLY_ENDED.forEach((recentlyEnded, index) => {
      this.world.replicas.push(new SimReplica(`replica-${index}`, recentlyEnded, this.world));
    });
    for (const replica of this.world.replicas) replica.follow();
    for (let index = 0; index < 3; index += 1) this.clients.createRun(60 * SECOND);
    this.drain();
  }

  /** Revision 1 and the first map, as an installation makes them. */
  private create(): void {
    const base = emptyState(NAMESPACE);
    const document = DOCUMENTS[0] as ConflictMapDocument;
    const { command } = newCommand(
      'admin',
      (decision) => {
        decision.emit({ kind: 'namespace_created', name: NAMESPACE });
        decidePutMap(decision, putMap(document, 0, 'refuse'));
      },
      true,
    );
    const plan = planBatch({ base, head: GENESIS, clock: START, bounds: BOUNDS, identity: null }, [command]);
    const batch = plan.batch as AppendBatch;
    const sender = undefined as unknown as SimReplica;
    this.world.network.carryOut({ batch, sender, result: null, abandoned: true });
  }

  /** One thing happens, drawn from one number. */
  step(number: number): void {
    this.world.steps += 1;
    const draw = new Draw(number);
    this.world.draw = draw;
    const what = draw.int(100);
    if (what < 85) this.call();
    else if (what < 92) this.world.passTime();
    else this.processes.disturb();
    for (let moves = draw.int(6); moves > 0; moves -= 1) this.move();
    this.world.pass(draw.int(60) * MILLISECOND);
  }

  /** Something that is under way goes on. */
  private move(): void {
    const what = this.world.draw.int(10);
    if (what < 4) this.world.network.move();
    else if (what < 7) this.processes.move();
    else this.targets.moveChecks();
  }

  /** A client calls some replica. A paused one takes the call, and does nothing about it. */
  private call(): void {
    const { draw, workers, replicas, facts } = this.world;
    const working = workers.filter((worker) => facts.runs.get(worker.runId)?.ended === false);
    const worker = draw.pick(draw.chance(90) ? working : workers);
    const replica = draw.pick(replicas);
    if (replica === undefined) return;
    const what = draw.int(100);
    if (worker === undefined || what >= 97) {
      if (working.length < 5) this.clients.createRun((5 + draw.int(90)) * SECOND);
    } else if (what < 36) this.acquiring.acquire(worker, replica);
    else if (what < 37) this.operators.freezeOrThaw(replica);
    else if (what < 46) this.clients.renew(worker, replica);
    else if (what < 51) this.clients.release(worker, replica);
    else if (what < 54) this.amending.amend(worker, replica);
    else if (what < 60) this.clients.issue(worker, replica);
    else if (what < 62) this.operators.revokeCredentials(worker, replica);
    else if (what < 73) this.targets.check(worker, replica);
    else if (what < 82) this.targets.admit(worker, replica);
    else if (what < 88) this.targets.report(replica);
    else if (what < 89) this.operators.settle(draw.pick([...facts.openWrites.keys()]), replica);
    else if (what < 90) this.operators.revoke(replica);
    else if (what < 91) this.operators.takeOver(worker, replica);
    else if (what < 92) this.operators.stop(worker, draw.chance(50), replica);
    else if (what < 94) this.clients.update(worker, replica);
    else if (what < 95) this.operators.freezeOrThaw(replica);
    else this.operators.changeMap(replica);
  }

  /** Whatever is on its way arrives, and whatever replicas have to do is done. */
  private drain(): void {
    const { database, network, replicas } = this.world;
    for (let rounds = 0; rounds < 10_000; rounds += 1) {
      // A batch that relied on a time a little ahead of the database's waits for that time.
      database.now += MILLISECOND;
      this.world.monotonic += MILLISECOND;
      const statement = network.statements[0];
      if (statement?.result === null) network.carryOut(statement);
      else if (statement !== undefined) network.answer(statement);
      let busy = statement !== undefined;
      for (const replica of replicas) {
        if (replica.underway === null && replica.queue.length === 0) continue;
        busy = true;
        replica.step();
      }
      if (!busy) return;
    }
    throw new Violation('P8: the replicas never come to rest');
  }

  /** Everything comes to rest; every run is stopped, and nothing of any may be left (F10). */
  finish(): void {
    const { replicas, workers, facts } = this.world;
    for (const replica of replicas) replica.paused = false;
    this.drain();
    for (const worker of workers) this.operators.stop(worker, true);
    this.drain();
    this.outlastDelays();
    for (const [admissionId, { runId }] of facts.openWrites) {
      expectPromise(facts.runs.get(runId)?.ended === false, 'R4: a stop went over an open write');
      this.operators.settle(admissionId);
    }
    this.drain();
    expectPromise(facts.openWrites.size === 0, 'R4: writes are open that were settled');
    for (const { ended } of facts.runs.values())
      expectPromise(ended, 'R4: a run was stopped and nothing of it is open, but it has not ended');
    for (const replica of replicas) {
      replica.follow();
      const { state } = replica.log;
      const left = [...locksIn(state.held), ...locksIn(state.queued), ...locksIn(state.doubted)];
      expectPromise(left.length === 0, `F10: locks are left on ${replica.name}: ${left[0]}`);
      expectPromise(state.activeLeases === 0 && state.waitingLeases === 0, `F10: leases are left on ${replica.name}`);
    }
    expectPromise([...facts.leases.active()].length === 0, 'F10: leases are left');
    this.world.reference.replay(this.world.database.log);
  }

  /** Lock delays end by time, on whichever replica looks. */
  private outlastDelays(): void {
    const last = Math.max(this.world.database.now, ...[...this.world.facts.delays.values()].map(({ until }) => until));
    this.world.database.now = last;
    for (const replica of this.world.replicas) {
      replica.follow();
      this.processes.background(replica, decideSweep);
      this.drain();
    }
    expectPromise(this.world.facts.delays.size === 0, 'F10: lock delays are left');
  }
}

/** Runs a world for as many steps as there are numbers, and to its rest. */
export function simulate(numbers: readonly number[], options: { readonly sabotage?: Sabotage } = {}): World {
  const simulation = new Simulation(options.sabotage);
  for (const number of numbers) simulation.step(number);
  simulation.finish();
  return simulation.world;
}
