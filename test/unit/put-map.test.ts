import { describe, expect, it } from 'vitest';
import type { ConflictMapDocument } from '../../src/domain/conflict-map/document.js';
import { Decision } from '../../src/domain/decide/decision.js';
import {
  decidePutMap,
  MAX_REEXPANDED,
  type OnLiveConflict,
  type PutMapCommand,
  previewPutMap,
} from '../../src/domain/decide/put-map.js';
import { Reexpansion } from '../../src/domain/decide/reexpansion.js';
import { overlay } from '../../src/domain/state.js';
import { SECOND } from '../../src/domain/time.js';
import {
  compiled,
  DOCUMENT,
  digestOf,
  EVERYTHING,
  leased,
  locksIn,
  Namespace,
  optimistic,
  read,
  stable,
  tokenOn,
} from '../support/domain.js';

const IMPLIED: ConflictMapDocument['implies'] = [
  {
    when: { pattern: 'doc/{id}', access: 'write' },
    touches: [{ resource: 'dns/{id}', access: 'write', actions: ['replace'] }],
  },
];

/** From now on whoever writes `doc/{id}` writes `dns/{id}` as well. */
const TIED: ConflictMapDocument = { ...DOCUMENT, implies: IMPLIED };
/** From now on `doc/{id}` and `dns/{id}` may not be written at once. */
const APART: ConflictMapDocument = { ...DOCUMENT, conflicts: [{ between: ['doc/{id}', 'dns/{id}'] }], implies: [] };

function command(
  document: ConflictMapDocument,
  expectedVersion: number,
  onLiveConflict: OnLiveConflict,
): PutMapCommand {
  return {
    text: 'as written',
    document,
    reexpansion: new Reexpansion(compiled(document)),
    expectedVersion,
    reason: 'test',
    onLiveConflict,
    requestIds: [],
  };
}

const put = (ns: Namespace, document: ConflictMapDocument, version: number): unknown =>
  ns.decide((decision) => decidePutMap(decision, command(document, version, 'refuse')));

describe('a map is put against the version it was read at', () => {
  it('and refused against any other, so that nobody overwrites what they have not seen', () => {
    const ns = new Namespace();
    expect(ns.state.mapVersion).toBe(1);
    for (const version of [0, 2, -1]) {
      expect(() => put(ns, TIED, version)).toThrow(expect.objectContaining({ reason: 'MAP_VERSION_CONFLICT' }));
    }
    put(ns, TIED, 1);
    expect(ns.state.mapVersion).toBe(2);
    expect(ns.state.map.document).toBe(TIED);
    expect(ns.last[0]?.body).toMatchObject({ kind: 'conflict_map_put', version: 2, text: 'as written' });
    expect(() => put(ns, TIED, 1)).toThrow(expect.objectContaining({ reason: 'MAP_VERSION_CONFLICT' }));
  });
});

describe('what is worked out ahead of the append', () => {
  const ahead = (ns: Namespace, document: ConflictMapDocument): PutMapCommand => {
    const one = command(document, ns.state.mapVersion, 'refuse');
    for (const lease of ns.state.leases.values()) one.reexpansion.of(lease, EVERYTHING, ns.bounds);
    return one;
  };

  it('holds for a lease that was renewed since, and not for one that was changed', () => {
    const ns = new Namespace().runs('a', 'b');
    const renewed = ns.hold('a', leased('doc/x'));
    const changed = ns.hold('b', leased('doc/y'));
    const prepared = ahead(ns, { ...TIED, conflicts: [{ between: ['doc/{id}', 'wiki/{id}'] }] });
    ns.advance(SECOND);
    ns.renew(renewed);
    const before = ns.lease(renewed);
    expect(prepared.reexpansion.of(before, EVERYTHING, ns.bounds)).toBe(
      prepared.reexpansion.of(renewed, EVERYTHING, ns.bounds),
    );
    ns.putMap(TIED);
    const token = tokenOn(ns.lease(changed), 'dns/y');
    ns.decide((decision) => decidePutMap(decision, { ...prepared, expectedVersion: ns.state.mapVersion }));
    // What the map between gave it is neither lost nor given twice.
    expect(ns.lease(changed).entries.map((entry) => entry.resource)).toEqual(['doc/y', 'dns/y']);
    expect(tokenOn(ns.lease(changed), 'dns/y')).toBe(token);
    expect(ns.lease(changed).ruleLocks.length).toBeGreaterThan(0);
    expect(ns.lease(renewed).entries.map((entry) => entry.resource)).toEqual(['doc/x', 'dns/x']);
  });

  it('a request that waited then and is granted now is expanded as what it holds', () => {
    const ns = new Namespace().runs('a', 'b');
    const first = ns.hold('a', leased('doc/x'));
    const { leaseId } = ns.waiting(ns.acquire('b', [leased('doc/x')], { wait: 60 * SECOND }));
    const prepared = ahead(ns, TIED);
    ns.release(first);
    expect(ns.lease(leaseId).state).toBe('active');
    ns.decide((decision) => decidePutMap(decision, { ...prepared, expectedVersion: ns.state.mapVersion }));
    expect(tokenOn(ns.lease(leaseId), 'dns/x')).toBeGreaterThan(0);
    expect(tokenOn(ns.lease(leaseId), 'doc/x')).toBeGreaterThan(0);
  });
});

