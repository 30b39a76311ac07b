import { type Admission, isInDoubt, isOpen, type WriteResult } from '../../src/domain/admission.js';
import { checkFence } from '../../src/domain/check-fence.js';
import type { ConflictMapDocument, DocumentKind } from '../../src/domain/conflict-map/document.js';
import { compileStored, observes, resolveResource } from '../../src/domain/conflict-map/index.js';
import { credentialReason, type NewCredential, type Revocation } from '../../src/domain/credential.js';
import { CREDENTIAL_LIFE, CREDENTIAL_TOLERANCE } from '../../src/domain/credential-times.js';
import { type AcquireCommand, type AcquireDecision, decideAcquire } from '../../src/domain/decide/acquire.js';
import { decideAdmitWrites } from '../../src/domain/decide/admit-writes.js';
import { type AmendCommand, decideAmend } from '../../src/domain/decide/amend.js';
import {
  type Bounds,
  checkId,
  DEFAULT_BOUNDS,
  type Decision,
  type NeedsLoad,
  NOTHING_LOADED,
  View,
} from '../../src/domain/decide/decision.js';
import { decideFreeze, decideThaw } from '../../src/domain/decide/freezes.js';
import { decideIssueCredentials } from '../../src/domain/decide/issue-credentials.js';
import { decidePutMap, type OnLiveConflict } from '../../src/domain/decide/put-map.js';
import { Reexpansion } from '../../src/domain/decide/reexpansion.js';
import { decideRelease, decideRevoke } from '../../src/domain/decide/release.js';
import { decideRenew } from '../../src/domain/decide/renew.js';
import { decideReportWrites } from '../../src/domain/decide/report-writes.js';
import { decideRevokeCredentials } from '../../src/domain/decide/revoke-credentials.js';
import { decideCreateRun, decideStopRun, decideUpdateRunState } from '../../src/domain/decide/runs.js';
import { decideSettleInDoubt } from '../../src/domain/decide/settle-in-doubt.js';
import { decideTakeOver, type TakeOverCommand } from '../../src/domain/decide/take-over.js';
import { type Attachment, decideAttach, decideSweep } from '../../src/domain/decide/upkeep.js';
import { isPartOf } from '../../src/domain/delegation.js';
import { isResourceInDoubt, locksOfDoubt } from '../../src/domain/doubt.js';
import type { RequestedEntry } from '../../src/domain/entry.js';
import { evolve } from '../../src/domain/evolve.js';
import { Fault } from '../../src/domain/fault.js';
import type { FenceVerdict, ProtectedWrite } from '../../src/domain/fence.js';
import { deniesWrites, type Freeze } from '../../src/domain/freeze.js';
import { locksOfLease } from '../../src/domain/held-locks.js';
import { type KeyBinding, runScope } from '../../src/domain/key-binding.js';
import { effectiveAt, endsAt, type Lease, underLockDelay } from '../../src/domain/lease.js';
import { INCOMPATIBLE } from '../../src/domain/modes.js';
import type { RefusalKind } from '../../src/domain/refusal.js';
import type { KindRehearsal } from '../../src/domain/rehearsal.js';
import type { Run } from '../../src/domain/run.js';
import { bindingId, emptyState, type State } from '../../src/domain/state.js';
import { MILLISECOND, type Micros, SECOND } from '../../src/domain/time.js';
import type { Ahead } from '../../src/engine/ahead.js';
import { type Command, newCommand, type Plan, planBatch } from '../../src/engine/batch.js';
import { CommandQueue } from '../../src/engine/command-queue.js';
import { decodeEvent } from '../../src/engine/event-codec.js';
import { GENESIS_HASH, hashEvent } from '../../src/engine/hash-chain.js';
import type { EngineOptions } from '../../src/engine/options.js';
import { ReplicaLog } from '../../src/engine/replica-log.js';
import { GENESIS, ReplicaState } from '../../src/engine/replica-state.js';
import type {
  AppendBatch,
  AppendResult,
  EventRecord,
  Gate,
  Head,
  MapVersion,
  Snapshot,
  UnmatchedResource,
} from '../../src/storage/store.js';
import { Random } from '../harness/random.js';
import {
  digestOf,
  EVERYTHING,
  IDENTITY,
  leased,
  locksIn,
  MAX_SKEW,
  optimistic,
  ordered,
  read,
  START,
  stable,
} from './domain.js';
import { type Audited, overAt } from './oracle/audit/audited-lease.js';
import { Auditor } from './oracle/auditor.js';
import { mayWrite } from './oracle/fence-check.js';
import { Violation } from './oracle/violation.js';
import { universeOf } from './oracle/write-sets.js';

/**
 * A world in one thread and without time: a database, a few replicas of the coordinator, and many clients. Everything
 * that happens is a step; what happens next is drawn from numbers that the test gives, so that a failure is a list of
 * numbers, and shrinks. The database is a model of the append statement (design §3); the replicas are the real
 * ReplicaLog, planBatch and decisions, with the append loop's retries as steps. After each append and each answer the
 * auditor of oracle/ and the checks below look for a broken promise, and throw a Violation.
 */

// ------------------------------------------------------------------------------------------------------ the small world

const NAMESPACE = 'sim';

const ACTIONS = {
  replace: { access: 'write', concurrency: 'lease' },
  patch: { access: 'write' },
} as const;
/** What a target must report (R4). */
const TRACKED = {
  replace: { access: 'write', concurrency: 'lease', tracked: true },
  patch: { access: 'write', tracked: true },
} as const;
const SHORT = { ttl: 8 * SECOND, max_ttl: 16 * SECOND, max_hold: 40 * SECOND } as const;

const BASE: ConflictMapDocument = {
  version: 1,
  kinds: [
    { pattern: 'svc/{n}', ...SHORT, progress_window: 20 * SECOND, actions: TRACKED },
    { pattern: 'svc/{n}/{part}', ...SHORT, actions: TRACKED },
    { pattern: 'tok/{n}', ...SHORT, actions: TRACKED },
    { pattern: 'cfg/{n}', ...SHORT, actions: TRACKED },
    { pattern: 'obs/{n}', ...SHORT, mode: 'observe', actions: ACTIONS },
    { pattern: 'loc/{n}', ...SHORT, validation: 'local', actions: ACTIONS },
    { pattern: 'vw/{n}', ...SHORT, validation: 'view', max_view_age: 4 * SECOND, actions: ACTIONS },
  ],
  implies: [
    {
      when: { pattern: 'svc/{n}', access: 'write' },
      touches: [{ resource: 'cfg/{n}', access: 'stable_read' }],
    },
  ],
  sets: {
    soon: {
      not_before: START + 20 * SECOND,
      entries: [
        { resource: 'svc/a', access: 'write', actions: ['replace'] },
        { resource: 'tok/b', access: 'write', actions: ['patch'] },
      ],
    },
  },
};

/** Credentials of a small world: its leases are short, too. */
const CREDENTIALS = { credentialLife: 6 * SECOND, credentialTolerance: SECOND, maxClockSkew: SECOND } as const;
const BOUNDS: Bounds = { ...DEFAULT_BOUNDS, ...CREDENTIALS };

/** By these nothing is accepted for long after the end of a lease. */
const CARELESS: Bounds = { ...BOUNDS, credentialLife: -SECOND, credentialTolerance: 0, maxClockSkew: -SECOND };

/** Kinds of tokens become local, and those that were are no more; those of configurations are looked at by older views. */
const TURNED = (BASE.kinds ?? []).map((kind): DocumentKind => {
  if (kind.pattern === 'tok/{n}') return { ...kind, validation: 'local' };
  if (kind.pattern === 'cfg/{n}') return { ...kind, validation: 'view', max_view_age: 3 * SECOND };
  if (kind.pattern === 'vw/{n}') return { ...kind, max_view_age: SECOND };
  return kind.pattern === 'loc/{n}' ? { ...kind, validation: 'introspect' } : kind;
});

const RULES: NonNullable<ConflictMapDocument['conflicts']> = [
  { between: ['tok/{n}', 'cfg/{n}'] },
  { between: ['loc/{n}', 'cfg/{n}'] },
  { between: ['tok/{n}', 'obs/{n}'] },
];

/** Each ties more than the one before, but for the last: what was tied by a rule stays so when the rule is gone. */
export const DOCUMENTS: readonly ConflictMapDocument[] = [
  BASE,
  { ...BASE, conflicts: RULES.slice(0, 2) },
  { ...BASE, kinds: TURNED, conflicts: RULES },
  {
    ...BASE,
    implies: [
      ...(BASE.implies ?? []),
      {
        when: { pattern: 'tok/{n}', access: 'write' },
        touches: [{ resource: 'svc/{n}/key', access: 'write', actions: ['patch'] }],
      },
    ],
    conflicts: RULES,
  },
  { ...BASE, conflicts: RULES.slice(1) },
];

