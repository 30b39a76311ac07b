import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import { expandWriteSet } from '../../src/domain/conflict-map/index.js';
import type { RequestedEntry } from '../../src/domain/entry.js';
import { locksOfLease } from '../../src/domain/held-locks.js';
import { BaseHolderIndex } from '../../src/domain/holder-index.js';
import type { LeaseEntry } from '../../src/domain/lease.js';
import { keySubject, type Lock, leafKey, locksOf, nodeKey, resourceLocks, ruleKey } from '../../src/domain/locks.js';
import { compatible, INCOMPATIBLE, MODES, type Mode } from '../../src/domain/modes.js';
import { compiled, EVERYTHING, leased, optimistic, read, stable, writeSet } from '../support/domain.js';
import { Oracle, universeOf } from '../support/oracle/write-sets.js';
import { sampleEntry } from '../support/sample-records.js';

/** Whether two runs could hold these locks at once: what the lock tables decide by. */
function together(a: readonly Lock[], b: readonly Lock[]): boolean {
  return a.every((mine) => b.every((theirs) => mine.key !== theirs.key || compatible(mine.mode, theirs.mode)));
}

describe('the matrix of modes (design: resources, locks and modes)', () => {
  it('is the one of the design', () => {
    const row = (mode: Mode): string => MODES.map((other) => (compatible(mode, other) ? 'ok' : '–')).join(' ');
    expect(Object.fromEntries(MODES.map((mode) => [mode, row(mode)]))).toEqual({
      IS: 'ok ok ok ok – –',
      IX: 'ok ok ok – – –',
      IO: 'ok ok ok – – ok',
      S: 'ok – – ok – –',
      X: '– – – – – –',
      O: '– – ok – – ok',
    });
  });

  it('is symmetric, and INCOMPATIBLE is its complement', () => {
    for (const a of MODES) {
      for (const b of MODES) {
        expect(compatible(a, b)).toBe(compatible(b, a));
        expect(INCOMPATIBLE[a].includes(b)).toBe(!compatible(a, b));
      }
    }
  });
});

describe('locks of an entry', () => {
  it('EXACT takes its mode on the leaf, and the intention on every ancestor', () => {
    expect([...resourceLocks('a/b/c', 'exact', 'X')]).toEqual([
      { key: 'a/b/c', mode: 'X' },
      { key: 'a/b/', mode: 'IX' },
      { key: 'a/', mode: 'IX' },
    ]);
  });

  it('SUBTREE takes its mode on leaf and node, and the intention above them', () => {
    expect([...resourceLocks('a/b', 'subtree', 'S')]).toEqual([
      { key: 'a/b', mode: 'S' },
      { key: 'a/b/', mode: 'S' },
      { key: 'a/', mode: 'IS' },
    ]);
    expect([...resourceLocks('a', 'subtree', 'O')]).toEqual([
      { key: 'a', mode: 'O' },
      { key: 'a/', mode: 'O' },
    ]);
  });

  it('READ takes no lock; a key is taken once in each mode, with the first entry that takes it', () => {
    const entries = [
      sampleEntry({ resource: 'a/b', access: 'read' }),
      sampleEntry({ resource: 'a/c', exclusive: true }),
      sampleEntry({ resource: 'a/d', exclusive: true }),
    ];
    const locks = locksOf(entries, []);
    expect(locks.some((lock) => lock.key.includes('a/b'))).toBe(false);
    expect(locks.filter((lock) => lock.key === nodeKey('a'))).toEqual([{ key: 'a/', mode: 'IX', entry: 1, rule: '' }]);
  });

  it('keys of leaves, nodes and rules are never the same', () => {
    // As `parseResource` lets them be.
    const resource = fc.string({ minLength: 1 }).filter((text) => !/\n|\/$/.test(text));
    fc.assert(
      fc.property(resource, resource, fc.string(), (a, b, rule) => {
        expect(new Set([leafKey(a), nodeKey(b), ruleKey([rule, b], a)]).size).toBe(3);
        expect([leafKey(a), nodeKey(b)].map(keySubject)).toEqual([a, b]);
      }),
    );
  });

  it('an entry that was only observed to be in the way takes none, nor do its rules (C14)', () => {
    const entries: LeaseEntry[] = [
      sampleEntry({ resource: 'a', observedRefusal: 'held' }),
      sampleEntry({ resource: 'b', exclusive: true }),
    ];
    const ruleLocks = [
      { key: '!0:x', mode: 'IX' as const, rule: 'conflicts[0]', entry: 0 },
      { key: '!0:y', mode: 'IX' as const, rule: 'conflicts[0]', entry: 1 },
    ];
    expect(locksOfLease({ state: 'active', entries, ruleLocks }).map((lock) => lock.key)).toEqual(['b', '!0:y']);
  });
});

