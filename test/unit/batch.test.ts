import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decideAcquire } from '../../src/domain/decide/acquire.js';
import { DEFAULT_BOUNDS, type Decision, type LoadedRecords, NOTHING_LOADED } from '../../src/domain/decide/decision.js';
import { decideRenew } from '../../src/domain/decide/renew.js';
import { decideCreateRun, decideUpdateRunState } from '../../src/domain/decide/runs.js';
import { decideSweep } from '../../src/domain/decide/upkeep.js';
import type { DomainEvent } from '../../src/domain/event.js';
import { BaseHolderIndex, type Holder, OverlayHolderIndex } from '../../src/domain/holder-index.js';
import { runScope } from '../../src/domain/key-binding.js';
import { bindingId, overlay } from '../../src/domain/state.js';
import { BaseTable, OverlayTable } from '../../src/domain/table.js';
import { SECOND } from '../../src/domain/time.js';
import { type Command, type Plan, planBatch, toRecords } from '../../src/engine/batch.js';
import { DatabaseClock } from '../../src/engine/database-clock.js';
import { GENESIS, LogForked, ReplicaState } from '../../src/engine/replica-state.js';
import type { EventRecord, Snapshot } from '../../src/storage/store.js';
import { digestOf, EVERYTHING, IDENTITY, leased, Namespace, optimistic, START, stable } from '../support/domain.js';
import { sampleRun } from '../support/sample-records.js';

// -------------------------------------------------------------------------------------------------------- overlays

const key = fc.constantFrom('a', 'b', 'c', 'd');
const tableStep = fc.oneof(
  fc.record({ op: fc.constant('set' as const), key, value: fc.nat(99) }),
  fc.record({ op: fc.constant('delete' as const), key }),
  fc.record({ op: fc.constantFrom('commit' as const, 'drop' as const) }),
);

describe('an overlay of records (P7)', () => {
  it('reads as a plain map would, and its base changes only by a commit', () => {
    fc.assert(
      fc.property(fc.array(tableStep, { maxLength: 40 }), (steps) => {
        const base = new BaseTable<{ value: number }>();
        let committed = new Map<string, { value: number }>();
        let layer = new OverlayTable(base);
        let model = new Map(committed);
        for (const step of steps) {
          if (step.op === 'set') {
            const record = { value: step.value };
            layer.set(step.key, record);
            model.set(step.key, record);
          } else if (step.op === 'delete') {
            layer.delete(step.key);
            model.delete(step.key);
          } else {
            if (step.op === 'commit') {
              layer.commit();
              committed = new Map(model);
            }
            layer = new OverlayTable(base);
            model = new Map(committed);
          }
          for (const [table, expected] of [
            [layer, model],
            [base, committed],
          ] as const) {
            expect(table.size).toBe(expected.size);
            expect(new Set(table.values())).toEqual(new Set(expected.values()));
            for (const id of ['a', 'b', 'c', 'd']) expect(table.get(id)).toBe(expected.get(id));
          }
        }
        const changes = [...model].filter(([id, record]) => committed.get(id) !== record).map(([, record]) => record);
        for (const record of changes) expect(layer.changed()).toContain(record);
      }),
    );
  });

  it('over another one reads as over what that becomes, and goes on over it once it has become that', () => {
    const change = fc.oneof(fc.record({ key, value: fc.nat(99) }), fc.record({ key, value: fc.constant(null) }));
    const changes = fc.array(change, { maxLength: 10 });
    fc.assert(
      fc.property(changes, changes, changes, changes, (...[start, lower, upper, later]) => {
        const base = new BaseTable<{ value: number }>();
        const model = new Map<string, { value: number }>();
        const make = (table: BaseTable<{ value: number }> | OverlayTable<{ value: number }>, steps: typeof start) => {
          for (const step of steps) {
            if (step.value === null) {
              table.delete(step.key);
              model.delete(step.key);
            } else {
              const record = { value: step.value };
              table.set(step.key, record);
              model.set(step.key, record);
            }
            expect(table.size).toBe(model.size);
            expect(new Set(table.values())).toEqual(new Set(model.values()));
            for (const id of ['a', 'b', 'c', 'd']) expect(table.get(id)).toBe(model.get(id));
          }
        };
        const below = new OverlayTable(base);
        const above = new OverlayTable(below);
        make(base, start);
        make(below, lower);
        make(above, upper);
        below.commit();
        above.rebase(base);
        make(above, later);
        above.commit();
        expect(new Set(base.values())).toEqual(new Set(model.values()));
      }),
    );
  });

  it('may change while somebody iterates over it', () => {
    const base = new BaseTable<string>();
    for (const id of ['1', '2', '3']) base.set(id, `base ${id}`);
    const layer = new OverlayTable(base);
    layer.set('1', 'changed 1');
    const seen: string[] = [];
    for (const value of layer.values()) {
      seen.push(value);
      layer.set('2', 'changed 2');
      layer.set('4', 'added 4');
    }
    expect(seen).toEqual(['changed 1', 'base 2', 'base 3']);
    expect(layer.changed().length).toBe(3);
  });
});

