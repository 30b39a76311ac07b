import type { Access, ExpandedEntry, Scope } from './entry.js';
import { parsePattern, type Region, regionsOverlap } from './pattern.js';
import type { Table } from './table.js';
import type { Micros } from './time.js';

/**
 * An operator's order that nothing is granted under a pattern of the conflict map's language until it is taken back
 * (design: leases). Freezes that overlap each count for themselves; one is known by its pattern. Immutable: a change
 * makes a new record.
 */
export interface Freeze {
  /** As given, an alias turned into its path. */
  readonly pattern: string;
  /** Subtree: also everything below what the pattern matches. */
  readonly scope: Scope;
  /** Also writes of leases that live are denied by every check. */
  readonly deniesChecks: boolean;
  readonly reason: string;
  readonly frozenBy: string;
  readonly frozenAt: Micros;
  /** It thaws by itself at this time; null: only an operator thaws it. */
  readonly until: Micros | null;
  /** From when on no target lets in what it denies, those included that verify credentials by themselves (P3). */
  readonly effectiveAt: Micros;
}

/** Freezes of one namespace: each grant is compared with all of them. */
export const MAX_FREEZES = 256;

/** How many freezes an answer names. */
export const MAX_NAMED_FREEZES = 16;

/** Freezes are asked with every grant and check; each is read once. */
const REGIONS = new WeakMap<Freeze, Region>();

function regionOf(freeze: Freeze): Region {
  let region = REGIONS.get(freeze);
  if (region === undefined) {
    const parsed = parsePattern(freeze.pattern);
    // What cannot be read stops everything (P8); commands refuse it before it gets here.
    region = parsed.ok ? { segments: parsed.pattern.segments, below: freeze.scope === 'subtree' } : EVERYTHING;
    REGIONS.set(freeze, region);
  }
  return region;
}

const EVERYTHING: Region = { segments: [{ kind: 'rest', name: 'any' }], below: true };

/** Whether two freezes have a resource in common. */
export function freezesOverlap(a: Freeze, b: Freeze): boolean {
  return regionsOverlap(regionOf(a), regionOf(b));
}

/** Whether some of an entry lies under the freeze. */
export function isUnder(freeze: Freeze, entry: { readonly resource: string; readonly scope: Scope }): boolean {
  return meets(regionOf(freeze), entry);
}

/** By the text of the resource, along its segments: a freeze looks at what every live lease holds. */
function meets(
  { segments, below }: Region,
  { resource, scope }: { readonly resource: string; readonly scope: Scope },
): boolean {
  let from = 0;
  for (const segment of segments) {
    if (from > resource.length) return scope === 'subtree';
    if (segment.kind === 'rest') return true;
    const slash = resource.indexOf('/', from);
    const end = slash < 0 ? resource.length : slash;
    if (segment.kind === 'literal') {
      const { text } = segment;
      if (end - from !== text.length || !resource.startsWith(text, from)) return false;
    }
    from = end + 1;
  }
  return below || from > resource.length;
}

/** Those of a namespace, by pattern. */
type Freezes = Pick<Table<Freeze>, 'size' | 'values'>;

type Asked = Pick<ExpandedEntry, 'resource' | 'scope' | 'mode'> & { readonly access: Access };

/** Freezes that stop the grant of an entry. A plain read grants nothing. */
export function freezesOver(freezes: Freezes, entry: Asked): Freeze[] {
  if (freezes.size === 0 || entry.access === 'read') return [];
  return [...freezes.values()].filter((freeze) => isUnder(freeze, entry));
}

/** What stops the grant of entries: those of observed kinds are never stopped (C14). */
export interface Frozen {
  /** The first entry that is frozen. */
  readonly resource: string;
  /** All freezes over any of them. */
  readonly freezes: readonly Freeze[];
}

/** Null: nothing is frozen. */
export function frozenAmong(freezes: Freezes, entries: readonly Asked[]): Frozen | null {
  if (freezes.size === 0) return null;
  let first: string | null = null;
  const found = new Set<Freeze>();
  for (const entry of entries) {
    if (entry.mode === 'observe') continue;
    const over = freezesOver(freezes, entry);
    if (over.length === 0) continue;
    first ??= entry.resource;
    for (const freeze of over) found.add(freeze);
  }
  return first === null ? null : { resource: first, freezes: [...found] };
}

/** Whether a freeze that counts at this time denies the checks of writes to the resource. */
export function deniesWrites(freezes: Freezes, resource: string, now: Micros): boolean {
  for (const freeze of freezes.values()) {
    if (!freeze.deniesChecks || isPastFreeze(freeze, now)) continue;
    if (isUnder(freeze, { resource, scope: 'exact' })) return true;
  }
  return false;
}

/** Whether it has thawed by its time, though that may not be written yet. */
export function isPastFreeze({ until }: Freeze, now: Micros): boolean {
  return until !== null && until <= now;
}

/** When the last of them thaws by itself; null: one does not. */
export function thawsAt(freezes: readonly Freeze[]): Micros | null {
  return freezes.some(({ until }) => until === null) ? null : Math.max(0, ...freezes.map(({ until }) => until ?? 0));
}
