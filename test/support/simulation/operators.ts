import { decideFreeze, decideThaw } from '../../../src/domain/decide/freezes.js';
import { decidePutMap } from '../../../src/domain/decide/put-map.js';
import { decideRevoke } from '../../../src/domain/decide/release.js';
import { decideRevokeCredentials } from '../../../src/domain/decide/revoke-credentials.js';
import { decideStopRun } from '../../../src/domain/decide/runs.js';
import { decideSettleInDoubt } from '../../../src/domain/decide/settle-in-doubt.js';
import { decideTakeOver, type TakeOverCommand } from '../../../src/domain/decide/take-over.js';
import { Fault } from '../../../src/domain/fault.js';
import { effectiveAt } from '../../../src/domain/lease.js';
import { SECOND } from '../../../src/domain/time.js';
import { expectPromise } from './promise.js';
import type { SimReplica } from './replica.js';
import { someEntries } from './requested-entries.js';
import { FREEZABLE, mapAfter, putMap } from './small-world.js';
import type { Targets } from './targets.js';
import { someCredential, type Worker } from './worker.js';
import type { World } from './world.js';

/** People: they end leases and runs, freeze, take over, change the map, and settle what is in doubt. */
export class Operators {
  private readonly takeOvers: { readonly command: TakeOverCommand; leaseId: string | null }[] = [];

  constructor(
    private readonly world: World,
    private readonly targets: Targets,
  ) {}

  revoke(replica: SimReplica): void {
    const lease = this.world.draw.pick([...this.world.facts.leases.values()].slice(-10));
    if (lease === undefined) return;
    const command = { leaseId: lease.leaseId, reason: 'sim', requestIds: [] };
    replica.submit(
      this.world.command('operator', (decision) => decideRevoke(decision, command), {
        answered: (end) => this.world.endAnswered(lease.leaseId, null, end.effectiveAt),
        failed: () => undefined,
      }),
    );
  }

  stop(worker: Worker, asOperator: boolean, replica: SimReplica = this.world.replicas[0] as SimReplica): void {
    const { runId } = worker;
    const command = { principal: asOperator ? null : worker.principal, runId, reason: 'sim', requestIds: [] };
    replica.submit(
      this.world.command('operator', (decision) => decideStopRun(decision, command), {
        answered: (end) => {
          this.world.count('stop');
          for (const lease of this.world.facts.leases.values())
            if (lease.runId === runId) this.world.endAnswered(lease.leaseId, runId, end.effectiveAt);
        },
        failed: () => undefined,
      }),
    );
  }

  freezeOrThaw(replica: SimReplica): void {
    const frozen = this.world.draw.pick([...this.world.facts.freezes.keys()]);
    if (frozen !== undefined && this.world.draw.chance(60)) {
      this.thaw(this.world.draw.chance(90) ? frozen : 'cfg/b', replica);
      return;
    }
    const scope = this.world.draw.chance(70) ? ('subtree' as const) : ('exact' as const);
    const deniesChecks = this.world.draw.chance(50);
    const until = this.world.draw.chance(50) ? null : this.world.database.now + (1 + this.world.draw.int(10)) * SECOND;
    const pattern = (this.world.draw.chance(15) ? frozen : this.world.draw.pick(FREEZABLE)) ?? 'svc/a';
    const command = { pattern, scope, deniesChecks, until, reason: 'sim', requestIds: [] };
    replica.submit(
      this.world.command('operator', (decision) => decideFreeze(decision, command), {
        answered: ({ outcome }) => this.world.count(`freeze ${outcome}`),
        failed: () => undefined,
      }),
    );
  }

  private thaw(pattern: string, replica: SimReplica): void {
    const command = { pattern, reason: 'sim', requestIds: [] };
    replica.submit(
      this.world.command('operator', (decision) => decideThaw(decision, command), {
        answered: ({ outcome, granted }) => this.world.count(granted > 0 ? 'thaw grants' : `thaw ${outcome}`),
        failed: () => undefined,
      }),
    );
  }

