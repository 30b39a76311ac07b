import type { TaskCollision, TaskPair } from '../../gen/writ/v1/conflict_map_service.js';
import type { Cell, Output } from '../output.js';

/** Every pair of tasks: whether two runs that do them at once can collide, where, and by which rule. */
export function showMatrix(out: Output, pairs: readonly TaskPair[]): void {
  if (pairs.length === 0) {
    out.line('The map names no tasks.');
    return;
  }
  out.table(['TASK', 'AND', 'COLLIDE', 'WHERE', 'WHY'], pairs.flatMap(rowsOf));
  const remarks = pairs.flatMap(remarksOf);
  if (remarks.length > 0) out.line();
  for (const remark of remarks) out.line(remark);
  out.line();
  out.line('{name} stands for one and the same value in both places, {other name} for a different one.');
}

function rowsOf(pair: TaskPair): Cell[][] {
  const names = [pair.taskA, pair.taskA === pair.taskB ? 'itself' : pair.taskB];
  const [first, ...others] = pair.collisions.map((collision) => [placeOf(collision), whyOf(collision)]);
  return [[...names, verdictOf(pair), ...(first ?? ['', ''])], ...others.map((one) => ['', '', '', ...one])];
}

function verdictOf(pair: TaskPair): Cell {
  if (pair.always) return { text: 'always', style: 'red' };
  if (pair.canCollide) return { text: 'can', style: 'yellow' };
  return { text: isIncomplete(pair) ? 'none found' : 'never', style: 'green' };
}

/** A reason beside those of the collisions says that not every combination could be tried. */
const isIncomplete = (pair: TaskPair): boolean => pair.because.length > pair.collisions.length;

function placeOf({ resourceA, resourceB }: TaskCollision): string {
  return resourceA === resourceB ? resourceA : `${resourceA} with ${resourceB}`;
}

function whyOf({ rules, because }: TaskCollision): string {
  if (rules.length === 0) return 'both name it';
  return `by ${rules.join(' and ')}${because === '' ? '' : `: ${because}`}`;
}

function remarksOf(pair: TaskPair): string[] {
  const names = `${pair.taskA} and ${pair.taskA === pair.taskB ? 'itself' : pair.taskB}`;
  const incomplete = pair.because.slice(pair.collisions.length);
  return [...pair.inputChanges, ...incomplete.map((text) => `${names}: ${text}`)];
}
