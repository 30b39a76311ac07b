import type { View } from '../domain/decide/decision.js';
import type { DomainEvent } from '../domain/event.js';
import {
  type Closing,
  closingsOf,
  closingsPerhapsOver,
  type Fence,
  fenceChanges,
  fenceOf,
  type Watcher,
  watchedKinds,
} from '../domain/fence-watch.js';
import type { Lease } from '../domain/lease.js';
import type { State } from '../domain/state.js';
import type { Micros } from '../domain/time.js';
import type { NamespaceEngine } from '../engine/namespace-engine.js';
import type { LogPosition } from '../engine/recent-events.js';
import type { CallContext } from './api.js';
import { type Deps, engineOf } from './deps.js';
import { type FenceUpdate, type FenceWatch, leaseDigest, type WatchFencesInput } from './fence-watches.js';
import { FieldChecks } from './fields.js';

/**
 * WatchFences: what a target decides by that does not ask for every write. The stream is pulled: whoever reads slowly is
 * told less often, and nothing waits for them here but a place in the log. A mark answers a ping of the watcher, and is
 * given only after everything has been told that the database had at some moment after the ping had come: so the watcher
 * knows by its own clock how old its view can be at most, whoever was paused for however long in between (P3, F2).
 */

/** Leases told in one turn of the event loop; checks and grants go on in between. */
const FENCES_PER_TURN = 200;

export async function watchFences(deps: Deps, context: CallContext, input: WatchFencesInput): Promise<FenceWatch> {
  const checks = new FieldChecks();
  if (input.from !== null) {
    if (!/^[0-9a-f]{64}$/.test(input.from.hash))
      checks.reject('open.resume_from.hash', 'must be 64 lower-case hexadecimal digits');
    if (input.from.revision < 1) checks.reject('open.resume_from.revision', 'must be 1 or more');
  }
  checks.done();
  const { name } = context.principal;
  deps.fenceWatches.take(name);
  try {
    const engine = await engineOf(deps, context);
    // At a head that the database has just confirmed: what another replica has told of is known here, too.
    await engine.read(() => null);
    const watch = new Watch(deps, engine, { target: name, viewKindsOnly: input.viewKindsOnly }, input.from);
    // What is wrong with the place is said before anything else.
    if (input.from !== null) await engine.after(input.from);
    return watch;
  } catch (error) {
    deps.fenceWatches.release(name);
    throw error;
  }
}

class Watch implements FenceWatch {
  private telling: Iterator<FenceUpdate[]> | null = null;
  private pinged: number | null = null;
  /** The mark that is due once everything up to its revision has been told. */
  private due: { readonly ping: number; readonly revision: number; readonly now: Micros } | null = null;
  private closed = false;
  private wake: () => void = () => undefined;
  private closings: ReadonlyMap<string, Closing> = new Map();
  /**
   * From this revision on all that was told to be closed is among the closings. One that goes on from a place may have
   * been told more before. Null: it has not begun to tell.
   */
  private closingsKnownFrom: number | null = null;
  private readonly unsubscribe: () => void;

  constructor(
    private readonly deps: Deps,
    private readonly engine: NamespaceEngine,
    private readonly watcher: Watcher,
    /** Where it has come to; null: nothing has been told. */
    private position: LogPosition | null,
  ) {
    this.unsubscribe = engine.onAdvance(() => this.wake());
  }

  async next(): Promise<readonly FenceUpdate[]> {
    for (;;) {
      if (this.closed) throw new Error('the watch was closed');
      if (this.engine.notReady !== null) throw this.engine.notReady;
      const told = this.nextOfSnapshot();
      if (told !== null) return told;
      if (this.position === null) await this.beginSnapshot();
      else if (this.due !== null) return this.mark(this.position, this.due);
      else if (this.pinged !== null) await this.readIndex(this.pinged);
      else if (this.engine.head.revision !== this.position.revision) return this.follow(this.position);
      else await this.more();
    }
  }

  ping(number: number): void {
    this.pinged = number;
    this.wake();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.unsubscribe();
    this.deps.fenceWatches.release(this.watcher.target);
    this.wake();
  }

