import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import type { Access, Scope } from '../../src/domain/entry.js';
import type { DomainEvent, LeaseAmended, Renewed } from '../../src/domain/event.js';
import type { Freeze } from '../../src/domain/freeze.js';
import type { EndReason, Lease, LeaseEntry, TakeOver } from '../../src/domain/lease.js';
import type { Micros } from '../../src/domain/time.js';
import type { EventRecord } from '../../src/storage/store.js';

/**
 * A second opinion, slow and obvious, written from the words of the design (§4 to §6) and from nothing else: it knows
 * no lock, no mode and no index. It looks at every resource of a small universe, one after another, and asks what each
 * run may do to it. Of src it uses types only.
 */

/** What the oracle needs to know of an entry. */
export interface OracleEntry {
  readonly resource: string;
  readonly access: Access;
  readonly scope: Scope;
  readonly exclusive: boolean;
  readonly mode: 'observe' | 'enforce';
  readonly observedRefusal: string | null;
  /** Its run may not use it: a child run holds some of it. */
  readonly suspended?: boolean;
}

// ------------------------------------------------------------------------------------------------- single resources

/** "EXACT: the resource itself; SUBTREE: the resource and all below it." */
export function covers(entry: Pick<OracleEntry, 'resource' | 'scope'>, resource: string): boolean {
  if (entry.resource === resource) return true;
  return entry.scope === 'subtree' && resource.startsWith(`${entry.resource}/`);
}

/** Literal segments, `{name}` for one segment, a final `{name...}` for one or more; null: no match. */
export function capturesOf(pattern: string, resource: string): Map<string, string> | null {
  const names: string[] = [];
  const source = pattern
    .split('/')
    .map((segment) => {
      const capture = /^\{(.+?)(\.\.\.)?\}$/.exec(segment);
      if (capture === null) return segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
      names.push(capture[1] as string);
      return capture[2] === undefined ? '([^/]+)' : '(.+)';
    })
    .join('/');
  const match = new RegExp(`^${source}$`).exec(resource);
  return match === null ? null : new Map(names.map((name, index) => [name, match[index + 1] as string]));
}

/** "Captures of the same name join." */
function agree(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  return [...a].every(([name, value]) => !b.has(name) || b.get(name) === value);
}

/** "Freeze: no grants under a pattern"; a subtree is what the pattern matches and all below that. */
export function isFrozen(freeze: Pick<Freeze, 'pattern' | 'scope'>, resource: string): boolean {
  const parts = resource.split('/');
  const above = freeze.scope === 'subtree' ? parts.map((_, index) => parts.slice(0, index + 1).join('/')) : [resource];
  return above.some((path) => capturesOf(freeze.pattern, path) !== null);
}

type Use = 'stable' | 'optimistic' | 'exclusive';

/** READ is recorded and keeps nobody away; so does an entry that was only observed to be in somebody's way. */
function useOf(entry: OracleEntry): Use | null {
  if (entry.observedRefusal !== null || entry.access === 'read') return null;
  if (entry.access === 'stable_read') return 'stable';
  return entry.exclusive ? 'exclusive' : 'optimistic';
}

/** "Optimistic writers stand side by side, never beside a leased one"; STABLE_READ: "nobody may change it meanwhile". */
function clash(a: Use, b: Use): boolean {
  return a !== b || a === 'exclusive';
}

// ------------------------------------------------------------------------------------------------------- write sets

/**
 * Every resource that can matter to these entries: those named, each with a child that nobody named (for what a subtree
 * covers besides), and every path of up to `depth` of the segments that occur in them.
 */
export function universeOf(resources: readonly string[], depth = 0): string[] {
  const segments = [...new Set(resources.flatMap((resource) => resource.split('/')))];
  let grid: string[] = [''];
  const all = new Set(resources.flatMap((resource) => [resource, `${resource}/~`]));
  for (let level = 0; level < depth; level += 1) {
    grid = grid.flatMap((path) => segments.map((segment) => (path === '' ? segment : `${path}/${segment}`)));
    for (const path of grid) all.add(path);
  }
  return [...all];
}

/** A rule of the map that ties two patterns; it is the same one in every version that has it. */
export interface Tie {
  readonly between: readonly [string, string];
}

type Known = WeakMap<readonly OracleEntry[], WeakMap<readonly OracleEntry[], string>>;

function recall(known: Known, a: readonly OracleEntry[], b: readonly OracleEntry[], find: () => string): string {
  const row = known.get(a) ?? new WeakMap<readonly OracleEntry[], string>();
  const why = row.get(b) ?? find();
  known.set(a, row.set(b, why));
  return why;
}

export class Oracle {
  private readonly clashes: Known = new WeakMap();
  private readonly clashesByTie = new Map<Tie, Known>();
  private document: Pick<ConflictMapDocument, 'conflicts' | 'implies' | 'kinds'> = {};
  /** Those of the map as it is. */
  ties: readonly Tie[] = [];

  constructor(
    private readonly universe: readonly string[],
    document: Pick<ConflictMapDocument, 'conflicts' | 'implies' | 'kinds'> = {},
  ) {
    this.use(document);
  }

  /** From now on these rules hold. */
  use(document: Pick<ConflictMapDocument, 'conflicts' | 'implies' | 'kinds'>): void {
    this.document = document;
    this.ties = (document.conflicts ?? []).map(({ between: [p, q] }) => {
      const known = [...this.clashesByTie.keys()].find(({ between }) => between[0] === p && between[1] === q);
      const tie = known ?? { between: [p, q] };
      if (known === undefined) this.clashesByTie.set(tie, new WeakMap());
      return tie;
    });
  }

  /** Why two runs may not hold these at once, tied by these rules; empty: they may (P1). */
  incompatible(a: readonly OracleEntry[], b: readonly OracleEntry[], ties: readonly Tie[] = this.ties): string {
    const clash = recall(this.clashes, a, b, () => this.clashOn(a, b));
    if (clash !== '') return clash;
    for (const tie of ties) {
      const known = this.clashesByTie.get(tie) as Known;
      const why = recall(known, a, b, () => this.clashByRule(a, b, tie));
      if (why !== '') return why;
    }
    return '';
  }

  /** What the `implies` rules say these entries touch as well, and what nothing among them covers (C3). */
  missing(entries: readonly OracleEntry[]): string[] {
    const missing: string[] = [];
    for (const rule of this.document.implies ?? []) {
      for (const entry of entries) {
        if (entry.access !== (rule.when.access ?? 'write')) continue;
        for (const resource of this.universe) {
          const captures = covers(entry, resource) ? capturesOf(rule.when.pattern, resource) : null;
          if (captures === null) continue;
          for (const touch of rule.touches) {
            const touched = touch.resource.replace(
              /\{(.+?)(\.\.\.)?\}/g,
              (_, name: string) => captures.get(name) ?? '?',
            );
            const covered = entries.some(
              (other) =>
                other.access === touch.access &&
                covers(other, touched) &&
                (touch.scope !== 'subtree' || other.scope === 'subtree'),
            );
            if (!covered) missing.push(`${touch.access} ${touched}, implied by ${resource}`);
          }
        }
      }
    }
    return missing;
  }

