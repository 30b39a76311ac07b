import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SECOND } from '../../src/domain/time.js';
import { CHECKERS, check } from '../harness/checkers/index.js';
import type { Call, CallKind, CallShapes, History, SeenLease } from '../harness/history.js';
import { shrink } from '../harness/shrink.js';
import { missedBy } from '../harness/watch.js';
import { leased, optimistic, START } from '../support/domain.js';
import { HonestHistory } from '../support/honest-history.js';

// The checkers of the fault harness: each finds what was planted, and none alarms on what an honest coordinator does.

/** A run with a lease on what it gives to its child run. */
const family = (): { world: HonestHistory; whole: SeenLease } => {
  const world = new HonestHistory().run('a').run('child', undefined, 'a').run('b');
  return { world, whole: world.hold('a', leased('doc/x'), leased('doc/y')) };
};

const two = (): HonestHistory => new HonestHistory().run('a').run('b');

/** The history, with one call said to have been answered otherwise. */
function lying<K extends CallKind>(
  { history }: HonestHistory,
  call: { readonly id: number },
  told: Partial<CallShapes[K]['told']>,
  more: Partial<Call> = {},
): History {
  const calls = history.calls.map((one) =>
    one.id === call.id ? ({ ...one, told: { ...one.told, ...told }, ...more } as Call) : one,
  );
  return { ...history, calls };
}

const allowed = { allowed: true, results: [{ allowed: true, reason: 'ok', observedOnly: false }] };

/** The lease of a call that was granted one. */
function leaseOf(call: { readonly told: CallShapes['acquire']['told'] | null }): SeenLease {
  if (call.told?.outcome !== 'lease') throw new Error('no lease');
  return call.told.lease;
}

/** Changes what every answer showed of a lease. */
function shown(history: History, change: (lease: SeenLease) => Partial<SeenLease>): History {
  const calls = history.calls.map((call) =>
    (call.kind === 'acquire' || call.kind === 'renew') && call.told?.outcome === 'lease'
      ? ({ ...call, told: { ...call.told, lease: { ...call.told.lease, ...change(call.told.lease) } } } as Call)
      : call,
  );
  return { ...history, calls };
}

const without = (history: History, ...kinds: readonly string[]): History => ({
  ...history,
  log: history.log.filter(({ kind }) => !kinds.includes(kind)),
});

