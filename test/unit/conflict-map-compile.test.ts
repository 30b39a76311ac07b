import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Alias, aliasesOverlap, applyAlias, parseAlias } from '../../src/domain/conflict-map/alias.js';
import {
  compileConflictMap,
  compileStored,
  describeResource,
  EMPTY_CONFLICT_MAP,
  observes,
  resolveResource,
} from '../../src/domain/conflict-map/index.js';
import { CREDENTIAL_BOUNDS } from '../../src/domain/lock-delay.js';
import { SECOND } from '../../src/domain/time.js';
import { doMapJob } from '../../src/services/map-jobs.js';
import { codesOf, entries, entry, mapOf, problemsOf, refused } from '../support/conflict-map.js';

const edit = { edit: { change_class: 'derived' } } as const;
const lock = { swap: { concurrency: 'lease', change_class: 'shared_pointer' } } as const;

describe('compiling a map', () => {
  it('of nothing describes nothing', () => {
    expect(refused(EMPTY_CONFLICT_MAP, entries(entry('release/prod'))).kind).toBe('undescribed');
    expect(codesOf({})).toEqual([]);
  });

  it('refuses equally specific kinds, and only those', () => {
    expect(
      codesOf({
        kinds: [
          { pattern: 'a/{x}', actions: edit },
          { pattern: 'a/{y}', actions: edit },
        ],
      }),
    ).toEqual(['equally_specific kinds[1].pattern']);
    expect(
      codesOf({
        kinds: [{ pattern: 'a/{x}/c' }, { pattern: 'a/b/{y}' }, { pattern: 'a/{x...}' }, { pattern: '{x...}' }],
      }),
    ).toEqual([]);
  });

  it('works profiles in, the nearest first, actions by name', () => {
    const map = mapOf({
      profiles: {
        base: { mode: 'observe', ttl: 5 * SECOND, actions: edit },
        prod: { extends: 'base', mode: 'enforce', actions: lock },
      },
      kinds: [{ pattern: 'a/{x}', extends: 'prod', ttl: 9 * SECOND }],
    });
    expect(map.kinds[0]).toMatchObject({ mode: 'enforce', ttl: 9 * SECOND });
    expect([...(map.kinds[0]?.actions.keys() ?? [])]).toEqual(['edit', 'swap']);
  });

  it('refuses unknown profiles and circles of them, each once', () => {
    expect(codesOf({ profiles: { prod: {} }, kinds: [{ pattern: 'a', extends: 'prd' }] })).toEqual([
      'unknown_profile kinds[0].extends',
    ]);
    expect(problemsOf({ profiles: { prod: {} }, kinds: [{ pattern: 'a', extends: 'prd' }] })[0]?.message).toContain(
      'did you mean "prod"?',
    );
    expect(
      codesOf({ profiles: { a: { extends: 'b' }, b: { extends: 'a' } }, kinds: [{ pattern: 'x', extends: 'a' }] }),
    ).toEqual(['extends_cycle profiles.b.extends']);
    expect(codesOf({ profiles: { a: { extends: 'constructor' } } })).toEqual(['unknown_profile profiles.a.extends']);
  });

  it.each([
    [{ ttl: SECOND / 2 }, 'out_of_range kinds[0].ttl'],
    [{ ttl: 3_601 * SECOND, max_ttl: 3_601 * SECOND, max_hold: 9_999 * SECOND }, 'out_of_range kinds[0].ttl'],
    [{ ttl: 20 * SECOND, max_ttl: 10 * SECOND }, 'inconsistent_times kinds[0]'],
    [{ max_ttl: 60 * SECOND, max_hold: 30 * SECOND }, 'inconsistent_times kinds[0]'],
    [{ ttl: 60 * SECOND, max_hold: 30 * SECOND }, 'inconsistent_times kinds[0]'],
  ])('refuses times %j', (times, problem) => {
    expect(codesOf({ kinds: [{ pattern: 'a', ...times }] })).toContain(problem);
  });

  it('lets a default give way to what was written', () => {
    expect(mapOf({ kinds: [{ pattern: 'a', max_hold: 10 * SECOND }] }).kinds[0]).toMatchObject({
      ttl: 10 * SECOND,
      maxTtl: 10 * SECOND,
    });
    expect(mapOf({ kinds: [{ pattern: 'a', ttl: 600 * SECOND }] }).kinds[0]).toMatchObject({
      ttl: 600 * SECOND,
      maxTtl: 600 * SECOND,
      maxHold: 1_800 * SECOND,
    });
  });

  it('takes kinds whose targets do not ask, and warns where no credential could be issued', () => {
    const kind = (ttl: number) => ({
      pattern: 'a',
      validation: 'local' as const,
      ttl,
      max_ttl: 60 * SECOND,
      actions: edit,
    });
    expect(mapOf({ kinds: [kind(60 * SECOND)] }).kinds[0]?.validation).toBe('local');
    expect(codesOf({ kinds: [kind(10 * SECOND + 1)] })).toEqual([]);
    expect(codesOf({ kinds: [kind(10 * SECOND)] })).toEqual(['ttl_without_credential kinds[0]']);
    const { validation: _, ...asked } = kind(10 * SECOND);
    expect(codesOf({ kinds: [asked] })).toEqual([]);
  });

  it('judges by the clock skew of the coordinator that will use it', () => {
    const document = { version: 1, kinds: [{ pattern: 'a', validation: 'local', ttl: 30 * SECOND }] } as const;
    const bounds = { credentialLife: 60 * SECOND, credentialTolerance: 5 * SECOND, maxClockSkew: 25 * SECOND };
    expect(compileConflictMap(document, bounds)).toMatchObject({ warnings: [{ code: 'ttl_without_credential' }] });
    expect(compileConflictMap(document)).toMatchObject({ warnings: [] });
    const text = JSON.stringify({ version: 1, kinds: [{ pattern: 'a', validation: 'local', ttl: '30s' }] });
    const job = { kind: 'check', source: { text, fileName: '' } } as const;
    expect(doMapJob({ job, bounds }).problems).toMatchObject([{ code: 'ttl_without_credential' }]);
    expect(doMapJob({ job, bounds: CREDENTIAL_BOUNDS }).problems).toEqual([]);
  });

  it('warns of a star wherever somebody may mean a wildcard by it', () => {
    const document = {
      version: 1,
      kinds: [{ pattern: 'doc/*', sandbox: 'drafts/*' }, { pattern: 'plain/{id}' }],
      implies: [
        { when: { pattern: 'plain/*', access: 'write' }, touches: [{ resource: 'doc/*', access: 'stable_read' }] },
      ],
      conflicts: [{ between: ['doc/*', 'plain/*'] }],
      aliases: [{ from: 'arn:*', to: 'plain/*' }],
      sets: { all: { entries: [{ resource: 'plain/*', access: 'write' }] } },
      tasks: { one: { entries: [{ resource: 'doc/*', access: 'read' }] } },
    } as const;
    expect(codesOf(document).filter((line) => line.startsWith('literal_star'))).toEqual(
      [
        'kinds[0].pattern',
        'kinds[0].sandbox',
        'implies[0].when.pattern',
        'implies[0].touches[0].resource',
        'conflicts[0].between[0]',
        'conflicts[0].between[1]',
        'aliases[0].from',
        'aliases[0].to',
        'sets.all.entries[0].resource',
        'tasks.one.entries[0].resource',
      ].map((path) => `literal_star ${path}`),
    );
  });

  it('warns of what is doubtful', () => {
    expect(codesOf({ kinds: [{ pattern: 'a', actions: { edit: {} } }] })).toEqual([
      'unclassified_action kinds[0].actions.edit',
    ]);
    expect(codesOf({ kinds: [{ pattern: 'a', actions: { look: { access: 'stable_read' } } }] })).toEqual([]);
    expect(
      codesOf({ kinds: [{ pattern: 'a', actions: { edit: { change_class: 'derived', concurrency: 'lease' } } }] }),
    ).toEqual(['long_lease kinds[0].actions.edit.concurrency']);
    expect(codesOf({ kinds: [{ pattern: 'a', max_hold: 3_600 * SECOND, actions: lock }] })).toEqual([
      'long_lease kinds[0]',
    ]);
    expect(codesOf({ kinds: [{ pattern: 'a', owner_service: ['svc:a'] }] })).toEqual([]);
    expect(
      codesOf({ kinds: [{ pattern: 'a', actions: { edit: { ...edit.edit, approval: 'call', resolver: 'nobody' } } }] }),
    ).toEqual([
      'approval_unavailable kinds[0].actions.edit.approval',
      'unknown_resolver kinds[0].actions.edit.resolver',
    ]);
    expect(codesOf({ kinds: [{ pattern: 'a', actions: { edit: { ...edit.edit, resolver: 'agent' } } }] })).toEqual([]);
    expect(codesOf({ conflicts: [{ between: ['a/{x}', 'b/{y}'] }] })).toEqual(['conflict_joins_nothing conflicts[0]']);
    expect(problemsOf({ conflicts: [{ between: ['a/{x}', 'b/{y}'] }] })[0]?.warning).toBe(true);
  });

  it('refuses names that are not bound, and patterns that are none', () => {
    const kinds = [{ pattern: '{any...}', actions: edit }];
    expect(
      codesOf({ kinds, implies: [{ when: { pattern: 'a/{x}' }, touches: [{ resource: 'b/{y}', access: 'write' }] }] }),
    ).toEqual(['unbound_name implies[0].touches[0].resource']);
    expect(
      codesOf({
        kinds,
        implies: [{ when: { pattern: 'a/{x...}' }, touches: [{ resource: 'b/{x}', access: 'write' }] }],
      }),
    ).toEqual(['unbound_name implies[0].touches[0].resource']);
    expect(
      codesOf({
        kinds,
        tasks: {
          t: {
            params: ['x'],
            entries: [
              { resource: 'b/{y}', access: 'write' },
              { resource: 'b/{x}', access: 'read' },
            ],
          },
        },
      }),
    ).toEqual(['unbound_name tasks.t.entries[0].resource']);
    expect(codesOf({ kinds, sets: { s: { entries: [{ resource: 'b/{y}', access: 'write' }] } } })).toEqual([
      'unbound_name sets.s.entries[0].resource',
    ]);
    expect(codesOf({ kinds: [{ pattern: 'a/{x}', sandbox: 'b/{y}' }] })).toEqual(['unbound_name kinds[0].sandbox']);
    expect(codesOf({ kinds: [{ pattern: 'a/{x}b' }] })).toEqual(['invalid_pattern kinds[0].pattern']);
    expect(codesOf({ conflicts: [{ between: ['a//b', 'c'] }] })).toEqual(['invalid_pattern conflicts[0].between[0]']);
  });

  it('refuses actions that none of the kinds has, and warns of what no kind describes', () => {
    const kinds = [
      { pattern: 'a/{x}', actions: edit },
      { pattern: 'a/special', actions: lock },
    ];
    const task = (resource: string, action: string) =>
      codesOf({
        kinds,
        tasks: {
          t: {
            params: resource.includes('{') ? ['x'] : [],
            entries: [{ resource, access: 'write', actions: [action] }],
          },
        },
      });
    expect(task('a/special', 'edit')).toEqual(['unknown_action tasks.t.entries[0].actions[0]']);
    expect(task('a/special', 'swap')).toEqual([]);
    expect(task('a/{x}', 'swap')).toEqual([]);
    expect(task('a/{x}', 'burn')).toEqual(['unknown_action tasks.t.entries[0].actions[0]']);
    expect(task('b/{x}', 'edit')).toEqual(['undescribed_resource tasks.t.entries[0].resource']);
  });

  it('checks parameters of tasks', () => {
    const kinds = [{ pattern: '{any...}', actions: edit }];
    expect(
      codesOf({
        kinds,
        tasks: { t: { params: ['task', 'x', 'x'], entries: [{ resource: 'a/{x}/{task}', access: 'write' }] } },
      }),
    ).toEqual(['reserved_name tasks.t.params[0]', 'repeated_name tasks.t.params[2]']);
    expect(
      codesOf({
        kinds,
        tasks: {
          t: {
            params: ['x'],
            entries: [
              { resource: 'a/{x}', access: 'write' },
              { resource: 'a/{x...}', access: 'write' },
            ],
          },
        },
      }),
    ).toEqual(['mixed_parameter tasks.t.params[0]']);
    expect(
      codesOf({ kinds, tasks: { t: { params: ['x'], entries: [{ resource: 'a/b', access: 'write' }] } } }),
    ).toEqual(['unused_parameter tasks.t.params[0]']);
  });
});