  private clashOn(a: readonly OracleEntry[], b: readonly OracleEntry[]): string {
    for (const resource of this.universe) {
      for (const mine of a) {
        const use = covers(mine, resource) ? useOf(mine) : null;
        if (use === null) continue;
        for (const theirs of b) {
          const other = covers(theirs, resource) ? useOf(theirs) : null;
          if (other !== null && clash(use, other)) return `${use} and ${other} on ${resource}`;
        }
      }
    }
    return '';
  }

  private clashByRule(a: readonly OracleEntry[], b: readonly OracleEntry[], { between }: Tie): string {
    const [first, second] = between;
    for (const [p, q] of [
      [first, second],
      [second, first],
    ] as const) {
      for (const mine of this.written(a)) {
        const captures = capturesOf(p, mine);
        if (captures === null) continue;
        for (const theirs of this.written(b)) {
          const others = capturesOf(q, theirs);
          if (others !== null && agree(captures, others)) return `writes of ${mine} and ${theirs}, which a rule ties`;
        }
      }
    }
    return '';
  }

  /** Those of which some target may accept writes without asking, and what it may know as late as what. */
  unasked(entries: readonly OracleEntry[]): { readonly entry: OracleEntry; readonly known: Unasked }[] {
    const kinds = (this.document.kinds ?? []).filter(({ validation = 'introspect' }) => validation !== 'introspect');
    return entries.flatMap((entry) => {
      if (useOf(entry) === null) return [];
      const covered = this.universe.filter((resource) => covers(entry, resource));
      const meets = kinds.filter(({ pattern }) => covered.some((resource) => capturesOf(pattern, resource) !== null));
      if (meets.length === 0) return [];
      const ages = meets.map((kind) => (kind.validation === 'view' ? (kind.max_view_age ?? 5 * SECOND) : 0));
      const known = {
        byCredential: meets.some(({ validation }) => validation === 'local'),
        viewAge: Math.max(...ages),
      };
      return [{ entry, known }];
    });
  }

  /** The first resource of these that a freeze is over; undefined: none is. What is only read is granted nothing. */
  frozen(freeze: Freeze, entries: readonly OracleEntry[]): string | undefined {
    const granted = entries.filter((entry) => entry.mode === 'enforce' && entry.access !== 'read');
    return this.universe.find(
      (resource) => isFrozen(freeze, resource) && granted.some((entry) => covers(entry, resource)),
    );
  }

  private written(entries: readonly OracleEntry[]): string[] {
    const writes = entries.filter((entry) => entry.access === 'write' && entry.observedRefusal === null);
    return this.universe.filter((resource) => writes.some((entry) => covers(entry, resource)));
  }
}

// --------------------------------------------------------------------------------------------------------- the queue

export interface OracleHolder {
  readonly leaseId: string;
  readonly runId: string;
  readonly entries: readonly OracleEntry[];
  /** The lease that it is, or is to be, a part of. */
  readonly delegatedFrom?: string;
  /** "Locks are only ever added": the rules that tie it, also those that the map has no more; absent: those of the map. */
  readonly ties?: readonly Tie[];
}

export interface OracleWaiter extends OracleHolder {
  /** Its place in the queue: smaller is earlier. */
  readonly order: number;
  /** "A request for a resource set whose start lies ahead keeps its place, and is passed by everybody until then"; so is one that is frozen. */
  readonly early?: boolean;
}

type Wait = readonly [from: string, target: string];

/** Each pair of which the first comes to the second by one of these or more. */
function closure(waits: readonly Wait[]): Set<string> {
  const all = new Set(waits.map(([from, target]) => `${from} ${target}`));
  for (let size = -1; size !== all.size; ) {
    size = all.size;
    for (const pair of [...all]) {
      const [from, over] = pair.split(' ');
      for (const [a, b] of waits) if (a === over) all.add(`${from} ${b}`);
    }
  }
  return all;
}

/** Who waits for whom, from the entries alone. */
export class OracleQueue {
  private may: Set<string> | undefined;

  constructor(
    private readonly oracle: Oracle,
    private readonly holders: readonly OracleHolder[],
    private readonly waiters: readonly OracleWaiter[],
  ) {}

  /** Leases of other runs that a request meets. */
  holdersInTheWay(asker: OracleHolder): OracleHolder[] {
    return this.holders.filter((holder) => this.meets(asker, holder));
  }

  /** Earlier requests of other runs that a request meets. */
  waitersAhead(asker: OracleWaiter): OracleWaiter[] {
    // "A part of a lease passes everybody who waits": the whole keeps them waiting.
    if ((asker.delegatedFrom ?? '') !== '') return [];
    return this.waiters.filter(
      (waiter) => waiter.order < asker.order && waiter.early !== true && this.meets(asker, waiter),
    );
  }

  /**
   * Whether one run waits for another, directly or through others. "A request passes waiters that (transitively) wait
   * for its own run", and does not wait for whom it passes: what is asked for stands on both sides. So it is closed in
   * from below and from above: places count that are not surely passed, and surely passed is who surely waits.
   */
  waitsFor(from: string, target: string): boolean {
    this.may ??= this.mayWait();
    return this.may.has(`${from} ${target}`);
  }

  /** Every wait that the words allow: what is in none of their readings is not among them. */
  private mayWait(): Set<string> {
    const held: Wait[] = [];
    const places: Wait[] = [];
    for (const waiter of this.waiters) {
      for (const { runId } of this.holdersInTheWay(waiter)) held.push([waiter.runId, runId]);
      for (const { runId } of this.waitersAhead(waiter)) places.push([waiter.runId, runId]);
    }
    let surely = new Set<string>();
    for (;;) {
      const may = closure([...held, ...places.filter(([a, b]) => !surely.has(`${b} ${a}`))]);
      const more = closure([...held, ...places.filter(([a, b]) => !may.has(`${b} ${a}`))]);
      if (more.size === surely.size) return may;
      surely = more;
    }
  }

  /** A request that waits although nothing is in its way but whom it may pass; null: none. */
  waitingForNothing(): OracleWaiter | null {
    const passes = (waiter: OracleWaiter): boolean =>
      this.waitersAhead(waiter).every((ahead) => this.waitsFor(ahead.runId, waiter.runId));
    return this.waiters.find((waiter) => this.holdersInTheWay(waiter).length === 0 && passes(waiter)) ?? null;
  }

  /** A run that waits for itself by way of what others hold: nothing but time can end that. */
  deadlocked(): string | null {
    const held = new OracleQueue(this.oracle, this.holders, []);
    for (const { runId } of this.waiters) {
      const seen = new Set<string>();
      const open = [runId];
      for (let at = open.pop(); at !== undefined; at = open.pop()) {
        for (const waiter of this.waiters.filter((candidate) => candidate.runId === at)) {
          for (const holder of held.holdersInTheWay(waiter)) {
            if (holder.runId === runId) return runId;
            if (!seen.has(holder.runId)) open.push(holder.runId);
            seen.add(holder.runId);
          }
        }
      }
    }
    return null;
  }

  /** "P1, delegation to a child run excepted": a lease and what is a part of it, or of a part. */
  private isPartOf(part: OracleHolder, whole: OracleHolder): boolean {
    const above = [...this.holders, ...this.waiters].find(({ leaseId }) => leaseId === part.delegatedFrom);
    return part.delegatedFrom === whole.leaseId || (above !== undefined && this.isPartOf(above, whole));
  }