/** By checker: what is planted, what is said of it. */
const PLANTS: { readonly [P in keyof typeof CHECKERS]: Record<string, readonly [RegExp, () => History]> } = {
  P1: {
    'a check that lets another run in while the holder still is': [
      /alive together: exclusive and exclusive on doc\/x/,
      () => {
        const world = two();
        const first = world.hold('a', leased('doc/x'));
        world.check(first);
        world.release(first.leaseId);
        const second = world.hold('b', leased('doc/x'));
        const late = world.check(first);
        world.check(second);
        return lying<'check'>(world, late, allowed);
      },
    ],
    'two renewals of incompatible leases, each after the other': [
      /alive together/,
      () => {
        const world = two();
        const first = world.hold('a', leased('doc/x'));
        world.renew(first.leaseId);
        const second = world.hold('b', leased('doc/y'));
        world.renew(second.leaseId);
        world.renew(first.leaseId);
        world.renew(second.leaseId);
        return shown(world.history, ({ entries }) => ({
          entries: entries.map((entry) => ({ ...entry, resource: 'doc/x' })),
        }));
      },
    ],
    'a write of the parent where its child run holds a part': [
      /a part of it, was held by a child run/,
      () => {
        const { world, whole } = family();
        const part = world.delegate(whole, 'child', leased('doc/x'));
        world.check(part);
        const early = world.check(whole);
        world.check(part);
        return lying<'check'>(world, early, allowed);
      },
    ],
    'what a session was pushed while another run holds it': [
      /alive together: exclusive and exclusive on doc\/x/,
      () => {
        const world = two();
        const first = world.hold('a', leased('doc/x'));
        world.release(first.leaseId);
        world.acquire('b', [leased('doc/x')], { back: null });
        const second = [...world.ns.state.leases.values()].find(({ runId }) => runId === 'b');
        world.push(second?.leaseId ?? '');
        const late = world.check(first);
        world.renew(second?.leaseId ?? '');
        return { ...lying<'check'>(world, late, allowed), log: [] };
      },
    ],
  },
  P2: {
    'a token that is not above what was told before': [
      /on doc\/x/,
      () => {
        const world = two();
        const first = world.hold('a', leased('doc/x'));
        world.release(first.leaseId);
        const second = world.hold('b', leased('doc/x'));
        return shown(world.history, ({ leaseId, entries }) =>
          leaseId === second.leaseId ? { entries: entries.map((entry) => ({ ...entry, token: 7 })) } : {},
        );
      },
    ],
    'a token that is given twice, also after its grant is lost': [
      /the same token/,
      () => {
        const world = two();
        const first = world.hold('a', leased('doc/x'));
        world.release(first.leaseId);
        world.hold('b', leased('doc/x'));
        const same = shown(world.history, ({ entries }) => ({
          entries: entries.map((entry) => ({ ...entry, token: first.entries[0]?.token ?? 0 })),
        }));
        return { ...same, log: [] };
      },
    ],
  },
  P3: {
    'a check that is allowed after a release was answered': [
      /allowed after its end by call \d+ \(release\)/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        world.release(lease.leaseId);
        return lying<'check'>(world, world.check(lease), allowed);
      },
    ],
    'a check that is allowed after its run was stopped': [
      /allowed after its end by call \d+ \(stop_run\)/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        world.stop('a');
        return lying<'check'>(world, world.check(lease), allowed);
      },
    ],
    'a check that is allowed after the expiry': [
      /sent after its last expiry/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        world.ns.advance(61 * SECOND);
        return lying<'check'>(world, world.check(lease), allowed);
      },
    ],
    'a view that still lets in what ended before it was asked': [
      /by a view after its end was in force/,
      () => {
        const world = two();
        const { leaseId, runId } = world.hold('a', leased('doc/x'));
        world.release(leaseId);
        world.ns.advance(SECOND);
        world.claim('view', { leaseId, runId, writes: [] }, { allowed: true, reason: 'ok' });
        return world.history;
      },
    ],
    'a view that lets in what has expired': [
      /by a view after its last expiry/,
      () => {
        const world = two();
        const { leaseId, runId } = world.hold('a', leased('doc/x'));
        world.ns.advance(61 * SECOND);
        world.claim('view', { leaseId, runId, writes: [] }, { allowed: true, reason: 'ok' });
        return world.history;
      },
    ],
    'a check that is allowed after its session was told that it is lost': [
      /allowed after its end by call \d+ \(pushed\)/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        world.release(lease.leaseId, { back: null });
        world.push(lease.leaseId);
        return lying<'check'>(world, world.check(lease), allowed);
      },
    ],
    'a check of a part that is allowed after the whole was released': [
      /allowed after its end by call \d+ \(release\)/,
      () => {
        const { world, whole } = family();
        const part = world.delegate(whole, 'child', leased('doc/x'));
        world.release(whole.leaseId);
        return lying<'check'>(world, world.check(part), allowed);
      },
    ],
    'a check on older knowledge than somebody had been told': [
      /though call \d+ had told of/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        world.hold('b', leased('doc/y'));
        return lying<'check'>(world, world.check(lease), { revision: 2 });
      },
    ],
  },
  P4: {
    'a resource that the lease does not cover': [
      /replace of doc\/y with token/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        return lying<'check'>(world, world.check(lease, { resource: 'doc/y' }), allowed);
      },
    ],
    'an action that the lease does not have': [
      /patch of doc\/x/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        return lying<'check'>(world, world.check(lease, { action: 'patch' }), allowed);
      },
    ],
    'what is suspended at that revision': [
      /replace of doc\/x with token \d+ was allowed .* at revision/,
      () => {
        const { world, whole } = family();
        world.delegate(whole, 'child', leased('doc/x'));
        return lying<'check'>(world, world.check(whole), allowed);
      },
    ],
    'another run than the holder': [
      /for run b/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        return lying<'check'>(world, world.check({ ...lease, runId: 'b' }), allowed);
      },
    ],
  },
  P5: {
    'a lease without an end': [
      /active and has no end/,
      () => {
        const world = two();
        world.hold('a', leased('doc/x'));
        return shown(world.history, () => ({ expiresAt: 0 }));
      },
    ],
    "an expiry after the run's authority": [
      /after the authority of its run/,
      () => {
        const world = new HonestHistory().run('a', START + 10 * SECOND);
        const lease = world.hold('a', leased('doc/x'));
        return shown(world.history, () => ({ expiresAt: (lease.expiresAt ?? 0) + SECOND, maxExpiresAt: 2e15 }));
      },
    ],
    'a renewal after the end was answered': [
      /renewed after its end had been answered/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        world.revoke(lease.leaseId);
        return lying<'renew'>(world, world.renew(lease.leaseId), { outcome: 'lease', lease });
      },
    ],
    'a renewal after the expiry': [
      /sent after its expiry/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        world.ns.advance(61 * SECOND);
        const told = {
          outcome: 'lease' as const,
          lease: { ...lease, expiresAt: (lease.expiresAt ?? 0) + 60 * SECOND },
        };
        return lying<'renew'>(world, world.renew(lease.leaseId), told);
      },
    ],
  },
  P6: {
    'two leases for one key': [
      /one key was answered with two leases/,
      () => {
        const world = two();
        const first = world.acquire('a', [leased('doc/x')], { key: 'k' });
        const again = world.acquire('a', [leased('doc/x')], { key: 'k' });
        return lying<'acquire'>(world, again, { outcome: 'lease', lease: { ...leaseOf(first), leaseId: 'twin' } });
      },
    ],
    'a lease without all that was asked for': [
      /granted without write of doc\/y/,
      () => {
        const world = two();
        world.hold('a', leased('doc/x'), leased('doc/y'));
        return shown(world.history, ({ entries }) => ({ entries: entries.slice(0, 1) }));
      },
    ],
    'a grant that was asked for after the stop': [
      /asked for after its stop/,
      () => {
        const world = two();
        const earlier = world.hold('a', leased('doc/x'));
        world.stop('a');
        const late = world.acquire('a', [leased('doc/y')]);
        return lying<'acquire'>(world, late, { outcome: 'lease', lease: { ...earlier, leaseId: 'late' } });
      },
    ],
    'one key for two requests': [
      /two different requests/,
      () => {
        const world = two();
        const first = world.acquire('a', [leased('doc/x')], { key: 'k' });
        const other = world.claim(
          'acquire',
          { runId: 'a', key: 'k', entries: [leased('doc/y')], waits: false, delegatedFrom: '' },
          { outcome: 'lease', lease: leaseOf(first), revision: 1, credentials: [] },
        );
        return lying(world, other, {});
      },
    ],
  },
  P7: {
    'an event that is left out of the log': [
      /follows/,
      () => {
        const world = two();
        world.hold('a', leased('doc/x'));
        return without(world.history, 'run_created');
      },
    ],
    'an event that was changed': [
      /the hash of revision 2 is not its own/,
      () => {
        const { history } = two();
        return { ...history, log: history.log.map((row) => (row.revision === 2 ? { ...row, actor: 'eve' } : row)) };
      },
    ],
    'an answer that came before its event': [
      /was granted at revision 1, says the answer/,
      () => {
        const world = two();
        return lying<'acquire'>(world, world.acquire('a', [leased('doc/x')]), { revision: 1 });
      },
    ],
    'a checkpoint of another log': [
      /a checkpoint is not of this log/,
      () => {
        const world = two();
        world.claim('checkpoint', {}, { revision: 2, hash: 'f'.repeat(64) });
        return world.history;
      },
    ],
  },
  P8: {
    'a grant that is not in the log': [
      /lease other was granted, said the answer/,
      () => {
        const world = two();
        const call = world.acquire('a', [leased('doc/x')]);
        return lying<'acquire'>(world, call, { outcome: 'lease', lease: { ...leaseOf(call), leaseId: 'other' } });
      },
    ],
    'a lease of the kit that is not in the log': [
      /lease other was granted to the kit, said the answer/,
      () => {
        const world = two();
        world.claim('held', { runId: 'a', key: 'k', entries: [] }, { leaseId: 'other', entries: [] });
        return world.history;
      },
    ],
    'an end that was pushed and is not in the log': [
      /was pushed as lost, said the answer/,
      () => {
        const world = two();
        const { leaseId } = world.hold('a', leased('doc/x'));
        world.claim('pushed', { leaseId }, { event: 'lost', endReason: 'revoked' });
        return world.history;
      },
    ],
    'a release that is not in the log': [
      /was released, said the answer/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        world.claim(
          'release',
          { runId: 'a', leaseId: lease.leaseId, key: '' },
          { outcome: 'released', endReason: 'released', effectiveAt: 0, revision: 9 },
        );
        return world.history;
      },
    ],
    'a yes while nothing can be decided': [
      /answered with yes while the database was down/,
      () => {
        const world = two();
        const from = world.moment - 200;
        const lease = world.hold('a', leased('doc/x'));
        world.check(lease);
        return {
          ...world.history,
          outages: [{ from, until: world.moment + 200, what: 'the database was down', of: '' }],
        };
      },
    ],
  },
  P9: {
    'somebody who asks later and is granted first': [
      /had been told that it waits before the other asked/,
      () => {
        const world = two().run('c');
        const holder = world.hold('a', leased('doc/x'));
        world.acquire('b', [leased('doc/x')], { wait: 60 * SECOND, key: 'k' });
        world.acquire('c', [leased('doc/x')], { wait: 60 * SECOND, key: 'l' });
        world.release(holder.leaseId);
        const first = world.acquire('b', [leased('doc/x')], { wait: 60 * SECOND, key: 'k' });
        world.release(leaseOf(first).leaseId);
        world.acquire('c', [leased('doc/x')], { wait: 60 * SECOND, key: 'l' });
        // Each is shown the other's token.
        const tokens = [leaseOf(first).entries[0]?.token ?? 0, 0];
        const history = shown(world.history, ({ runId, entries }) => {
          if (runId === 'c') tokens[1] = entries[0]?.token ?? 0;
          return {};
        });
        const swapped = shown(history, ({ runId, entries }) => ({
          entries: entries.map((e) => ({
            ...e,
            token: (runId === 'b' ? tokens[1] : runId === 'c' ? tokens[0] : e.token) as number,
          })),
        }));
        return { ...swapped, log: [] };
      },
    ],
    'a deadlock without its cycle': [
      /without its cycle/,
      () => {
        const world = two();
        world.hold('a', leased('doc/x'));
        const told = { outcome: 'refusal' as const, refusal: 'deadlock', cycle: [] };
        return lying<'acquire'>(world, world.acquire('b', [leased('doc/x')]), told);
      },
    ],
  },
  P10: {
    'a credential that outlives its lease': [
      /after its lease/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        const { jti, expires } = world.issue(lease);
        return issued(world.history, jti, { expires: expires + 3_600 });
      },
    ],
    'a credential for what its lease does not have': [
      /grants replace of doc\/y/,
      () => {
        const world = two();
        const lease = world.hold('a', leased('doc/x'));
        const { jti, grants } = world.issue(lease);
        return issued(world.history, jti, { grants: grants.map((grant) => ({ ...grant, resources: ['doc/y'] })) });
      },
    ],
    'a credential of another run': [
      /names run b/,
      () => {
        const world = two();
        const { jti } = world.issue(world.hold('a', leased('doc/x')));
        return issued(world.history, jti, { runId: 'b' });
      },
    ],
  },
  C6: {
    'a lease that the runner kit takes to be held after its last expiry': [
      /to be held after its last expiry/,
      () => {
        const world = two();
        const { leaseId, runId } = world.hold('a', leased('doc/x'));
        world.ns.advance(61 * SECOND);
        world.claim('holds', { leaseId, runId }, { holds: true });
        return world.history;
      },
    ],
  },
  C7: {
    'a write with an older token after a newer one': [
      /took a write to doc\/x with token 1 after 2/,
      () => {
        const world = two();
        for (const [index, token] of [2, 1].entries())
          world.claim(
            'write',
            { resource: 'doc/x', token, leaseId: 'l', exclusive: true },
            { accepted: true, position: index },
          );
        return world.history;
      },
    ],
    'a write with an older token after a newer holder had opened': [
      /took a write to doc\/x with token 1 after 2/,
      () => {
        const world = two();
        world.claim('open', { resource: 'doc/x', token: 2 }, { accepted: true });
        world.ns.advance(SECOND);
        world.claim(
          'write',
          { resource: 'doc/x', token: 1, leaseId: 'l', exclusive: true },
          { accepted: true, position: 1 },
        );
        return world.history;
      },
    ],
  },
};

