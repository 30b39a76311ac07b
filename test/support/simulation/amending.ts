import { type AmendCommand, decideAmend } from '../../../src/domain/decide/amend.js';
import { Fault } from '../../../src/domain/fault.js';
import type { Lease } from '../../../src/domain/lease.js';
import { bindingId } from '../../../src/domain/state.js';
import { optimistic, read, stable } from '../domain.js';
import { expectPromise } from './promise.js';
import type { SimReplica } from './replica.js';
import { someEntries } from './requested-entries.js';
import { someLease, type Worker } from './worker.js';
import type { World } from './world.js';

/** Clients that change what they hold. */
export class Amending {
  constructor(private readonly world: World) {}

  /** Mostly of what the lease covers; now and then a change that was asked for before, perhaps by another replica (P6). */
  amend(worker: Worker, replica: SimReplica): void {
    const again = this.world.draw.chance(30) ? this.world.draw.pick(worker.amended) : undefined;
    const lease = someLease(this.world, worker);
    const asked =
      again ?? (lease === undefined ? undefined : { command: this.amendment(worker, lease), effectiveAt: null });
    if (asked === undefined) return;
    if (again === undefined) worker.amended.push(asked);
    const { command } = asked;
    replica.submit(
      this.world.command(
        worker.principal,
        (decision) => {
          const decided = decideAmend(decision, command);
          return { decided, lease: decision.lease(command.leaseId) };
        },
        {
          answered: ({ decided, lease: after }) => {
            this.world.count(decided.kind === 'refusal' ? `amendment ${decided.refusal.kind}` : 'amended');
            if (decided.kind === 'refusal' || after === undefined) return;
            const { effectiveAt } = decided;
            const bound = this.world.facts.keys.get(bindingId(`run:${worker.runId}`, command.idempotencyKey));
            expectPromise(bound?.leaseId === command.leaseId, 'P6: an amendment was answered that is not in the log');
            expectPromise(
              asked.effectiveAt === null || asked.effectiveAt === effectiveAt,
              `P6: the key ${command.idempotencyKey} was answered with two times`,
            );
            asked.effectiveAt = effectiveAt;
            worker.told.set(after.leaseId, after);
          },
          failed: (error) => this.world.count(`amendment ${error instanceof Fault ? error.reason : 'lost'}`),
        },
      ),
    );
  }

  private amendment(worker: Worker, lease: Lease): AmendCommand {
    const held = lease.entries.filter(({ impliedBy }) => impliedBy === '');
    const some = () => this.world.draw.pick(held);
    const removed = this.world.draw.chance(50) ? some()?.resource : undefined;
    const lessened = this.world.draw.chance(40) ? some() : undefined;
    const makes = [optimistic, stable, read];
    const downgrade =
      lessened === undefined || lessened.resource === removed
        ? []
        : [
            (this.world.draw.pick(makes) as typeof read)(
              `${lessened.resource}${this.world.draw.chance(30) ? '/' : ''}`,
            ),
          ];
    const request = {
      add: this.world.draw.chance(60) ? someEntries(this.world.draw) : [],
      remove: removed === undefined ? [] : [removed],
      downgrade,
    };
    return {
      principal: worker.principal,
      runId: worker.runId,
      leaseId: lease.leaseId,
      request,
      idempotencyKey: this.world.fresh('amend'),
      fingerprint: JSON.stringify([lease.leaseId, request]),
      requestIds: [],
      callId: '',
    };
  }
}