describe('aliases', () => {
  it('that match the same texts must be ordered', () => {
    const to = 'a/b';
    expect(
      codesOf({
        aliases: [
          { from: 'arn:{x}:z', to },
          { from: 'arn:{y}:z', to },
        ],
      }),
    ).toEqual(['equally_specific_alias aliases[1].from']);
    expect(
      codesOf({
        aliases: [
          { from: 'arn:{x}:z', to },
          { from: 'arn:{x}:y', to },
          { from: 'arn:prod:z', to },
        ],
      }),
    ).toEqual([]);
    expect(
      codesOf({
        aliases: [
          { from: 'u:{x}-{y...}', to },
          { from: 'u:{x}+{y...}', to },
        ],
      }),
    ).toEqual(['equally_specific_alias aliases[1].from']);
  });

  it('are read in one way, and refused when they cannot be', () => {
    expect(codesOf({ aliases: [{ from: 'a:{x}{y}', to: 'a' }] })).toEqual(['invalid_alias aliases[0].from']);
    expect(codesOf({ aliases: [{ from: 'a:{x...}/b', to: 'a' }] })).toEqual(['invalid_alias aliases[0].from']);
    expect(codesOf({ aliases: [{ from: 'a:{x}', to: 'a/{z}' }] })).toEqual(['invalid_alias aliases[0].to']);
    expect(codesOf({ aliases: [{ from: 'a:{x...}', to: 'a/{x}' }] })).toEqual(['invalid_alias aliases[0].to']);
    expect(
      codesOf({
        aliases: [
          { from: 'a:{x}', to: 'b/{x}' },
          { from: 'b/{y}', to: 'c/{y}' },
        ],
      }),
    ).toEqual(['alias_chain aliases[0].to']);
  });

  it('resolve to a path, or say why not', () => {
    const map = mapOf({
      unmatched: 'observe',
      kinds: [{ pattern: 'deployment/{name}', actions: edit }],
      aliases: [{ from: 'arn:aws:ecs:{region}:{account}:service/{name}', to: 'deployment/{name}' }],
    });
    expect(describeResource(map, 'arn:aws:ecs:eu-west-1:123456789012:service/web')).toEqual({
      ok: true,
      description: {
        resource: 'deployment/web',
        kind: 'deployment/{name}',
        alias: 'arn:aws:ecs:{region}:{account}:service/{name}',
        actions: ['edit'],
        validation: 'introspect',
        maxViewAge: null,
      },
    });
    expect(resolveResource(map, 'arn:aws:ecs:eu-west-1:123456789012:cluster/web')).toEqual({
      ok: true,
      resource: 'arn:aws:ecs:eu-west-1:123456789012:cluster/web',
      alias: '',
    });
    expect(resolveResource(map, 'arn:aws:ecs:eu-west-1:1:service/..').ok).toBe(false);
    expect(resolveResource(map, '//x').ok).toBe(false);
    expect(observes(map, 'deployment/web')).toBe(false);
    expect(observes(map, 'other')).toBe(true);
  });
});