  private meets(asker: OracleHolder, other: OracleHolder): boolean {
    if (asker.runId === other.runId || this.isPartOf(asker, other) || this.isPartOf(other, asker)) return false;
    const { ties } = asker;
    const both = ties === undefined ? other.ties : ties.filter((tie) => other.ties?.includes(tie) ?? true);
    return this.oracle.incompatible(asker.entries, other.entries, both) !== '';
  }
}

// -------------------------------------------------------------------------------------------------- the fence check

export interface OracleLease {
  readonly runId: string;
  readonly live: boolean;
  readonly entries: readonly (OracleEntry & { readonly actions: readonly string[]; readonly token: Micros })[];
}

/** Whether a target may accept the write: only what the lease covers, only for its run, only with its token (P4). */
export function mayWrite(
  lease: OracleLease | undefined,
  presenterRunId: string,
  write: {
    readonly resource: string;
    readonly action: string;
    readonly token: number;
    readonly observedVersion: string | null;
  },
): boolean {
  if (lease === undefined || !lease.live) return false;
  if (presenterRunId !== '' && presenterRunId !== lease.runId) return false;
  return lease.entries.some(
    (entry) =>
      entry.access === 'write' &&
      entry.observedRefusal === null &&
      entry.suspended !== true &&
      covers(entry, write.resource) &&
      entry.actions.includes(write.action) &&
      entry.token === write.token &&
      (entry.exclusive || write.observedVersion !== null),
  );
}

// --------------------------------------------------------------------------------------------------- the log, audited

/** A promise was broken. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

function promise(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Violation(what);
}

type AuditedState = 'waiting' | 'active' | 'ended';

/** What the auditor remembers of a lease, from events alone. */
export interface Audited extends OracleHolder {
  readonly delegatedFrom: string;
  readonly ties: readonly Tie[];
  readonly key: string;
  /** What a target may have accepted without asking, at some time while it was held: by resource, access and scope. */
  readonly unasked: ReadonlyMap<string, Unasked>;
  readonly state: AuditedState;
  readonly entries: readonly (LeaseEntry & OracleEntry)[];
  readonly grantedAt: Micros | null;
  readonly expiresAt: Micros | null;
  readonly claimBy: Micros | null;
  readonly maxExpiresAt: Micros | null;
  readonly progressWindow: Micros | null;
  readonly progressAt: Micros | null;
  readonly order: number;
  readonly waitsUntil: Micros;
  readonly attachedUntil: Micros;
  /** Start of the resource set it was asked for by; 0: none. */
  readonly startsAt: Micros;
  readonly takeOver: TakeOver | null;
}

interface AuditedRun {
  readonly principal: string;
  readonly parentRunId: string;
  readonly authorityEndsAt: Micros;
  readonly ended: boolean;
  readonly mayAcquire: boolean;
  readonly state: string;
}

/** A tracked write that was let in and of which nobody has said what became. */
export interface OpenWrite {
  readonly runId: string;
  readonly leaseId: string;
  readonly resource: string;
}

/** What a write to a resource is to anybody else: nothing stands beside it. */
const written = (resource: string): OracleEntry => ({
  resource,
  access: 'write',
  scope: 'exact',
  exclusive: true,
  mode: 'enforce',
  observedRefusal: null,
});

/** When a lease ends by time alone. */
export function overAt(lease: Audited): Micros {
  return Math.min(lease.expiresAt ?? Number.POSITIVE_INFINITY, lease.claimBy ?? Number.POSITIVE_INFINITY);
}

/** By what a target decides that does not ask: a credential, a view of at most this age (0: by none), or either. */
interface Unasked {
  readonly byCredential: boolean;
  readonly viewAge: Micros;
}

/** What of a lease that has ended somebody may still act on. */
interface Lingering extends OracleHolder {
  readonly until: Micros;
}

/** How long credentials can be accepted: of a credential, past its end, and how wrong the clock of a verifier may be. */
export interface OracleCredentials {
  readonly life: Micros;
  readonly tolerance: Micros;
  readonly skew: Micros;
}

const SECOND: Micros = 1_000_000;

/** Places of take-overs come before any place that an acquire was given. */
const BEFORE_ALL = 1e15;

const nameOf = ({ access, scope, resource }: OracleEntry): string => `${access} ${scope} ${resource}`;

const pairOf = (a: string, b: string): string => [a, b].sort().join(' ');

/**
 * Reads the log as it grows, with the database clock at each append, and holds every event against the promises
 * (design §2). It folds the events itself, for the few facts that it needs.
 */
export class Auditor {
  readonly leases = new Map<string, Audited>();
  readonly runs = new Map<string, AuditedRun>();
  /** Scope and key, and what it was bound to. */
  readonly keys = new Map<string, { readonly leaseId: string; readonly use: string; readonly fingerprint: string }>();
  revision = 0;
  time: Micros = 0;
  private hash: string;
  private lastToken: Micros = 0;
  private mapPutAt: Micros = 0;
  /** Pairs that the admin let stand until they end. */
  private readonly excused = new Set<string>();
  /** Ended leases that some view has not heard of, or of which some verifier within the skew still accepts a credential. */
  private readonly accepted = new Map<string, Lingering>();
  /** Leases that a change of the map ended. */
  private readonly endedByMap = new Set<string>();
  /** Lock delays whose end is not written. */
  private readonly delays = new Map<string, Lingering>();
  /** By pattern. */
  readonly freezes = new Map<string, Freeze>();
  /** Ended as taken over, by an append whose take-over is still to come. */
  private readonly takenOver = new Map<string, Audited>();
  /** By admission. */
  readonly openWrites = new Map<string, OpenWrite>();
  /** Every admission there ever was. */
  readonly admitted = new Set<string>();
  private readonly oracle: Oracle;
  private sets: NonNullable<ConflictMapDocument['sets']> = {};

  constructor(
    universe: readonly string[],
    /** How the log's hashes are made, and how its events are read: the two things that are taken from src. */
    private readonly log: {
      readonly genesisHash: string;
      readonly hashOf: (record: EventRecord) => string;
      readonly eventOf: (record: EventRecord) => DomainEvent;
    },
    private readonly maxClockSkew: Micros,
    private readonly credentials: OracleCredentials = { life: 60 * SECOND, tolerance: 5 * SECOND, skew: 5 * SECOND },
    /** The database may lose its last commits: then one event ends every lease, and blocks every run. */
    private readonly mayLoseHistory = false,
  ) {
    this.oracle = new Oracle(universe);
    this.hash = log.genesisHash;
  }

  /** One append, all of it, at this time of the database clock. */
  appended(records: readonly EventRecord[], databaseNow: Micros): void {
    const before = new Set([...this.active.map((lease) => lease.leaseId), ...this.accepted.keys()]);
    let kept = false;
    const byMap: string[] = [];
    for (const record of records) {
      this.continues(record, databaseNow);
      const event = this.log.eventOf(record);
      if (event.body.kind === 'conflict_map_put') kept = event.body.onLiveConflict === 'keep_until_end';
      if (event.body.kind === 'lease_ended' && event.body.endReason === 'map_changed') byMap.push(event.body.leaseId);
      this.apply(event, databaseNow);
    }
    // Whoever was ended because of a conflict was in it before.
    for (const ended of byMap) for (const other of before) this.excused.add(pairOf(ended, other));
    this.delegated(databaseNow);
    this.exclusive(kept ? before : new Set(), databaseNow);
    this.unaccepted(kept ? before : new Set(), databaseNow);
    this.resolved();
    this.flowing(databaseNow);
    promise(this.takenOver.size === 0, 'C12: leases were taken over, and nobody took them');
  }

