import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type ConflictMap, taskMatrix } from '../../src/domain/conflict-map/index.js';
import { checkConflictMapText } from '../../src/services/conflict-map-text.js';

const DIRECTORY = new URL('../../examples/maps/', import.meta.url);

const NAMES = readdirSync(DIRECTORY)
  .filter((name) => name.endsWith('.yaml'))
  .sort();

const textOf = (name: string): string => readFileSync(new URL(name, DIRECTORY), 'utf8');

function mapOf(name: string): ConflictMap {
  const { map, problems } = checkConflictMapText(textOf(name), name);
  const errors = problems.filter((problem) => !problem.warning);
  expect(errors.map(({ line, code, message }) => `${name}:${line} ${code} ${message}`)).toEqual([]);
  if (map === undefined) throw new Error(`${name} has no map`);
  return map;
}

it('there are three starter maps', () => {
  expect(NAMES).toEqual(['code-repository.yaml', 'infrastructure.yaml', 'saas-tenant.yaml']);
});

describe.each(NAMES)('%s', (name) => {
  it('has no errors, and its assertions hold', () => {
    const { document } = mapOf(name);
    expect(document.assertions?.some((assertion) => assertion.conflict)).toBe(true);
    expect(document.assertions?.some((assertion) => !assertion.conflict)).toBe(true);
  });

  it('explains each of its warnings in a comment just above it', () => {
    const lines = textOf(name).split('\n');
    const unexplained = checkConflictMapText(textOf(name), name)
      .problems.filter((problem) => problem.warning)
      .filter(({ line, code }) => !commentAbove(lines, line).includes(`warning: ${code}`))
      .map(({ line, code }) => `${name}:${line} ${code}`);
    expect(unexplained).toEqual([]);
  });

  it('says what happens on a version conflict for every action that writes (W4)', () => {
    const silent = mapOf(name).kinds.flatMap((kind) =>
      kind.writeActions.filter((action) => action.changeClass === null).map((action) => action.name),
    );
    expect(silent).toEqual([]);
  });

  it('has tasks, and a matrix that knows pairs that collide and pairs that do not', () => {
    const pairs = taskMatrix(mapOf(name));
    expect(pairs.some((pair) => pair.canCollide)).toBe(true);
    expect(pairs.some((pair) => !pair.canCollide)).toBe(true);
  });
});

/** The comment lines that stand directly above a line, as one text. */
function commentAbove(lines: readonly string[], line: number): string {
  const comment: string[] = [];
  for (let at = line - 2; /^\s*#/.test(lines[at] ?? ''); at -= 1) comment.unshift((lines[at] ?? '').trim());
  return comment.join(' ');
}
