import { type Admission, isOpen } from '../../src/domain/admission.js';
import type { AmendRequest } from '../../src/domain/amendment.js';
import { checkFence } from '../../src/domain/check-fence.js';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import {
  type ConflictMap,
  compileConflictMap,
  observes,
  resolveResource,
} from '../../src/domain/conflict-map/index.js';
import {
  type AcquireCommand,
  type AcquireDecision,
  decideAcquire,
  describeWaiting,
  previewAcquire,
} from '../../src/domain/decide/acquire.js';
import { decideAdmitWrites } from '../../src/domain/decide/admit-writes.js';
import { type AmendCommand, type AmendDecision, decideAmend } from '../../src/domain/decide/amend.js';
import {
  type Bounds,
  DEFAULT_BOUNDS,
  Decision,
  type LoadedRecords,
  NOTHING_LOADED,
} from '../../src/domain/decide/decision.js';
import { decideFreeze, decideThaw, type FreezeDecision, type ThawDecision } from '../../src/domain/decide/freezes.js';
import { decideIssueCredentials, type IssueDecision } from '../../src/domain/decide/issue-credentials.js';
import { decidePutMap, type OnLiveConflict, type PutMapDecision } from '../../src/domain/decide/put-map.js';
import { Reexpansion } from '../../src/domain/decide/reexpansion.js';
import { decideRelease, decideRevoke, type ReleaseDecision } from '../../src/domain/decide/release.js';
import { decideRenew, type RenewDecision } from '../../src/domain/decide/renew.js';
import { decideReportWrites, type ReportOutcome, type ToldWrite } from '../../src/domain/decide/report-writes.js';
import { decideCreateRun, decideStopRun, decideUpdateRunState } from '../../src/domain/decide/runs.js';
import { decideSettleInDoubt } from '../../src/domain/decide/settle-in-doubt.js';
import { decideTakeOver, previewTakeOver, type TakeOverDecision } from '../../src/domain/decide/take-over.js';
import { decideIdentify, decideSweep } from '../../src/domain/decide/upkeep.js';
import { isResourceInDoubt } from '../../src/domain/doubt.js';
import type { Allowance, RequestedEntry, WriteSetRequest } from '../../src/domain/entry.js';
import type { DatabaseIdentity, DomainEvent, EventBody, EventKind } from '../../src/domain/event.js';
import type { FenceVerdict, ProtectedWrite } from '../../src/domain/fence.js';
import { deniesWrites } from '../../src/domain/freeze.js';
import { type Lease, underLockDelay } from '../../src/domain/lease.js';
import { MODES } from '../../src/domain/modes.js';
import type { Refusal } from '../../src/domain/refusal.js';
import type { Run } from '../../src/domain/run.js';
import { emptyState, overlay, type State } from '../../src/domain/state.js';
import { type Micros, SECOND } from '../../src/domain/time.js';

/** Builders for tests of the pure core: a namespace in memory, commands in a line each, time by hand. */

/** 2026-01-01T00:00:00Z: where the clock of every test begins. */
export const START: Micros = 1_767_225_600_000_000;
export const MAX_SKEW: Micros = 3 * SECOND;

// ------------------------------------------------------------------------------------------------------- the map

const ACTIONS = {
  replace: { access: 'write', concurrency: 'lease', change_class: 'shared_pointer' },
  patch: { access: 'write', change_class: 'derived' },
} as const;

/**
 * The map that most tests use: `doc` is enforced and `obs` observed, both may be replaced (leased) or patched
 * (optimistic); `paced` has narrow times; a rule each of `implies` and `conflicts`; an alias, a task and a set.
 */
