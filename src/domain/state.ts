import type { Admission } from './admission.js';
import { type ConflictMap, EMPTY_CONFLICT_MAP } from './conflict-map/index.js';
import type { Revocation } from './credential.js';
import type { DatabaseIdentity } from './event.js';
import type { Freeze } from './freeze.js';
import { BaseHolderIndex, type HolderIndex, OverlayHolderIndex } from './holder-index.js';
import { emptyInputs, type Inputs, overlayInputs } from './inputs.js';
import type { KeyBinding } from './key-binding.js';
import { type Lease, underLockDelay } from './lease.js';
import { baseLockTable, type LockTable, overlayLockTable, rebaseLocks } from './lock-table.js';
import type { KindRehearsal } from './rehearsal.js';
import type { Run } from './run.js';
import { BaseTable, OverlayTable, type Table } from './table.js';
import type { Micros } from './time.js';

/** A resource seen that no kind matches. */
export interface Unmatched {
  readonly resource: string;
  readonly times: number;
  readonly lastSeenAt: Micros;
}

/** What the live runs of one principal come to; its ceiling is measured by it (R1). */
export interface Usage {
  readonly runs: number;
  /** Active and waiting ones. */
  readonly leases: number;
}

/**
 * The live state of one namespace: the fold of its log. Leases, runs and keys may also hold records
 * that ended a short while ago; what is missing is looked up in the projections by the engine.
 */
export interface State {
  readonly namespace: string;
  revision: number;
  /**
   * Time of the last event; time never goes back (design: time). A grant's token is the time of its
   * own event, which is later than that of any event before: so this is also the last token (P2).
   */
  time: Micros;
  mapVersion: number;
  map: ConflictMap;
  identity: DatabaseIdentity | null;
  activeLeases: number;
  waitingLeases: number;
  /** Ended leases of which some locks are still kept from other runs. */
  delayedLeases: number;
  /** Tracked writes whose outcome is not known. */
  openWrites: number;
  /** Those of them whose lease has ended: nobody is granted what they were let in for. */
  inDoubt: number;
  /** After lost history nobody is granted anything of a view or local kind before this; null: there is no such time. */
  localKindsFrom: Micros | null;
  readonly runs: Table<Run>;
  readonly leases: Table<Lease>;
  readonly keys: Table<KeyBinding>;
  readonly unmatched: Table<Unmatched>;
  /** By subject; one that does not matter any more may still be there. */
  readonly revocations: Table<Revocation>;
  /** Tracked writes that checks let in; those that are closed may still be there for a while. */
  readonly admissions: Table<Admission>;
  /** Ids of the open ones, by run. */
  readonly openWritesOf: Table<readonly string[]>;
  /** What writes in doubt keep from everybody; the holders are admissions. */
  readonly doubted: LockTable;
  /** By the kind's pattern; also of kinds that the map does not have any more. */
  readonly rehearsals: Table<KindRehearsal>;
  /** By pattern; one whose time has come may still be there. */
  readonly freezes: Table<Freeze>;
  /** What active leases hold, and what is under lock delay. */
  readonly held: LockTable;
  /** What waiting requests ask for. */
  readonly queued: LockTable;
  /** Live leases, active and waiting, by run. */
  readonly leasesOfRun: HolderIndex;
  /** Those of them that wait. */
  readonly waitingOfRun: HolderIndex;
  /** Ids of runs that hold and wait, or wait by several requests: no runs wait for each other in a circle without one. */
  readonly holdingAndWaiting: Table<string>;
  /** By principal. */
  readonly usage: Table<Usage>;
  /** Ids of the child runs that have not ended, by parent. */
  readonly childrenOf: Table<readonly string[]>;
  /** Ids of what holds a part of a lease, waits for it, or is under lock delay, by that lease. */
  readonly delegations: Table<readonly string[]>;
  /** What active leases read, and who was granted a write on it. */
  readonly inputs: Inputs;
}

