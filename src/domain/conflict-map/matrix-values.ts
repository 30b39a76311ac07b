import type { Pattern } from '../pattern.js';
import type { ConflictMap, Task } from './map.js';

/** A pattern of the map, and where else the values of its captures go. */
interface Linked {
  readonly pattern: Pattern;
  readonly partners: readonly Pattern[];
}

/** Every pattern and template of the map with those that share its captures: a rule's two sides, a task's entries. */
function linkedPatterns(map: ConflictMap): Linked[] {
  const together = (patterns: readonly Pattern[]): Linked[] =>
    patterns.map((pattern) => ({ pattern, partners: patterns }));
  return [
    ...map.kinds.map((kind) => ({ pattern: kind.pattern, partners: [] })),
    ...[...map.tasks.values()].flatMap((task) => together(task.entries.map((entry) => entry.resource))),
    ...map.conflicts.flatMap((rule) => together(rule.between)),
    ...map.implies.flatMap((rule) => together([rule.pattern, ...rule.touches.map((touch) => touch.resource)])),
  ];
}

/**
 * The literal values by which a task's parameters can matter: those that some pattern or template has
 * where the parameter's value can come to stand, directly or carried along by rules. Any other value is
 * as good as any other, but for being the same as another parameter's or not.
 */
export function literalValues(map: ConflictMap): (task: Task, parameter: string) => readonly string[] {
  const linked = linkedPatterns(map);
  return (task, parameter) => {
    const values = new Set<string>();
    const seen = new Set<string>();
    const open = task.entries.map((entry) => ({ template: entry.resource, name: parameter }));
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const id = `${next.name} ${next.template.text}`;
      if (seen.has(id)) continue;
      seen.add(id);
      for (const other of linked) open.push(...compare(next.template, next.name, other, values));
    }
    return [...values].sort();
  };
}

/** Notes the literals that another pattern has where the name stands, and returns where the name's value goes on to. */
function compare(
  template: Pattern,
  name: string,
  other: Linked,
  values: Set<string>,
): { template: Pattern; name: string }[] {
  if (!compatible(template, other.pattern)) return [];
  const onward: { template: Pattern; name: string }[] = [];
  const restAt = other.pattern.segments.findIndex((segment) => segment.kind === 'rest');
  for (const [index, segment] of template.segments.entries()) {
    if (segment.kind === 'literal' || segment.name !== name) continue;
    // A rest stands where it begins and everywhere after.
    const last = segment.kind === 'rest' ? Math.max(index, other.pattern.segments.length - 1) : index;
    for (let at = index; at <= last; at += 1) {
      const there =
        other.pattern.segments[at] ?? (restAt >= 0 && restAt < at ? other.pattern.segments[restAt] : undefined);
      if (there === undefined) continue;
      if (there.kind === 'literal') values.add(there.text);
      else
        for (const partner of other.partners)
          if (partner.names.includes(there.name)) onward.push({ template: partner, name: there.name });
    }
  }
  return onward;
}

/** Whether one can match at, above or below what the other matches. */
function compatible(a: Pattern, b: Pattern): boolean {
  const depth = Math.min(a.segments.length, b.segments.length);
  for (let index = 0; index < depth; index += 1) {
    const one = a.segments[index];
    const other = b.segments[index];
    if (one?.kind === 'rest' || other?.kind === 'rest') return true;
    if (one?.kind === 'literal' && other?.kind === 'literal' && one.text !== other.text) return false;
  }
  return true;
}
