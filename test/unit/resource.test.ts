import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseResource } from '../../src/domain/resource.js';

/** The file writes what an editor could not show as escapes. */
function decode(text: string): string {
  return text.replace(/\\u([0-9a-f]{4})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

const rows = readFileSync(new URL('../data/resource-ids.tsv', import.meta.url), 'utf8')
  .split('\n')
  .slice(1)
  .filter((line) => line !== '')
  .map((line) => line.split('\t'))
  .map(([id = '', verdict = '', why = '']) => ({ id: decode(id), verdict, why }));

/** The rules of the design, one after the other, without any haste. */
function oracle(text: string): boolean {
  const segments = text.split('/');
  return (
    segments.length <= 32 &&
    Buffer.byteLength(text) <= 1_024 &&
    text.isWellFormed() &&
    text.normalize('NFC') === text &&
    segments.every((segment) => segment !== '' && segment !== '.' && segment !== '..' && segment.trim() === segment) &&
    ![...text].some((character) => /[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/u.test(character))
  );
}

describe('the normal form of a resource (design: resources, locks and modes)', () => {
  it.each(rows.filter((row) => row.verdict === 'ok'))('takes $id as it is', ({ id }) => {
    expect(parseResource(id)).toEqual({ ok: true, resource: id });
  });

  it.each(rows.filter((row) => row.verdict === 'refused'))('refuses $id: $why', ({ id }) => {
    expect(parseResource(id)).toMatchObject({ ok: false });
  });

  it('says why', () => {
    const reason = (text: string): string => {
      const parsed = parseResource(text);
      return parsed.ok ? '' : parsed.reason;
    };
    expect(reason('')).toBe('it is empty');
    expect(reason('a//b')).toContain('segment 2 is empty');
    expect(reason('a/../b')).toContain('segment 2 is "." or ".."');
    expect(reason('a/b ')).toContain('segment 2 begins or ends with a space');
    expect(reason('a/b\u0000')).toContain('U+0000');
    expect(reason('a/b\u200b')).toContain('U+200B');
    expect(reason('\ufeffa/b')).toContain('U+FEFF');
    expect(reason('a/\u2028b')).toContain('U+2028');
    expect(reason('a/\ud800')).toContain('surrogate');
    expect(reason('a/U\u0308')).toContain('NFC');
    expect(reason('x'.repeat(1_025))).toContain('1024 bytes');
    expect(reason('ü'.repeat(513))).toContain('1024 bytes');
    expect(reason(Array.from({ length: 33 }, () => 'x').join('/'))).toContain('33 segments');
    expect(reason(Array.from({ length: 32 }, () => 'x').join('/'))).toBe('');
    expect(reason('x'.repeat(1_024))).toBe('');
  });

  it('agrees with the rules on any text', () => {
    const odd = fc.constantFrom(
      '/',
      '/',
      '.',
      '..',
      ' ',
      'a',
      'B',
      '{',
      '\u0000',
      '\u007f',
      '\u200b',
      '\u202e',
      'ü',
      'u\u0308',
      '\ud800',
      '日',
      '😀',
      '\u00a0',
      '\u2028',
      '\ufeff',
    );
    const text = fc.oneof(
      fc.array(odd, { maxLength: 12 }).map((parts) => parts.join('')),
      fc.string({ unit: 'binary', maxLength: 40 }),
    );
    fc.assert(
      fc.property(text, (candidate) => {
        const parsed = parseResource(candidate);
        expect(parsed.ok).toBe(oracle(candidate));
        if (parsed.ok) expect(parsed.resource).toBe(candidate);
      }),
      { numRuns: 3_000 },
    );
  });
});
