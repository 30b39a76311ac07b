import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { expandWriteSet } from '../../src/domain/conflict-map/index.js';
import type { Access, Scope } from '../../src/domain/entry.js';
import { SECOND } from '../../src/domain/time.js';
import { BOUNDS, EVERYTHING, entries, entry, expanded, mapOf, refused } from '../support/conflict-map.js';

const lease = { concurrency: 'lease', change_class: 'shared_pointer' } as const;
const patch = { change_class: 'derived' } as const;

const MAP = mapOf({
  profiles: { short: { ttl: 10 * SECOND, max_ttl: 20 * SECOND, max_hold: 40 * SECOND, progress_window: 30 * SECOND } },
  resolvers: { owner: {} },
  kinds: [
    {
      pattern: 'release/{env}',
      extends: 'short',
      actions: { promote: { ...lease, resolver: 'owner' }, annotate: patch, inspect: { access: 'stable_read' } },
    },
    {
      pattern: 'policy/{id}',
      actions: { patch, replace: { concurrency: 'lease', change_class: 'shared_document', approval: 'call' } },
    },
    { pattern: 'secret/{name...}', authority: 'forbid', sandbox: 'wiki/secrets/{name...}' },
    { pattern: 'bill/{id}', authority: 'propose', sandbox: 'wiki/bills/{id}', actions: { pay: lease } },
    { pattern: 'wiki/{page...}', mode: 'observe', actions: { edit: patch } },
    { pattern: 'plain/{id}' },
    { pattern: 'tenant/{id}', actions: { repair: lease } },
    { pattern: 'tenant/{id}/note/{n}', actions: { write: patch } },
    { pattern: 'tenant/{id}/vault/{n}', authority: 'forbid' },
  ],
});

describe('one entry', () => {
  it('takes the actions named, and the strictest of their concurrency (C8)', () => {
    expect(expanded(MAP, entries(entry('release/prod', 'write', ['annotate']))).entries).toEqual([
      {
        resource: 'release/prod',
        access: 'write',
        scope: 'exact',
        actions: ['annotate'],
        exclusive: false,
        impliedBy: '',
        mode: 'enforce',
        validation: 'introspect',
        maxViewAge: 0,
        resolver: '',
        observedVersion: null,
      },
    ]);
    expect(expanded(MAP, entries(entry('release/prod', 'write', ['annotate', 'promote']))).entries[0]).toMatchObject({
      exclusive: true,
      resolver: 'owner',
    });
  });

  it('without actions takes every write action that the contract allows and no approval guards', () => {
    expect(expanded(MAP, entries(entry('release/prod'))).entries[0]?.actions).toEqual(['promote', 'annotate']);
    expect(
      expanded(MAP, entries(entry('release/prod')), [{ pattern: 'release/{e}', actions: ['annotate'] }]).entries[0],
    ).toMatchObject({ actions: ['annotate'], exclusive: false });
    expect(expanded(MAP, entries(entry('policy/x'))).entries[0]).toMatchObject({
      actions: ['patch'],
      exclusive: false,
    });
    expect(refused(MAP, entries(entry('policy/x')), [{ pattern: 'policy/{x}', actions: ['replace'] }]).kind).toBe(
      'approval_required',
    );
  });

  it.each([
    ['backend work', 'write', [], 'undescribed'],
    ['release', 'write', [], 'undescribed'],
    ['release/prod', 'write', ['promot'], 'undescribed'],
    ['release/prod', 'write', ['inspect'], 'undescribed'],
    ['plain/x', 'write', [], 'undescribed'],
    ['release//prod', 'write', [], 'undescribed'],
    ['policy/x', 'write', ['replace'], 'approval_required'],
    ['secret/a/b', 'write', [], 'forbidden'],
    ['bill/7', 'write', ['pay'], 'propose_only'],
  ] as const)('%s %s %j is refused as %4$s', (resource, access, actions, kind) => {
    const refusal = refused(MAP, entries(entry('release/ok', 'read'), entry(resource, access, actions)));
    expect(refusal.kind).toBe(kind);
    expect(refusal.resource).toBe(resource);
    expect(refusal.message).toContain(JSON.stringify(resource));
    expect(refusal.resolution.action).not.toBe('');
  });

  it('is refused with words that help', () => {
    expect(refused(MAP, entries(entry('relase/prod'))).message).toContain('"release/{env}"');
    expect(refused(MAP, entries(entry('release/prod', 'write', ['promot']))).message).toContain(
      'did you mean "promote"?',
    );
    expect(refused(MAP, entries(entry('release/prod', 'write', ['inspect']))).resolution.action).toContain(
      'access stable_read',
    );
    expect(refused(MAP, entries(entry('secret/a/b'))).resolution.action).toContain('"wiki/secrets/a/b"');
    expect(refused(MAP, entries(entry('bill/7', 'write', ['pay']))).resolution.action).toContain('"wiki/bills/7"');
  });

  it('names as accepted only kinds that would be (C2)', () => {
    const closed = ['"secret/', '"bill/', '"plain/', '"tenant/{id}/vault'];
    for (const resource of ['backend work', 'secret', 'bill', 'plains/1', 'tenant/1/vault/2/3']) {
      const { message } = refused(MAP, entries(entry(resource)));
      expect(message).toContain('Accepted would be');
      expect(closed.filter((kind) => message.slice(message.indexOf('Accepted')).includes(kind))).toEqual([]);
    }
    expect(refused(MAP, entries(entry('secret', 'read'))).message).toContain('"secret/{name...}"');
    const shut = mapOf({ kinds: [{ pattern: 'secret/{name...}', authority: 'forbid' }] });
    expect(refused(shut, entries(entry('backend work'))).message).toContain('no kind that runs may write');
  });

  it('may be read whatever its authority; a stable read needs a kind, a read as well', () => {
    expect(expanded(MAP, entries(entry('secret/a', 'read'), entry('secret/a', 'stable_read'))).entries).toHaveLength(2);
    expect(refused(MAP, entries(entry('nothing', 'read'))).kind).toBe('undescribed');
  });

  it('names no resource: refused (C2)', () => {
    expect(refused(MAP, entries()).kind).toBe('undescribed');
  });
});

