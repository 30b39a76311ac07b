import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { etagOf, readPrecondition } from '../../src/clients/target/conditional-precondition.js';

const versions = (ifMatch: string) => {
  const read = readPrecondition({ ifMatch });
  if (!read.ok) return read.flaw.code;
  return read.precondition.kind === 'versions' ? read.precondition.versions : 'absent';
};

describe('If-Match (RFC 9110)', () => {
  it.each([
    ['"41"', ['41']],
    ['"41", "42"', ['41', '42']],
    ['"41","42"', ['41', '42']],
    [' ,, "41" ,\t, "42" , ', ['41', '42']],
    ['"a,b"', ['a,b']],
    ['"W/41"', ['W/41']],
    ['""', ['']],
    ['"\u00e9"', ['\u00e9']],
  ])('%j names %j', (header, expected) => {
    expect(versions(header)).toEqual(expected);
  });

  it('takes weak tags for what never matches', () => {
    expect(versions('W/"41"')).toEqual([]);
    expect(versions('W/"41", "42"')).toEqual(['42']);
  });

  it.each([
    '41',
    '"41',
    '41"',
    "'41'",
    '"4 1"',
    '"41" "42"',
    '"41";x',
    'w/"41"',
    'W/ "41"',
    '"4"1"',
    '*, "41"',
    ',',
    '',
    'x'.repeat(9_000),
  ])('%j is malformed', (header) => {
    expect(versions(header)).toBe('malformed_precondition');
  });

  it('refuses * like a missing one: it names no version (C8)', () => {
    expect(readPrecondition({ ifMatch: ' * ' })).toMatchObject({
      ok: false,
      flaw: { status: 428, code: 'version_required' },
    });
  });

  it('bounds the list', () => {
    expect(versions(Array(32).fill('"1"').join())).toHaveLength(32);
    expect(versions(Array(33).fill('"1"').join())).toBe('malformed_precondition');
  });

  it('gives back what etagOf has made, in any list', () => {
    const version = fc.string({ unit: fc.constantFrom(...'09azAZ!#~,/*W\u00e9'), maxLength: 12 });
    const gap = fc.constantFrom(',', ', ', ' ,\t', ',,');
    fc.assert(
      fc.property(fc.array(version, { minLength: 1, maxLength: 8 }), gap, (list, between) => {
        expect(versions(list.map(etagOf).join(between))).toEqual(list);
      }),
    );
  });
});

describe('a precondition', () => {
  it('is required', () => {
    expect(readPrecondition({})).toMatchObject({ flaw: { status: 428, code: 'precondition_required' } });
  });

  it('is If-None-Match: * for creation, and no other', () => {
    expect(readPrecondition({ ifNoneMatch: '*' })).toEqual({ ok: true, precondition: { kind: 'absent' } });
    expect(readPrecondition({ ifNoneMatch: '"41"' })).toMatchObject({ flaw: { status: 400 } });
  });

  it('is one', () => {
    expect(readPrecondition({ ifMatch: '"41"', ifNoneMatch: '*' })).toMatchObject({ flaw: { status: 400 } });
  });
});

it('an ETag is strong, and holds no quote', () => {
  expect([etagOf(41), etagOf(2n ** 60n), etagOf('a')]).toEqual(['"41"', '"1152921504606846976"', '"a"']);
  expect(() => etagOf('a"b')).toThrow(RangeError);
  expect(() => etagOf('a b')).toThrow(RangeError);
});