describe('an overlay of who holds what (P7)', () => {
  const indexStep = fc.oneof(
    fc.record({ op: fc.constantFrom('add' as const, 'remove' as const), key, leaseId: fc.constantFrom('1', '2', '3') }),
    fc.record({ op: fc.constantFrom('commit' as const, 'drop' as const) }),
  );

  it('reads as a plain map of maps would, and its base changes only by a commit', () => {
    fc.assert(
      fc.property(fc.array(indexStep, { maxLength: 40 }), (steps) => {
        const base = new BaseHolderIndex();
        let committed: Record<string, Record<string, Holder>> = {};
        let layer = new OverlayHolderIndex(base);
        let model: typeof committed = {};
        const copy = (from: typeof committed): typeof committed =>
          Object.fromEntries(Object.entries(from).map(([id, holders]) => [id, { ...holders }]));
        for (const [order, step] of steps.entries()) {
          if (step.op === 'add') {
            const holder = { leaseId: step.leaseId, runId: 'r', order };
            layer.add(step.key, holder);
            model[step.key] = { ...model[step.key], [step.leaseId]: holder };
          } else if (step.op === 'remove') {
            layer.remove(step.key, step.leaseId);
            delete model[step.key]?.[step.leaseId];
          } else {
            if (step.op === 'commit') {
              layer.commit();
              committed = copy(model);
            }
            layer = new OverlayHolderIndex(base);
            model = copy(committed);
          }
          for (const [index, expected] of [
            [layer, model],
            [base, committed],
          ] as const) {
            for (const id of ['a', 'b', 'c', 'd']) {
              expect(new Set(index.holders(id))).toEqual(new Set(Object.values(expected[id] ?? {})));
            }
          }
        }
        expect(base.size).toBe(Object.values(committed).filter((holders) => Object.keys(holders).length > 0).length);
      }),
    );
  });
});

describe('an overlay of the state', () => {
  it('changes nothing below until it is committed, and then is what is below', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const before = digestOf(ns.state);
    const scratch = new Namespace(null);
    Object.assign(scratch, { state: overlay(ns.state), now: ns.now + SECOND });
    scratch.queue('b', leased('doc/x'));
    scratch.hold('b', leased('doc/y'));
    scratch.stop('a');
    expect(digestOf(ns.state)).toBe(before);
    (scratch.state as ReturnType<typeof overlay>).commit();
    expect(ns.state.revision).toBe(ns.events.length + scratch.events.length);
    expect([ns.state.activeLeases, ns.state.waitingLeases]).toEqual([2, 0]);
    expect(digestOf(ns.state)).not.toBe(before);
  });

  it('over another one comes to the same as both in one', () => {
    const first = (ns: Namespace): void => {
      ns.hold('a', leased('doc/x'));
      ns.queue('b', leased('doc/x'));
      ns.hold('b', stable('doc/read'));
    };
    const second = (ns: Namespace): void => {
      ns.hold('a', leased('doc/z'));
      ns.queue('b', leased('doc/z'));
      ns.stop('a');
    };
    const inOne = new Namespace().runs('a', 'b');
    first(inOne);
    second(inOne);

    const ns = new Namespace().runs('a', 'b');
    const base = ns.state;
    const below = overlay(base);
    first(Object.assign(ns, { state: below }));
    const above = overlay(below);
    second(Object.assign(ns, { state: above }));
    below.commit();
    above.rebase(base);
    above.commit();
    expect(digestOf(base)).toBe(digestOf(inOne.state));
  });
});

