import { describe, expect, it } from 'vitest';
import type { Fault } from '../../src/domain/fault.js';
import { fitting, pagesOf } from '../../src/services/pages.js';

const runs = pagesOf('runs');
const asked = (token: string) => runs.asked({ size: 0, token });

function violationsOf(work: () => unknown): readonly { field: string; description: string }[] {
  try {
    work();
    return [];
  } catch (error) {
    return (error as Fault).details.violations ?? [];
  }
}

describe('the pages of a list', () => {
  it('go on after the last row shown, until there is none', () => {
    const first = runs.cut(['a', 'b', 'c'], 2, (id) => id);
    expect(first.items).toEqual(['a', 'b']);
    expect(asked(first.nextToken)).toEqual({ size: 100, after: 'b' });
    expect(runs.cut(['c'], 2, (id) => id)).toEqual({ items: ['c'], nextToken: '' });
  });

  // Ids of runs and leases look alike: the token of another list would leave out rows, and say nothing.
  it('are not those of another list', () => {
    for (const list of ['leases', 'waiters', 'events', 'namespaces', 'in-doubt'] as const) {
      expect(violationsOf(() => asked(pagesOf(list).token('0'.repeat(32))))).toMatchObject([
        { field: 'page.page_token', description: expect.stringContaining('of this list') },
      ]);
    }
  });

  it('are refused where they are nobody’s', () => {
    const encoded = (text: string) => Buffer.from(text).toString('base64url');
    const tokens = [
      '%',
      'x',
      encoded('a'),
      encoded('runs '),
      encoded('runs a\u0000'),
      encoded(`runs ${'x'.repeat(1_025)}`),
    ];
    for (const token of [...tokens, `${runs.token('a')}=`, runs.token('a').slice(1)])
      expect(
        violationsOf(() => asked(token)),
        token,
      ).toMatchObject([{ field: 'page.page_token' }]);
  });

  it('have 1 to 1,000 rows', () => {
    for (const size of [-1, 1_001])
      expect(violationsOf(() => runs.asked({ size, token: '' }))).toMatchObject([{ field: 'page.page_size' }]);
  });
});

describe('how many rows fit into one answer', () => {
  it('is bounded by bytes, and never none', () => {
    expect(fitting([], () => 1)).toBe(0);
    expect(fitting([1, 2, 3], () => 1)).toBe(3);
    expect(fitting([1, 2, 3], () => 400_000)).toBe(2);
    expect(fitting([1, 2, 3], () => 5_000_000)).toBe(1);
  });
});