describe('assertions', () => {
  const parts = {
    kinds: [
      { pattern: 'token/{t}', actions: lock },
      { pattern: 'config/{t}', actions: edit },
    ],
    conflicts: [{ between: ['token/{t}', 'config/{t}'] as const }],
    tasks: { rotate: { params: ['t'], entries: [{ resource: 'token/{t}', access: 'write' as const }] } },
  };
  const write = (resource: string) => ({ entries: [{ resource, access: 'write' as const }] });

  it('hold or fail with what was expected and what happened', () => {
    const a = { task: 'rotate', t: 'acme' };
    expect(
      codesOf({
        ...parts,
        assertions: [
          { conflict: true, a, b: write('config/acme') },
          { conflict: false, a, b: write('config/globex') },
        ],
      }),
    ).toEqual([]);
    const failing = problemsOf({
      ...parts,
      assertions: [
        { conflict: true, a, b: write('config/globex') },
        { conflict: false, a, b: write('config/acme') },
      ],
    });
    expect(failing.map((problem) => `${problem.code} ${problem.path} ${problem.warning}`)).toEqual([
      'assertion_failed assertions[0] false',
      'assertion_failed assertions[1] false',
    ]);
    expect(failing[0]?.message).toContain('Expected a conflict');
    expect(failing[1]?.message).toContain('conflicts[0]');
  });

  it('name tasks that are there, with their parameters, and warn where a run would be refused', () => {
    expect(
      codesOf({ ...parts, assertions: [{ conflict: true, a: { task: 'rotat', t: 'a' }, b: write('config/a') }] }),
    ).toEqual(['unknown_task assertions[0].a.task']);
    expect(
      codesOf({ ...parts, assertions: [{ conflict: true, a: { task: 'rotate' }, b: write('config/a') }] }),
    ).toEqual(['wrong_parameters assertions[0].a']);
    expect(
      codesOf({ ...parts, assertions: [{ conflict: false, a: write('token/x'), b: write('nothing/x') }] }),
    ).toEqual(['assertion_refused assertions[0].b']);
  });

  it('are not run again on what the log holds', () => {
    const document = {
      version: 1,
      ...parts,
      assertions: [{ conflict: true, a: write('token/a'), b: write('config/b') }],
    } as const;
    expect(compileConflictMap(document).ok).toBe(false);
    expect(compileStored(JSON.parse(JSON.stringify(document))).kinds).toHaveLength(2);
    expect(() => compileStored({ version: 1, kinds: [{ pattern: '//' }] })).toThrow('kinds[0].pattern');
    expect(() => compileStored(null)).toThrow();
  });
});

