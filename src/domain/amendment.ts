import {
  type ConflictMap,
  type ExpandedWriteSet,
  expandLeniently,
  type ObservedRefusal,
  resolveResource,
  ruleLocksOf,
} from './conflict-map/index.js';
import {
  type Access,
  type Allowance,
  type ExpandedEntry,
  later,
  type RequestedEntry,
  type RuleLock,
  type Scope,
} from './entry.js';
import { type Lease, type LeaseEntry, leaseEntry, staysLocked } from './lease.js';
import { keepsNoMoreAway } from './locks.js';

/** What a run asks to change of the write set of its lease. Resources may be aliases. */
export interface AmendRequest {
  readonly add: readonly RequestedEntry[];
  /** Resources of which all that was asked for goes. */
  readonly remove: readonly string[];
  /** In place of all that was asked for on their resources. No actions on a write: those that are held. */
  readonly downgrade: readonly RequestedEntry[];
}

/** What a lease comes to. */
export interface Amendment {
  /** What it keeps, with its tokens; some of it weaker than before. */
  readonly kept: readonly LeaseEntry[];
  /** What it does not hold yet, or not like that: to be decided as an acquire is, and to get a new token. */
  readonly added: readonly ExpandedEntry[];
  readonly addedRuleLocks: readonly RuleLock[];
  readonly observedRefusals: readonly ObservedRefusal[];
  /** What it held and holds no more, or holds less strictly. */
  readonly givenUp: readonly LeaseEntry[];
}

/** What an entry is known by within a lease. */
export const identityOf = (entry: {
  readonly access: Access;
  readonly scope: Scope;
  readonly resource: string;
}): string => `${entry.access} ${entry.scope} ${entry.resource}`;

/** What of a request cannot be meant, by its field; null: nothing. */
export interface Misfit {
  readonly kind: 'not_held' | 'no_downgrade' | 'nothing_left';
  readonly field: string;
  readonly resource: string;
}

/** A request with its resources as paths, and what it leaves of what the lease was granted for. */
interface Plan {
  readonly remaining: readonly RequestedEntry[];
  /** Asked for and named by the request: each goes, or becomes another. */
  readonly touched: ReadonlySet<string>;
  /** By identity: the held entry that the new one takes its token from. */
  readonly sources: ReadonlyMap<string, LeaseEntry>;
}

/**
 * What the lease of a run comes to by an amendment. What is added was expanded before, and is not refused by the map or
 * the contract. Implied entries follow their causes: what the rest does not imply goes with what implied it; what no
 * rule of today's map brings stays until the lease ends, since nobody can tell any more whose it is.
 */
export function amend(
  map: ConflictMap,
  lease: Lease,
  request: AmendRequest,
  contract: readonly Allowance[],
  added: ExpandedWriteSet | null,
): Amendment | Misfit {
  const plan = planOf(map, lease, request);
  if ('kind' in plan) return plan;
  const expand = (entries: readonly RequestedEntry[]): Map<string, ExpandedEntry> => {
    const { writeSet } = expandLeniently(
      map,
      { entries, task: null, resourceSet: null },
      contract,
      Number.POSITIVE_INFINITY,
    );
    return new Map(writeSet.entries.map((entry) => [identityOf(entry), entry]));
  };
  const before = expand(lease.entries.filter(isNamed));
  const after = expand([...plan.remaining, ...request.add]);
  const asked = new Map(added?.entries.map((entry) => [identityOf(entry), entry]));
  const kept: LeaseEntry[] = [];
  const more: ExpandedEntry[] = [];
  const place = (base: LeaseEntry, now: ExpandedEntry | undefined): void => {
    const wanted = now !== undefined && asked.has(identityOf(base)) ? withMore(base, now) : null;
    if (wanted !== null) more.push(wanted);
    else kept.push(base.impliedBy !== '' && now?.impliedBy === '' ? { ...base, impliedBy: '' } : base);
  };
  for (const entry of lease.entries) {
    const id = identityOf(entry);
    const now = after.get(id);
    if (isNamed(entry) && !plan.touched.has(id)) place(entry, now);
    else if (now !== undefined) place(weakened(entry, before.get(id), now, plan.touched.has(id)), now);
    else if (!isNamed(entry) && !before.has(id)) kept.push(entry);
  }
  const held = new Map(lease.entries.map((entry) => [identityOf(entry), entry]));
  for (const [id, now] of after) {
    if (held.has(id)) continue;
    const source = asked.has(id) ? undefined : plan.sources.get(id);
    if (source === undefined || (source.observedRefusal === null && !keepsNoMoreAway(now, source))) more.push(now);
    else kept.push(inPlaceOf(source, now));
  }
  if (!kept.some(isNamed) && !more.some(isNamed)) return { kind: 'nothing_left', field: 'remove', resource: '' };
  return {
    kept,
    added: more,
    addedRuleLocks: ruleLocksOf(map, more, Number.POSITIVE_INFINITY),
    observedRefusals: observedOf(added, more),
    givenUp: givenUpBy(lease, [...kept, ...more]),
  };
}

