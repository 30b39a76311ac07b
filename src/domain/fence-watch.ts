import { isInDoubt } from './admission.js';
import { type ConflictMap, decidesByView, type Kind, kindOf, kindsOf } from './conflict-map/index.js';
import type { Scope } from './entry.js';
import type { DomainEvent } from './event.js';
import type { FenceReason } from './fence.js';
import { endsAt, type Lease, type LeaseEntry } from './lease.js';
import type { State } from './state.js';
import type { Micros } from './time.js';

/**
 * What a target is told of the fences (design: WatchFences): live leases as far as they are its concern, their ends, and
 * the kinds of the map, so that it can decide by a view of them. Nobody learns a lease id from it: those who tell it send
 * a digest, by which it is recognised when it is presented.
 */

/** Who watches. */
export interface Watcher {
  /** The target's principal. */
  readonly target: string;
  /** Only what kinds with `validation: view` are about. */
  readonly viewKindsOnly: boolean;
}

/** A live lease: what is covered, by which tokens, until when. */
export interface Fence {
  readonly leaseId: string;
  readonly runId: string;
  /** On the database clock, unless it is renewed or ends early. */
  readonly endsAt: Micros;
  /** Those that the watcher may see; reads fence nothing, and are left out. */
  readonly entries: readonly LeaseEntry[];
}

/** A kind of the map, as a watcher sees it. */
export interface WatchedKind {
  readonly pattern: string;
  /** A view decides about its resources; else the coordinator must be asked. */
  readonly decides: boolean;
  readonly maxViewAge: Micros;
  readonly observes: boolean;
  /** Of these a check leaves an admission, which no view can. */
  readonly trackedActions: readonly string[];
}

export type EndedBecause = Exclude<FenceReason, 'ok'>;

export type FenceChange =
  | { readonly kind: 'fence'; readonly fence: Fence }
  | { readonly kind: 'renewed'; readonly leaseId: string; readonly endsAt: Micros }
  | { readonly kind: 'ended'; readonly leaseId: string; readonly reason: EndedBecause };

/** What follows from events; null: the map, or everything, is another: only a snapshot tells. */
export type FenceChanges = readonly FenceChange[] | null;

const isOwner = (kind: Kind | null, { target }: Watcher): boolean =>
  kind === null || kind.ownerService.length === 0 || kind.ownerService.includes(target);

/** The kinds, all of them: what a pattern does not decide, a broader one must not seem to. */
export function watchedKinds(map: ConflictMap, watcher: Watcher): WatchedKind[] {
  return map.kinds.map((kind) => {
    const decides = isOwner(kind, watcher) && decidesByView(map, kind);
    return {
      pattern: kind.pattern.text,
      decides,
      maxViewAge: kind.maxViewAge,
      observes: decides && kind.mode === 'observe',
      trackedActions: decides ? kind.writeActions.filter(({ tracked }) => tracked).map(({ name }) => name) : [],
    };
  });
}

/** The lease as the watcher sees it; null: it is not live, or none of its concern. */
export function fenceOf(map: ConflictMap, watcher: Watcher, lease: Lease): Fence | null {
  if (lease.state !== 'active') return null;
  const entries = lease.entries.filter((entry) => isSeen(map, watcher, entry));
  return entries.length === 0 ? null : { leaseId: lease.leaseId, runId: lease.runId, endsAt: endsAt(lease), entries };
}

/** What a child run holds a part of is not its lease's to write on for now: a view is told of it when it has come back. */
function isSeen(map: ConflictMap, watcher: Watcher, { resource, scope, access, suspended }: LeaseEntry): boolean {
  if (access === 'read' || suspended) return false;
  const kinds = kindsOf(map, { resource, scope, segments: resource.split('/') });
  const owned = kinds.filter((kind) => isOwner(kind, watcher));
  if (watcher.viewKindsOnly) return owned.some(({ validation }) => validation === 'view');
  return kinds.length === 0 || owned.length > 0;
}

/** Writes that are refused under leases that live. */
export interface Closing {
  /** Of a freeze a pattern, else a path. */
  readonly resource: string;
  readonly scope: Scope;
  readonly reason: 'in_doubt' | 'frozen';
}

/** By a name of each. */
class Closings extends Map<string, Closing> {
  put(closing: Closing): void {
    this.set(`${closing.reason} ${closing.scope} ${closing.resource}`, closing);
  }
}

/** All that there are: freezes, and resources in doubt as far as they are the watcher's. */
export function closingsOf(state: State, watcher: Watcher): ReadonlyMap<string, Closing> {
  const closings = new Closings();
  for (const { pattern, scope, deniesChecks } of state.freezes.values())
    if (deniesChecks) closings.put({ resource: pattern, scope, reason: 'frozen' });
  if (state.inDoubt === 0) return closings;
  for (const admission of state.admissions.values()) {
    const { resource } = admission;
    if (isInDoubt(admission) && isDoubtSeen(state.map, watcher, resource))
      closings.put({ resource, scope: 'exact', reason: 'in_doubt' });
  }
  return closings;
}