describe('what a document may cost', () => {
  it('its actions are bounded, those of profiles counted for each kind', () => {
    const actions = (count: number, prefix: string) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`${prefix}${n}`, edit.edit]));
    const kinds = (count: number) => Array.from({ length: count }, (_, n) => ({ pattern: `k${n}/{x}`, extends: 'p' }));
    expect(codesOf({ profiles: { p: { actions: actions(256, 'a') } }, kinds: kinds(390) })).toEqual([]);
    expect(codesOf({ profiles: { p: { actions: actions(256, 'a') } }, kinds: kinds(395) })).toEqual([
      'too_many_actions kinds[390]',
    ]);
    expect(
      codesOf({
        profiles: { p: { actions: actions(200, 'a') }, q: { extends: 'p', actions: actions(57, 'b') } },
        kinds: [{ pattern: 'a', extends: 'p', actions: actions(57, 'c') }],
      }),
    ).toEqual(['too_many_actions profiles.q', 'too_many_actions kinds[0]']);
  });

  it('of many problems the first are told, errors also after a thousand warnings', () => {
    const kinds = Array.from({ length: 3_000 }, (_, n) => ({ pattern: `k${n}`, actions: { edit: {} } }));
    const problems = problemsOf({ kinds: [...kinds, ...kinds.slice(0, 1_500)] });
    expect(problems.filter(({ warning }) => warning)).toHaveLength(1_000);
    expect(problems.filter(({ warning }) => !warning)).toHaveLength(1_000);
  });

  it('rules that lead to each other are followed a bounded number of times', () => {
    const rules = Array.from({ length: 300 }, (_, n) => ({
      when: { pattern: `r${n}/{x}` },
      touches: Array.from({ length: 60 }, (_, m) => ({
        resource: `r${(n * 7 + m * 11) % 300}/{x}`,
        access: 'write' as const,
      })),
    }));
    const map = mapOf({ kinds: [{ pattern: '{kind}/{x}', actions: edit }], implies: rules });
    const refusal = refused(map, entries(entry('r0/a')));
    expect(refusal.kind).toBe('limit');
    expect(refusal.message).toContain('followed more than 16,384 times');
  });
});

