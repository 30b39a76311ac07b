import { decideIssueCredentials } from '../../../src/domain/decide/issue-credentials.js';
import { decideRelease } from '../../../src/domain/decide/release.js';
import { decideRenew } from '../../../src/domain/decide/renew.js';
import { decideCreateRun, decideUpdateRunState } from '../../../src/domain/decide/runs.js';
import { Fault } from '../../../src/domain/fault.js';
import { bindingId } from '../../../src/domain/state.js';
import { type Micros, SECOND } from '../../../src/domain/time.js';
import { EVERYTHING } from '../domain.js';
import { expectPromise } from './promise.js';
import { Crashed, type SimReplica } from './replica.js';
import { someLease, type Worker } from './worker.js';
import type { World } from './world.js';

/** Clients with their runs, and with the leases that they were told of. */
export class Clients {
  constructor(private readonly world: World) {}

  createRun(authority: Micros): void {
    const parents = this.world.workers.filter(
      ({ runId, made }) => made && this.world.facts.runs.get(runId)?.ended === false,
    );
    const parent = this.world.draw.chance(50) ? this.world.draw.pick(parents) : undefined;
    const worker: Worker = {
      runId: this.world.fresh('run'),
      parent,
      principal: parent?.principal ?? `p${this.world.workers.length}`,
      asked: [],
      amended: [],
      told: new Map(),
      credentials: [],
      made: false,
    };
    const latest = this.world.facts.runs.get(parent?.runId ?? '')?.authorityEndsAt ?? Number.POSITIVE_INFINITY;
    const authorityEndsAt = Math.min(this.world.database.now + authority, latest);
    const command = {
      principal: worker.principal,
      freshRunId: worker.runId,
      purpose: '',
      goalRevision: '',
      initiator: '',
      initiatorVerified: false,
      parentRunId: parent?.runId ?? '',
      ceiling: null,
      allowed: EVERYTHING,
      authorityEndsAt,
      escalation: [],
      idempotencyKey: `create-${worker.runId}`,
      fingerprint: worker.runId,
      requestIds: [],
    };
    const then = {
      answered: () => {
        worker.made = true;
      },
      failed: () => undefined,
    };
    this.world.workers.push(worker);
    (this.world.draw.pick(this.world.replicas) as SimReplica).submit(
      this.world.command(worker.principal, (decision) => decideCreateRun(decision, command), then),
    );
  }

  update(worker: Worker, replica: SimReplica): void {
    const state =
      this.world.draw.pick(['active', 'active', 'active', 'waiting_for_input', 'blocked', 'finished'] as const) ??
      'active';
    const key = this.world.fresh('update');
    const command = {
      principal: worker.principal,
      asOperator: false,
      runId: worker.runId,
      state,
      reason: '',
      idempotencyKey: key,
      fingerprint: state,
      requestIds: [],
    };
    const submit = (to: SimReplica, tries: number): void =>
      to.submit(
        this.world.command(worker.principal, (decision) => decideUpdateRunState(decision, command), {
          answered: () => this.world.count(`update ${state}`),
          failed: (error) => {
            // Whoever does not know what came of a call repeats it, on another replica.
            if (error instanceof Crashed && tries > 0)
              submit(this.world.draw.pick(this.world.replicas) as SimReplica, tries - 1);
            if (!(error instanceof Fault) || error.reason !== 'RUN_ENDED') return;
            const bound = this.world.facts.keys.has(bindingId(`run:${worker.runId}`, key));
            expectPromise(!bound, 'P6: the retry of a change that happened was refused');
          },
        }),
      );
    submit(replica, 2);
  }

  renew(worker: Worker, replica: SimReplica): void {
    const lease = someLease(this.world, worker);
    if (lease === undefined) return;
    const ttl = this.world.draw.chance(70) ? null : (1 + this.world.draw.int(20)) * SECOND;
    const progressMarker = this.world.draw.chance(50) ? `${this.world.draw.int(5)}` : null;
    const command = {
      principal: worker.principal,
      runId: worker.runId,
      renewals: [{ leaseId: lease.leaseId, ttl, progressMarker }],
      requestIds: [],
    };
    replica.submit(
      this.world.command(
        worker.principal,
        (decision) => ({ results: decideRenew(decision, command), now: decision.state.leases.get(lease.leaseId) }),
        {
          answered: ({ results: [result], now }) => {
            this.world.count(`renewal ${result?.refusal?.kind ?? 'ok'}`);
            if (result?.refusal === null && now !== undefined) worker.told.set(now.leaseId, now);
          },
          failed: () => undefined,
        },
      ),
    );
  }

  release(worker: Worker, replica: SimReplica): void {
    const lease = someLease(
      this.world,
      this.world.draw.chance(8) ? (this.world.draw.pick(this.world.workers) ?? worker) : worker,
    );
    const byKey = this.world.draw.chance(30) ? this.world.draw.pick(worker.asked) : undefined;
    if (byKey === undefined && lease === undefined) return;
    const acquireKey = byKey?.command.idempotencyKey ?? null;
    const leaseId = acquireKey === null ? (lease?.leaseId ?? '') : null;
    const command = { principal: worker.principal, runId: worker.runId, leaseId, acquireKey, requestIds: [] };
    replica.submit(
      this.world.command(worker.principal, (decision) => decideRelease(decision, command), {
        answered: ({ outcome, effectiveAt }) => {
          this.world.count(`release ${outcome}`);
          const released =
            leaseId ?? this.world.facts.keys.get(bindingId(`run:${worker.runId}`, acquireKey ?? ''))?.leaseId;
          if (released !== undefined && released !== '') this.world.endAnswered(released, worker.runId, effectiveAt);
        },
        failed: (error) => {
          if (!(error instanceof Fault) || error.reason !== 'LEASE_NOT_FOUND') return;
          const known = this.world.facts.leases.get(leaseId ?? '');
          expectPromise(known?.runId !== worker.runId, 'F16: a run was told that its own lease is not there');
        },
      }),
    );
  }

  issue(worker: Worker, replica: SimReplica): void {
    const live = [...worker.told.values()].filter(({ expiresAt }) => (expiresAt ?? 0) > this.world.database.now);
    const lease = this.world.draw.chance(80) ? this.world.draw.pick(live) : someLease(this.world, worker);
    if (lease === undefined) return;
    const command = {
      principal: worker.principal,
      runId: worker.runId,
      leaseId: lease.leaseId,
      wanted: [{ audience: 'target', jti: this.world.fresh('jti') }],
      boundTo: null,
      // With more there would be hardly any credentials: leases are short here.
      maxClockSkew: 0,
      requestIds: [],
    };
    replica.submit(
      this.world.command(worker.principal, (decision) => decideIssueCredentials(decision, command), {
        answered: ([decided]) => {
          if (decided?.kind === 'credential') worker.credentials.push(decided.credential);
          this.world.count(decided?.kind === 'refusal' ? `credential ${decided.refusal.kind}` : 'credential');
        },
        failed: () => undefined,
      }),
    );
  }
}