  /** From when on no view allows anything by the lease, and nobody accepts a credential of it, if it has ended. */
  acceptedUntil(leaseId: string): Micros {
    return this.accepted.get(leaseId)?.until ?? 0;
  }

  /** Lock delays whose end is not in the log, and until when. */
  get delayed(): ReadonlyMap<string, { readonly until: Micros }> {
    return this.delays;
  }

  /** Active leases, whether or not their time is over. */
  get active(): Audited[] {
    return [...this.leases.values()].filter((lease) => lease.state === 'active');
  }

  get waiting(): Audited[] {
    return [...this.leases.values()].filter((lease) => lease.state === 'waiting');
  }

  isLive(leaseId: string, databaseNow: Micros): boolean {
    const lease = this.leases.get(leaseId);
    if (lease?.state !== 'active' || overAt(lease) <= databaseNow) return false;
    const run = this.runs.get(lease.runId);
    return run !== undefined && !run.ended;
  }

  /** Whether an operator keeps a request from being granted. */
  isFrozen(lease: Pick<Audited, 'entries'>): boolean {
    return [...this.freezes.values()].some((freeze) => this.oracle.frozen(freeze, lease.entries) !== undefined);
  }

  /** Whether checks of writes to the resource are to be denied at this time. */
  deniesWrites(resource: string, now: Micros, frozenBefore = Number.POSITIVE_INFINITY): boolean {
    return [...this.freezes.values()].some(
      (freeze) =>
        freeze.deniesChecks &&
        freeze.frozenAt < frozenBefore &&
        (freeze.until ?? Number.POSITIVE_INFINITY) > now &&
        isFrozen(freeze, resource),
    );
  }

  /** Leases whose time is not over, and requests that wait, at one time. */
  queueAt(now: Micros): OracleQueue {
    const live = this.active.filter((lease) => overAt(lease) > now);
    const isEarly = (lease: Audited): boolean => lease.startsAt > now || this.isFrozen(lease);
    const waiting = this.waiting.map((lease) => ({ ...enforced(lease), early: isEarly(lease) }));
    return new OracleQueue(this.oracle, live, waiting);
  }

  /** P7: no gap, no other history, no way back in time. */
  private continues(record: EventRecord, databaseNow: Micros): void {
    promise(record.revision === this.revision + 1, `P7: revision ${record.revision} after ${this.revision}`);
    promise(record.prevHash === this.hash, `P7: revision ${record.revision} does not continue the one before`);
    promise(this.log.hashOf(record) === record.hash, `P7: the hash of revision ${record.revision} is not its own`);
    promise(record.time >= this.time, `P7: the time of revision ${record.revision} is before that of the one before`);
    promise(record.time <= databaseNow + this.maxClockSkew, `P11: revision ${record.revision} is from the future`);
    this.revision = record.revision;
    this.hash = record.hash;
    this.time = record.time;
  }

  private apply(event: DomainEvent, databaseNow: Micros): void {
    const { body } = event;
    switch (body.kind) {
      case 'run_created':
        promise(!this.runs.has(body.run.runId), `P6: run ${body.run.runId} is made twice`);
        this.runs.set(body.run.runId, {
          principal: body.run.principal,
          parentRunId: body.run.parentRunId,
          authorityEndsAt: body.run.authorityEndsAt,
          ended: false,
          mayAcquire: true,
          state: 'active',
        });
        this.bind(`principal:${body.run.principal}`, body.run.idempotencyKey, '', 'create_run', body.fingerprint);
        return;
      case 'run_state_changed': {
        const run = this.run(body.runId);
        promise(!run.ended, `P6: run ${body.runId} changed after its end`);
        const ended = body.endedAt !== null;
        if (run.state === 'stopping') promise(ended, `R4: run ${body.runId} is ${body.state} after it was stopped`);
        const mayAcquire = !ended && body.state !== 'blocked' && body.state !== 'stopping';
        this.runs.set(body.runId, { ...run, ended, mayAcquire, state: body.state });
        return;
      }
      case 'writes_admitted':
        for (const { admissionId, resource, action, token, observedVersion } of body.writes) {
          const { leaseId, runId } = event;
          promise(!this.admitted.has(admissionId), `R4: ${admissionId} is let in twice`);
          this.admitted.add(admissionId);
          promise(this.isLive(leaseId, databaseNow), `P3: a write was let in under ${leaseId}, which is over`);
          const authority = this.run(runId).authorityEndsAt;
          promise(authority > databaseNow, `P5: a write was let in after the end of the authority of ${runId}`);
          const lease = { ...this.lease(leaseId), live: true };
          const write = { resource, action, token, observedVersion };
          promise(
            mayWrite(lease, runId, write),
            `P4: a write to ${resource} was let in that ${leaseId} does not cover`,
          );
          this.openWrites.set(admissionId, { runId, leaseId, resource });
        }
        return;
      case 'writes_reported':
        for (const { admissionId, result, contradicts } of body.writes)
          if (admissionId !== '' && result !== 'unknown' && !contradicts) this.closed(admissionId);
        return;
      case 'doubt_settled': {
        const open = this.closed(body.admissionId);
        promise(
          this.lease(open.leaseId).state === 'ended',
          `R4: ${body.admissionId} was settled while its lease lives`,
        );
        return;
      }
      case 'conflict_map_put':
        this.oracle.use(body.document as ConflictMapDocument);
        this.sets = (body.document as ConflictMapDocument).sets ?? {};
        this.mapPutAt = event.time;
        for (const lease of this.active) this.leases.set(lease.leaseId, this.withUnasked(lease));
        for (const lease of [...this.active, ...this.waiting]) {
          const ties = [...new Set([...lease.ties, ...this.oracle.ties])];
          this.leases.set(lease.leaseId, { ...lease, ties });
        }
        return;
      case 'lease_queued':
        this.bind(
          `run:${body.lease.runId}`,
          body.lease.idempotencyKey,
          body.lease.leaseId,
          'acquire',
          body.fingerprint,
        );
        this.queued(body.lease);
        return;
      case 'lease_granted':
        this.granted(body.lease, body.fingerprint, event.time, databaseNow);
        return;
      case 'lease_attached':
        for (const { leaseId, attachedUntil } of body.attachments) this.change(leaseId, 'waiting', { attachedUntil });
        return;
      case 'lease_claimed': {
        const lease = this.change(body.leaseId, 'active', { claimBy: null });
        promise(overAt(lease) > databaseNow, `P5: ${body.leaseId} was claimed after its end`);
        return;
      }
      case 'leases_renewed':
        for (const renewed of body.renewals) this.renewed(renewed, databaseNow);
        return;
      case 'lease_reexpanded':
        this.reexpanded(body.leaseId, body.entries, event.time);
        return;
      case 'lease_amended':
        this.amended(body, event.time, databaseNow);
        return;
      case 'lease_ended':
        this.ended(body.leaseId, body.endReason, body.reason, databaseNow, body.lockDelayUntil);
        return;
      case 'lock_delay_ended': {
        const delay = this.delays.get(body.leaseId);
        promise(delay !== undefined, `P3: a lock delay of ${body.leaseId} ended that there was not`);
        promise(delay.until <= databaseNow, `P3: the lock delay of ${body.leaseId} ended before its time`);
        this.delays.delete(body.leaseId);
        return;
      }
      case 'key_bound':
        this.bind(
          body.binding.scope,
          body.binding.key,
          body.binding.leaseId,
          body.binding.use,
          body.binding.fingerprint,
        );
        return;
      case 'pattern_frozen': {
        const { freeze } = body;
        const before = this.freezes.get(freeze.pattern);
        const weaker =
          before !== undefined &&
          ((before.deniesChecks && !freeze.deniesChecks) ||
            (before.scope === 'subtree' && freeze.scope !== 'subtree') ||
            (freeze.until ?? Number.POSITIVE_INFINITY) < (before.until ?? Number.POSITIVE_INFINITY));
        promise(!weaker, `P8: the freeze of ${freeze.pattern} was weakened by another one`);
        this.freezes.set(freeze.pattern, freeze);
        return;
      }
      case 'pattern_thawed': {
        const freeze = this.freezes.get(body.pattern);
        promise(freeze !== undefined, `P7: ${body.pattern} was thawed, which was not frozen`);
        const early = body.byTime && (freeze.until ?? Number.POSITIVE_INFINITY) > databaseNow;
        promise(!early, `P8: ${body.pattern} thawed before its time`);
        this.freezes.delete(body.pattern);
        return;
      }
      case 'database_identified':
        promise(
          !body.lostHistory || this.mayLoseHistory,
          'P2: history was lost, and nothing that could lose it happened',
        );
        if (body.lostHistory) this.lost(databaseNow);
        return;
      default:
        return;
    }
  }