function issued(history: History, jti: string, change: object): History {
  const calls = history.calls.map((call) =>
    call.kind === 'issue' && call.told?.credential?.jti === jti
      ? { ...call, told: { ...call.told, credential: { ...call.told.credential, ...change } } }
      : call,
  );
  return { ...history, calls };
}

describe.each(Object.keys(CHECKERS) as (keyof typeof CHECKERS)[])('the checker of %s', (promise) => {
  it.each(Object.entries(PLANTS[promise]))('finds %s', (_, [says, plant]) => {
    const history = plant();
    const found = CHECKERS[promise](history);
    expect(found.map(({ what }) => what)).toEqual(expect.arrayContaining([expect.stringMatching(says)]));
    expect(found.every((violation) => violation.promise === promise)).toBe(true);
  });

  it('finds nothing in an honest history', () => {
    const world = two().run('c');
    const lease = world.hold('a', leased('doc/x'), optimistic('doc/y'));
    world.check(lease);
    world.renew(lease.leaseId);
    const waiting = { wait: 60 * SECOND, key: 'k' };
    world.acquire('b', [leased('doc/x')], waiting);
    world.acquire('c', [leased('doc/x')], { wait: 60 * SECOND });
    world.check(lease, { jti: world.issue(lease).jti });
    world.checkpoint();
    world.release(lease.leaseId);
    world.check(lease);
    world.acquire('b', [leased('doc/x')], waiting);
    world.stop('b');
    world.stop('c');
    world.run('d').run('child', undefined, 'd');
    const whole = world.hold('d', leased('doc/x'), leased('doc/y'));
    const part = world.delegate(whole, 'child', leased('doc/x'));
    world.push(part.leaseId);
    world.renew(part.leaseId);
    world.check(whole);
    world.check(whole, { resource: 'doc/y', token: whole.entries[1]?.token ?? 0 });
    world.check(part);
    world.release(part.leaseId);
    world.push(part.leaseId);
    world.renew(whole.leaseId);
    const holds = { leaseId: whole.leaseId, runId: 'd' };
    world.claim('held', { runId: 'd', key: 'k', entries: [] }, whole);
    world.claim('holds', holds, { holds: true });
    world.release(whole.leaseId);
    world.ns.advance(61 * SECOND);
    world.claim('holds', holds, { holds: false });
    expect(CHECKERS[promise](world.history)).toEqual([]);
  });
});

