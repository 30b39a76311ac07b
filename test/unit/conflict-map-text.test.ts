import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { checkConflictMapText, mergeFragments, parseConflictMapText } from '../../src/services/conflict-map-text.js';
import { parseMapDuration, parseTimestamp } from '../../src/services/map-scalars.js';
import * as hostile from '../support/hostile-maps.js';

const EXAMPLE = readFileSync(new URL('../data/design-map.yaml', import.meta.url), 'utf8');

const told = (text: string | readonly { name: string; text: string }[]): string[] =>
  checkConflictMapText(text)
    .problems.filter((problem) => !problem.warning)
    .map((problem) => `${problem.line}:${problem.column} ${problem.code} ${problem.path}`);

describe('the example of the design', () => {
  it('is accepted, and its assertion holds', () => {
    const { document, map, problems } = checkConflictMapText(EXAMPLE);
    expect(problems.filter((problem) => !problem.warning)).toEqual([]);
    expect(problems.map((problem) => problem.code)).toContain('approval_unavailable');
    expect(map?.kinds).toHaveLength(4);
    expect(map?.kinds[3]).toMatchObject({ validation: 'view', maxViewAge: 2_000_000 });
    expect(document?.profiles?.prod).toMatchObject({
      ttl: 60_000_000,
      max_ttl: 300_000_000,
      max_hold: 1_800_000_000,
    });
    expect(document?.sets?.['incident-4711']?.not_before).toBe(Date.UTC(2026, 11, 1, 10) * 1_000);
    // What is stored can be read again.
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
  });
});

