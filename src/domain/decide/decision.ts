import type { Admission } from '../admission.js';
import type { DomainEvent, EventBody } from '../event.js';
import { evolve } from '../evolve.js';
import type { KeyBinding } from '../key-binding.js';
import type { Lease } from '../lease.js';
import { CREDENTIAL_BOUNDS, type CredentialBounds } from '../lock-delay.js';
import type { Run } from '../run.js';
import { bindingId, type Overlay, overlay, type State } from '../state.js';
import type { Micros } from '../time.js';

/** Bounds of one namespace (design: leases), each refused by name; and of what a target may accept without asking. */
export interface Bounds extends CredentialBounds {
  readonly maxEntries: number;
  readonly maxLocks: number;
  readonly maxWaiters: number;
  readonly maxWaitersPerRun: number;
  readonly maxLeases: number;
  readonly maxLeasesPerRun: number;
  /** Tracked writes whose outcome is not known. */
  readonly maxOpenWrites: number;
  readonly maxOpenWritesPerRun: number;
}

export const DEFAULT_BOUNDS: Bounds = {
  maxEntries: 256,
  maxLocks: 4_096,
  maxWaiters: 10_000,
  maxWaitersPerRun: 64,
  maxLeases: 1_000_000,
  maxLeasesPerRun: 1_000,
  maxOpenWrites: 10_000,
  maxOpenWritesPerRun: 256,
  ...CREDENTIAL_BOUNDS,
};

/** Records that are no longer in memory; the engine loads them and decides again. */
export class NeedsLoad extends Error {
  override readonly name = 'NeedsLoad';
  constructor(
    readonly wanted: {
      readonly leaseId?: string;
      readonly runId?: string;
      readonly key?: { scope: string; key: string };
      /** All that a command about many will ask for: looked up together. */
      readonly leaseIds?: readonly string[];
      readonly runIds?: readonly string[];
      readonly admissionId?: string;
      /** All that checks of this lease by this request id let in. */
      readonly check?: CheckName;
    },
  ) {
    super('a record must be loaded before this can be decided');
  }
}

/** What the admissions of one check have in common. */
export interface CheckName {
  readonly leaseId: string;
  readonly requestId: string;
}

/** Key of a check's admissions among the loaded records. */
export function checkId({ leaseId, requestId }: CheckName): string {
  return `${leaseId}\n${requestId}`;
}

/** What the engine has loaded for a command: null means that there is no such record. */
export interface LoadedRecords {
  readonly leases: ReadonlyMap<string, Lease | null>;
  readonly runs: ReadonlyMap<string, Run | null>;
  readonly keys: ReadonlyMap<string, KeyBinding | null>;
  readonly admissions: ReadonlyMap<string, Admission | null>;
  /** Ids of admissions, by check; those are loaded as well. */
  readonly checks: ReadonlyMap<string, readonly string[]>;
}

export const NOTHING_LOADED: LoadedRecords = {
  leases: new Map(),
  runs: new Map(),
  keys: new Map(),
  admissions: new Map(),
  checks: new Map(),
};

/** What is known at one revision and one time: for reads, checks and decisions alike. */
export class View<S extends State = State> {
  constructor(
    readonly state: S,
    protected readonly clock: Micros,
    private readonly loaded: LoadedRecords = NOTHING_LOADED,
  ) {}

  /** Never before the last event, so that time does not go back. */
  get now(): Micros {
    return Math.max(this.clock, this.state.time);
  }

  /** The run; undefined when there is none. Throws NeedsLoad when that is not known. */
  run(runId: string): Run | undefined {
    const run = this.state.runs.get(runId);
    if (run !== undefined) return run;
    const loaded = this.loaded.runs.get(runId);
    if (loaded === undefined) throw new NeedsLoad({ runId });
    return loaded ?? undefined;
  }

  /** The lease; undefined when there is none. Throws NeedsLoad when that is not known. */
  lease(leaseId: string): Lease | undefined {
    const lease = this.state.leases.get(leaseId);
    if (lease !== undefined) return lease;
    const loaded = this.loaded.leases.get(leaseId);
    if (loaded === undefined) throw new NeedsLoad({ leaseId });
    return loaded ?? undefined;
  }