describe('all checkers', () => {
  const RUNS = ['a', 'b', 'c'];
  const THINGS = ['doc/x', 'doc/y', 'service-token/t', 'integration-config/t'];

  it('never alarm on honest histories, however calls overlap and answers are lost', () => {
    const step = fc.record({
      does: fc.constantFrom(
        'acquire',
        'wait',
        'again',
        'renew',
        'release',
        'revoke',
        'stop',
        'check',
        'issue',
        'delegate',
        'push',
        'pass',
        'sweep',
      ),
      run: fc.constantFrom(...RUNS),
      things: fc.uniqueArray(fc.constantFrom(...THINGS), { minLength: 1, maxLength: 2 }),
      pick: fc.nat(1_000),
      there: fc.nat(3 * SECOND),
      back: fc.oneof({ weight: 5, arbitrary: fc.nat(3 * SECOND) }, { weight: 1, arbitrary: fc.constant(null) }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const world = new HonestHistory();
        for (const run of RUNS) world.run(run).run(`${run}-child`, undefined, run);
        const leases: SeenLease[] = [];
        const asked: { run: string; key: string; things: string[] }[] = [];
        for (const { does, run, things, pick, ...way } of steps) {
          const lease = leases[pick % Math.max(1, leases.length)];
          const before = asked[pick % Math.max(1, asked.length)];
          const acquire = (who: string, what: string[], key: string, wait: number, of?: SeenLease) => {
            const { told } = world.acquire(who, what.map(leased), { key, wait, of, ...way });
            if (told?.outcome === 'lease') leases.push(told.lease);
          };
          if (does === 'acquire' || does === 'wait') {
            const key = `key-${asked.length}`;
            asked.push({ run, key, things });
            acquire(run, things, key, does === 'wait' ? 20 * SECOND : 0);
          } else if (does === 'again' && before !== undefined)
            acquire(before.run, before.things, before.key, 20 * SECOND);
          else if (does === 'stop') {
            if (pick % 5 === 0) world.stop(run, way);
          } else if (does === 'pass') world.ns.advance(pick * 50_000);
          else if (does === 'sweep') world.ns.sweep();
          else if (lease === undefined) continue;
          else if (does === 'renew') world.renew(lease.leaseId, way);
          else if (does === 'release') world.release(lease.leaseId, way);
          else if (does === 'revoke') world.revoke(lease.leaseId, way);
          else if (does === 'check') world.check(lease, way);
          else if (does === 'push') world.push(lease.leaseId);
          else if (does === 'delegate') {
            const part = lease.entries.slice(0, 1 + (pick % 2)).map(({ resource }) => resource);
            if (RUNS.includes(lease.runId)) acquire(`${lease.runId}-child`, part, world.ns.fresh('part'), 0, lease);
          } else if (world.ns.lease(lease.leaseId).state === 'active') world.issue(lease);
        }
        world.checkpoint();
        expect(check(world.history)).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  it('leave of a history what shows the violation, and no more', () => {
    const world = two().run('c');
    for (let i = 0; i < 30; i += 1) world.check(world.hold('c', leased(`doc/${i}`)));
    const lease = world.hold('a', leased('doc/x'));
    world.renew(lease.leaseId);
    const release = world.release(lease.leaseId);
    const late = world.check(lease);
    for (let i = 0; i < 30; i += 1) world.check(lease);
    const history = lying<'check'>(world, late, allowed);
    const [violation] = CHECKERS.P3(history);
    if (violation === undefined) throw new Error('nothing was found');
    const small = shrink(history, violation);
    // The third is any that shows the lease.
    expect(small.calls).toHaveLength(3);
    expect(small.calls.map(({ id }) => id)).toEqual(expect.arrayContaining([release.id, late.id]));
  });
});

describe('a watch of fences (F21)', () => {
  const world = two();
  const { leaseId } = world.hold('a', leased('doc/x'));
  world.renew(leaseId);
  world.release(leaseId);
  const { log } = world.history;
  const digest = createHash('sha256').update(leaseId).digest('hex');
  const names = ['fence', 'renewed', 'ended'].map((kind) => `${kind} ${digest}`);
  const span = { after: 0, upTo: log.length, isSnapshot: false, told: new Set(names) };

  it('that was told every grant, renewal and end has missed nothing', () => {
    expect(missedBy('a', [span], log)).toEqual([]);
  });

  it.each(names)('that was not told %s has missed it', (name) => {
    const told = new Set(names.filter((other) => other !== name));
    expect(missedBy('a', [{ ...span, told }], log)).toMatchObject([{ promise: 'F21', about: [leaseId] }]);
  });

  it('that was told it in another place has missed it there', () => {
    const early = { ...span, upTo: 3 };
    const late = { ...span, after: 3, told: new Set<string>() };
    expect(missedBy('a', [early, late], log)).not.toEqual([]);
  });

  it('that was given a snapshot has missed nothing before it', () => {
    expect(missedBy('a', [{ ...span, isSnapshot: true, told: new Set() }], log)).toEqual([]);
  });
});
