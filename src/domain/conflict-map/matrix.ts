import type { ExpandedEntry } from '../entry.js';
import { covers } from '../resource.js';
import { type ConflictStep, findConflicts, inWords } from './conflicts.js';
import { type ExpandedWriteSet, expandForQuestion } from './expand.js';
import type { ConflictMap, Task } from './map.js';
import { literalValues } from './matrix-values.js';
import { quoted } from './problems.js';

/** What two tasks do to each other when two runs do them at once. */
export interface TaskPair {
  readonly taskA: string;
  /** May be the same task, done by two runs. */
  readonly taskB: string;
  /** With some parameters they cannot be held at once. */
  readonly canCollide: boolean;
  /** Whatever the parameters are. */
  readonly always: boolean;
  /** Where and why. */
  readonly collisions: readonly TaskCollision[];
  /** The same in words, and whether not every combination could be tried. */
  readonly because: readonly string[];
  /** What one reads and the other changes, in words. */
  readonly inputChanges: readonly string[];
}

/**
 * One place where two tasks meet. In both resources `{tenant}` stands for one and the same value, any one, and
 * `{other tenant}` for a different one.
 */
export interface TaskCollision {
  readonly resourceA: string;
  readonly resourceB: string;
  /** Rules by which they meet; none: both tasks name the resource. */
  readonly rules: readonly string[];
  /** Why the `conflicts` rule among them is there, as the map says it. */
  readonly because: string;
  readonly message: string;
}

/** Reasons told for one pair, and letters of all reasons together: an answer has to fit into a message. */
const MAX_REASONS = 8;
const MAX_REASON_LETTERS = 1_048_576;
/** Combinations of parameters tried for one pair, and for all pairs of a map together. */
const MAX_COMBINATIONS = 1_024;
const MAX_ALL_COMBINATIONS = 50_000;
const MIN_COMBINATIONS = 16;

/**
 * Which pairs of tasks can collide (C3a), judged on a small model. Two write sets meet or do not meet
 * by comparing segments: a parameter's value matters only by being equal to another one's, or to a
 * literal that some pattern has where the value can come to stand. So each parameter takes each of these
 * literals, each value used before it, and one value used nowhere else; that covers every case of
 * parameters of one segment. Of parameters of several segments, `{name...}`, values of one and of two
 * segments are tried. A pair with more than the bounded number of combinations is judged on the first of
 * them, and says so.
 */
