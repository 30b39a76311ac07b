import { startOf } from '../domain/conflict-map/index.js';
import { decideAttach, decideSweep } from '../domain/decide/upkeep.js';
import { endsAt, holdsLocks, type Lease } from '../domain/lease.js';
import { isOver } from '../domain/run.js';
import type { State } from '../domain/state.js';
import { MILLISECOND, type Micros, SECOND } from '../domain/time.js';
import { cutPortion } from './cut-portion.js';
import { createNamespace } from './establish.js';
import { NamespaceEngine } from './namespace-engine.js';
import type { EngineOptions } from './options.js';
import { pause } from './trouble.js';

/** A replica whose last committed heartbeat is older than this denies. */
const HEARTBEAT_MAX_AGE: Micros = 2 * SECOND;
const HEARTBEAT_EVERY_MS = 500;
const SWEEP_EVERY_MS = 250;
/** Replicas that see the same expiry begin to sweep this much apart, so that mostly one of them does it. */
const SWEEP_SPREAD_MS = 50;
const ATTACH_EVERY_MS = 5_000;
const PURGE_EVERY_MS = 60_000;
const PURGE_RUNS = 200;
/** Likewise of free texts: events that may have some. */
const PURGE_TEXTS = 1_000;
/** Likewise of what a cut of the log gave up. */
const CUT_EVENTS = 2_000;
/** Between two portions of a purge. */
const PURGE_PAUSE_MS = 100;
/** So many records are walked at every look for what is due; more of them once in `WALK_EVERY`. */
const WALKED_EACH_TIME = 5_000;
const WALK_EVERY: Micros = 1 * SECOND;
const NAMESPACES_PAGE = 1_000;
const DEFAULT_NAMESPACE = 'default';
/** Namespaces that other replicas created are found this often, without a hint. */
const OPEN_EVERY_MS = 5_000;
/** How long a call waits for a namespace that is being loaded. */
const OPEN_WAIT_MS = 2_000;
/** Most attachments that one command extends. */
const ATTACH_CHUNK = 500;

export interface ReplicaOptions extends Omit<EngineOptions, 'alive' | 'proveCommits'> {
  readonly replicaId: string;
  /** Whether a namespace that is found in this database lives here, and is no copy that was left behind. */
  readonly livesHere: (namespace: string) => Promise<boolean>;
  /** Ended runs and what belongs to them are removed from the projections after this. */
  readonly purgeAfter: Micros;
  /** Free text of events is erased after this long (A3). */
  readonly textRetention: Micros;
}

/** One coordinator process: its namespaces, and the work that goes on without being asked for. */
export class Replica {
  private readonly engines = new Map<string, NamespaceEngine>();
  private readonly beginnings = new Map<string, { engine: NamespaceEngine; started: Promise<void> }>();
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly attachments = new Map<string, Map<string, number>>();
  private readonly due = new DueTimes();
  private readonly sweeping = new Set<NamespaceEngine>();
  private readonly extending = new Set<NamespaceEngine>();
  private heartbeatAt: Micros = Number.NEGATIVE_INFINITY;
  private beating = false;
  private unsubscribe: () => void = () => undefined;
  private stopped = false;
  private readonly engineOptions: EngineOptions;

  constructor(private readonly options: ReplicaOptions) {
    this.engineOptions = { ...options, alive: () => this.alive(), proveCommits: () => this.writeHeartbeat() };
  }

  /** Starts the background work and opens every namespace there is; "default" exists from the start. */
  async start(): Promise<void> {
    await this.beginWork();
    await createNamespace(DEFAULT_NAMESPACE, 'system', this.engineOptions);
    await this.begin(DEFAULT_NAMESPACE).started;
    this.every(OPEN_EVERY_MS, () => this.openAll());
    await this.openAll();
  }

  /** As `start`, in a database beside the main one: it may be unreachable now, and found later. */
  async join(): Promise<void> {
    await this.beginWork();
    this.every(OPEN_EVERY_MS, () => this.openAll());
    await this.openAll().catch((error) => this.options.observer.problem('a database cannot be used yet', error));
  }