export const DOCUMENT: ConflictMapDocument = {
  version: 1,
  kinds: [
    { pattern: 'doc/{id...}', actions: ACTIONS },
    { pattern: 'obs/{id...}', mode: 'observe', actions: ACTIONS },
    {
      pattern: 'paced/{id}',
      ttl: 20 * SECOND,
      max_ttl: 40 * SECOND,
      max_hold: 120 * SECOND,
      progress_window: 50 * SECOND,
      actions: ACTIONS,
    },
    { pattern: 'loc/{id...}', validation: 'local', ttl: 300 * SECOND, max_ttl: 600 * SECOND, actions: ACTIONS },
    { pattern: 'deployment/{env}', actions: ACTIONS },
    { pattern: 'image-tag/{env}', actions: { set: { access: 'write', concurrency: 'lease' } } },
    { pattern: 'dns/{env}', actions: ACTIONS },
    { pattern: 'dns/{env}/{record}', actions: ACTIONS },
    { pattern: 'service-token/{tenant}', actions: ACTIONS },
    { pattern: 'integration-config/{tenant}', actions: ACTIONS },
    { pattern: 'obs-config/{tenant}', mode: 'observe', actions: ACTIONS },
  ],
  implies: [
    {
      when: { pattern: 'deployment/{env}', access: 'write' },
      touches: [
        { resource: 'image-tag/{env}', access: 'write', actions: ['set'] },
        { resource: 'dns/{env}', access: 'stable_read', scope: 'subtree' },
      ],
    },
  ],
  conflicts: [
    { between: ['service-token/{tenant}', 'integration-config/{tenant}'], because: 'the config embeds the token' },
    { between: ['service-token/{tenant}', 'obs-config/{tenant}'] },
  ],
  aliases: [{ from: 'arn:doc:{id}', to: 'doc/{id}' }],
  tasks: { edit: { params: ['id'], entries: [{ resource: 'doc/{id}', access: 'write', actions: ['replace'] }] } },
  sets: {
    later: {
      not_before: START + 3_600 * SECOND,
      entries: [{ resource: 'doc/later', access: 'write', actions: ['replace'] }],
    },
    now: { entries: [{ resource: 'doc/set', access: 'write', actions: ['replace'] }] },
  },
};

/** A document compiled, or a failure that says why not. */
export function compiled(document: ConflictMapDocument): ConflictMap {
  const result = compileConflictMap(document);
  if (!result.ok)
    throw new Error(`the test's map is refused: ${result.problems.map((p) => `${p.path} ${p.message}`).join('; ')}`);
  return result.map;
}

// ---------------------------------------------------------------------------------------------------- write sets

/** `doc/a` is EXACT, `doc/a/` is the SUBTREE of `doc/a`. */
function entry(path: string, access: RequestedEntry['access'], actions: readonly string[]): RequestedEntry {
  const subtree = path.endsWith('/');
  return {
    resource: subtree ? path.slice(0, -1) : path,
    access,
    scope: subtree ? 'subtree' : 'exact',
    actions,
    observedVersion: null,
  };
}

/** A leased write: takes X. */
export const leased = (path: string): RequestedEntry => entry(path, 'write', ['replace']);
/** An optimistic write: takes O. */
export const optimistic = (path: string): RequestedEntry => entry(path, 'write', ['patch']);
/** Nobody may change it meanwhile: takes S. */
export const stable = (path: string): RequestedEntry => entry(path, 'stable_read', []);
export const read = (path: string): RequestedEntry => entry(path, 'read', []);

const isList = (request: WriteSetRequest | readonly RequestedEntry[]): request is readonly RequestedEntry[] =>
  Array.isArray(request);

export const writeSet = (...entries: readonly RequestedEntry[]): WriteSetRequest => ({
  entries,
  task: null,
  resourceSet: null,
});

// ---------------------------------------------------------------------------------------------------- the namespace

export interface AcquireOptions {
  readonly ttl?: Micros | null;
  readonly wait?: Micros;
  readonly key?: string;
  readonly purpose?: string;
  readonly fingerprint?: string;
  readonly principal?: string;
  readonly maxLiveLeases?: number;
  /** A part of this lease is asked for. */
  readonly of?: Lease;
}

/** What amend answered, with the lease as it is then. */
export type AmendAnswer = AmendDecision & { readonly lease: Lease };

/** What acquire answered, with the lease it is about, if any. */
export type Answer = AcquireDecision & { readonly lease: Lease | undefined };

export const IDENTITY: DatabaseIdentity = {
  systemIdentifier: '7000000000000000001',
  timeline: 1,
  databaseOid: 16_384,
  eventTableOid: 16_400,
  postmasterStart: START - 3_600 * SECOND,
};