describe('the text of a map', () => {
  it('may be JSON', () => {
    const json = JSON.stringify(
      {
        version: 1,
        kinds: [
          {
            pattern: 'a/{x}',
            ttl: '60s',
            actions: { edit: { access: 'write', change_class: 'derived', tracked: false } },
          },
        ],
      },
      null,
      2,
    );
    expect(checkConflictMapText(json).problems).toEqual([]);
  });

  it.each([
    ['version: 1\nkinds:\n  - pattern: a\n    autority: write\n', '4:5 unknown_key kinds[0].autority'],
    ['version: 1\nkindz: []\n', '2:1 unknown_key kindz'],
    ['version: 2\n', '1:10 invalid_value version'],
    ['kinds: []\n', '1:1 missing_key version'],
    ['version: 1\nunmatched: allow\n', '2:12 invalid_value unmatched'],
    ['version: 1\nkinds:\n  - ttl: 60s\n', '3:5 missing_key kinds[0].pattern'],
    ['version: 1\nkinds:\n  - pattern: a\n    ttl: 60\n', '4:10 invalid_value kinds[0].ttl'],
    [
      'version: 1\nkinds:\n  - pattern: a\n    actions: { edit: { change_class: routine } }\n',
      '4:38 invalid_value kinds[0].actions.edit.change_class',
    ],
    ['version: 1\nkinds: { a: b }\n', '2:8 invalid_value kinds'],
    ['version: 1\nkinds:\n', '2:7 invalid_value kinds'],
    ['version: 1\nconflicts: [ { between: [a] } ]\n', '2:25 invalid_value conflicts[0].between'],
    ['version: 1\nversion: 1\n', '2:1 repeated_key version'],
    ['version: 1\nprofiles: { "a b": {} }\n', '2:20 invalid_value profiles["a b"]'],
    ['version: 1\nprofiles: { __proto__: {} }\n', '2:13 unknown_key profiles'],
    ['version: 1\n__proto__: {}\n', '2:1 unknown_key '],
    [
      'version: 1\nconflicts: [ { between: [a, b], because: "x\\u0000" } ]\n',
      '2:42 invalid_character conflicts[0].because',
    ],
    ['version: 1\naliases: [ { from: "a\\nb", to: c } ]\n', '2:20 invalid_value aliases[0].from'],
    [
      'version: 1\nassertions: [ { conflict: true, a: { task: t, x: [] }, b: { entries: [ { resource: a, acess: write } ] } } ]\n',
      '2:50 invalid_value assertions[0].a.x',
    ],
    ['version: 1\nkinds:\n  - pattern: a\n    max_view_age: 1ms\n', '4:19 out_of_range kinds[0].max_view_age'],
    ['- a\n', '1:1 invalid_value '],
    ['version: !!int 1\n', '1:10 yaml '],
    ['version: 1\n---\nversion: 1\n', '2:1 yaml '],
    ['version: 1\nkinds:\n  - <<: { pattern: a }\n    pattern: a\n', '3:5 unknown_key kinds[0]["<<"]'],
    ['version: \u0000', '1:10 invalid_character '],
  ])('%j: %s', (text, problem) => {
    expect(told(text)).toContain(problem);
  });

  it('says what would be accepted', () => {
    const message = (text: string): string =>
      checkConflictMapText(text).problems.find((problem) => !problem.warning)?.message ?? '';
    expect(message('version: 1\nkinds:\n  - pattern: a\n    autority: write\n')).toContain('did you mean "authority"?');
    expect(message('version: 1\nunmatched: dney\n')).toBe(
      '"dney" is not accepted here; did you mean "deny"? Accepted: deny, propose, observe.',
    );
    expect(message('version: 1\nkinds: x\n')).toBe('A list is expected, not "x".');
    expect(message('version: 1\nkinds:\n  - { pattern: release/{env}, mode: enforce }\n')).toContain(
      'must be quoted: "release/{env}"',
    );
  });

  it('is bounded in size, depth and aliases', () => {
    expect(told(`version: 1 # ${'x'.repeat(1_048_576)}`)).toEqual(['0:0 too_large ']);
    expect(told(`version: ${'['.repeat(100)}${']'.repeat(100)}`)[0]).toContain('too_deep');
    expect(told(`version: ${'['.repeat(400_000)}`)[0]).toMatch(/too_deep|yaml/);
    const bomb = [
      'version: 1',
      'kinds:',
      '  - &a0 [x, x]',
      ...Array.from({ length: 30 }, (_, n) => `  - &a${n + 1} [*a${n}, *a${n}, *a${n}]`),
    ].join('\n');
    expect(told(bomb).join()).toContain('too_many_aliases');
    expect(told('version: 1\nkinds: &k [ *k ]\n').join()).toMatch(/too_deep|yaml|too_many_aliases/);
  });

  it.each([
    ['anchors and aliases', hostile.woven, 'too_many_aliases'],
    ['aliases of aliases', hostile.bomb, 'too_many_aliases'],
    ['brackets', hostile.nested, 'too_deep'],
    ['lists in lists on one line', hostile.stacked, 'too_deep'],
    ['values', hostile.crowded, 'too_many_values'],
  ])('is refused by name and place for %s without end', (_what, text, code) => {
    const { problems } = checkConflictMapText(text);
    expect(problems[0]).toMatchObject({ code, warning: false });
    expect(problems[0]?.line).toBeGreaterThan(0);
  });

  it('is not refused for what an honest map has in its words', () => {
    const words = '# *bold* & [0, 1) {x} - - - ? "it\'s" '.repeat(20);
    const kinds = Array.from({ length: 900 }, (_, n) => `  - { pattern: "k${n}/{x}" } # ${'- '.repeat(5)}[`).join('\n');
    expect(checkConflictMapText(`version: 1\n${words}\nkinds:\n${kinds}\n`).problems).toEqual([]);
  });

  it('says what there is too much of', () => {
    const tasks = Array.from({ length: 257 }, (_, n) => `  t${n}: { entries: [ { resource: a, access: read } ] }`);
    expect(told(`version: 1\ntasks:\n${tasks.join('\n')}\n`)).toEqual(['2:1 invalid_value tasks']);
  });

  it('lets YAML aliases be used in moderation', () => {
    const text =
      'version: 1\nkinds:\n  - { pattern: a, actions: &acts { edit: { change_class: derived } } }\n  - { pattern: b, actions: *acts }\n';
    expect(checkConflictMapText(text).map?.kinds[1]?.writeActions).toHaveLength(1);
  });

  it('keeps names and values as they are written', () => {
    const text =
      'version: 1\nkinds: [ { pattern: "a/{x}", actions: { no: { change_class: derived } } } ]\ntasks: { 007: { params: [x], entries: [ { resource: "a/{x}", access: write } ] } }\nassertions: [ { conflict: false, a: { task: 007, x: 1e3 }, b: { task: 007, x: 1000 } } ]\n';
    const { problems, map } = checkConflictMapText(text);
    expect(problems).toEqual([]);
    expect([...(map?.tasks.keys() ?? [])]).toEqual(['007']);
  });
});

