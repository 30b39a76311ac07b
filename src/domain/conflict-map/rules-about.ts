import type { Access } from '../entry.js';
import { type Captures, matchPattern, type Pattern } from '../pattern.js';
import type { ConflictMap, EntryTemplate, ImpliesRule } from './map.js';
import { quoted } from './problems.js';

/** A rule of the map by which a write to one resource can meet a write to another (C3). */
export interface RuleAbout {
  /** Such as `conflicts[0]`. */
  readonly rule: string;
  /** The other resource; what the first one does not bind stays a capture, `{name}`. */
  readonly resource: string;
  readonly message: string;
}

/** Rules told about one resource. */
const MAX_RULES = 64;

/** The rules that tie a resource to others: what excludes a write to it, what such a write brings, and what brings one. */
export function rulesAbout(map: ConflictMap, resource: string): RuleAbout[] {
  const segments = resource.split('/');
  return [...exclusions(map, segments), ...brought(map, segments), ...bringers(map, segments)].slice(0, MAX_RULES);
}

function exclusions(map: ConflictMap, segments: readonly string[]): RuleAbout[] {
  return map.conflictIndex.all(segments).map(({ rule, side, pattern }) => {
    const other = fill(rule.between[side === 0 ? 1 : 0], matchPattern(pattern, segments) ?? NO_CAPTURES);
    const why = rule.because === '' ? '' : `, since ${rule.because}`;
    return {
      rule: rule.name,
      resource: other,
      message: `One run may not write it while another writes ${quoted(other)}${why}.`,
    };
  });
}

function brought(map: ConflictMap, segments: readonly string[]): RuleAbout[] {
  return map.impliesIndex.write.all(segments).flatMap((rule) => {
    const captures = matchPattern(rule.pattern, segments) ?? NO_CAPTURES;
    return rule.touches.map((touch) => {
      const other = fill(touch.resource, captures);
      return {
        rule: rule.name,
        resource: other,
        message: `A write to it also takes ${share(touch)} ${quoted(other)}.`,
      };
    });
  });
}

function bringers(map: ConflictMap, segments: readonly string[]): RuleAbout[] {
  return map.implies.flatMap((rule) =>
    rule.touches.flatMap((touch) => {
      const captures = capturesOf(touch, segments);
      if (captures === null) return [];
      const other = fill(rule.pattern, captures);
      return [
        {
          rule: rule.name,
          resource: other,
          message: `${trigger(rule)} ${quoted(other)} also takes ${share(touch)} it.`,
        },
      ];
    }),
  );
}

const NO_CAPTURES: Captures = new Map();

/** What a touch would be made of to be, or to cover, the resource; null: it never is. */
function capturesOf({ resource, scope }: EntryTemplate, segments: readonly string[]): Captures | null {
  const covering = scope === 'subtree' ? segments.slice(0, resource.segments.length) : segments;
  const captures = matchPattern(resource, covering);
  // A template may name a capture twice; then both places must say the same.
  return captures !== null && fill(resource, captures) === covering.join('/') ? captures : null;
}

/** A pattern with what is known of its captures. */
function fill(pattern: Pattern, captures: Captures): string {
  const parts = pattern.segments.map((segment) => {
    if (segment.kind === 'literal') return segment.text;
    return captures.get(segment.name) ?? (segment.kind === 'rest' ? `{${segment.name}...}` : `{${segment.name}}`);
  });
  return parts.join('/');
}

const NOUN: Readonly<Record<Access, string>> = {
  write: 'a write to',
  stable_read: 'a stable read of',
  read: 'a read of',
};

const share = ({ access, scope }: EntryTemplate): string =>
  scope === 'subtree' ? `${NOUN[access]} all of` : NOUN[access];

const trigger = ({ access }: ImpliesRule): string => NOUN[access].replace(/^a/, 'A');
