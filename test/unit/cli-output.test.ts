import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clean, Output } from '../../src/cli/output.js';
import { blockerText, lasting, momentText, showRefusal } from '../../src/cli/show.js';
import { Access, Blocker, Refusal, RefusalKind, Scope } from '../../src/gen/writ/v1/types.js';
import { diffLines, unifiedDiff } from '../../src/services/text-diff.js';

function written(say: (out: Output) => void): string {
  let text = '';
  say(new Output({ write: (part) => (text += part) }, { write: () => undefined }, false));
  return text;
}

describe('Output', () => {
  it('aligns columns and leaves no blanks at the end', () => {
    const text = written((out) =>
      out.table(
        ['A', 'B'],
        [
          ['long one', 'x'],
          ['s', ''],
          ['日本', 'y'],
        ],
      ),
    );
    expect(text).toBe('A         B\nlong one  x\ns\n日本        y\n');
  });

  it('leaves out facts that are empty', () => {
    expect(
      written((out) =>
        out.facts([
          ['a', '1'],
          ['bc', ''],
          ['d', '2'],
        ]),
      ),
    ).toBe('a  1\nd  2\n');
  });

  it('shows nothing of others that a terminal would obey', () => {
    expect(clean('\u001b[31mred\u0007 \u202eevil\u200b\nnew')).toBe('\\u{1b}[31mred\\u{7} \\u{202e}evil\\u{200b} new');
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(clean(text)).not.toMatch(/[\p{Cc}\p{Cf}]/u);
      }),
    );
    expect(written((out) => out.table(['A'], [['x\u001b[2J']]))).not.toContain('\u001b');
  });
});

describe('words', () => {
  it.each([
    [0, '0 s'],
    [320, '0.3 s'],
    [9_949, '9.9 s'],
    [42_000, '42 s'],
    [185_000, '3 min 5 s'],
    [3_600_000, '1 h'],
    [90_061_000, '1 d 1 h'],
  ])('%d ms last %s', (ms, words) => {
    expect(lasting(ms)).toBe(words);
  });

  it('say a moment', () => {
    expect(momentText(1_764_425_000_123_456)).toBe('2025-11-29 14:03:20Z');
    expect(momentText(2 ** 53)).toBe('2255-06-05 23:47:34Z');
    expect(momentText(2 ** 63)).toContain('µs');
  });

  const blocker = Blocker.fromPartial({
    blockerRef: 'ref-1',
    resource: 'deployment/staging',
    access: Access.ACCESS_WRITE,
    scope: Scope.SCOPE_SUBTREE,
    expiresAt: { seconds: 1_764_425_000n, nanos: 0 },
    rule: 'implies[0]',
    resolver: 'release-owner',
    requestedResource: 'image-tag/staging',
  });

  it('say who holds what, until when, by which rule, and who settles it', () => {
    expect(blockerText(blocker)).toBe(
      'another run (ref-1) holds deployment/staging and below (write), until 2025-11-29 14:03:20Z unless renewed, which meets image-tag/staging, by rule implies[0], settled by release-owner',
    );
    expect(blockerText({ ...blocker, runId: 'r1', purpose: 'p', waiting: true })).toContain(
      'run r1 ("p") waits ahead of you for',
    );
  });

  it('say what to do about a refusal', () => {
    const refusal = Refusal.fromPartial({
      kind: RefusalKind.REFUSAL_KIND_HELD,
      message: 'It is held.',
      blockers: [blocker],
      grantable: [{ resource: 'dns/staging' }],
      retryAfter: { seconds: 90n, nanos: 0 },
      resolution: { action: 'Wait (set wait).', who: 'release-owner', retryable: true },
    });
    const text = written((out) => showRefusal(out, refusal));
    for (const part of [
      'refused (held): It is held.',
      'another run (ref-1)',
      'could be granted now: dns/staging',
      'in 1 min 30 s',
      'what to do: wait for it (--wait 5m), or ask again later, or ask for the part that could be granted now. If the holder is stuck, release-owner decides.',
      'can succeed later',
    ]) {
      expect(text).toContain(part);
    }
    const action = 'Wait (set wait).';
    const whole = { ...refusal, grantable: [], resolution: { action, who: 'runner', retryable: true } };
    expect(written((out) => showRefusal(out, whole))).toContain(
      'what to do: wait for it (--wait 5m), or ask again later. If the holder is stuck, an operator decides.',
    );
    const ended = { ...whole, kind: RefusalKind.REFUSAL_KIND_ENDED };
    expect(written((out) => showRefusal(out, ended))).toContain('what to do: Wait (--wait). (runner)');
  });
});

describe('the difference of two texts', () => {
  const text = fc
    .array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 })
    .map((lines) => lines.map((line) => `${line}\n`).join(''));

  it('turns the one into the other', () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        const lines = diffLines(a, b);
        const side = (mark: string) =>
          lines
            .filter((line) => line.mark === ' ' || line.mark === mark)
            .map((line) => `${line.text}\n`)
            .join('');
        expect([side('-'), side('+')]).toEqual([a, b]);
      }),
    );
  });

  it('is as short as it can be, and unified', () => {
    expect(unifiedDiff('1\n2\n3\n4\n5\n6\n7\n8\n9\n', '1\n2\n3\n4\nfive\n6\n7\n8\n9\n', 'old', 'new')).toEqual([
      '--- old',
      '+++ new',
      '@@ -2,7 +2,7 @@',
      ' 2',
      ' 3',
      ' 4',
      '-5',
      '+five',
      ' 6',
      ' 7',
      ' 8',
    ]);
    expect(unifiedDiff('a\n', 'a\n', 'old', 'new')).toEqual([]);
    expect(unifiedDiff('', 'a\n', 'old', 'new')).toEqual(['--- old', '+++ new', '@@ -1,0 +1,1 @@', '+a']);
  });

  it('sees that the last line feed is missing', () => {
    expect(unifiedDiff('a\n', 'a', 'old', 'new').join('\n')).toContain('No newline');
  });
});