describe('a change is one append, and bounded', () => {
  it('one that would give too many live leases more locks is refused, and changes nothing', () => {
    const ns = new Namespace();
    ns.bounds = { ...ns.bounds, maxLeasesPerRun: MAX_REEXPANDED + 1 };
    ns.run('a');
    for (let n = 0; n < MAX_REEXPANDED; n += 1) ns.hold('a', leased(`doc/${n}`));
    expect(
      previewPutMap(new Decision(overlay(ns.state), ns.now, 'test', ns.bounds), command(TIED, 1, 'refuse')),
    ).toMatchObject({ accepted: true });
    ns.hold('a', leased('doc/more'));
    expect(() => put(ns, TIED, 1)).toThrow(
      expect.objectContaining({ faultClass: 'resource_exhausted', reason: 'MAP_CHANGE_TOO_WIDE' }),
    );
    expect(ns.state.mapVersion).toBe(1);
    put(ns, { ...DOCUMENT, kinds: [...(DOCUMENT.kinds ?? []), { pattern: 'new/{id}' }] }, 1);
    expect(ns.state.mapVersion).toBe(2);
  });
});

describe('live leases are expanded anew in the same append', () => {
  it('what is added gets a new token and generation; what is kept keeps its own (P2)', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'), read('doc/y'));
    ns.advance(SECOND);
    const { affected } = ns.putMap(TIED);
    expect(ns.kinds).toEqual(['conflict_map_put', 'lease_reexpanded']);
    const after = ns.lease(lease);
    expect(after.generation).toBe(2);
    expect(tokenOn(after, 'doc/x')).toBe(tokenOn(lease, 'doc/x'));
    expect(tokenOn(after, 'doc/y')).toBe(0);
    expect(tokenOn(after, 'dns/x')).toBe(ns.last[1]?.time);
    expect(tokenOn(after, 'dns/x')).toBeGreaterThan(tokenOn(lease, 'doc/x'));
    expect(after.entries.find((entry) => entry.resource === 'dns/x')?.impliedBy).toBe('implies[0]');
    expect(after).toMatchObject({ expiresAt: lease.expiresAt, grantedAt: lease.grantedAt });
    expect(affected).toMatchObject([{ leaseId: lease.leaseId, runId: 'a', generation: 2, ended: false }]);
    expect(ns.check(lease, { resource: 'dns/x', token: tokenOn(after, 'dns/x') }).allowed).toBe(true);
    expect(ns.check(lease, {}).allowed).toBe(true);
  });

  it('keeps others away from what was added, from then on (P1)', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    ns.hold('b', leased('dns/y'));
    ns.putMap(TIED);
    expect(ns.refused(ns.acquire('b', [leased('dns/x')])).kind).toBe('held');
  });

  it('locks are only ever added: what a new map would not ask for stays held', () => {
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', leased('deployment/eu'));
    const before = locksIn(ns.state.held);
    ns.putMap({ ...DOCUMENT, implies: [], conflicts: [] });
    expect(locksIn(ns.state.held)).toEqual(before);
    expect(ns.lease(lease)).toEqual(lease);
    expect(ns.refused(ns.acquire('b', [leased('dns/eu/www')])).kind).toBe('held');
  });

  it('an optimistic entry becomes a leased one when its action does, and never the other way', () => {
    const patchLeased: ConflictMapDocument = {
      version: 1,
      kinds: [{ pattern: 'doc/{id...}', actions: { patch: { access: 'write', concurrency: 'lease' } } }],
    };
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', optimistic('doc/x'));
    ns.putMap(patchLeased);
    expect(ns.lease(lease).entries[0]).toMatchObject({ exclusive: true });
    expect(ns.refused(ns.acquire('b', [optimistic('doc/x')])).kind).toBe('held');
    ns.putMap(DOCUMENT);
    expect(ns.lease(lease).entries[0]).toMatchObject({ exclusive: true });
  });

  it('a lease that excludes optimistic writers from now on gets a token later than theirs (P2)', () => {
    const patchLeased: ConflictMapDocument = {
      version: 1,
      kinds: [{ pattern: 'doc/{id...}', actions: { patch: { access: 'write', concurrency: 'lease' } } }],
    };
    const ns = new Namespace().runs('a', 'b');
    const lease = ns.hold('a', optimistic('doc/x'), optimistic('doc/y'));
    ns.advance(SECOND);
    const beside = ns.hold('b', optimistic('doc/x'));
    ns.advance(SECOND);
    ns.release(beside);
    ns.putMap(patchLeased);
    const token = tokenOn(ns.lease(lease), 'doc/x');
    expect(token).toBeGreaterThan(tokenOn(beside, 'doc/x'));
    expect(ns.check(lease, { token: tokenOn(lease, 'doc/x') }).results[0]?.reason).toBe('stale_token');
    expect(ns.check(lease, { token }).allowed).toBe(true);
    // While it waits, a request has none.
    const waiting = ns.queue('b', optimistic('doc/x'));
    expect(waiting.entries[0]).toMatchObject({ exclusive: true, token: 0 });
  });

  it('a lease that the new map would not grant any more gets the new locks all the same (P1)', () => {
    const ns = new Namespace({ ...DOCUMENT, conflicts: [] }).runs('a', 'b', 'c');
    const lease = ns.hold('a', leased('service-token/acme'), leased('doc/x'));
    const kinds = (DOCUMENT.kinds ?? []).map((kind) =>
      kind.pattern === 'doc/{id...}' ? { ...kind, authority: 'forbid' as const } : kind,
    );
    const { affected } = ns.putMap({ ...DOCUMENT, kinds });
    expect(affected).toMatchObject([
      { leaseId: lease.leaseId, generation: 2, noLongerGranted: expect.stringContaining('closed') },
    ]);
    expect(ns.refused(ns.acquire('b', [leased('integration-config/acme')])).kind).toBe('held');
    expect(tokenOn(ns.lease(lease), 'service-token/acme')).toBe(tokenOn(lease, 'service-token/acme'));
    ns.hold('c', leased('integration-config/other'));
  });

  it('and no action with them that the map or the contract of its run closes (P4)', () => {
    const ns = new Namespace();
    ns.run('a', {
      allowed: [
        { pattern: 'doc/{id...}', actions: ['replace'] },
        { pattern: 'image-tag/{env}', actions: ['set'] },
      ],
    });
    const lease = ns.hold('a', leased('doc/x'));
    const kinds = (DOCUMENT.kinds ?? []).map((kind) =>
      kind.pattern === 'dns/{env}' || kind.pattern === 'image-tag/{env}'
        ? { ...kind, authority: 'forbid' as const }
        : kind,
    );
    const touches = [
      { resource: 'dns/{id}', access: 'write' as const, actions: ['replace'] },
      { resource: 'image-tag/{id}', access: 'write' as const, actions: ['set'] },
    ];
    ns.putMap({ ...DOCUMENT, kinds, implies: [{ when: { pattern: 'doc/{id}', access: 'write' }, touches }] });
    for (const [resource, action] of [
      ['dns/x', 'replace'],
      ['image-tag/x', 'set'],
    ] as const) {
      const token = tokenOn(ns.lease(lease), resource);
      expect(ns.check(lease, { resource, action, token }).results[0]?.reason).toBe('action_not_allowed');
    }
  });

  it('a lease that the new map would not grant any more is told, and runs to its end', () => {
    const ns = new Namespace().runs('a');
    const lease = ns.hold('a', leased('doc/x'));
    const { affected } = ns.putMap({ version: 1, kinds: [{ pattern: 'doc/{id...}', authority: 'forbid' }] });
    expect(affected).toMatchObject([{ leaseId: lease.leaseId, noLongerGranted: expect.stringContaining('closed') }]);
    expect(ns.lease(lease)).toEqual(lease);
  });

  it('waiting requests too: they wait for what was added as well, without a token', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    const holder = ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    const other = ns.hold('c', leased('dns/y'));
    ns.putMap(
      {
        ...DOCUMENT,
        implies: [
          {
            when: { pattern: 'doc/{id}', access: 'write' },
            touches: [{ resource: 'dns/y', access: 'write', actions: ['replace'] }],
          },
        ],
      },
      'keep_until_end',
    );
    expect(ns.lease(waiting)).toMatchObject({ state: 'waiting', generation: 2 });
    expect(ns.lease(waiting).waiting?.queuedAt).toBe(waiting.waiting?.queuedAt);
    expect(ns.lease(waiting).entries.map((entry) => entry.token)).toEqual([0, 0]);
    ns.release(holder);
    expect(ns.lease(waiting).state).toBe('waiting');
    ns.release(other);
    expect(ns.lease(waiting).state).toBe('active');
  });

  it('what no rule implies any more is still held, and is as the new map says of it (P1, P3)', () => {
    const ns = new Namespace({ ...DOCUMENT, implies: IMPLIED }).runs('a', 'b');
    const lease = ns.hold('a', leased('doc/x'));
    ns.advance(SECOND);
    const kinds = (DOCUMENT.kinds ?? []).map((kind) =>
      kind.pattern === 'dns/{env}' ? { ...kind, validation: 'local' as const } : kind,
    );
    const touches = [{ resource: 'image-tag/{env}', access: 'write' as const, actions: ['set'] }];
    ns.putMap({
      ...DOCUMENT,
      kinds,
      implies: [{ when: { pattern: 'dns/{env}' }, touches }],
      conflicts: [{ between: ['dns/{name}', 'service-token/{name}'] }],
    });
    const [, implied, added] = ns.lease(lease).entries;
    expect(implied).toMatchObject({ resource: 'dns/x', validation: 'local', token: lease.entries[1]?.token });
    expect(added).toMatchObject({ resource: 'image-tag/x', actions: ['set'] });
    expect(ns.refused(ns.acquire('b', [leased('service-token/x')])).kind).toBe('held');
    ns.release(lease);
    expect(ns.refused(ns.acquire('b', [leased('dns/x')])).kind).toBe('lock_delay');
  });

  it('what no rule implies any more becomes a leased write with its action, and else reserves as before', () => {
    const patched = (id: string): NonNullable<ConflictMapDocument['implies']>[number] => ({
      when: { pattern: `doc/${id}` },
      touches: [{ resource: `dns/${id}`, access: 'write', actions: ['patch'] }],
    });
    const ns = new Namespace({ ...DOCUMENT, implies: [patched('x')] });
    ns.run('a');
    ns.run('b', { allowed: [{ pattern: 'doc/{id}', actions: ['*'] }] });
    const lease = ns.hold('a', leased('doc/x'));
    ns.putMap({ ...DOCUMENT, implies: [patched('y')] });
    const reserving = ns.hold('b', leased('doc/y'));
    expect(reserving.entries[1]).toMatchObject({ resource: 'dns/y', actions: [], exclusive: false });
    const actions = { patch: { access: 'write', concurrency: 'lease' }, replace: { access: 'write' } } as const;
    const kinds = (DOCUMENT.kinds ?? []).map((kind) => (kind.pattern === 'dns/{env}' ? { ...kind, actions } : kind));
    const { affected } = ns.putMap({ ...DOCUMENT, kinds, implies: [] });
    expect(affected).toEqual([]);
    expect(ns.lease(lease).entries[1]).toMatchObject({ resource: 'dns/x', actions: ['patch'], exclusive: true });
    expect(ns.lease(reserving).entries[1]).toMatchObject({ resource: 'dns/y', exclusive: false });
  });

  it('those that are over are left alone', () => {
    const ns = new Namespace().runs('a');
    const ended = ns.hold('a', leased('doc/x'));
    ns.release(ended);
    const past = ns.hold('a', leased('doc/y'));
    ns.advance(61 * SECOND);
    ns.putMap(TIED);
    expect(ns.kinds).toEqual(['conflict_map_put']);
    expect(ns.lease(past).generation).toBe(1);
  });

  it('a map that changes nothing for anybody writes one event', () => {
    const ns = new Namespace().runs('a');
    ns.hold('a', leased('deployment/eu'));
    expect(ns.putMap({ ...DOCUMENT }).affected).toEqual([]);
    expect(ns.kinds).toEqual(['conflict_map_put']);
  });
});

