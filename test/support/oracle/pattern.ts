import type { Freeze } from '../../../src/domain/freeze.js';

/** Literal segments, `{name}` for one segment, a final `{name...}` for one or more; null: no match. */
export function capturesOf(pattern: string, resource: string): Map<string, string> | null {
  const names: string[] = [];
  const source = pattern
    .split('/')
    .map((segment) => {
      const capture = /^\{(.+?)(\.\.\.)?\}$/.exec(segment);
      if (capture === null) return segment.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
      names.push(capture[1] as string);
      return capture[2] === undefined ? '([^/]+)' : '(.+)';
    })
    .join('/');
  const match = new RegExp(`^${source}$`).exec(resource);
  return match === null ? null : new Map(names.map((name, index) => [name, match[index + 1] as string]));
}

/** "Captures of the same name join." */
export function agree(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  return [...a].every(([name, value]) => !b.has(name) || b.get(name) === value);
}

/** "Freeze: no grants under a pattern"; a subtree is what the pattern matches and all below that. */
export function isFrozen(freeze: Pick<Freeze, 'pattern' | 'scope'>, resource: string): boolean {
  const parts = resource.split('/');
  const above = freeze.scope === 'subtree' ? parts.map((_, index) => parts.slice(0, index + 1).join('/')) : [resource];
  return above.some((path) => capturesOf(freeze.pattern, path) !== null);
}