const PATHS = [
  'svc/a',
  'svc/b',
  'svc/a/',
  'svc/',
  'svc/a/key',
  'svc/b/x',
  'tok/a',
  'tok/b',
  'cfg/a',
  'cfg/b',
  'obs/a',
  'loc/a',
  'loc/b',
  'loc/',
  'vw/a',
  'vw/',
];
/** What operators freeze now and then. */
const FREEZABLE = ['svc/{n}', 'svc/a', 'svc/{n}/{part}', 'tok/{n...}', 'cfg/a', 'loc/{n}', 'loc/a', 'obs/{n}', 'svc'];
export const UNIVERSE = universeOf([
  ...PATHS.map((path) => path.replace(/\/$/, '')),
  ...['svc/b/key', 'svc/a/x', 'obs/b', 'cfg', 'tok', 'loc', 'vw', 'vw/b'],
  // Below what is held as a subtree, as parts of it are asked for.
  ...['svc/a/a', 'svc/a/b', 'svc/a/a/key', 'loc/a/key', 'vw/a/key'],
]);

/** As the harness draws; chances are in percent, and lists may be empty. */
class Draw {
  private readonly random: Random;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  /** From 0, below `below`. */
  int(below: number): number {
    return this.random.below(below);
  }

  chance(percent: number): boolean {
    return this.int(100) < percent;
  }

  pick<T>(from: readonly T[]): T | undefined {
    return from[this.int(from.length)];
  }
}

/** Faults planted to see whether the checks find them. */
export type Sabotage =
  /** The database takes a batch whatever the head is. */
  | 'stale_head'
  /** The database does not prove times, and replicas' clocks run ahead. */
  | 'unproven_times'
  /** The database does not prove that keys are new. */
  | 'unproven_keys'
  /** Replicas answer checks from what they know, without asking the database. */
  | 'no_read_index'
  /** A replica passes over ends of leases. */
  | 'skipped_events'
  /** Replicas answer before their append has come back. */
  | 'early_answers'
  /** Replicas take credentials to be dead with their lease. */
  | 'no_lock_delay';

export interface SimulationOptions {
  readonly replicas?: number;
  readonly sabotage?: Sabotage;
}

// ------------------------------------------------------------------------------------------------------ the database

/** A statement on its way: sent, perhaps carried out, its answer perhaps lost. */
interface Statement {
  readonly batch: AppendBatch;
  readonly sender: SimReplica;
  result: AppendResult | null;
  /** Nobody waits for the answer any more; it may still be carried out. */
  abandoned: boolean;
}

/** The append statement of design §3 and the projections, one statement at a time. */
class SimDatabase {
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
}

// ------------------------------------------------------------------------------------------------------ replicas

interface BatchUnderway {
  readonly commands: readonly Command[];
  /** The commands as they were decided ahead. */
  ahead: Ahead | null;
  readonly attempted: Map<string, Plan>;
  losses: number;
  /** The revision of the oldest look-up for its commands; null: there was none. */
  lookedUpAt: number | null;
  /** What happens to it next; while a statement is on its way, that statement does. */
  next: 'attempt' | 'follow' | 'confirm' | 'answer';
  /** With `confirm`: a plan that writes nothing, and the head it was made on. */
  unwritten: { readonly plan: Plan; readonly revision: number } | null;
}

/** A fence check on its way. */
interface Check {
  readonly leaseId: string;
  /** Presented in place of the lease id. */
  readonly credential: NewCredential | null;
  readonly presenterRunId: string;
  readonly writes: readonly ProtectedWrite[];
  readonly startedAt: number;
  gate: Gate | null;
  /** What the auditor knew of the lease when the gate was read. */
  live: boolean;
  lease: Audited | undefined;
}

const LOSSES_BEFORE_EXCLUSIVE = 2;
/** Of the first replica, the second and so on: one remembers all that ended, the others forget most of it at once. */
const RECENTLY_ENDED = [1_000, 1, 5];
const MAX_BATCH = 1_024;

/** One coordinator process: the engine's append loop and read index, a step at a time. */
class SimReplica {
  log: ReplicaLog;
  readonly queue: CommandQueue;
  underway: BatchUnderway | null = null;
  readonly attachments = new Map<string, number>();
  readonly checks: Check[] = [];
  paused = false;

  constructor(
    readonly name: string,
    /** How many ended records it keeps in memory. */
    private readonly recentlyEnded: number,
    private readonly world: Simulation,
  ) {
    this.log = this.load(null);
    this.queue = new CommandQueue(MAX_BATCH, this.bounds);
  }

  private get bounds(): Bounds {
    return this.world.options.sabotage === 'no_lock_delay' ? CARELESS : BOUNDS;
  }

  /** Killed and started again: what it was doing is lost, what it had sent is on its way. */
  restart(): void {
    for (const command of [...(this.underway?.commands ?? []), ...this.queue.clear()]) command.reject(new Crashed());
    for (const statement of this.world.network) if (statement.sender === this) statement.abandoned = true;
    this.underway = null;
    this.checks.length = 0;
    this.attachments.clear();
    this.paused = false;
    this.log = this.load(this.world.database.snapshot());
    this.world.compare(this);
  }

  submit(command: Command): void {
    this.queue.push(command);
    this.work();
  }

  /** What the process would do next, if it runs. */
  step(): void {
    const { underway } = this;
    if (underway === null) this.work();
    else if (underway.next === 'attempt') this.attempt(underway);
    else if (underway.next === 'follow') this.followAndFind(underway);
    else if (underway.next === 'confirm') this.confirm(underway);
  }

  follow(): void {
    this.log.clock.observe(this.world.database.now);
    this.take(this.world.database.tail(this.log.head.revision));
  }

  /** The answer of an append has come. */
  received(statement: Statement): void {
    const { underway } = this;
    const plan = underway?.attempted.get(statement.batch.batchId);
    if (underway === null || plan === undefined || statement.result === null) return;
    this.conclude(underway, plan, statement.result);
  }

  /** The connection was lost before the answer came. */
  lost(): void {
    if (this.underway !== null) this.underway.next = 'follow';
  }

  answerCheck(check: Check): { verdict: FenceVerdict; revision: number } {
    const gate = check.gate as Gate;
    if (this.world.options.sabotage !== 'no_read_index') {
      this.log.clock.observe(gate.now);
      this.take(this.world.database.tail(this.log.head.revision));
    }
    const now = this.world.options.sabotage === 'no_read_index' ? this.log.estimatedNow() : gate.now;
    let loaded = NOTHING_LOADED;
    for (;;) {
      const view = new View(this.log.state, now, loaded);
      try {
        return { verdict: verdictOf(view, check), revision: this.log.head.revision };
      } catch (error) {
        loaded = this.world.lookUp(loaded, error);
      }
    }
  }

  private load(snapshot: Snapshot | null): ReplicaLog {
    const options = { monotonicNow: () => this.world.monotonic, witness: { note: () => undefined } };
    const log = new ReplicaLog(
      NAMESPACE,
      options as unknown as EngineOptions,
      new ReplicaState(NAMESPACE, snapshot, this.recentlyEnded),
      null,
      () => undefined,
    );
    if (snapshot !== null) log.clock.observe(snapshot.gate.now);
    return log;
  }

  private work(): void {
    if (this.underway !== null) {
      this.queue.decideAhead();
      return;
    }
    const { commands, ahead } = this.queue.next(this.log);
    if (commands.length === 0) return;
    this.underway = {
      commands,
      ahead,
      attempted: new Map(),
      losses: 0,
      lookedUpAt: null,
      next: 'attempt',
      unwritten: null,
    };
  }

  private plan(underway: BatchUnderway): Plan {
    const { commands } = underway;
    for (;;) {
      this.dropAged(underway);
      const { state, head } = this.log;
      const clock = this.log.estimatedNow();
      const plan = planBatch({ base: state, head, clock, bounds: this.bounds, identity: null }, commands);
      if (plan.missing.length === 0) return plan;
      underway.lookedUpAt ??= head.revision;
      for (const { command, wanted } of plan.missing) {
        command.loaded = this.world.lookUp(command.loaded, { wanted });
      }
      this.take(this.world.database.tail(this.log.head.revision));
    }
  }

  /** What ended and was forgotten since the look-up must be looked up again. */
  private dropAged(underway: BatchUnderway): void {
    const { lookedUpAt, commands } = underway;
    if (lookedUpAt === null || this.log.forgottenThrough <= lookedUpAt) return;
    underway.lookedUpAt = null;
    for (const command of commands) command.loaded = NOTHING_LOADED;
    this.world.count('aged look-up');
  }

  private attempt(underway: BatchUnderway): void {
    if (underway.losses >= LOSSES_BEFORE_EXCLUSIVE) {
      this.exclusively(underway);
      return;
    }
    const plan = this.decidedAhead(underway) ?? this.plan(underway);
    if (plan.batch === null) {
      underway.unwritten = { plan, revision: this.log.head.revision };
      underway.next = 'confirm';
      return;
    }
    this.queue.sent(plan, this.log);
    this.send(underway, plan, plan.batch);
  }

  private decidedAhead(underway: BatchUnderway): Plan | null {
    const { ahead } = underway;
    underway.ahead = null;
    if (!ahead?.holdsOn(this.log)) return null;
    const plan = ahead.plan();
    if (plan.missing.length > 0) return null;
    this.world.count('decided ahead');
    if (plan.batch === null) this.world.count('decided ahead, without an event');
    return plan;
  }