describe('pairs of live leases that are now in conflict', () => {
  const pair = () => {
    const ns = new Namespace().runs('a', 'b');
    const older = ns.hold('a', leased('doc/x'));
    ns.advance(SECOND);
    const newer = ns.hold('b', leased('dns/x'));
    return { ns, older, newer };
  };

  it.each([
    ['an implied entry', TIED],
    ['a rule that ties them', APART],
  ])('refuse: the map is refused and nothing changes (%s)', (_, document) => {
    const { ns, older, newer } = pair();
    const before = digestOf(ns.state);
    const pairs = [older.leaseId, newer.leaseId].sort().join('+');
    expect(() => ns.putMap(document)).toThrow(
      expect.objectContaining({ reason: 'LIVE_CONFLICT', details: { metadata: { pairs, pair_count: '1' } } }),
    );
    expect(digestOf(ns.state)).toBe(before);
  });

  it.each([
    ['an implied entry', TIED],
    ['a rule that ties them', APART],
  ])('revoke_newer: the newer of a pair ends, by MAP_CHANGED (%s)', (_, document) => {
    const { ns, older, newer } = pair();
    const { affected } = ns.putMap(document, 'revoke_newer');
    expect(ns.lease(newer)).toMatchObject({ state: 'ended', endReason: 'map_changed' });
    expect(ns.lease(older).state).toBe('active');
    expect(affected.map(({ leaseId, conflictsWith, ended }) => [leaseId, conflictsWith, ended])).toEqual([
      [older.leaseId, [newer.leaseId], false],
      [newer.leaseId, [older.leaseId], true],
    ]);
    expect(ns.check(newer, {}).results[0]?.reason).toBe('map_changed');
  });

  it('revoke_newer: what holds a part of a lease, or waits for one, ends with it, and is told', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.run('child', { principal: 'principal-of-b', parentRunId: 'b' });
    ns.hold('a', leased('doc/x'));
    ns.advance(SECOND);
    const newer = ns.hold('b', leased('dns/x'), leased('doc/y'), leased('loc/z'));
    const part = ns.granted(ns.acquire('child', [leased('doc/y')], { of: newer }));
    const waiting = ns.waiting(ns.acquire('child', [leased('loc/z')], { of: newer, wait: 600 * SECOND }));
    const { affected } = ns.putMap(APART, 'revoke_newer');
    const ended = affected.filter((lease) => lease.ended).map(({ leaseId }) => leaseId);
    expect(ended.sort()).toEqual([newer, part, waiting].map(({ leaseId }) => leaseId).sort());
    for (const lease of [part, waiting]) expect(ns.lease(lease).endReason).toBe('parent_ended');
  });

  it('revoke_newer: a request that its end lets be decided, and the new map refuses, is told with the reason', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.advance(SECOND);
    ns.hold('b', leased('dns/x'));
    const waiting = ns.queue('c', leased('dns/x'));
    const closed = (APART.kinds ?? []).map((kind) =>
      kind.pattern === 'dns/{env}' ? { ...kind, authority: 'forbid' as const } : kind,
    );
    const { affected } = ns.putMap({ ...APART, kinds: closed }, 'revoke_newer');
    expect(ns.lease(waiting).endReason).toBe('refused');
    const told = affected.find(({ leaseId }) => leaseId === waiting.leaseId);
    expect(told).toMatchObject({ ended: true, noLongerGranted: expect.stringContaining('closed to automated writes') });
  });

  it('revoke_newer: of a chain only those that must go', () => {
    const document: ConflictMapDocument = {
      ...DOCUMENT,
      implies: [],
      conflicts: [{ between: ['doc/1', 'doc/2'] }, { between: ['doc/2', 'doc/3'] }],
    };
    const ns = new Namespace().runs('a', 'b', 'c');
    const leases = ['a', 'b', 'c'].map((runId, index) => ns.hold(runId, leased(`doc/${index + 1}`)));
    ns.putMap(document, 'revoke_newer');
    expect(leases.map((lease) => ns.lease(lease).state)).toEqual(['active', 'ended', 'active']);
  });

  it('keep_until_end: both run to their end, and nobody else gets in between', () => {
    const { ns, older, newer } = pair();
    ns.run('c');
    const { affected } = ns.putMap(APART, 'keep_until_end');
    expect([ns.lease(older).state, ns.lease(newer).state]).toEqual(['active', 'active']);
    expect(affected.map((lease) => [lease.leaseId, lease.conflictsWith])).toEqual([
      [older.leaseId, [newer.leaseId]],
      [newer.leaseId, [older.leaseId]],
    ]);
    ns.release(newer);
    expect(ns.refused(ns.acquire('b', [leased('dns/x')])).kind).toBe('held');
  });

  it('leases of one run do not conflict with each other', () => {
    const ns = new Namespace().runs('a');
    ns.hold('a', leased('doc/x'));
    ns.hold('a', leased('dns/x'));
    ns.putMap(APART);
    expect(ns.state.mapVersion).toBe(2);
  });

  it('an expired lease is in nobody’s way', () => {
    const { ns } = pair();
    ns.advance(61 * SECOND);
    ns.putMap(TIED);
    expect(ns.state.mapVersion).toBe(2);
  });

  it('what the newer one held is granted to those who waited for it, on the new map', () => {
    const { ns } = pair();
    ns.runs('c', 'd');
    const reader = ns.queue('c', stable('dns/x'));
    const writer = ns.queue('d', leased('dns/x'));
    ns.putMap(APART, 'revoke_newer');
    expect(ns.lease(reader).state).toBe('active');
    expect(ns.lease(writer).state).toBe('waiting');
  });
});