function isDoubtSeen(map: ConflictMap, watcher: Watcher, resource: string): boolean {
  const kind = kindOf(map, resource);
  return (!watcher.viewKindsOnly || kind?.validation === 'view') && isOwner(kind, watcher);
}

/**
 * What events may have opened again: for a watcher that goes on from a place, of which it is not known any more what it
 * was told there to be closed.
 */
export function closingsPerhapsOver(
  map: ConflictMap,
  watcher: Watcher,
  events: readonly DomainEvent[],
): ReadonlyMap<string, Closing> {
  const closings = new Closings();
  for (const { body, resources } of events) {
    if (body.kind === 'pattern_frozen' || body.kind === 'pattern_thawed') {
      const pattern = body.kind === 'pattern_frozen' ? body.freeze.pattern : body.pattern;
      for (const scope of ['exact', 'subtree'] as const) closings.put({ resource: pattern, scope, reason: 'frozen' });
    } else if (body.kind === 'writes_reported' || body.kind === 'doubt_settled') {
      for (const resource of resources)
        if (isDoubtSeen(map, watcher, resource)) closings.put({ resource, scope: 'exact', reason: 'in_doubt' });
    }
  }
  return closings;
}

/** Events that change no fence. */
const SILENT: ReadonlySet<DomainEvent['body']['kind']> = new Set<DomainEvent['body']['kind']>([
  'namespace_created',
  'database_identified',
  'run_created',
  'run_state_changed',
  'writes_admitted',
  'writes_reported',
  'doubt_settled',
  'write_set_taken_over',
  'pattern_frozen',
  'pattern_thawed',
  'lease_queued',
  'lease_attached',
  'renewals_refused',
  'lock_delay_ended',
  'key_bound',
  'acquire_refused',
  'credentials_issued',
  'credentials_refused',
  'credentials_revoked',
  'signing_keys_changed',
  'rehearsal_begun',
  'rehearsal_recorded',
  'checks_denied',
  'override_reported',
  'resources_unmatched',
  'texts_erased',
  'log_cut',
  'checkpoint_begun',
  'checkpoint_written',
]);

/**
 * What events say about fences, in their order; `state` is that after all of them, or a later one. Of an event that is
 * known to change a lease, and not how, the lease is told as it is now.
 */
export function fenceChanges(state: State, watcher: Watcher, events: readonly DomainEvent[]): FenceChanges {
  const changes: FenceChange[] = [];
  for (const event of events) {
    const { body } = event;
    if (body.kind === 'conflict_map_put') return null;
    if (body.kind === 'database_identified' && body.lostHistory) return null;
    if (SILENT.has(body.kind)) continue;
    if (body.kind === 'lease_granted') note(changes, fenceOf(state.map, watcher, body.lease));
    else if (body.kind === 'leases_renewed') {
      for (const { leaseId, expiresAt } of body.renewals)
        if (isOfConcern(state, watcher, leaseId)) changes.push({ kind: 'renewed', leaseId, endsAt: expiresAt });
    } else if (body.kind === 'lease_ended') {
      const reason = endedBecause(body.endReason);
      if (reason !== null && isOfConcern(state, watcher, body.leaseId))
        changes.push({ kind: 'ended', leaseId: body.leaseId, reason });
    } else if (event.leaseId !== '') changes.push(...asItIs(state, watcher, event.leaseId));
  }
  return changes;
}

function note(changes: FenceChange[], fence: Fence | null): void {
  if (fence !== null) changes.push({ kind: 'fence', fence });
}

/** Of one that is not live any more its end, further on in the log, tells. */
function asItIs(state: State, watcher: Watcher, leaseId: string): FenceChange[] {
  const lease = state.leases.get(leaseId);
  if (lease?.state !== 'active') return [];
  const fence = fenceOf(state.map, watcher, lease);
  if (fence !== null) return [{ kind: 'fence', fence }];
  const reason = lease.entries.some(({ suspended }) => suspended) ? 'suspended' : 'not_covered';
  return [{ kind: 'ended', leaseId, reason }];
}

/** What is not in memory any more may be; to be told of what one never heard of does no harm. */
function isOfConcern(state: State, watcher: Watcher, leaseId: string): boolean {
  const lease = state.leases.get(leaseId);
  return lease === undefined || lease.entries.some((entry) => isSeen(state.map, watcher, entry));
}

/** Null: it was never granted. */
function endedBecause(reason: NonNullable<Lease['endReason']>): EndedBecause | null {
  return reason === 'withdrawn' || reason === 'timed_out' || reason === 'refused' ? null : reason;
}