// ------------------------------------------------------------------------------------------------------ plans

/** A command as a service makes it, without anybody who waits for it. */
function command<R>(decide: (decision: Decision) => R, loaded: LoadedRecords = NOTHING_LOADED): Command {
  return {
    actor: 'test',
    decide,
    alone: false,
    loaded,
    resolve: () => undefined,
    reject: () => undefined,
  } as Command;
}

function plan(ns: Namespace, ...commands: readonly Command[]): Plan {
  const head = { revision: ns.state.revision, hash: 'ab'.repeat(32), time: ns.state.time };
  return planBatch({ base: ns.state, head, clock: ns.now, bounds: DEFAULT_BOUNDS, identity: IDENTITY }, commands);
}

const acquire = (ns: Namespace, runId: string, path: string, wanted: Parameters<Namespace['command']>[2] = {}) => {
  const asked = ns.command(runId, [leased(path)], wanted);
  return (decision: Decision) => decideAcquire(decision, asked);
};

const renewAll = (runId: string, ...leaseIds: readonly string[]) =>
  command((decision) =>
    decideRenew(decision, {
      principal: `principal-of-${runId}`,
      runId,
      renewals: leaseIds.map((leaseId) => ({ leaseId, ttl: null, progressMarker: null })),
      requestIds: [],
    }),
  );

const fails = command((decision) => {
  decideSweep(decision);
  throw new Error('poisoned');
});

