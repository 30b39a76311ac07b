import { isInDoubt } from '../../../src/domain/admission.js';
import { CREDENTIAL_LIFE, CREDENTIAL_TOLERANCE } from '../../../src/domain/credential-times.js';
import { isPartOf } from '../../../src/domain/delegation.js';
import { locksOfDoubt } from '../../../src/domain/doubt.js';
import { evolve } from '../../../src/domain/evolve.js';
import { locksOfLease } from '../../../src/domain/held-locks.js';
import { endsAt, type Lease, underLockDelay } from '../../../src/domain/lease.js';
import { INCOMPATIBLE } from '../../../src/domain/modes.js';
import { emptyState, type State } from '../../../src/domain/state.js';
import type { Micros } from '../../../src/domain/time.js';
import { decodeEvent } from '../../../src/engine/event-codec.js';
import type { AppendBatch, EventRecord } from '../../../src/storage/store.js';
import { digestOf, locksIn, ordered } from '../domain.js';
import type { Auditor } from '../oracle/auditor.js';
import { Violation } from '../oracle/violation.js';
import { expectPromise } from './promise.js';
import { NAMESPACE } from './small-world.js';

/** The state that the log says, followed event by event: what every replica must have at the same revision. */
export class Reference {
  readonly state: State = emptyState(NAMESPACE);
  private readonly digests: string[] = [digestOf(this.state)];

  constructor(private readonly facts: Auditor['facts']) {}

  get time(): Micros {
    return this.state.time;
  }

  /** P7: what is written beside the events is what they say. */
  appended(batch: AppendBatch, now: Micros): void {
    for (const record of batch.events) {
      const event = decodeEvent(record);
      if (event.body.kind === 'credentials_issued') {
        this.issuedRightly(this.state.leases.get(event.leaseId), event.body.expiresAt, now);
        this.vouchedForNothingFrozen(this.state.leases.get(event.leaseId), event.time, now);
      }
      evolve(this.state, event, record.revision);
    }
    this.digests[this.state.revision] = digestOf(this.state);
    this.consistent();
    for (const row of batch.leases) {
      const same = ordered(row) === ordered(this.state.leases.get(row.leaseId));
      expectPromise(same, `P7: the row of lease ${row.leaseId} is not what its events say`);
    }
    for (const row of batch.admissions) {
      const same = ordered(row) === ordered(this.state.admissions.get(row.admissionId));
      expectPromise(same, `P7: the row of admission ${row.admissionId} is not what its events say`);
    }
    for (const row of batch.runs) {
      const same = ordered(row) === ordered(this.state.runs.get(row.runId));
      expectPromise(same, `P7: the row of run ${row.runId} is not what its events say`);
    }
  }

  /** P10: the lease was live on the database clock, and outlives its credential by what clocks may differ. */
  private issuedRightly(lease: Lease | undefined, expiresAt: Micros, now: Micros): void {
    expectPromise(
      lease?.state === 'active' && endsAt(lease) > now,
      'P10: a credential was issued for a lease that is over',
    );
    const latest = Math.min(now + CREDENTIAL_LIFE, endsAt(lease) - CREDENTIAL_TOLERANCE);
    expectPromise(expiresAt <= latest, `P10: a credential of ${lease.leaseId} could outlive it`);
    expectPromise(expiresAt > now, 'P10: a credential was dead when it was issued');
  }

  /** P3: no target that does not ask is told that something may be written of which checks are denied. */
  private vouchedForNothingFrozen(lease: Lease | undefined, issuedAt: Micros, now: Micros): void {
    const local = lease?.entries.filter((entry) => entry.validation === 'local' && entry.actions.length > 0) ?? [];
    for (const { resource } of local)
      expectPromise(
        !this.facts.deniesWrites(resource, now, issuedAt),
        `P3: a credential was issued for ${resource}, which is frozen`,
      );
  }

  /** The lock tables are those of the live leases and of lock delays, and nobody waits whom nothing keeps waiting. */
  private consistent(): void {
    const live = [...this.state.leases.values()].filter((lease) => lease.state !== 'ended' || underLockDelay(lease));
    const expected = { active: [] as string[], waiting: [] as string[] };
    for (const lease of live) {
      const order = lease.state === 'waiting' ? (lease.waiting?.queuedAt ?? 0) : 0;
      const lines = locksOfLease(lease).map((l) => `${l.mode} ${l.key} ${lease.leaseId} ${lease.runId} ${order}`);
      expected[lease.state === 'waiting' ? 'waiting' : 'active'].push(...lines);
    }
    expectPromise(
      ordered(locksIn(this.state.held)) === ordered(expected.active.sort()) &&
        ordered(locksIn(this.state.queued)) === ordered(expected.waiting.sort()),
      'P1: the lock tables are not those of the live leases',
    );
    const { admissions, map, doubted } = this.state;
    const kept = [...admissions.values()]
      .filter(isInDoubt)
      .flatMap((one) => locksOfDoubt(map, one).map((l) => `${l.mode} ${l.key} ${one.admissionId} ${one.runId} 0`));
    expectPromise(ordered(locksIn(doubted)) === ordered(kept.sort()), 'R4: what is in doubt does not keep its locks');
    for (const lease of live) if (lease.state === 'waiting') this.keptWaiting(lease);
  }

  /** P9. */
  private keptWaiting(lease: Lease): void {
    const { held, queued, doubted } = this.state;
    // One whose set has its start ahead may wait for that alone; it is granted when somebody looks.
    if (lease.request?.resourceSet === 'soon') return;
    if (this.facts.isFrozen(lease)) return;
    const place = lease.waiting?.queuedAt ?? 0;
    for (const { key, mode } of locksOfLease(lease)) {
      for (const other of INCOMPATIBLE[mode]) {
        for (const { runId, leaseId } of held[other].holders(key))
          if (runId !== lease.runId && !isPartOf(this.state, lease, leaseId)) return;
        for (const _ of doubted[other].holders(key)) return;
        if (lease.delegatedFrom !== '') continue;
        for (const { runId, order } of queued[other].holders(key)) if (runId !== lease.runId && order < place) return;
      }
    }
    throw new Violation(`P9: ${lease.leaseId} waits although nobody is in its way`);
  }

  /** P7: at one revision every replica has one state. */
  compare(replica: string, state: State): void {
    const expected = this.digests[state.revision];
    if (expected === undefined)
      throw new Violation(`P7: ${replica} is at revision ${state.revision}, which is not in the log`);
    const actual = digestOf(state);
    if (actual !== expected)
      throw new Violation(`P7: ${replica} has another state at revision ${state.revision}:\n${actual}\n${expected}`);
  }

  /** P7: read from its beginning, the log says the same. */
  replay(log: readonly EventRecord[]): void {
    const state = emptyState(NAMESPACE);
    for (const record of log) evolve(state, decodeEvent(record), record.revision);
    const same = digestOf(state) === digestOf(this.state);
    expectPromise(same, 'P7: the log read from its beginning gives another state');
  }
}
