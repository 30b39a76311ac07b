import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { duration, fencingToken, moment, parameter, wholeNumber } from '../../src/cli/arguments.js';
import { AcquireWriteSetResponse } from '../../src/gen/writ/v1/lease_service.js';
import { Access, LeaseState, Scope } from '../../src/gen/writ/v1/types.js';
import { cli } from '../support/cli.js';

describe('values', () => {
  it.each([
    ['500ms', 500],
    ['10s', 10_000],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['2d', 172_800_000],
    ['0s', 0],
  ])('%s lasts %d ms', (text, ms) => {
    expect(duration(text)).toBe(ms);
  });

  it.each(['', '10', 's', '1.5s', '-1s', '10 s', '1h 2m', '1y', '10S'])('%j is no duration', (text) => {
    expect(() => duration(text)).toThrow('duration');
  });

  it.each([
    ['2026-12-01T10:00:00Z', 1_796_119_200_000_000],
    ['2026-12-01T12:00+02:00', 1_796_119_200_000_000],
  ])('%s is a moment', (text, micros) => {
    expect(moment(text)).toBe(micros);
  });

  it.each(['', 'tomorrow', '2026-12-01', '2026-12-01T10:00:00', '2026-13-01T10:00:00Z'])('%j is no moment', (text) => {
    expect(() => moment(text)).toThrow('time');
  });

  it('takes tokens of 64 bits exactly', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (token) => fencingToken(token.toString()) === token),
    );
    for (const text of ['', '-1', '1e3', '18446744073709551616', '0x10']) expect(() => fencingToken(text)).toThrow();
  });

  it('keeps what comes after the first = of a parameter', () => {
    expect(parameter('a=b=c', { x: 'y' })).toEqual({ x: 'y', a: 'b=c' });
    expect(parameter('a=')).toEqual({ a: '' });
    expect(() => parameter('=b')).toThrow();
    expect(() => parameter('ab')).toThrow();
    expect(() => wholeNumber(1)('0')).toThrow();
  });
});

async function asked(args: readonly string[], stdin?: string) {
  const acquireWriteSet = vi.fn(async (_request: object) =>
    AcquireWriteSetResponse.fromPartial({
      outcome: { $case: 'lease', value: { state: LeaseState.LEASE_STATE_ACTIVE } },
    }),
  );
  const { code, stderr } = await cli(['lease', 'acquire', '--run', 'r', ...args], {
    client: { lease: { acquireWriteSet } },
    ...(stdin === undefined ? {} : { stdin }),
  });
  return { code, stderr, request: acquireWriteSet.mock.lastCall?.[0] as Record<string, unknown> | undefined };
}

describe('a write set', () => {
  it('is said by resources, and by what comes after each', async () => {
    const { request } = await asked([
      '--access',
      'stable_read',
      '--resource',
      'a',
      '--resource',
      'b',
      '--access',
      'write',
      '--action',
      'x',
      '--action',
      'y',
      '--subtree',
      '--resource',
      'c',
      '--observed-version',
      '7',
    ]);
    expect(request).toMatchObject({
      runId: 'r',
      entries: [
        { resource: 'a', access: Access.ACCESS_STABLE_READ, scope: Scope.SCOPE_EXACT, actions: [] },
        { resource: 'b', access: Access.ACCESS_WRITE, scope: Scope.SCOPE_SUBTREE, actions: ['x', 'y'] },
        { resource: 'c', access: Access.ACCESS_STABLE_READ, scope: Scope.SCOPE_EXACT, observedVersion: '7' },
      ],
    });
  });

  it('is a write to exactly the resource unless said otherwise', async () => {
    expect((await asked(['--resource', 'a'])).request).toMatchObject({
      entries: [{ access: Access.ACCESS_WRITE, scope: Scope.SCOPE_EXACT, actions: [] }],
    });
  });

  it('is said by a task, by a resource set, or by a list of entries', async () => {
    expect((await asked(['--task', 't', '--param', 'a=1', '--param', 'b=2'])).request).toMatchObject({
      entries: [],
      task: { name: 't', parameters: { a: '1', b: '2' } },
    });
    expect((await asked(['--resource-set', 's'])).request).toMatchObject({ resourceSet: 's' });
    const { request } = await asked(
      ['--entries', '-'],
      JSON.stringify([{ resource: 'a', access: 'read', observedVersion: 'v' }]),
    );
    expect(request).toMatchObject({ entries: [{ resource: 'a', access: Access.ACCESS_READ, observedVersion: 'v' }] });
  });

  it.each(['', 'no', '{}', '[{"resource":1}]', '[{"resource":"a","frob":1}]', '[{"resource":"a","access":"own"}]'])(
    'is no list of entries: %j',
    async (stdin) => {
      const { code, request } = await asked(['--entries', '-'], stdin);
      expect([code, request]).toEqual([2, undefined]);
    },
  );

  it('cannot have parameters without a task', async () => {
    expect((await asked(['--resource', 'a', '--param', 'a=1'])).code).toBe(2);
  });
});
