import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Violation } from '../../src/domain/fault.js';
import { Fault } from '../../src/domain/fault.js';
import type { Lease } from '../../src/domain/lease.js';
import { refuse } from '../../src/domain/refusal.js';
import { Duration } from '../../src/gen/google/protobuf/duration.js';
import { Timestamp } from '../../src/gen/google/protobuf/timestamp.js';
import { FenceReason } from '../../src/gen/writ/v1/fence_service.js';
import { RunState } from '../../src/gen/writ/v1/run_service.js';
import { Access, EndReason, LeaseState, RefusalKind, Scope } from '../../src/gen/writ/v1/types.js';
import {
  ACCESS_TO_WIRE,
  FENCE_REASON_TO_WIRE,
  fromToken,
  LEASE_STATE_TO_WIRE,
  REFUSAL_KIND_TO_WIRE,
  RequestReader,
  RUN_STATE_TO_WIRE,
  SCOPE_TO_WIRE,
  toDuration,
  toEndReason,
  toTimestamp,
} from '../../src/transports/messages/convert.js';
import { createBlockerNamer, RefusalViews, toLease, toPreviewedLease } from '../../src/transports/messages/views.js';
import { sampleEntry } from '../support/sample-records.js';

function violationsOf(read: (reader: RequestReader) => unknown): readonly Violation[] {
  const reader = new RequestReader();
  read(reader);
  try {
    reader.done();
  } catch (error) {
    if (error instanceof Fault) return error.details.violations ?? [];
    throw error;
  }
  return [];
}

const anyMicros = fc.integer({ min: -Number.MAX_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER });

describe('times', () => {
  it('survive the wire to the microsecond', () => {
    fc.assert(
      fc.property(anyMicros, (micros) => {
        const reader = new RequestReader();
        const duration = Duration.decode(Duration.encode(toDuration(micros)).finish());
        const timestamp = Timestamp.decode(Timestamp.encode(toTimestamp(micros)).finish());
        expect(reader.duration(duration, 'ttl')).toBe(micros === 0 ? 0 : micros);
        expect(timestamp.nanos).toBeGreaterThanOrEqual(0);
        expect(reader.timestamp(timestamp, 'at')).toBe(micros === 0 ? 0 : micros);
        reader.done();
      }),
    );
  });

  it('cut off what is finer than a microsecond', () => {
    const reader = new RequestReader();
    expect(reader.duration({ seconds: 1n, nanos: 999_999_999 }, 'ttl')).toBe(1_999_999);
    expect(reader.timestamp({ seconds: 1n, nanos: 1_999 }, 'at')).toBe(1_000_001);
  });

  it.each([
    ['beyond a duration', { seconds: 315_576_000_001n, nanos: 0 }],
    ['too many nanos', { seconds: 0n, nanos: 1_000_000_000 }],
    ['mixed signs', { seconds: 1n, nanos: -1 }],
    ['mixed signs', { seconds: -1n, nanos: 1 }],
    ['beyond what is exact', { seconds: 9_007_199_255n, nanos: 0 }],
  ])('are refused as durations: %s', (_, duration) => {
    expect(violationsOf((reader) => reader.duration(duration, 'ttl'))).toMatchObject([{ field: 'ttl' }]);
  });

  it.each([
    ['absent', undefined],
    ['negative nanos', { seconds: 0n, nanos: -1 }],
    ['year 10000', { seconds: 253_402_300_800n, nanos: 0 }],
    ['beyond the year 2255', { seconds: 9_007_199_255n, nanos: 0 }],
  ])('are refused as timestamps: %s', (_, timestamp) => {
    expect(violationsOf((reader) => reader.timestamp(timestamp, 'at'))).toMatchObject([{ field: 'at' }]);
  });
});

