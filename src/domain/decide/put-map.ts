import { identityOf } from '../amendment.js';
import type { ExpandedEntry } from '../entry.js';
import { Fault } from '../fault.js';
import { freezesOver } from '../freeze.js';
import { locksOfLease } from '../held-locks.js';
import type { EndReason, Lease, LeaseEntry } from '../lease.js';
import { endsAt, holdsLocks, isFreeByTime, underLockDelay } from '../lease.js';
import { locksOf } from '../locks.js';
import { holdersInTheWay, ownHolder } from '../obstacles.js';
import type { Asker } from '../queue.js';
import type { RefusalKind } from '../refusal.js';
import type { Micros } from '../time.js';
import { endDeadlocked } from './deadlocks.js';
import type { Decision } from './decision.js';
import { endLeases } from './ending.js';
import { isFree, lookAgainAtAll } from './granting.js';
import type { Reexpanded, Reexpansion } from './reexpansion.js';
import { unrehearsed } from './rehearsals.js';
import { settleParent } from './settle-parent.js';

export type OnLiveConflict = 'refuse' | 'revoke_newer' | 'keep_until_end';

export interface PutMapCommand {
  readonly text: string;
  readonly document: unknown;
  /** What live leases come to by the document. */
  readonly reexpansion: Reexpansion;
  readonly expectedVersion: number;
  readonly reason: string;
  readonly onLiveConflict: OnLiveConflict;
  readonly requestIds: readonly string[];
}

/** Live leases that one change may give more locks, and pairs of them that it may put in conflict: it is one append. */
export const MAX_REEXPANDED = 10_000;
const MAX_PAIRS = 100_000;

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
  const changes = reexpandAll(decision, command.reexpansion);
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
  settleDelegations(decision, changes);
  const settled = decision.events.length;
  const conflicts = conflictsAmong(decision, changes);
  if (command.onLiveConflict === 'refuse' && conflicts.size > 0) throw liveConflict(conflicts);
  const met = onlyMet(decision, changes, conflicts);
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
  // What is in doubt may keep less from others than by the map before.
  const moved = decision.state.inDoubt > 0 || changes.some((change) => change.next !== null);
  if (moved) settleQueue(decision, command.requestIds);
  const ended = endedSince(decision, settled);
  const told = withEnded(decision, [...changes, ...met], ended);
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

/** What a lease, or a part of it, reserves from now on may meet more of the other. */
function settleDelegations(decision: Decision, changes: readonly Change[]): void {
  if (decision.state.delegations.size === 0) return;
  const parents = changes.flatMap(({ lease }) => [lease.leaseId, lease.delegatedFrom]);
  for (const leaseId of new Set(parents)) settleParent(decision, leaseId);
}

interface Change extends Reexpanded {
  readonly lease: Lease;
}

function reexpandAll(decision: Decision, reexpansion: Reexpansion): Change[] {
  const changes: Change[] = [];
  for (const lease of decision.state.leases.values()) {
    if (lease.state === 'ended' && !underLockDelay(lease)) continue;
    if (isFreeByTime(lease, decision.now)) {
      decision.relyOnPast(endsAt(lease));
      continue;
    }
    const allowed = decision.state.runs.get(lease.runId)?.allowed ?? [];
    const reexpanded = reexpansion.of(lease, allowed, decision.bounds);
    if (reexpanded !== null) changes.push({ lease, ...reexpanded });
  }
  const changed = changes.reduce((count, { next }) => count + (next === null ? 0 : 1), 0);
  if (changed > MAX_REEXPANDED) throw tooWide(`change ${changed} live leases`, MAX_REEXPANDED);
  // The older ones first: of what a rule brings to several leases of one run, the first has the authority.
  const grantedAt = ({ lease }: Change): Micros => lease.grantedAt ?? Number.POSITIVE_INFINITY;
  return changes.sort((a, b) => (grantedAt(a) < grantedAt(b) ? -1 : Number(grantedAt(a) > grantedAt(b))));
}

