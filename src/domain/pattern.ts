import { type PatternSegment, parsePatternSegment } from './pattern-segment.js';
import { MAX_SEGMENTS, parseResource } from './resource.js';

/**
 * A set of resources, or a template of one: literal segments, `{name}` for one segment, and a final
 * `{name...}` for one or more. There are no other globs, so that overlap stays decidable and exact.
 */
export interface Pattern {
  readonly text: string;
  readonly segments: readonly PatternSegment[];
  /** Captures in order. */
  readonly names: readonly string[];
}

export type ParsedPattern =
  | { readonly ok: true; readonly pattern: Pattern }
  | { readonly ok: false; readonly reason: string };

/**
 * What to tell somebody whose pattern has a star in it; null: it has none. A star is a letter like any other, and
 * resources have one in their names. Who means a wildcard by it names next to nothing, which nobody would notice.
 */
export function starRemark(text: string): string | null {
  if (!text.includes('*')) return null;
  return `In ${JSON.stringify(text)} the * is no wildcard and stands for itself: {name} is any one segment, {name...} all the rest.`;
}

/** Reads a pattern. A name twice is allowed in templates only. */
export function parsePattern(text: string, use: 'pattern' | 'template' = 'pattern'): ParsedPattern {
  const segments: PatternSegment[] = [];
  const names: string[] = [];
  const parts = text.split('/');
  for (const [index, part] of parts.entries()) {
    const segment = parsePatternSegment(part);
    if (typeof segment === 'string') return { ok: false, reason: segment };
    if (segment.kind === 'rest' && index < parts.length - 1)
      return { ok: false, reason: `{${segment.name}...} must be the last segment` };
    if (segment.kind !== 'literal') {
      if (use === 'pattern' && names.includes(segment.name))
        return { ok: false, reason: `{${segment.name}} is there twice; each capture needs a name of its own` };
      if (!names.includes(segment.name)) names.push(segment.name);
    }
    segments.push(segment);
  }
  // What stands between the captures must be the beginning of a resource in normal form.
  const shape = parseResource(segments.map((segment) => (segment.kind === 'literal' ? segment.text : 'x')).join('/'));
  if (!shape.ok) return { ok: false, reason: shape.reason };
  return { ok: true, pattern: { text, segments, names } };
}

/** What a pattern's captures stand for; a `{name...}` stands for segments joined by "/". */
export type Captures = ReadonlyMap<string, string>;

/** Matches a resource, given as its segments; null: it does not match. */
export function matchPattern(pattern: Pattern, resource: readonly string[]): Captures | null {
  const { segments } = pattern;
  const last = segments[segments.length - 1];
  if (last?.kind === 'rest' ? resource.length < segments.length : resource.length !== segments.length) return null;
  const captures = new Map<string, string>();
  for (const [index, segment] of segments.entries()) {
    const value = resource[index] as string;
    if (segment.kind === 'rest') captures.set(segment.name, resource.slice(index).join('/'));
    else if (segment.kind === 'capture') captures.set(segment.name, value);
    else if (segment.text !== value) return null;
  }
  return captures;
}

/**
 * What is known of a pattern's captures below a resource: `bound` ones have one value for every
 * resource at or below it that the pattern matches; of `partial` (a rest) the beginning is known.
 */
export interface PartialCaptures {
  readonly bound: Captures;
  readonly partial: { readonly name: string; readonly prefix: string } | null;
}

const NO_CAPTURES: Captures = new Map();

/** The captures as far as the resource binds them; null: the pattern matches nothing at or below it. */
export function bindAtOrBelow(pattern: Pattern, resource: readonly string[]): PartialCaptures | null {
  const bound = new Map<string, string>();
  const depth = Math.min(resource.length, pattern.segments.length);
  for (let index = 0; index < depth; index += 1) {
    const segment = pattern.segments[index] as PatternSegment;
    const value = resource[index] as string;
    if (segment.kind === 'rest')
      return { bound, partial: { name: segment.name, prefix: resource.slice(index).join('/') } };
    if (segment.kind === 'capture') bound.set(segment.name, value);
    else if (segment.text !== value) return null;
  }
  return pattern.segments.length < resource.length ? null : { bound, partial: null };
}

