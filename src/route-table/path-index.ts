import type { Step } from './template.js';

interface Node<T> {
  readonly literals: Map<string, Node<T>>;
  /** The literals once more, those that differ in letter case alone together. */
  readonly caseless: Map<string, Node<T>[]>;
  capture: Node<T> | null;
  /** What ends here. */
  here: T | null;
  /** What ends in a rest here: it matches whatever has one segment more, or many. */
  rest: T | null;
}

const node = <T>(): Node<T> => ({
  literals: new Map(),
  caseless: new Map(),
  capture: null,
  here: null,
  rest: null,
});

/** How a router may compare the segments of a request with its literals. */
export interface Reading {
  /** In any letter case. */
  readonly caseless: boolean;
  /** Segments, by their place, that no literal matches: it is compared with what was sent, escapes and all. */
  readonly unlike: ReadonlySet<number>;
}

/** Letter by letter, unescaped. */
export const EXACT: Reading = { caseless: false, unlike: new Set() };

/**
 * Values by the steps of their paths, as a trie: what matches is found along the segments of a request, however many
 * routes there are. The most specific wins: a literal before a capture, a capture before a rest, left to right.
 */
export class PathIndex<T extends { readonly steps: readonly Step[] }> {
  private readonly root: Node<T> = node();

  /** Adds a value; returns the one that was there before under a path of the same shape, and keeps that. */
  add(value: T): T | null {
    let at = this.root;
    for (const step of value.steps) {
      if (step.kind === 'rest') {
        at.rest ??= value;
        return at.rest === value ? null : at.rest;
      }
      at = childOf(at, step);
    }
    at.here ??= value;
    return at.here === value ? null : at.here;
  }

  /** All values. */
  *values(): Iterable<T> {
    const open = [this.root];
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      if (at.here !== null) yield at.here;
      if (at.rest !== null) yield at.rest;
      open.push(...at.literals.values(), ...(at.capture === null ? [] : [at.capture]));
    }
  }

  /** The value of the most specific path that the segments match. */
  find(segments: readonly string[], reading = EXACT): T | null {
    return find(this.root, segments, 0, reading);
  }
}

function childOf<T>(at: Node<T>, step: Exclude<Step, { kind: 'rest' }>): Node<T> {
  if (step.kind === 'capture') {
    at.capture ??= node();
    return at.capture;
  }
  let child = at.literals.get(step.text);
  if (child === undefined) {
    child = node();
    at.literals.set(step.text, child);
    const folded = step.text.toLowerCase();
    at.caseless.set(folded, [...(at.caseless.get(folded) ?? []), child]);
  }
  return child;
}

function find<T>(at: Node<T>, segments: readonly string[], depth: number, reading: Reading): T | null {
  const segment = segments[depth];
  if (segment === undefined) return at.here;
  for (const literal of reading.unlike.has(depth) ? [] : literalsOf(at, segment, reading)) {
    const found = find(literal, segments, depth + 1, reading);
    if (found !== null) return found;
  }
  return (at.capture === null ? null : find(at.capture, segments, depth + 1, reading)) ?? at.rest;
}

function literalsOf<T>(at: Node<T>, segment: string, { caseless }: Reading): readonly Node<T>[] {
  const literal = at.literals.get(segment);
  const exact = literal === undefined ? [] : [literal];
  if (!caseless) return exact;
  // The same letters go before others, and may lead nowhere: then it is one of the others that such a router finds.
  return [...exact, ...(at.caseless.get(segment.toLowerCase()) ?? []).filter((other) => other !== literal)];
}

/** What the captures of a path stand for in segments that it matches. */
export function capturesOf(steps: readonly Step[], segments: readonly string[]): Map<string, readonly string[]> {
  const captures = new Map<string, readonly string[]>();
  for (const [index, step] of steps.entries()) {
    if (step.kind === 'rest') captures.set(step.name, segments.slice(index));
    else if (step.kind === 'capture') captures.set(step.name, segments.slice(index, index + 1));
  }
  return captures;
}
