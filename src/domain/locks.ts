import type { Access, ExpandedEntry, RuleLock, Scope } from './entry.js';
import { INCOMPATIBLE, type Mode } from './modes.js';

/** One key in one mode, and the entry it comes from. */
export interface Lock {
  readonly key: string;
  readonly mode: Mode;
  /** Index of the entry that takes it. */
  readonly entry: number;
  /** The `conflicts` rule for a lock on a synthetic key; empty otherwise. */
  readonly rule: string;
}

/**
 * Every resource has two keys: its leaf, which stands for itself, and its node, for all below it. No resource ends with a
 * slash. The leaf is the very text that the entry has, and the node of an ancestor a part of it, since with 100,000 live
 * leases most of the memory is keys.
 */
export const leafKey = (resource: string): string => resource;
export const nodeKey = (resource: string): string => `${resource}/`;
/**
 * Synthetic keys of `conflicts` rules have line feeds, which no resource has. A rule is known by its two patterns, as its
 * place among the rules changes with the map while leases keep their locks. No pattern has a line feed.
 */
export const ruleKey = (between: readonly [string, string], captures: string): string =>
  `!${between[0]}\n${between[1]}\n${captures}`;

/** What a key names, for people: the resource, or the rule's key as it is. */
export function keySubject(key: string): string {
  return key.endsWith('/') && !key.includes('\n') ? key.slice(0, -1) : key;
}

const INTENT: Readonly<Record<'S' | 'X' | 'O', Mode>> = { S: 'IS', X: 'IX', O: 'IO' };

/** The mode an entry takes on what it names; null when it takes no lock. */
function ownMode(access: Access, exclusive: boolean): 'S' | 'X' | 'O' | null {
  if (access === 'read') return null;
  if (access === 'stable_read') return 'S';
  return exclusive ? 'X' : 'O';
}

/**
 * Whether whoever may stand beside the one may stand beside the other. What gives less does not always: optimistic writers
 * stand side by side, and a stable read keeps them away.
 */
export function keepsNoMoreAway(
  inner: Pick<ExpandedEntry, 'access' | 'exclusive'>,
  outer: Pick<ExpandedEntry, 'access' | 'exclusive'>,
): boolean {
  const [mine, theirs] = [ownMode(inner.access, inner.exclusive), ownMode(outer.access, outer.exclusive)];
  if (mine === null) return true;
  return theirs !== null && INCOMPATIBLE[mine].every((mode) => INCOMPATIBLE[theirs].includes(mode));
}

/** A bit for each mode, to note which of them are taken on a key. */
const BIT: Readonly<Record<Mode, number>> = { IS: 1, IX: 2, IO: 4, S: 8, X: 16, O: 32 };

/**
 * The locks of one resource. Both scopes take their mode on its leaf, SUBTREE on its node as well, and both announce
 * themselves by the intention on every node above. So two that name the same resource meet at its leaf, and a SUBTREE
 * meets what lies below it at its node. (That a SUBTREE takes the leaf too spares EXACT, which is asked for far more
 * often, the intention on its own node: half of its locks.)
 */
export function* resourceLocks(
  resource: string,
  scope: Scope,
  mode: 'S' | 'X' | 'O',
): Iterable<{ readonly key: string; readonly mode: Mode }> {
  yield { key: leafKey(resource), mode };
  if (scope === 'subtree') yield { key: nodeKey(resource), mode };
  for (let key = parentKey(resource); key !== null; key = parentKey(key)) yield { key, mode: INTENT[mode] };
}

/** The node above a resource, or above a node; null: there is none. */
function parentKey(key: string): string | null {
  const slash = key.lastIndexOf('/', key.length - 2);
  return slash <= 0 ? null : key.slice(0, slash + 1);
}

/** All locks of a write set, one per (key, mode); the first entry that takes it is named. */
export function locksOf(entries: readonly ExpandedEntry[], ruleLocks: readonly RuleLock[]): Lock[] {
  const taken = new Taken();
  for (const [index, { resource, scope, access, exclusive }] of entries.entries()) {
    const own = ownMode(access, exclusive);
    if (own === null) continue;
    taken.take(leafKey(resource), own, index, '');
    if (scope === 'subtree') taken.take(nodeKey(resource), own, index, '');
    taken.announce(resource, INTENT[own], index);
  }
  for (const { key, mode, entry, rule } of ruleLocks) taken.take(key, mode, entry, rule);
  return taken.locks;
}

/** The locks that a write set has so far. */
class Taken {
  readonly locks: Lock[] = [];
  private readonly modes = new Map<string, number>();

  /** False: it was there already. */
  take(key: string, mode: Mode, entry: number, rule: string): boolean {
    const modes = this.modes.get(key) ?? 0;
    if ((modes & BIT[mode]) !== 0) return false;
    this.modes.set(key, modes | BIT[mode]);
    this.locks.push({ key, mode, entry, rule });
    return true;
  }

  /** On the nodes above, up to the first that has it: whoever announced itself on a node did so on all above it. */
  announce(resource: string, intent: Mode, entry: number): void {
    for (let key = parentKey(resource); key !== null; key = parentKey(key)) {
      if (!this.take(key, intent, entry, '')) return;
    }
  }
}