  private async beginWork(): Promise<void> {
    await this.beat();
    this.every(HEARTBEAT_EVERY_MS, () => this.beat());
    this.every(this.options.pollInterval / MILLISECOND, () => this.poll());
    this.every(SWEEP_EVERY_MS, () => this.sweep());
    this.every(ATTACH_EVERY_MS, () => this.extendAttachments());
    this.every(PURGE_EVERY_MS, () => this.purge());
    this.unsubscribe = this.options.store.onAppended((namespace) => void this.hinted(namespace).catch(() => undefined));
  }

  /** Another replica has written: follow, or begin to. */
  private async hinted(namespace: string): Promise<void> {
    const engine = this.engines.get(namespace);
    await (engine === undefined ? this.openIfHere(namespace) : engine.refresh());
  }

  async stop(): Promise<void> {
    this.stopped = true;
    for (const timer of this.timers) clearInterval(timer);
    this.unsubscribe();
    for (const engine of this.engines.values()) engine.stop();
  }

  /**
   * Every namespace is followed, whoever created it: this replica's witness knows how far each log went, and its sweeps
   * go on when others die. One that is in trouble holds up no other.
   */
  private async openAll(): Promise<void> {
    for (let after = ''; ; ) {
      const names = await this.options.store.listNamespaces(after, NAMESPACES_PAGE);
      for (const name of names) if (!this.engines.has(name)) void this.openIfHere(name).catch(() => undefined);
      const last = names[names.length - 1];
      if (last === undefined || names.length < NAMESPACES_PAGE) return;
      after = last;
    }
  }

  private async openIfHere(namespace: string): Promise<void> {
    if (await this.options.livesHere(namespace)) await this.open(namespace);
  }

  /** Names after one, in order, at most `limit`. */
  async listNamespaces(after: string, limit: number): Promise<string[]> {
    return this.options.store.listNamespaces(after, limit);
  }

  /**
   * The engine of a namespace, loaded when it is asked for first. Rejects when there is no such namespace; one that
   * cannot be loaded in a moment is returned as it is, and refuses until it is.
   */
  async open(namespace: string): Promise<NamespaceEngine> {
    const known = this.engines.get(namespace);
    if (known?.notReady === null) return known;
    const { engine, started } = this.begin(namespace);
    await Promise.race([started, pause(OPEN_WAIT_MS)]);
    return engine;
  }

  private begin(namespace: string): { engine: NamespaceEngine; started: Promise<void> } {
    let beginning = this.beginnings.get(namespace);
    if (beginning === undefined) {
      const engine = new NamespaceEngine(namespace, this.engineOptions);
      this.engines.set(namespace, engine);
      const started = engine.start();
      beginning = { engine, started };
      this.beginnings.set(namespace, beginning);
      started.catch(() => {
        this.engines.delete(namespace);
        this.beginnings.delete(namespace);
      });
    }
    return beginning;
  }

  async create(namespace: string, actor: string): Promise<boolean> {
    return createNamespace(namespace, actor, this.engineOptions);
  }

  /** Engines that are loaded, for gauges and readiness. */
  loaded(): readonly NamespaceEngine[] {
    return [...this.engines.values()];
  }

  /**
   * Why this replica should be sent no calls; empty when it can decide. Another namespace in trouble refuses for itself
   * and does not take the rest along.
   */
  reasonsNotReady(): string[] {
    const reasons: string[] = [];
    if (!this.alive()) {
      reasons.push('the heartbeat could not be written lately: is the database reachable and writable?');
    }
    const engine = this.engines.get(DEFAULT_NAMESPACE);
    if (engine === undefined) reasons.push('the default namespace is not loaded yet');
    else if (engine.notReady !== null) reasons.push(`${DEFAULT_NAMESPACE}: ${engine.notReady.message}`);
    // A heartbeat may still fit where an event does not.
    else if (engine.cannotWrite) reasons.push('the database cannot write: its disk is full, or it is read-only');
    // After an outage the database may be another one: it is asked before this replica is sent calls.
    else if (engine.sinceConfirmed() > HEARTBEAT_MAX_AGE) reasons.push('the database has not confirmed the log lately');
    return reasons;
  }

