import { describe, expect, it } from 'vitest';
import type { Decision } from '../../src/domain/decide/decision.js';
import type { EventBody } from '../../src/domain/event.js';
import { evolve } from '../../src/domain/evolve.js';
import { Fault } from '../../src/domain/fault.js';
import { emptyState, type State } from '../../src/domain/state.js';
import { SECOND } from '../../src/domain/time.js';
import type { NamespaceEngine } from '../../src/engine/namespace-engine.js';
import { DIGEST_VERSION, type Divergence, digestOf, StateDigests } from '../../src/engine/state-digest.js';
import { StateCheckpoints } from '../../src/services/state-checkpoints.js';
import { leased, Namespace, optimistic, START, stable } from '../support/domain.js';

// Replicas that follow one log have one digest; whatever decides is in it.

function lived(): Namespace {
  const ns = new Namespace().runs('a', 'b', 'c');
  const lease = ns.hold('a', leased('doc/x'), optimistic('doc/y'));
  ns.hold('c', leased('loc/z'));
  ns.queue('b', leased('doc/x'));
  ns.advance(SECOND).renew(lease);
  ns.release(ns.hold('c', stable('doc/s')));
  ns.freeze('doc/frozen');
  return ns;
}

/** As a replica has it that read the log from its beginning. */
function followed({ events }: Namespace): State {
  const state = emptyState('test');
  events.forEach((event, index) => evolve(state, event, index + 1));
  return state;
}

const diverged: Divergence[] = [];

function digests(): StateDigests {
  const all = new StateDigests();
  diverged.length = 0;
  all.onDiverged = (divergence) => diverged.push(divergence);
  return all;
}

const event = (body: EventBody) => ({
  ...{ time: START, actor: 'test', runId: '', leaseId: '', resources: [], requestIds: [], body },
});
const begun = event({ kind: 'checkpoint_begun' });
const written = (revision: number, digest: string, digestVersion = DIGEST_VERSION) =>
  event({ kind: 'checkpoint_written', revision, digestVersion, digest });

describe('the digest of the live state', () => {
  it('is that of everybody who has the same events, also without those that are over', async () => {
    const ns = lived();
    const state = followed(ns);
    for (const lease of [...state.leases.values()]) if (lease.state === 'ended') state.leases.delete(lease.leaseId);
    expect(await digestOf(state)).toBe(await digestOf(ns.state));
  });

  it('is the same in whatever order records came into memory, and without texts that were erased', async () => {
    const state = followed(lived());
    const before = await digestOf(state);
    for (const lease of [...state.leases.values()].reverse()) {
      state.leases.delete(lease.leaseId);
      state.leases.set(lease.leaseId, { ...lease, purpose: '[erased]' });
    }
    expect(await digestOf(state)).toBe(before);
  });

  it('has all that decides in it', async () => {
    const ns = lived();
    const before = await digestOf(ns.state);
    const [lease] = [...ns.state.leases.values()].filter(({ state }) => state === 'active');
    const [run] = ns.state.runs.values();
    const [freeze] = ns.state.freezes.values();
    if (lease === undefined || run === undefined || freeze === undefined) throw new Error('nothing lives');
    const [entry, ...others] = lease.entries;
    if (entry === undefined) throw new Error('nothing is held');
    const changes: ((state: State) => void)[] = [
      (state) => state.leases.delete(lease.leaseId),
      (state) => state.leases.set(lease.leaseId, { ...lease, expiresAt: (lease.expiresAt ?? 0) + 1 }),
      (state) => state.leases.set(lease.leaseId, { ...lease, entries: [{ ...entry, token: 1 }, ...others] }),
      (state) => state.leases.set(lease.leaseId, { ...lease, entries: [{ ...entry, suspended: true }, ...others] }),
      (state) => state.runs.set(run.runId, { ...run, state: 'blocked' }),
      (state) => state.freezes.set(freeze.pattern, { ...freeze, deniesChecks: !freeze.deniesChecks }),
      (state) => {
        state.mapVersion += 1;
      },
    ];
    for (const change of changes) {
      const state = followed(ns);
      change(state);
      expect(await digestOf(state)).not.toBe(before);
    }
  });

  // Whoever has to change this number changes what is in the digest: DIGEST_VERSION goes up with it.
  it('of a state that is known is known', async () => {
    expect([DIGEST_VERSION, await digestOf(lived().state)]).toEqual([
      1,
      'eea2ccb536907ee848e7aa7d6745ee845394aa2d407331a2e14ecc94d590d6dc',
    ]);
  });
});