  private send(underway: BatchUnderway, plan: Plan, batch: AppendBatch): Statement {
    underway.attempted.set(batch.batchId, plan);
    this.log.watch(batch.batchId);
    underway.next = 'answer';
    const statement: Statement = { batch, sender: this, result: null, abandoned: false };
    this.world.network.push(statement);
    if (this.world.options.sabotage === 'early_answers') this.settle(underway, plan);
    return statement;
  }

  /** Tail, decision and append while nobody else can append. */
  private exclusively(underway: BatchUnderway): void {
    this.follow();
    const found = this.found(underway);
    if (found !== null) {
      this.settle(underway, found);
      return;
    }
    const plan = this.plan(underway);
    if (plan.batch === null) {
      underway.unwritten = { plan, revision: this.log.head.revision };
      underway.next = 'confirm';
      return;
    }
    this.world.carryOut(this.send(underway, plan, plan.batch));
  }

  private conclude(underway: BatchUnderway, plan: Plan, result: AppendResult): void {
    if (result.gate !== null) this.log.clock.observe(result.gate.now);
    switch (result.outcome) {
      case 'appended':
        this.log.commit(plan);
        this.world.compare(this);
        this.settle(underway, plan);
        return;
      case 'stale':
        underway.losses += 1;
        underway.next = 'follow';
        return;
      case 'known_keys': {
        const known = new Map(result.keys.map((binding) => [bindingId(binding.scope, binding.key), binding]));
        underway.lookedUpAt ??= this.log.head.revision;
        for (const command of underway.commands) {
          command.loaded = { ...command.loaded, keys: new Map([...command.loaded.keys, ...known]) };
        }
        underway.next = 'attempt';
        return;
      }
      default:
        underway.next = 'attempt';
    }
  }

  /** Follows the log; an attempt whose answer was lost may turn up there. */
  private followAndFind(underway: BatchUnderway): void {
    this.follow();
    const found = this.found(underway);
    if (found === null) underway.next = 'attempt';
    else this.settle(underway, found);
  }

  private found(underway: BatchUnderway): Plan | null {
    for (const [batchId, plan] of underway.attempted) if (this.log.saw(batchId)) return plan;
    return null;
  }

  /** A batch that writes nothing is answered only at a head that is still the head. */
  private confirm(underway: BatchUnderway): void {
    this.follow();
    const { unwritten } = underway;
    if (unwritten !== null && this.log.head.revision === unwritten.revision) this.settle(underway, unwritten.plan);
    else underway.next = 'attempt';
  }

  private settle(underway: BatchUnderway, plan: Plan): void {
    this.log.unwatch(underway.attempted.keys());
    this.underway = null;
    if (plan.batch !== null) this.world.acknowledged(plan.batch.batchId);
    underway.commands.forEach((command, index) => {
      const outcome = plan.outcomes[index];
      if (outcome === undefined) throw new Error('a command without outcome');
      if ('error' in outcome) command.reject(outcome.error);
      else command.resolve(outcome);
    });
    this.work();
  }

  private take(records: readonly EventRecord[]): void {
    const skips = this.world.options.sabotage === 'skipped_events' && this.name === 'replica-1';
    this.log.take(skips ? records.map(withoutEnd) : records);
    this.world.compare(this);
  }
}

/** The same row, but that it says nothing. */
function withoutEnd(record: EventRecord): EventRecord {
  if (record.kind !== 'lease_ended') return record;
  return { ...record, kind: 'checks_denied', body: '{"denials":[]}' };
}

function verdictOf(view: View, check: Check): FenceVerdict {
  const { map } = view.state;
  const lease = view.lease(check.leaseId);
  return checkFence(
    {
      now: view.now,
      maxClockSkew: MAX_SKEW,
      lease,
      run: lease === undefined ? undefined : view.run(lease.runId),
      pathOf: (resource) => {
        const resolved = resolveResource(map, resource);
        return resolved.ok ? resolved.resource : null;
      },
      observes: (resource) => observes(map, resource),
      ownedByCaller: () => true,
      inDoubt: (resource) => isResourceInDoubt(view.state, resource, lease),
      frozen: (resource) => deniesWrites(view.state.freezes, resource, view.now),
    },
    {
      presenterRunId: check.presenterRunId,
      writes: check.writes,
      ...(check.credential === null ? {} : { credential: credentialView(view, check.credential) }),
    },
  );
}

function credentialView(view: View, credential: NewCredential) {
  const { revocations, namespace } = view.state;
  const facts = { namespace, now: view.now, maxClockSkew: MAX_SKEW, revocations, presenter: null };
  return {
    reason: credentialReason({ ...credential, namespace: NAMESPACE }, facts),
    grants: credential.scope.grants,
    expiresAt: credential.expiresAt * SECOND,
  };
}

/** The replica was killed while the call was with it: nobody knows what came of it. */
class Crashed extends Error {}

// ------------------------------------------------------------------------------------------------------ clients

/** An acquire by one key, as its client remembers it. */
interface Asked {
  readonly command: AcquireCommand;
  leaseId: string | null;
}

/** A run and what its worker knows. */
interface Worker {
  readonly runId: string;
  /** The run that it is a part of. */
  readonly parent: Worker | undefined;
  readonly principal: string;
  readonly asked: Asked[];
  readonly amended: { readonly command: AmendCommand; effectiveAt: Micros | null }[];
  /** Leases it was told of. */
  readonly told: Map<string, Lease>;
  readonly credentials: NewCredential[];
  made: boolean;
}

/** A tracked write that a target was allowed to make. */
interface LetIn {
  readonly admissionId: string;
  readonly leaseId: string;
  readonly requestId: string;
  readonly write: ProtectedWrite;
}

const NEVER_GRANTED: ReadonlySet<RefusalKind> = new Set(['ended', 'wait_timeout', 'run_ended']);

class Simulation {
  readonly database: SimDatabase;
  readonly network: Statement[] = [];
  /** What the clocks of all replicas show: it goes on, and is never set. */
  monotonic: Micros = 0;
  /** How often which things happened, for tests that want them to. */
  readonly happened = new Map<string, number>();
  private readonly auditor: Auditor;
  private readonly reference: State = emptyState(NAMESPACE);
  private readonly digests: string[] = [];
  private readonly replicas: SimReplica[] = [];
  private readonly workers: Worker[] = [];
  /** Leases of which an end was answered, and when. */
  private readonly ends = new Map<string, number>();
  /** Credentials of which the revocation was answered, and when. */
  private readonly revoked = new Map<string, number>();
  /** What targets have under way, and may report; what they forget is left to people. */
  private readonly underWay: LetIn[] = [];
  private readonly letInBy = new Map<string, LetIn>();
  private readonly takeOvers: { readonly command: TakeOverCommand; leaseId: string | null }[] = [];
  private steps = 0;
  private made = 0;
  private draw = new Draw(0);

  constructor(readonly options: SimulationOptions = {}) {
    this.database = new SimDatabase(options.sabotage);
    this.auditor = new Auditor(
      UNIVERSE,
      { genesisHash: GENESIS_HASH, hashOf: hashEvent, eventOf: decodeEvent },
      MAX_SKEW,
      {
        life: CREDENTIALS.credentialLife,
        tolerance: CREDENTIALS.credentialTolerance,
        skew: CREDENTIALS.maxClockSkew,
      },
    );
    this.create();
    for (let index = 0; index < (options.replicas ?? 3); index += 1) {
      this.replicas.push(new SimReplica(`replica-${index}`, RECENTLY_ENDED[index % RECENTLY_ENDED.length] ?? 1, this));
    }
    for (const replica of this.replicas) replica.follow();
    for (let index = 0; index < 3; index += 1) this.createRun(60 * SECOND);
    this.drain();
  }

  /** One thing happens, drawn from one number. */
  step(number: number): void {
    this.steps += 1;
    this.draw = new Draw(number);
    const what = this.draw.int(100);
    if (what < 85) this.call();
    else if (what < 92) this.passTime();
    else this.disturb();
    for (let moves = this.draw.int(6); moves > 0; moves -= 1) this.move();
    this.pass(this.draw.int(60) * MILLISECOND);
  }

  /** Something that is under way goes on. */
  private move(): void {
    const what = this.draw.int(10);
    if (what < 4) this.moveMessages();
    else if (what < 7) this.moveReplicas();
    else this.moveChecks();
  }

  /** Everything comes to rest; every run is stopped, and nothing of any may be left (F10). */
  finish(): void {
    for (const replica of this.replicas) replica.paused = false;
    this.drain();
    for (const worker of this.workers) this.stop(worker, true);
    this.drain();
    this.outlastDelays();
    for (const [admissionId, { runId }] of this.auditor.facts.openWrites) {
      expectPromise(this.auditor.facts.runs.get(runId)?.ended === false, 'R4: a stop went over an open write');
      this.settle(admissionId);
    }
    this.drain();
    expectPromise(this.auditor.facts.openWrites.size === 0, 'R4: writes are open that were settled');
    for (const { ended } of this.auditor.facts.runs.values())
      expectPromise(ended, 'R4: a run was stopped and nothing of it is open, but it has not ended');
    for (const replica of this.replicas) {
      replica.follow();
      const { state } = replica.log;
      const left = [...locksIn(state.held), ...locksIn(state.queued), ...locksIn(state.doubted)];
      expectPromise(left.length === 0, `F10: locks are left on ${replica.name}: ${left[0]}`);
      expectPromise(state.activeLeases === 0 && state.waitingLeases === 0, `F10: leases are left on ${replica.name}`);
    }
    expectPromise([...this.auditor.facts.leases.active()].length === 0, 'F10: leases are left');
    this.replay();
  }