describe('a plan', () => {
  it('decides one command after another, each on what the ones before would change', () => {
    const ns = new Namespace().runs('a', 'b');
    const planned = plan(
      ns,
      command(acquire(ns, 'a', 'doc/x')),
      command(acquire(ns, 'b', 'doc/x')),
      command(acquire(ns, 'b', 'doc/y')),
    );
    expect(planned.outcomes.map((outcome) => 'value' in outcome && (outcome.value as { kind: string }).kind)).toEqual([
      'lease',
      'refusal',
      'lease',
    ]);
    expect(planned.events.map((event) => event.body.kind)).toEqual([
      'lease_granted',
      'acquire_refused',
      'lease_granted',
    ]);
    const { revision } = ns.state;
    expect(planned.outcomes.map((outcome) => 'revision' in outcome && outcome.revision)).toEqual([
      revision + 1,
      revision + 2,
      revision + 3,
    ]);
  });

  it('leaves the base as it is (P7)', () => {
    const ns = new Namespace().runs('a');
    const before = digestOf(ns.state);
    plan(ns, command(acquire(ns, 'a', 'doc/x')), fails, command(decideSweep));
    expect(digestOf(ns.state)).toBe(before);
  });

  it('writes nothing of a command that failed, and the others as if it had not been', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('b', leased('doc/z'));
    ns.advance(61 * SECOND);
    // It fails after it has ended the expired lease of b.
    const one = command(acquire(ns, 'a', 'doc/x', { key: 'x' }));
    const other = command(acquire(ns, 'a', 'doc/y', { key: 'y' }));
    const planned = plan(ns, one, fails, other);
    expect(planned.outcomes[1]).toEqual({ error: new Error('poisoned') });
    expect(planned.events.map((event) => event.body.kind)).toEqual(['lease_granted', 'lease_granted']);
    expect(planned.events).toEqual(plan(ns, one, other).events);
    expect(planned.batch?.leases.map((lease) => lease.state)).toEqual(['active', 'active']);
  });

  it('has one final row for each record, the same that the overlay has', () => {
    const ns = new Namespace().runs('a', 'b');
    const asked = ns.command('a', [leased('doc/x')]);
    const planned = plan(
      ns,
      command((decision) => decideAcquire(decision, asked)),
      renewAll('a', asked.freshLeaseId),
      command(acquire(ns, 'b', 'doc/x', { wait: 60 * SECOND })),
    );
    const { batch } = planned;
    expect(batch?.leases.map((lease) => [lease.leaseId, lease.state])).toEqual([
      [asked.freshLeaseId, 'active'],
      [expect.anything(), 'waiting'],
    ]);
    expect(batch?.leases[0]).toBe(planned.overlay.leases.get(asked.freshLeaseId));
    // The place in the queue is the revision that queued it.
    expect(batch?.leases[1]?.waiting?.queuedAt).toBe(batch?.events.at(-1)?.revision);
    expect(batch?.keys.map((binding) => binding.use)).toEqual(['acquire', 'acquire']);
    expect(batch?.runs).toEqual([]);
  });

  it('relies on the latest of what it took for past, and on the earliest of what it took for future', () => {
    const ns = new Namespace().runs('a', 'b');
    const old = ns.granted(ns.acquire('a', [leased('doc/1')], { ttl: 10 * SECOND }));
    const older = ns.granted(ns.acquire('a', [leased('doc/2')], { ttl: 5 * SECOND }));
    const soon = ns.granted(ns.acquire('a', [leased('doc/3')], { ttl: 20 * SECOND }));
    const later = ns.granted(ns.acquire('a', [leased('doc/4')], { ttl: 30 * SECOND }));
    ns.advance(12 * SECOND);
    const { batch } = plan(
      ns,
      command(acquire(ns, 'b', 'doc/1')),
      command(acquire(ns, 'b', 'doc/2')),
      renewAll('a', later.leaseId),
      renewAll('a', soon.leaseId),
    );
    expect(batch?.reliedOnAsPast).toBe(Math.max(old.expiresAt as number, older.expiresAt as number));
    expect(batch?.reliedOnAsFuture).toBe(soon.expiresAt);
  });

  it('of commands that change nothing writes nothing', () => {
    const ns = new Namespace().runs('a');
    const planned = plan(ns, command(decideSweep), renewAll('a'));
    expect(planned.batch).toBeNull();
    expect(planned.outcomes.length).toBe(2);
  });

  it('waits for records that are no longer in memory, and writes nothing of that command before', () => {
    const ns = new Namespace().runs('a');
    const asks = command((decision) => {
      decideSweep(decision);
      return decision.lease('long ago');
    });
    expect(plan(ns, asks).missing).toMatchObject([{ command: asks, wanted: { leaseId: 'long ago' } }]);
    const told = { ...NOTHING_LOADED, leases: new Map([['long ago', null]]) };
    expect(plan(ns, { ...asks, loaded: told }).missing).toEqual([]);
  });

  it('its rows continue the head, in one batch, each with the hash of the one before', () => {
    const ns = new Namespace().runs('a');
    const { batch } = plan(ns, command(acquire(ns, 'a', 'doc/x')), command(acquire(ns, 'a', 'doc/y')));
    const events = batch?.events as EventRecord[];
    expect(events.map((event) => event.revision)).toEqual([ns.state.revision + 1, ns.state.revision + 2]);
    expect(events[0]?.prevHash).toBe('ab'.repeat(32));
    expect(events[1]?.prevHash).toBe(events[0]?.hash);
    expect(new Set(events.map((event) => event.batchId))).toEqual(new Set([batch?.batchId]));
    expect(batch?.expectedHead).toMatchObject({ revision: ns.state.revision });
  });

  it('of a change of the map has its version', () => {
    const ns = new Namespace();
    expect(ns.state.mapVersion).toBe(1);
    const { batch } = plan(
      ns,
      command((decision) =>
        decision.emit({
          kind: 'conflict_map_put',
          version: 2,
          text: '# text',
          document: { version: 1, unmatched: 'observe' },
          reason: 'why',
          onLiveConflict: 'refuse',
        }),
      ),
    );
    expect(batch?.mapVersion).toEqual({
      version: 2,
      text: '# text',
      document: '{"unmatched":"observe","version":1}',
      author: 'test',
      reason: 'why',
      createdAt: ns.now,
    });
  });
});