  private closed(admissionId: string): OpenWrite {
    const open = this.openWrites.get(admissionId);
    promise(open !== undefined, `R4: the outcome of ${admissionId} became known, which is not open`);
    this.openWrites.delete(admissionId);
    return open;
  }

  /** What an ended lease was let in to write, and nobody knows whether it did: its resources are in doubt. */
  get inDoubt(): OpenWrite[] {
    return [...this.openWrites.values()].filter(({ leaseId }) => this.lease(leaseId).state === 'ended');
  }

  /** R4, after an append: only what has no open write has ended. */
  private resolved(): void {
    for (const { runId, resource } of this.openWrites.values()) {
      const { ended } = this.run(runId);
      promise(!ended, `R4: run ${runId} has ended, and nobody knows what became of its write to ${resource}`);
    }
    for (const [runId, run] of this.runs) {
      const open =
        [...this.openWrites.values()].some((write) => write.runId === runId) ||
        [...this.runs.values()].some((child) => child.parentRunId === runId && !child.ended);
      promise(run.state !== 'stopping' || open, `R4: run ${runId} is stopping, and nothing of it is open`);
    }
  }

  private run(runId: string): AuditedRun {
    const run = this.runs.get(runId);
    promise(run !== undefined, `P7: the log speaks of run ${runId}, which was not made`);
    return run;
  }

  private lease(leaseId: string): Audited {
    const lease = this.leases.get(leaseId);
    promise(lease !== undefined, `P7: the log speaks of lease ${leaseId}, which was not made`);
    return lease;
  }

  /** Changes a lease and returns what it was. */
  private change(leaseId: string, state: AuditedState, changes: Partial<Audited>): Audited {
    const lease = this.lease(leaseId);
    promise(lease.state === state, `P5: ${leaseId} is ${lease.state}, not ${state}`);
    this.leases.set(leaseId, { ...lease, ...changes });
    return lease;
  }

  /** P6: a key is bound once. */
  private bind(scope: string, key: string, leaseId: string, use: string, fingerprint: string): void {
    const id = `${scope}\n${key}`;
    promise(!this.keys.has(id), `P6: the key ${key} of ${scope} is bound a second time`);
    this.keys.set(id, { leaseId, use, fingerprint });
  }

  private queued(lease: Lease): void {
    promise(!this.leases.has(lease.leaseId), `P6: lease ${lease.leaseId} is made twice`);
    promise(this.run(lease.runId).mayAcquire, `P6: run ${lease.runId} was queued although it may not acquire`);
    const startsAt = this.sets[lease.request?.resourceSet ?? '']?.not_before ?? 0;
    // "Jumps the queue (waiters stay in the queue behind it)."
    const order = lease.takeOver === null ? this.revision : this.revision - BEFORE_ALL;
    const waiting = { ...audited(lease, 'waiting', order, this.oracle.ties), startsAt };
    this.tookOver(waiting);
    this.leases.set(lease.leaseId, waiting);
  }

  private granted(lease: Lease, fingerprint: string | null, time: Micros, databaseNow: Micros): void {
    const { leaseId, runId } = lease;
    const place = this.leases.get(leaseId);
    if (fingerprint === null) promise(place?.state === 'waiting', `P6: ${leaseId} was granted without having waited`);
    else {
      promise(place === undefined, `P6: lease ${leaseId} is made twice`);
      this.bind(`run:${runId}`, lease.idempotencyKey, leaseId, 'acquire', fingerprint);
    }
    promise((place?.startsAt ?? 0) <= databaseNow, `C1a: ${leaseId} was granted before the start of its set`);
    const run = this.run(runId);
    promise(run.mayAcquire, `P6: run ${runId} was granted a lease although it may not acquire (F14)`);
    promise(run.authorityEndsAt > databaseNow, `P5: ${leaseId} was granted after the end of its run's authority`);
    const now = this.withUnasked(audited(lease, 'active', place?.order ?? Number.POSITIVE_INFINITY, this.oracle.ties));
    this.tokens(now.entries, time);
    promise(Number.isSafeInteger(lease.expiresAt), `P5: ${leaseId} has no end`);
    promise((lease.expiresAt as Micros) <= run.authorityEndsAt, `P5: ${leaseId} outlives its run's authority`);
    promise((lease.expiresAt as Micros) <= (lease.maxExpiresAt as Micros), `P5: ${leaseId} outlives its max hold`);
    promise(
      this.oracle.missing(now.entries).length === 0,
      `C3: ${leaseId} lacks ${this.oracle.missing(now.entries)[0]}`,
    );
    if (place === undefined) this.tookOver(now);
    if (now.delegatedFrom !== '') this.partOfWhole(now, databaseNow);
    if (now.takeOver === null || place !== undefined) this.inTurn(now, time);
    this.overNobody(now);
    this.overNoDoubt(now);
    this.underNoFreeze(now);
    this.leases.set(leaseId, now);
  }

  /** P2: every token is the time of its event, and later than any before. */
  private tokens(entries: Audited['entries'], time: Micros, isNew: (token: Micros) => boolean = () => true): void {
    for (const entry of entries) {
      if (entry.access === 'read') promise(entry.token === 0, `P2: a read of ${entry.resource} has a token`);
      else if (isNew(entry.token)) {
        promise(entry.token === time, `P2: the token on ${entry.resource} is not the time of its grant`);
        promise(entry.token > this.lastToken, `P2: the token on ${entry.resource} is not above all before`);
      }
    }
    this.lastToken = time;
  }