  /** Lock delays end by time, on whichever replica looks. */
  private outlastDelays(): void {
    const last = Math.max(this.database.now, ...[...this.auditor.facts.delays.values()].map(({ until }) => until));
    this.database.now = last;
    for (const replica of this.replicas) {
      replica.follow();
      this.background(replica, decideSweep);
      this.drain();
    }
    expectPromise(this.auditor.facts.delays.size === 0, 'F10: lock delays are left');
  }

  // ---------------------------------------------------------------------------------------------------- time

  private pass(time: Micros): void {
    this.database.now += time;
    // Replicas' clocks run on their own, now a little slower than the database's, now a little faster.
    const ahead = this.options.sabotage === 'unproven_times' ? 20 : 0;
    this.monotonic += Math.floor((time * (18 + ahead + this.draw.int(4))) / 20);
  }

  /** Seconds go by, or the database clock steps forward and nobody else notices. */
  private passTime(): void {
    const time = this.draw.int(this.draw.chance(20) ? 12_000 : 3_000) * MILLISECOND;
    if (this.draw.chance(30)) this.database.now += time;
    else this.pass(time);
  }

  // ---------------------------------------------------------------------------------------------------- messages

  private moveMessages(): void {
    for (let moves = 1 + this.draw.int(2); moves > 0; moves -= 1) {
      const statement = this.draw.pick(this.network);
      if (statement === undefined) return;
      if (statement.result === null) this.carryOut(statement);
      else this.answer(statement);
    }
  }

  private answer(statement: Statement): void {
    if (statement.abandoned) this.network.splice(this.network.indexOf(statement), 1);
    else if (!statement.sender.paused) {
      this.network.splice(this.network.indexOf(statement), 1);
      statement.sender.received(statement);
    }
  }

  /** The statement reaches the database. */
  carryOut(statement: Statement): void {
    const { now } = this.database;
    statement.result = this.database.append(statement.batch);
    this.count(`append ${statement.result.outcome}`);
    if (statement.abandoned) this.count(`abandoned append ${statement.result.outcome}`);
    if (statement.result.outcome !== 'appended') return;
    this.auditor.appended(statement.batch.events, now);
    this.evolveReference(statement.batch);
  }

  private evolveReference(batch: AppendBatch): void {
    for (const record of batch.events) {
      this.count(record.kind);
      const event = decodeEvent(record);
      if (event.body.kind === 'credentials_issued') {
        this.issuedRightly(this.reference.leases.get(event.leaseId), event.body.expiresAt);
        this.vouchedForNothingFrozen(this.reference.leases.get(event.leaseId), event.time);
      }
      evolve(this.reference, event, record.revision);
    }
    this.digests[this.reference.revision] = digestOf(this.reference);
    this.consistent();
    for (const row of batch.leases) {
      const same = ordered(row) === ordered(this.reference.leases.get(row.leaseId));
      expectPromise(same, `P7: the row of lease ${row.leaseId} is not what its events say`);
    }
    for (const row of batch.admissions) {
      const same = ordered(row) === ordered(this.reference.admissions.get(row.admissionId));
      expectPromise(same, `P7: the row of admission ${row.admissionId} is not what its events say`);
    }
    for (const row of batch.runs) {
      const same = ordered(row) === ordered(this.reference.runs.get(row.runId));
      expectPromise(same, `P7: the row of run ${row.runId} is not what its events say`);
    }
  }

  /** P10: the lease was live on the database clock, and outlives its credential by what clocks may differ. */
  private issuedRightly(lease: Lease | undefined, expiresAt: Micros): void {
    const { now } = this.database;
    expectPromise(
      lease?.state === 'active' && endsAt(lease) > now,
      'P10: a credential was issued for a lease that is over',
    );
    const latest = Math.min(now + CREDENTIAL_LIFE, endsAt(lease) - CREDENTIAL_TOLERANCE);
    expectPromise(expiresAt <= latest, `P10: a credential of ${lease.leaseId} could outlive it`);
    expectPromise(expiresAt > now, 'P10: a credential was dead when it was issued');
  }

  /** P3: no target that does not ask is told that something may be written of which checks are denied. */
  private vouchedForNothingFrozen(lease: Lease | undefined, issuedAt: Micros): void {
    const local = lease?.entries.filter((entry) => entry.validation === 'local' && entry.actions.length > 0) ?? [];
    for (const { resource } of local)
      expectPromise(
        !this.auditor.facts.deniesWrites(resource, this.database.now, issuedAt),
        `P3: a credential was issued for ${resource}, which is frozen`,
      );
  }

  /** The lock tables are those of the live leases and of lock delays, and nobody waits whom nothing keeps waiting. */
  private consistent(): void {
    const live = [...this.reference.leases.values()].filter(
      (lease) => lease.state !== 'ended' || underLockDelay(lease),
    );
    const expected = { active: [] as string[], waiting: [] as string[] };
    for (const lease of live) {
      const order = lease.state === 'waiting' ? (lease.waiting?.queuedAt ?? 0) : 0;
      const lines = locksOfLease(lease).map((l) => `${l.mode} ${l.key} ${lease.leaseId} ${lease.runId} ${order}`);
      expected[lease.state === 'waiting' ? 'waiting' : 'active'].push(...lines);
    }
    expectPromise(
      ordered(locksIn(this.reference.held)) === ordered(expected.active.sort()) &&
        ordered(locksIn(this.reference.queued)) === ordered(expected.waiting.sort()),
      'P1: the lock tables are not those of the live leases',
    );
    const { admissions, map, doubted } = this.reference;
    const kept = [...admissions.values()]
      .filter(isInDoubt)
      .flatMap((one) => locksOfDoubt(map, one).map((l) => `${l.mode} ${l.key} ${one.admissionId} ${one.runId} 0`));
    expectPromise(ordered(locksIn(doubted)) === ordered(kept.sort()), 'R4: what is in doubt does not keep its locks');
    for (const lease of live) if (lease.state === 'waiting') this.keptWaiting(lease);
  }

  private keptWaiting(lease: Lease): void {
    const { held, queued, doubted } = this.reference;
    // One whose set has its start ahead may wait for that alone; it is granted when somebody looks.
    if (lease.request?.resourceSet === 'soon') return;
    if (this.auditor.facts.isFrozen(lease)) return;
    const place = lease.waiting?.queuedAt ?? 0;
    for (const { key, mode } of locksOfLease(lease)) {
      for (const other of INCOMPATIBLE[mode]) {
        for (const { runId, leaseId } of held[other].holders(key))
          if (runId !== lease.runId && !isPartOf(this.reference, lease, leaseId)) return;
        for (const _ of doubted[other].holders(key)) return;
        if (lease.delegatedFrom !== '') continue;
        for (const { runId, order } of queued[other].holders(key)) if (runId !== lease.runId && order < place) return;
      }
    }
    throw new Violation(`P9: ${lease.leaseId} waits although nobody is in its way`);
  }

  /** P7: at one revision every replica has one state. */
  compare(replica: SimReplica): void {
    const { state } = replica.log;
    if (this.options.sabotage === 'stale_head') return;
    const expected = this.digests[state.revision];
    if (expected === undefined)
      throw new Violation(`P7: ${replica.name} is at revision ${state.revision}, which is not in the log`);
    const actual = digestOf(state);
    if (actual !== expected) {
      throw new Violation(
        `P7: ${replica.name} has another state at revision ${state.revision}:\n${actual}\n${expected}`,
      );
    }
  }

  private replay(): void {
    const state = emptyState(NAMESPACE);
    for (const record of this.database.log) evolve(state, decodeEvent(record), record.revision);
    const same = digestOf(state) === digestOf(this.reference);
    expectPromise(same, 'P7: the log read from its beginning gives another state');
  }

  /** P8: what is acknowledged is in the log. */
  acknowledged(batchId: string): void {
    expectPromise(this.database.batches.has(batchId), 'P8: an append was acknowledged that had not happened');
  }