describe('the contract (R1)', () => {
  const contract = [
    { pattern: 'release/{env}', actions: ['annotate'] },
    { pattern: 'tenant/1', actions: ['*'] },
    { pattern: 'tenant/1/{all...}', actions: ['write'] },
  ];
  const kind = (request: ReturnType<typeof entries>): string => {
    const result = expandWriteSet(MAP, request, contract, BOUNDS);
    return result.ok ? 'ok' : result.refusal.kind;
  };

  it('must allow every action on every resource written', () => {
    expect(kind(entries(entry('release/prod', 'write', ['annotate'])))).toBe('ok');
    expect(kind(entries(entry('release/prod', 'write', ['annotate', 'promote'])))).toBe('outside_contract');
    expect(kind(entries(entry('policy/x')))).toBe('outside_contract');
  });

  it('must match a resource kept stable, by whatever action; a mere read needs nothing', () => {
    expect(kind(entries(entry('release/prod', 'stable_read')))).toBe('ok');
    expect(kind(entries(entry('policy/x', 'stable_read')))).toBe('outside_contract');
    expect(kind(entries(entry('policy/x', 'read')))).toBe('ok');
    expect(kind(entries(entry('release/prod', 'stable_read', ['inspect'])))).toBe('outside_contract');
  });

  it('must cover all of a subtree, with all its patterns together', () => {
    const map = mapOf({
      kinds: [
        { pattern: 'tenant/{id}/{rest...}', actions: { write: patch, repair: lease } },
        { pattern: 'tenant/{id}', actions: { write: patch, repair: lease } },
      ],
    });
    const kindOf = (actions: string[]): string => {
      const result = expandWriteSet(map, entries(entry('tenant/1', 'write', actions, 'subtree')), contract, BOUNDS);
      return result.ok ? 'ok' : result.refusal.kind;
    };
    expect(kindOf(['write'])).toBe('ok');
    expect(kindOf(['repair'])).toBe('outside_contract');
    expect(kindOf([])).toBe('ok');
  });
});

