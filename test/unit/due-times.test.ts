import { describe, expect, it } from 'vitest';
import type { Waiting } from '../../src/domain/lease.js';
import { emptyState, type State } from '../../src/domain/state.js';
import { MILLISECOND, SECOND } from '../../src/domain/time.js';
import { DueTimes } from '../../src/engine/replica.js';
import { compiled, DOCUMENT } from '../support/domain.js';
import { SAMPLE_TIME as NOW, sampleEnded, sampleLease, sampleRun, sampleWaiter } from '../support/sample-records.js';

function counted(state: State): () => number {
  let walks = 0;
  const values = state.leases.values.bind(state.leases);
  state.leases.values = () => {
    walks += 1;
    return values();
  };
  return () => walks;
}

function lease(leaseId: string, expiresAt: number) {
  return sampleLease({ leaseId, expiresAt, claimBy: null });
}

describe('what the sweeper must see', () => {
  it('an expired lease, a wait that is over, a place nobody came back for, the end of an authority; nothing ended', () => {
    const waiter = (waitsUntil: number, attachedUntil: number) => {
      const made = sampleWaiter();
      return { ...made, waiting: made.waiting && { ...made.waiting, waitsUntil, attachedUntil } };
    };
    const cases = [
      [lease('l', NOW), true],
      [lease('l', NOW + 1), false],
      [sampleEnded(lease('l', NOW - 1)), false],
      [waiter(NOW, NOW + SECOND), true],
      [waiter(NOW + SECOND, NOW), true],
      [waiter(NOW + SECOND, NOW + 1), false],
    ] as const;
    for (const [record, due] of cases) {
      const state = emptyState('test');
      state.leases.set(record.leaseId, record);
      expect(new DueTimes().isDue(state, NOW)).toBe(due);
    }
    const state = emptyState('test');
    state.runs.set('r', sampleRun({ runId: 'r', authorityEndsAt: NOW }));
    expect(new DueTimes().isDue(state, NOW)).toBe(true);
  });

  it('the start of a resource set that is waited for, once', () => {
    const entries = [{ resource: 'doc/x', access: 'write' as const }];
    const state = emptyState('test');
    state.map = compiled({ ...DOCUMENT, sets: { s: { not_before: NOW + SECOND, entries } } });
    const made = sampleWaiter({ request: { entries: [], task: null, resourceSet: 's' } });
    const long = { ...(made.waiting as Waiting), waitsUntil: NOW + 60 * SECOND, attachedUntil: NOW + 60 * SECOND };
    state.leases.set(made.leaseId, { ...made, waiting: long });
    const due = new DueTimes();
    expect(due.isDue(state, NOW)).toBe(false);
    expect(due.isDue(state, NOW + SECOND)).toBe(true);
    // It may wait on for other reasons.
    expect(due.isDue(state, NOW + SECOND)).toBe(false);
  });

  it('many records are walked once a second, unless an end that is known of has passed', () => {
    const state = emptyState('test');
    for (let i = 0; i < 6_000; i += 1) state.leases.set(`l${i}`, lease(`l${i}`, NOW + 10 * SECOND));
    const walks = counted(state);
    const due = new DueTimes();
    for (let at = 0; at < 1_000; at += 250) expect(due.isDue(state, NOW + at * MILLISECOND)).toBe(false);
    expect(walks()).toBe(1);
    state.leases.set('early', lease('early', NOW + 1_100 * MILLISECOND));
    expect(due.isDue(state, NOW + 1_000 * MILLISECOND)).toBe(false);
    expect(walks()).toBe(2);
    // The bound has passed: seen at once, however short the time since the walk.
    expect(due.isDue(state, NOW + 1_100 * MILLISECOND)).toBe(true);
    // Renewed meanwhile: the bound was a bound, no more.
    state.leases.set('early', lease('early', NOW + 20 * SECOND));
    expect(due.isDue(state, NOW + 1_100 * MILLISECOND)).toBe(false);
  });

  it('few records are walked at every look, and another state has no memory of the one before', () => {
    const state = emptyState('test');
    state.leases.set('l', lease('l', NOW + 10 * SECOND));
    const due = new DueTimes();
    expect(due.isDue(state, NOW)).toBe(false);
    state.leases.set('soon', lease('soon', NOW + 100));
    expect(due.isDue(state, NOW + 100)).toBe(true);
    expect(due.isDue(emptyState('test'), NOW + 100)).toBe(false);
  });
});