describe('fragments of a directory', () => {
  const base = {
    name: 'base.yaml',
    text: '# The base.\nversion: 1\nunmatched: deny\nprofiles:\n  # for all\n  prod: { ttl: 30s }\n',
  };
  const team = {
    name: 'team.yaml',
    text: '# The team.\nversion: 1\n\nkinds:\n  # what we own\n  - pattern: a/{x}\n    extends: prod\n  - { pattern: "b/{x}" } # small\n# the end\n',
  };
  const other = { name: 'other.yaml', text: 'version: 1\nkinds:\n  - pattern: a/{y}\nprofiles: { prod: {} }\n' };

  it('make one document: lists joined, maps united', () => {
    const parsed = parseConflictMapText([base, team]);
    expect(parsed.ok ? parsed.document : null).toEqual({
      version: 1,
      unmatched: 'deny',
      profiles: { prod: { ttl: 30_000_000 } },
      kinds: [{ pattern: 'a/{x}', extends: 'prod' }, { pattern: 'b/{x}' }],
    });
  });

  it('may not say the same thing twice, and problems name the file', () => {
    const repeated = checkConflictMapText([base, team, other]).problems;
    expect(repeated.map((problem) => [problem.code, problem.file, problem.line])).toEqual([
      ['repeated_key', 'other.yaml', 4],
    ]);
    expect(repeated[0]?.message).toContain('base.yaml, line 6');
    const equal = checkConflictMapText([
      base,
      team,
      { ...other, text: 'version: 1\nkinds:\n  - pattern: a/{y}\n' },
    ]).problems;
    expect(equal.map((problem) => [problem.code, problem.path, problem.file, problem.line])).toEqual([
      ['equally_specific', 'kinds[2].pattern', 'other.yaml', 3],
    ]);
    expect(told([base, { name: 'x', text: 'version: 1\nunmatched: observe\n' }])).toEqual([
      '2:1 repeated_key unmatched',
    ]);
  });

  it('may not say a key twice in one file either, at the top or below', () => {
    const twice = checkConflictMapText('version: 1\nkinds: []\nsets: {}\nkinds: []\n').problems;
    expect(twice.map(({ code, line, column }) => [code, line, column])).toEqual([['repeated_key', 4, 1]]);
    expect(twice[0]?.message).toContain('in line 2');
    expect(told('version: 1\nprofiles:\n  prod: {}\n  prod: {}\n')).toEqual(['4:3 repeated_key profiles.prod']);
  });

  it('merge into one text that says the same, comments kept', () => {
    const merged = mergeFragments([base, team]);
    if (!merged.ok) throw new Error(merged.problems[0]?.message);
    for (const comment of [
      '# The base.',
      '# for all',
      '# The team.',
      '# what we own',
      '# small',
      '# the end',
      '# from team.yaml',
    ])
      expect(merged.text).toContain(comment);
    const [apart, together] = [
      parseConflictMapText([base, team]),
      parseConflictMapText([{ name: '', text: merged.text }]),
    ];
    expect(together.ok && apart.ok ? together.document : null).toEqual(apart.ok ? apart.document : undefined);
    expect(mergeFragments([team])).toEqual({ ok: true, text: team.text });
    expect(mergeFragments([base, { name: 'x', text: 'version: 1\nkinds: [ &a { pattern: x }, *a ]\n' }]).ok).toBe(
      false,
    );
    expect(mergeFragments([base, team, other]).ok).toBe(false);
  });
});

describe('scalars', () => {
  it.each([
    ['500ms', 500_000],
    ['60s', 60_000_000],
    ['1h30m', 5_400_000_000],
    ['366d', 366 * 86_400_000_000],
    ['0s', null],
    ['367d', null],
    ['60', null],
    ['1.5s', null],
    ['-1s', null],
    ['1 s', null],
    ['', null],
  ])('duration %s', (text, micros) => {
    expect(parseMapDuration(text)).toBe(micros);
  });

  it.each(['0s', '367d'])('the duration %s is refused with its bounds, since by its form it is one', (ttl) => {
    const [problem] = checkConflictMapText(`version: 1\nkinds:\n  - { pattern: a, ttl: ${ttl} }\n`).problems;
    expect(problem?.message).toContain('more than zero and at most 366d');
  });

  it('times of RFC 3339, exact to the microsecond', () => {
    const dates = [
      '1970-01-01T00:00:00Z',
      '1999-12-31T23:59:59Z',
      '2000-02-29T12:00:00Z',
      '2026-12-01T10:00:00Z',
      '2100-03-01T00:00:00Z',
      '2255-01-01T00:00:00Z',
    ];
    for (const date of dates) expect(parseTimestamp(date)).toBe(Date.parse(date) * 1_000);
    expect(parseTimestamp('2026-12-01T12:00:00.123456+02:00')).toBe(Date.UTC(2026, 11, 1, 10) * 1_000 + 123_456);
    for (const bad of [
      '2026-02-29T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-12-01',
      '2026-12-01T10:00:00',
      '1969-12-31T23:59:59Z',
      '2026-12-01T24:00:00Z',
    ])
      expect(parseTimestamp(bad)).toBeNull();
  });
});
