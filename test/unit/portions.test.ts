import { describe, expect, it } from 'vitest';
import { inPortions, type Portion, turnOfOnesOwn } from '../../src/platform/portions.js';

const items = (count: number, length: number): string[] =>
  Array.from({ length: count }, (_, index) => `${index}`.padEnd(length, 'x'));

async function all(portions: AsyncIterable<Portion>): Promise<Portion[]> {
  const told: Portion[] = [];
  for await (const portion of portions) told.push(portion);
  return told;
}

/** How often the event loop has gone round since it was asked to count. */
function countTurns(): { readonly turns: number; stop(): void } {
  const count = { turns: 0, stop: () => clearImmediate(immediate) };
  const again = (): void => {
    count.turns += 1;
    immediate = setImmediate(again);
  };
  let immediate = setImmediate(again);
  return count;
}

describe('much, converted in portions', () => {
  it('is all of it, in order', async () => {
    for (const [count, length] of [
      [0, 1],
      [1, 1],
      [7, 200_000],
      [5_000, 100],
    ] as const) {
      const given = items(count, length);
      const told = await all(inPortions(given, (text) => text));
      expect(told.map(({ text }) => text).join('')).toBe(given.join(''));
      expect(told.reduce((sum, portion) => sum + portion.count, 0)).toBe(count);
    }
  });

  it('converts at most 64 KiB at once, or one item that is larger', async () => {
    const small = await all(inPortions(items(5_000, 100), (text) => text));
    expect(Math.max(...small.map(({ text }) => text.length))).toBeLessThan(65_536 + 100);
    const large = await all(inPortions(items(4, 100_000), (text) => text));
    expect(large.map(({ count }) => count)).toEqual([1, 1, 1, 1]);
  });

  it('gives each portion a turn of the event loop, whosever it is', async () => {
    const turns = countTurns();
    const seen: number[] = [];
    const convert = (text: string): string => {
      seen.push(turns.turns);
      return text;
    };
    await Promise.all([1, 2, 3].map(() => all(inPortions(items(4, 100_000), convert))));
    turns.stop();
    expect(seen).toHaveLength(12);
    expect(new Set(seen).size).toBe(12);
  });

  it('serves those who wait in the order in which they came', async () => {
    const served: number[] = [];
    await Promise.all([1, 2, 3].map((number) => turnOfOnesOwn().then(() => served.push(number))));
    expect(served).toEqual([1, 2, 3]);
  });
});