/** One namespace in memory, as one replica that is never contradicted sees it. */
export class Namespace {
  readonly state: State = emptyState('test');
  readonly events: DomainEvent[] = [];
  /** Events of the last command. */
  last: readonly DomainEvent[] = [];
  /** The last command, for what it relied on. */
  decision!: Decision;
  now: Micros = START;
  bounds: Bounds = DEFAULT_BOUNDS;
  loaded: LoadedRecords = NOTHING_LOADED;
  private made = 0;

  constructor(document: ConflictMapDocument | null = DOCUMENT) {
    if (document !== null) this.putMap(document);
  }

  /** Decides on an overlay and commits it, as an append that is acknowledged at once. */
  decide<R>(command: (decision: Decision) => R, actor = 'test'): R {
    const layer = overlay(this.state);
    const decision = new Decision(layer, this.now, actor, this.bounds, this.loaded);
    const value = command(decision);
    layer.commit();
    // Grants of one microsecond are a microsecond apart; the database clock does not stay behind them for long.
    this.now = Math.max(this.now, this.state.time);
    this.decision = decision;
    this.last = decision.events;
    this.events.push(...decision.events);
    return value;
  }

  advance(time: Micros): this {
    this.now += time;
    return this;
  }

  fresh(prefix: string): string {
    this.made += 1;
    return `${prefix}-${this.made}`;
  }

  run(
    runId: string,
    options: Partial<Pick<Run, 'principal' | 'parentRunId' | 'authorityEndsAt' | 'allowed'>> = {},
  ): string {
    this.decide((decision) =>
      decideCreateRun(decision, {
        principal: options.principal ?? `principal-of-${runId}`,
        freshRunId: runId,
        purpose: `purpose of ${runId}`,
        goalRevision: 'goal-1',
        initiator: 'alice',
        initiatorVerified: false,
        parentRunId: options.parentRunId ?? '',
        ceiling: null,
        allowed: options.allowed ?? EVERYTHING,
        authorityEndsAt: options.authorityEndsAt ?? START + 86_400 * SECOND,
        escalation: [],
        idempotencyKey: `create-${runId}`,
        fingerprint: `create-${runId}`,
        requestIds: [],
      }),
    );
    return runId;
  }

  runs(...runIds: readonly string[]): this {
    for (const runId of runIds) this.run(runId);
    return this;
  }

  command(
    runId: string,
    request: WriteSetRequest | readonly RequestedEntry[],
    options: AcquireOptions = {},
  ): AcquireCommand {
    const key = options.key ?? this.fresh('key');
    const asked: WriteSetRequest = isList(request) ? writeSet(...request) : request;
    return {
      principal: options.principal ?? this.state.runs.get(runId)?.principal ?? '',
      maxLiveLeases: options.maxLiveLeases ?? null,
      runId,
      request: asked,
      delegatedFrom: options.of?.leaseId ?? '',
      ttl: options.ttl ?? null,
      wait: options.wait ?? 0,
      idempotencyKey: key,
      fingerprint: options.fingerprint ?? JSON.stringify([asked, options.ttl ?? null, options.purpose ?? '']),
      purpose: options.purpose ?? '',
      requestIds: [],
      callId: '',
      freshLeaseId: this.fresh('lease'),
    };
  }

  acquire(runId: string, request: WriteSetRequest | readonly RequestedEntry[], options: AcquireOptions = {}): Answer {
    const command = this.command(runId, request, options);
    return this.decide((decision) => {
      const decided = decideAcquire(decision, command);
      return { ...decided, lease: decided.kind === 'refusal' ? undefined : decision.lease(decided.leaseId) };
    });
  }

  /** A lease, or a failure that says what came instead. */
  hold(runId: string, ...entries: readonly RequestedEntry[]): Lease {
    return this.granted(this.acquire(runId, entries));
  }

  /** A credential for the lease, by its own run. */
  issue({ runId, leaseId }: Lease): IssueDecision | undefined {
    const issuance = {
      principal: this.principalOf(runId),
      runId,
      leaseId,
      wanted: [{ audience: 'target', jti: this.fresh('jti') }],
      boundTo: null,
      maxClockSkew: this.bounds.maxClockSkew,
      requestIds: [],
    };
    return this.decide((decision) => decideIssueCredentials(decision, issuance))[0];
  }