  /** A call hangs on a waiting request now: its place is kept while this replica lives (design: waiting). */
  attach(namespace: string, leaseId: string, attachment: number): void {
    const calls = this.attachments.get(namespace) ?? new Map<string, number>();
    calls.set(leaseId, attachment);
    this.attachments.set(namespace, calls);
  }

  /** The call was answered or its caller has gone: the place is kept a little longer, for the next call. */
  async detach(namespace: string, leaseId: string, attachment: number): Promise<void> {
    const calls = this.attachments.get(namespace);
    if (calls?.get(leaseId) !== attachment) return;
    calls.delete(leaseId);
    const engine = this.engines.get(namespace);
    const lease = engine?.state.leases.get(leaseId);
    // One that was granted or ended has nothing to give up: no append stands between it and its answer.
    if (engine === undefined || lease?.state !== 'waiting' || lease.waiting?.attachment !== attachment) return;
    await engine
      .submit('system', (decision) => decideAttach(decision, [{ leaseId, attachment, attached: false }]))
      .catch(() => undefined);
  }

  private alive(): boolean {
    return this.options.monotonicNow() - this.heartbeatAt <= HEARTBEAT_MAX_AGE;
  }

  private every(milliseconds: number, work: () => Promise<void>): void {
    let running = false;
    const timer = setInterval(() => {
      if (running || this.stopped) return;
      running = true;
      void work()
        .catch((error) => this.options.observer.problem('background work failed', error))
        .finally(() => {
          running = false;
        });
    }, milliseconds);
    timer.unref();
    this.timers.push(timer);
  }

  private async beat(): Promise<void> {
    if (this.beating) return;
    this.beating = true;
    try {
      await this.writeHeartbeat();
    } catch (error) {
      this.options.observer.notice('the heartbeat could not be written', { error: String(error) });
    } finally {
      this.beating = false;
    }
  }

  private async writeHeartbeat(): Promise<void> {
    // Counted from the send: the commit cannot be older than that.
    const sentAt = this.options.monotonicNow();
    await this.options.store.heartbeat(this.options.replicaId);
    this.heartbeatAt = Math.max(this.heartbeatAt, sentAt);
  }

  private async poll(): Promise<void> {
    await Promise.all(this.loaded().map((engine) => engine.refresh(this.options.pollInterval).catch(() => undefined)));
  }

  /** Expiry is true at reads; here it becomes events, a bounded number at a time. */
  private async sweep(): Promise<void> {
    for (const engine of this.engines.values()) {
      if (this.sweeping.has(engine) || !this.mustSweep(engine)) continue;
      // Each for itself: one that is slow holds up no other.
      this.sweeping.add(engine);
      void this.sweepOne(engine).finally(() => this.sweeping.delete(engine));
    }
  }

  private async sweepOne(engine: NamespaceEngine): Promise<void> {
    await pause(Math.random() * SWEEP_SPREAD_MS);
    let more = this.mustSweep(engine);
    while (more && this.canSweep(engine)) {
      const { value } = await engine.submit('system', decideSweep).catch(() => ({ value: { more: false } }));
      more = value.more;
    }
  }

  private canSweep(engine: NamespaceEngine): boolean {
    return !this.stopped && engine.notReady === null;
  }

  private mustSweep(engine: NamespaceEngine): boolean {
    return this.canSweep(engine) && this.due.isDue(engine.state, engine.estimatedNow());
  }

  private async extendAttachments(): Promise<void> {
    for (const [namespace, calls] of this.attachments) {
      const engine = this.engines.get(namespace);
      if (engine === undefined || calls.size === 0 || this.extending.has(engine)) continue;
      // Each for itself: one that is slow costs no caller of another its place.
      this.extending.add(engine);
      void this.extendIn(engine, calls).finally(() => this.extending.delete(engine));
    }
  }