describe('what is only observed (C14)', () => {
  /** Whoever writes `doc/{id}` touches `obs/{id}`, of which nothing is refused. */
  const observed: ConflictMapDocument = {
    ...DOCUMENT,
    implies: [
      {
        when: { pattern: 'doc/{id}', access: 'write' },
        touches: [{ resource: 'obs/{id}', access: 'write', actions: ['replace'] }],
      },
    ],
  };

  it('is no live conflict: it is recorded on the entry, which takes no lock', () => {
    const ns = new Namespace().runs('a', 'b');
    ns.hold('a', leased('obs/x'));
    const lease = ns.hold('b', leased('doc/x'));
    ns.putMap(observed);
    const added = ns.lease(lease).entries.find((entry) => entry.resource === 'obs/x');
    expect(added).toMatchObject({ mode: 'observe', observedRefusal: 'held' });
    expect(locksIn(ns.state.held).some((line) => line.includes(' obs/x ') && line.includes(lease.leaseId))).toBe(false);
  });
});

describe('a request that waits for what a rule brings, when the rule goes (P9)', () => {
  it('waits for it no more, and keeps nobody from it', () => {
    const ns = new Namespace(TIED).runs('a', 'b', 'c', 'd');
    ns.hold('a', leased('dns/x'));
    const one = ns.queue('b', leased('doc/x'));
    ns.hold('c', leased('doc/y'));
    const both = ns.queue('b', leased('doc/y'));
    const behind = ns.queue('d', leased('dns/y'));
    ns.putMap(DOCUMENT);
    expect(ns.lease(one)).toMatchObject({ state: 'active', entries: [{ resource: 'doc/x' }] });
    // The holder keeps what the rule had brought it; only who waits asks for less.
    expect([both, behind].map((lease) => ns.lease(lease).state)).toEqual(['waiting', 'waiting']);
    expect(locksIn(ns.state.queued).filter((lock) => lock.includes('dns/y'))).toHaveLength(1);
  });

  it('nor for what a rule of conflicts kept apart', () => {
    const ns = new Namespace(APART).runs('a', 'b');
    ns.hold('a', leased('dns/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    ns.putMap({ ...DOCUMENT, conflicts: [] });
    expect(ns.lease(waiting)).toMatchObject({ state: 'active', ruleLocks: [] });
  });

  it('is not written again where only the number of its rule changed', () => {
    const ns = new Namespace(TIED).runs('a', 'b');
    ns.hold('a', leased('doc/x'));
    const waiting = ns.queue('b', leased('doc/x'));
    const before = { when: { pattern: 'dns/{env}' }, touches: [{ resource: 'obs/{env}', access: 'read' as const }] };
    ns.putMap({ ...TIED, implies: [{ ...before, when: { pattern: 'image-tag/{env}' } }, ...(IMPLIED ?? [])] });
    expect(ns.lease(waiting)).toEqual(waiting);
  });
});

describe('two leases of one run that a rule brings one resource', () => {
  const SHARED: ConflictMapDocument = {
    ...DOCUMENT,
    implies: [
      {
        when: { pattern: 'doc/{id}', access: 'write' },
        touches: [{ resource: 'dns/all', access: 'write', actions: ['replace'] }],
      },
    ],
  };

  it('the older has the authority, so that a guard never sees two tokens of one holder (P2)', () => {
    const ns = new Namespace().runs('a', 'b');
    const older = ns.hold('a', leased('doc/x'));
    ns.advance(SECOND);
    const newer = ns.hold('a', leased('doc/y'));
    ns.renew(older);
    ns.putMap(SHARED);
    const write = { resource: 'dns/all', action: 'replace' };
    const reason = (lease: typeof older) =>
      ns.check(lease, { ...write, token: tokenOn(ns.lease(lease), 'dns/all') }).results[0]?.reason;
    expect([reason(older), reason(newer)]).toEqual(['ok', 'action_not_allowed']);
    // Both keep the others away from it.
    expect(ns.amend(newer, { add: [leased('dns/all')] })).toMatchObject({ refusal: { kind: 'already_held' } });
    ns.release(older);
    expect(ns.refused(ns.acquire('b', [leased('dns/all')])).kind).toBe('held');
    ns.amended(newer, { add: [leased('dns/all')] });
    expect(reason(newer)).toBe('ok');
    ns.release(newer);
    ns.hold('b', leased('dns/all'));
  });

  it('nor the one that is brought it where the other had it all along, below a subtree too', () => {
    for (const held of [leased('dns/all'), optimistic('dns/all'), stable('dns/all'), leased('dns/')]) {
      const ns = new Namespace().runs('a');
      const older = ns.hold('a', leased('doc/y'));
      ns.advance(SECOND);
      const all = ns.hold('a', held);
      ns.putMap(SHARED);
      expect(ns.lease(older).entries[1]).toMatchObject({ resource: 'dns/all', actions: [] });
      expect(ns.lease(all)).toEqual(all);
    }
  });

  it('of a kind that is only observed it is recorded (C14)', () => {
    const ns = new Namespace().runs('a');
    ns.hold('a', leased('doc/x'));
    ns.advance(SECOND);
    const newer = ns.hold('a', leased('doc/y'));
    const touches = [{ resource: 'obs/all', access: 'write' as const, actions: ['replace'] }];
    ns.putMap({ ...DOCUMENT, implies: [{ when: { pattern: 'doc/{id}', access: 'write' }, touches }] });
    expect(ns.lease(newer).entries[1]).toMatchObject({ resource: 'obs/all', observedRefusal: 'already_held' });
  });
});

describe('a request that waits for a kind that is enforced from now on, or only observed (C14, P9)', () => {
  const turned = (mode: 'observe' | 'enforce'): ConflictMapDocument => ({
    ...DOCUMENT,
    kinds: (DOCUMENT.kinds ?? []).map((kind) => (kind.pattern === 'obs/{id...}' ? { ...kind, mode } : kind)),
  });

  it('stands before those who ask for it later', () => {
    const ns = new Namespace().runs('a', 'b', 'c', 'd');
    ns.hold('a', leased('doc/x'));
    const holder = ns.hold('b', leased('obs/x'));
    const first = ns.queue('c', leased('doc/x'), leased('obs/x'));
    ns.putMap(turned('enforce'));
    const second = ns.queue('d', leased('obs/x'));
    ns.release(holder);
    expect([ns.lease(first).state, ns.lease(second).state]).toEqual(['waiting', 'waiting']);
    expect(ns.told(second).ahead).toBe(1);
  });

  it('waits no more for what is only observed, and keeps nobody waiting', () => {
    const ns = new Namespace(turned('enforce')).runs('a', 'b', 'c', 'd');
    ns.hold('a', leased('doc/x'));
    ns.hold('b', stable('obs/x'));
    const both = ns.queue('c', leased('doc/x'), leased('obs/x'));
    const one = ns.queue('c', leased('obs/x'));
    const behind = ns.queue('d', stable('obs/x'), stable('doc/y'));
    ns.putMap(turned('observe'));
    expect([both, one, behind].map((lease) => ns.lease(lease).state)).toEqual(['waiting', 'active', 'active']);
    expect(ns.lease(one).entries[0]).toMatchObject({ mode: 'observe', observedRefusal: 'held' });
  });
});

describe('preview', () => {
  it('tells what a change would hit and whether it would be accepted, and changes nothing', () => {
    const ns = new Namespace().runs('a', 'b');
    const one = ns.hold('a', leased('doc/x'));
    const other = ns.hold('b', leased('dns/x'));
    const before = digestOf(ns.state);
    const preview = (onLiveConflict: OnLiveConflict, document = APART) =>
      previewPutMap(new Decision(overlay(ns.state), ns.now, 'test', ns.bounds), command(document, 99, onLiveConflict));
    expect(preview('refuse').accepted).toBe(false);
    expect(preview('refuse').affected.map((lease) => lease.leaseId)).toEqual([one.leaseId, other.leaseId]);
    expect(preview('keep_until_end').accepted).toBe(true);
    expect(preview('revoke_newer').affected.map((lease) => lease.ended)).toEqual([false, true]);
    expect(preview('refuse', DOCUMENT)).toEqual({ accepted: true, affected: [] });
    expect(digestOf(ns.state)).toBe(before);
  });
});

describe('a map that makes runs wait for each other (P9)', () => {
  /** `a` holds `doc/x` and waits for `doc/y`; `b` holds `doc/y` and waits for what `c` holds. */
  const setting = () => {
    const ns = new Namespace().runs('a', 'b', 'c', 'd');
    ns.hold('a', leased('doc/x'));
    ns.hold('b', leased('doc/y'));
    const other = ns.hold('c', leased('dns/x'));
    const older = ns.queue('a', leased('doc/y'));
    const newer = ns.queue('b', leased('dns/x'));
    return { ns, older, newer, other };
  };
  const refusals = (ns: Namespace) => ns.last.flatMap(({ body }) => (body.kind === 'lease_ended' ? [{ ...body }] : []));

  it('ends the newest request of the cycle as refused, and says the cycle', () => {
    const { ns, newer, older } = setting();
    const implies = [
      {
        when: { pattern: 'dns/{id}', access: 'write' as const },
        touches: [{ resource: 'doc/{id}', access: 'write' as const, actions: ['replace'] }],
      },
    ];
    const { affected } = ns.putMap({ ...DOCUMENT, implies }, 'keep_until_end');
    expect(refusals(ns)).toMatchObject([{ leaseId: newer.leaseId, endReason: 'refused' }]);
    expect(refusals(ns)[0]?.reason).toContain('b → a → b');
    expect(affected.find(({ leaseId }) => leaseId === newer.leaseId)).toMatchObject({ ended: true });
    expect(ns.lease(older).state).toBe('waiting');
  });

  it('also when only what is held has changed', () => {
    const { ns, newer } = setting();
    const implies = [
      {
        when: { pattern: 'doc/x', access: 'write' as const },
        touches: [{ resource: 'dns/x', access: 'write' as const, actions: ['replace'] }],
      },
    ];
    const { affected } = ns.putMap({ ...DOCUMENT, implies }, 'keep_until_end');
    expect(ns.lease(newer)).toMatchObject({ state: 'ended', endReason: 'refused' });
    expect(affected.find(({ leaseId }) => leaseId === newer.leaseId)).toMatchObject({
      ended: true,
      noLongerGranted: expect.stringContaining('b → a → b'),
    });
  });

  it('and nobody stays behind a request that waits for it from now on', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    ns.hold('c', leased('doc/z'));
    const ahead = ns.queue('b', leased('doc/z'), leased('dns/x'));
    const behind = ns.queue('a', leased('dns/x'));
    // Whoever writes z writes x: so b waits for a, and a no more for b's place.
    const implies = [
      {
        when: { pattern: 'doc/z', access: 'write' as const },
        touches: [{ resource: 'doc/x', access: 'write' as const, actions: ['replace'] }],
      },
    ];
    ns.putMap({ ...DOCUMENT, implies }, 'keep_until_end');
    expect([ns.lease(ahead).state, ns.lease(behind).state]).toEqual(['waiting', 'active']);
  });

  it('but nobody who only passes those that wait for it', () => {
    const ns = new Namespace().runs('a', 'b', 'c');
    ns.hold('a', leased('doc/x'));
    const other = ns.hold('c', leased('doc/y'));
    const first = ns.queue('b', leased('doc/x'), leased('doc/z'));
    const second = ns.queue('a', leased('doc/y'), leased('doc/z'));
    ns.putMap(TIED);
    expect(refusals(ns)).toEqual([]);
    ns.release(other);
    expect([ns.lease(first).state, ns.lease(second).state]).toEqual(['waiting', 'active']);
  });
});

describe('the place of a rule among the rules', () => {
  const rule = { between: ['service-token/{tenant}', 'integration-config/{tenant}'] as [string, string] };
  const other = { between: ['dns/{tenant}', 'image-tag/{tenant}'] as [string, string] };
  const tag = { ...leased('image-tag/acme'), actions: ['set'] };

  it.each(['refuse', 'revoke_newer'] as const)('may change without any lease being touched by it: %s', (how) => {
    const ns = new Namespace({ ...DOCUMENT, conflicts: [rule] }).runs('a', 'b', 'c');
    ns.hold('a', leased('service-token/acme'));
    ns.hold('b', tag);
    const next: ConflictMapDocument = { ...DOCUMENT, conflicts: [other, rule] };
    const { affected } = ns.decide((decision) => decidePutMap(decision, command(next, ns.state.mapVersion, how)));
    expect(affected.filter(({ ended, conflictsWith }) => ended || conflictsWith.length > 0)).toEqual([]);
    expect(ns.acquire('c', [leased('integration-config/acme')])).toMatchObject({ refusal: { kind: 'held' } });
    expect(ns.acquire('c', [leased('dns/acme')])).toMatchObject({ refusal: { kind: 'held' } });
    expect(ns.acquire('c', [leased('integration-config/other')]).kind).toBe('lease');
  });
});