  granted(answer: Answer): Lease {
    if (answer.kind !== 'lease' || answer.lease === undefined) {
      throw new Error(`no lease, but ${answer.kind}: ${answer.kind === 'refusal' ? answer.refusal.message : ''}`);
    }
    return answer.lease;
  }

  /** What somebody who waits is told. */
  told(waiting: Lease): ReturnType<typeof describeWaiting> {
    return describeWaiting(new Decision(overlay(this.state), this.now, 'test', this.bounds), waiting);
  }

  /** A place in the queue, or a failure that says what came instead. */
  queue(runId: string, ...entries: readonly RequestedEntry[]): Lease {
    return this.waiting(this.acquire(runId, entries, { wait: 600 * SECOND }));
  }

  waiting(answer: Answer): Lease {
    if (answer.kind !== 'waiting' || answer.lease === undefined) {
      throw new Error(`no place, but ${answer.kind}: ${answer.kind === 'refusal' ? answer.refusal.message : ''}`);
    }
    return answer.lease;
  }

  refused(answer: Answer): Refusal {
    if (answer.kind !== 'refusal') throw new Error(`no refusal, but ${answer.kind}`);
    return answer.refusal;
  }

  preview(runId: string, ...entries: readonly RequestedEntry[]): { lease: Lease | null; refusal: Refusal | null } {
    const command = this.command(runId, entries);
    return previewAcquire(new Decision(overlay(this.state), this.now, 'test', this.bounds), command);
  }

  renew(lease: Lease | string, options: { ttl?: Micros; marker?: string; runId?: string } = {}): RenewDecision {
    const leaseId = typeof lease === 'string' ? lease : lease.leaseId;
    const runId = options.runId ?? this.lease(leaseId).runId;
    const wanted = { leaseId, ttl: options.ttl ?? null, progressMarker: options.marker ?? null };
    const results = this.decide((decision) =>
      decideRenew(decision, { principal: this.principalOf(runId), runId, renewals: [wanted], requestIds: [] }),
    );
    return results[0] as RenewDecision;
  }

  amend(
    lease: Lease | string,
    change: Partial<AmendRequest>,
    options: { key?: string; runId?: string; fingerprint?: string } = {},
  ): AmendAnswer {
    const leaseId = typeof lease === 'string' ? lease : lease.leaseId;
    const runId = options.runId ?? this.lease(leaseId).runId;
    const request = { add: [], remove: [], downgrade: [], ...change };
    const command: AmendCommand = {
      principal: this.principalOf(runId),
      runId,
      leaseId,
      request,
      idempotencyKey: options.key ?? this.fresh('amend'),
      fingerprint: options.fingerprint ?? JSON.stringify([leaseId, request]),
      requestIds: [],
      callId: '',
    };
    return this.decide((decision) => {
      const decided = decideAmend(decision, command);
      return { ...decided, lease: decision.lease(leaseId) as Lease };
    });
  }

  /** The lease as amended, or a failure that says what came instead. */
  amended(lease: Lease | string, change: Partial<AmendRequest>): Lease {
    const answer = this.amend(lease, change);
    if (answer.kind === 'refusal') throw new Error(`not amended: ${answer.refusal.message}`);
    return answer.lease;
  }

  release(lease: Lease | string, runId?: string): ReleaseDecision {
    const leaseId = typeof lease === 'string' ? lease : lease.leaseId;
    const own = runId ?? this.lease(leaseId).runId;
    const command = {
      principal: this.principalOf(own),
      runId: own,
      leaseId,
      acquireKey: null,
      requestIds: [],
    };
    return this.decide((decision) => decideRelease(decision, command));
  }

  releaseKey(runId: string, acquireKey: string): ReleaseDecision {
    const command = { principal: this.principalOf(runId), runId, leaseId: null, acquireKey, requestIds: [] };
    return this.decide((decision) => decideRelease(decision, command));
  }

  revoke(lease: Lease, reason = 'because'): ReturnType<typeof decideRevoke> {
    return this.decide((decision) => decideRevoke(decision, { leaseId: lease.leaseId, reason, requestIds: [] }));
  }