  /** P9: nobody is granted while a conflicting request ahead of theirs waits, unless that one waits for their run. */
  private inTurn(lease: Audited, time: Micros): void {
    const asks = enforced(lease);
    const queue = this.queueAt(time);
    for (const ahead of queue.waitersAhead(asks)) {
      const passed = queue.waitsFor(ahead.runId, lease.runId);
      promise(passed, `P9: ${lease.leaseId} was granted before ${ahead.leaseId}, which waits ahead of it`);
    }
  }

  /** C12: a take-over ends who is in its way, in its own append, and nobody else. */
  private tookOver(lease: Audited): void {
    if (lease.takeOver === null) return;
    for (const leaseId of lease.takeOver.ended) {
      const ended = this.takenOver.get(leaseId);
      promise(ended !== undefined, `C12: ${lease.leaseId} took over ${leaseId}, whose end is not written before it`);
      const why = this.oracle.incompatible(enforced(lease).entries, ended.entries);
      promise(why !== '' && ended.runId !== lease.runId, `C12: ${leaseId} was ended, and not in the way`);
      this.takenOver.delete(leaseId);
    }
    if (!lease.takeOver.acceptsOverlap) return;
    for (const other of this.accepted.keys()) this.excused.add(pairOf(other, lease.leaseId));
  }

  /**
   * P1: the end of what has expired is written before anything is granted over it. What comes back to a lease from its parts
   * (`isBack`) was held all along: a change of the map may since have tied it to another lease, and ended that one.
   */
  private overNobody(lease: Audited, isBack = false): void {
    for (const other of this.active) {
      // What had expired before the map was changed was not expanded anew.
      if ((other.grantedAt ?? 0) <= this.mapPutAt) continue;
      if (other.runId === lease.runId || this.isRelated(lease, other)) continue;
      if (this.oracle.incompatible(lease.entries, other.entries) === '') continue;
      throw new Violation(`P1: ${lease.leaseId} was granted over ${other.leaseId}, whose end is not written`);
    }
    if (lease.takeOver?.acceptsOverlap === true) return;
    for (const other of this.delays.values()) {
      if (isBack && this.endedByMap.has(other.leaseId)) continue;
      if (other.until <= this.mapPutAt || other.runId === lease.runId) continue;
      const why = this.oracle.incompatible(lease.entries, other.entries);
      promise(why === '', `P3: ${lease.leaseId} was granted over the lock delay of ${other.leaseId}: ${why}`);
    }
  }

  /** R4: nobody, its own run neither, is granted what a write in doubt may still change. */
  private overNoDoubt(lease: Audited): void {
    if (lease.takeOver?.acceptsOverlap === true) return;
    const asked = enforced(lease).entries;
    for (const { resource, leaseId } of this.inDoubt) {
      const why = this.oracle.incompatible(asked, [written(resource)]);
      promise(why === '', `R4: ${lease.leaseId} was granted while a write of ${leaseId} is in doubt: ${why}`);
    }
  }

  /** C12: nothing is granted that an operator has frozen. */
  private underNoFreeze(lease: Audited): void {
    for (const freeze of this.freezes.values()) {
      const under = this.oracle.frozen(freeze, lease.entries);
      promise(under === undefined, `C12: ${lease.leaseId} was granted ${under}, which ${freeze.pattern} has frozen`);
    }
  }

  private wholeOf(lease: Audited): Audited | undefined {
    return lease.delegatedFrom === '' ? undefined : this.leases.get(lease.delegatedFrom);
  }

  private isRelated(a: Audited, b: Audited): boolean {
    const isPart = (part: Audited, whole: Audited): boolean => {
      const above = this.wholeOf(part);
      return above !== undefined && (above.leaseId === whole.leaseId || isPart(above, whole));
    };
    return isPart(a, b) || isPart(b, a);
  }

  /** P5: "Expiry of the child never passes the parent's." */
  private withinWhole(part: Audited): void {
    const whole = this.wholeOf(part);
    if (whole === undefined) return;
    promise(
      (part.expiresAt ?? 0) <= overAt(whole),
      `P5: ${part.leaseId} outlives ${whole.leaseId}, which it is a part of`,
    );
  }

  /** "A child run may hold a subset of its parent's write set." */
  private partOfWhole(part: Audited, databaseNow: Micros): void {
    const whole = this.wholeOf(part);
    promise(whole !== undefined && this.isLive(whole.leaseId, databaseNow), `P4: ${part.leaseId} is a part of nothing`);
    promise(this.run(part.runId).parentRunId === whole.runId, `P4: ${part.leaseId} is a part of a lease of no parent`);
    this.withinWhole(part);
    for (const entry of part.entries) {
      if (entry.access === 'read') continue;
      const within = whole.entries.some(
        (outer) =>
          covers(outer, entry.resource) &&
          (outer.scope === 'subtree' || entry.scope === 'exact') &&
          (outer.access === 'write' || entry.access === 'stable_read') &&
          (outer.exclusive || !entry.exclusive) &&
          entry.actions.every((action) => outer.actions.includes(action)),
      );
      promise(within, `P4: ${part.leaseId} has more of ${entry.resource} than what it is a part of`);
    }
  }

  /** P1's exception, after an append: where a child run holds something, its parent has nothing that it may use. */
  private delegated(databaseNow: Micros): void {
    for (const part of this.active) {
      const whole = this.wholeOf(part);
      if (whole === undefined || overAt(part) <= databaseNow) continue;
      const why = this.oracle.incompatible(part.entries, usable(whole.entries));
      promise(why === '', `P1: ${part.leaseId} is held, and not suspended in ${whole.leaseId}: ${why}`);
    }
    for (const whole of this.active) {
      if (overAt(whole) <= databaseNow || usable(whole.entries).length === whole.entries.length) continue;
      const isPart = ({ delegatedFrom = '' }: OracleHolder): boolean => delegatedFrom === whole.leaseId;
      const parts = [...this.leases.values()].filter((lease) => lease.state !== 'ended' && isPart(lease));
      const kept = [...this.delays.values()].some(isPart);
      promise(parts.length > 0 || kept, `P2: ${whole.leaseId} is suspended, and nobody holds a part of it`);
    }
  }

  /** With what no target asks about by the map as it is now; what was so stays so. */
  private withUnasked(lease: Audited): Audited {
    const unasked = new Map(lease.unasked);
    for (const { entry, known } of this.oracle.unasked(lease.entries)) {
      const before = unasked.get(nameOf(entry)) ?? { byCredential: false, viewAge: 0 };
      const viewAge = Math.max(before.viewAge, known.viewAge);
      unasked.set(nameOf(entry), { byCredential: before.byCredential || known.byCredential, viewAge });
    }
    return { ...lease, unasked };
  }

