import { decideAttach, decideSweep } from '../domain/decide/upkeep.js';
import { isPast } from '../domain/lease.js';
import { hasEnded } from '../domain/run.js';
import { MILLISECOND, type Micros, SECOND } from '../domain/time.js';
import { createNamespace } from './establish.js';
import { NamespaceEngine } from './namespace-engine.js';
import type { EngineOptions } from './options.js';
import { pause } from './trouble.js';

/** A replica whose last committed heartbeat is older than this denies. */
const HEARTBEAT_MAX_AGE: Micros = 2 * SECOND;
const HEARTBEAT_EVERY_MS = 500;
const SWEEP_EVERY_MS = 250;
const ATTACH_EVERY_MS = 5_000;
const PURGE_EVERY_MS = 60_000;
const PURGE_RUNS = 200;
const NAMESPACES_PAGE = 1_000;
const DEFAULT_NAMESPACE = 'default';
/** Namespaces that other replicas created are found this often, without a hint. */
const OPEN_EVERY_MS = 5_000;
/** How long a call waits for a namespace that is being loaded. */
const OPEN_WAIT_MS = 2_000;
/** Most attachments that one command extends. */
const ATTACH_CHUNK = 500;

export interface ReplicaOptions extends Omit<EngineOptions, 'alive'> {
  readonly replicaId: string;
  /** Ended runs and what belongs to them are removed from the projections after this. */
  readonly purgeAfter: Micros;
}

/** One coordinator process: its namespaces, and the work that goes on without being asked for. */
export class Replica {
  private readonly engines = new Map<string, NamespaceEngine>();
  private readonly beginnings = new Map<string, { engine: NamespaceEngine; started: Promise<void> }>();
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly attachments = new Map<string, Map<string, number>>();
  private heartbeatAt: Micros = Number.NEGATIVE_INFINITY;
  private beating = false;
  private unsubscribe: () => void = () => undefined;
  private stopped = false;
  private readonly engineOptions: EngineOptions;

  constructor(private readonly options: ReplicaOptions) {
    this.engineOptions = { ...options, alive: () => this.alive() };
  }

  /** Starts the background work and opens every namespace there is; "default" exists from the start. */
  async start(): Promise<void> {
    await this.beat();
    this.every(HEARTBEAT_EVERY_MS, () => this.beat());
    this.every(this.options.pollInterval / MILLISECOND, () => this.poll());
    this.every(SWEEP_EVERY_MS, () => this.sweep());
    this.every(ATTACH_EVERY_MS, () => this.extendAttachments());
    this.every(PURGE_EVERY_MS, () => this.purge());
    this.unsubscribe = this.options.store.onAppended((namespace) => this.hinted(namespace));
    await createNamespace(DEFAULT_NAMESPACE, 'system', this.engineOptions);
    await this.begin(DEFAULT_NAMESPACE).started;
    this.every(OPEN_EVERY_MS, () => this.openAll());
    await this.openAll();
  }

  /** Another replica has written: follow, or begin to. */
  private hinted(namespace: string): void {
    const engine = this.engines.get(namespace);
    const work = engine === undefined ? this.open(namespace) : engine.refresh();
    void work.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.stopped = true;
    for (const timer of this.timers) clearInterval(timer);
    this.unsubscribe();
    for (const engine of this.engines.values()) engine.stop();
    await this.options.witness.close();
  }

  /**
   * Every namespace is followed, whoever created it: this replica's witness knows how far each log went, and its sweeps
   * go on when others die. One that is in trouble holds up no other.
   */
  private async openAll(): Promise<void> {
    for (let after = ''; ; ) {
      const names = await this.options.store.listNamespaces(after, NAMESPACES_PAGE);
      for (const name of names) if (!this.engines.has(name)) void this.open(name).catch(() => undefined);
      const last = names[names.length - 1];
      if (last === undefined || names.length < NAMESPACES_PAGE) return;
      after = last;
    }
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
    const trouble = this.engines.get(DEFAULT_NAMESPACE)?.notReady;
    if (trouble === undefined) reasons.push('the default namespace is not loaded yet');
    else if (trouble !== null) reasons.push(`${DEFAULT_NAMESPACE}: ${trouble.message}`);
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
    if (engine === undefined) return;
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
    // Counted from the send: the commit cannot be older than that.
    const sentAt = this.options.monotonicNow();
    try {
      await this.options.store.heartbeat(this.options.replicaId);
      this.heartbeatAt = sentAt;
    } catch (error) {
      this.options.observer.notice('the heartbeat could not be written', { error: String(error) });
    } finally {
      this.beating = false;
    }
  }

  private async poll(): Promise<void> {
    await Promise.all(this.loaded().map((engine) => engine.refresh(this.options.pollInterval).catch(() => undefined)));
  }

  /** Expiry is true at reads; here it becomes events, a bounded number at a time. */
  private async sweep(): Promise<void> {
    for (const engine of this.engines.values()) {
      if (engine.notReady !== null) continue;
      while (somethingIsDue(engine) && !this.stopped) {
        const { value } = await engine.submit('system', decideSweep).catch(() => ({ value: { more: false } }));
        if (!value.more) break;
      }
    }
  }

  private async extendAttachments(): Promise<void> {
    for (const [namespace, calls] of this.attachments) {
      const engine = this.engines.get(namespace);
      const all = [...calls].map(([leaseId, attachment]) => ({ leaseId, attachment, attached: true }));
      for (let start = 0; engine !== undefined && start < all.length; start += ATTACH_CHUNK) {
        const chunk = all.slice(start, start + ATTACH_CHUNK);
        await engine.submit('system', (decision) => decideAttach(decision, chunk)).catch(() => undefined);
      }
    }
  }

  private async purge(): Promise<void> {
    for (const engine of this.engines.values()) {
      if (engine.notReady === null)
        await this.options.store.purge(engine.namespace, engine.estimatedNow() - this.options.purgeAfter, PURGE_RUNS);
    }
  }
}

function somethingIsDue(engine: NamespaceEngine): boolean {
  const now = engine.estimatedNow();
  for (const lease of engine.state.leases.values()) {
    if (lease.state === 'active' && isPast(lease, now)) return true;
    if (
      lease.state === 'waiting' &&
      lease.waiting !== null &&
      Math.min(lease.waiting.waitsUntil, lease.waiting.attachedUntil) <= now
    )
      return true;
  }
  for (const run of engine.state.runs.values()) if (!hasEnded(run) && run.authorityEndsAt <= now) return true;
  return false;
}
