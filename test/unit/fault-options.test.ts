import { describe, expect, it } from 'vitest';
import { readOptions, UsageError } from '../harness/options.js';
import { Random } from '../harness/random.js';

const draw = () => 4_711;

describe('options of the fault harness', () => {
  it('are every scenario once, with a seed by chance, when none is given', () => {
    const all = { scenarios: [], minutes: null, seed: 4_711, times: 1, full: false, help: false };
    expect(readOptions([], draw)).toEqual(all);
  });

  it('name scenarios, a seed, a number of times, minutes', () => {
    expect(readOptions(['--scenario', 'F2,F7', '--seed', '9', '--times', '3', '--full'], draw)).toMatchObject({
      scenarios: ['F2', 'F7'],
      seed: 9,
      times: 3,
      full: true,
    });
    expect(readOptions(['--minutes', '0.5'], draw)).toMatchObject({ minutes: 0.5, seed: 4_711 });
  });

  it.each([
    [['--minute', '3'], /no option --minute/],
    [['--minutes'], /--minutes must be a number from 0.1 to 1440, not nothing/],
    [['--seed', '-1'], /--seed must be a whole number/],
    [['--times', '1.5'], /--times must be a whole number/],
    [['--minutes', '1', '--scenario', 'F1'], /takes no --scenario/],
  ])('%j is refused', (args, says) => {
    expect(() => readOptions(args, draw)).toThrow(UsageError);
    expect(() => readOptions(args, draw)).toThrow(says);
  });
});

describe('what is drawn', () => {
  it('is the same for the same seed, and a part of it moves nothing in the others', () => {
    const numbers = (random: Random) => Array.from({ length: 20 }, () => random.next());
    expect(numbers(new Random(7))).toEqual(numbers(new Random(7)));
    const whole = new Random(7);
    const [one, other] = [whole.fork('a'), whole.fork('b')];
    numbers(one);
    expect(numbers(other)).toEqual(numbers(new Random(7).fork('b')));
    expect(numbers(new Random(7).fork('a'))).not.toEqual(numbers(new Random(7).fork('b')));
    expect(new Random(3).shuffled([1, 2, 3, 4]).sort()).toEqual([1, 2, 3, 4]);
  });
});