/** State with nothing in it: before revision 1. */
export function emptyState(namespace: string): State {
  return {
    namespace,
    revision: 0,
    time: 0,
    mapVersion: 0,
    map: EMPTY_CONFLICT_MAP,
    identity: null,
    activeLeases: 0,
    waitingLeases: 0,
    delayedLeases: 0,
    openWrites: 0,
    inDoubt: 0,
    localKindsFrom: null,
    runs: new BaseTable(),
    leases: new BaseTable(),
    keys: new BaseTable(),
    unmatched: new BaseTable(),
    revocations: new BaseTable(),
    admissions: new BaseTable(),
    openWritesOf: new BaseTable(),
    doubted: baseLockTable(),
    rehearsals: new BaseTable(),
    freezes: new BaseTable(),
    held: baseLockTable(),
    queued: baseLockTable(),
    leasesOfRun: new BaseHolderIndex(),
    waitingOfRun: new BaseHolderIndex(),
    holdingAndWaiting: new BaseTable(),
    usage: new BaseTable(),
    childrenOf: new BaseTable(),
    delegations: new BaseTable(),
    inputs: emptyInputs(),
  };
}

/** A state whose changes are not seen by the state it lies over, until they are committed to it. */
export interface Overlay extends State {
  readonly runs: OverlayTable<Run>;
  readonly leases: OverlayTable<Lease>;
  readonly keys: OverlayTable<KeyBinding>;
  readonly unmatched: OverlayTable<Unmatched>;
  readonly usage: OverlayTable<Usage>;
  readonly childrenOf: OverlayTable<readonly string[]>;
  readonly delegations: OverlayTable<readonly string[]>;
  readonly revocations: OverlayTable<Revocation>;
  readonly admissions: OverlayTable<Admission>;
  readonly openWritesOf: OverlayTable<readonly string[]>;
  readonly rehearsals: OverlayTable<KindRehearsal>;
  readonly freezes: OverlayTable<Freeze>;
  commit(): void;
  /** From now on lies over another state, which holds what the one before did: the state that its own base became. */
  rebase(onto: State): void;
}

/** Lays an overlay over a state. The state must not change while the overlay is in use. */
export function overlay(state: State): Overlay {
  let base = state;
  const runs = new OverlayTable(base.runs);
  const leases = new OverlayTable(base.leases);
  const keys = new OverlayTable(base.keys);
  const unmatched = new OverlayTable(base.unmatched);
  const revocations = new OverlayTable(base.revocations);
  const admissions = new OverlayTable(base.admissions);
  const openWritesOf = new OverlayTable(base.openWritesOf);
  const doubted = overlayLockTable(base.doubted);
  const rehearsals = new OverlayTable(base.rehearsals);
  const freezes = new OverlayTable(base.freezes);
  const held = overlayLockTable(base.held);
  const queued = overlayLockTable(base.queued);
  const leasesOfRun = new OverlayHolderIndex(base.leasesOfRun);
  const waitingOfRun = new OverlayHolderIndex(base.waitingOfRun);
  const holdingAndWaiting = new OverlayTable(base.holdingAndWaiting);
  const usage = new OverlayTable(base.usage);
  const childrenOf = new OverlayTable(base.childrenOf);
  const delegations = new OverlayTable(base.delegations);
  const inputs = overlayInputs(base.inputs);
  return {
    namespace: base.namespace,
    revision: base.revision,
    time: base.time,
    mapVersion: base.mapVersion,
    map: base.map,
    identity: base.identity,
    activeLeases: base.activeLeases,
    waitingLeases: base.waitingLeases,
    delayedLeases: base.delayedLeases,
    openWrites: base.openWrites,
    inDoubt: base.inDoubt,
    localKindsFrom: base.localKindsFrom,
    runs,
    leases,
    keys,
    unmatched,
    revocations,
    admissions,
    openWritesOf,
    doubted,
    rehearsals,
    freezes,
    held,
    queued,
    leasesOfRun,
    waitingOfRun,
    holdingAndWaiting,
    usage,
    childrenOf,
    delegations,
    inputs,
    commit() {
      inputs.commit();
      base.revision = this.revision;
      base.time = this.time;
      base.mapVersion = this.mapVersion;
      base.map = this.map;
      base.identity = this.identity;
      base.activeLeases = this.activeLeases;
      base.waitingLeases = this.waitingLeases;
      base.delayedLeases = this.delayedLeases;
      base.openWrites = this.openWrites;
      base.inDoubt = this.inDoubt;
      base.localKindsFrom = this.localKindsFrom;
      const tables = [runs, leases, keys, unmatched, revocations, leasesOfRun, waitingOfRun, holdingAndWaiting, usage];
      for (const table of [...tables, childrenOf, admissions, openWritesOf, rehearsals, freezes, delegations])
        table.commit();
      for (const index of [held, queued, doubted].flatMap((locks) => Object.values(locks))) index.commit();
    },
    rebase(onto) {
      base = onto;
      runs.rebase(onto.runs);
      leases.rebase(onto.leases);
      keys.rebase(onto.keys);
      unmatched.rebase(onto.unmatched);
      revocations.rebase(onto.revocations);
      admissions.rebase(onto.admissions);
      openWritesOf.rebase(onto.openWritesOf);
      rebaseLocks(doubted, onto.doubted);
      rehearsals.rebase(onto.rehearsals);
      freezes.rebase(onto.freezes);
      rebaseLocks(held, onto.held);
      rebaseLocks(queued, onto.queued);
      leasesOfRun.rebase(onto.leasesOfRun);
      waitingOfRun.rebase(onto.waitingOfRun);
      holdingAndWaiting.rebase(onto.holdingAndWaiting);
      usage.rebase(onto.usage);
      childrenOf.rebase(onto.childrenOf);
      delegations.rebase(onto.delegations);
      inputs.rebase(onto.inputs);
    },
  };
}

