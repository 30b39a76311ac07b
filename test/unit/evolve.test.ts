import { describe, expect, it } from 'vitest';
import type { DomainEvent, EventBody } from '../../src/domain/event.js';
import { evolve, insert, MAX_UNMATCHED } from '../../src/domain/evolve.js';
import { emptyState, overlay, type State } from '../../src/domain/state.js';
import { SECOND } from '../../src/domain/time.js';
import { digestOf, IDENTITY, leased, locksIn, Namespace, optimistic, START, stable } from '../support/domain.js';

function event(body: EventBody, time = START): DomainEvent {
  return { time, actor: 'test', runId: '', leaseId: '', resources: [], requestIds: [], body };
}

function apply(state: State, ...events: readonly DomainEvent[]): State {
  for (const each of events) evolve(state, each, state.revision + 1);
  return state;
}

/** A namespace in which most kinds of events have happened. */
function busy(): Namespace {
  const ns = new Namespace().runs('a', 'b', 'c', 'd');
  const first = ns.hold('a', leased('doc/x'), leased('deployment/eu'));
  ns.queue('b', leased('doc/x'), stable('doc/y'));
  ns.queue('c', leased('dns/eu/www'));
  ns.hold('c', optimistic('doc/z'));
  ns.renew(first, { marker: 'half' });
  ns.acquire('d', [leased('nowhere')]);
  ns.update('d', 'waiting_for_input');
  ns.releaseKey('d', 'never');
  ns.release(first);
  ns.stop('c');
  return ns;
}

describe('evolve: the fold of the log', () => {
  it('the same events give the same state on every replica (P7)', () => {
    const ns = busy();
    const replayed = apply(emptyState('test'), ...ns.events);
    expect(digestOf(replayed)).toBe(digestOf(ns.state));
    expect(replayed.revision).toBe(ns.events.length);
    expect([...replayed.keys.values()]).toEqual([...ns.state.keys.values()]);
  });

  it('the live records alone give the same state: what projections are loaded by', () => {
    const ns = busy();
    const loaded = emptyState('test');
    const { revision, time, mapVersion, map } = ns.state;
    Object.assign(loaded, { revision, time, mapVersion, map });
    for (const run of ns.state.runs.values()) if (run.endedAt === null) loaded.runs.set(run.runId, run);
    for (const lease of ns.state.leases.values()) if (lease.state !== 'ended') insert(loaded, lease, null);
    for (const seen of ns.state.unmatched.values()) loaded.unmatched.set(seen.resource, seen);
    expect(digestOf(loaded)).toBe(digestOf(ns.state));
  });

  it('what has ended leaves nothing behind in any table (F10)', () => {
    const ns = busy();
    for (const run of ['a', 'b', 'c', 'd']) ns.stop(run);
    expect(locksIn(ns.state.held)).toEqual([]);
    expect(locksIn(ns.state.queued)).toEqual([]);
    expect([ns.state.activeLeases, ns.state.waitingLeases]).toEqual([0, 0]);
    for (const run of ['a', 'b', 'c', 'd']) expect([...ns.state.leasesOfRun.holders(run)]).toEqual([]);
  });

  it('a grant to a waiting request moves its locks from the queue to what is held', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    expect(locksIn(ns.state.queued)).toContain(`X doc/x ${waiting.leaseId} b ${waiting.waiting?.queuedAt}`);
    ns.release(holder);
    expect(locksIn(ns.state.queued)).toEqual([]);
    expect(locksIn(ns.state.held)).toContain(`X doc/x ${waiting.leaseId} b 0`);
    expect([...ns.state.leasesOfRun.holders('b')]).toEqual([{ leaseId: waiting.leaseId, runId: 'b', order: 0 }]);
  });

  it('sets revision and time with every event, also with those that change nothing', () => {
    const state = apply(
      emptyState('test'),
      event({ kind: 'namespace_created', name: 'test' }, START),
      event({ kind: 'acquire_refused', refusal: 'held', message: '', purpose: '', blockers: [] }, START + 5),
      event({ kind: 'checks_denied', denials: [] }, START + 9),
    );
    expect([state.revision, state.time]).toEqual([3, START + 9]);
  });

  it.each([
    ['lease_ended', { kind: 'lease_ended', leaseId: 'none', endReason: 'released', reason: '', lockDelayUntil: null }],
    ['lease_claimed', { kind: 'lease_claimed', leaseId: 'none' }],
    [
      'leases_renewed',
      {
        kind: 'leases_renewed',
        runId: 'a',
        renewals: [{ leaseId: 'none', ttl: 1, expiresAt: 1, progressMarker: null, progressAt: 1 }],
      },
    ],
    ['lease_reexpanded', { kind: 'lease_reexpanded', leaseId: 'none', generation: 2, entries: [], ruleLocks: [] }],
    [
      'run_state_changed',
      {
        kind: 'run_state_changed',
        runId: 'none',
        state: 'active',
        reason: '',
        blockCause: null,
        endedAt: null,
        endsAs: null,
      },
    ],
  ] as const)('%s about a record that is not there fails loudly, without telling the id', (_, body) => {
    const state = emptyState('test');
    expect(() => apply(state, event(body as EventBody))).toThrow(/which is not in the state/);
  });

  it('an end that comes twice is one end', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    ns.release(lease);
    const before = digestOf(ns.state);
    evolve(
      ns.state,
      event(
        { kind: 'lease_ended', leaseId: lease.leaseId, endReason: 'expired', reason: '', lockDelayUntil: null },
        ns.state.time,
      ),
      ns.state.revision,
    );
    expect(digestOf(ns.state)).toBe(before);
    expect(ns.lease(lease).endReason).toBe('released');
  });
});