describe('a subtree', () => {
  it('is refused by what is forbidden beneath, and takes the strictest concurrency', () => {
    expect(refused(MAP, entries(entry('tenant/1', 'write', ['repair'], 'subtree'))).kind).toBe('forbidden');
    expect(expanded(MAP, entries(entry('tenant/1/note', 'write', [], 'subtree'))).entries[0]).toMatchObject({
      exclusive: false,
      actions: ['write'],
    });
    expect(expanded(MAP, entries(entry('tenant/1', 'read', [], 'subtree'))).entries[0]?.scope).toBe('subtree');
    expect(refused(MAP, entries(entry('nothing', 'write', [], 'subtree'))).kind).toBe('undescribed');
  });

  it('is not refused by a kind that a more specific one replaces everywhere beneath', () => {
    const map = mapOf({
      kinds: [
        { pattern: '{any...}', authority: 'forbid' },
        { pattern: 'tenant/{id}', actions: { repair: lease } },
        { pattern: 'tenant/{id}/{rest...}', actions: { repair: patch } },
      ],
    });
    expect(expanded(map, entries(entry('tenant/1', 'write', [], 'subtree'))).entries[0]).toMatchObject({
      actions: ['repair'],
      exclusive: true,
    });
    expect(refused(map, entries(entry('tenant', 'write', [], 'subtree'))).kind).toBe('forbidden');
  });
});

describe('times', () => {
  it('are the least of the kinds that are written or kept stable', () => {
    const short = { ttl: 10 * SECOND, maxTtl: 20 * SECOND, maxHold: 40 * SECOND, progressWindow: 30 * SECOND };
    const defaults = { ttl: 60 * SECOND, maxTtl: 300 * SECOND, maxHold: 1_800 * SECOND, progressWindow: null };
    expect(expanded(MAP, entries(entry('release/prod'), entry('policy/x')))).toMatchObject(short);
    expect(expanded(MAP, entries(entry('policy/x')))).toMatchObject(defaults);
    expect(expanded(MAP, entries(entry('release/prod', 'read'), entry('policy/x')))).toMatchObject(defaults);
    expect(expanded(MAP, entries(entry('release/prod', 'read')))).toMatchObject(defaults);
    expect(expanded(MAP, entries(entry('release/prod', 'stable_read')))).toMatchObject(short);
  });
});

describe('observe (C14)', () => {
  it('refuses nothing, and tells what would have been', () => {
    const result = expanded(MAP, entries(entry('wiki/a', 'write', ['burn']), entry('wiki/b', 'write', ['edit'])), []);
    expect(result.entries.map((one) => [one.mode, one.actions])).toEqual([
      ['observe', ['burn']],
      ['observe', ['edit']],
    ]);
    expect(result.observedRefusals.map(({ entry: index, refusal }) => [index, refusal.kind])).toEqual([
      [0, 'undescribed'],
      [1, 'outside_contract'],
    ]);
  });

  it('of what no kind matches takes any action, and counts it', () => {
    const map = mapOf({ unmatched: 'observe' });
    const result = expanded(map, entries(entry('x/y', 'write', ['anything'])));
    expect(result.entries[0]).toMatchObject({ mode: 'observe', exclusive: false, actions: ['anything'] });
    expect(result.unmatched).toEqual(['x/y']);
    const denied = expandWriteSet(mapOf({}), entries(entry('x/y')), EVERYTHING, BOUNDS);
    expect(denied.ok ? [] : denied.unmatched).toEqual(['x/y']);
  });

  it('proposes where the map says so', () => {
    expect(refused(mapOf({ unmatched: 'propose' }), entries(entry('x/y'))).kind).toBe('propose_only');
    expect(expanded(mapOf({ unmatched: 'propose' }), entries(entry('x/y', 'read'))).entries).toHaveLength(1);
  });

  it('passes on to what it implies, unless an enforced entry implies it too', () => {
    const map = mapOf({
      kinds: [
        { pattern: 'seen/{x}', mode: 'observe', actions: { edit: patch } },
        { pattern: 'kept/{x}', actions: { edit: patch } },
        { pattern: 'both/{x}', actions: { edit: lease } },
        { pattern: 'shut/{x}', authority: 'forbid' },
      ],
      implies: [
        {
          when: { pattern: 'seen/{x}' },
          touches: [
            { resource: 'both/{x}', access: 'write' },
            { resource: 'shut/{x}', access: 'write' },
          ],
        },
        { when: { pattern: 'kept/{x}' }, touches: [{ resource: 'both/{x}', access: 'write' }] },
      ],
    });
    const modes = (request: ReturnType<typeof entries>): string[] =>
      expanded(map, request).entries.map((one) => `${one.resource} ${one.mode}`);
    expect(modes(entries(entry('seen/1')))).toEqual(['seen/1 observe', 'both/1 observe', 'shut/1 observe']);
    expect(modes(entries(entry('seen/1'), entry('kept/1')))).toContain('both/1 enforce');
    expect(expanded(map, entries(entry('seen/1'))).observedRefusals.map(({ refusal }) => refusal.kind)).toEqual([
      'forbidden',
    ]);
  });
});