  lookUp(before: Command['loaded'], error: unknown): Command['loaded'] {
    const wanted = (error as NeedsLoad).wanted as NeedsLoad['wanted'] | undefined;
    if (wanted === undefined) throw error;
    this.count('look-up');
    const { leaseId, leaseIds = [], runId, runIds = [], key, admissionId, check } = wanted;
    const askedRuns = runId === undefined ? runIds : [...runIds, runId];
    const { runs, keys } = before;
    const leases = new Map(before.leases);
    for (const asked of leaseId === undefined ? leaseIds : [leaseId, ...leaseIds]) {
      leases.set(asked, this.database.leases.get(asked) ?? null);
    }
    const id = key === undefined ? '' : bindingId(key.scope, key.key);
    const ofCheck = [...this.database.admissions.values()].filter(
      (admission) => check !== undefined && checkId(admission) === checkId(check),
    );
    const admissions = new Map(before.admissions);
    for (const admission of ofCheck) admissions.set(admission.admissionId, admission);
    if (admissionId !== undefined) admissions.set(admissionId, this.database.admissions.get(admissionId) ?? null);
    const ids = ofCheck.map((admission) => admission.admissionId);
    return {
      admissions,
      checks: check === undefined ? before.checks : new Map(before.checks).set(checkId(check), ids),
      leases,
      runs: new Map([...runs, ...askedRuns.map((id) => [id, this.database.runs.get(id) ?? null] as const)]),
      keys: key === undefined ? keys : new Map(keys).set(id, this.database.keys.get(id) ?? null),
    };
  }

  // ---------------------------------------------------------------------------------------------------- replicas

  private moveReplicas(): void {
    const replica = this.draw.pick(this.replicas);
    // A process that was stopped goes on some time.
    if (replica?.paused && this.draw.chance(8)) replica.paused = false;
    if (replica === undefined || replica.paused) return;
    switch (this.draw.int(8)) {
      case 0:
        replica.follow();
        return;
      case 1:
        this.background(replica, decideSweep);
        return;
      case 2:
        this.keepAttached(replica);
        return;
      case 3:
        this.hangUp(replica);
        return;
      default:
        replica.step();
    }
  }

  private background(replica: SimReplica, decide: (decision: Decision) => unknown): void {
    replica.submit(this.command('system', decide, { answered: () => undefined, failed: () => undefined }));
  }

  private keepAttached(replica: SimReplica): void {
    const attachments: Attachment[] = [...replica.attachments].map(([leaseId, attachment]) => ({
      leaseId,
      attachment,
      attached: true,
    }));
    this.background(replica, (decision) => decideAttach(decision, attachments));
  }

  /** A client has gone, or its call was answered `waiting`: it will call again, or not. */
  private hangUp(replica: SimReplica): void {
    const [leaseId, attachment] = this.draw.pick([...replica.attachments]) ?? [];
    if (leaseId === undefined || attachment === undefined) return;
    replica.attachments.delete(leaseId);
    this.background(replica, (decision) => decideAttach(decision, [{ leaseId, attachment, attached: false }]));
  }

  private disturb(): void {
    const replica = this.draw.pick(this.replicas);
    if (replica === undefined) return;
    switch (this.draw.int(8)) {
      case 0:
      case 1:
      case 2:
        if (!replica.paused) this.count('pause');
        replica.paused = !replica.paused && this.draw.chance(70);
        return;
      case 3:
        replica.restart();
        this.count('restart');
        return;
      default: {
        const statement = this.draw.pick(this.network.filter((candidate) => !candidate.abandoned));
        if (statement === undefined) return;
        // Its answer is lost, or it is delayed on its way; now and then it never comes at all.
        statement.abandoned = true;
        if (statement.result === null && this.draw.chance(30)) this.network.splice(this.network.indexOf(statement), 1);
        statement.sender.lost();
        this.count('lost reply');
      }
    }
  }

  private drain(): void {
    for (let rounds = 0; rounds < 10_000; rounds += 1) {
      // A batch that relied on a time a little ahead of the database's waits for that time.
      this.database.now += MILLISECOND;
      this.monotonic += MILLISECOND;
      const statement = this.network[0];
      if (statement?.result === null) this.carryOut(statement);
      else if (statement !== undefined) this.answer(statement);
      let busy = statement !== undefined;
      for (const replica of this.replicas) {
        if (replica.underway === null && replica.queue.length === 0) continue;
        busy = true;
        replica.step();
      }
      if (!busy) return;
    }
    throw new Violation('P8: the replicas never come to rest');
  }

  // ---------------------------------------------------------------------------------------------------- clients

  private fresh(prefix: string): string {
    this.made += 1;
    return `${prefix}-${this.made}`;
  }

  count(what: string): void {
    this.happened.set(what, (this.happened.get(what) ?? 0) + 1);
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
    this.digests[0] = digestOf(base);
    const sender = undefined as unknown as SimReplica;
    this.carryOut({ batch, sender, result: null, abandoned: true });
  }

