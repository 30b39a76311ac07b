import {
  type ConflictMap,
  type ExpandedWriteSet,
  expandLeniently,
  expandWriteSet,
  ruleLocksOf,
} from '../conflict-map/index.js';
import type { Allowance, ExpandedEntry, WriteSetRequest } from '../entry.js';
import { Fault } from '../fault.js';
import { locksOfLease } from '../held-locks.js';
import type { Lease, LeaseEntry } from '../lease.js';
import { endsAt, holdsLocks, isFreeByTime, staysLocked, underLockDelay } from '../lease.js';
import { locksOf } from '../locks.js';
import { type Asker, holdersInTheWay } from '../obstacles.js';
import type { Refusal } from '../refusal.js';
import type { Micros } from '../time.js';
import { type Deadlocked, endDeadlocked } from './deadlocks.js';
import type { Decision } from './decision.js';
import { endLeases } from './ending.js';
import { grantWaiters, isFree } from './granting.js';

export type OnLiveConflict = 'refuse' | 'revoke_newer' | 'keep_until_end';

export interface PutMapCommand {
  readonly text: string;
  readonly document: unknown;
  /** The document, compiled. */
  readonly map: ConflictMap;
  readonly expectedVersion: number;
  readonly reason: string;
  readonly onLiveConflict: OnLiveConflict;
  readonly requestIds: readonly string[];
}

/** A live lease that the change touches. */
export interface AffectedLease {
  readonly leaseId: string;
  readonly runId: string;
  readonly generation: number;
  readonly added: readonly ExpandedEntry[];
  readonly conflictsWith: readonly string[];
  readonly ended: boolean;
  readonly noLongerGranted: string;
}

export interface PutMapDecision {
  readonly version: number;
  readonly affected: readonly AffectedLease[];
}

/**
 * PutConflictMap: against the version it was read at. Every live and waiting lease, and what is under lock delay, is
 * expanded anew in the same append; locks are only ever added. Pairs now in conflict are handled as the admin said.
 */
export function decidePutMap(decision: Decision, command: PutMapCommand): PutMapDecision {
  const current = decision.state.mapVersion;
  if (current !== command.expectedVersion) throw versionConflict(current, command.expectedVersion);
  const version = current + 1;
  const changes = reexpandAll(decision, command.map);
  decision.emit(
    {
      kind: 'conflict_map_put',
      version,
      text: command.text,
      document: command.document,
      reason: command.reason,
      onLiveConflict: command.onLiveConflict,
    },
    { requestIds: command.requestIds },
  );
  for (const change of changes) if (change.next !== null) emitReexpanded(decision, change.lease, change.next);
  const conflicts = conflictsAmong(decision, changes);
  if (command.onLiveConflict === 'refuse' && conflicts.size > 0) throw liveConflict(conflicts);
  const newer = command.onLiveConflict === 'revoke_newer' ? newerOfPairs(decision, conflicts) : new Set<string>();
  const doomed = [...newer].map((leaseId) => decision.state.leases.get(leaseId)).filter((lease) => lease !== undefined);
  if (doomed.length > 0)
    endLeases(
      decision,
      doomed,
      'map_changed',
      'A change of the conflict map put it in conflict with an older lease.',
      command.requestIds,
    );
  const stuck = changes.some((change) => change.next !== null) ? settleQueue(decision, command.requestIds) : [];
  const told = withDeadlocked(changes, stuck);
  const ended = new Set([...newer, ...stuck.map(({ lease }) => lease.leaseId)]);
  const affected = told.map((change) => affectedBy(change, conflicts, ended));
  return {
    version,
    affected: affected.filter(
      (a) => a.added.length > 0 || a.conflictsWith.length > 0 || a.noLongerGranted !== '' || a.ended,
    ),
  };
}

/** PreviewConflictMap: the same decision on an overlay that is thrown away; live conflicts are told, not thrown. */
export function previewPutMap(
  decision: Decision,
  command: PutMapCommand,
): { accepted: boolean; affected: readonly AffectedLease[] } {
  const asking = { ...command, expectedVersion: decision.state.mapVersion };
  if (command.onLiveConflict !== 'refuse') return { accepted: true, affected: decidePutMap(decision, asking).affected };
  const told = decidePutMap(decision, { ...asking, onLiveConflict: 'keep_until_end' });
  return { accepted: told.affected.every((lease) => lease.conflictsWith.length === 0), affected: told.affected };
}

interface Change {
  readonly lease: Lease;
  /** What it expands to now; null: nothing changes. */
  readonly next: {
    entries: readonly LeaseEntry[];
    ruleLocks: Lease['ruleLocks'];
    added: readonly ExpandedEntry[];
  } | null;
  readonly noLongerGranted: string;
}