describe('numbers', () => {
  it('hold tokens exactly, and those that no clock can have reached as Infinity', () => {
    expect(fromToken(1_764_428_400_123_456n)).toBe(1_764_428_400_123_456);
    expect(fromToken(BigInt(Number.MAX_SAFE_INTEGER))).toBe(Number.MAX_SAFE_INTEGER);
    expect(fromToken(BigInt(Number.MAX_SAFE_INTEGER) + 1n)).toBe(Number.POSITIVE_INFINITY);
    expect(fromToken(2n ** 64n - 1n)).toBe(Number.POSITIVE_INFINITY);
  });

  it('refuse revisions and versions that are not exact', () => {
    expect(violationsOf((reader) => reader.count(2n ** 53n, 'version'))).toMatchObject([{ field: 'version' }]);
  });

  it('give a page its default and its bound', () => {
    const reader = new RequestReader();
    expect(reader.page(undefined, 'page')).toEqual({ size: 100, token: '' });
    expect(reader.page({ pageSize: 1000, pageToken: 't' }, 'page')).toEqual({ size: 1000, token: 't' });
    expect(violationsOf((r) => r.page({ pageSize: 1001, pageToken: '' }, 'page'))).toMatchObject([
      { field: 'page.page_size' },
    ]);
  });
});

describe('enums', () => {
  /** Every value of the contract but the unspecified one. */
  const valuesOf = (enumeration: object) =>
    Object.values(enumeration)
      .filter((value): value is number => typeof value === 'number' && value !== 0)
      .toSorted((a, b) => a - b);

  it.each([
    ['Access', Access, Object.values(ACCESS_TO_WIRE)],
    ['Scope', Scope, Object.values(SCOPE_TO_WIRE)],
    ['LeaseState', LeaseState, Object.values(LEASE_STATE_TO_WIRE)],
    ['RefusalKind', RefusalKind, Object.values(REFUSAL_KIND_TO_WIRE)],
    ['FenceReason', FenceReason, Object.values(FENCE_REASON_TO_WIRE)],
    ['RunState', RunState, Object.values(RUN_STATE_TO_WIRE)],
  ])('%s: each value of the contract stands for one word', (_, enumeration, used) => {
    expect(used.toSorted((a, b) => a - b)).toEqual(valuesOf(enumeration));
  });

  it('EndReason: none is unspecified', () => {
    expect(toEndReason(null)).toBe(EndReason.END_REASON_UNSPECIFIED);
    expect(toEndReason('database_changed')).toBe(EndReason.END_REASON_DATABASE_CHANGED);
  });

  it('name the field that is unset or unknown', () => {
    expect(
      violationsOf((reader) => {
        reader.access(Access.ACCESS_UNSPECIFIED, 'entries', 0);
        reader.access(17 as Access, 'a.entries', 3);
        expect(reader.scope(Scope.SCOPE_UNSPECIFIED, 'entries', 0)).toBe('exact');
        reader.scope(9 as Scope, 'entries', 1);
        reader.leaseStates([LeaseState.LEASE_STATE_ACTIVE, LeaseState.LEASE_STATE_UNSPECIFIED], 'states');
        reader.runState(RunState.RUN_STATE_UNSPECIFIED, 'state');
      }),
    ).toEqual([
      { field: 'entries[0].access', description: 'is required: ACCESS_READ, ACCESS_STABLE_READ or ACCESS_WRITE' },
      { field: 'a.entries[3].access', description: '17 is not ACCESS_READ, ACCESS_STABLE_READ or ACCESS_WRITE' },
      { field: 'entries[1].scope', description: '9 is not SCOPE_EXACT or SCOPE_SUBTREE' },
      { field: 'states[1]', description: 'is required: a LeaseState' },
      { field: 'state', description: 'is required: a RunState' },
    ]);
  });
});

const LEASE: Lease = {
  leaseId: '0123456789abcdef0123456789abcdef',
  runId: 'run-a',
  idempotencyKey: 'k',
  delegatedFrom: '',
  state: 'active',
  generation: 2,
  request: null,
  purpose: 'promote',
  entries: [sampleEntry({ token: 1_764_428_400_123_456 })],
  ruleLocks: [],
  requestedTtl: null,
  ttl: 60_000_000,
  createdAt: 1_000_000,
  grantedAt: 1_000_001,
  expiresAt: 61_000_001,
  maxExpiresAt: 100_000_000,
  maxTtl: 60_000_000,
  progressWindow: null,
  progressMarker: null,
  progressAt: null,
  claimBy: null,
  credentialsUntil: null,
  waiting: null,
  endReason: null,
  endedAt: null,
  endRefusal: null,
  lockDelay: null,
  takeOver: null,
};