const isNamed = (entry: { readonly impliedBy: string }): boolean => entry.impliedBy === '';

function planOf(map: ConflictMap, lease: Lease, request: AmendRequest): Plan | Misfit {
  const named = lease.entries.filter(isNamed);
  const touched = new Set<string>();
  const sources = new Map<string, LeaseEntry>();
  const becomes: RequestedEntry[] = [];
  const on = (resource: string): LeaseEntry[] => named.filter((entry) => entry.resource === pathOf(map, resource));
  for (const [index, resource] of request.remove.entries()) {
    const entries = on(resource);
    if (entries.length === 0) return { kind: 'not_held', field: `remove[${index}]`, resource };
    for (const entry of entries) touched.add(identityOf(entry));
  }
  for (const [index, wanted] of request.downgrade.entries()) {
    const field = `downgrade[${index}]`;
    const entries = on(wanted.resource);
    if (entries.length === 0) return { kind: 'not_held', field, resource: wanted.resource };
    const source = entries.find((entry) => isWithin(wanted, entry));
    if (source === undefined) return { kind: 'no_downgrade', field, resource: wanted.resource };
    for (const entry of entries) touched.add(identityOf(entry));
    const actions = wanted.access === 'write' && wanted.actions.length === 0 ? source.actions : wanted.actions;
    const { resource, observedVersion } = source;
    const entry = { resource, access: wanted.access, scope: wanted.scope, actions, observedVersion };
    sources.set(identityOf(entry), source);
    becomes.push(entry);
  }
  const untouched = named.filter((entry) => !touched.has(identityOf(entry)));
  return { remaining: [...untouched, ...becomes], touched, sources };
}

/** The path, where there is one; what has none is held by nobody. */
function pathOf(map: ConflictMap, resource: string): string {
  const resolved = resolveResource(map, resource);
  return resolved.ok ? resolved.resource : resource;
}

const STRENGTH: Readonly<Record<Access, number>> = { read: 0, stable_read: 1, write: 2 };

/** Whether one entry on a resource gives no more than another on it. */
export function isWithin(
  inner: Pick<RequestedEntry, 'access' | 'scope' | 'actions'>,
  outer: Pick<RequestedEntry, 'access' | 'scope' | 'actions'>,
): boolean {
  if (STRENGTH[inner.access] > STRENGTH[outer.access]) return false;
  if (inner.scope === 'subtree' && outer.scope === 'exact') return false;
  return inner.actions.every((action) => outer.actions.includes(action));
}

function inPlaceOf(source: LeaseEntry, now: ExpandedEntry): LeaseEntry {
  return leaseEntry(
    { ...now, ...knownBy(source, now) },
    now.access === 'read' ? 0 : source.token,
    source.observedRefusal,
  );
}

/** How late targets may know of its end: never less than for what it was (P3). */
function knownBy(held: LeaseEntry, now: ExpandedEntry): Pick<ExpandedEntry, 'validation' | 'maxViewAge'> {
  return {
    validation: later(held.validation, now.validation),
    maxViewAge: Math.max(held.maxViewAge, now.maxViewAge),
  };
}

/**
 * A held entry without what it loses by the change; one that was asked for and is only implied now is that from here on,
 * and an implied one is named after a rule that still brings it.
 */
