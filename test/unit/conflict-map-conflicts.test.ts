import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { explainConflict, findConflicts } from '../../src/domain/conflict-map/index.js';
import type { Access, ExpandedEntry, Scope } from '../../src/domain/entry.js';
import { matchPattern, type Pattern, parsePattern } from '../../src/domain/pattern.js';
import { entries, entry, expanded, mapOf } from '../support/conflict-map.js';

const LETTERS = ['a', 'b'];

function concrete(depth: number): string[] {
  let last = [''];
  const all: string[] = [];
  for (let level = 0; level < depth; level += 1) {
    last = last.flatMap((above) => LETTERS.map((letter) => (above === '' ? letter : `${above}/${letter}`)));
    all.push(...last);
  }
  return all;
}

const RESOURCES = concrete(3);
const covers = (one: Pick<ExpandedEntry, 'resource' | 'scope'>, resource: string): boolean =>
  one.resource === resource || (one.scope === 'subtree' && resource.startsWith(`${one.resource}/`));

const lease = { concurrency: 'lease', change_class: 'shared_pointer' } as const;
const patch = { change_class: 'derived' } as const;
const PLAIN = mapOf({ kinds: [{ pattern: '{any...}', actions: { lease, patch } }] });

const scopes = fc.constantFrom<Scope>('exact', 'subtree');
const requests = fc.record({
  resource: fc.constantFrom(...RESOURCES),
  access: fc.constantFrom<Access>('read', 'stable_read', 'write'),
  scope: scopes,
  action: fc.constantFrom('lease', 'patch'),
});
const asked = (list: readonly { resource: string; access: Access; scope: Scope; action: string }[]) =>
  entries(...list.map((one) => entry(one.resource, one.access, one.access === 'write' ? [one.action] : [], one.scope)));

/** Whether two entries of different runs may not stand on one resource. */
function clash(a: ExpandedEntry, b: ExpandedEntry): boolean {
  if (a.access === 'read' || b.access === 'read') return false;
  if (a.access === 'stable_read' && b.access === 'stable_read') return false;
  const optimistic = (one: ExpandedEntry): boolean => one.access === 'write' && !one.exclusive;
  return !(optimistic(a) && optimistic(b));
}

describe('the locks of two write sets (P1)', () => {
  it('exclude each other exactly when some resource is covered by clashing entries of both', () => {
    const sets = fc.array(requests, { minLength: 1, maxLength: 3 });
    fc.assert(
      fc.property(sets, sets, (one, other) => {
        const a = expanded(PLAIN, asked(one));
        const b = expanded(PLAIN, asked(other));
        const meet = RESOURCES.some((resource) =>
          a.entries.some((x) => covers(x, resource) && b.entries.some((y) => covers(y, resource) && clash(x, y))),
        );
        expect(findConflicts(a, b).length > 0).toBe(meet);
        expect(findConflicts(b, a).length > 0).toBe(meet);
      }),
      { numRuns: 2_000 },
    );
  });

  it('exclude each other exactly then for every pair of single entries', () => {
    const accesses: readonly [Access, string][] = [
      ['stable_read', 'patch'],
      ['write', 'patch'],
      ['write', 'lease'],
    ];
    const all = RESOURCES.flatMap((resource) =>
      (['exact', 'subtree'] as const).flatMap((scope) =>
        accesses.map(([access, action]) => expanded(PLAIN, asked([{ resource, access, scope, action }]))),
      ),
    );
    for (const a of all) {
      for (const b of all) {
        const [x, y] = [a.entries[0] as ExpandedEntry, b.entries[0] as ExpandedEntry];
        const meet = clash(x, y) && RESOURCES.some((resource) => covers(x, resource) && covers(y, resource));
        if (findConflicts(a, b).length > 0 !== meet)
          expect.fail(`${JSON.stringify(x)} and ${JSON.stringify(y)}: expected ${meet}`);
      }
    }
  });
});