describe('idempotency keys that are no longer in memory (P6, F1)', () => {
  /** A replica that has just been started: live records are loaded, keys are looked up when they are asked for. */
  function restarted(ns: Namespace): Namespace {
    for (const binding of [...ns.state.keys.values()]) ns.state.keys.delete(bindingId(binding.scope, binding.key));
    return ns;
  }
  /** What the append answers when a key that was taken to be new is bound. */
  const known = (ns: Namespace, runId: string, leaseId: string): LoadedRecords => ({
    ...NOTHING_LOADED,
    keys: new Map([
      [
        `run:${runId}\nk`,
        {
          scope: `run:${runId}`,
          key: 'k',
          use: 'acquire' as const,
          fingerprint: ns.command(runId, [leased('doc/x')]).fingerprint,
          runId,
          leaseId,
          boundAt: START,
        },
      ],
    ]),
  });

  it('a grant proves that its key is new', () => {
    const ns = restarted(new Namespace().runs('a'));
    const planned = plan(ns, command(acquire(ns, 'a', 'doc/x', { key: 'k' })));
    expect(planned.batch?.newKeys).toEqual([{ scope: 'run:a', key: 'k' }]);
  });

  it('a refusal proves it as well: the retry of a grant is not told that its own lease is in the way', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.granted(ns.acquire('a', [leased('doc/x')], { key: 'k' }));
    restarted(ns);
    const retry = acquire(ns, 'a', 'doc/x', { key: 'k' });
    const refused = plan(ns, command(retry));
    expect(refused.outcomes[0]).toMatchObject({ value: { kind: 'refusal', refusal: { kind: 'already_held' } } });
    // So it is not answered: the append finds the key bound, and everything is decided again.
    expect(refused.batch?.newKeys).toEqual([{ scope: 'run:a', key: 'k' }]);
    const again = plan(ns, command(retry, known(ns, 'a', lease.leaseId)));
    expect(again.outcomes[0]).toMatchObject({ value: { kind: 'lease', leaseId: lease.leaseId } });
  });

  it('proves each key once, also when several commands ask for it', () => {
    const ns = restarted(new Namespace().runs('a', 'b'));
    ns.hold('b', leased('doc/x'));
    const planned = plan(
      ns,
      command(acquire(ns, 'a', 'doc/x', { key: 'k' })),
      command(acquire(ns, 'a', 'doc/x', { key: 'k' })),
      command(acquire(ns, 'a', 'doc/y', { key: 'l' })),
    );
    expect(planned.batch?.newKeys).toEqual([
      { scope: 'run:a', key: 'k' },
      { scope: 'run:a', key: 'l' },
    ]);
  });

  it('a command that fails without an event has its key looked up: nothing would prove it', () => {
    const ns = new Namespace().runs('a');
    const finish = {
      principal: 'principal-of-a',
      asOperator: false,
      runId: 'a',
      state: 'finished' as const,
      reason: '',
      idempotencyKey: 'k',
      fingerprint: 'f',
      requestIds: [],
    };
    ns.decide((decision) => decideUpdateRunState(decision, finish));
    const binding = ns.state.keys.get('run:a\nk');
    restarted(ns);
    const retry = (decision: Decision) => decideUpdateRunState(decision, finish);
    expect(plan(ns, command(retry)).missing).toMatchObject([{ wanted: { key: { scope: 'run:a', key: 'k' } } }]);
    const found = { ...NOTHING_LOADED, keys: new Map([['run:a\nk', binding ?? null]]) };
    expect(plan(ns, command(retry, found))).toMatchObject({
      missing: [],
      outcomes: [{ value: { effectiveAt: START } }],
    });
    const nothing = { ...NOTHING_LOADED, keys: new Map([['run:a\nk', null]]) };
    expect(plan(ns, command(retry, nothing))).toMatchObject({
      missing: [],
      outcomes: [{ error: expect.objectContaining({ reason: 'RUN_ENDED' }) }],
    });
  });

  it('so that CreateRun finds its run, although the authority it asked for has ended since', () => {
    const ns = new Namespace();
    const asked = {
      principal: 'p',
      freshRunId: 'r',
      purpose: '',
      goalRevision: '',
      initiator: '',
      initiatorVerified: false,
      parentRunId: '',
      ceiling: null,
      allowed: EVERYTHING,
      authorityEndsAt: START + SECOND,
      escalation: [],
      idempotencyKey: 'k',
      fingerprint: 'f',
      requestIds: [],
    };
    ns.decide((decision) => decideCreateRun(decision, asked));
    restarted(ns).advance(2 * SECOND);
    expect(
      plan(
        ns,
        command((decision) => decideCreateRun(decision, asked)),
      ).missing.length,
    ).toBe(1);
  });
});

