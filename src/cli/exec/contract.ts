import type { WritClient } from '../../clients/common/connect.js';
import { accessWord, type RequestedResource, scopeWord } from '../../clients/runner/write-set.js';
import type { AskedWriteSet } from '../arguments.js';
import { CliError } from '../cli.js';
import { EXIT } from '../exit-codes.js';

export interface Allowance {
  readonly pattern: string;
  readonly actions: string[];
}

/**
 * The contract of a run that `exec` makes for one write set: exactly what is asked for, and nothing else. Aliases are
 * turned into their paths, since contracts name paths; a task is what the conflict map says it is.
 */
export async function contractFor(writ: WritClient, asked: AskedWriteSet): Promise<Allowance[]> {
  if (asked.resourceSet !== undefined) {
    throw new CliError(
      EXIT.usage,
      'A resource set needs a run whose contract covers it.',
      'Make one with `writ run create` and give it with --run.',
    );
  }
  if (asked.task !== undefined) return contractOfTask(writ, asked.task);
  const resolved = await Promise.all(
    (asked.resources ?? []).map(async (one) => ({
      ...one,
      resource: (await writ.conflictMap.resolveResource({ resource: one.resource })).resource,
    })),
  );
  return resolved.flatMap(allowances);
}

async function contractOfTask(writ: WritClient, task: NonNullable<AskedWriteSet['task']>): Promise<Allowance[]> {
  const side = { task: { name: task.name, parameters: { ...task.parameters } } };
  const { entriesA } = await writ.conflictMap.explainConflict({ a: side, b: side });
  return entriesA
    .filter((entry) => entry.impliedBy === '')
    .flatMap((entry) =>
      allowances({
        resource: entry.resource,
        access: accessWord(entry.access),
        scope: scopeWord(entry.scope),
        actions: entry.actions,
      }),
    );
}

/** A read needs no allowance. A write without actions is every write action of the kind. */
function allowances({ resource, access = 'write', scope, actions = [] }: RequestedResource): Allowance[] {
  if (access === 'read') return [];
  const allowed = access === 'write' && actions.length === 0 ? ['*'] : [...actions];
  const patterns = scope === 'subtree' ? [resource, `${resource}/{below...}`] : [resource];
  return patterns.map((pattern) => ({ pattern, actions: allowed }));
}
