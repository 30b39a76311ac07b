import { type AcquireCommand, type AcquireDecision, decideAcquire } from '../../../src/domain/decide/acquire.js';
import { Fault } from '../../../src/domain/fault.js';
import type { Lease } from '../../../src/domain/lease.js';
import type { RefusalKind } from '../../../src/domain/refusal.js';
import { bindingId } from '../../../src/domain/state.js';
import { SECOND } from '../../../src/domain/time.js';
import { expectPromise } from './promise.js';
import type { SimReplica } from './replica.js';
import { partOf, someEntries } from './requested-entries.js';
import type { Asked, Worker } from './worker.js';
import type { World } from './world.js';

const NEVER_GRANTED: ReadonlySet<RefusalKind> = new Set(['ended', 'wait_timeout', 'run_ended']);

/** Clients that ask for leases, and ask again. */
export class Acquiring {
  constructor(private readonly world: World) {}

  acquire(worker: Worker, replica: SimReplica): void {
    const again = this.world.draw.chance(35) ? this.world.draw.pick(worker.asked) : undefined;
    let asked = again;
    if (asked === undefined) {
      const resourceSet = this.world.draw.chance(6) ? 'soon' : null;
      const whole = resourceSet === null && this.world.draw.chance(60) ? this.wholeFor(worker) : undefined;
      const entries = resourceSet === null ? (partOf(this.world.draw, whole) ?? someEntries(this.world.draw)) : [];
      const ttl = this.world.draw.chance(50) ? null : (1 + this.world.draw.int(20)) * SECOND;
      const key = this.world.fresh('key');
      asked = {
        leaseId: null,
        command: {
          principal: worker.principal,
          maxLiveLeases: null,
          runId: worker.runId,
          request: { entries, task: null, resourceSet },
          delegatedFrom: whole?.leaseId ?? '',
          ttl,
          wait: this.world.draw.chance(60) ? this.world.draw.int(20) * SECOND : 0,
          idempotencyKey: key,
          fingerprint: JSON.stringify([entries, resourceSet, ttl, whole?.leaseId]),
          purpose: '',
          requestIds: [],
          callId: '',
          freshLeaseId: this.world.fresh('lease'),
        },
      };
      worker.asked.push(asked);
    }
    // A retry is the same request; now and then somebody uses the key for another one.
    const other = again !== undefined && this.world.draw.chance(5);
    const command: AcquireCommand = {
      ...asked.command,
      freshLeaseId: this.world.fresh('lease'),
      ...(other && { fingerprint: `${asked.command.fingerprint} changed` }),
    };
    const bound = this.world.facts.keys.get(bindingId(`run:${worker.runId}`, command.idempotencyKey));
    const call = asked;
    replica.submit(
      this.world.command(
        worker.principal,
        (decision) => {
          const decided = decideAcquire(decision, command);
          return { decided, lease: decided.kind === 'refusal' ? undefined : decision.lease(decided.leaseId) };
        },
        {
          answered: ({ decided, lease }) => this.acquired(worker, replica, call, command, decided, lease, bound),
          failed: (error) => {
            if (!(error instanceof Fault) || error.reason !== 'IDEMPOTENCY_KEY_REUSED') return;
            const now = this.world.facts.keys.get(bindingId(`run:${worker.runId}`, command.idempotencyKey));
            expectPromise(
              now !== undefined && (now.use !== 'acquire' || now.fingerprint !== command.fingerprint),
              'P6: a key was refused as used for another request, but was not',
            );
          },
        },
      ),
    );
  }

  /** P6: one key, one lease, whoever is asked, and how often. */
  private acquired(
    worker: Worker,
    replica: SimReplica,
    asked: Asked,
    command: AcquireCommand,
    decided: AcquireDecision,
    lease: Lease | undefined,
    boundBefore: { readonly leaseId: string; readonly use: string } | undefined,
  ): void {
    const key = command.idempotencyKey;
    const part = command.delegatedFrom === '' ? '' : 'part ';
    this.world.count(part + (decided.kind === 'refusal' ? `refused ${decided.refusal.kind}` : decided.kind));
    const bound = this.world.facts.keys.get(bindingId(`run:${worker.runId}`, key));
    if (decided.kind !== 'refusal') {
      expectPromise(
        bound?.leaseId === decided.leaseId,
        `P6: the key ${key} was answered with ${decided.leaseId}, but is bound to ${bound?.leaseId}`,
      );
      expectPromise(
        asked.leaseId === null || asked.leaseId === decided.leaseId,
        `P6: the key ${key} was answered with two leases`,
      );
      expectPromise(bound?.fingerprint === command.fingerprint, `P6: the key ${key} was answered for another request`);
      asked.leaseId = decided.leaseId;
      if (lease !== undefined) worker.told.set(lease.leaseId, lease);
      if (decided.kind === 'waiting') replica.attachments.set(decided.leaseId, decided.attachment);
      return;
    }
    if (boundBefore === undefined) return;
    const { kind } = decided.refusal;
    const refusedInTurn = decided.refusal.message.startsWith('When its turn came');
    expectPromise(
      NEVER_GRANTED.has(kind) || refusedInTurn,
      `P6: the key ${key} is bound, but its retry was refused as ${kind}`,
    );
    const known = this.world.facts.leases.get(boundBefore.leaseId);
    expectPromise(known?.grantedAt == null, `P6: the key ${key} was granted, but its retry was refused as ${kind}`);
  }

  /** A lease of its run's parent, mostly one that lives. */
  private wholeFor({ parent }: Worker): Lease | undefined {
    const told = [...(parent?.told.values() ?? [])];
    const live = told.filter(({ leaseId }) => this.world.facts.isLive(leaseId, this.world.database.now));
    return this.world.draw.pick(live.length > 0 ? live : told);
  }
}
