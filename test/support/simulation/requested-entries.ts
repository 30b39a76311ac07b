import type { RequestedEntry } from '../../../src/domain/entry.js';
import type { Lease } from '../../../src/domain/lease.js';
import { leased, optimistic, read, stable } from '../domain.js';
import type { Draw } from './draw.js';
import { PATHS } from './small-world.js';

/** One or two, of whatever there is. */
export function someEntries(draw: Draw): RequestedEntry[] {
  const entries: RequestedEntry[] = [];
  const makes = [leased, leased, optimistic, optimistic, stable, read];
  for (let count = 1 + draw.int(2); count > 0; count -= 1) {
    const make = draw.pick(makes) as typeof leased;
    entries.push(make(draw.pick(PATHS) as string));
  }
  return entries;
}

/** Some of a lease, or a little less or more than that. */
export function partOf(draw: Draw, whole: Lease | undefined): RequestedEntry[] | undefined {
  const entry = draw.pick(whole?.entries.filter(({ impliedBy }) => impliedBy === '') ?? []);
  if (entry === undefined) return undefined;
  const { resource, scope, access, actions } = entry;
  const below = scope === 'subtree' && draw.chance(60);
  const path = `${resource}${below ? draw.pick(['/a', '/b', '/a/key']) : scope === 'subtree' ? '/' : ''}`;
  if (draw.chance(20)) return [(draw.pick([leased, stable, read]) as typeof read)(path)];
  return [{ ...read(path), access, actions }];
}