  private renewed(renewed: Renewed, databaseNow: Micros): void {
    const { expiresAt, progressAt } = renewed;
    const before = this.change(renewed.leaseId, 'active', { expiresAt, progressAt, claimBy: null });
    const { leaseId } = before;
    const run = this.run(before.runId);
    promise(!run.ended, `P6: ${leaseId} of an ended run was renewed`);
    promise(overAt(before) > databaseNow, `P5: ${leaseId} was renewed after its end`);
    promise(expiresAt >= (before.expiresAt as Micros), `P5: ${leaseId} was shortened by a renewal`);
    promise(expiresAt <= (before.maxExpiresAt as Micros), `P5: ${leaseId} outlives its max hold`);
    promise(expiresAt <= run.authorityEndsAt, `P5: ${leaseId} outlives its run's authority`);
    this.withinWhole({ ...before, expiresAt });
    const window = before.progressWindow ?? Number.POSITIVE_INFINITY;
    promise(expiresAt <= progressAt + window, `P5: ${leaseId} outlives its progress window`);
  }

  private reexpanded(leaseId: string, entries: readonly LeaseEntry[], time: Micros): void {
    // What an amendment left under lock delay gets no entries: only what rules add to it.
    if (!this.leases.has(leaseId) && this.delays.has(leaseId)) return;
    const before = this.lease(leaseId);
    if (before.state === 'ended') {
      const same = entries.every((entry, index) => entry.token === before.entries[index]?.token);
      promise(this.delays.has(leaseId) && same, `P5: ${leaseId} was expanded anew after its end`);
      return;
    }
    for (const old of before.entries) {
      const now = entries.find((e) => e.resource === old.resource && e.access === old.access && e.scope === old.scope);
      promise(now !== undefined, `C5: ${leaseId} lost ${old.resource} by a change of the map`);
      promise(now.token === old.token, `P2: ${leaseId} has another token on ${old.resource} by a change of the map`);
      promise(now.exclusive || !old.exclusive, `C5: ${leaseId} holds ${old.resource} less strictly than before`);
    }
    const known = new Set(before.entries.map((entry) => entry.token));
    if (before.state === 'active') {
      this.tokens(entries, time, (token) => !known.has(token));
      const fresh = entries.filter((entry) => !known.has(entry.token) && entry.actions.length > 0);
      this.underNoFreeze({ ...before, entries: fresh });
    }
    const after = { ...before, entries };
    this.leases.set(leaseId, before.state === 'active' ? this.withUnasked(after) : after);
  }

  /** P2, P5: what is new has a new token and was free; what is kept has its own and gives no more; no time moves out. */
  private amended(body: LeaseAmended, time: Micros, databaseNow: Micros): void {
    const { leaseId, cause, entries, times, left, binding } = body;
    const before = this.lease(leaseId);
    const run = this.run(before.runId);
    promise(before.state === 'active' && overAt(before) > databaseNow, `P5: ${leaseId} was amended after its end`);
    promise(!run.ended && run.authorityEndsAt > databaseNow, `P6: ${leaseId} of an ended run was amended`);
    if (binding !== null) this.bind(binding.scope, binding.key, leaseId, 'amend', binding.fingerprint);
    const known = new Set(before.entries.map((entry) => entry.token));
    this.tokens(entries, time, (token) => !known.has(token));
    const fresh = entries.filter((entry) => entry.token === time);
    for (const entry of entries.filter((one) => !fresh.includes(one))) this.noMore(leaseId, entry, before);
    for (const entry of before.entries.filter(({ suspended }) => suspended))
      promise(
        entries.some((now) => nameOf(now) === nameOf(entry) && (now.suspended || now.token === time)),
        `P2: ${leaseId} has ${entry.resource} back without a new token`,
      );
    const isAsked = cause === 'amended';
    if (isAsked && fresh.length > 0)
      promise(run.mayAcquire, `P6: run ${before.runId} was given more although it may not acquire`);
    const names = new Set(entries.map(nameOf));
    const unasked = new Map([...before.unasked].filter(([name]) => names.has(name)));
    const after = this.withUnasked({ ...before, ...times, entries, unasked, claimBy: null });
    promise((after.maxExpiresAt ?? 0) <= (before.maxExpiresAt ?? 0), `P5: ${leaseId} may live longer than before`);
    promise((after.expiresAt ?? 0) <= (after.maxExpiresAt ?? 0), `P5: ${leaseId} outlives its max hold`);
    const window = after.progressWindow ?? Number.POSITIVE_INFINITY;
    promise((after.expiresAt ?? 0) <= (after.progressAt ?? 0) + window, `P5: ${leaseId} outlives its progress window`);
    promise(this.oracle.missing(entries).length === 0, `C3: ${leaseId} lacks ${this.oracle.missing(entries)[0]}`);
    const added = { ...after, entries: fresh };
    if (cause === 'amended') this.inTurn({ ...added, order: Number.POSITIVE_INFINITY }, time);
    this.overNobody({ ...added, grantedAt: time }, !isAsked);
    // What comes back was its own, and nobody else's meanwhile.
    if (isAsked) this.overNoDoubt(added);
    if (isAsked) this.underNoFreeze(added);
    for (const open of this.openWrites.values())
      if (open.leaseId === leaseId)
        promise(
          entries.some((entry) => entry.access === 'write' && covers(entry, open.resource)),
          `R4: ${leaseId} gave up ${open.resource}, and nobody knows what became of its write there`,
        );
    this.leases.set(leaseId, after);
    this.leftOver(before, after, left, databaseNow);
  }

  /** What has an old token was held by it, and as strictly. */
  private noMore(leaseId: string, entry: LeaseEntry, before: Audited): void {
    if (entry.access === 'read') return;
    const from = before.entries.some(
      (old) =>
        old.token === entry.token &&
        covers(old, entry.resource) &&
        (old.scope === 'subtree' || entry.scope === 'exact') &&
        (old.access === 'write' || entry.access === 'stable_read') &&
        (old.exclusive || !entry.exclusive) &&
        entry.actions.every((action) => old.actions.includes(action)),
    );
    promise(from, `P2: ${leaseId} has an old token for more than it held of ${entry.resource}`);
  }

  /** What was given up of view and local kinds can be accepted for as long as if the lease had ended. */
  private leftOver(before: Audited, after: Audited, left: LeaseAmended['left'], databaseNow: Micros): void {
    const entries = before.entries.filter((entry) => {
      const now = after.entries.find((one) => nameOf(one) === nameOf(entry));
      const isLess = now === undefined || (entry.exclusive && !now.exclusive) || (now.suspended && !entry.suspended);
      return before.unasked.has(nameOf(entry)) && isLess;
    });
    const { leaseId, runId } = before;
    const gone = `${leaseId} ${this.revision}`;
    const { delegatedFrom } = before;
    if (left !== null)
      this.delays.set(left.leaseId, { leaseId: left.leaseId, runId, delegatedFrom, entries, until: left.until });
    const names = new Set(entries.map(nameOf));
    const unasked = new Map([...before.unasked].filter(([name]) => names.has(name)));
    const until = this.lastBelieved({ ...before, unasked }, databaseNow);
    if (entries.length > 0 && until > databaseNow) this.accepted.set(gone, { leaseId: gone, runId, entries, until });
  }