// ---------------------------------------------------------------------------------------------------- replicas

describe('a replica that follows and one that decides (P7)', () => {
  function rows(ns: Namespace): EventRecord[] {
    return toRecords('test', 'batch', GENESIS, ns.events);
  }

  function busy(): Namespace {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('deployment/eu'));
    ns.queue('b', optimistic('dns/eu/www'));
    ns.renew(lease);
    ns.release(lease);
    return ns;
  }

  it('come to the same state', () => {
    const ns = busy();
    const follower = new ReplicaState('test', null);
    follower.follow(rows(ns));
    expect(digestOf(follower.state)).toBe(digestOf(ns.state));
    expect(follower.head.revision).toBe(ns.state.revision);
  });

  it('pass over what they have seen, in whatever pieces it comes', () => {
    const ns = busy();
    const all = rows(ns);
    const follower = new ReplicaState('test', null);
    follower.follow(all.slice(0, 3));
    follower.follow(all.slice(1, 5));
    follower.follow(all);
    follower.follow(all);
    expect(digestOf(follower.state)).toBe(digestOf(ns.state));
  });

  it('forget what lost history ended, as they forget what ended one by one', () => {
    const ns = new Namespace().runs('a');
    const ended = [ns.hold('a', leased('doc/x')), ns.hold('a', leased('doc/y'))];
    ns.decide((decision) =>
      decision.emit({
        kind: 'database_identified',
        identity: IDENTITY,
        lostHistory: true,
        why: '',
        continuesFrom: { revision: 0, hash: '' },
        localKindsFrom: null,
      }),
    );
    const remembered = 10;
    ns.decide((decision) => {
      for (let index = 0; index < 2 * remembered; index += 1) {
        const binding = { scope: 'run:a', key: `${index}`, use: 'tombstone' as const, fingerprint: '', runId: 'a' };
        decision.emit({ kind: 'key_bound', binding: { ...binding, leaseId: '', boundAt: ns.now } });
      }
    });
    const follower = new ReplicaState('test', null, remembered);
    follower.follow(rows(ns));
    expect(ended.map(({ leaseId }) => follower.state.leases.get(leaseId))).toEqual([undefined, undefined]);
  });

  it('refuse a gap, and a log that is not the continuation of theirs', () => {
    const all = rows(busy());
    const gap = new ReplicaState('test', null);
    expect(() => gap.follow(all.slice(1))).toThrow(LogForked);
    const forked = new ReplicaState('test', null);
    forked.follow(all.slice(0, 2));
    const other = toRecords('test', 'other', { ...forked.head, hash: 'cd'.repeat(32) }, busy().events.slice(2, 3));
    expect(() => forked.follow(other)).toThrow(LogForked);
    expect(forked.head.revision).toBe(2);
  });

  it('load the live state from the projections, with places in the queue as they were', () => {
    const ns = busy();
    ns.hold('a', leased('doc/x'));
    ns.queue('b', leased('doc/x'));
    ns.decide((decision) =>
      decision.emit({
        kind: 'database_identified',
        identity: IDENTITY,
        lostHistory: false,
        why: '',
        continuesFrom: { revision: 0, hash: '' },
        localKindsFrom: null,
      }),
    );
    const last = rows(ns).at(-1) as EventRecord;
    const snapshot: Snapshot = {
      gate: {
        head: { revision: last.revision, hash: last.hash, time: last.time },
        now: ns.now,
        inRecovery: false,
        durable: true,
        identity: IDENTITY,
      },
      leases: [...ns.state.leases.values()].filter((lease) => lease.state !== 'ended').reverse(),
      runs: [...ns.state.runs.values()],
      keys: [],
      mapVersion: {
        version: 1,
        text: '',
        document: JSON.stringify(ns.state.map.document),
        author: '',
        reason: '',
        createdAt: START,
      },
      unmatched: [],
      revocations: [],
      admissions: [],
      rehearsals: [],
      freezes: [],
      recorded: { identity: IDENTITY, localKindsFrom: null },
    };
    const loaded = new ReplicaState('test', snapshot);
    expect(digestOf(loaded.state)).toBe(digestOf(ns.state));
  });

  it('forget old keys, whoever bound them: memory does not grow with the age of the log', () => {
    const ns = new Namespace();
    for (let index = 0; index < 45_000; index += 1) ns.events.push(keyEvent(index));
    const follower = new ReplicaState('test', null);
    follower.follow(rows(ns));
    expect(follower.state.keys.size).toBeLessThan(45_000);
    expect(follower.forgottenThrough).toBeGreaterThan(0);
  });

  it('keep the key of a request that waits, however much ends meanwhile, and forget it with its lease (P6)', () => {
    const ns = new Namespace().runs('a', 'b');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    const key = bindingId(runScope('b'), waiting.idempotencyKey);
    const much = (): void => {
      for (let index = 0; index < 10; index += 1) ns.release(ns.hold('a', leased(`doc/other/${index}`)));
    };
    const followed = (): ReplicaState => {
      const follower = new ReplicaState('test', null, 2);
      follower.follow(rows(ns));
      return follower;
    };
    much();
    expect(followed().state.keys.get(key)).toMatchObject({ leaseId: waiting.leaseId });
    expect(followed().state.keys.size).toBeLessThan(10);
    ns.release(holder);
    ns.release(ns.lease(waiting));
    much();
    expect(followed().state.keys.get(key)).toBeUndefined();
    expect(followed().state.keys.size).toBeLessThan(10);
  });
});

