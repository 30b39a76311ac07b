import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { explainConflict, type TaskPair, taskMatrix } from '../../src/domain/conflict-map/index.js';
import { mapOf } from '../support/conflict-map.js';

const lease = { concurrency: 'lease', change_class: 'shared_pointer' } as const;
const patch = { change_class: 'derived' } as const;

function pair(pairs: readonly TaskPair[], a: string, b: string): TaskPair {
  const found = pairs.find((one) => one.taskA === a && one.taskB === b);
  if (found === undefined) throw new Error(`no pair ${a} ${b}`);
  return found;
}

describe('the matrix of tasks (C3a)', () => {
  const map = mapOf({
    kinds: [
      { pattern: 'token/{t}', actions: { rotate: lease } },
      { pattern: 'config/{t}', actions: { edit: patch } },
      { pattern: 'release/{env}', actions: { promote: lease } },
    ],
    conflicts: [{ between: ['token/{t}', 'config/{t}'], because: 'the config embeds the token reference' }],
    tasks: {
      rotate: {
        params: ['tenant'],
        entries: [
          { resource: 'token/{tenant}', access: 'write' },
          { resource: 'config/{tenant}', access: 'read' },
        ],
      },
      edit: { params: ['who'], entries: [{ resource: 'config/{who}', access: 'write' }] },
      promote: { entries: [{ resource: 'release/prod', access: 'write' }] },
      survey: { params: ['env'], entries: [{ resource: 'release/{env}', access: 'stable_read' }] },
    },
  });
  const pairs = taskMatrix(map);

  it('has every unordered pair once, in the order of the names', () => {
    expect(pairs.map((one) => `${one.taskA} ${one.taskB}`)).toEqual([
      'edit edit',
      'edit promote',
      'edit rotate',
      'edit survey',
      'promote promote',
      'promote rotate',
      'promote survey',
      'rotate rotate',
      'rotate survey',
      'survey survey',
    ]);
  });

  it('says which can collide, which always do, and why', () => {
    expect(pair(pairs, 'edit', 'edit')).toMatchObject({ canCollide: false, always: false });
    expect(pair(pairs, 'edit', 'rotate')).toMatchObject({ canCollide: true, always: false });
    expect(pair(pairs, 'edit', 'rotate').because[0]).toContain('the config embeds the token reference');
    expect(pair(pairs, 'rotate', 'rotate')).toMatchObject({ canCollide: true, always: false });
    expect(pair(pairs, 'promote', 'promote')).toMatchObject({ canCollide: true, always: true });
    expect(pair(pairs, 'promote', 'survey')).toMatchObject({ canCollide: true, always: false });
    expect(pair(pairs, 'survey', 'survey')).toMatchObject({ canCollide: false });
    expect(pair(pairs, 'edit', 'promote')).toMatchObject({ canCollide: false, because: [] });
  });

  it("says where one changes the other's inputs", () => {
    expect(pair(pairs, 'edit', 'rotate').inputChanges).toEqual([
      '"rotate" relies on the read of "config/{who}", which the optimistic write to "config/{who}" of "edit" can change meanwhile.',
    ]);
    expect(pair(pairs, 'rotate', 'rotate').inputChanges).toEqual([]);
  });

  it('finds literals wherever rules carry a value', () => {
    const carried = mapOf({
      kinds: [
        { pattern: '{any...}', actions: { do: patch } },
        { pattern: 'z/acme', actions: { do: lease } },
      ],
      implies: [{ when: { pattern: 'x/{t}' }, touches: [{ resource: 'y/{t}', access: 'write' }] }],
      conflicts: [{ between: ['y/{t}', 'w/{t}'] }],
      tasks: {
        a: { entries: [{ resource: 'x/acme', access: 'write' }] },
        b: { params: ['p'], entries: [{ resource: 'w/{p}', access: 'write' }] },
        c: { params: ['p'], entries: [{ resource: 'z/{p}', access: 'write' }] },
      },
    });
    expect(pair(taskMatrix(carried), 'a', 'b')).toMatchObject({ canCollide: true, always: false });
    expect(pair(taskMatrix(carried), 'c', 'c')).toMatchObject({ canCollide: true, always: false });
  });

  it('agrees with trying every value of a small alphabet', () => {
    const values = ['a', 'b', 'q', 'r', 's', 't'];
    const step = fc.constantFrom('a', 'b', '{p}', '{q}');
    const entryOf = fc.record({
      resource: fc
        .tuple(fc.constantFrom('k', 'm'), step, fc.option(step, { nil: null }))
        .map((parts) => parts.filter((part) => part !== null).join('/')),
      how: fc.constantFrom('lease', 'patch', 'stable'),
      scope: fc.constantFrom('exact', 'exact', 'subtree'),
    });
    const task = fc.array(entryOf, { minLength: 1, maxLength: 2 });
    const rulePattern = fc.constantFrom('k/{p}', 'm/{p}', 'k/{p}/{q}', 'm/a/{p}', 'k/{q}/b', 'm/{q}/{p}');
    const rule = fc.tuple(rulePattern, rulePattern);
    const toParts = (list: { resource: string; how: string; scope: string }[]) => ({
      params: ['p', 'q'],
      entries: list.map(({ resource, how, scope }) => ({
        resource,
        access: how === 'stable' ? ('stable_read' as const) : ('write' as const),
        actions: how === 'stable' ? [] : [how],
        scope: scope as 'exact' | 'subtree',
      })),
    });
    fc.assert(
      fc.property(
        task,
        task,
        fc.array(rule, { maxLength: 2 }),
        fc.option(rule, { nil: null }),
        (one, other, conflicts, implied) => {
          const bound = (from: string, to: string): boolean =>
            [...to.matchAll(/\{(\w)\}/g)].every(([capture]) => from.includes(capture));
          const made = mapOf({
            kinds: [{ pattern: '{any...}', actions: { lease, patch } }],
            conflicts: conflicts.map(([first, second]) => ({ between: [first, second] as const })),
            implies:
              implied !== null && bound(implied[0], implied[1])
                ? [
                    {
                      when: { pattern: implied[0] },
                      touches: [{ resource: implied[1], access: 'write', actions: ['patch'] }],
                    },
                  ]
                : [],
            tasks: { one: toParts(one), other: toParts(other) },
          });
          const call = (name: string, p: string, q: string) => ({
            entries: [],
            task: { name, parameters: { p, q } },
            resourceSet: null,
          });
          let collided = 0;
          let tried = 0;
          for (const p of values)
            for (const q of values)
              for (const r of values)
                for (const s of values) {
                  tried += 1;
                  if (explainConflict(made, call('one', p, q), call('other', r, s)).conflict) collided += 1;
                }
          const judged = pair(taskMatrix(made), 'one', 'other');
          expect({ can: judged.canCollide, always: judged.always }).toEqual({
            can: collided > 0,
            always: collided === tried,
          });
        },
      ),
      { numRuns: 40 },
    );
  }, 60_000);
});