  private command<R>(
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

  /** A client calls some replica. A paused one takes the call, and does nothing about it. */
  private call(): void {
    const working = this.workers.filter((worker) => this.auditor.facts.runs.get(worker.runId)?.ended === false);
    const worker = this.draw.pick(this.draw.chance(90) ? working : this.workers);
    const replica = this.draw.pick(this.replicas);
    if (replica === undefined) return;
    const what = this.draw.int(100);
    if (worker === undefined || what >= 97) {
      if (working.length < 5) this.createRun((5 + this.draw.int(90)) * SECOND);
    } else if (what < 36) this.acquire(worker, replica);
    else if (what < 37) this.freezeOrThaw(replica);
    else if (what < 46) this.renew(worker, replica);
    else if (what < 51) this.release(worker, replica);
    else if (what < 54) this.amend(worker, replica);
    else if (what < 60) this.issue(worker, replica);
    else if (what < 62) this.revokeCredentials(worker, replica);
    else if (what < 73) this.check(worker, replica);
    else if (what < 82) this.admit(worker, replica);
    else if (what < 88) this.report(replica);
    else if (what < 89) this.settle(this.draw.pick([...this.auditor.facts.openWrites.keys()]), replica);
    else if (what < 90) this.revoke(replica);
    else if (what < 91) this.takeOver(worker, replica);
    else if (what < 92) this.stop(worker, this.draw.chance(50), replica);
    else if (what < 94) this.update(worker, replica);
    else if (what < 95) this.freezeOrThaw(replica);
    else this.changeMap(replica);
  }

  private createRun(authority: Micros): void {
    const parents = this.workers.filter(
      ({ runId, made }) => made && this.auditor.facts.runs.get(runId)?.ended === false,
    );
    const parent = this.draw.chance(50) ? this.draw.pick(parents) : undefined;
    const worker: Worker = {
      runId: this.fresh('run'),
      parent,
      principal: parent?.principal ?? `p${this.workers.length}`,
      asked: [],
      amended: [],
      told: new Map(),
      credentials: [],
      made: false,
    };
    const latest = this.auditor.facts.runs.get(parent?.runId ?? '')?.authorityEndsAt ?? Number.POSITIVE_INFINITY;
    const authorityEndsAt = Math.min(this.database.now + authority, latest);
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
    this.workers.push(worker);
    (this.draw.pick(this.replicas) as SimReplica).submit(
      this.command(worker.principal, (decision) => decideCreateRun(decision, command), then),
    );
  }

  private request(): RequestedEntry[] {
    const entries: RequestedEntry[] = [];
    const makes = [leased, leased, optimistic, optimistic, stable, read];
    for (let count = 1 + this.draw.int(2); count > 0; count -= 1) {
      const make = this.draw.pick(makes) as typeof leased;
      entries.push(make(this.draw.pick(PATHS) as string));
    }
    return entries;
  }

  /** A lease of its run's parent, mostly one that lives. */
  private wholeFor({ parent }: Worker): Lease | undefined {
    const told = [...(parent?.told.values() ?? [])];
    const live = told.filter(({ leaseId }) => this.auditor.facts.isLive(leaseId, this.database.now));
    return this.draw.pick(live.length > 0 ? live : told);
  }

  /** Some of a lease, or a little less or more than that. */
  private partOf(whole: Lease | undefined): RequestedEntry[] | undefined {
    const entry = this.draw.pick(whole?.entries.filter(({ impliedBy }) => impliedBy === '') ?? []);
    if (entry === undefined) return undefined;
    const { resource, scope, access, actions } = entry;
    const below = scope === 'subtree' && this.draw.chance(60);
    const path = `${resource}${below ? this.draw.pick(['/a', '/b', '/a/key']) : scope === 'subtree' ? '/' : ''}`;
    if (this.draw.chance(20)) return [(this.draw.pick([leased, stable, read]) as typeof read)(path)];
    return [{ ...read(path), access, actions }];
  }

  private acquire(worker: Worker, replica: SimReplica): void {
    const again = this.draw.chance(35) ? this.draw.pick(worker.asked) : undefined;
    let asked = again;
    if (asked === undefined) {
      const resourceSet = this.draw.chance(6) ? 'soon' : null;
      const whole = resourceSet === null && this.draw.chance(60) ? this.wholeFor(worker) : undefined;
      const entries = resourceSet === null ? (this.partOf(whole) ?? this.request()) : [];
      const ttl = this.draw.chance(50) ? null : (1 + this.draw.int(20)) * SECOND;
      const key = this.fresh('key');
      asked = {
        leaseId: null,
        command: {
          principal: worker.principal,
          maxLiveLeases: null,
          runId: worker.runId,
          request: { entries, task: null, resourceSet },
          delegatedFrom: whole?.leaseId ?? '',
          ttl,
          wait: this.draw.chance(60) ? this.draw.int(20) * SECOND : 0,
          idempotencyKey: key,
          fingerprint: JSON.stringify([entries, resourceSet, ttl, whole?.leaseId]),
          purpose: '',
          requestIds: [],
          callId: '',
          freshLeaseId: this.fresh('lease'),
        },
      };
      worker.asked.push(asked);
    }
    // A retry is the same request; now and then somebody uses the key for another one.
    const other = again !== undefined && this.draw.chance(5);
    const command: AcquireCommand = {
      ...asked.command,
      freshLeaseId: this.fresh('lease'),
      ...(other && { fingerprint: `${asked.command.fingerprint} changed` }),
    };
    const bound = this.auditor.facts.keys.get(bindingId(`run:${worker.runId}`, command.idempotencyKey));
    const call = asked;
    replica.submit(
      this.command(
        worker.principal,
        (decision) => {
          const decided = decideAcquire(decision, command);
          return { decided, lease: decided.kind === 'refusal' ? undefined : decision.lease(decided.leaseId) };
        },
        {
          answered: ({ decided, lease }) => this.acquired(worker, replica, call, command, decided, lease, bound),
          failed: (error) => {
            if (!(error instanceof Fault) || error.reason !== 'IDEMPOTENCY_KEY_REUSED') return;
            const now = this.auditor.facts.keys.get(bindingId(`run:${worker.runId}`, command.idempotencyKey));
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
    this.count(part + (decided.kind === 'refusal' ? `refused ${decided.refusal.kind}` : decided.kind));
    const bound = this.auditor.facts.keys.get(bindingId(`run:${worker.runId}`, key));
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
    const known = this.auditor.facts.leases.get(boundBefore.leaseId);
    expectPromise(known?.grantedAt == null, `P6: the key ${key} was granted, but its retry was refused as ${kind}`);
  }

  /** One that the worker was told of, mostly one that it may think live. */
  private someLease(worker: Worker): Lease | undefined {
    const told = [...worker.told.values()];
    const live = told.filter((lease) => this.auditor.facts.isLive(lease.leaseId, this.database.now));
    return this.draw.pick(live.length > 0 && this.draw.chance(75) ? live : told.slice(-6));
  }

  private renew(worker: Worker, replica: SimReplica): void {
    const lease = this.someLease(worker);
    if (lease === undefined) return;
    const ttl = this.draw.chance(70) ? null : (1 + this.draw.int(20)) * SECOND;
    const progressMarker = this.draw.chance(50) ? `${this.draw.int(5)}` : null;
    const command = {
      principal: worker.principal,
      runId: worker.runId,
      renewals: [{ leaseId: lease.leaseId, ttl, progressMarker }],
      requestIds: [],
    };
    replica.submit(
      this.command(
        worker.principal,
        (decision) => ({ results: decideRenew(decision, command), now: decision.state.leases.get(lease.leaseId) }),
        {
          answered: ({ results: [result], now }) => {
            this.count(`renewal ${result?.refusal?.kind ?? 'ok'}`);
            if (result?.refusal === null && now !== undefined) worker.told.set(now.leaseId, now);
          },
          failed: () => undefined,
        },
      ),
    );
  }

  /** Mostly of what the lease covers; now and then a change that was asked for before, perhaps by another replica (P6). */
  private amend(worker: Worker, replica: SimReplica): void {
    const again = this.draw.chance(30) ? this.draw.pick(worker.amended) : undefined;
    const lease = this.someLease(worker);
    const asked =
      again ?? (lease === undefined ? undefined : { command: this.amendment(worker, lease), effectiveAt: null });
    if (asked === undefined) return;
    if (again === undefined) worker.amended.push(asked);
    const { command } = asked;
    replica.submit(
      this.command(
        worker.principal,
        (decision) => {
          const decided = decideAmend(decision, command);
          return { decided, lease: decision.lease(command.leaseId) };
        },
        {
          answered: ({ decided, lease: after }) => {
            this.count(decided.kind === 'refusal' ? `amendment ${decided.refusal.kind}` : 'amended');
            if (decided.kind === 'refusal' || after === undefined) return;
            const { effectiveAt } = decided;
            const bound = this.auditor.facts.keys.get(bindingId(`run:${worker.runId}`, command.idempotencyKey));
            expectPromise(bound?.leaseId === command.leaseId, 'P6: an amendment was answered that is not in the log');
            expectPromise(
              asked.effectiveAt === null || asked.effectiveAt === effectiveAt,
              `P6: the key ${command.idempotencyKey} was answered with two times`,
            );
            asked.effectiveAt = effectiveAt;
            worker.told.set(after.leaseId, after);
          },
          failed: (error) => this.count(`amendment ${error instanceof Fault ? error.reason : 'lost'}`),
        },
      ),
    );
  }

  private amendment(worker: Worker, lease: Lease): AmendCommand {
    const held = lease.entries.filter(({ impliedBy }) => impliedBy === '');
    const some = () => this.draw.pick(held);
    const removed = this.draw.chance(50) ? some()?.resource : undefined;
    const lessened = this.draw.chance(40) ? some() : undefined;
    const makes = [optimistic, stable, read];
    const downgrade =
      lessened === undefined || lessened.resource === removed
        ? []
        : [(this.draw.pick(makes) as typeof read)(`${lessened.resource}${this.draw.chance(30) ? '/' : ''}`)];
    const request = {
      add: this.draw.chance(60) ? this.request() : [],
      remove: removed === undefined ? [] : [removed],
      downgrade,
    };
    return {
      principal: worker.principal,
      runId: worker.runId,
      leaseId: lease.leaseId,
      request,
      idempotencyKey: this.fresh('amend'),
      fingerprint: JSON.stringify([lease.leaseId, request]),
      requestIds: [],
      callId: '',
    };
  }

  private release(worker: Worker, replica: SimReplica): void {
    const lease = this.someLease(this.draw.chance(8) ? (this.draw.pick(this.workers) ?? worker) : worker);
    const byKey = this.draw.chance(30) ? this.draw.pick(worker.asked) : undefined;
    if (byKey === undefined && lease === undefined) return;
    const acquireKey = byKey?.command.idempotencyKey ?? null;
    const leaseId = acquireKey === null ? (lease?.leaseId ?? '') : null;
    const command = { principal: worker.principal, runId: worker.runId, leaseId, acquireKey, requestIds: [] };
    replica.submit(
      this.command(worker.principal, (decision) => decideRelease(decision, command), {
        answered: ({ outcome, effectiveAt }) => {
          this.count(`release ${outcome}`);
          const released =
            leaseId ?? this.auditor.facts.keys.get(bindingId(`run:${worker.runId}`, acquireKey ?? ''))?.leaseId;
          if (released !== undefined && released !== '') this.endAnswered(released, worker.runId, effectiveAt);
        },
        failed: (error) => {
          if (!(error instanceof Fault) || error.reason !== 'LEASE_NOT_FOUND') return;
          const known = this.auditor.facts.leases.get(leaseId ?? '');
          expectPromise(known?.runId !== worker.runId, 'F16: a run was told that its own lease is not there');
        },
      }),
    );
  }

  private endAnswered(leaseId: string, runId: string | null, inForceAt: Micros): void {
    const lease = this.auditor.facts.leases.get(leaseId);
    expectPromise(lease?.state === 'ended', `P8: the end of ${leaseId} was answered, but it has not ended`);
    expectPromise(runId === null || lease.runId === runId, `F16: ${leaseId} of another run was released`);
    const accepted = this.auditor.facts.acceptedUntil(leaseId);
    expectPromise(
      accepted <= inForceAt,
      `P3: ${leaseId} is accepted until ${accepted}, but its end in force at ${inForceAt}`,
    );
    if (!this.ends.has(leaseId)) this.ends.set(leaseId, this.steps);
  }

  private revoke(replica: SimReplica): void {
    const lease = this.draw.pick([...this.auditor.facts.leases.values()].slice(-10));
    if (lease === undefined) return;
    const command = { leaseId: lease.leaseId, reason: 'sim', requestIds: [] };
    replica.submit(
      this.command('operator', (decision) => decideRevoke(decision, command), {
        answered: (end) => this.endAnswered(lease.leaseId, null, end.effectiveAt),
        failed: () => undefined,
      }),
    );
  }

  private freezeOrThaw(replica: SimReplica): void {
    const frozen = this.draw.pick([...this.auditor.facts.freezes.keys()]);
    if (frozen !== undefined && this.draw.chance(60)) {
      this.thaw(this.draw.chance(90) ? frozen : 'cfg/b', replica);
      return;
    }
    const scope = this.draw.chance(70) ? ('subtree' as const) : ('exact' as const);
    const deniesChecks = this.draw.chance(50);
    const until = this.draw.chance(50) ? null : this.database.now + (1 + this.draw.int(10)) * SECOND;
    const pattern = (this.draw.chance(15) ? frozen : this.draw.pick(FREEZABLE)) ?? 'svc/a';
    const command = { pattern, scope, deniesChecks, until, reason: 'sim', requestIds: [] };
    replica.submit(
      this.command('operator', (decision) => decideFreeze(decision, command), {
        answered: ({ outcome }) => this.count(`freeze ${outcome}`),
        failed: () => undefined,
      }),
    );
  }

  private thaw(pattern: string, replica: SimReplica): void {
    const command = { pattern, reason: 'sim', requestIds: [] };
    replica.submit(
      this.command('operator', (decision) => decideThaw(decision, command), {
        answered: ({ outcome, granted }) => this.count(granted > 0 ? 'thaw grants' : `thaw ${outcome}`),
        failed: () => undefined,
      }),
    );
  }

  /** An operator's; now and then the same again, as if its answer had been lost. */
  private takeOver(worker: Worker, replica: SimReplica): void {
    const again = this.draw.chance(25) ? this.draw.pick(this.takeOvers) : undefined;
    const asked = again ?? { command: this.takeOverCommand(worker), leaseId: null };
    if (again === undefined) this.takeOvers.push(asked);
    const command = { ...asked.command, freshLeaseId: this.fresh('lease') };
    replica.submit(
      this.command(
        'operator',
        (decision) => {
          const { decided, ended } = decideTakeOver(decision, command);
          const lease = decided.kind === 'refusal' ? undefined : decision.lease(decided.leaseId);
          return { decided, lease, ends: ended.map((one) => [one.leaseId, effectiveAt(one)] as const) };
        },
        {
          answered: ({ decided, lease, ends }) => {
            const how = command.acceptsOverlap && decided.kind === 'lease' ? 'with overlap' : decided.kind;
            this.count(`take-over ${decided.kind === 'refusal' ? `refused ${decided.refusal.kind}` : how}`);
            if (ends.length > 0) this.count('take-over ends');
            for (const [leaseId, inForceAt] of ends) this.endAnswered(leaseId, null, inForceAt);
            if (decided.kind === 'refusal') return;
            const { leaseId } = decided;
            expectPromise((asked.leaseId ?? leaseId) === leaseId, 'P6: one take-over was answered with two leases');
            asked.leaseId = leaseId;
            const holder = this.workers.find(({ runId }) => runId === command.runId);
            if (lease !== undefined) holder?.told.set(leaseId, lease);
            if (decided.kind === 'waiting') replica.attachments.set(leaseId, decided.attachment);
          },
          failed: () => undefined,
        },
      ),
    );
  }

  private takeOverCommand({ runId }: Worker): TakeOverCommand {
    const entries = this.request();
    return {
      runId,
      request: { entries, task: null, resourceSet: null },
      delegatedFrom: '',
      ttl: null,
      wait: this.draw.chance(50) ? this.draw.int(20) * SECOND : 0,
      idempotencyKey: this.fresh('taking'),
      fingerprint: JSON.stringify(entries),
      purpose: '',
      requestIds: [],
      callId: '',
      freshLeaseId: '',
      reason: 'sim',
      acceptsOverlap: this.draw.chance(30),
    };
  }

  private issue(worker: Worker, replica: SimReplica): void {
    const live = [...worker.told.values()].filter(({ expiresAt }) => (expiresAt ?? 0) > this.database.now);
    const lease = this.draw.chance(80) ? this.draw.pick(live) : this.someLease(worker);
    if (lease === undefined) return;
    const command = {
      principal: worker.principal,
      runId: worker.runId,
      leaseId: lease.leaseId,
      wanted: [{ audience: 'target', jti: this.fresh('jti') }],
      boundTo: null,
      // With more there would be hardly any credentials: leases are short here.
      maxClockSkew: 0,
      requestIds: [],
    };
    replica.submit(
      this.command(worker.principal, (decision) => decideIssueCredentials(decision, command), {
        answered: ([decided]) => {
          if (decided?.kind === 'credential') worker.credentials.push(decided.credential);
          this.count(decided?.kind === 'refusal' ? `credential ${decided.refusal.kind}` : 'credential');
        },
        failed: () => undefined,
      }),
    );
  }

  /** Mostly one that has not expired. */
  private someCredential(worker: Worker): NewCredential | undefined {
    const live = worker.credentials.filter(({ expiresAt }) => expiresAt * SECOND > this.database.now);
    return this.draw.pick(live.length > 0 && this.draw.chance(90) ? live : worker.credentials.slice(-2));
  }

  /** Of what the worker was given before it asks for it, nothing counts once that is answered. */
  private revokeCredentials(worker: Worker, replica: SimReplica): void {
    const credential = this.someCredential(worker);
    if (credential === undefined) return;
    const { jti, runId } = credential;
    const leaseId = credential.leaseId ?? '';
    const subject =
      this.draw.pick([
        { kind: 'jti', jti },
        { kind: 'lease', leaseId },
        { kind: 'run', runId },
      ] as const) ?? ({ kind: 'run', runId } as const);
    const out = worker.credentials.filter(
      (one) => subject.kind === 'run' || one.jti === jti || (subject.kind === 'lease' && one.leaseId === leaseId),
    );
    replica.submit(
      this.command(
        'operator',
        (decision) => decideRevokeCredentials(decision, { principal: null, subject, reason: 'sim', requestIds: [] }),
        {
          answered: () => {
            this.count('credentials revoked');
            for (const one of out) if (!this.revoked.has(one.jti)) this.revoked.set(one.jti, this.steps);
            this.checkByCredential(worker, credential, this.draw.pick(this.replicas) ?? replica);
          },
          failed: () => undefined,
        },
      ),
    );
  }

  private stop(worker: Worker, asOperator: boolean, replica: SimReplica = this.replicas[0] as SimReplica): void {
    const { runId } = worker;
    const command = { principal: asOperator ? null : worker.principal, runId, reason: 'sim', requestIds: [] };
    replica.submit(
      this.command('operator', (decision) => decideStopRun(decision, command), {
        answered: (end) => {
          this.count('stop');
          for (const lease of this.auditor.facts.leases.values())
            if (lease.runId === runId) this.endAnswered(lease.leaseId, runId, end.effectiveAt);
        },
        failed: () => undefined,
      }),
    );
  }

  private update(worker: Worker, replica: SimReplica): void {
    const state =
      this.draw.pick(['active', 'active', 'active', 'waiting_for_input', 'blocked', 'finished'] as const) ?? 'active';
    const key = this.fresh('update');
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
        this.command(worker.principal, (decision) => decideUpdateRunState(decision, command), {
          answered: () => this.count(`update ${state}`),
          failed: (error) => {
            // Whoever does not know what came of a call repeats it, on another replica.
            if (error instanceof Crashed && tries > 0) submit(this.draw.pick(this.replicas) as SimReplica, tries - 1);
            if (!(error instanceof Fault) || error.reason !== 'RUN_ENDED') return;
            const bound = this.auditor.facts.keys.has(bindingId(`run:${worker.runId}`, key));
            expectPromise(!bound, 'P6: the retry of a change that happened was refused');
          },
        }),
      );
    submit(replica, 2);
  }

  /** One after another; from the last on, one and another again. */
  private nextMap(version: number): ConflictMapDocument {
    const last = DOCUMENTS.length - 1;
    const at = version <= last ? version : last - ((version - last) % 3);
    return DOCUMENTS[at] as ConflictMapDocument;
  }

  private changeMap(replica: SimReplica): void {
    const at = replica.log.state.mapVersion;
    const document = this.nextMap(at);
    const onLiveConflict = this.draw.pick(['refuse', 'revoke_newer', 'keep_until_end'] as const) ?? 'refuse';
    const command = putMap(document, at, onLiveConflict);
    replica.submit(
      this.command(
        'admin',
        (decision) => decidePutMap(decision, command),
        { answered: () => this.count('map'), failed: (error) => this.count(`map ${(error as Fault).reason}`) },
        true,
      ),
    );
  }

  // ---------------------------------------------------------------------------------------------------- tracked writes

  /** A target checks a tracked write; now and then once more by the same request id, as if the answer had been lost. */
  private admit(worker: Worker, replica: SimReplica): void {
    const again = this.draw.chance(25) ? this.draw.pick([...this.letInBy.values()].slice(-6)) : undefined;
    const live = [...worker.told.values()].filter(({ leaseId }) =>
      this.auditor.facts.isLive(leaseId, this.database.now),
    );
    const lease = again === undefined ? (this.draw.pick(live) ?? this.someLease(worker)) : undefined;
    const entry = this.draw.pick(lease?.entries.filter(({ resource }) => /^(tok|svc|cfg)\//.test(resource)) ?? []);
    if (again === undefined && (lease === undefined || entry === undefined || entry.access !== 'write')) return;
    const requestId = again?.requestId ?? this.fresh('request');
    const leaseId = again?.leaseId ?? lease?.leaseId ?? '';
    const write: ProtectedWrite = again?.write ?? {
      resource: entry?.resource ?? '',
      action: entry?.actions[0] ?? '',
      token: entry?.token ?? 0,
      observedVersion: '1',
    };
    const check = { leaseId, credential: null, presenterRunId: '', writes: [write], startedAt: this.steps };
    const freshAdmissionId = this.fresh('admission');
    replica.submit(
      this.command(
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
            if (typeof answer === 'string') this.count(`tracked check ${answer}`);
            else this.admitted({ admissionId: answer[0] ?? '', leaseId, requestId, write }, again);
          },
          failed: (error) => this.count(`tracked check ${error instanceof Fault ? error.reason : 'lost'}`),
        },
      ),
    );
  }

  private admitted(letIn: LetIn, before: LetIn | undefined): void {
    const { admissionId, requestId } = letIn;
    this.count('tracked check ok');
    expectPromise(
      this.auditor.facts.admitted.has(admissionId),
      `P8: ${admissionId} was answered, and is not in the log`,
    );
    if (before !== undefined && this.auditor.facts.openWrites.has(before.admissionId))
      expectPromise(admissionId === before.admissionId, `R4: one check by ${requestId} has two admissions`);
    this.letInBy.set(requestId, letIn);
    this.underWay.push(letIn);
  }

  /** A target says what became of a write: once, twice, late, or that it does not know; some crash, and never do. */
  private report(replica: SimReplica): void {
    const letIn = this.draw.pick(this.underWay);
    if (letIn === undefined) return;
    const { admissionId, leaseId, requestId, write } = letIn;
    if (this.draw.chance(50)) this.underWay.splice(this.underWay.indexOf(letIn), 1);
    if (this.draw.chance(20)) return;
    const result: WriteResult =
      this.draw.pick(['succeeded', 'succeeded', 'succeeded', 'failed', 'unknown'] as const) ?? 'succeeded';
    const byCheck = this.draw.chance(50);
    const { resource, action } = write;
    const told = {
      ...{ admissionId: byCheck ? '' : admissionId, resource, action, result, field: 'writes[0]' },
      ...{ observedVersion: null, newVersion: '2', changedFields: [] },
    };
    const command = { target: 'target', leaseId, requestId, detail: '', writes: [told], requestIds: [] };
    replica.submit(
      this.command('target', (decision) => decideReportWrites(decision, command), {
        answered: ([outcome]) => {
          this.count(`report ${outcome} ${result}`);
          // By its check alone a report may be about a later attempt of the same request id.
          if (!byCheck && result !== 'unknown')
            expectPromise(
              !this.auditor.facts.openWrites.has(admissionId),
              `R4: ${admissionId} was reported, and is open`,
            );
        },
        failed: (error) => this.count(`report ${error instanceof Fault ? error.reason : 'lost'}`),
      }),
    );
  }

  private settle(admissionId: string | undefined, replica: SimReplica = this.replicas[0] as SimReplica): void {
    if (admissionId === undefined) return;
    const command = { admissionId, happened: this.draw.chance(50), newVersion: null, reason: 'sim', requestIds: [] };
    replica.submit(
      this.command('operator', (decision) => decideSettleInDoubt(decision, command), {
        answered: ({ settledNow }) => {
          this.count(settledNow ? 'settled' : 'settled before');
          expectPromise(!this.auditor.facts.openWrites.has(admissionId), `R4: ${admissionId} was settled, and is open`);
        },
        failed: (error) => this.count(`settle ${error instanceof Fault ? error.reason : 'lost'}`),
      }),
    );
  }

  // ---------------------------------------------------------------------------------------------------- checks

  private check(worker: Worker, replica: SimReplica): void {
    const credential = this.draw.chance(50) ? this.someCredential(worker) : undefined;
    if (credential !== undefined) {
      this.checkByCredential(worker, credential, replica);
      return;
    }
    const lease = this.someLease(worker);
    if (lease === undefined) return;
    const entry = this.draw.pick(lease.entries.filter((candidate) => candidate.access === 'write')) ?? lease.entries[0];
    if (entry === undefined) return;
    const presenter = this.draw.chance(10) ? (this.draw.pick(this.workers) ?? worker) : worker;
    const below = entry.scope === 'subtree' && this.draw.chance(50) ? '/x' : '';
    const write: ProtectedWrite = {
      resource: this.draw.chance(10) ? (this.draw.pick(UNIVERSE) as string) : `${entry.resource}${below}`,
      action: this.draw.chance(10) ? 'nothing' : (entry.actions[0] ?? 'replace'),
      token: this.draw.chance(10) ? entry.token - this.draw.int(3) : entry.token,
      observedVersion: this.draw.chance(80) ? '1' : null,
    };
    replica.checks.push({
      leaseId: lease.leaseId,
      credential: null,
      presenterRunId: presenter.runId,
      writes: [write],
      startedAt: this.steps,
      gate: null,
      live: false,
      lease: undefined,
    });
  }

  private checkByCredential(worker: Worker, credential: NewCredential, replica: SimReplica): void {
    const grant = this.draw.pick(credential.scope.grants);
    const resource = this.draw.pick(grant?.resources ?? []);
    if (grant === undefined || resource === undefined) return;
    const write: ProtectedWrite = {
      resource,
      action: grant.actions[0] ?? '',
      token: grant.token,
      observedVersion: '1',
    };
    replica.checks.push({
      leaseId: credential.leaseId ?? '',
      credential,
      presenterRunId: worker.runId,
      writes: [write],
      startedAt: this.steps,
      gate: null,
      live: false,
      lease: undefined,
    });
  }

  /** What is said of the credential itself is true. */
  private credentialChecked({ credential, gate, startedAt }: Check, reason: string): void {
    if (credential === null || gate === null) return;
    const end = credential.expiresAt * SECOND;
    // Later events than the gate saw may be known by the time of the answer.
    if (reason === 'credential_expired')
      expectPromise(
        end <= Math.max(this.database.now, this.reference.time),
        'P8: a credential was denied as expired before its end',
      );
    if (reason !== 'ok') return;
    expectPromise(end > gate.now, 'P10: a credential was allowed past its end');
    const revoked = this.revoked.get(credential.jti) ?? Number.POSITIVE_INFINITY;
    expectPromise(revoked >= startedAt, 'P3: a credential was allowed after its revocation had been answered');
  }

  private moveChecks(): void {
    for (let moves = 1 + this.draw.int(4); moves > 0; moves -= 1) {
      const replica = this.draw.pick(this.replicas.filter((candidate) => candidate.checks.length > 0));
      const check = replica === undefined ? undefined : this.draw.pick(replica.checks);
      if (replica === undefined || check === undefined) return;
      if (check.gate === null) {
        // The read-index statement was sent by a process that runs, and is carried out.
        if (replica.paused) return;
        check.gate = this.database.gate();
        check.live = this.auditor.facts.isLive(check.leaseId, this.database.now);
        check.lease = this.auditor.facts.leases.get(check.leaseId);
      } else if (!replica.paused) {
        replica.checks.splice(replica.checks.indexOf(check), 1);
        this.checked(check, replica.answerCheck(check).verdict);
      }
    }
  }

  private checked(check: Check, verdict: FenceVerdict): void {
    const [write] = check.writes;
    const [result] = verdict.results;
    if (write === undefined || result === undefined) throw new Error('one write, one verdict');
    this.count(`check ${result.reason}`);
    this.credentialChecked(check, result.reason);
    if (/^credential_/.test(result.reason)) return;
    const { leaseId, presenterRunId } = check;
    const enforced = result.reason === 'ok';
    if (result.reason === 'in_doubt') return;
    // The answer is that of the whole log up to now, at the time of the gate or of its last event.
    const isFrozen = this.auditor.facts.deniesWrites(
      write.resource,
      Math.max(check.gate?.now ?? 0, this.reference.time),
    );
    if (result.reason === 'frozen') {
      expectPromise(isFrozen, `P8: a write to ${write.resource} was denied as frozen, and it is not`);
      return;
    }
    if (enforced) expectPromise(!isFrozen, `P3: a write to ${write.resource} was allowed, which is frozen for writes`);
    if (!enforced && result.allowed) {
      expectPromise(write.resource.startsWith('obs'), `C14: a write to ${write.resource} was allowed as only observed`);
      return;
    }
    const covered = (lease: Audited | undefined): boolean =>
      mayWrite(lease === undefined ? undefined : { ...lease, live: true }, presenterRunId, write);
    if (enforced) {
      expectPromise(check.live, `P3: a write was allowed on ${leaseId}, which was not live when the check was decided`);
      const ended = this.ends.get(leaseId) ?? Number.POSITIVE_INFINITY;
      expectPromise(ended >= check.startedAt, `P3: a write was allowed on ${leaseId} after its end had been answered`);
      expectPromise(
        covered(check.lease),
        `P4: a write to ${write.resource} was allowed on ${leaseId}, which does not cover it`,
      );
      return;
    }
    const now = this.auditor.facts.leases.get(leaseId);
    const live = check.live && now !== undefined && this.auditor.facts.isLive(leaseId, this.database.now + SECOND);
    const denied = live && covered(check.lease) && covered(now) && overAt(now) > this.reference.time;
    expectPromise(
      !denied,
      `P8: a write to ${write.resource} was denied as ${result.reason} although ${leaseId} covers it`,
    );
  }
}

function putMap(document: ConflictMapDocument, expectedVersion: number, onLiveConflict: OnLiveConflict) {
  return {
    text: '',
    document,
    reexpansion: new Reexpansion(compileStored(document)),
    expectedVersion,
    reason: '',
    onLiveConflict,
    requestIds: [],
  };
}

function expectPromise(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Violation(what);
}

/** Runs a world for as many steps as there are numbers, and to its rest. */
export function simulate(numbers: readonly number[], options: SimulationOptions = {}): Simulation {
  const world = new Simulation(options);
  for (const number of numbers) world.step(number);
  world.finish();
  return world;
}