export function taskMatrix(map: ConflictMap): TaskPair[] {
  const tasks = [...map.tasks.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const model = new Model(map);
  const pairs = (tasks.length * (tasks.length + 1)) / 2;
  const bound = Math.max(
    MIN_COMBINATIONS,
    Math.min(MAX_COMBINATIONS, Math.floor(MAX_ALL_COMBINATIONS / Math.max(1, pairs))),
  );
  const told = { letters: 0 };
  return tasks.flatMap((a, index) => tasks.slice(index).map((b) => shortened(judgePair(model, a, b, bound), told)));
}

/** The pair, its reasons as far as there is room for them. */
function shortened(pair: TaskPair, told: { letters: number }): TaskPair {
  const roomFor = (reasons: readonly string[]): readonly string[] => {
    const fitting = reasons.filter((reason) => {
      told.letters += reason.length;
      return told.letters <= MAX_REASON_LETTERS;
    });
    return fitting.length === reasons.length ? reasons : [...fitting, 'There is more, but no room to tell it.'];
  };
  const because = roomFor(pair.because);
  // Each collision's message is among the reasons: where there was no room for these, there is none for it.
  const collisions = pair.collisions.filter(({ message }) => because.includes(message));
  return { ...pair, collisions, because, inputChanges: roomFor(pair.inputChanges) };
}

function judgePair(model: Model, a: Task, b: Task, bound: number): TaskPair {
  const collisions = new Map<string, TaskCollision>();
  const inputs = new Map<string, string>();
  let tried = 0;
  let collided = 0;
  let incomplete: string[] = [];
  for (const [one, other] of model.combinations(a, b)) {
    if (tried === bound) {
      incomplete = [`There are more combinations of parameters than the ${bound} that were looked at.`];
      break;
    }
    tried += 1;
    const left = model.expand(a, one);
    const right = model.expand(b, other);
    const steps = findConflicts(left, right, model.because);
    if (steps.length > 0) collided += 1;
    for (const step of collisions.size < MAX_REASONS ? steps : [])
      note(
        collisions,
        `${placeOf(left, step.resourceA)} ${placeOf(right, step.resourceB)} ${step.ruleA} ${step.ruleB}`,
        collisionOf(step),
      );
    noteInputs(inputs, a, left, b, right);
    noteInputs(inputs, b, right, a, left);
  }
  return {
    taskA: a.name,
    taskB: b.name,
    canCollide: collided > 0,
    always: tried > 0 && collided === tried && incomplete.length === 0,
    collisions: [...collisions.values()],
    because: [...[...collisions.values()].map(({ message }) => message), ...incomplete],
    inputChanges: [...inputs.values()],
  };
}

/** The first note about one pair of entries stands for all; values differ, the reason does not. */
function note<T>(notes: Map<string, T>, id: string, one: T): void {
  if (notes.size < MAX_REASONS && !notes.has(id)) notes.set(id, one);
}

function collisionOf({ resourceA, resourceB, rule, ruleA, ruleB, because, message }: ConflictStep): TaskCollision {
  const rules = [...new Set([rule, ruleA, ruleB])].filter((name) => name !== '');
  return { resourceA, resourceB, rules, because, message };
}

const placeOf = (writeSet: ExpandedWriteSet, resource: string): number =>
  writeSet.entries.findIndex((entry) => entry.resource === resource);

/** What one task reads without holding it, and the other writes. */
function noteInputs(
  inputs: Map<string, string>,
  reader: Task,
  reads: ExpandedWriteSet,
  writer: Task,
  writes: ExpandedWriteSet,
): void {
  for (const [place, read] of reads.entries.entries()) {
    if (read.access !== 'read') continue;
    for (const [other, write] of writes.entries.entries()) {
      if (write.access !== 'write' || !meet(read, write)) continue;
      note(
        inputs,
        `${reader.name} ${place} ${writer.name} ${other}`,
        `${quoted(reader.name)} relies on ${inWords(read)}, which ${inWords(write)} of ${quoted(writer.name)} can change meanwhile.`,
      );
    }
  }
}

function meet(a: ExpandedEntry, b: ExpandedEntry): boolean {
  return covers(a, b.resource) || covers(b, a.resource);
}

type Values = readonly string[];

class Model {
  private readonly literals: (task: Task, parameter: string) => readonly string[];
  private readonly reasons: ReadonlyMap<string, string>;
  private readonly known = new Map<Task, readonly (readonly string[])[]>();
  private readonly expanded = new Map<string, ExpandedWriteSet>();

  constructor(private readonly map: ConflictMap) {
    this.literals = literalValues(map);
    this.reasons = new Map(map.conflicts.map((rule) => [rule.name, rule.because]));
  }

  readonly because = (rule: string): string => this.reasons.get(rule) ?? '';

  expand(task: Task, values: Values): ExpandedWriteSet {
    const id = JSON.stringify([task.name, ...values]);
    let writeSet = this.expanded.get(id);
    if (writeSet === undefined) {
      const parameters = Object.fromEntries(task.params.map((name, index) => [name, values[index] as string]));
      writeSet = expandForQuestion(this.map, {
        entries: [],
        task: { name: task.name, parameters },
        resourceSet: null,
      }).writeSet;
      this.expanded.set(id, writeSet);
    }
    return writeSet;
  }

  /** Values for the parameters of both tasks, up to renaming of those that are used nowhere else. */
  *combinations(a: Task, b: Task): Iterable<[Values, Values]> {
    for (const one of this.extend(a, [], '', []))
      for (const other of this.extend(b, one, 'other ', [])) yield [one, other];
  }

  /** The most telling values come first: that of the other task's parameter of the same name, then one used nowhere else. */
  private *extend(task: Task, used: Values, other: string, values: Values): Iterable<Values> {
    const index = values.length;
    const name = task.params[index];
    if (name === undefined) {
      yield values;
      return;
    }
    const several = task.restParams.has(name);
    const literals = this.literalsOf(task)[index] ?? [];
    const candidates = new Set<string>();
    if (used.includes(fresh(name))) candidates.add(fresh(name));
    candidates.add(fresh(`${other}${name}`));
    for (const literal of literals) candidates.add(literal);
    for (const value of [...used, ...values]) if (several || !value.includes('/')) candidates.add(value);
    if (several)
      for (const value of [...candidates]) if (!value.includes('/')) candidates.add(`${value}/${fresh('below')}`);
    for (const value of candidates) yield* this.extend(task, used, other, [...values, value]);
  }

  private literalsOf(task: Task): readonly (readonly string[])[] {
    const known = this.known.get(task) ?? task.params.map((name) => this.literals(task, name));
    this.known.set(task, known);
    return known;
  }
}

/** A value that nothing in the map names: no literal of a pattern has braces. */
const fresh = (label: string): string => `{${label}}`;
