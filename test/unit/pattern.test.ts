import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bindAtOrBelow,
  coverSubtree,
  matchPattern,
  type Pattern,
  parsePattern,
  patternCovers,
  type Region,
  regionsOverlap,
  substitute,
} from '../../src/domain/pattern.js';
import { deciding, PatternIndex } from '../../src/domain/pattern-index.js';
import type { PatternSegment } from '../../src/domain/pattern-segment.js';

function pattern(text: string, use: 'pattern' | 'template' = 'pattern'): Pattern {
  const parsed = parsePattern(text, use);
  if (!parsed.ok) throw new Error(`${text}: ${parsed.reason}`);
  return parsed.pattern;
}

const LETTERS = ['a', 'b', 'c'];

/** Every resource of up to `depth` segments over a small alphabet; "c" is in no pattern below. */
function resources(depth: number): string[][] {
  let last: string[][] = [[]];
  const all: string[][] = [];
  for (let level = 0; level < depth; level += 1) {
    last = last.flatMap((above) => LETTERS.map((letter) => [...above, letter]));
    all.push(...last);
  }
  return all;
}

const SHALLOW = resources(3);
const DEEP = resources(5);

/** Patterns of up to three segments over two letters. */
const patterns = fc
  .tuple(fc.array(fc.constantFrom('a', 'b', '{}'), { maxLength: 3 }), fc.boolean())
  .map(([steps, rest]) => {
    const parts = steps.map((step, index) => (step === '{}' ? `{n${index}}` : step));
    if (rest || parts.length === 0) parts.splice(Math.min(parts.length, 2), 3, '{rest...}');
    return pattern(parts.join('/'));
  });

const below = (resource: readonly string[], candidate: readonly string[]): boolean =>
  resource.every((segment, index) => candidate[index] === segment);