/** As `bindAtOrBelow` for a resource alone: everything is bound. */
export function boundExactly(captures: Captures): PartialCaptures {
  return { bound: captures, partial: null };
}

export type Substituted =
  | { readonly kind: 'exact'; readonly resource: string }
  /** Captures were not bound: everything at or below the longest prefix that is. */
  | { readonly kind: 'widened'; readonly resource: string }
  /** Not even a first segment is bound: it could be anything. */
  | { readonly kind: 'unbound' };

/**
 * Puts captures into a template. Where one is not bound, as below a SUBTREE, the template stands for
 * every value it could take, and so becomes the subtree of its longest bound prefix.
 */
export function substitute(
  template: Pattern,
  { bound, partial }: PartialCaptures = { bound: NO_CAPTURES, partial: null },
): Substituted {
  const done: string[] = [];
  for (const segment of template.segments) {
    if (segment.kind === 'literal') {
      done.push(segment.text);
      continue;
    }
    const value = bound.get(segment.name);
    if (value === undefined) {
      if (partial?.name === segment.name) done.push(partial.prefix);
      return done.length === 0 ? { kind: 'unbound' } : { kind: 'widened', resource: done.join('/') };
    }
    done.push(value);
  }
  return { kind: 'exact', resource: done.join('/') };
}

/** What a pattern stands for: what it matches, and when told everything below that. */
export interface Region {
  readonly segments: readonly PatternSegment[];
  readonly below: boolean;
}

/** Whether some resource is in both. (Only the bounds on a resource are not looked at.) */
export function regionsOverlap(a: Region, b: Region): boolean {
  const depth = Math.max(a.segments.length, b.segments.length);
  for (let index = 0; index < depth; index += 1) {
    const one = a.segments[index];
    const other = b.segments[index];
    if (one === undefined) return a.below;
    if (other === undefined) return b.below;
    if (one.kind === 'rest' || other.kind === 'rest') return true;
    if (one.kind === 'literal' && other.kind === 'literal' && one.text !== other.text) return false;
  }
  return true;
}

/** Whether every resource that `inner` matches is matched by `outer`. (Only the bound on a resource's bytes is not looked at.) */
export function patternCovers(outer: Pattern, inner: Pattern): boolean {
  for (const [index, segment] of outer.segments.entries()) {
    const theirs = inner.segments[index];
    if (theirs === undefined) return false;
    if (segment.kind === 'rest') return true;
    if (theirs.kind === 'rest') return false;
    if (segment.kind === 'literal' && (theirs.kind !== 'literal' || theirs.text !== segment.text)) return false;
  }
  return outer.segments.length === inner.segments.length;
}

/**
 * Whether the patterns together match the resource and everything that can be below it. Below the
 * resource a segment that no literal names is the hardest to match, so only such ones are tried.
 */
export function coverSubtree(patterns: readonly Pattern[], resource: readonly string[]): boolean {
  let alive = patterns.filter((pattern) => bindAtOrBelow(pattern, resource) !== null);
  for (let depth = resource.length; depth <= MAX_SEGMENTS; depth += 1) {
    const matched = alive.some(
      ({ segments }) => segments.length === depth || (segments.length < depth && endsInRest(segments)),
    );
    if (!matched) return false;
    if (alive.some(({ segments }) => segments.length <= depth + 1 && endsInRest(segments))) return true;
    alive = alive.filter(({ segments }) => segments[depth]?.kind === 'capture' || segments[depth]?.kind === 'rest');
  }
  return true;
}

const endsInRest = (segments: readonly PatternSegment[]): boolean => segments[segments.length - 1]?.kind === 'rest';