describe('conflicts rules as locks', () => {
  const patternText = fc
    .tuple(
      fc.array(fc.constantFrom('a', 'b', '{x}', '{y}'), { minLength: 1, maxLength: 3 }),
      fc.constantFrom('', '', '{x...}'),
    )
    .map(([parts, rest]) => (rest === '' ? parts : [...parts.slice(0, 2), rest]).join('/'))
    .filter((text) => parsePattern(text).ok);

  function pattern(text: string): Pattern {
    const parsed = parsePattern(text);
    if (!parsed.ok) throw new Error(parsed.reason);
    return parsed.pattern;
  }

  /** A capture value is one of the two letters, or both deeper: the samples know them all up to depth 4. */
  const DEEP = concrete(4);

  it('exclude exactly writers of different sides whose shared captures agree', () => {
    const writes = fc.record({ resource: fc.constantFrom(...RESOURCES), scope: scopes });
    fc.assert(
      fc.property(patternText, patternText, writes, writes, (first, second, one, other) => {
        const [p, q] = [pattern(first), pattern(second)];
        const joined = p.names.filter((name) => q.names.includes(name));
        const map = mapOf({
          kinds: [{ pattern: '{any...}', actions: { patch } }],
          conflicts: [{ between: [first, second] }],
        });
        const write = (from: typeof one) => expanded(map, entries(entry(from.resource, 'write', [], from.scope)));
        const agreeing = (x: string, y: string): boolean => {
          const [left, right] = [matchPattern(p, x.split('/')), matchPattern(q, y.split('/'))];
          return left !== null && right !== null && joined.every((name) => left.get(name) === right.get(name));
        };
        const mine = DEEP.filter((resource) => covers(one, resource));
        const theirs = DEEP.filter((resource) => covers(other, resource));
        const meet = mine.some((x) => theirs.some((y) => agreeing(x, y) || agreeing(y, x)));
        const found = findConflicts(write(one), write(other)).length > 0;
        if (meet) expect(found).toBe(true);
        // Where several captures join and only some are bound, or a rest is, the unbound side is taken for all.
        const coarse = joined.length > 1 || first.includes('...') || second.includes('...');
        if (!coarse) expect(found).toBe(meet);
        expect(findConflicts(write(other), write(one)).length > 0).toBe(found);
      }),
      { numRuns: 3_000 },
    );
  });

  const MAP = mapOf({
    kinds: [
      { pattern: 'token/{t}', actions: { rotate: patch } },
      { pattern: 'config/{t}', actions: { edit: patch } },
      { pattern: 'other/{t}', actions: { edit: patch } },
    ],
    conflicts: [{ between: ['token/{tenant}', 'config/{tenant}'], because: 'the config embeds the token reference' }],
  });
  const conflict = (a: string, b: string, scopeA: Scope = 'exact', scopeB: Scope = 'exact'): boolean =>
    explainConflict(MAP, entries(entry(a, 'write', [], scopeA)), entries(entry(b, 'write', [], scopeB))).conflict;

  it('keep a token and the config that embeds it apart per tenant (C3)', () => {
    expect(conflict('token/acme', 'config/acme')).toBe(true);
    expect(conflict('token/acme', 'config/globex')).toBe(false);
    expect(conflict('token/acme', 'token/acme')).toBe(false);
    expect(conflict('config/acme', 'config/acme')).toBe(false);
  });

  it('let no writers of one side exclude each other, bound or not', () => {
    expect(conflict('token', 'token', 'subtree', 'subtree')).toBe(false);
    expect(conflict('token', 'token/acme', 'subtree')).toBe(false);
    expect(conflict('config', 'config', 'subtree', 'subtree')).toBe(false);
    expect(conflict('token', 'config', 'subtree', 'subtree')).toBe(true);
    expect(conflict('token', 'config/acme', 'subtree')).toBe(true);
    expect(conflict('token', 'other/acme', 'subtree')).toBe(false);
  });

  it('are explained, with the reason', () => {
    const explanation = explainConflict(MAP, entries(entry('token/acme')), entries(entry('config/acme')));
    expect(explanation.steps).toEqual([
      {
        key: 'conflicts[0]',
        rule: 'conflicts[0]',
        because: 'the config embeds the token reference',
        modeA: 'IX',
        modeB: 'S',
        resourceA: 'token/acme',
        resourceB: 'config/acme',
        ruleA: '',
        ruleB: '',
        message:
          'the optimistic write to "token/acme" and the optimistic write to "config/acme" are kept apart by conflicts[0], since the config embeds the token reference (IX against S).',
      },
    ]);
  });

  it('tell once that two subtrees of one resource meet, though they do so at its leaf and at its node', () => {
    const subtree = entries(entry('token/acme', 'write', [], 'subtree'));
    const stable = entries(entry('token/acme', 'stable_read', [], 'subtree'));
    const meets = explainConflict(MAP, subtree, stable).steps.filter(({ key }) => key === 'token/acme');
    expect(meets.map(({ modeA, modeB }) => `${modeA} ${modeB}`)).toEqual(['O S']);
  });

  it('never take the captures of one key for those of another', () => {
    const map = mapOf({
      kinds: [{ pattern: '{any...}', actions: { patch } }],
      conflicts: [{ between: ['a/{x}/{y}', 'b/{x}/{y}'] }],
    });
    const keys = ['["p","q"]', 'p","q', 'every-first', 'p'].flatMap((x) =>
      ['q', '"]', '']
        .filter((y) => y !== '')
        .map((y) =>
          expanded(map, entries(entry(`a/${x}/${y}`)))
            .ruleLocks.map((lock) => lock.key)
            .join(' '),
        ),
    );
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe('explaining', () => {
  it('goes on where a side would be refused, and says so', () => {
    const explanation = explainConflict(
      PLAIN,
      entries(entry('a', 'write', ['nothing'])),
      entries(entry('a', 'stable_read')),
    );
    expect(explanation.refusalA?.kind).toBe('undescribed');
    expect(explanation.refusalB).toBeNull();
    expect(explanation.conflict).toBe(true);
  });
});