  private more(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
    });
  }

  private nextOfSnapshot(): readonly FenceUpdate[] | null {
    if (this.telling === null) return null;
    const { value, done } = this.telling.next();
    if (done !== true) return value;
    this.telling = null;
    return null;
  }

  /** Leases are immutable records: what is live now can be told a portion at a time, while the state moves on. */
  private async beginSnapshot(): Promise<void> {
    const { engine, watcher, deps } = this;
    const { value } = await engine.read(({ state }: View) => {
      this.closings = closingsOf(state, watcher);
      const leases = [...state.leases.values()].filter((lease) => lease.state === 'active');
      const { map, mapVersion } = state;
      return { map, mapVersion, leases, position: positionOf(engine), closings: this.closings };
    });
    this.position = value.position;
    this.closingsKnownFrom = value.position.revision;
    this.telling = snapshot(watcher, { ...value, maxClockSkew: deps.maxClockSkew });
  }

  /** All that is known here and has not been told. */
  private async follow(from: LogPosition): Promise<readonly FenceUpdate[]> {
    const { engine, watcher } = this;
    const placed = await engine.after(from);
    const last = placed[placed.length - 1];
    if (last === undefined) return [];
    const events = placed.map(({ event }) => event);
    const changes = fenceChanges(engine.state, watcher, events);
    if (changes === null) {
      this.position = null;
      return [];
    }
    const position = { revision: last.revision, hash: last.hash };
    this.position = position;
    const updates = changes.map((change): FenceUpdate => {
      if (change.kind === 'fence') return fenceUpdate(change.fence);
      const { leaseId, ...rest } = change;
      return { ...rest, digest: leaseDigest(leaseId) };
    });
    return [...updates, ...this.changedClosings(engine.state, from, events), { kind: 'reached', position }];
  }

  private changedClosings(state: State, from: LogPosition, events: readonly DomainEvent[]): FenceUpdate[] {
    const { watcher, closings: known } = this;
    this.closingsKnownFrom ??= this.engine.head.revision;
    const isKnown = from.revision >= this.closingsKnownFrom;
    const before = isKnown ? known : new Map([...closingsPerhapsOver(state.map, watcher, events), ...known]);
    if (state.inDoubt === 0 && state.freezes.size === 0 && before.size === 0) return [];
    const now = closingsOf(state, watcher);
    this.closings = now;
    const begun = [...now].filter(([name]) => !known.has(name));
    const over = [...before].filter(([name]) => !now.has(name));
    return [...begun.map(([, closing]) => closed(closing, true)), ...over.map(([, closing]) => closed(closing, false))];
  }

  /** It comes after the ping: all that it knows is told before the mark. */
  private async readIndex(ping: number): Promise<void> {
    this.pinged = null;
    const { revision, now } = await this.engine.read(() => null);
    this.due = { ping, revision, now };
  }

  /** Also where nothing is new the log is looked at: it must still continue the place that was reached. */
  private async mark(from: LogPosition, { ping, revision, now }: NonNullable<Watch['due']>) {
    const updates = await this.follow(from);
    const { position } = this;
    // A snapshot comes first, or more of the log.
    if (position === null || position.revision < revision) return updates;
    this.due = null;
    const mark: FenceUpdate = { kind: 'mark', ping, position, now };
    return [...updates, mark];
  }
}

interface SnapshotFacts {
  readonly map: State['map'];
  readonly mapVersion: number;
  readonly maxClockSkew: Micros;
  readonly leases: readonly Lease[];
  readonly closings: ReadonlyMap<string, Closing>;
  readonly position: LogPosition;
}

function* snapshot(watcher: Watcher, facts: SnapshotFacts): Generator<FenceUpdate[]> {
  const { map, mapVersion, maxClockSkew, leases, closings, position } = facts;
  const kinds = watchedKinds(map, watcher);
  yield [
    { kind: 'snapshot', mapVersion, maxClockSkew },
    ...kinds.map((watchedKind): FenceUpdate => ({ kind: 'watched_kind', watchedKind })),
  ];
  for (let start = 0; start < leases.length; start += FENCES_PER_TURN) {
    const portion = leases.slice(start, start + FENCES_PER_TURN);
    const fences = portion.flatMap((lease) => fenceOf(map, watcher, lease) ?? []);
    yield fences.map(fenceUpdate);
  }
  yield [...closings.values()].map((closing) => closed(closing, true));
  yield [{ kind: 'reached', position }];
}

function fenceUpdate({ leaseId, ...fence }: Fence): FenceUpdate {
  return { kind: 'fence', digest: leaseDigest(leaseId), fence };
}

function closed(closing: Closing, isClosed: boolean): FenceUpdate {
  return { kind: 'closed', closing, isClosed };
}

function positionOf(engine: NamespaceEngine): LogPosition {
  const { revision, hash } = engine.head;
  return { revision, hash };
}
