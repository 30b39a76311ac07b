import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyTimes } from '../../src/clients/target/idempotency.js';
import {
  type FingerprintedRequest,
  fingerprintOf,
  readIdempotencyKey,
} from '../../src/clients/target/idempotency-key.js';
import { decideOnKey, isResult, type KeyRecord } from '../../src/clients/target/idempotency-record.js';

const codeOf = (read: () => unknown): unknown => {
  try {
    return read();
  } catch (error) {
    return (error as { problem?: { status: number; code: string } }).problem?.code;
  }
};

describe('Idempotency-Key', () => {
  it.each([
    ['"8e03978e-40d5-43dd-bc93-6894a57f9324"', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
    ['8e03978e-40d5-43dd-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324'],
    [' "a b" ', 'a b'],
    ['"a\\"b\\\\c"', 'a"b\\c'],
    ['invoice:create:order-841:v1', 'invoice:create:order-841:v1'],
    ['x'.repeat(255), 'x'.repeat(255)],
  ])('%j is the key %j', (header, key) => {
    expect(readIdempotencyKey(header)).toBe(key);
  });

  it.each(['', '""', '"a', 'a"b', '"a"; x=1', 'a b', 'a, b', '"a", "b"', '"a\\b"', '"\u00e9"', 'x'.repeat(256)])(
    '%j is none',
    (header) => {
      expect(codeOf(() => readIdempotencyKey(header))).toBe('malformed_idempotency_key');
    },
  );

  it('is required', () => {
    expect(codeOf(() => readIdempotencyKey(undefined))).toBe('idempotency_key_required');
  });
});

describe('the fingerprint', () => {
  const json = (text: string): FingerprintedRequest => ({
    method: 'PUT',
    path: '/policies/1?dry=1',
    ifMatch: '"41"',
    contentType: 'application/json; charset=utf-8',
    body: new TextEncoder().encode(text),
  });
  const base = json('{"a":1,"b":[1,2]}');

  it('is the same for the same JSON in other words, read or parsed', () => {
    expect(fingerprintOf(json('{ "b": [1, 2.0],\n "a": 1e0 }'))).toBe(fingerprintOf(base));
    expect(fingerprintOf({ ...base, body: { b: [1, 2], a: 1 } })).toBe(fingerprintOf(base));
  });

  it.each([
    ['method', { method: 'POST' }],
    ['path', { path: '/policies/2?dry=1' }],
    ['query', { path: '/policies/1' }],
    ['precondition', { ifMatch: '"42"' }],
    ['kind of precondition', { ifMatch: undefined, ifNoneMatch: '"41"' }],
    ['body', { body: new TextEncoder().encode('{"a":1,"b":[2,1]}') }],
    ['presence of a body', { body: undefined }],
  ])('differs with the %s', (_what, change) => {
    expect(fingerprintOf({ ...base, ...change })).not.toBe(fingerprintOf(base));
  });

  it('counts what is no JSON byte by byte', () => {
    const bytes = (text: string, contentType = 'text/plain') => fingerprintOf({ ...json(text), contentType });
    expect(bytes('{"a":1}')).not.toBe(bytes('{ "a":1}'));
    expect(bytes('{"a":1}')).toBe(bytes('{"a":1}'));
    expect(fingerprintOf(json('{"a":'))).not.toBe(fingerprintOf(json('{"a": ')));
    expect(() => fingerprintOf(json('['.repeat(200_000)))).not.toThrow();
    expect(() => fingerprintOf(json(`${'['.repeat(200_000)}${']'.repeat(200_000)}`))).not.toThrow();
  });

  it('tells any two JSON values apart that differ, and no two that do not', () => {
    const value = fc.jsonValue({ maxDepth: 3 });
    const parsed = (given: unknown): unknown => JSON.parse(JSON.stringify(given));
    const shuffled = (given: unknown): unknown => {
      if (given === null || typeof given !== 'object') return given;
      if (Array.isArray(given)) return given.map(shuffled);
      const entries = Object.entries(given).map(([name, member]) => [name, shuffled(member)] as const);
      return Object.fromEntries(entries.reverse());
    };
    fc.assert(
      fc.property(value, value, (a, b) => {
        const of = (body: unknown) => fingerprintOf({ ...base, body });
        expect(of(shuffled(parsed(a)))).toBe(of(parsed(a)));
        let same = true;
        try {
          expect(parsed(a)).toEqual(parsed(b));
        } catch {
          same = false;
        }
        expect(of(parsed(a)) === of(parsed(b))).toBe(same);
      }),
    );
  });
});

describe('what is under a key', () => {
  const answer = { status: 201, headers: {}, body: new Uint8Array(), complete: true };
  const records: readonly [KeyRecord, string][] = [
    [{ state: 'in_flight', fingerprint: 'f', attempt: 'a', leaseLeftMs: 4_200 }, 'idempotency_in_flight'],
    [{ state: 'in_flight', fingerprint: 'f', attempt: 'a', leaseLeftMs: 0 }, 'lapsed'],
    [{ state: 'finished', fingerprint: 'f', answer }, 'answer'],
    [{ state: 'finished', fingerprint: 'f', answer: { ...answer, complete: false } }, 'answer_not_kept'],
    [{ state: 'unknown', fingerprint: 'f' }, 'outcome_unknown'],
  ];

  it.each(records)('%j: %s; to another request: reused', (record, expected) => {
    const decided = (fingerprint: string) => {
      const decision = decideOnKey(record, fingerprint);
      return decision.kind === 'refuse' ? decision.error.problem.code : decision.kind;
    };
    expect([decided('f'), decided('g')]).toEqual([expected, 'idempotency_key_reused']);
  });

  it('says when to ask again, soon', () => {
    const waits = [1, 4_200, 60_000].map((leaseLeftMs) => {
      const decision = decideOnKey({ state: 'in_flight', fingerprint: 'f', attempt: 'a', leaseLeftMs }, 'f');
      return decision.kind === 'refuse' ? decision.error.problem.retry_after : undefined;
    });
    expect(waits).toEqual([1, 5, 5]);
  });

  it('is the result of a request, not a "not now" or "not you"', () => {
    expect([200, 201, 303, 400, 404, 412, 422].filter((status) => !isResult(status))).toEqual([]);
    expect([401, 403, 408, 409, 413, 425, 428, 429, 500, 503].filter(isResult)).toEqual([]);
  });
});

it('retention is never shorter than an effect can be in doubt (W2)', () => {
  expect(() => keyTimes({ retentionMs: 3_599_999, inDoubtMs: 3_600_000 })).toThrow('retentionMs');
  expect(() => keyTimes({ retentionMs: 10, inDoubtMs: 10, leaseMs: 11 })).toThrow('leaseMs');
  expect(() => keyTimes({ retentionMs: Number.POSITIVE_INFINITY, inDoubtMs: 10 })).toThrow('retentionMs');
  expect(keyTimes({ retentionMs: 3_600_000, inDoubtMs: 3_600_000 }).leaseMs).toBe(60_000);
  expect(keyTimes({ retentionMs: 10_000, inDoubtMs: 10_000 }).leaseMs).toBe(10_000);
});