  private async extendIn(engine: NamespaceEngine, calls: ReadonlyMap<string, number>): Promise<void> {
    const all = [...calls].map(([leaseId, attachment]) => ({ leaseId, attachment, attached: true }));
    for (let start = 0; start < all.length; start += ATTACH_CHUNK) {
      const chunk = all.slice(start, start + ATTACH_CHUNK);
      await engine.submit('system', (decision) => decideAttach(decision, chunk)).catch(() => undefined);
    }
  }

  /** A portion of each namespace in turn, and again of those that have more. */
  private async purge(): Promise<void> {
    let engines = this.loaded();
    while (engines.length > 0 && !this.stopped) {
      const withMore: NamespaceEngine[] = [];
      for (const engine of engines) if (await this.purgePortion(engine)) withMore.push(engine);
      engines = withMore;
      if (engines.length > 0) await pause(PURGE_PAUSE_MS);
    }
  }

  /** Whether there is more to purge; one namespace that fails does not keep the others from it. */
  private async purgePortion(engine: NamespaceEngine): Promise<boolean> {
    if (engine.notReady !== null || this.stopped) return false;
    const { store, purgeAfter, textRetention } = this.options;
    const now = engine.estimatedNow();
    try {
      const runs = await store.purge(engine.namespace, now - purgeAfter, PURGE_RUNS);
      const texts = await store.eraseTextsBefore(engine.namespace, now - textRetention, PURGE_TEXTS);
      const cut = await cutPortion(store, engine.namespace, CUT_EVENTS);
      return runs >= PURGE_RUNS || texts >= PURGE_TEXTS || cut.more;
    } catch (error) {
      this.options.observer.problem(`namespace ${engine.namespace} could not be purged`, error);
      return false;
    }
  }
}

/**
 * Whether something has come to its end by time. Many records are not walked at every look: until the earliest end that
 * the last walk saw nothing of what it saw is due, and what is newer than the walk is seen by the next one. Hardly
 * anything ends within a second of its beginning, and expiry is true at reads all the same.
 */
export class DueTimes {
  private readonly walks = new WeakMap<State, { readonly at: Micros; readonly nextEnd: Micros }>();

  isDue(state: State, now: Micros): boolean {
    const many = state.leases.size + state.runs.size > WALKED_EACH_TIME;
    const last = this.walks.get(state);
    if (many && last !== undefined && now < last.nextEnd && now < last.at + WALK_EVERY) return false;
    const nextEnd = earliestEnd(state, now, last?.at ?? 0);
    this.walks.set(state, { at: now, nextEnd });
    return nextEnd <= now;
  }
}

/**
 * The earliest end of anything live or closed, or start of a resource set that is waited for; the first one found that
 * is past serves as well. A start is seen once, by the first walk after it: whoever waits on has other reasons.
 */
function earliestEnd(state: State, now: Micros, lastWalk: Micros): Micros {
  let earliest = state.localKindsFrom ?? Number.POSITIVE_INFINITY;
  for (const lease of state.leases.values()) {
    const start = lease.state === 'waiting' ? startOf(state.map, lease.request) : 0;
    earliest = Math.min(earliest, endOf(lease), start > lastWalk ? start : Number.POSITIVE_INFINITY);
    if (earliest <= now) return earliest;
  }
  for (const { until } of state.freezes.values()) earliest = Math.min(earliest, until ?? Number.POSITIVE_INFINITY);
  for (const run of state.runs.values()) if (!isOver(run)) earliest = Math.min(earliest, run.authorityEndsAt);
  return earliest;
}

function endOf(lease: Lease): Micros {
  if (holdsLocks(lease)) return endsAt(lease);
  if (lease.state === 'ended' || lease.waiting === null) return Number.POSITIVE_INFINITY;
  return Math.min(lease.waiting.waitsUntil, lease.waiting.attachedUntil);
}