  /** The admission; undefined when there is none. Throws NeedsLoad when that is not known. */
  admission(admissionId: string): Admission | undefined {
    const admission = this.state.admissions.get(admissionId);
    if (admission !== undefined) return admission;
    const loaded = this.loaded.admissions.get(admissionId);
    if (loaded === undefined) throw new NeedsLoad({ admissionId });
    return loaded ?? undefined;
  }

  /** All admissions of a check, closed ones too, as they are now. Throws NeedsLoad when they are not known. */
  admissionsOf(check: CheckName): Admission[] {
    const ids = this.loaded.checks.get(checkId(check));
    if (ids === undefined) throw new NeedsLoad({ check });
    return ids.flatMap((id) => this.admission(id) ?? []);
  }

  /** Asks for all leases that are not known at once, so that a command about many costs one look-up. */
  needLeases(leaseIds: readonly string[]): void {
    const unknown = leaseIds.filter((id) => this.state.leases.get(id) === undefined && !this.loaded.leases.has(id));
    const [leaseId] = unknown;
    if (leaseId !== undefined) throw new NeedsLoad({ leaseId, leaseIds: unknown });
  }

  /** Likewise for runs. */
  needRuns(runIds: readonly string[]): void {
    const unknown = runIds.filter((id) => this.state.runs.get(id) === undefined && !this.loaded.runs.has(id));
    if (unknown.length > 0) throw new NeedsLoad({ runIds: unknown });
  }

  /** A decision on an overlay that is thrown away: what a command would do now. */
  preview(actor: string, bounds: Bounds): Decision {
    return new Decision(overlay(this.state), this.now, actor, bounds, this.loaded);
  }

  protected boundKey(scope: string, key: string): KeyBinding | undefined {
    const id = bindingId(scope, key);
    return this.state.keys.get(id) ?? this.loaded.keys.get(id) ?? undefined;
  }
}

/** Who and what an event is about, besides its body. */
export interface Concerning {
  readonly runId?: string;
  readonly leaseId?: string;
  readonly resources?: readonly string[];
  readonly requestIds?: readonly string[];
}

/**
 * One command being decided: it reads the overlay, emits events, which change the overlay at once, and
 * notes what it relied on. `decide(state, command, time) → events | refusal` without I/O, clock or
 * randomness.
 */
export class Decision extends View<Overlay> {
  readonly events: DomainEvent[] = [];
  /** Keys taken to be new; the append proves it (P6). */
  readonly newKeys: { scope: string; key: string }[] = [];
  /** The earliest time that was taken to be in the future; the append proves it (P5). */
  reliedOnAsFuture: Micros | null = null;
  reliedOnAsPast: Micros | null = null;

  constructor(
    state: Overlay,
    clock: Micros,
    readonly actor: string,
    readonly bounds: Bounds,
    loaded: LoadedRecords = NOTHING_LOADED,
  ) {
    super(state, clock, loaded);
  }

  /** The time of a grant, which is its token: later than every event before it (P2). */
  nextToken(): Micros {
    return Math.max(this.clock, this.state.time + 1);
  }

  emit(body: EventBody, concerning: Concerning = {}, time: Micros = this.now): void {
    const event: DomainEvent = {
      time,
      actor: this.actor,
      runId: concerning.runId ?? '',
      leaseId: concerning.leaseId ?? '',
      resources: concerning.resources ?? [],
      requestIds: concerning.requestIds ?? [],
      body,
    };
    this.events.push(event);
    evolve(this.state, event, this.state.revision + 1);
  }

  relyOnFuture(time: Micros): void {
    if (this.reliedOnAsFuture === null || time < this.reliedOnAsFuture) this.reliedOnAsFuture = time;
  }

  relyOnPast(time: Micros): void {
    if (this.reliedOnAsPast === null || time > this.reliedOnAsPast) this.reliedOnAsPast = time;
  }

  /** The binding of a key; when none is known it is taken to be new, which the append proves. */
  key(scope: string, key: string): KeyBinding | undefined {
    const known = this.boundKey(scope, key);
    if (known !== undefined) return known;
    this.newKeys.push({ scope, key });
    return undefined;
  }
}