function weakened(
  held: LeaseEntry,
  before: ExpandedEntry | undefined,
  now: ExpandedEntry,
  isTouched: boolean,
): LeaseEntry {
  const had = isTouched ? held.actions : (before?.actions ?? []);
  const lost = had.filter((action) => !now.actions.includes(action));
  const relaxed = held.exclusive && !now.exclusive && (isTouched || before?.exclusive === true);
  const impliedBy = isTouched || !isNamed(held) ? now.impliedBy : '';
  if (lost.length === 0 && !relaxed && impliedBy === held.impliedBy) return held;
  const actions = held.actions.filter((action) => !lost.includes(action));
  return { ...held, actions, exclusive: held.exclusive && !relaxed, impliedBy };
}

/** The held entry with what is added to it; null: it gives all of that already. Whatever gives more is a new grant (P2). */
function withMore(held: LeaseEntry, now: ExpandedEntry): ExpandedEntry | null {
  const missing = now.actions.filter((action) => !held.actions.includes(action));
  const stricter = now.exclusive && !held.exclusive;
  if (missing.length === 0 && !stricter && held.observedRefusal === null) return null;
  return {
    ...now,
    actions: [...held.actions, ...missing],
    exclusive: held.exclusive || now.exclusive,
    impliedBy: isNamed(held) ? '' : now.impliedBy,
    ...knownBy(held, now),
    observedVersion: now.observedVersion ?? held.observedVersion,
  };
}

/** The refusals that only observed kinds of the addition would have had, at the places that the entries have now. */
function observedOf(added: ExpandedWriteSet | null, more: readonly ExpandedEntry[]): ObservedRefusal[] {
  const places = new Map(more.map((entry, index) => [identityOf(entry), index]));
  return (added?.observedRefusals ?? []).flatMap(({ entry, refusal }) => {
    const place = places.get(identityOf(added?.entries[entry] as ExpandedEntry));
    return place === undefined ? [] : [{ entry: place, refusal }];
  });
}

/** Entries of which something goes: themselves, some of their actions, or how strictly they are held. */
function givenUpBy(lease: Lease, next: readonly ExpandedEntry[]): LeaseEntry[] {
  const now = new Map(next.map((entry) => [identityOf(entry), entry]));
  return lease.entries.filter((entry) => {
    const after = now.get(identityOf(entry));
    if (after === undefined) return true;
    const weaker = entry.exclusive && !after.exclusive;
    return weaker || entry.actions.some((action) => !after.actions.includes(action));
  });
}

/** The whole write set of the amended lease, those asked for first, and its locks by rules of today's map and of before. */
export function writeSetOf(
  map: ConflictMap,
  lease: Lease,
  entries: readonly LeaseEntry[],
): { entries: LeaseEntry[]; ruleLocks: RuleLock[] } {
  const before = new Map(lease.entries.map((entry, index) => [identityOf(entry), index]));
  const placeBefore = (entry: LeaseEntry): number => before.get(identityOf(entry)) ?? lease.entries.length;
  const inOrder = entries.toSorted((a, b) => placeBefore(a) - placeBefore(b));
  const ordered = [...inOrder.filter(isNamed), ...inOrder.filter((entry) => !isNamed(entry))];
  const placeOf = new Map(ordered.map((entry, index) => [identityOf(entry), index]));
  const moved = lease.ruleLocks.flatMap((lock) => {
    const entry = placeOf.get(identityOf(lease.entries[lock.entry] as LeaseEntry));
    return entry === undefined ? [] : [{ ...lock, entry }];
  });
  const known = new Map(
    [...moved, ...ruleLocksOf(map, ordered, Number.POSITIVE_INFINITY)].map((lock) => [lockId(lock), lock]),
  );
  return { entries: ordered, ruleLocks: [...known.values()] };
}

const lockId = (lock: RuleLock): string => `${lock.entry} ${lock.mode} ${lock.key}`;

/** Of entries that go, those that targets may accept for a while, with their locks by rules (design: early ends). */
export function keptFromOthers(
  lease: Lease,
  givenUp: readonly LeaseEntry[],
): { entries: LeaseEntry[]; ruleLocks: RuleLock[] } {
  const entries = givenUp.filter(staysLocked);
  const placeOf = new Map(entries.map((entry, index) => [entry, index]));
  const ruleLocks = lease.ruleLocks.flatMap((lock) => {
    const entry = placeOf.get(lease.entries[lock.entry] as LeaseEntry);
    return entry === undefined ? [] : [{ ...lock, entry }];
  });
  return { entries, ruleLocks };
}