function reexpandAll(decision: Decision, map: ConflictMap): Change[] {
  const changes: Change[] = [];
  for (const lease of decision.state.leases.values()) {
    if (lease.state === 'ended' && !underLockDelay(lease)) continue;
    if (isFreeByTime(lease, decision.now)) {
      decision.relyOnPast(endsAt(lease));
      continue;
    }
    const allowed = decision.state.runs.get(lease.runId)?.allowed ?? [];
    const { writeSet, refusal } = expandLive(decision, map, lease, allowed);
    const next = writeSet === null ? null : union(lease, writeSet);
    if (next !== null || refusal !== null) changes.push({ lease, next, noLongerGranted: refusal?.message ?? '' });
  }
  return changes;
}

/**
 * What a live lease expands to on the new map. One that is held gets its locks also where it would be
 * refused now, for it stays held (P1); a waiting request that would be is refused when its turn comes.
 */
function expandLive(
  decision: Decision,
  map: ConflictMap,
  lease: Lease,
  allowed: readonly Allowance[],
): { writeSet: Expanded | null; refusal: Refusal | null } {
  if (lease.state === 'ended') return { writeSet: expandDelayed(map, lease), refusal: null };
  if (lease.request === null) return expandLeniently(map, askedFor(lease), allowed, decision.bounds.maxLocks);
  const expanded = expandWriteSet(map, lease.request, allowed, decision.bounds);
  return expanded.ok ? { writeSet: expanded.writeSet, refusal: null } : { writeSet: null, refusal: expanded.refusal };
}

type Expanded = Pick<ExpandedWriteSet, 'entries' | 'ruleLocks'>;

/** Nothing can be added to what has ended; but what is still accepted of it may meet more than before. */
function expandDelayed(map: ConflictMap, { entries }: Lease): Expanded {
  const kept = (index: number): boolean => staysLocked(entries[index] as LeaseEntry);
  return { entries, ruleLocks: ruleLocksOf(map, entries).filter((lock) => kept(lock.entry)) };
}

/** What an active lease was granted for, from its entries: aliases and tasks are resolved already. */
function askedFor(lease: Lease): WriteSetRequest {
  const entries = lease.entries.filter((entry) => entry.impliedBy === '');
  return { entries, task: null, resourceSet: null };
}

const identity = (entry: ExpandedEntry): string => `${entry.access} ${entry.scope} ${entry.resource}`;

/**
 * The lease's entries and what the new map adds. A kept entry never loses strictness, is local once it was, and keeps
 * its token unless it excludes from now on the optimistic writers that had later ones (P2).
 */
function union(lease: Lease, writeSet: Expanded): Change['next'] {
  const before = new Map(lease.entries.map((entry) => [identity(entry), entry]));
  const expanded = new Map(writeSet.entries.map((entry) => [identity(entry), entry]));
  const kept = lease.entries.map((entry) => {
    const now = expanded.get(identity(entry));
    const stricter = now?.exclusive === true && !entry.exclusive ? { ...entry, exclusive: true, token: 0 } : entry;
    return now?.validation === 'local' && entry.validation !== 'local'
      ? { ...stricter, validation: now.validation }
      : stricter;
  });
  const added = writeSet.entries.filter((entry) => !before.has(identity(entry)));
  const entries = [...kept, ...added.map((entry) => ({ ...entry, token: 0, observedRefusal: null }))];
  const indexOf = new Map(entries.map((entry, index) => [identity(entry), index]));
  const lockId = (lock: Lease['ruleLocks'][number]): string => `${lock.entry} ${lock.mode} ${lock.key}`;
  const known = new Set(lease.ruleLocks.map(lockId));
  const addedLocks = writeSet.ruleLocks
    .map((lock) => ({ ...lock, entry: indexOf.get(identity(writeSet.entries[lock.entry] as ExpandedEntry)) ?? 0 }))
    .filter((lock) => !known.has(lockId(lock)));
  const stricter = kept.some((entry, index) => entry !== lease.entries[index]);
  if (added.length === 0 && addedLocks.length === 0 && !stricter) return null;
  return { entries, ruleLocks: [...lease.ruleLocks, ...addedLocks], added };
}

function emitReexpanded(decision: Decision, lease: Lease, next: NonNullable<Change['next']>): void {
  const token: Micros = decision.nextToken();
  const entries = next.entries.map((entry, index) => {
    if (lease.state !== 'active') return entry;
    const known = entry.token === 0 && entry.access !== 'read' ? { ...entry, token } : entry;
    return meetsWhileObserving(decision, lease, next, index) ? { ...known, observedRefusal: 'held' } : known;
  });
  decision.emit(
    {
      kind: 'lease_reexpanded',
      leaseId: lease.leaseId,
      generation: lease.generation + 1,
      entries,
      ruleLocks: next.ruleLocks,
    },
    { runId: lease.runId, leaseId: lease.leaseId, resources: entries.map((entry) => entry.resource) },
    token,
  );
}