describe('implies', () => {
  const kinds = [
    { pattern: 'deployment/{env}', actions: { update: lease } },
    { pattern: 'image-tag/{env}', actions: { set: patch, drop: lease } },
    { pattern: 'dns/{env}', actions: { change: patch } },
    { pattern: 'dns/{env}/{record...}', actions: { change: patch } },
    { pattern: 'shut/{env}', authority: 'forbid' as const },
    {
      pattern: 'config/{env}',
      actions: { patch, replace: { concurrency: 'lease', change_class: 'shared_document' } as const },
    },
  ];

  it('brings what is touched, with the rule, and of its actions those the contract allows', () => {
    const map = mapOf({
      kinds,
      implies: [
        {
          when: { pattern: 'deployment/{env}' },
          touches: [
            { resource: 'image-tag/{env}', access: 'write', actions: ['set'] },
            { resource: 'dns/{env}', access: 'stable_read', scope: 'subtree' },
          ],
        },
        {
          when: { pattern: 'dns/{env}', access: 'stable_read' },
          touches: [{ resource: 'journal/{env}', access: 'write' }],
        },
      ],
    });
    const result = expanded(map, entries(entry('deployment/staging')), [{ pattern: 'deployment/{e}', actions: ['*'] }]);
    expect(
      result.entries
        .slice(1)
        .map((one) => [one.resource, one.access, one.scope, one.actions, one.exclusive, one.impliedBy]),
    ).toEqual([
      ['image-tag/staging', 'write', 'exact', [], false, 'implies[0]'],
      ['dns/staging', 'stable_read', 'subtree', [], false, 'implies[0]'],
      // Nothing describes the journal but the rule: it is reserved as strictly as can be.
      ['journal/staging', 'write', 'exact', [], true, 'implies[1]'],
    ]);
    expect(expanded(map, entries(entry('deployment/staging'))).entries[1]?.actions).toEqual(['set']);
  });

  it('reserves as strictly as the strictest write of the kind when the rule names no action', () => {
    const map = mapOf({
      kinds,
      implies: [
        {
          when: { pattern: 'deployment/{env}' },
          touches: [
            { resource: 'image-tag/{env}', access: 'write' },
            { resource: 'dns/{env}', access: 'write' },
          ],
        },
      ],
    });
    expect(expanded(map, entries(entry('deployment/x'))).entries.map((one) => one.exclusive)).toEqual([
      true,
      true,
      false,
    ]);
  });

  it('refuses the whole where a rule would write what is forbidden, and names the rule', () => {
    const touching = (access: Access) =>
      mapOf({
        kinds,
        implies: [{ when: { pattern: 'deployment/{env}' }, touches: [{ resource: 'shut/{env}', access }] }],
      });
    const refusal = refused(touching('write'), entries(entry('deployment/x')));
    expect(refusal).toMatchObject({ kind: 'forbidden', resource: 'shut/x' });
    expect(refusal.message).toContain('implies[0]');
    expect(expanded(touching('stable_read'), entries(entry('deployment/x'))).entries).toHaveLength(2);
  });

  it('merges with what was asked for, which stays asked for; a rule never adds the leave to replace a shared document (W4)', () => {
    const map = mapOf({
      kinds,
      implies: [
        {
          when: { pattern: 'deployment/{env}' },
          touches: [{ resource: 'config/{env}', access: 'write', actions: ['patch', 'replace'] }],
        },
      ],
    });
    const both = expanded(map, entries(entry('deployment/x'), entry('config/x', 'write', ['patch']))).entries;
    expect(both).toHaveLength(2);
    expect(both[1]).toMatchObject({ impliedBy: '', actions: ['patch'], exclusive: true });
    expect(expanded(map, entries(entry('deployment/x'))).entries[1]).toMatchObject({
      impliedBy: 'implies[0]',
      actions: ['patch', 'replace'],
    });
  });

  it('ends in circles, and is bounded where rules feed themselves', () => {
    const circle = mapOf({
      kinds: [{ pattern: '{a}/{b}', actions: { do: lease } }],
      implies: [
        { when: { pattern: 'a/{x}' }, touches: [{ resource: 'b/{x}', access: 'write' }] },
        { when: { pattern: 'b/{x}' }, touches: [{ resource: 'a/{x}', access: 'write' }] },
      ],
    });
    expect(expanded(circle, entries(entry('a/1'))).entries.map((one) => one.resource)).toEqual(['a/1', 'b/1']);
    const growing = mapOf({
      kinds: [{ pattern: '{a...}', actions: { do: lease } }],
      implies: [{ when: { pattern: 'a/{x...}' }, touches: [{ resource: 'a/b/{x...}', access: 'write' }] }],
    });
    const deep = refused(growing, entries(entry('a/1')));
    expect(deep.kind).toBe('limit');
    expect(deep.message).toContain('implies[0]');
    const doubling = mapOf({
      kinds: [{ pattern: '{a...}', actions: { do: lease } }],
      implies: [
        {
          when: { pattern: 'a/{x...}' },
          touches: [
            { resource: 'a/l/{x...}', access: 'write' },
            { resource: 'a/r/{x...}', access: 'write' },
          ],
        },
      ],
    });
    expect(refused(doubling, entries(entry('a/1'))).message).toMatch(/implies\[0\]/);
  });

  it('widens below a subtree, and refuses what could be anything', () => {
    const map = mapOf({
      kinds: [{ pattern: '{a...}', actions: { do: lease } }],
      implies: [
        { when: { pattern: 'app/{env}/{service}' }, touches: [{ resource: 'dns/{env}/{service}', access: 'write' }] },
      ],
    });
    expect(expanded(map, entries(entry('app/prod', 'write', [], 'subtree'))).entries[1]).toMatchObject({
      resource: 'dns/prod',
      scope: 'subtree',
    });
    expect(expanded(map, entries(entry('app', 'write', [], 'subtree'))).entries[1]).toMatchObject({
      resource: 'dns',
      scope: 'subtree',
    });
    const wide = mapOf({
      kinds: [{ pattern: '{a...}', actions: { do: lease } }],
      implies: [{ when: { pattern: 'app/{env}' }, touches: [{ resource: '{env}/dns', access: 'write' }] }],
    });
    expect(expanded(wide, entries(entry('app/prod'))).entries[1]?.resource).toBe('prod/dns');
    expect(refused(wide, entries(entry('app', 'write', [], 'subtree'))).message).toContain('implies[0]');
  });

  it('closes as a naive fixpoint over all rules does', () => {
    const segment = fc.constantFrom('a', 'b', '{x}');
    const template = fc.tuple(fc.constantFrom('a', 'b', 'c'), segment).map(([first, second]) => `${first}/${second}`);
    const access = fc.constantFrom<Access>('write', 'stable_read');
    const rule = fc.record({
      from: fc.tuple(fc.constantFrom('a', 'b', 'c'), access),
      to: fc.array(fc.tuple(template, access), { minLength: 1, maxLength: 3 }),
    });
    fc.assert(
      fc.property(
        fc.array(rule, { maxLength: 6 }),
        fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('a', 'b', 'z'), access),
        (rules, [first, second, how]) => {
          const map = mapOf({
            kinds: [{ pattern: '{x}/{y}', actions: { do: lease } }],
            implies: rules.map(({ from, to }) => ({
              when: { pattern: `${from[0]}/{x}`, access: from[1] },
              touches: to.map(([resource, toAccess]) => ({ resource, access: toAccess })),
            })),
          });
          const naive = new Set([`${how} ${first}/${second}`]);
          for (let before = -1; before !== naive.size; ) {
            before = naive.size;
            for (const { from, to } of rules) {
              for (const held of [...naive]) {
                const match = new RegExp(`^${from[1]} ${from[0]}/(.*)$`).exec(held);
                if (match !== null)
                  for (const [resource, toAccess] of to)
                    naive.add(`${toAccess} ${resource.replace('{x}', match[1] as string)}`);
              }
            }
          }
          const closed = expanded(map, entries(entry(`${first}/${second}`, how))).entries.map(
            (one) => `${one.access} ${one.resource}`,
          );
          expect(closed).toHaveLength(naive.size);
          expect(new Set(closed)).toEqual(naive);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('tasks, sets, aliases and bounds', () => {
  const map = mapOf({
    kinds: [
      { pattern: 'token/{t}', actions: { rotate: lease } },
      { pattern: 'file/{path...}', actions: { edit: patch } },
    ],
    tasks: {
      rotate: { params: ['t'], entries: [{ resource: 'token/{t}', access: 'write', actions: ['rotate'] }] },
      edit: { params: ['path'], entries: [{ resource: 'file/{path...}', access: 'write' }] },
    },
    sets: {
      incident: {
        not_before: 77,
        entries: [{ resource: 'token/x', access: 'write', scope: 'subtree', actions: ['rotate'] }],
      },
    },
    aliases: [
      { from: 'arn:aws:iam:{region}:token/{t}', to: 'token/{t}' },
      { from: 'https://git.example/{path...}', to: 'file/{path...}' },
      { from: 'https://git.example/secret/{t}', to: 'token/{t}' },
    ],
  });
  const task = (name: string, parameters: Record<string, string>) => ({
    entries: [],
    task: { name, parameters },
    resourceSet: null,
  });

  it('fills a task in, and says what is wrong with its parameters', () => {
    expect(expanded(map, task('rotate', { t: 'acme' })).entries[0]?.resource).toBe('token/acme');
    expect(expanded(map, task('edit', { path: 'a/b' })).entries[0]?.resource).toBe('file/a/b');
    expect(refused(map, task('rotat', { t: 'acme' })).message).toContain('did you mean "rotate"?');
    expect(refused(map, task('rotate', {})).message).toContain('"t"');
    expect(refused(map, task('rotate', { t: 'a/b' })).message).toContain('one segment');
    expect(refused(map, task('rotate', { t: '..' })).message).toContain('".."');
    expect(refused(map, task('rotate', { t: 'a', u: 'b' })).message).toContain('no parameter "u"');
    expect(refused(map, task('rotate', { t: 'a', toString: 'b' })).message).toContain('no parameter');
    expect(refused(map, task('toString', {})).message).toContain('no task');
  });

  it('takes a named set with its start (C1a)', () => {
    const result = expanded(map, { entries: [], task: null, resourceSet: 'incident' });
    expect(result.notBefore).toBe(77);
    expect(result.entries[0]).toMatchObject({ resource: 'token/x', scope: 'subtree' });
    expect(refused(map, { entries: [], task: null, resourceSet: 'none' }).kind).toBe('undescribed');
  });

  it('turns aliases into paths, the most specific one first', () => {
    const paths = (text: string): string | undefined => expanded(map, entries(entry(text))).entries[0]?.resource;
    expect(paths('arn:aws:iam:eu:token/acme')).toBe('token/acme');
    expect(paths('https://git.example/a/b.md')).toBe('file/a/b.md');
    expect(paths('https://git.example/secret/acme')).toBe('token/acme');
    expect(refused(map, entries(entry('https://git.example/a//b'))).message).toContain('alias');
  });

  it('bounds entries and locks', () => {
    const many = Array.from({ length: 257 }, (_, n) => entry(`token/${n}`));
    expect(refused(map, entries(...many)).kind).toBe('limit');
    const result = expandWriteSet(map, entries(...many.slice(0, 10)), EVERYTHING, { maxEntries: 256, maxLocks: 10 });
    expect(result.ok ? null : result.refusal.kind).toBe('limit');
    expect(expandWriteSet(map, entries(...many.slice(0, 10)), EVERYTHING, { maxEntries: 256, maxLocks: 11 }).ok).toBe(
      true,
    );
  });

  it('merges entries of one resource, access and scope', () => {
    const scopes: Scope[] = ['exact', 'subtree'];
    const result = expanded(
      map,
      entries(...scopes.map((scope) => entry('token/a', 'write', ['rotate'], scope)), {
        ...entry('token/a', 'write', []),
        observedVersion: '7',
      }),
    );
    expect(result.entries.map((one) => [one.scope, one.observedVersion])).toEqual([
      ['exact', '7'],
      ['subtree', null],
    ]);
  });
});