describe('lost history (P2, F13)', () => {
  it('ends every lease, waiting ones too, and blocks every run until an operator resumes it', () => {
    const ns = new Namespace().runs('a', 'b', 'gone');
    const lease = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    ns.stop('gone');
    ns.advance(SECOND);
    ns.loseHistory();
    expect(ns.kinds).toEqual(['database_identified']);
    for (const record of [ns.lease(lease), ns.lease(waiting)]) {
      expect(record).toMatchObject({ state: 'ended', endReason: 'database_changed', endedAt: ns.now });
    }
    expect(locksIn(ns.state.held)).toEqual([]);
    expect(locksIn(ns.state.queued)).toEqual([]);
    for (const runId of ['a', 'b']) {
      expect(ns.state.runs.get(runId)).toMatchObject({ state: 'blocked', blockCause: 'database_changed' });
      expect(ns.refused(ns.acquire(runId, [leased('doc/x')])).kind).toBe('run_blocked');
    }
    // A lost stop must not come back to life, but one that is there stays.
    expect(ns.state.runs.get('gone')?.state).toBe('stopped');
    expect(ns.check(lease, {}).results[0]?.reason).toBe('database_changed');

    expect(() => ns.update('a', 'active')).toThrow(expect.objectContaining({ reason: 'RUN_BLOCKED' }));
    ns.update('a', 'active', { asOperator: true });
    const next = ns.hold('a', leased('doc/x'));
    expect(next.entries[0]?.token).toBeGreaterThan(lease.entries[0]?.token as number);
  });

  it('a run that an operator keeps blocked is not resumed by its runner either', () => {
    const ns = new Namespace().runs('a');
    ns.loseHistory();
    ns.update('a', 'blocked', { asOperator: true });
    expect(ns.state.runs.get('a')).toMatchObject({ state: 'blocked', blockCause: 'database_changed' });
    expect(() => ns.update('a', 'active')).toThrow(expect.objectContaining({ reason: 'RUN_BLOCKED' }));
    ns.update('a', 'active', { asOperator: true });
    ns.update('a', 'blocked');
    ns.update('a', 'active');
  });

  it('a new identity without lost history ends nothing', () => {
    const ns = new Namespace().runs('a');
    ns.hold('a', leased('doc/x'));
    const body: EventBody = {
      kind: 'database_identified',
      identity: IDENTITY,
      lostHistory: false,
      why: 'restart',
      continuesFrom: { revision: ns.state.revision, hash: '' },
      localKindsFrom: null,
    };
    apply(ns.state, event(body, ns.state.time));
    expect(ns.state.activeLeases).toBe(1);
    expect(ns.state.identity).toEqual(IDENTITY);
  });
});

describe('resources that no kind matches (C14)', () => {
  const seen = (...resources: readonly string[]): EventBody => ({
    kind: 'resources_unmatched',
    counts: resources.map((resource) => ({ resource, times: 1 })),
  });

  it('are counted, with the time they were seen last', () => {
    const state = apply(emptyState('test'), event(seen('a', 'b'), START), event(seen('a'), START + 5));
    expect(state.unmatched.get('a')).toEqual({ resource: 'a', times: 2, lastSeenAt: START + 5 });
    expect(state.unmatched.get('b')).toEqual({ resource: 'b', times: 1, lastSeenAt: START });
  });

  it('are known once and for all: past the bound further names are not kept, so that no row stays behind (P7)', () => {
    const names = Array.from({ length: MAX_UNMATCHED }, (_, index) => `r/${index}`);
    const state = apply(emptyState('test'), event(seen(...names.slice(1)), START));
    const layer = overlay(state);
    apply(layer, event(seen('new/1', 'new/2', 'r/7'), START + 1));
    expect(layer.unmatched.changed()).toEqual([
      { resource: 'new/1', times: 1, lastSeenAt: START + 1 },
      { resource: 'r/7', times: 2, lastSeenAt: START + 1 },
    ]);
    layer.commit();
    expect(state.unmatched.size).toBe(MAX_UNMATCHED);
    expect(names.slice(1).filter((name) => state.unmatched.get(name) === undefined)).toEqual([]);
  });
});
