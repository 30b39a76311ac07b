import { setImmediate as nextTurn } from 'node:timers/promises';
import { isOpen } from '../domain/admission.js';
import { compileStored } from '../domain/conflict-map/index.js';
import type { DomainEvent } from '../domain/event.js';
import { bind, evolve, insert, insertAdmission, insertRun } from '../domain/evolve.js';
import { principalScope, runScope } from '../domain/key-binding.js';
import { underLockDelay } from '../domain/lease.js';
import { hasEnded } from '../domain/run.js';
import { bindingId, emptyState, type Overlay, type State } from '../domain/state.js';
import type { EventRecord, Head, Snapshot } from '../storage/store.js';
import { decodeEvent } from './event-codec.js';
import { GENESIS_HASH } from './hash-chain.js';
import { RecentEvents } from './recent-events.js';
import { StateDigests } from './state-digest.js';

export const GENESIS: Head = { revision: 0, hash: GENESIS_HASH, time: 0 };

/**
 * How many ended records stay in memory, so that answers about what has just ended need no look-up. More of them cost more
 * than they save: they live just long enough to become old, and are then marked again and again.
 */
const RECENTLY_ENDED = 1_024;
/** Taken over from a snapshot in one turn of the event loop: some tens of milliseconds. */
const LEASES_PER_TURN = 1_000;

/** The log does not continue what this replica has seen. */
export class LogForked extends Error {
  override readonly name = 'LogForked';
}

/**
 * The acknowledged state of one namespace on this replica, and the head it belongs to. It changes only
 * by committing an acknowledged overlay or by following the log.
 */
export class ReplicaState {
  readonly state: State;
  head: Head;
  /**
   * Everything that ended after this revision is still in memory; what was looked up in the projections
   * at an earlier one may be out of date.
   */
  forgottenThrough: number;
  /** The end of the log, for those who follow it event by event. */
  readonly recent = new RecentEvents();
  readonly digests = new StateDigests();
  private readonly forgettable: (() => void)[] = [];
  private readonly endedAt: number[] = [];

  /** Takes leases over in portions: between two of them heartbeats are written and other namespaces are served. */
  static async load(namespace: string, snapshot: Snapshot): Promise<ReplicaState> {
    const replica = new ReplicaState(namespace, { ...snapshot, leases: [] });
    for (let start = 0; start < snapshot.leases.length; start += LEASES_PER_TURN) {
      for (const lease of snapshot.leases.slice(start, start + LEASES_PER_TURN)) insert(replica.state, lease, null);
      await nextTurn();
    }
    return replica;
  }

  constructor(
    namespace: string,
    snapshot: Snapshot | null,
    private readonly recentlyEnded = RECENTLY_ENDED,
  ) {
    this.state = emptyState(namespace);
    this.head = snapshot?.gate.head ?? GENESIS;
    this.forgottenThrough = this.head.revision;
    if (snapshot !== null) load(this.state, this.head, snapshot);
  }

  /** Applies events that follow the head; those already applied are passed over. */
  follow(records: readonly EventRecord[]): void {
    for (const record of records) {
      if (record.revision <= this.head.revision) continue;
      if (record.revision !== this.head.revision + 1 || record.prevHash !== this.head.hash) {
        throw new LogForked(
          `revision ${record.revision} does not follow revision ${this.head.revision} as this replica knows it`,
        );
      }
      const event = decodeEvent(record);
      evolve(this.state, event, record.revision);
      this.head = { revision: record.revision, hash: record.hash, time: record.time };
      this.recent.push({ revision: record.revision, hash: record.hash, event });
      this.digests.saw(this.state, event, record.revision);
      const { body } = event;
      if (body.kind === 'lease_ended' || body.kind === 'lock_delay_ended') this.rememberLease(body.leaseId);
      if (body.kind === 'database_identified' && body.lostHistory) {
        for (const { leaseId } of this.state.leases.values()) this.rememberLease(leaseId);
      }
      if (body.kind === 'writes_reported')
        for (const { admissionId } of body.writes) this.rememberAdmission(admissionId);
      if (body.kind === 'doubt_settled') this.rememberAdmission(body.admissionId);
      if (body.kind === 'run_state_changed') this.rememberRun(body.runId);
      if (body.kind === 'lease_granted' || body.kind === 'lease_queued')
        this.rememberKey(runScope(body.lease.runId), body.lease.idempotencyKey);
      if (body.kind === 'run_created') this.rememberKey(principalScope(body.run.principal), body.run.idempotencyKey);
      if (body.kind === 'key_bound') this.rememberKey(body.binding.scope, body.binding.key);
      if (body.kind === 'lease_amended' && body.binding !== null)
        this.rememberKey(body.binding.scope, body.binding.key);
    }
    this.forget();
  }