describe('the overlap of aliases', () => {
  const LETTERS = ['a', ':', '/', 'q'];
  const texts: string[] = [];
  for (let last = ['']; texts.length < 5_000; ) {
    last = last.flatMap((above) => LETTERS.map((letter) => above + letter));
    texts.push(...last);
  }

  const lettersOf = (alias: Alias): number =>
    alias.tokens.reduce((sum, token) => sum + (token.kind === 'text' ? token.text.length : 1), 0);

  it('is found exactly when some text is matched by both', () => {
    const part = fc.constantFrom('a', ':', 'a:', '{x}', '{y}', '/');
    const from = fc
      .tuple(fc.array(part, { minLength: 1, maxLength: 4 }), fc.constantFrom('', '{z...}'))
      .map(([parts, rest]) => parts.join('') + rest);
    fc.assert(
      fc.property(from, from, (one, other) => {
        const [a, b] = [parseAlias(one, 't'), parseAlias(other, 't')];
        fc.pre(a.ok && b.ok);
        if (!a.ok || !b.ok) return;
        const meet = texts.some((text) => applyAlias(a.alias, text) !== null && applyAlias(b.alias, text) !== null);
        const overlap = aliasesOverlap(a.alias.tokens, b.alias.tokens);
        if (meet) expect(overlap).toBe(true);
        // The texts end where the alphabet's do: what only meets in longer ones is not among them.
        if (lettersOf(a.alias) + lettersOf(b.alias) <= 6) expect(overlap).toBe(meet);
      }),
      { numRuns: 1_000 },
    );
  });
});
