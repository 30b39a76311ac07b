import { createHash } from 'node:crypto';
import canonicalizeModule from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GENESIS_HASH, type HashedEvent, hashEvent } from '../../src/engine/hash-chain.js';

const canonicalize = canonicalizeModule as unknown as (value: unknown) => string | undefined;

// Whole code points, so no half pairs, but everything else that JSON escapes or does not.
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('', '\u2028"\\/\b\f\n\r\t\u0000\u001f\u007f', '\u{1f600}é', '__proto__', '{"a":1}'),
);
const integer = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const hex = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString('hex'));

const event: fc.Arbitrary<HashedEvent> = fc.record({
  namespace: text,
  revision: integer,
  time: integer,
  batchId: text,
  kind: text,
  bodyVersion: integer,
  actor: text,
  runId: text,
  leaseId: text,
  resources: fc.array(text, { maxLength: 4 }),
  requestIds: fc.array(text, { maxLength: 4 }),
  body: text,
  prevHash: hex,
});

/** The words of the contract, by the library. */
function specified(e: HashedEvent): string {
  const canonical = canonicalize({
    namespace: e.namespace,
    revision: e.revision,
    time: e.time,
    batch_id: e.batchId,
    kind: e.kind,
    body_version: e.bodyVersion,
    actor: e.actor,
    run_id: e.runId,
    lease_id: e.leaseId,
    resources: e.resources,
    request_ids: e.requestIds,
    body: e.body,
  });
  const bytes = Buffer.concat([Buffer.from(e.prevHash, 'hex'), Buffer.from(canonical ?? '', 'utf8')]);
  return createHash('sha256').update(bytes).digest('hex');
}

const SAMPLE: HashedEvent = {
  namespace: 'default',
  revision: 1,
  time: 1_764_425_000_123_456,
  batchId: '00000000-0000-4000-8000-000000000001',
  kind: 'namespace_created',
  bodyVersion: 1,
  actor: 'system',
  runId: '',
  leaseId: '',
  resources: [],
  requestIds: [],
  body: '{"name":"default"}',
  prevHash: GENESIS_HASH,
};

describe('hashEvent', () => {
  it('is what the contract says, whatever the event (against the library canonicalize)', () => {
    fc.assert(fc.property(event, (e) => hashEvent(e) === specified(e)));
  });

  // Computed by Python's hashlib and json.
  it('does not change from release to release', () => {
    expect(hashEvent(SAMPLE)).toBe('514b9eedb5dbe2ac958628e479073c685e2c3bc0dcdec621d7261920d90885ac');
  });

  it('tells two events apart that differ in any one column', () => {
    fc.assert(
      fc.property(event, fc.constantFrom(...(Object.keys(SAMPLE) as (keyof HashedEvent)[])), event, (a, column, b) => {
        fc.pre(JSON.stringify(a[column]) !== JSON.stringify(b[column]));
        expect(hashEvent({ ...a, [column]: b[column] })).not.toBe(hashEvent(a));
      }),
    );
  });

  it('does not let text move from one column or list element to another', () => {
    expect(hashEvent({ ...SAMPLE, runId: 'ab', leaseId: 'c' })).not.toBe(
      hashEvent({ ...SAMPLE, runId: 'a', leaseId: 'bc' }),
    );
    expect(hashEvent({ ...SAMPLE, resources: ['a', 'b'] })).not.toBe(hashEvent({ ...SAMPLE, resources: ['a,b'] }));
    expect(hashEvent({ ...SAMPLE, resources: ['a'] })).not.toBe(hashEvent({ ...SAMPLE, requestIds: ['a'] }));
  });

  it.each([
    ['a half surrogate pair', { actor: '\ud800' }],
    ['one in a list', { resources: ['ok', '\udc00x'] }],
    ['a fraction', { time: 0.5 }],
    ['a number beyond 2^53', { revision: 2 ** 53 }],
    ['NaN', { bodyVersion: Number.NaN }],
    ['a short hash', { prevHash: 'ab' }],
    ['an upper-case hash', { prevHash: 'A'.repeat(64) }],
  ])('refuses %s', (_name, change) => {
    expect(() => hashEvent({ ...SAMPLE, ...change })).toThrow(RangeError);
  });
});