// Three levels of two names: deep enough for every relation of two resources, small enough to enumerate.
const NAMES = ['a', 'b'];
const path = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
const UNIVERSE = universeOf(NAMES, 4);
const requested: fc.Arbitrary<RequestedEntry> = fc
  .tuple(fc.constantFrom(leased, optimistic, stable, read), path, fc.constantFrom('', '/'))
  .map(([make, resource, scope]) => make(resource + scope));
const requests = fc.array(requested, { minLength: 1, maxLength: 3 });

const kinds: ConflictMapDocument['kinds'] = [
  {
    pattern: '{any...}',
    actions: {
      replace: { access: 'write', concurrency: 'lease', change_class: 'shared_pointer' },
      patch: { access: 'write', change_class: 'derived' },
    },
  },
];

/** Locks as taken and entries as expanded, under a map. */
function expandedBy(document: ConflictMapDocument) {
  const map = compiled(document);
  return (entries: readonly RequestedEntry[]) => {
    const result = expandWriteSet(map, writeSet(...entries), EVERYTHING, { maxEntries: 256, maxLocks: 4_096 });
    if (!result.ok) throw new Error(result.refusal.message);
    const { writeSet: made } = result;
    return {
      locks: locksOf(made.entries, made.ruleLocks),
      entries: made.entries.map((entry) => ({ ...entry, observedRefusal: null })),
    };
  };
}

describe('locks against the oracle (P1)', () => {
  it('two write sets can be held together exactly when no resource of the universe says otherwise', () => {
    const expand = expandedBy({ version: 1, kinds });
    const oracle = new Oracle(UNIVERSE);
    fc.assert(
      fc.property(requests, requests, (a, b) => {
        const [mine, theirs] = [expand(a), expand(b)];
        expect(together(mine.locks, theirs.locks)).toBe(oracle.incompatible(mine.entries, theirs.entries) === '');
      }),
      { numRuns: 1_000 },
    );
  });

  const patterns = ['a/{t}', 'b/{t}', '{t}/a', 'a', 'a/{t}/{u}', 'b/{u}/{t}', '{x...}', 'b/{x...}', 'a/{x}'];
  const rule = fc.tuple(fc.constantFrom(...patterns), fc.constantFrom(...patterns));

  const namesOf = (pattern: string): string[] => [...pattern.matchAll(/\{(\w+)/g)].map((match) => match[1] as string);
  const joinedBy = ([a, b]: readonly [string, string]): string[] =>
    namesOf(a).filter((name) => namesOf(b).includes(name));

  it('and so it is with rules that tie different ids by their captures (C3)', () => {
    fc.assert(
      fc.property(rule, requests, requests, (between, a, b) => {
        const document: ConflictMapDocument = { version: 1, kinds, conflicts: [{ between }] };
        const expand = expandedBy(document);
        const [mine, theirs] = [expand(a), expand(b)];
        const why = new Oracle(UNIVERSE, document).incompatible(mine.entries, theirs.entries);
        // P1: what the oracle keeps apart, the locks keep apart.
        if (why !== '') expect(together(mine.locks, theirs.locks), why).toBe(false);
        // And not more than that, unless a subtree binds a part of the captures only, which then counts for nothing.
        else if (!between.some((pattern) => pattern.includes('...')) && joinedBy(between).length < 2)
          expect(together(mine.locks, theirs.locks)).toBe(true);
      }),
      { numRuns: 600 },
    );
  });
});

describe('the table of who holds what', () => {
  const change = fc.record({
    key: fc.constantFrom('k', 'l'),
    leaseId: fc.constantFrom('1', '2', '3'),
    add: fc.boolean(),
  });

  it('has exactly what was added and not removed, and nothing is left of what was (F10)', () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
        const index = new BaseHolderIndex();
        const model = new Map<string, Set<string>>();
        for (const { key, leaseId, add } of changes) {
          const ids = model.get(key) ?? new Set();
          model.set(key, ids);
          if (add) index.add(key, { leaseId, runId: 'r', order: 0 });
          else index.remove(key, leaseId);
          if (add) ids.add(leaseId);
          else ids.delete(leaseId);
        }
        for (const [key, ids] of model) {
          expect([...index.holders(key)].map((holder) => holder.leaseId).sort()).toEqual([...ids].sort());
        }
        expect(index.size).toBe([...model.values()].filter((ids) => ids.size > 0).length);
        for (const [key, ids] of model) for (const leaseId of ids) index.remove(key, leaseId);
        expect(index.size).toBe(0);
      }),
    );
  });
});
