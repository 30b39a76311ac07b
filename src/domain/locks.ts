import type { Access, ExpandedEntry, RuleLock, Scope } from './entry.js';
import type { Mode } from './modes.js';

/** One key in one mode, and the entry it comes from. */
export interface Lock {
  readonly key: string;
  readonly mode: Mode;
  /** Index of the entry that takes it. */
  readonly entry: number;
  /** The `conflicts` rule for a lock on a synthetic key; empty otherwise. */
  readonly rule: string;
}

/** Every resource has two keys: its own leaf, and its node, which stands for all at and below it. */
export const leafKey = (resource: string): string => `=${resource}`;
export const nodeKey = (resource: string): string => `/${resource}`;
/** Synthetic keys of `conflicts` rules share no first character with those of resources. */
export const ruleKey = (rule: number, captures: string): string => `!${rule}:${captures}`;

/** What a key names, for people: the resource, or the rule's key as it is. */
export function keySubject(key: string): string {
  return key.startsWith('!') ? key : key.slice(1);
}

const INTENT: Readonly<Record<'S' | 'X' | 'O', Mode>> = { S: 'IS', X: 'IX', O: 'IO' };

/** The mode an entry takes on what it names; null when it takes no lock. */
export function ownMode(access: Access, exclusive: boolean): 'S' | 'X' | 'O' | null {
  if (access === 'read') return null;
  if (access === 'stable_read') return 'S';
  return exclusive ? 'X' : 'O';
}

/**
 * The locks of one resource: EXACT takes its mode on the leaf and the intention on the node; SUBTREE
 * takes its mode on the node; both announce themselves on every ancestor's node.
 */
export function resourceLocks(resource: string, scope: Scope, mode: 'S' | 'X' | 'O'): { key: string; mode: Mode }[] {
  const intent = INTENT[mode];
  const locks: { key: string; mode: Mode }[] =
    scope === 'exact'
      ? [
          { key: leafKey(resource), mode },
          { key: nodeKey(resource), mode: intent },
        ]
      : [{ key: nodeKey(resource), mode }];
  for (let slash = resource.lastIndexOf('/'); slash > 0; slash = resource.lastIndexOf('/', slash - 1)) {
    locks.push({ key: nodeKey(resource.slice(0, slash)), mode: intent });
  }
  return locks;
}

/** All locks of a write set, one per (key, mode); the first entry that takes it is named. */
export function locksOf(entries: readonly ExpandedEntry[], ruleLocks: readonly RuleLock[]): Lock[] {
  const locks: Lock[] = [];
  const seen = new Set<string>();
  const add = (lock: Lock): void => {
    const id = `${lock.mode}${lock.key}`;
    if (seen.has(id)) return;
    seen.add(id);
    locks.push(lock);
  };
  entries.forEach((entry, index) => {
    const mode = ownMode(entry.access, entry.exclusive);
    if (mode === null) return;
    for (const lock of resourceLocks(entry.resource, entry.scope, mode)) add({ ...lock, entry: index, rule: '' });
  });
  for (const lock of ruleLocks) add({ key: lock.key, mode: lock.mode, entry: lock.entry, rule: lock.rule });
  return locks;
}
