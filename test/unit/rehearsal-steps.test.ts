import { describe, expect, it } from 'vitest';
import { foldRepeats } from '../../src/rehearsal/steps.js';

/** The story of a case, as it is told. */

const ROUND = ['A read version 7', 'A wrote change b from version 7: 500', 'not yet'];
const rounds = (count: number) => Array.from({ length: count }, () => ROUND).flat();

describe('the steps of a case', () => {
  it('are told once where they come again and again, with how often', () => {
    expect(foldRepeats(['A holds it', ...rounds(100), 'A read version 7', 'A gave it back'])).toEqual([
      'A holds it',
      ...ROUND,
      '… 99 more times',
      'A read version 7',
      'A gave it back',
    ]);
    expect(foldRepeats(['not yet', 'not yet', 'not yet'])).toEqual(['not yet', '… 2 more times']);
  });

  it('are told as they were where they do not, or only twice', () => {
    for (const steps of [
      [],
      ['a'],
      ['a', 'a', 'b'],
      [...rounds(2), 'A read version 7'],
      ['a', 'b', 'a', 'c', 'a', 'b'],
    ])
      expect(foldRepeats(steps)).toEqual(steps);
  });
});
