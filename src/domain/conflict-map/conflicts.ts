import type { ExpandedEntry, RuleLock } from '../entry.js';
import { keySubject, type Lock, locksOf } from '../locks.js';
import { compatible, type Mode } from '../modes.js';
import { quoted } from './problems.js';

/** One key on which two write sets meet. */
export interface ConflictStep {
  /** The resource, or the rule, on which they meet. */
  readonly key: string;
  readonly modeA: Mode;
  readonly modeB: Mode;
  /** The entry of A that takes the key. */
  readonly resourceA: string;
  readonly resourceB: string;
  /** The rule that brought A's entry; empty: it was asked for. */
  readonly ruleA: string;
  readonly ruleB: string;
  /** The `conflicts` rule that keeps them apart, and why it is there; empty: they meet on a resource. */
  readonly rule: string;
  readonly because: string;
  readonly message: string;
}

/** What of an expanded write set takes locks. */
export interface LockedSet {
  readonly entries: readonly ExpandedEntry[];
  readonly ruleLocks: readonly RuleLock[];
}

/** Steps that are told; two wide sets can meet on thousands of keys. */
const MAX_STEPS = 256;

interface LocksOfSet {
  readonly locks: readonly Lock[];
  readonly byKey: ReadonlyMap<string, readonly Lock[]>;
}

/** The matrix compares one write set with hundreds: its locks are worked out once. */
const LOCKS = new WeakMap<LockedSet, LocksOfSet>();

function locksOfSet(set: LockedSet): LocksOfSet {
  const known = LOCKS.get(set);
  if (known !== undefined) return known;
  const locks = locksOf(set.entries, set.ruleLocks);
  const byKey = new Map<string, Lock[]>();
  for (const lock of locks) {
    const same = byKey.get(lock.key);
    if (same === undefined) byKey.set(lock.key, [lock]);
    else same.push(lock);
  }
  LOCKS.set(set, { locks, byKey });
  return { locks, byKey };
}

/** Every key on which two different runs could not hold these write sets at once; empty: they could. `because` says why a rule is there. */
export function findConflicts(
  a: LockedSet,
  b: LockedSet,
  because: (rule: string) => string = () => '',
): ConflictStep[] {
  const theirs = locksOfSet(b).byKey;
  const steps: ConflictStep[] = [];
  // Two subtrees of one resource meet at its leaf and at its node, which is one fact to people.
  const told = new Set<string>();
  for (const mine of locksOfSet(a).locks) {
    for (const other of theirs.get(mine.key) ?? []) {
      if (compatible(mine.mode, other.mode)) continue;
      const fact = `${mine.mode} ${other.mode} ${mine.entry} ${other.entry} ${keySubject(mine.key)}`;
      if (told.has(fact)) continue;
      told.add(fact);
      steps.push(
        stepOf(
          mine,
          other,
          a.entries[mine.entry] as ExpandedEntry,
          b.entries[other.entry] as ExpandedEntry,
          because(mine.rule),
        ),
      );
      if (steps.length >= MAX_STEPS) return steps;
    }
  }
  return steps;
}

function stepOf(mine: Lock, other: Lock, a: ExpandedEntry, b: ExpandedEntry, because: string): ConflictStep {
  const key = mine.rule === '' ? keySubject(mine.key) : mine.rule;
  const where =
    mine.rule === ''
      ? `meet at ${quoted(key)}`
      : `are kept apart by ${mine.rule}${because === '' ? '' : `, since ${because}`}`;
  const observed =
    a.mode === 'observe' || b.mode === 'observe'
      ? ' One of them is only observed, so this is recorded, not refused.'
      : '';
  return {
    key,
    modeA: mine.mode,
    modeB: other.mode,
    resourceA: a.resource,
    resourceB: b.resource,
    ruleA: a.impliedBy,
    ruleB: b.impliedBy,
    rule: mine.rule,
    because,
    message: `${inWords(a)} and ${inWords(b)} ${where} (${mine.mode} against ${other.mode}).${observed}`,
  };
}

/** An entry in words: `the write to "release/prod-eu" (by implies[0])`. */
export function inWords(
  entry: Pick<ExpandedEntry, 'access' | 'exclusive' | 'scope' | 'resource' | 'impliedBy'>,
): string {
  const how =
    entry.access === 'write'
      ? entry.exclusive
        ? 'the write to'
        : 'the optimistic write to'
      : entry.access === 'stable_read'
        ? 'the stable read of'
        : 'the read of';
  const below = entry.scope === 'subtree' ? ' and all below it' : '';
  return `${how} ${quoted(entry.resource)}${below}${entry.impliedBy === '' ? '' : ` (by ${entry.impliedBy})`}`;
}