/** Key of a binding in the table of keys. */
export function bindingId(scope: string, key: string): string {
  return `${scope}\n${key}`;
}

/** Live leases of a run: active and waiting. */
export function* liveLeasesOf(state: State, runId: string): Iterable<Lease> {
  for (const holder of state.leasesOfRun.holders(runId)) {
    const lease = state.leases.get(holder.leaseId);
    if (lease !== undefined) yield lease;
  }
}

/** Whether the run holds and waits, or waits by several requests. */
export function holdsAndWaits(state: State, runId: string): boolean {
  if (state.waitingOfRun.isEmpty || isNone(state.waitingOfRun.holders(runId))) return false;
  let live = 0;
  for (const _ of state.leasesOfRun.holders(runId)) {
    live += 1;
    if (live === 2) return true;
  }
  return false;
}

function isNone(holders: Iterable<unknown>): boolean {
  for (const _ of holders) return false;
  return true;
}

/** The run's writes whose outcome is not known, the oldest first. */
export function openWritesOf(state: State, runId: string): Admission[] {
  if (state.openWrites === 0) return [];
  return (state.openWritesOf.get(runId) ?? []).flatMap((id) => state.admissions.get(id) ?? []);
}

/** Those that were let in under one lease. */
export function openWritesUnder(state: State, { runId, leaseId }: Pick<Lease, 'runId' | 'leaseId'>): Admission[] {
  if (state.openWrites === 0) return [];
  return openWritesOf(state, runId).filter((admission) => admission.leaseId === leaseId);
}

/** The run's descendants that have not ended, the deepest first. */
export function descendantsOf(state: State, runId: string): Run[] {
  return (state.childrenOf.get(runId) ?? []).flatMap((childId) => {
    const child = state.runs.get(childId);
    return [...descendantsOf(state, childId), ...(child === undefined ? [] : [child])];
  });
}

/** Ended leases of which some locks are still kept from other runs. */
export function* delayedLeases(state: State): Iterable<Lease> {
  if (state.delayedLeases === 0) return;
  for (const lease of state.leases.values()) if (underLockDelay(lease)) yield lease;
}