  /** "Every live lease ends, every run is blocked until an operator resumes it." */
  private lost(databaseNow: Micros): void {
    // What a lease is a part of was there before it.
    for (const lease of [...this.active, ...this.waiting].reverse()) {
      this.ended(lease.leaseId, 'database_changed', '', databaseNow, null);
      // How long its locks stay is judged by what verifiers accept; that they go is written.
      if (lease.unasked.size > 0) this.delays.set(lease.leaseId, { ...lease, entries: [], until: 0 });
    }
    for (const [runId, run] of this.runs)
      if (!run.ended && run.state !== 'stopping') this.runs.set(runId, { ...run, mayAcquire: false, state: 'blocked' });
  }

  private ended(
    leaseId: string,
    endReason: EndReason,
    reason: string,
    databaseNow: Micros,
    delayedUntil: Micros | null,
  ): void {
    const before = this.lease(leaseId);
    promise(before.state !== 'ended', `P5: ${leaseId} ended twice`);
    if (endReason === 'expired' || endReason === 'no_progress' || endReason === 'unclaimed') {
      promise(overAt(before) <= databaseNow, `P1: ${leaseId} was ended by time before its time`);
    }
    if (endReason === 'timed_out') {
      promise(before.waitsUntil <= databaseNow, `P9: ${leaseId} was timed out before its time`);
    }
    // Given up by its own run it has no reason.
    if (endReason === 'withdrawn' && reason !== '') {
      promise(before.attachedUntil <= databaseNow, `P9: ${leaseId} was withdrawn before its time`);
    }
    if (endReason === 'taken_over') this.takenOver.set(leaseId, before);
    if (endReason === 'map_changed') this.endedByMap.add(leaseId);
    for (const part of this.leases.values())
      promise(
        part.delegatedFrom !== leaseId || part.state === 'ended',
        `P5: ${part.leaseId} outlives ${leaseId}, which it is a part of`,
      );
    this.leases.set(leaseId, { ...before, state: 'ended' });
    const entries = before.entries.filter((entry) => before.unasked.has(nameOf(entry)));
    const { runId, delegatedFrom } = before;
    if (delayedUntil !== null)
      this.delays.set(leaseId, { leaseId, runId, delegatedFrom, entries, until: delayedUntil });
    const until = before.state === 'active' ? this.lastBelieved(before, databaseNow) : 0;
    if (entries.length > 0 && until > databaseNow) this.accepted.set(leaseId, { leaseId, runId, entries, until });
  }

  /** When the last target that does not ask stops to let its run write, of a lease that ends now. */
  private lastBelieved(lease: Audited, databaseNow: Micros): Micros {
    const known = [...lease.unasked.values()];
    const byCredential = known.some((one) => one.byCredential) ? this.lastAccepted(lease, databaseNow) : 0;
    // Proved right before this append, a view goes on for its greatest age; it expires what it knows by itself.
    const byView = Math.min(databaseNow + Math.max(0, ...known.map(({ viewAge }) => viewAge)), overAt(lease));
    return Math.max(byCredential, byView);
  }

  /**
   * When the last verifier stops to accept the last credential of a lease that ends now: issued at the last moment at
   * which the database took it to be alive, for whole seconds, and never reaching its expiry by less than what a verifier
   * may be wrong by.
   */
  private lastAccepted(lease: Audited, databaseNow: Micros): Micros {
    const { life, tolerance, skew } = this.credentials;
    const issuedAt = Math.min(databaseNow, overAt(lease));
    const expires = lease.expiresAt as Micros;
    const exp = Math.floor(Math.min(issuedAt + life, expires - tolerance - skew) / SECOND) * SECOND;
    return exp + tolerance + skew;
  }

  /** P3, after an append: no other run holds what some view or offline verifier still lets an ended lease write. */
  private unaccepted(keptUntilEnd: ReadonlySet<string>, databaseNow: Micros): void {
    for (const ended of this.accepted.values()) {
      if (ended.until <= databaseNow) {
        this.accepted.delete(ended.leaseId);
        continue;
      }
      for (const other of this.active) {
        if (other.runId === ended.runId || overAt(other) <= databaseNow) continue;
        const why = this.oracle.incompatible(ended.entries, usable(other.entries));
        if (why === '') continue;
        const pair = pairOf(ended.leaseId, other.leaseId);
        if (keptUntilEnd.has(ended.leaseId) && keptUntilEnd.has(other.leaseId)) this.excused.add(pair);
        promise(
          this.excused.has(pair),
          `P3: ${other.leaseId} is held while some target may still believe ${ended.leaseId}: ${why}`,
        );
      }
    }
  }

  /** P1, after an append: no two live leases of different runs are incompatible. */
  private exclusive(keptUntilEnd: ReadonlySet<string>, databaseNow: Micros): void {
    const active = this.active.filter((lease) => overAt(lease) > databaseNow);
    for (const [index, a] of active.entries()) {
      for (const b of active.slice(index + 1)) {
        if (a.runId === b.runId || this.isRelated(a, b)) continue;
        const why = this.oracle.incompatible(a.entries, b.entries);
        if (why === '') continue;
        const pair = pairOf(a.leaseId, b.leaseId);
        if (keptUntilEnd.has(a.leaseId) && keptUntilEnd.has(b.leaseId)) this.excused.add(pair);
        promise(this.excused.has(pair), `P1: ${a.leaseId} and ${b.leaseId} of two runs are live together: ${why}`);
      }
    }
  }

  /** P9, after an append: no runs wait for each other in a circle. */
  private flowing(databaseNow: Micros): void {
    if (this.waiting.length < 2) return;
    const stuck = this.queueAt(databaseNow).deadlocked();
    promise(stuck === null, `P9: ${stuck} waits for itself, and nothing but time can end that`);
  }
}

/** What a run may use of what it holds. */
const USABLE = new WeakMap<readonly OracleEntry[], readonly OracleEntry[]>();

function usable(entries: readonly OracleEntry[]): readonly OracleEntry[] {
  let left = USABLE.get(entries);
  if (left === undefined) {
    left = entries.some(({ suspended }) => suspended) ? entries.filter(({ suspended }) => !suspended) : entries;
    USABLE.set(entries, left);
  }
  return left;
}

function audited(lease: Lease, state: AuditedState, order: number, ties: readonly Tie[]): Audited {
  return {
    leaseId: lease.leaseId,
    runId: lease.runId,
    delegatedFrom: lease.delegatedFrom,
    ties,
    key: lease.idempotencyKey,
    unasked: new Map(),
    state,
    entries: lease.entries,
    grantedAt: lease.grantedAt,
    expiresAt: lease.expiresAt,
    claimBy: lease.claimBy,
    maxExpiresAt: lease.maxExpiresAt,
    progressWindow: lease.progressWindow,
    progressAt: lease.progressAt,
    order,
    waitsUntil: lease.waiting?.waitsUntil ?? 0,
    attachedUntil: lease.waiting?.attachedUntil ?? 0,
    startsAt: 0,
    takeOver: lease.takeOver,
  };
}

/** What of a request can make it wait: not its observed entries. */
const ENFORCED = new WeakMap<readonly OracleEntry[], readonly (LeaseEntry & OracleEntry)[]>();

function enforced(lease: Audited): Audited {
  let entries = ENFORCED.get(lease.entries);
  if (entries === undefined) {
    entries = lease.entries.filter((entry) => entry.mode === 'enforce');
    ENFORCED.set(lease.entries, entries);
  }
  return { ...lease, entries };
}