  stop(runId: string, reason = 'stop it'): ReturnType<typeof decideStopRun> {
    return this.decide((decision) => decideStopRun(decision, { principal: null, runId, reason, requestIds: [] }));
  }

  update(
    runId: string,
    state: 'active' | 'waiting_for_input' | 'blocked' | 'finished' | 'failed',
    options: { asOperator?: boolean; key?: string; reason?: string } = {},
  ): { effectiveAt: Micros | null } {
    const command = {
      principal: this.principalOf(runId),
      asOperator: options.asOperator ?? false,
      runId,
      state,
      reason: options.reason ?? '',
      idempotencyKey: options.key ?? this.fresh('update'),
      fingerprint: `${runId} ${state}`,
      requestIds: [],
    };
    return this.decide((decision) => decideUpdateRunState(decision, command));
  }

  sweep(): { more: boolean } {
    return this.decide(decideSweep);
  }

  putMap(document: ConflictMapDocument, onLiveConflict: OnLiveConflict = 'refuse'): PutMapDecision {
    const reexpansion = new Reexpansion(compiled(document));
    const expectedVersion = this.state.mapVersion;
    return this.decide((decision) =>
      decidePutMap(decision, {
        text: '',
        document,
        reexpansion,
        expectedVersion,
        reason: 'test',
        onLiveConflict,
        requestIds: [],
      }),
    );
  }

  loseHistory(): void {
    this.decide((decision) =>
      decideIdentify(decision, {
        identity: { ...IDENTITY, systemIdentifier: '7000000000000000002' },
        lostHistory: true,
        why: 'test',
        continuesFrom: { revision: this.state.revision, hash: '' },
      }),
    );
  }

  check(lease: Lease | string, ...writes: readonly Partial<ProtectedWrite>[]): FenceVerdict {
    return this.checkAs('', lease, ...writes);
  }

  checkAs(presenterRunId: string, lease: Lease | string, ...writes: readonly Partial<ProtectedWrite>[]): FenceVerdict {
    const leaseId = typeof lease === 'string' ? lease : lease.leaseId;
    const known = this.state.leases.get(leaseId);
    const { map } = this.state;
    return checkFence(
      {
        now: Math.max(this.now, this.state.time),
        maxClockSkew: MAX_SKEW,
        lease: known,
        run: known === undefined ? undefined : this.state.runs.get(known.runId),
        pathOf: (resource) => {
          const resolved = resolveResource(map, resource);
          return resolved.ok ? resolved.resource : null;
        },
        observes: (resource) => observes(map, resource),
        ownedByCaller: () => true,
        inDoubt: (resource) => isResourceInDoubt(this.state, resource, known),
        frozen: (resource) => deniesWrites(this.state.freezes, resource, Math.max(this.now, this.state.time)),
      },
      { presenterRunId, writes: writes.map((write) => ({ ...defaultWrite(known), ...write })) },
    );
  }

  /** Lets tracked writes of a check in that is allowed; returns their ids. */
  admit(lease: Lease, writes: readonly AdmittedWrite[], options: AdmitOptions = {}): string[] {
    const { requestId = this.fresh('request'), target = 'target' } = options;
    return this.decide((decision) => {
      const run = decision.run(lease.runId);
      if (run === undefined) throw new Error(`there is no run ${lease.runId}`);
      return decideAdmitWrites(decision, {
        lease,
        run,
        target,
        requestId,
        credentialEnds: null,
        writes: writes.map(({ resource, action, observedVersion = null, ...write }, index) => ({
          resource,
          action,
          observedVersion,
          token: write.token || tokenOn(lease, resource),
          field: `writes[${index}]`,
          freshAdmissionId: this.fresh('admission'),
        })),
        requestIds: requestId === '' ? [] : [requestId],
      });
    }, target);
  }

  /** One tracked write of a lease, let in; its record. */
  letIn(lease: Lease, resource: string, action = 'replace', options: AdmitOptions = {}): Admission {
    const [admissionId = ''] = this.admit(lease, [{ resource, action }], options);
    return this.admission(admissionId);
  }