  /** An operator's; now and then the same again, as if its answer had been lost. */
  takeOver(worker: Worker, replica: SimReplica): void {
    const again = this.world.draw.chance(25) ? this.world.draw.pick(this.takeOvers) : undefined;
    const asked = again ?? { command: this.takeOverCommand(worker), leaseId: null };
    if (again === undefined) this.takeOvers.push(asked);
    const command = { ...asked.command, freshLeaseId: this.world.fresh('lease') };
    replica.submit(
      this.world.command(
        'operator',
        (decision) => {
          const { decided, ended } = decideTakeOver(decision, command);
          const lease = decided.kind === 'refusal' ? undefined : decision.lease(decided.leaseId);
          return { decided, lease, ends: ended.map((one) => [one.leaseId, effectiveAt(one)] as const) };
        },
        {
          answered: ({ decided, lease, ends }) => {
            const how = command.acceptsOverlap && decided.kind === 'lease' ? 'with overlap' : decided.kind;
            this.world.count(`take-over ${decided.kind === 'refusal' ? `refused ${decided.refusal.kind}` : how}`);
            if (ends.length > 0) this.world.count('take-over ends');
            for (const [leaseId, inForceAt] of ends) this.world.endAnswered(leaseId, null, inForceAt);
            if (decided.kind === 'refusal') return;
            const { leaseId } = decided;
            expectPromise((asked.leaseId ?? leaseId) === leaseId, 'P6: one take-over was answered with two leases');
            asked.leaseId = leaseId;
            const holder = this.world.workers.find(({ runId }) => runId === command.runId);
            if (lease !== undefined) holder?.told.set(leaseId, lease);
            if (decided.kind === 'waiting') replica.attachments.set(leaseId, decided.attachment);
          },
          failed: () => undefined,
        },
      ),
    );
  }

  private takeOverCommand({ runId }: Worker): TakeOverCommand {
    const entries = someEntries(this.world.draw);
    return {
      runId,
      request: { entries, task: null, resourceSet: null },
      delegatedFrom: '',
      ttl: null,
      wait: this.world.draw.chance(50) ? this.world.draw.int(20) * SECOND : 0,
      idempotencyKey: this.world.fresh('taking'),
      fingerprint: JSON.stringify(entries),
      purpose: '',
      requestIds: [],
      callId: '',
      freshLeaseId: '',
      reason: 'sim',
      acceptsOverlap: this.world.draw.chance(30),
    };
  }

  /** Of what the worker was given before it asks for it, nothing counts once that is answered. */
  revokeCredentials(worker: Worker, replica: SimReplica): void {
    const credential = someCredential(this.world, worker);
    if (credential === undefined) return;
    const { jti, runId } = credential;
    const leaseId = credential.leaseId ?? '';
    const subject =
      this.world.draw.pick([
        { kind: 'jti', jti },
        { kind: 'lease', leaseId },
        { kind: 'run', runId },
      ] as const) ?? ({ kind: 'run', runId } as const);
    const out = worker.credentials.filter(
      (one) => subject.kind === 'run' || one.jti === jti || (subject.kind === 'lease' && one.leaseId === leaseId),
    );
    replica.submit(
      this.world.command(
        'operator',
        (decision) => decideRevokeCredentials(decision, { principal: null, subject, reason: 'sim', requestIds: [] }),
        {
          answered: () => {
            this.world.count('credentials revoked');
            for (const one of out)
              if (!this.world.revoked.has(one.jti)) this.world.revoked.set(one.jti, this.world.steps);
            this.targets.checkByCredential(worker, credential, this.world.draw.pick(this.world.replicas) ?? replica);
          },
          failed: () => undefined,
        },
      ),
    );
  }

  changeMap(replica: SimReplica): void {
    const at = replica.log.state.mapVersion;
    const document = mapAfter(at);
    const onLiveConflict = this.world.draw.pick(['refuse', 'revoke_newer', 'keep_until_end'] as const) ?? 'refuse';
    const command = putMap(document, at, onLiveConflict);
    replica.submit(
      this.world.command(
        'admin',
        (decision) => decidePutMap(decision, command),
        {
          answered: () => this.world.count('map'),
          failed: (error) => this.world.count(`map ${(error as Fault).reason}`),
        },
        true,
      ),
    );
  }

  settle(admissionId: string | undefined, replica: SimReplica = this.world.replicas[0] as SimReplica): void {
    if (admissionId === undefined) return;
    const command = {
      admissionId,
      happened: this.world.draw.chance(50),
      newVersion: null,
      reason: 'sim',
      requestIds: [],
    };
    replica.submit(
      this.world.command('operator', (decision) => decideSettleInDoubt(decision, command), {
        answered: ({ settledNow }) => {
          this.world.count(settledNow ? 'settled' : 'settled before');
          expectPromise(!this.world.facts.openWrites.has(admissionId), `R4: ${admissionId} was settled, and is open`);
        },
        failed: (error) => this.world.count(`settle ${error instanceof Fault ? error.reason : 'lost'}`),
      }),
    );
  }
}
