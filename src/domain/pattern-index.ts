import type { Pattern } from './pattern.js';
import type { PatternSegment } from './pattern-segment.js';
import { MAX_SEGMENTS } from './resource.js';

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  capture: Node<T> | null;
  /** Patterns that end here. */
  readonly here: T[];
  /** Patterns that end in a rest here: they match whatever has one segment more, or many. */
  readonly rest: T[];
}

function node<T>(): Node<T> {
  return { literals: new Map(), capture: null, here: [], rest: [] };
}

/** A segment that stands for any that no pattern names: no resource can contain it. */
const ANY_SEGMENT = '\u0000';

/**
 * Values by pattern, as a trie over segments: what matches a resource is found along its segments,
 * however many patterns there are.
 */
export class PatternIndex<T> {
  private readonly root: Node<T> = node();
  private count = 0;

  get size(): number {
    return this.count;
  }

  /** Adds a value; returns the first that was there under a pattern of the same shape. */
  add(pattern: Pattern, value: T): T | undefined {
    let at = this.root;
    let slot: T[] | null = null;
    for (const segment of pattern.segments) {
      if (segment.kind === 'rest') slot = at.rest;
      else at = childOf(at, segment);
    }
    slot ??= at.here;
    slot.push(value);
    this.count += 1;
    return slot.length > 1 ? slot[0] : undefined;
  }

  /** The value of the most specific pattern that matches. */
  best(resource: readonly string[]): T | undefined {
    return bestFrom(this.root, resource, 0);
  }

  /** Values of all patterns that match, the most specific first. */
  all(resource: readonly string[]): T[] {
    const found: T[] = [];
    if (this.count > 0) allFrom(this.root, resource, 0, found);
    return found;
  }

  /** Values of all patterns that can match the resource or something below it. */
  atOrBelow(resource: readonly string[]): T[] {
    const found: T[] = [];
    if (this.count > 0) belowFrom(this.root, resource, 0, found);
    return found;
  }

  /** Values of all patterns that overlap this one or, when told, something below what it matches. */
  overlapping(pattern: Pattern, below: boolean): T[] {
    const found: T[] = [];
    overlapFrom(this.root, pattern.segments, 0, below, found);
    return found;
  }
}

function childOf<T>(at: Node<T>, segment: Exclude<PatternSegment, { kind: 'rest' }>): Node<T> {
  if (segment.kind === 'capture') {
    at.capture ??= node();
    return at.capture;
  }
  let child = at.literals.get(segment.text);
  if (child === undefined) {
    child = node();
    at.literals.set(segment.text, child);
  }
  return child;
}

function bestFrom<T>(at: Node<T>, resource: readonly string[], depth: number): T | undefined {
  if (depth === resource.length) return at.here[0];
  const literal = at.literals.get(resource[depth] as string);
  if (literal !== undefined) {
    const found = bestFrom(literal, resource, depth + 1);
    if (found !== undefined) return found;
  }
  if (at.capture !== null) {
    const found = bestFrom(at.capture, resource, depth + 1);
    if (found !== undefined) return found;
  }
  return at.rest[0];
}

function allFrom<T>(at: Node<T>, resource: readonly string[], depth: number, found: T[]): void {
  if (depth === resource.length) {
    found.push(...at.here);
    return;
  }
  const literal = at.literals.get(resource[depth] as string);
  if (literal !== undefined) allFrom(literal, resource, depth + 1, found);
  if (at.capture !== null) allFrom(at.capture, resource, depth + 1, found);
  found.push(...at.rest);
}

function belowFrom<T>(at: Node<T>, resource: readonly string[], depth: number, found: T[]): void {
  if (depth === resource.length) {
    everything(at, found);
    return;
  }
  const literal = at.literals.get(resource[depth] as string);
  if (literal !== undefined) belowFrom(literal, resource, depth + 1, found);
  if (at.capture !== null) belowFrom(at.capture, resource, depth + 1, found);
  found.push(...at.rest);
}

function everything<T>(at: Node<T>, found: T[]): void {
  found.push(...at.here, ...at.rest);
  for (const child of at.literals.values()) everything(child, found);
  if (at.capture !== null) everything(at.capture, found);
}

function overlapFrom<T>(
  at: Node<T>,
  segments: readonly PatternSegment[],
  depth: number,
  below: boolean,
  found: T[],
): void {
  const segment = segments[depth];
  if (segment === undefined) {
    if (below) everything(at, found);
    else found.push(...at.here);
    return;
  }
  found.push(...at.rest);
  if (segment.kind === 'literal') {
    const literal = at.literals.get(segment.text);
    if (literal !== undefined) overlapFrom(literal, segments, depth + 1, below, found);
    if (at.capture !== null) overlapFrom(at.capture, segments, depth + 1, below, found);
    return;
  }
  for (const child of [...at.literals.values(), ...(at.capture === null ? [] : [at.capture])]) {
    if (segment.kind === 'rest') everything(child, found);
    else overlapFrom(child, segments, depth + 1, below, found);
  }
}

/**
 * Those of the patterns' values that decide about some resource at or below the given one: for the
 * others a more specific pattern matches everywhere. A resource that has only the literals the pattern
 * itself asks for is matched by the fewest others, so that one for each length decides it.
 */
export function deciding<T extends { readonly pattern: Pattern }>(
  index: PatternIndex<T>,
  resource: readonly string[],
): T[] {
  return index.atOrBelow(resource).filter((value) => {
    const { segments } = value.pattern;
    const sample = [...resource];
    for (const segment of segments.slice(resource.length))
      sample.push(segment.kind === 'literal' ? segment.text : ANY_SEGMENT);
    const open = segments[segments.length - 1]?.kind === 'rest';
    for (let length = sample.length; length <= MAX_SEGMENTS; length += 1) {
      if (index.best(sample) === value) return true;
      if (!open) return false;
      sample.push(ANY_SEGMENT);
    }
    return false;
  });
}