function emitReexpanded(decision: Decision, lease: Lease, next: NonNullable<Change['next']>): void {
  const token: Micros = decision.nextToken();
  const added = new Set(next.added.map(identityOf));
  const entries = next.entries.map((entry, index) => {
    if (lease.state !== 'active') return entry;
    const isOwn = added.has(identityOf(entry)) && isHeldByAnother(decision, lease, entry);
    const known =
      entry.token === 0 && entry.access !== 'read' ? withAuthority(decision, lease, entry, token, isOwn) : entry;
    const observed = entry.mode === 'observe' ? whileObserving(decision, lease, next, index, isOwn) : null;
    return observed === null ? known : { ...known, observedRefusal: observed };
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

/**
 * What a new rule brings to a lease: of what is frozen, of a kind that demands a rehearsal and has none (C13), or of what
 * its run holds by another lease already, the lock, and no authority. For by its own token, which is the later one, a guard
 * would never again take the other's (P2); a request for both is refused for the same reason (`already_held`).
 */
function withAuthority(
  decision: Decision,
  { runId }: Lease,
  entry: LeaseEntry,
  token: Micros,
  isOwn: boolean,
): LeaseEntry {
  const withheld =
    entry.mode === 'enforce' &&
    (isOwn || freezesOver(decision.state.freezes, entry).length > 0 || unrehearsed(decision, entry, runId) !== null);
  return { ...entry, token, actions: withheld ? [] : entry.actions };
}

function isHeldByAnother(decision: Decision, { runId, leaseId }: Lease, entry: LeaseEntry): boolean {
  const asker: Asker = { runId, order: 0, leaseId };
  return ownHolder(decision.state, locksOf([entry], []), asker, decision.now) !== null;
}

/** What `enforce` would refuse about an observed entry now: that is recorded, and is no live conflict (C14). */
function whileObserving(
  decision: Decision,
  lease: Lease,
  next: NonNullable<Change['next']>,
  index: number,
  isOwn: boolean,
): RefusalKind | null {
  const entry = next.entries[index];
  if (entry === undefined || entry.observedRefusal !== null) return null;
  if (isOwn) return 'already_held';
  const locks = locksOf(
    [entry],
    next.ruleLocks.filter((lock) => lock.entry === index),
  );
  return isFree(decision, locks, { runId: lease.runId, order: 0, leaseId: lease.leaseId }) ? null : 'held';
}

/** Leases of other runs that each changed lease now meets; two of which both have ended do each other no harm. */
function conflictsAmong(decision: Decision, changes: readonly Change[]): Map<string, Set<string>> {
  const conflicts = new Map<string, Set<string>>();
  let pairs = 0;
  const note = (a: string, b: string): void => {
    const known = conflicts.get(a) ?? new Set();
    pairs += known.has(b) ? 0 : 1;
    conflicts.set(a, known.add(b));
    if (pairs > 2 * MAX_PAIRS) throw tooWide('put more pairs of live leases in conflict than can be told', MAX_PAIRS);
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

/** What a changed lease meets, and the change gives nothing more itself: it is hit all the same. */
function onlyMet(
  decision: Decision,
  changes: readonly Change[],
  conflicts: ReadonlyMap<string, ReadonlySet<string>>,
): Change[] {
  const changed = new Set(changes.map(({ lease }) => lease.leaseId));
  return [...conflicts.keys()]
    .filter((leaseId) => !changed.has(leaseId))
    .map((leaseId) => decision.state.leases.get(leaseId))
    .filter((lease) => lease !== undefined)
    .map((lease) => ({ lease, next: null, noLongerGranted: '' }));
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
function settleQueue(decision: Decision, requestIds: readonly string[]): void {
  endDeadlocked(decision, 'A change of the conflict map closed a cycle of runs that wait for each other', requestIds);
  lookAgainAtAll(decision);
}

/** What a change of the map ends: newer leases, what holds a part of them, and requests that are refused; not what time does. */
const BY_THE_CHANGE: readonly EndReason[] = ['map_changed', 'parent_ended', 'refused'];

/** The leases that the change ended, each with why the map does not grant it; empty: that is not the reason. */
function endedSince({ events }: Decision, from: number): Map<string, string> {
  const ended = new Map<string, string>();
  for (const { leaseId, body } of events.slice(from))
    if (body.kind === 'lease_ended' && BY_THE_CHANGE.includes(body.endReason))
      ended.set(leaseId, body.endReason === 'refused' ? body.reason : '');
  return ended;
}

/** The changes, with what else was ended, and why a request was. */
function withEnded({ state }: Decision, changes: readonly Change[], ended: ReadonlyMap<string, string>): Change[] {
  const changed = new Set(changes.map(({ lease }) => lease.leaseId));
  const others = [...ended.keys()].filter((leaseId) => !changed.has(leaseId));
  return [
    ...changes,
    ...others
      .flatMap((leaseId) => state.leases.get(leaseId) ?? [])
      .map((lease) => ({ lease, next: null, noLongerGranted: '' })),
  ].map((change) => ({ ...change, noLongerGranted: ended.get(change.lease.leaseId) || change.noLongerGranted }));
}

function affectedBy(
  change: Change,
  conflicts: ReadonlyMap<string, ReadonlySet<string>>,
  ended: ReadonlyMap<string, string>,
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

function tooWide(what: string, most: number): Fault {
  return new Fault(
    'resource_exhausted',
    'MAP_CHANGE_TOO_WIDE',
    `Nothing was changed: the new map would ${what}; one change may touch ${most}. Change it in smaller steps, such as one rule or kind at a time, or when fewer leases are live.`,
    { metadata: { limit: String(most) } },
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
    `Nothing was changed: the new map puts ${pairs.length} pair(s) of live leases in conflict, such as ${pairs.slice(0, 3).join(', ')} (the beginnings of their ids; a preview of the map has them in full). Wait for them to end, or choose revoke_newer or keep_until_end.`,
    { metadata: { pairs: pairs.slice(0, 16).join(','), pair_count: String(pairs.length) } },
  );
}