describe('the digests of a replica', () => {
  it('are of the state as it was when they were begun', async () => {
    const ns = lived();
    const own = digests();
    own.saw(ns.state, begun, 20);
    const then = await digestOf(followed(ns));
    ns.stop('a');
    expect(await own.at(20)).toBe(then);
    own.saw(ns.state, written(20, then), 21);
    await own.at(20);
    expect(diverged).toEqual([]);
    expect(own.lastRevision).toBe(21);
  });

  it('tell of a digest in the log that is another one, however late it is told', async () => {
    const ns = lived();
    const own = digests();
    own.saw(ns.state, begun, 20);
    const digest = (await own.at(20)) ?? '';
    const other = 'f'.repeat(64);
    own.saw(ns.state, written(20, other), 30);
    await own.at(20);
    expect(diverged).toEqual([{ revision: 20, own: digest, logged: other }]);
  });

  it('compare nothing that they did not see, or that is digested in another way', async () => {
    const ns = lived();
    const own = digests();
    own.saw(ns.state, written(20, 'f'.repeat(64)), 21);
    own.saw(ns.state, begun, 22);
    own.saw(ns.state, written(22, 'f'.repeat(64), DIGEST_VERSION + 1), 23);
    await own.at(22);
    expect(await own.at(20)).toBe(null);
    expect(diverged).toEqual([]);
  });

  it('are kept for a few revisions only', async () => {
    const ns = lived();
    const own = digests();
    for (let revision = 1; revision <= 10; revision += 1) own.saw(ns.state, begun, revision);
    expect(await own.at(6)).toBe(null);
    expect(await own.at(7)).not.toBe(null);
  });
});

describe('checkpoints of the state', () => {
  it('are written by one replica, of a log that has moved, and compared by the others', async () => {
    const ns = lived();
    const own = digests();
    let notReady: Fault | null = null;
    const engine = {
      namespace: 'test',
      digests: own,
      get notReady() {
        return notReady;
      },
      get head() {
        return { revision: ns.events.length, hash: '', time: ns.now };
      },
      estimatedNow: () => ns.now,
      async submit(_: string, decide: (decision: Decision) => unknown) {
        const value = ns.decide(decide);
        for (const event of ns.last) own.saw(ns.state, event, ns.events.length);
        return { value, revision: ns.events.length, now: ns.now };
      },
    } as unknown as NamespaceEngine;
    const checkpoints = new StateCheckpoints({ everyMs: 60_000, engines: () => [engine], onProblem: () => undefined });
    const kinds = async (): Promise<string[]> => {
      const before = ns.events.length;
      await checkpoints.writeAll();
      return ns.events.slice(before).map(({ body }) => body.kind);
    };
    expect(await kinds()).toEqual(['checkpoint_begun', 'checkpoint_written']);
    expect(ns.events.at(-1)?.body).toMatchObject({ digest: await digestOf(ns.state), digestVersion: DIGEST_VERSION });
    // Nothing has happened since.
    ns.advance(600 * SECOND);
    expect(await kinds()).toEqual([]);
    ns.run('d');
    notReady = new Fault('unavailable', 'NOT_READY', '');
    expect(await kinds()).toEqual([]);
    notReady = null;
    expect(await kinds()).toHaveLength(2);
    // Another replica, or this one, did it a moment ago.
    ns.run('e');
    expect(await kinds()).toEqual([]);
  });
});
