import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shortened, visible } from '../../src/console/pure/foreign-text.js';
import { ago, inWords, lengthMs, microsOf, millisOf, urgencyOf } from '../../src/console/pure/moments.js';
import { addressOf, routeOf } from '../../src/console/pure/paths.js';
import { codeOf, counted, listed } from '../../src/console/pure/words.js';

describe('text that others wrote', () => {
  it('shows what cannot be seen, and what would turn around its neighbours', () => {
    expect(visible('tenant/\u202egnp.exe')).toBe('tenant/⟨U+202E⟩gnp.exe');
    expect(visible('ad\u200bmin')).toBe('ad⟨U+200B⟩min');
    expect(visible('a\u0000b\u001b[31m')).toBe('a⟨U+0000⟩b⟨U+001B⟩[31m');
    expect(visible('a\u2066b\u2069')).toBe('a⟨U+2066⟩b⟨U+2069⟩');
    expect(visible('\u{e0041}')).toBe('⟨U+E0041⟩');
    // A heap of marks would cover the lines above and below.
    expect(visible(`a${'\u0336'.repeat(5)}b\u200d`)).toBe(`a${'\u0336'.repeat(4)}⟨U+0336⟩b⟨U+200D⟩`);
  });

  it('leaves letters of every script, emoji and markup as they are', () => {
    for (const text of ['<img src=x onerror=alert(1)>', 'مستأجر/١٢', 'שלום', '人/事', '👩‍👩‍👧', '❤️', '👍🏽', 'a\nb\tc'])
      expect(visible(text)).toBe(text);
  });

  it('has nothing unseen left, whatever it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(visible(text)).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f]/);
      }),
    );
  });

  it('is cut between characters', () => {
    expect(shortened('👍👍👍', 2)).toBe('👍…');
    expect(shortened('abc', 3)).toBe('abc');
  });
});

describe('moments and lengths', () => {
  it('are read exactly', () => {
    expect(microsOf('2026-12-01T10:00:00.000123Z')).toBe(Date.parse('2026-12-01T10:00:00Z') * 1_000 + 123);
    expect(microsOf('2026-12-01T10:00:00Z')).toBe(Date.parse('2026-12-01T10:00:00Z') * 1_000);
    expect(microsOf('2026-12-01T10:00:00.5Z')).toBe(Date.parse('2026-12-01T10:00:00Z') * 1_000 + 500_000);
    expect(microsOf('yesterday')).toBeNull();
    expect(millisOf(undefined)).toBeNull();
    expect(lengthMs('12.500s')).toBe(12_500);
    expect(lengthMs(undefined)).toBeNull();
  });

  it('are told in two units', () => {
    expect(inWords(0)).toBe('0 s');
    expect(inWords(-5)).toBe('0 s');
    expect(inWords(59_999)).toBe('59 s');
    expect(inWords(200_000)).toBe('3 m 20 s');
    expect(inWords(86_400_000 + 5_000)).toBe('1 d');
    expect(inWords(2 * 86_400_000 + 4 * 3_600_000)).toBe('2 d 4 h');
    expect(ago(0, 61_000)).toBe('1 m 1 s ago');
    expect(ago(61_000, 0)).toBe('in 1 m 1 s');
  });

  it('stand out when an end is near', () => {
    expect([0, 1, 5_000, 5_001, 15_000, 15_001].map(urgencyOf)).toEqual(['over', 'now', 'now', 'soon', 'soon', 'calm']);
  });
});

describe('addresses', () => {
  it('name a screen, or nothing', () => {
    expect(routeOf('/')).toEqual({ screen: 'overview' });
    expect(routeOf('/live/')).toEqual({ screen: 'live' });
    expect(routeOf('/runs/0a')).toEqual({ screen: 'run', id: '0a' });
    expect(routeOf('/leases/0a')).toEqual({ screen: 'lease', id: '0a' });
    expect(routeOf('/runs/../keys')).toEqual({ screen: 'nowhere' });
    expect(routeOf('/toString')).toEqual({ screen: 'nowhere' });
  });

  it('keep the namespace, unless it is the default one', () => {
    expect(addressOf('/live', 'default', { resource: 'a/b c' })).toBe('/live?resource=a%2Fb+c');
    expect(addressOf('/live', 'staging', { kind: ['x', 'y'], run: '' })).toBe('/live?namespace=staging&kind=x&kind=y');
  });
});

describe('codes', () => {
  it('are said without their prefix', () => {
    expect(codeOf('REFUSAL_KIND_HELD', 'REFUSAL_KIND')).toBe('HELD');
    expect(codeOf('RUN_STATE_UNSPECIFIED', 'RUN_STATE')).toBe('');
    expect(codeOf(undefined, 'RUN_STATE')).toBe('');
    expect(counted(1, 'lease')).toBe('1 lease');
    expect(counted(12_000, 'lease')).toBe('12,000 leases');
    expect(listed(['a', 'b', 'c'])).toBe('a, b and c');
  });
});