  /** Makes an acknowledged overlay the state, with the events that made it. Its base must be this state as it is. */
  commit(overlay: Overlay, records: readonly EventRecord[], events: readonly DomainEvent[]): void {
    const { leases, runs, keys, admissions } = overlay;
    overlay.commit();
    records.forEach((record, index) => {
      this.head = { revision: record.revision, hash: record.hash, time: record.time };
      const event = events[index] as DomainEvent;
      this.recent.push({ revision: record.revision, hash: record.hash, event });
      this.digests.saw(this.state, event, record.revision);
    });
    for (const lease of leases.changed()) if (lease.state === 'ended') this.rememberLease(lease.leaseId);
    for (const run of runs.changed()) if (hasEnded(run)) this.rememberRun(run.runId);
    for (const admission of admissions.changed()) if (!isOpen(admission)) this.rememberAdmission(admission.admissionId);
    for (const binding of keys.changed()) this.rememberKey(binding.scope, binding.key);
    this.forget();
  }

  /** One under lock delay stays: it is remembered anew when the delay has ended. */
  private rememberLease(leaseId: string): void {
    this.remember(() => {
      const lease = this.state.leases.get(leaseId);
      if (lease?.state !== 'ended' || underLockDelay(lease)) return;
      this.state.leases.delete(leaseId);
      this.state.keys.delete(bindingId(runScope(lease.runId), lease.idempotencyKey));
    });
  }

  private rememberRun(runId: string): void {
    this.remember(() => {
      const run = this.state.runs.get(runId);
      if (run !== undefined && hasEnded(run)) this.state.runs.delete(runId);
    });
  }

  /** One that is open stays: it is remembered anew when it is closed. */
  private rememberAdmission(admissionId: string): void {
    if (admissionId === '') return;
    this.remember(() => {
      const admission = this.state.admissions.get(admissionId);
      if (admission !== undefined && !isOpen(admission)) this.state.admissions.delete(admissionId);
    });
  }

  /** The key of a request that waits is forgotten with its lease: callers who wait call again by it, time after time. */
  private rememberKey(scope: string, key: string): void {
    this.remember(() => {
      const id = bindingId(scope, key);
      const waits = this.state.leases.get(this.state.keys.get(id)?.leaseId ?? '')?.state === 'waiting';
      if (!waits) this.state.keys.delete(id);
    });
  }

  private remember(forgetIt: () => void): void {
    this.forgettable.push(forgetIt);
    this.endedAt.push(this.head.revision);
  }

  private forget(): void {
    if (this.forgettable.length < 2 * this.recentlyEnded) return;
    const old = this.forgettable.splice(0, this.forgettable.length - this.recentlyEnded);
    const revisions = this.endedAt.splice(0, old.length);
    for (const forgetIt of old) forgetIt();
    this.forgottenThrough = revisions[revisions.length - 1] ?? this.forgottenThrough;
  }
}

function load(state: State, head: Head, snapshot: Snapshot): void {
  state.revision = head.revision;
  state.time = head.time;
  if (snapshot.mapVersion !== null) {
    state.mapVersion = snapshot.mapVersion.version;
    state.map = compileStored(JSON.parse(snapshot.mapVersion.document));
  }
  state.identity = snapshot.recorded?.identity ?? null;
  state.localKindsFrom = snapshot.recorded?.localKindsFrom ?? null;
  state.inputs.knownSince = head.time;
  for (const run of snapshot.runs) insertRun(state, run);
  for (const lease of snapshot.leases) insert(state, lease, null);
  for (const binding of snapshot.keys) bind(state, binding);
  for (const admission of snapshot.admissions) insertAdmission(state, admission);
  for (const revocation of snapshot.revocations) state.revocations.set(revocation.subject, revocation);
  for (const rehearsal of snapshot.rehearsals) state.rehearsals.set(rehearsal.pattern, rehearsal);
  for (const freeze of snapshot.freezes) state.freezes.set(freeze.pattern, freeze);
  for (const seen of snapshot.unmatched) state.unmatched.set(seen.resource, seen);
}
