import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CredentialClock } from '../../src/clients/target/credential-clock.js';

/** A wall clock and a monotonic one, both at hand. */
function clocks() {
  const hands = { wall: 1_764_000_000_000, monotonic: 5_000 };
  const clock = new CredentialClock(
    () => hands.wall,
    () => hands.monotonic,
  );
  return {
    hands,
    clock,
    pass(ms: number) {
      hands.wall += ms;
      hands.monotonic += ms;
    },
  };
}

describe('the clock of a verifier (F12)', () => {
  it('is the wall clock while that goes on as it should', () => {
    const { hands, clock, pass } = clocks();
    pass(1_234);
    expect(clock.now()).toBe(hands.wall);
  });

  it('goes on when the wall clock is set back, and believes it again when nothing of before can live', () => {
    const { hands, clock, pass } = clocks();
    const before = clock.now();
    hands.wall -= 60_000;
    pass(10_000);
    expect(clock.now()).toBe(before + 10_000);
    pass(119_000);
    expect(clock.now()).toBe(before + 129_000);
    pass(1_000);
    expect(clock.now()).toBe(hands.wall);
  });

  it('goes forward with the wall clock, and does not come back with it at once', () => {
    const { hands, clock, pass } = clocks();
    hands.wall += 60_000;
    expect(clock.now()).toBe(hands.wall);
    const ahead = clock.now();
    hands.wall -= 60_000;
    pass(1_000);
    expect(clock.now()).toBe(ahead + 1_000);
  });

  it('is never before what the key server said, also by way of a cache', () => {
    const { hands, clock, pass } = clocks();
    clock.tell(new Date(hands.wall + 90_000).toUTCString(), null);
    pass(5_000);
    expect(clock.now()).toBe(hands.wall + 90_000);
    clock.tell(new Date(hands.wall - 200_000).toUTCString(), '260');
    expect(clock.now()).toBe(hands.wall + 60_000);
  });

  it.each([
    [null, null],
    ['yesterday', '12'],
    ['', 'x'],
  ])('takes no notice of a date that is none: %j, %j', (date, age) => {
    const { hands, clock } = clocks();
    clock.tell(date, age);
    expect(clock.now()).toBe(hands.wall);
  });

  it('never goes back within two minutes, whatever is done to the wall clock', () => {
    const step = fc.record({
      pass: fc.integer({ min: 0, max: 2_000 }),
      set: fc.integer({ min: -100_000, max: 100_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        const { hands, clock, pass } = clocks();
        let last = clock.now();
        for (const { pass: ms, set } of steps) {
          pass(ms);
          hands.wall += set;
          const now = clock.now();
          expect(now).toBeGreaterThanOrEqual(last + ms);
          last = now;
        }
      }),
    );
  });
});
