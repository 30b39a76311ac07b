import { type Admission, isOpen } from '../../../src/domain/admission.js';
import type { Revocation } from '../../../src/domain/credential.js';
import { checkId, type NeedsLoad } from '../../../src/domain/decide/decision.js';
import type { Freeze } from '../../../src/domain/freeze.js';
import { type KeyBinding, runScope } from '../../../src/domain/key-binding.js';
import { type Lease, underLockDelay } from '../../../src/domain/lease.js';
import type { KindRehearsal } from '../../../src/domain/rehearsal.js';
import type { Run } from '../../../src/domain/run.js';
import { bindingId } from '../../../src/domain/state.js';
import type { Micros } from '../../../src/domain/time.js';
import type { Command } from '../../../src/engine/batch.js';
import type {
  AppendBatch,
  AppendResult,
  EventRecord,
  Gate,
  Head,
  MapVersion,
  Snapshot,
  UnmatchedResource,
} from '../../../src/storage/store.js';
import { IDENTITY, START } from '../domain.js';
import type { Sabotage } from './sabotage.js';

/** The append statement and the projections (design: the engine), one statement at a time. */
export class SimDatabase {
  now: Micros = START;
  readonly log: EventRecord[] = [];
  readonly leases = new Map<string, Lease>();
  readonly runs = new Map<string, Run>();
  readonly keys = new Map<string, KeyBinding>();
  readonly unmatched = new Map<string, UnmatchedResource>();
  readonly revocations = new Map<string, Revocation>();
  readonly admissions = new Map<string, Admission>();
  readonly rehearsals = new Map<string, KindRehearsal>();
  readonly freezes = new Map<string, Freeze>();
  mapVersion: MapVersion | null = null;
  readonly batches = new Set<string>();

  constructor(private readonly sabotage: Sabotage | undefined) {}

  get head(): Head | null {
    const last = this.log[this.log.length - 1];
    return last === undefined ? null : { revision: last.revision, hash: last.hash, time: last.time };
  }

  gate(): Gate {
    return { head: this.head, now: this.now, inRecovery: false, durable: true, identity: IDENTITY };
  }

  tail(after: number): EventRecord[] {
    return this.log.slice(after);
  }

  append(batch: AppendBatch): AppendResult {
    const gate = this.gate();
    const { head, now } = gate;
    const headOk = head?.revision === batch.expectedHead?.revision && head?.hash === batch.expectedHead?.hash;
    if (!headOk && this.sabotage !== 'stale_head') return { outcome: 'stale', gate };
    const known = batch.newKeys.flatMap(({ scope, key }) => this.keys.get(bindingId(scope, key)) ?? []);
    if (known.length > 0 && this.sabotage !== 'unproven_keys') return { outcome: 'known_keys', gate, keys: known };
    const timeOk =
      (batch.reliedOnAsPast === null || batch.reliedOnAsPast <= now) &&
      (batch.reliedOnAsFuture === null || batch.reliedOnAsFuture > now);
    if (!timeOk && this.sabotage !== 'unproven_times') return { outcome: 'time', gate };
    this.log.push(...batch.events);
    this.batches.add(batch.batchId);
    for (const lease of batch.leases) this.leases.set(lease.leaseId, lease);
    for (const run of batch.runs) this.runs.set(run.runId, run);
    for (const binding of batch.keys) this.keys.set(bindingId(binding.scope, binding.key), binding);
    for (const seen of batch.unmatched) this.unmatched.set(seen.resource, seen);
    for (const revocation of batch.revocations) this.revocations.set(revocation.subject, revocation);
    for (const admission of batch.admissions) this.admissions.set(admission.admissionId, admission);
    for (const rehearsal of batch.rehearsals) this.rehearsals.set(rehearsal.pattern, rehearsal);
    for (const freeze of batch.freezes) this.freezes.set(freeze.pattern, freeze);
    for (const pattern of batch.thawed) this.freezes.delete(pattern);
    if (batch.mapVersion !== null) this.mapVersion = batch.mapVersion;
    return { outcome: 'appended', gate };
  }

  snapshot(): Snapshot {
    const live = [...this.leases.values()].filter((lease) => lease.state !== 'ended' || underLockDelay(lease));
    const keysOfWaiting = live
      .filter((lease) => lease.state === 'waiting')
      .flatMap((lease) => this.keys.get(bindingId(runScope(lease.runId), lease.idempotencyKey)) ?? []);
    return {
      gate: this.gate(),
      leases: live,
      runs: [...this.runs.values()].filter((run) => run.endedAt === null),
      keys: keysOfWaiting,
      mapVersion: this.mapVersion,
      unmatched: [...this.unmatched.values()],
      revocations: [...this.revocations.values()],
      admissions: [...this.admissions.values()].filter(isOpen),
      rehearsals: [...this.rehearsals.values()],
      freezes: [...this.freezes.values()],
      recorded: null,
    };
  }

  /** What a command lacked, beside what was looked up for it before. */
  lookUp(before: Command['loaded'], wanted: NeedsLoad['wanted']): Command['loaded'] {
    const { leaseId, leaseIds = [], runId, runIds = [], key, admissionId, check } = wanted;
    const askedRuns = runId === undefined ? runIds : [...runIds, runId];
    const { runs, keys } = before;
    const leases = new Map(before.leases);
    for (const asked of leaseId === undefined ? leaseIds : [leaseId, ...leaseIds]) {
      leases.set(asked, this.leases.get(asked) ?? null);
    }
    const id = key === undefined ? '' : bindingId(key.scope, key.key);
    const ofCheck = [...this.admissions.values()].filter(
      (admission) => check !== undefined && checkId(admission) === checkId(check),
    );
    const admissions = new Map(before.admissions);
    for (const admission of ofCheck) admissions.set(admission.admissionId, admission);
    if (admissionId !== undefined) admissions.set(admissionId, this.admissions.get(admissionId) ?? null);
    const ids = ofCheck.map((admission) => admission.admissionId);
    return {
      admissions,
      checks: check === undefined ? before.checks : new Map(before.checks).set(checkId(check), ids),
      leases,
      runs: new Map([...runs, ...askedRuns.map((id) => [id, this.runs.get(id) ?? null] as const)]),
      keys: key === undefined ? keys : new Map(keys).set(id, this.keys.get(id) ?? null),
    };
  }
}
