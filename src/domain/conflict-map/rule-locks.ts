import type { ExpandedEntry, RuleLock } from '../entry.js';
import { ruleKey } from '../locks.js';
import { bindAtOrBelow, type Captures, matchPattern } from '../pattern.js';
import type { ConflictMap, ConflictRule, ConflictSide } from './map.js';

/**
 * `conflicts` rules as locks. Writers of the two patterns must exclude each other where the captures
 * they share agree, and only there; writers of one pattern must not exclude each other. So writers of
 * the first take IX and of the second S on a key of rule and captures: IX stands beside IX and S beside
 * S, but not one beside the other.
 *
 * A writer whose captures are not bound (a SUBTREE above them) must meet every writer of the other
 * pattern, whatever its captures. For that each side has a root key, on which its own writers take IX
 * and unbound writers of the other side S. (One root key on which the unbound take X would let two
 * unbound writers of one side exclude each other although no rule says so.) Two unbound writers of
 * different sides meet there too, since each also takes IX on the root of its own side.
 *
 * A resource that matches both patterns takes both sides' locks, and so meets writers of either.
 *
 * Of a write set that is refused past `most` locks, more need not be worked out.
 */
export function ruleLocksOf(map: ConflictMap, entries: readonly ExpandedEntry[], most: number): RuleLock[] {
  if (map.conflictIndex.size === 0) return [];
  // Once per entry, also where entries share a lock: one that only observes takes none, and must not take it along.
  const locks = new Map<string, RuleLock>();
  const take = (key: string, mode: RuleLock['mode'], rule: ConflictRule, entry: number): void => {
    const id = `${entry} ${mode}${key}`;
    if (!locks.has(id)) locks.set(id, { key, mode, rule: rule.name, entry });
  };
  for (const [index, entry] of entries.entries()) {
    if (entry.access !== 'write') continue;
    if (locks.size > most) break;
    const segments = entry.resource.split('/');
    const sides = entry.scope === 'exact' ? map.conflictIndex.all(segments) : map.conflictIndex.atOrBelow(segments);
    for (const { rule, side, pattern } of sides) {
      const own = captureKey(
        rule,
        entry.scope === 'exact' ? matchPattern(pattern, segments) : (bindAtOrBelow(pattern, segments)?.bound ?? null),
      );
      take(rootKey(rule, side), 'IX', rule, index);
      if (own === null) take(rootKey(rule, side === 0 ? 1 : 0), 'S', rule, index);
      else take(keyOf(rule, own), side === 0 ? 'IX' : 'S', rule, index);
    }
  }
  return [...locks.values()];
}

/** The captures both sides share, as one text that no other captures give; null: they are not all bound. */
function captureKey(rule: ConflictRule, captures: Captures | null): string | null {
  const values: string[] = [];
  for (const name of rule.joined) {
    const value = captures?.get(name);
    if (value === undefined) return null;
    values.push(value);
  }
  return JSON.stringify(values);
}

/** Capture keys begin with "[", so a root is never taken for one. */
function rootKey(rule: ConflictRule, side: ConflictSide['side']): string {
  return keyOf(rule, side === 0 ? 'every-first' : 'every-second');
}

function keyOf({ between: [first, second] }: ConflictRule, captures: string): string {
  return ruleKey([first.text, second.text], captures);
}