  report(writes: readonly Partial<ToldWrite>[], options: ReportOptions = {}): ReportOutcome[] {
    const { target = 'target', leaseId = '', requestId = '', detail = '' } = options;
    const command = { target, leaseId, requestId, detail, writes: writes.map(told), requestIds: [] };
    return this.decide((decision) => decideReportWrites(decision, command), target);
  }

  settle(admissionId: string, happened: boolean, reason = 'looked'): { readonly settledNow: boolean } {
    const command = { admissionId, happened, newVersion: null, reason, requestIds: [] };
    return this.decide((decision) => decideSettleInDoubt(decision, command), 'operator');
  }

  /** Without waiting, and accepting no overlap, unless told otherwise. */
  takeOver(
    runId: string,
    request: WriteSetRequest | readonly RequestedEntry[],
    options: AcquireOptions & { acceptsOverlap?: boolean; reason?: string } = {},
  ): TakeOverDecision & { readonly lease: Lease | undefined } {
    const { acceptsOverlap = false, reason = 'an emergency' } = options;
    const command = { ...this.command(runId, request, options), acceptsOverlap, reason };
    return this.decide((decision) => {
      const answer = decideTakeOver(decision, command);
      const { decided } = answer;
      return { ...answer, lease: decided.kind === 'refusal' ? undefined : decision.lease(decided.leaseId) };
    }, 'olga');
  }

  previewTakeOver(runId: string, ...entries: readonly RequestedEntry[]): ReturnType<typeof previewTakeOver> {
    const command = { ...this.command(runId, entries), acceptsOverlap: false, reason: '' };
    return previewTakeOver(new Decision(overlay(this.state), this.now, 'olga', this.bounds), command);
  }

  /** A subtree, grants only and until it is thawed, unless told otherwise. */
  freeze(
    pattern: string,
    options: { exact?: boolean; deniesChecks?: boolean; until?: Micros; reason?: string; by?: string } = {},
  ): FreezeDecision {
    const { exact = false, deniesChecks = false, until = null, reason = 'an incident', by = 'olga' } = options;
    const scope = exact ? 'exact' : 'subtree';
    const command = { pattern, scope, deniesChecks, until, reason, requestIds: [] } as const;
    return this.decide((decision) => decideFreeze(decision, command), by);
  }

  thaw(pattern: string, reason = ''): ThawDecision {
    return this.decide((decision) => decideThaw(decision, { pattern, reason, requestIds: [] }), 'olga');
  }

  /** The current record of a tracked write. */
  admission(admissionId: string): Admission {
    const record = this.state.admissions.get(admissionId);
    if (record === undefined) throw new Error(`there is no admission ${admissionId}`);
    return record;
  }

  /** The current record of a lease. */
  lease(lease: Lease | string): Lease {
    const leaseId = typeof lease === 'string' ? lease : lease.leaseId;
    const record = this.state.leases.get(leaseId);
    if (record === undefined) throw new Error(`there is no lease ${leaseId}`);
    return record;
  }

  /** Kinds of the last command's events, in order. */
  get kinds(): EventKind[] {
    return this.last.map((event) => event.body.kind);
  }

  /** All events of a kind, in order. */
  eventsOf<K extends EventKind>(kind: K): (DomainEvent & { readonly body: Extract<EventBody, { kind: K }> })[] {
    return this.events.filter((event) => event.body.kind === kind) as never;
  }

  private principalOf(runId: string): string {
    return this.state.runs.get(runId)?.principal ?? `principal-of-${runId}`;
  }
}

export type AdmittedWrite = Pick<ProtectedWrite, 'resource' | 'action'> & Partial<ProtectedWrite>;

export interface AdmitOptions {
  readonly requestId?: string;
  readonly target?: string;
}

export interface ReportOptions {
  readonly target?: string;
  readonly leaseId?: string;
  readonly requestId?: string;
  readonly detail?: string;
}

/** A report of a write that succeeded, unless said otherwise. */
function told(write: Partial<ToldWrite>, index: number): ToldWrite {
  return {
    admissionId: '',
    resource: '',
    action: '',
    result: 'succeeded',
    observedVersion: null,
    newVersion: null,
    changedFields: [],
    field: `writes[${index}]`,
    ...write,
  };
}

export const EVERYTHING: readonly Allowance[] = [{ pattern: '{any...}', actions: ['*'] }];