/** Whether an observed entry now meets another run: that is recorded, and is no live conflict (C14). */
function meetsWhileObserving(
  decision: Decision,
  lease: Lease,
  next: NonNullable<Change['next']>,
  index: number,
): boolean {
  const entry = next.entries[index];
  if (entry === undefined || entry.mode !== 'observe' || entry.observedRefusal !== null) return false;
  const locks = locksOf(
    [entry],
    next.ruleLocks.filter((lock) => lock.entry === index),
  );
  return !isFree(decision, locks, { runId: lease.runId, order: 0, leaseId: lease.leaseId });
}

/** Leases of other runs that each changed lease now meets; two of which both have ended do each other no harm. */
function conflictsAmong(decision: Decision, changes: readonly Change[]): Map<string, Set<string>> {
  const conflicts = new Map<string, Set<string>>();
  const note = (a: string, b: string): void => {
    conflicts.set(a, (conflicts.get(a) ?? new Set()).add(b));
  };
  for (const change of changes) {
    const lease = decision.state.leases.get(change.lease.leaseId);
    if (change.next === null || lease === undefined || !holdsLocks(lease)) continue;
    const asker: Asker = { runId: lease.runId, order: 0, leaseId: lease.leaseId };
    for (const other of holdersInTheWay(decision.state, locksOfLease(lease), asker)) {
      if (isFreeByTime(other.lease, decision.now)) continue;
      if (underLockDelay(lease) && underLockDelay(other.lease)) continue;
      note(lease.leaseId, other.lease.leaseId);
      note(other.lease.leaseId, lease.leaseId);
    }
  }
  return conflicts;
}

function newerOfPairs(decision: Decision, conflicts: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  // What has ended cannot be ended again: it counts as the older one.
  const grantedAt = (leaseId: string): Micros => {
    const lease = decision.state.leases.get(leaseId);
    return lease === undefined || underLockDelay(lease) ? 0 : (lease.grantedAt ?? 0);
  };
  const newer = new Set<string>();
  const oldestFirst = [...conflicts.keys()].sort((a, b) => grantedAt(a) - grantedAt(b));
  for (const leaseId of oldestFirst) {
    if (newer.has(leaseId)) continue;
    for (const other of conflicts.get(leaseId) ?? []) newer.add(other);
  }
  return newer;
}

/** Whoever waits for a run may be passed by it, and does so only when somebody looks: a change of who waits for whom is a reason to. */
function settleQueue(decision: Decision, requestIds: readonly string[]): Deadlocked[] {
  const deadlocked = endDeadlocked(
    decision,
    'A change of the conflict map closed a cycle of runs that wait for each other',
    requestIds,
  );
  const waiting = [...decision.state.leases.values()].filter((lease) => lease.state === 'waiting');
  grantWaiters(decision, waiting.flatMap(locksOfLease));
  return deadlocked;
}

/** The changes, with what was ended because of a deadlock said beside its own. */
function withDeadlocked(changes: readonly Change[], deadlocked: readonly Deadlocked[]): Change[] {
  const reasons = new Map(deadlocked.map(({ lease, reason }) => [lease.leaseId, reason]));
  const changed = new Set(changes.map(({ lease }) => lease.leaseId));
  const others = deadlocked.filter(({ lease }) => !changed.has(lease.leaseId));
  return [
    ...changes.map((change) => ({
      ...change,
      noLongerGranted: reasons.get(change.lease.leaseId) ?? change.noLongerGranted,
    })),
    ...others.map(({ lease, reason }) => ({ lease, next: null, noLongerGranted: reason })),
  ];
}

function affectedBy(
  change: Change,
  conflicts: ReadonlyMap<string, ReadonlySet<string>>,
  ended: ReadonlySet<string>,
): AffectedLease {
  return {
    leaseId: change.lease.leaseId,
    runId: change.lease.runId,
    generation: change.lease.generation + (change.next === null ? 0 : 1),
    added: change.next?.added ?? [],
    conflictsWith: [...(conflicts.get(change.lease.leaseId) ?? [])],
    ended: ended.has(change.lease.leaseId),
    noLongerGranted: change.noLongerGranted,
  };
}

function versionConflict(current: number, expected: number): Fault {
  return new Fault(
    'aborted',
    'MAP_VERSION_CONFLICT',
    `The conflict map is at version ${current}, not ${expected}: somebody changed it since you read it. Read it again, look at the difference, and put against version ${current}.`,
    { metadata: { current_version: String(current), expected_version: String(expected) } },
  );
}

/** Enough of a lease id to find it by; the whole would let its reader present the lease. */
function shown(leaseId: string): string {
  return leaseId.slice(0, 8);
}

function liveConflict(conflicts: ReadonlyMap<string, ReadonlySet<string>>): Fault {
  const pairs = [...conflicts].flatMap(([a, others]) =>
    [...others].filter((b) => a < b).map((b) => `${shown(a)}+${shown(b)}`),
  );
  return new Fault(
    'failed_precondition',
    'LIVE_CONFLICT',
    `The new map puts ${pairs.length} pair(s) of live leases in conflict. Wait for them to end, or choose revoke_newer or keep_until_end.`,
    { metadata: { pairs: pairs.slice(0, 16).join(','), pair_count: String(pairs.length) } },
  );
}
