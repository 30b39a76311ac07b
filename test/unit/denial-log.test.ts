import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Decision } from '../../src/domain/decide/decision.js';
import { decideRecordDenials } from '../../src/domain/decide/upkeep.js';
import type { DenialCount, DomainEvent } from '../../src/domain/event.js';
import { Fault } from '../../src/domain/fault.js';
import { type Denial, DenialLog } from '../../src/services/denial-log.js';
import { FutureTokenAlarm, type FutureTokens } from '../../src/services/future-tokens.js';
import { Namespace } from '../support/domain.js';

const DENIAL: Denial = {
  reason: 'stale_token',
  resource: 'doc/x',
  action: 'replace',
  runId: 'run-a',
  leaseId: 'lease-a',
  presentedRun: '',
  target: 'svc:docs',
  observedOnly: false,
};

const busy = () => new Fault('resource_exhausted', 'QUEUE_FULL', 'full');

/** Engines that decide on an empty namespace each, or fail as told. */
class World {
  readonly appended: { readonly namespace: string; readonly event: DomainEvent }[] = [];
  readonly failing = new Map<string, () => Error>();
  readonly problems: unknown[] = [];
  readonly log = new DenialLog(
    async (namespace) => ({
      submit: async <R>(_actor: string, decide: (decision: Decision) => R) => {
        const failure = this.failing.get(namespace);
        if (failure !== undefined) throw failure();
        const ns = new Namespace(null);
        const value = ns.decide(decide) as R;
        for (const event of ns.events) this.appended.push({ namespace, event });
        return { value, revision: 1, now: 1 };
      },
    }),
    (error) => this.problems.push(error),
  );