/** A run that is made and a key that is bound with it. */
function keyEvent(index: number): DomainEvent {
  const run = sampleRun({ runId: `r${index}`, idempotencyKey: `k${index}` });
  return {
    time: START,
    actor: '',
    runId: '',
    leaseId: '',
    resources: [],
    requestIds: [],
    body: { kind: 'run_created', run, fingerprint: 'f' },
  };
}

describe('the estimate of the database clock (P11)', () => {
  const span = fc.oneof(fc.nat(1_000), fc.nat(SECOND));

  it('is the last reading and the time since it was received: never later than the clock itself', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(span, span, span), { minLength: 1, maxLength: 20 }), (steps) => {
        let real = START;
        let monotonic = 0.25;
        const clock = new DatabaseClock(() => monotonic);
        const pass = (time: number): void => {
          real += time;
          monotonic += time;
        };
        for (const [there, back, between] of steps) {
          const sentAt = monotonic;
          pass(there);
          const reading = real;
          pass(back);
          clock.observe(reading, sentAt);
          expect(clock.lowerBound()).toBeLessThanOrEqual(real);
          pass(between);
          expect(clock.lowerBound()).toBeLessThanOrEqual(real);
          expect(clock.lowerBound()).toBeGreaterThanOrEqual(real - back - 1);
          expect(Number.isInteger(clock.lowerBound())).toBe(true);
        }
      }),
    );
  });

  it('is not taken back by an answer that was held up after its reading, unless the clock itself was set back', () => {
    let monotonic = 0;
    const clock = new DatabaseClock(() => monotonic);
    clock.observe(START, 0);
    monotonic = 5 * SECOND;
    clock.observe(START + 1_000, 1_000);
    expect(clock.lowerBound()).toBe(START + 5 * SECOND);
    // Read at any time in the last second.
    monotonic = 7 * SECOND;
    clock.observe(START - 60 * SECOND, 6 * SECOND);
    expect(clock.lowerBound()).toBe(START - 59 * SECOND);
    clock.observe(START - 60 * SECOND, monotonic);
    expect(clock.lowerBound()).toBe(START - 60 * SECOND);
  });

  it('takes a reading that went back, since the append proves what was relied on', () => {
    const clock = new DatabaseClock(() => 0);
    clock.observe(START);
    clock.observe(START - SECOND);
    expect(clock.lowerBound()).toBe(START - SECOND);
  });
});