describe('patterns', () => {
  it('one covers another just when it matches all that the other matches', () => {
    fc.assert(
      fc.property(patterns, patterns, (outer, inner) => {
        const all = DEEP.filter((resource) => matchPattern(inner, resource) !== null);
        const covered = all.every((resource) => matchPattern(outer, resource) !== null);
        expect(patternCovers(outer, inner)).toBe(covered);
      }),
      { numRuns: 500 },
    );
  });

  it('match literal segments, one segment, and one or more remaining segments', () => {
    expect(matchPattern(pattern('release/{env}'), ['release', 'prod'])).toEqual(new Map([['env', 'prod']]));
    expect(matchPattern(pattern('release/{env}'), ['release', 'prod', 'x'])).toBeNull();
    expect(matchPattern(pattern('wiki/{page...}'), ['wiki', 'a', 'b'])).toEqual(new Map([['page', 'a/b']]));
    expect(matchPattern(pattern('wiki/{page...}'), ['wiki'])).toBeNull();
  });

  it.each([
    ['a/{x}b', 'whole segment'],
    ['a/{x', 'whole segment'],
    ['a/{}', 'name'],
    ['a/{1x}', 'name'],
    ['{x...}/a', 'last'],
    ['{x}/{x}', 'twice'],
    ['a//b', 'empty'],
    ['', 'empty'],
    ['a/../b', '..'],
    ['a/\u200b', 'U+200B'],
  ])('refuses %s', (text, reason) => {
    const parsed = parsePattern(text);
    expect(parsed.ok ? '' : parsed.reason).toContain(reason);
  });

  it('allow a name twice in a template', () => {
    expect(parsePattern('{x}/{x}', 'template').ok).toBe(true);
  });

  it('overlap exactly when some resource matches both', () => {
    fc.assert(
      fc.property(patterns, patterns, (a, b) => {
        const meet = DEEP.some((resource) => matchPattern(a, resource) !== null && matchPattern(b, resource) !== null);
        const [one, other] = [a, b].map(({ segments }) => ({ segments, below: false })) as [Region, Region];
        expect(regionsOverlap(one, other)).toBe(meet);
        expect(regionsOverlap(other, one)).toBe(meet);
      }),
      { numRuns: 500 },
    );
  });

  it('match at or below a resource exactly when they match something there, and bind what is the same for all of it', () => {
    fc.assert(
      fc.property(patterns, fc.constantFrom(...SHALLOW), (a, resource) => {
        const there = DEEP.filter((candidate) => below(resource, candidate)).flatMap(
          (candidate) => matchPattern(a, candidate) ?? [],
        );
        expect(bindAtOrBelow(a, resource) !== null).toBe(there.length > 0);
        for (const [name, value] of bindAtOrBelow(a, resource)?.bound ?? []) {
          for (const captures of there) expect(captures.get(name)).toBe(value);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('cover a subtree together exactly when everything in it matches one of them', () => {
    fc.assert(
      fc.property(fc.array(patterns, { maxLength: 4 }), fc.constantFrom(...SHALLOW), (several, resource) => {
        const all = DEEP.filter((candidate) => below(resource, candidate)).every((candidate) =>
          several.some((a) => matchPattern(a, candidate) !== null),
        );
        // Without a rest nothing covers what is deeper than the samples.
        expect(coverSubtree(several, resource)).toBe(all);
      }),
      { numRuns: 1_000 },
    );
  });
});

/** Which of two is more specific, as the conflict map has it: a literal before a capture before a rest, left to right. */
function compareSpecificity(a: Pattern, b: Pattern): number {
  const rank = { literal: 0, capture: 1, rest: 2 } as const;
  for (const [index, one] of a.segments.entries()) {
    const other: PatternSegment | undefined = b.segments[index];
    if (other === undefined) break;
    const difference = rank[one.kind] - rank[other.kind];
    if (difference !== 0) return difference;
    // Two literals that differ share no resource; any order will do, as long as it is one.
    if (one.kind === 'literal' && other.kind === 'literal' && one.text !== other.text)
      return one.text < other.text ? -1 : 1;
  }
  return b.segments.length - a.segments.length;
}

describe('the index of patterns', () => {
  const several = fc.array(patterns, { maxLength: 8 });

  function indexOf(list: readonly Pattern[]): {
    index: PatternIndex<{ pattern: Pattern }>;
    values: { pattern: Pattern }[];
  } {
    const index = new PatternIndex<{ pattern: Pattern }>();
    const values = list.map((one) => ({ pattern: one }));
    for (const value of values) index.add(value.pattern, value);
    return { index, values };
  }

  const bestOf = (values: { pattern: Pattern }[], resource: readonly string[]): Pattern | undefined =>
    values
      .map((value) => value.pattern)
      .filter((one) => matchPattern(one, resource) !== null)
      .sort(compareSpecificity)[0];

  it('finds the most specific pattern, as a scan of all does', () => {
    fc.assert(
      fc.property(several, fc.constantFrom(...DEEP), (list, resource) => {
        const { index, values } = indexOf(list);
        const best = index.best(resource)?.pattern;
        const scanned = bestOf(values, resource);
        expect(best === undefined).toBe(scanned === undefined);
        if (best !== undefined && scanned !== undefined) expect(compareSpecificity(best, scanned)).toBe(0);
      }),
      { numRuns: 1_000 },
    );
  });

  it('finds all that match, all at or below, and all that overlap', () => {
    fc.assert(
      fc.property(several, fc.constantFrom(...SHALLOW), patterns, fc.boolean(), (list, resource, other, deeper) => {
        const { index, values } = indexOf(list);
        expect(new Set(index.all(resource))).toEqual(
          new Set(values.filter((value) => matchPattern(value.pattern, resource) !== null)),
        );
        expect(new Set(index.atOrBelow(resource))).toEqual(
          new Set(values.filter((value) => bindAtOrBelow(value.pattern, resource) !== null)),
        );
        const touched = DEEP.filter((candidate) =>
          (deeper ? Array.from({ length: candidate.length }, (_, n) => candidate.slice(0, n + 1)) : [candidate]).some(
            (above) => matchPattern(other, above) !== null,
          ),
        );
        expect(new Set(index.overlapping(other, deeper))).toEqual(
          new Set(
            values.filter((value) => touched.some((candidate) => matchPattern(value.pattern, candidate) !== null)),
          ),
        );
      }),
      { numRuns: 500 },
    );
  });

  it('finds what decides about something at or below a resource', () => {
    fc.assert(
      fc.property(several, fc.constantFrom(...SHALLOW.filter((resource) => resource.length < 3)), (list, resource) => {
        const shapes = new Map(
          list.map((one) => [
            one.segments.map((segment) => (segment.kind === 'literal' ? segment.text : segment.kind)).join('/'),
            one,
          ]),
        );
        const { index, values } = indexOf([...shapes.values()]);
        const decided = new Set(
          DEEP.filter((candidate) => below(resource, candidate)).map((candidate) => bestOf(values, candidate)),
        );
        expect(new Set(deciding(index, resource).map((value) => value.pattern))).toEqual(
          new Set([...decided].filter((one) => one !== undefined)),
        );
      }),
      { numRuns: 500 },
    );
  });

  it('prefers a literal to a capture and a capture to a rest, left to right', () => {
    const { index } = indexOf(['a/{x}/c', 'a/b/{y}', '{x...}', 'a/{x...}', 'a/{x}'].map((text) => pattern(text)));
    expect(index.best(['a', 'b', 'c'])?.pattern.text).toBe('a/b/{y}');
    expect(index.best(['a', 'x', 'c'])?.pattern.text).toBe('a/{x}/c');
    expect(index.best(['a', 'x'])?.pattern.text).toBe('a/{x}');
    expect(index.best(['a', 'x', 'd'])?.pattern.text).toBe('a/{x...}');
    expect(index.best(['a'])?.pattern.text).toBe('{x...}');
  });
});

describe('templates', () => {
  const template = (text: string): Pattern => pattern(text, 'template');

  it('take the captures', () => {
    const bound = new Map([
      ['env', 'prod'],
      ['rest', 'x/y'],
    ]);
    expect(substitute(template('dns/{env}/{rest...}'), { bound, partial: null })).toEqual({
      kind: 'exact',
      resource: 'dns/prod/x/y',
    });
  });

  it('widen to the subtree of the longest bound prefix where a capture is not bound', () => {
    const captures = bindAtOrBelow(pattern('app/{env}/{service}'), ['app', 'prod']);
    if (captures === null) throw new Error('it matches below');
    expect(substitute(template('dns/{env}/{service}/a'), captures)).toEqual({ kind: 'widened', resource: 'dns/prod' });
    expect(substitute(template('dns/{env}'), captures)).toEqual({ kind: 'exact', resource: 'dns/prod' });
    expect(substitute(template('{service}/dns'), captures)).toEqual({ kind: 'unbound' });
  });

  it('keep what is known of a rest', () => {
    const captures = bindAtOrBelow(pattern('src/{path...}'), ['src', 'main', 'java']);
    if (captures === null) throw new Error('it matches below');
    expect(substitute(template('doc/{path...}'), captures)).toEqual({ kind: 'widened', resource: 'doc/main/java' });
    expect(substitute(template('{path...}'), captures)).toEqual({ kind: 'widened', resource: 'main/java' });
  });
});