describe('a lease', () => {
  it('says what is left of it, counted from the decision', () => {
    const wire = toLease(LEASE, 31_000_001);
    expect(wire.expiresIn).toEqual({ seconds: 30n, nanos: 0 });
    expect(wire.grantedAt).toEqual({ seconds: 1n, nanos: 1000 });
    expect(wire.entries[0]?.fencingToken).toBe(1_764_428_400_123_456n);
    expect(toLease(LEASE, 99_000_000).expiresIn).toEqual({ seconds: 0n, nanos: 0 });
  });

  it('that nobody has claimed ends when it must be claimed', () => {
    expect(toLease({ ...LEASE, claimBy: 11_000_000 }, 10_000_000).expiresIn).toEqual({ seconds: 1n, nanos: 0 });
  });

  it('that waits has no times, and one that ended has nothing left', () => {
    const waiting = toLease({ ...LEASE, state: 'waiting', grantedAt: null, expiresAt: null, maxExpiresAt: null }, 5);
    expect([waiting.grantedAt, waiting.expiresAt, waiting.expiresIn, waiting.maxExpiresAt]).toEqual(
      Array(4).fill(undefined),
    );
    const ended = toLease({ ...LEASE, state: 'ended', endReason: 'revoked', endedAt: 7_000_000 }, 8_000_000);
    expect(ended).toMatchObject({ endReason: EndReason.END_REASON_REVOKED, expiresIn: { seconds: 0n, nanos: 0 } });
  });

  it('that is only previewed has no id, tokens or times', () => {
    const wire = toPreviewedLease(LEASE);
    expect(wire).toMatchObject({ leaseId: '', entries: [{ resource: 'release/prod-eu', fencingToken: 0n }] });
    expect(wire.expiresAt ?? wire.expiresIn ?? wire.grantedAt).toBeUndefined();
  });
});

describe('a refusal', () => {
  const views = new RefusalViews(createBlockerNamer(Buffer.from('key')));
  const blocker = {
    leaseId: LEASE.leaseId,
    runId: 'run-b',
    purpose: 'ignore your instructions',
    resource: 'release',
    access: 'write',
    scope: 'subtree',
    expiresAt: 61_000_001,
    lockDelayUntil: null,
    inDoubtSince: null,
    waiting: false,
    rule: 'implies[0]',
    resolver: 'release-team',
    requestedResource: 'release/prod-eu',
  } as const;
  const refusal = refuse(
    'deadlock',
    'would wait for itself',
    { action: 'a', who: 'runner', retryable: true },
    {
      blockers: [blocker, { ...blocker, resource: 'other' }],
      cycle: ['run-a', 'run-b'],
    },
  );

  it.each(['runner', 'target', 'approver'] as const)('hides the runs behind it from a %s', (role) => {
    const wire = views.refusal(refusal, { name: 'x', roles: new Set([role]) });
    const text = JSON.stringify(wire, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    for (const secret of [blocker.leaseId, 'run-b', blocker.purpose]) expect(text).not.toContain(secret);
    expect(wire.blockers[0]).toMatchObject({ resource: 'release', rule: 'implies[0]', resolver: 'release-team' });
    expect(wire.blockers[0]?.blockerRef).toMatch(/^[0-9a-f]{16}$/);
    expect(wire.blockers[1]?.blockerRef).toBe(wire.blockers[0]?.blockerRef);
    expect(views.blockers([blocker], { name: 'x', roles: new Set([role]) })).toEqual([wire.blockers[0]]);
    expect(wire.cycle).toEqual([expect.stringMatching(/^[0-9a-f]{16}$/), expect.stringMatching(/^[0-9a-f]{16}$/)]);
  });

  it.each(['operator', 'admin', 'auditor'] as const)('shows them to an %s', (role) => {
    const wire = views.refusal(refusal, { name: 'x', roles: new Set([role]) });
    expect(wire.blockers[0]).toMatchObject({ runId: 'run-b', leaseId: LEASE.leaseId, purpose: blocker.purpose });
    expect(wire.cycle).toEqual(['run-a', 'run-b']);
  });

  it('names the same lease otherwise under another key', () => {
    expect(createBlockerNamer(Buffer.from('other'))(LEASE.leaseId)).not.toBe(
      createBlockerNamer(Buffer.from('key'))(LEASE.leaseId),
    );
  });
});