/** The first write entry of the lease, presented as its holder would. */
function defaultWrite(lease: Lease | undefined): ProtectedWrite {
  const held = lease?.entries.find((candidate) => candidate.access === 'write');
  return {
    resource: held?.resource ?? 'doc/a',
    action: held?.actions[0] ?? 'replace',
    token: held?.token ?? 0,
    observedVersion: null,
  };
}

/** The token of the lease's entry on a resource. */
export function tokenOn(lease: Lease, resource: string): number {
  const held = lease.entries.find((candidate) => candidate.resource === resource);
  if (held === undefined) throw new Error(`the lease has no entry on ${resource}`);
  return held.token;
}

// ------------------------------------------------------------------------------------------------------ looking at it

interface Slots {
  readonly slots: ReadonlyMap<string, unknown>;
}

/** Counts the entries of a lock table that are looked at from now on. */
export function countVisits(table: State['held']): { visits: number } {
  const count = { visits: 0 };
  for (const mode of MODES) {
    const index = table[mode];
    const holders = index.holders.bind(index);
    const inOrder = index.inOrder.bind(index);
    index.inOrder = (key) => {
      const found = inOrder(key);
      count.visits += found.length;
      return found;
    };
    index.holders = function* (key) {
      for (const holder of holders(key)) {
        count.visits += 1;
        yield holder;
      }
    };
  }
  return count;
}

/** Everything in a lock table: `mode key holder run order`, sorted. */
export function locksIn(table: State['held']): string[] {
  const lines: string[] = [];
  for (const mode of MODES) {
    for (const key of (table[mode] as unknown as Slots).slots.keys()) {
      for (const holder of table[mode].holders(key)) {
        lines.push(`${mode} ${key} ${holder.leaseId} ${holder.runId} ${holder.order}`);
      }
    }
  }
  return lines.sort();
}

/**
 * What two replicas at one revision must have in common (P7): all of the state that is live. Records that ended may
 * have been forgotten on one of them, and keys are looked up when they are not there.
 */
export function digestOf(state: State): string {
  const live = [...state.leases.values()].filter((lease) => lease.state !== 'ended' || underLockDelay(lease));
  const runs = [...state.runs.values()].filter((run) => run.endedAt === null);
  const byRun = (index: State['leasesOfRun']): string[] =>
    [...(index as unknown as Slots).slots.keys()]
      .flatMap((runId) => [...index.holders(runId)].map((h) => `${runId} ${h.leaseId} ${h.order}`))
      .sort();
  return JSON.stringify({
    revision: state.revision,
    time: state.time,
    mapVersion: state.mapVersion,
    map: ordered(state.map.document),
    identity: state.identity,
    active: state.activeLeases,
    waiting: state.waitingLeases,
    delayed: state.delayedLeases,
    localKindsFrom: state.localKindsFrom,
    runs: runs.map(ordered).sort(),
    leases: live.map(ordered).sort(),
    unmatched: [...state.unmatched.values()].map(ordered).sort(),
    revocations: [...state.revocations.values()].map(ordered).sort(),
    openWrites: state.openWrites,
    inDoubt: state.inDoubt,
    admissions: [...state.admissions.values()].filter(isOpen).map(ordered).sort(),
    openWritesOf: runs
      .map(({ runId }) => `${runId} ${[...(state.openWritesOf.get(runId) ?? [])].sort().join(' ')}`)
      .sort(),
    doubted: locksIn(state.doubted),
    rehearsals: [...state.rehearsals.values()].map(ordered).sort(),
    freezes: [...state.freezes.values()].map(ordered).sort(),
    held: locksIn(state.held),
    queued: locksIn(state.queued),
    delegations: live
      .map(({ leaseId }) => `${leaseId} ${[...(state.delegations.get(leaseId) ?? [])].sort().join(' ')}`)
      .sort(),
    leasesOfRun: byRun(state.leasesOfRun),
    waitingOfRun: byRun(state.waitingOfRun),
    holdingAndWaiting: [...state.holdingAndWaiting.values()].sort(),
  });
}

/** JSON with the keys of every object in order. */
export function ordered(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    inner !== null && typeof inner === 'object' && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}
