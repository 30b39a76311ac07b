import fc from 'fast-check';
import { generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { describe, expect, it } from 'vitest';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import { Reexpansion } from '../../src/domain/decide/reexpansion.js';
import { decideStopRuns } from '../../src/domain/decide/runs.js';
import { decideIdentify, SWEEP_LIMIT } from '../../src/domain/decide/upkeep.js';
import type { Lease } from '../../src/domain/lease.js';
import { type CredentialBounds, lockDelayUntil, WRITTEN_WITHIN } from '../../src/domain/lock-delay.js';
import { MILLISECOND, type Micros, SECOND } from '../../src/domain/time.js';
import { toRecords } from '../../src/engine/batch.js';
import { DueTimes } from '../../src/engine/replica.js';
import { GENESIS, ReplicaState } from '../../src/engine/replica-state.js';
import {
  compiled,
  DOCUMENT,
  EVERYTHING,
  leased,
  locksIn,
  Namespace,
  optimistic,
  read,
  START,
  stable,
} from '../support/domain.js';
import { sampleEntry, sampleLease } from '../support/sample-records.js';

/** With the defaults: 2 s until the end is in the log, 60 s of life, 5 s of tolerance, 5 s of skew. */
const DELAY: Micros = 72 * SECOND;

/** `exp` of a credential, as agreed: whole seconds, and earlier than the lease by what a verifier may be wrong by. */
function expOf(issuedAt: Micros, expiresAt: Micros, bounds: CredentialBounds): number {
  const { credentialLife, credentialTolerance, maxClockSkew } = bounds;
  return Math.floor(Math.min(issuedAt + credentialLife, expiresAt - credentialTolerance - maxClockSkew) / SECOND);
}

/** Whether a verifier accepts it at this time of the database clock, its own clock being off by so much. */
function accepts(exp: number, databaseNow: Micros, offBy: Micros, bounds: CredentialBounds): boolean {
  return databaseNow + offBy < exp * SECOND + bounds.credentialTolerance;
}

const span = (least: Micros, most: Micros) => fc.integer({ min: least, max: most });
const anyBounds: fc.Arbitrary<CredentialBounds> = fc.record({
  credentialLife: span(0, 120 * SECOND),
  credentialTolerance: span(0, 10 * SECOND),
  maxClockSkew: span(0, 300 * SECOND),
});
const local = sampleEntry({ validation: 'local' });
const held = (expiresAt: Micros, changes: Partial<Lease> = {}): Lease =>
  sampleLease({ expiresAt, entries: [sampleEntry(), local], ...changes });

describe('until when', () => {
  it('no verifier with a clock within the skew accepts anything issued before the end was in the log', () => {
    fc.assert(
      fc.property(
        anyBounds,
        span(1, 3_600 * SECOND),
        span(0, 3_600 * SECOND),
        fc.double({ min: 0, max: 1, noNaN: true }),
        span(0, 600 * SECOND),
        fc.double({ min: -1, max: 1, noNaN: true }),
        (bounds, ttl, endsAfter, issued, later, off) => {
          const expiresAt = START + ttl;
          const endedAt = START + endsAfter;
          const until = lockDelayUntil(held(expiresAt), endedAt, bounds);
          // Without a delay others may have it from the end on, which is the expiry at the latest.
          const freeAt = until ?? Math.min(endedAt, expiresAt);
          // Another replica may vouch for it until the end is there, and nobody after the expiry.
          const lastIssue = Math.min(endedAt + WRITTEN_WITHIN, expiresAt);
          const exp = expOf(START + Math.floor(issued * (lastIssue - START)), expiresAt, bounds);
          if (until === null && endedAt < expiresAt) throw new Error('an early end without a delay');
          const offBy = Math.trunc(off * bounds.maxClockSkew);
          expect(accepts(exp, Math.max(freeAt, START) + later, offBy, bounds)).toBe(false);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('never longer than the lease would have lived, nor than the longest life of a credential allows', () => {
    fc.assert(
      fc.property(anyBounds, span(1, 3_600 * SECOND), span(0, 3_600 * SECOND), (bounds, ttl, endsAfter) => {
        const until = lockDelayUntil(held(START + ttl), START + endsAfter, bounds);
        const { credentialLife, credentialTolerance, maxClockSkew } = bounds;
        const most = WRITTEN_WITHIN + credentialLife + credentialTolerance + maxClockSkew;
        expect(until).toBe(endsAfter >= ttl ? null : START + Math.min(ttl, endsAfter + most));
      }),
    );
  });

  it('none without an entry of a local kind that takes a lock, nor for what was never granted', () => {
    const bounds = new Namespace().bounds;
    const until = (changes: Partial<Lease>): Micros | null =>
      lockDelayUntil(held(START + 60 * SECOND, changes), START, bounds);
    expect(until({})).not.toBeNull();
    expect(until({ entries: [sampleEntry()] })).toBeNull();
    expect(until({ entries: [{ ...local, access: 'read' }] })).toBeNull();
    expect(until({ entries: [{ ...local, mode: 'observe', observedRefusal: 'held' }] })).toBeNull();
    expect(until({ entries: [{ ...local, access: 'stable_read' }] })).not.toBeNull();
    expect(until({ state: 'waiting', expiresAt: null })).toBeNull();
    expect(until({ state: 'ended' })).toBeNull();
  });

  it.each([0, 5, 300])(
    'at the natural expiry jose accepts nothing, with a clock behind by the skew of %i s: no delay is needed',
    async (skew) => {
      const bounds = { ...new Namespace().bounds, maxClockSkew: skew * SECOND };
      const { privateKey, publicKey } = await generateKeyPair('ES256');
      for (const left of [SECOND, 7 * SECOND + 1, 60 * SECOND, 3_600 * SECOND]) {
        const expiresAt = START + left + 10 * SECOND + skew * SECOND + 345_678;
        const issuedAt = Math.min(START + left, expiresAt - 1);
        const exp = expOf(issuedAt, expiresAt, bounds);
        const token = await new SignJWT({})
          .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt' })
          .setExpirationTime(exp)
          .sign(privateKey);
        const verifiedAt = (databaseNow: Micros) =>
          jwtVerify(token, publicKey, {
            algorithms: ['ES256'],
            clockTolerance: bounds.credentialTolerance / SECOND,
            currentDate: new Date((databaseNow - bounds.maxClockSkew) / MILLISECOND),
          });
        await expect(verifiedAt(expiresAt)).rejects.toMatchObject({ code: 'ERR_JWT_EXPIRED' });
        // As late as it can be accepted at all.
        const last = exp * SECOND + bounds.credentialTolerance + bounds.maxClockSkew;
        expect(last).toBeLessThanOrEqual(expiresAt);
        await expect(verifiedAt(last - MILLISECOND)).resolves.toBeDefined();
      }
    },
  );
});

// ------------------------------------------------------------------------------------------------------- early ends

function holding(): { ns: Namespace; lease: Lease } {
  const ns = new Namespace().runs('a', 'b', 'c');
  const lease = ns.granted(ns.acquire('a', [leased('loc/x'), leased('doc/x')], { ttl: 300 * SECOND }));
  return { ns, lease };
}

describe('an early end of a lease', () => {
  const ends: Record<string, (ns: Namespace, lease: Lease) => unknown> = {
    release: (ns, lease) => ns.release(lease),
    revoke: (ns, lease) => ns.revoke(lease),
    stop: (ns) => ns.stop('a'),
    'the end of its run': (ns) => ns.update('a', 'finished'),
  };

  it.each(Object.entries(ends))(
    'by %s keeps what it held of local kinds, and frees the rest at once (P3)',
    (_, end) => {
      const { ns, lease } = holding();
      ns.advance(10 * SECOND);
      const until = ns.now + DELAY;
      end(ns, lease);
      expect(ns.last.map(({ body }) => body)).toContainEqual(expect.objectContaining({ lockDelayUntil: until }));
      expect(ns.lease(lease)).toMatchObject({ state: 'ended', lockDelay: { until, over: false } });
      expect(locksIn(ns.state.held).map((line) => line.split(' ')[1])).toEqual(['loc/', 'loc/x']);
      ns.hold('b', leased('doc/x'));
      expect(ns.refused(ns.acquire('b', [leased('loc/x')]))).toMatchObject({
        kind: 'lock_delay',
        resource: 'loc/x',
        retryAfter: until - ns.now,
        resolution: { who: 'runner', retryable: true },
        blockers: [{ resource: 'loc/x', expiresAt: null, lockDelayUntil: until, waiting: false }],
      });
      expect(ns.preview('b', leased('loc/x')).refusal).toMatchObject({
        kind: 'lock_delay',
        retryAfter: until - ns.now,
      });
      ns.now = until - 1;
      expect(ns.refused(ns.acquire('b', [leased('loc/x')])).kind).toBe('lock_delay');
      ns.now = until;
      ns.hold('b', leased('loc/x'));
      expect(ns.kinds).toEqual(['lock_delay_ended', 'lease_granted']);
      expect(ns.decision.reliedOnAsPast).toBe(until);
    },
  );

  it.each(Object.entries(ends))('by %s is in force for every check at once', (_, end) => {
    const { ns, lease } = holding();
    expect(ns.check(lease, {}).allowed).toBe(true);
    end(ns, lease);
    expect(ns.check(lease, {}).allowed).toBe(false);
  });

  it('is proved to be in the log before another replica could vouch for it much longer', () => {
    const { ns, lease } = holding();
    ns.release(lease);
    expect(ns.decision.reliedOnAsFuture).toBe(ns.now + WRITTEN_WITHIN);
    const short = ns.granted(ns.acquire('b', [leased('loc/y')], { ttl: 30 * SECOND }));
    ns.release(short);
    // Bounded by the expiry, whenever it is written.
    expect(ns.lease(short).lockDelay?.until).toBe(short.expiresAt);
    expect(ns.decision.reliedOnAsFuture).toBeNull();
    const free = ns.hold('c', leased('doc/y'));
    ns.release(free);
    expect(ns.decision.reliedOnAsFuture).toBeNull();
    expect(ns.last[0]?.body).toMatchObject({ lockDelayUntil: null });
  });

  it('is told with the time at which it is in force everywhere, also when it is told again', () => {
    const { ns, lease } = holding();
    const until = ns.now + DELAY;
    expect(ns.release(lease)).toMatchObject({ outcome: 'released', effectiveAt: until });
    const other = ns.hold('b', leased('loc/y'));
    const free = ns.hold('b', leased('doc/z'));
    expect(ns.revoke(free).effectiveAt).toBe(ns.now);
    expect(ns.revoke(other).effectiveAt).toBe(ns.now + DELAY);
    ns.advance(SECOND);
    expect(ns.release(lease)).toMatchObject({ outcome: 'already_ended', effectiveAt: until });
    expect(ns.revoke(lease).effectiveAt).toBe(until);
    // Of a run: with what it gave back before.
    expect(ns.stop('a').effectiveAt).toBe(until);
    ns.advance(SECOND);
    expect(ns.stop('a').effectiveAt).toBe(until);
    ns.advance(DELAY);
    ns.sweep();
    expect(ns.release(lease).effectiveAt).toBe(until);
  });

  it('of several runs, and of a run that finished, likewise', () => {
    const { ns } = holding();
    const stopAll = () =>
      ns.decide((decision) =>
        decideStopRuns(decision, {
          caller: 'operator',
          principal: '',
          resource: 'loc/x',
          reason: 'r',
          idempotencyKey: 'k',
          fingerprint: 'f',
          requestIds: [],
        }),
      );
    const effectiveAt = ns.now + DELAY;
    expect(stopAll()).toEqual({ runIds: ['a'], effectiveAt });
    ns.hold('b', leased('loc/y'));
    ns.advance(SECOND);
    expect(stopAll()).toEqual({ runIds: ['a'], effectiveAt });
    expect(ns.update('b', 'finished', { key: 'u' })).toEqual({ effectiveAt: ns.now + DELAY });
    expect(ns.update('b', 'finished', { key: 'u' })).toEqual({ effectiveAt: ns.now + DELAY });
    expect(ns.update('c', 'waiting_for_input')).toEqual({ effectiveAt: null });
    expect(ns.update('c', 'finished')).toEqual({ effectiveAt: ns.now });
  });

  it('of a run covers what the runs below it held, also when it is asked again', () => {
    const ns = new Namespace().runs('a', 'b');
    const { principal } = ns.state.runs.get('a') as { principal: string };
    ns.run('child', { principal, parentRunId: 'a' });
    ns.run('grandchild', { principal, parentRunId: 'child' });
    ns.granted(ns.acquire('grandchild', [leased('loc/x')], { ttl: 300 * SECOND }));
    const effectiveAt = ns.now + DELAY;
    expect(ns.stop('a')).toEqual({ effectiveAt });
    ns.release(ns.granted(ns.acquire('b', [leased('loc/y')], { ttl: 300 * SECOND })));
    ns.advance(SECOND);
    expect(ns.stop('a')).toEqual({ effectiveAt });
    // Runs that are not in memory any more are looked up, all of one generation at once.
    for (const runId of ['child', 'grandchild', 'b']) ns.state.runs.delete(runId);
    expect(() => ns.stop('a')).toThrow(expect.objectContaining({ wanted: { runIds: ['grandchild', 'b'] } }));
  });

  it('keeps a subtree, a stable read and an optimistic write from what each would keep away', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.release(ns.hold('a', leased('loc/t/')));
    ns.release(ns.hold('a', optimistic('loc/o')));
    ns.release(ns.hold('a', stable('loc/s')));
    const kind = (...asked: Parameters<Namespace['hold']>[1][]) => {
      const answer = ns.acquire('b', asked);
      return answer.kind === 'refusal' ? answer.refusal.kind : answer.kind;
    };
    expect(kind(leased('loc/t/deep/below'))).toBe('lock_delay');
    expect(kind(leased('loc/o'))).toBe('lock_delay');
    expect(kind(optimistic('loc/o'))).toBe('lease');
    expect(kind(leased('loc/s'))).toBe('lock_delay');
    expect(kind(stable('loc/s'))).toBe('lease');
    expect(kind(read('loc/t/x'))).toBe('lease');
  });

  it('lets the run itself acquire again at once, and both ends count', () => {
    const { ns, lease } = holding();
    ns.release(lease);
    ns.advance(SECOND);
    const again = ns.hold('a', leased('loc/x'));
    expect(ns.refused(ns.acquire('b', [leased('loc/x')])).kind).toBe('held');
    ns.release(again);
    expect(ns.refused(ns.acquire('b', [leased('loc/x')]))).toMatchObject({ kind: 'lock_delay', retryAfter: DELAY });
    ns.advance(DELAY);
    ns.hold('b', leased('loc/x'));
    expect(ns.kinds).toEqual(['lock_delay_ended', 'lock_delay_ended', 'lease_granted']);
  });

  it('says what could be granted meanwhile', () => {
    const { ns, lease } = holding();
    ns.release(lease);
    const refusal = ns.refused(ns.acquire('b', [leased('loc/x'), leased('doc/x')]));
    expect(refusal.grantable.map(({ resource }) => resource)).toEqual(['doc/x']);
  });

  it('is recorded about observed entries as it would have been answered (C14)', () => {
    const [, observed] = DOCUMENT.kinds ?? [];
    const ns = new Namespace({
      version: 1,
      kinds: [{ pattern: 'obs/{id...}', mode: 'observe', validation: 'local', actions: observed?.actions ?? {} }],
    }).runs('a', 'b');
    ns.release(ns.hold('a', leased('obs/x')));
    expect(ns.hold('b', leased('obs/x')).entries[0]?.observedRefusal).toBe('lock_delay');
  });
});

describe('an end by time', () => {
  it('leaves no delay: neither at the expiry, nor for want of progress', () => {
    const paced = (DOCUMENT.kinds ?? []).map((kind) =>
      kind.pattern === 'loc/{id...}' ? { ...kind, progress_window: 100 * SECOND } : kind,
    );
    for (const map of [DOCUMENT, { ...DOCUMENT, kinds: paced }]) {
      const ns = new Namespace(map).runs('a', 'b');
      const lease = ns.hold('a', leased('loc/x'));
      ns.now = lease.expiresAt as Micros;
      ns.hold('b', leased('loc/x'));
      expect(ns.kinds).toEqual(['lease_ended', 'lease_granted']);
      expect(ns.lease(lease).lockDelay).toBeNull();
    }
  });

  it('does when nobody claims the grant: from then on, not from when it is written', () => {
    for (const late of [0, 30 * SECOND]) {
      const ns = new Namespace().runs('a', 'b', 'c');
      const first = ns.hold('c', leased('doc/x'));
      const wanted = { wait: 600 * SECOND, ttl: 300 * SECOND };
      const waiting = ns.waiting(ns.acquire('a', [leased('loc/x'), leased('doc/x')], wanted));
      ns.decide((decision) =>
        decision.emit({
          kind: 'lease_attached',
          attachments: [
            { leaseId: waiting.leaseId, attachedUntil: ns.now + 9 * SECOND, attachment: 1, attached: false },
          ],
        }),
      );
      ns.release(first);
      const lease = ns.lease(waiting);
      const claimBy = lease.claimBy as Micros;
      ns.now = claimBy + late;
      // What has ended by time but for its delay is free of what is not delayed, and only of that.
      expect(ns.refused(ns.acquire('b', [leased('loc/x')]))).toMatchObject({ kind: 'lock_delay' });
      expect(ns.kinds).toContain('lease_ended');
      expect(ns.lease(lease)).toMatchObject({ endReason: 'unclaimed', lockDelay: { until: claimBy + DELAY } });
      ns.hold('b', leased('doc/x'));
    }
  });

  it('lets nobody pass before it is written either: its delay begins then (P3)', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const first = ns.hold('c', leased('loc/x'));
    const other = ns.granted(ns.acquire('c', [leased('doc/z')], { ttl: 300 * SECOND }));
    const unclaimed = ns.queue('a', leased('loc/x'));
    ns.advance(200 * SECOND);
    ns.renew(other);
    ns.now = first.expiresAt as Micros;
    const attachedUntil = ns.now + 9 * SECOND;
    ns.decide((decision) =>
      decision.emit({
        kind: 'lease_attached',
        attachments: [{ leaseId: unclaimed.leaseId, attachedUntil, attachment: 1, attached: false }],
      }),
    );
    ns.sweep();
    expect(ns.lease(unclaimed)).toMatchObject({ state: 'active', claimBy: ns.now + 10 * SECOND });
    const next = ns.queue('b', leased('loc/x'), leased('doc/z'));
    keepAttached(ns, next);
    ns.advance(10 * SECOND);
    ns.release(other);
    expect(ns.lease(next).state).toBe('waiting');
    ns.sweep();
    expect(ns.lease(unclaimed).endReason).toBe('unclaimed');
    expect(ns.lease(next).state).toBe('waiting');
  });
});

// ---------------------------------------------------------------------------------------------------------- waiting

describe('waiting for a lock delay', () => {
  it('ends with a grant when the delay does, in the order of the queue (P9)', () => {
    const { ns, lease } = holding();
    ns.release(lease);
    const answer = ns.acquire('b', [leased('loc/x')], { wait: 600 * SECOND });
    expect(ns.told(ns.waiting(answer))).toMatchObject({
      ahead: 0,
      refusal: { kind: 'lock_delay', retryAfter: DELAY },
    });
    const [first, second] = [ns.waiting(answer), ns.queue('c', leased('loc/x'))];
    // Not even the run that had it passes those who wait.
    expect(ns.refused(ns.acquire('a', [leased('loc/x')])).kind).toBe('held');
    const third = ns.queue('a', leased('loc/x'));
    keepAttached(ns, first, second, third);
    ns.advance(DELAY);
    ns.sweep();
    expect(ns.kinds).toEqual(['lock_delay_ended', 'lease_granted']);
    expect([first, second, third].map((one) => ns.lease(one).state)).toEqual(['active', 'waiting', 'waiting']);
  });

  it('closes no cycle: it is waited for by time alone', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.release(ns.hold('a', leased('loc/x')));
    ns.hold('b', leased('doc/b'));
    const waiting = ns.queue('b', leased('loc/x'));
    // `a` waits for what `b` holds, while `b` waits for what `a` has given back.
    const other = ns.queue('a', leased('doc/b'));
    keepAttached(ns, waiting, other);
    ns.advance(DELAY - 60 * SECOND);
    ns.sweep();
    expect(ns.lease(waiting).state).toBe('waiting');
  });

  it('is held, and no lock delay, while somebody holds something of it', () => {
    const { ns, lease } = holding();
    ns.release(lease);
    ns.hold('c', leased('doc/held'));
    const refusal = ns.refused(ns.acquire('b', [leased('loc/x'), leased('doc/held')]));
    expect(refusal).toMatchObject({ kind: 'held', blockers: [{ lockDelayUntil: expect.any(Number) }, {}] });
  });

  it('counts among the leases of the namespace, so that memory is bounded', () => {
    const { ns, lease } = holding();
    ns.bounds = { ...ns.bounds, maxLeases: 1 };
    ns.release(lease);
    expect(ns.refused(ns.acquire('b', [leased('doc/y')]))).toMatchObject({ kind: 'limit' });
    ns.advance(DELAY);
    ns.sweep();
    ns.hold('b', leased('doc/y'));
  });

  it('stays in memory however much ends meanwhile', () => {
    const { ns, lease } = holding();
    ns.release(lease);
    ns.decide((decision) => {
      for (let index = 0; index < 40_001; index += 1) {
        const binding = { scope: 'run:b', key: `${index}`, use: 'tombstone' as const, fingerprint: '', runId: 'b' };
        decision.emit({ kind: 'key_bound', binding: { ...binding, leaseId: '', boundAt: ns.now } });
      }
    });
    const replica = new ReplicaState('test', null);
    replica.follow(toRecords('test', 'batch', GENESIS, ns.events));
    expect(replica.forgottenThrough).toBeGreaterThan(0);
    expect(replica.state.leases.get(lease.leaseId)).toEqual(ns.lease(lease));
  });

  it('is swept in bounded portions', () => {
    const ns = new Namespace().runs('a');
    for (let index = 0; index < SWEEP_LIMIT + 1; index += 1) ns.release(ns.hold('a', leased(`loc/${index}`)));
    ns.advance(DELAY);
    expect(ns.sweep()).toEqual({ more: true });
    expect(ns.state.delayedLeases).toBe(1);
    expect(ns.sweep()).toEqual({ more: false });
    expect(ns.kinds).toEqual(['lock_delay_ended']);
    expect(locksIn(ns.state.held)).toEqual([]);
  });
});

/** Their calls hang on for as long as it takes. */
function keepAttached(ns: Namespace, ...waiting: readonly Lease[]): void {
  const attachments = waiting.map(({ leaseId }) => ({
    leaseId,
    attachedUntil: ns.now + 3_600 * SECOND,
    attachment: 1,
    attached: true,
  }));
  ns.decide((decision) => decision.emit({ kind: 'lease_attached', attachments }));
}

// ---------------------------------------------------------------------------------------------------------- the map

function turned(pattern: string, validation: 'introspect' | 'local'): ConflictMapDocument {
  const kinds = (DOCUMENT.kinds ?? []).map((kind) => (kind.pattern === pattern ? { ...kind, validation } : kind));
  return { ...DOCUMENT, kinds };
}

describe('a resource set that may not be had yet, and is under lock delay', () => {
  const START_IN = 10 * SECOND;
  const make = (startIn: Micros) => {
    const ns = new Namespace().runs('a', 'b');
    const entries = [{ resource: 'loc/x', access: 'write' as const, actions: ['replace'] }];
    ns.putMap({ ...DOCUMENT, sets: { s: { not_before: START + startIn, entries } } });
    ns.release(ns.granted(ns.acquire('a', [leased('loc/x')], { ttl: 300 * SECOND })));
    const answer = ns.acquire('b', { entries: [], task: null, resourceSet: 's' }, { wait: 600 * SECOND });
    const until = [...ns.state.leases.values()].find(({ lockDelay }) => lockDelay !== null)?.lockDelay?.until ?? 0;
    return { ns, answer, until };
  };

  it('says when both are over, and is granted by the sweeper at the later one', () => {
    for (const startIn of [START_IN, 200 * SECOND]) {
      const { ns, answer, until } = make(startIn);
      const waiting = ns.waiting(answer);
      const both = Math.max(until, START + startIn);
      expect(ns.told(waiting)).toMatchObject({
        refusal: { kind: 'lock_delay', retryAfter: both - ns.now, blockers: [{ lockDelayUntil: until }] },
      });
      keepAttached(ns, waiting);
      const dues = new DueTimes();
      while (ns.lease(waiting).state === 'waiting') {
        expect(ns.now).toBeLessThan(both + SECOND);
        ns.advance(SECOND);
        if (dues.isDue(ns.state, ns.now)) ns.sweep();
      }
      expect(ns.lease(waiting)).toMatchObject({ state: 'active' });
      expect(ns.now).toBeGreaterThanOrEqual(both);
    }
  });
});

describe('a change of the map', () => {
  it('leaves local what was granted as local', () => {
    const { ns, lease } = holding();
    ns.putMap(turned('loc/{id...}', 'introspect'));
    ns.release(lease);
    expect(ns.lease(lease).lockDelay?.until).toBe(ns.now + DELAY);
    expect(ns.refused(ns.acquire('b', [leased('loc/x')])).kind).toBe('lock_delay');
    const after = ns.hold('b', leased('loc/y'));
    ns.release(after);
    expect(ns.lease(after).lockDelay).toBeNull();
  });

  it('makes local what is held and what waits, with its tokens as they were', () => {
    const { ns, lease } = holding();
    const waiting = ns.queue('b', leased('doc/x'));
    ns.putMap(turned('doc/{id...}', 'local'));
    const now = ns.lease(lease);
    expect(now).toMatchObject({ generation: 2, entries: [{ validation: 'local' }, { validation: 'local' }] });
    expect(now.entries.map(({ token }) => token)).toEqual(lease.entries.map(({ token }) => token));
    expect(ns.lease(waiting).entries[0]?.validation).toBe('local');
    ns.release(lease);
    expect(ns.lease(waiting).state).toBe('waiting');
  });

  const tied: ConflictMapDocument = {
    ...DOCUMENT,
    conflicts: [...(DOCUMENT.conflicts ?? []), { between: ['loc/{id}', 'doc/{id}'] }],
  };

  it('ties what is under lock delay by new rules, too', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.release(ns.hold('a', leased('loc/x')));
    ns.putMap(tied);
    expect(ns.kinds).toEqual(['conflict_map_put', 'lease_reexpanded']);
    expect(ns.refused(ns.acquire('b', [leased('doc/x')]))).toMatchObject({
      kind: 'lock_delay',
      blockers: [{ rule: 'conflicts[2]', resource: 'loc/x', requestedResource: 'doc/x' }],
    });
    ns.advance(DELAY);
    ns.sweep();
    expect(locksIn(ns.state.held)).toEqual([]);
    ns.hold('b', leased('doc/x'));
  });

  it('adds nothing to what ended after it was expanded ahead', () => {
    const { ns, lease } = holding();
    const document: ConflictMapDocument = {
      ...tied,
      implies: [
        ...(tied.implies ?? []),
        {
          when: { pattern: 'loc/{id}', access: 'write' },
          touches: [{ resource: 'doc/of/{id}', access: 'write', actions: ['replace'] }],
        },
      ],
    };
    const reexpansion = new Reexpansion(compiled(document));
    expect(reexpansion.of(lease, EVERYTHING, ns.bounds)?.next?.added).toHaveLength(1);
    ns.release(lease);
    const ended = ns.lease(lease);
    expect(ended.entries).toBe(lease.entries);
    const next = reexpansion.of(ended, EVERYTHING, ns.bounds)?.next;
    expect(next).toMatchObject({ entries: ended.entries, added: [] });
    expect(next?.ruleLocks.map(({ entry }) => ended.entries[entry]?.resource)).toContain('loc/x');
  });

  it('that puts a live lease in conflict with a lock delay is refused, or ends the live one', () => {
    const make = () => {
      const ns = new Namespace().runs('a', 'b');
      const live = ns.hold('b', leased('doc/x'));
      const ended = ns.hold('a', leased('loc/x'));
      ns.release(ended);
      return { ns, live, ended };
    };
    const { ns } = make();
    expect(() => ns.putMap(tied)).toThrow(/in conflict/);
    const revoking = make();
    revoking.ns.putMap(tied, 'revoke_newer');
    expect(revoking.ns.lease(revoking.live)).toMatchObject({ state: 'ended', endReason: 'map_changed' });
    expect(revoking.ns.lease(revoking.ended)).toMatchObject({ endReason: 'released', lockDelay: { over: false } });
    const keeping = make();
    keeping.ns.putMap(tied, 'keep_until_end');
    expect(keeping.ns.lease(keeping.live).state).toBe('active');
  });

  it('that ends a lease of a local kind puts it under lock delay', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const newer = ns.hold('b', leased('loc/x'));
    ns.putMap(tied, 'revoke_newer');
    expect(ns.lease(newer)).toMatchObject({ endReason: 'map_changed', lockDelay: { until: ns.now + DELAY } });
  });
});

// ------------------------------------------------------------------------------------------------------ lost history

describe('lost history', () => {
  const lose = (): { ns: Namespace; lease: Lease; until: Micros } => {
    const { ns, lease } = holding();
    const until = ns.now + DELAY;
    ns.loseHistory();
    ns.update('a', 'active', { asOperator: true });
    ns.update('b', 'active', { asOperator: true });
    return { ns, lease, until };
  };

  it('ends live leases, and puts what they held of local kinds under lock delay (P2, P3)', () => {
    const { ns, lease, until } = lose();
    expect(ns.lease(lease)).toMatchObject({ endReason: 'database_changed', lockDelay: { until, over: false } });
    expect(ns.state.delayedLeases).toBe(1);
    ns.hold('b', leased('doc/x'));
  });

  it('closes every local kind of the namespace, to the run itself too: what was granted last may be lost', () => {
    const { ns, until } = lose();
    for (const runId of ['a', 'b']) {
      expect(ns.refused(ns.acquire(runId, [leased('loc/other')]))).toMatchObject({
        kind: 'lock_delay',
        resource: 'loc/other',
        retryAfter: until - ns.now,
      });
    }
    const refusal = ns.refused(ns.acquire('b', [leased('loc/other'), leased('doc/y')]));
    expect(refusal.grantable.map(({ resource }) => resource)).toEqual(['doc/y']);
    ns.hold('b', read('loc/other'));
    ns.now = until;
    ns.hold('b', leased('loc/other'));
    expect(ns.kinds).toEqual(['database_identified', 'lease_granted']);
    expect(ns.decision.reliedOnAsPast).toBe(until);
    expect(ns.state.localKindsFrom).toBeNull();
  });

  it('lets requests wait for it, and grants them in order when it is over', () => {
    const { ns, until } = lose();
    const answer = ns.acquire('b', [leased('loc/y')], { wait: 600 * SECOND });
    const waiting = ns.waiting(answer);
    expect(ns.told(waiting)).toMatchObject({ refusal: { kind: 'lock_delay' } });
    keepAttached(ns, waiting);
    ns.sweep();
    expect(ns.lease(waiting).state).toBe('waiting');
    ns.now = until;
    expect(ns.refused(ns.acquire('a', [leased('loc/y')])).kind).toBe('held');
    expect(ns.lease(waiting).state).toBe('active');
  });

  it('grants those who only want nothing changed, too, as soon as it is over', () => {
    const { ns, until } = lose();
    const waiting = ns.waiting(ns.acquire('b', [stable('loc/y')], { wait: 600 * SECOND }));
    keepAttached(ns, waiting);
    ns.now = until;
    ns.sweep();
    expect(ns.lease(waiting).state).toBe('active');
  });

  it('is still remembered when the database is identified once more', () => {
    const { ns, until } = lose();
    const { identity } = ns.state;
    if (identity === null) throw new Error('no identity');
    const body = { identity, lostHistory: false, why: 'restart', continuesFrom: { revision: 1, hash: '' } };
    ns.decide((decision) => decideIdentify(decision, body));
    expect(ns.last[0]?.body).toMatchObject({ localKindsFrom: until });
    expect(ns.refused(ns.acquire('b', [leased('loc/y')])).kind).toBe('lock_delay');
    ns.now = until;
    ns.sweep();
    expect(ns.state.localKindsFrom).toBeNull();
    expect(ns.kinds).toContain('database_identified');
    expect(ns.sweep()).toEqual({ more: false });
    expect(ns.last).toEqual([]);
  });
});