  denials(namespace: string): DenialCount[] {
    return this.appended
      .filter((one) => one.namespace === namespace)
      .flatMap(({ event }) => (event.body.kind === 'checks_denied' ? event.body.denials : []));
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('denials (A1)', () => {
  it('are appended together, each aggregate with its count and the request ids it is about', async () => {
    const { log, ...world } = new World();
    log.note('ns', DENIAL, ['one']);
    log.note('ns', DENIAL, ['two', 'one']);
    log.note('ns', { ...DENIAL, reason: 'expired' }, ['three']);
    await vi.advanceTimersByTimeAsync(250);
    expect(world.appended.map(({ event }) => [event.runId, event.requestIds])).toEqual([
      ['run-a', ['one', 'two', 'three']],
    ]);
    expect(world.appended[0]?.event.body).toMatchObject({
      denials: [
        { reason: 'stale_token', count: 2, requestIds: ['one', 'two'] },
        { reason: 'expired', count: 1, requestIds: ['three'] },
      ],
    });
  });

  it('keep as many of the ids that callers gave as there is room for, before those of the calls themselves', async () => {
    const { log, ...world } = new World();
    for (let i = 0; i < 120; i += 1) log.note('ns', DENIAL, [`given ${i}`, `made up ${i}`]);
    for (let i = 0; i < 70; i += 1) log.note('ns', { ...DENIAL, reason: 'expired' }, [`asked ${i}`, `call ${i}`]);
    await vi.advanceTimersByTimeAsync(250);
    const [stale, expired] = world.appended.flatMap(({ event }) =>
      event.body.kind === 'checks_denied' ? event.body.denials : [],
    );
    expect(stale?.requestIds).toEqual(Array.from({ length: 100 }, (_, i) => `given ${i}`));
    expect(expired?.requestIds.slice(0, 70)).toEqual(Array.from({ length: 70 }, (_, i) => `asked ${i}`));
    expect(expired?.requestIds).toHaveLength(100);
  });

  it('make one event for each lease of each run, so that a search by either finds it', async () => {
    const { log, ...world } = new World();
    const whose = [
      ['run-a', 'lease-a'],
      ['run-a', 'lease-b'],
      ['run-b', 'lease-c'],
      ['', ''],
    ] as const;
    for (const [runId, leaseId] of whose) log.note('ns', { ...DENIAL, runId, leaseId }, [`of ${leaseId}`]);
    await vi.advanceTimersByTimeAsync(250);
    expect(world.appended.map(({ event }) => [event.runId, event.leaseId, event.requestIds])).toEqual(
      whose.map(([runId, leaseId]) => [runId, leaseId, [`of ${leaseId}`]]),
    );
  });

  it('are not lost when the append fails in passing: they are counted in again and retried', async () => {
    const world = new World();
    world.failing.set('ns', busy);
    world.log.note('ns', DENIAL, ['one']);
    await vi.advanceTimersByTimeAsync(250);
    expect(world.problems).toHaveLength(1);
    world.log.note('ns', DENIAL, ['two']);
    world.log.noteUnmatched('ns', 'wiki/x');
    world.failing.clear();
    await vi.advanceTimersByTimeAsync(1_100);
    expect(world.denials('ns')).toMatchObject([{ count: 2, requestIds: ['one', 'two'] }]);
    expect(world.appended.map(({ event }) => event.body.kind)).toEqual(['checks_denied', 'resources_unmatched']);
  });

  it('of one namespace are appended though another one fails', async () => {
    const world = new World();
    world.failing.set('bad', busy);
    world.log.note('bad', DENIAL, []);
    world.log.note('good', DENIAL, []);
    await vi.advanceTimersByTimeAsync(250);
    expect(world.denials('good')).toHaveLength(1);
    expect(world.denials('bad')).toHaveLength(0);
  });

  it('that can never be appended are given up, and said to be', async () => {
    const world = new World();
    world.failing.set('ns', () => new Fault('invalid_argument', 'BAD_DATA', 'bad'));
    world.log.note('ns', DENIAL, []);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(world.problems).toHaveLength(1);
  });

  it('stay bounded while the database is away; none is uncounted', async () => {
    const world = new World();
    world.failing.set('ns', busy);
    for (let i = 0; i < 1_000; i += 1) {
      world.log.note('ns', { ...DENIAL, resource: `doc/${i}` }, [`${i}a`]);
      if (i % 100 === 0) await vi.advanceTimersByTimeAsync(1_100);
    }
    world.failing.clear();
    await world.log.close();
    const denials = world.denials('ns');
    expect(denials.length).toBeLessThanOrEqual(201);
    expect(denials.filter(({ reason }) => reason === 'other')).toHaveLength(1);
    expect(denials.reduce((sum, { count }) => sum + count, 0)).toBe(1_000);
  });

  it('are appended at the end of the process', async () => {
    const world = new World();
    world.log.note('ns', DENIAL, ['last']);
    await world.log.close();
    expect(world.denials('ns')).toHaveLength(1);
  });

  it('carry at most 100 request ids an event, and every id of an aggregate is in its event', () => {
    const ns = new Namespace(null);
    const ids = (letter: string, n: number) => Array.from({ length: n }, (_, i) => `${letter}${i}`);
    const denials = ['a', 'b', 'c'].map((letter) => ({
      ...DENIAL,
      resource: letter,
      count: 60,
      requestIds: ids(letter, 60),
    }));
    ns.decide((decision) => decideRecordDenials(decision, denials));
    expect(ns.events.map(({ requestIds }) => requestIds.length)).toEqual([60, 60, 60]);
  });
});

describe('tokens from the future', () => {
  it('raise the alarm at once, then once a second with how many there were', async () => {
    const raised: FutureTokens[] = [];
    const alarm = new FutureTokenAlarm((seen) => raised.push(seen));
    for (let i = 0; i < 5; i += 1) alarm.note('svc:docs', `doc/${i}`);
    expect(raised).toEqual([{ principal: 'svc:docs', resource: 'doc/0', count: 1 }]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(raised.slice(1)).toEqual([{ principal: 'svc:docs', resource: 'doc/4', count: 4 }]);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(raised).toHaveLength(2);
    alarm.note('svc:docs', 'doc/9');
    expect(raised).toHaveLength(3);
  });
});
