import type { WriteResult } from '../../../src/domain/admission.js';
import type { NewCredential } from '../../../src/domain/credential.js';
import { decideAdmitWrites } from '../../../src/domain/decide/admit-writes.js';
import { decideReportWrites } from '../../../src/domain/decide/report-writes.js';
import { Fault } from '../../../src/domain/fault.js';
import type { ProtectedWrite } from '../../../src/domain/fence.js';
import { auditVerdict } from './audit-verdict.js';
import { type Check, verdictOf } from './fence-check.js';
import { expectPromise } from './promise.js';
import type { SimReplica } from './replica.js';
import { UNIVERSE } from './small-world.js';
import { someCredential, someLease, type Worker } from './worker.js';
import type { World } from './world.js';

/** A tracked write that a target was allowed to make. */
interface LetIn {
  readonly admissionId: string;
  readonly leaseId: string;
  readonly requestId: string;
  readonly write: ProtectedWrite;
}

/** Services behind the coordinator: they check what arrives, and report what became of tracked writes. */
export class Targets {
  /** What targets have under way, and may report; what they forget is left to people. */
  private readonly underWay: LetIn[] = [];
  private readonly letInBy = new Map<string, LetIn>();

  constructor(private readonly world: World) {}

  /** A target checks a tracked write; now and then once more by the same request id, as if the answer had been lost. */
  admit(worker: Worker, replica: SimReplica): void {
    const again = this.world.draw.chance(25) ? this.world.draw.pick([...this.letInBy.values()].slice(-6)) : undefined;
    const live = [...worker.told.values()].filter(({ leaseId }) =>
      this.world.facts.isLive(leaseId, this.world.database.now),
    );
    const lease = again === undefined ? (this.world.draw.pick(live) ?? someLease(this.world, worker)) : undefined;
    const entry = this.world.draw.pick(
      lease?.entries.filter(({ resource }) => /^(tok|svc|cfg)\//.test(resource)) ?? [],
    );
    if (again === undefined && (lease === undefined || entry === undefined || entry.access !== 'write')) return;
    const requestId = again?.requestId ?? this.world.fresh('request');
    const leaseId = again?.leaseId ?? lease?.leaseId ?? '';
    const write: ProtectedWrite = again?.write ?? {
      resource: entry?.resource ?? '',
      action: entry?.actions[0] ?? '',
      token: entry?.token ?? 0,
      observedVersion: '1',
    };
    const check = { leaseId, credential: null, presenterRunId: '', writes: [write], startedAt: this.world.steps };
    const freshAdmissionId = this.world.fresh('admission');
    replica.submit(
      this.world.command(
        'target',
        (decision) => {
          const { results } = verdictOf(decision, { ...check, gate: null, live: false, lease: undefined });
          const held = decision.lease(leaseId);
          const run = held === undefined ? undefined : decision.run(held.runId);
          if (results[0]?.reason !== 'ok' || held === undefined || run === undefined) return results[0]?.reason ?? '';
          const writes = [{ ...write, field: 'writes[0]', freshAdmissionId }];
          const asked = { lease: held, run, target: 'target', requestId, credentialEnds: null, writes, requestIds: [] };
          return decideAdmitWrites(decision, asked);
        },
        {
          answered: (answer) => {
            if (typeof answer === 'string') this.world.count(`tracked check ${answer}`);
            else this.admitted({ admissionId: answer[0] ?? '', leaseId, requestId, write }, again);
          },
          failed: (error) => this.world.count(`tracked check ${error instanceof Fault ? error.reason : 'lost'}`),
        },
      ),
    );
  }

  private admitted(letIn: LetIn, before: LetIn | undefined): void {
    const { admissionId, requestId } = letIn;
    this.world.count('tracked check ok');
    expectPromise(this.world.facts.admitted.has(admissionId), `P8: ${admissionId} was answered, and is not in the log`);
    if (before !== undefined && this.world.facts.openWrites.has(before.admissionId))
      expectPromise(admissionId === before.admissionId, `R4: one check by ${requestId} has two admissions`);
    this.letInBy.set(requestId, letIn);
    this.underWay.push(letIn);
  }

  /** A target says what became of a write: once, twice, late, or that it does not know; some crash, and never do. */
  report(replica: SimReplica): void {
    const letIn = this.world.draw.pick(this.underWay);
    if (letIn === undefined) return;
    const { admissionId, leaseId, requestId, write } = letIn;
    if (this.world.draw.chance(50)) this.underWay.splice(this.underWay.indexOf(letIn), 1);
    if (this.world.draw.chance(20)) return;
    const result: WriteResult =
      this.world.draw.pick(['succeeded', 'succeeded', 'succeeded', 'failed', 'unknown'] as const) ?? 'succeeded';
    const byCheck = this.world.draw.chance(50);
    const { resource, action } = write;
    const told = {
      ...{ admissionId: byCheck ? '' : admissionId, resource, action, result, field: 'writes[0]' },
      ...{ observedVersion: null, newVersion: '2', changedFields: [] },
    };
    const command = { target: 'target', leaseId, requestId, detail: '', writes: [told], requestIds: [] };
    replica.submit(
      this.world.command('target', (decision) => decideReportWrites(decision, command), {
        answered: ([outcome]) => {
          this.world.count(`report ${outcome} ${result}`);
          // By its check alone a report may be about a later attempt of the same request id.
          if (!byCheck && result !== 'unknown')
            expectPromise(
              !this.world.facts.openWrites.has(admissionId),
              `R4: ${admissionId} was reported, and is open`,
            );
        },
        failed: (error) => this.world.count(`report ${error instanceof Fault ? error.reason : 'lost'}`),
      }),
    );
  }

  /** A target checks a write: mostly of what the lease covers, now and then with something wrong about it. */
  check(worker: Worker, replica: SimReplica): void {
    const credential = this.world.draw.chance(50) ? someCredential(this.world, worker) : undefined;
    if (credential !== undefined) {
      this.checkByCredential(worker, credential, replica);
      return;
    }
    const lease = someLease(this.world, worker);
    if (lease === undefined) return;
    const entry =
      this.world.draw.pick(lease.entries.filter((candidate) => candidate.access === 'write')) ?? lease.entries[0];
    if (entry === undefined) return;
    const presenter = this.world.draw.chance(10) ? (this.world.draw.pick(this.world.workers) ?? worker) : worker;
    const below = entry.scope === 'subtree' && this.world.draw.chance(50) ? '/x' : '';
    const write: ProtectedWrite = {
      resource: this.world.draw.chance(10) ? (this.world.draw.pick(UNIVERSE) as string) : `${entry.resource}${below}`,
      action: this.world.draw.chance(10) ? 'nothing' : (entry.actions[0] ?? 'replace'),
      token: this.world.draw.chance(10) ? entry.token - this.world.draw.int(3) : entry.token,
      observedVersion: this.world.draw.chance(80) ? '1' : null,
    };
    this.ask(replica, { leaseId: lease.leaseId, credential: null, presenterRunId: presenter.runId, writes: [write] });
  }

  checkByCredential(worker: Worker, credential: NewCredential, replica: SimReplica): void {
    const grant = this.world.draw.pick(credential.scope.grants);
    const resource = this.world.draw.pick(grant?.resources ?? []);
    if (grant === undefined || resource === undefined) return;
    const write: ProtectedWrite = {
      resource,
      action: grant.actions[0] ?? '',
      token: grant.token,
      observedVersion: '1',
    };
    const leaseId = credential.leaseId ?? '';
    this.ask(replica, { leaseId, credential, presenterRunId: worker.runId, writes: [write] });
  }

  private ask(replica: SimReplica, asked: Pick<Check, 'leaseId' | 'credential' | 'presenterRunId' | 'writes'>): void {
    replica.checks.push({ ...asked, startedAt: this.world.steps, gate: null, live: false, lease: undefined });
  }

  /** A few checks get their time from the database, or their answer. */
  moveChecks(): void {
    for (let moves = 1 + this.world.draw.int(4); moves > 0; moves -= 1) {
      const replica = this.world.draw.pick(this.world.replicas.filter((candidate) => candidate.checks.length > 0));
      const check = replica === undefined ? undefined : this.world.draw.pick(replica.checks);
      if (replica === undefined || check === undefined) return;
      if (check.gate === null) {
        // The read-index statement was sent by a process that runs, and is carried out.
        if (replica.paused) return;
        check.gate = this.world.database.gate();
        check.live = this.world.facts.isLive(check.leaseId, this.world.database.now);
        check.lease = this.world.facts.leases.get(check.leaseId);
      } else if (!replica.paused) {
        replica.checks.splice(replica.checks.indexOf(check), 1);
        auditVerdict(this.world, check, replica.answerCheck(check).verdict);
      }
    }
  }
}
