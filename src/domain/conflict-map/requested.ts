import type { RequestedEntry, TaskCall, WriteSetRequest } from '../entry.js';
import { substitute } from '../pattern.js';
import { type Refusal, refuse } from '../refusal.js';
import { parseResource } from '../resource.js';
import type { Micros } from '../time.js';
import type { ConflictMap, EntryTemplate, Task } from './map.js';
import { didYouMean, listed, quoted } from './problems.js';

export type Requested =
  | { readonly ok: true; readonly entries: readonly RequestedEntry[]; readonly notBefore: Micros | null }
  | { readonly ok: false; readonly refusal: Refusal };

const NO_CAPTURES: ReadonlyMap<string, string> = new Map();

/** The entries a request asks for, whether it lists them, calls a task, or names a resource set. */
export function requestedBy(map: ConflictMap, request: WriteSetRequest, maxEntries: number): Requested {
  const requested = entriesOf(map, request);
  if (!requested.ok) return requested;
  if (requested.entries.length === 0)
    return refused(
      'undescribed',
      'The write set names no resource.',
      'Name the resources that the run will change or read, by their paths.',
    );
  if (requested.entries.length > maxEntries) {
    return refused(
      'limit',
      `The write set has ${requested.entries.length} entries; at most ${maxEntries} are allowed.`,
      'Split the work into smaller write sets, or ask for a subtree instead of its resources.',
    );
  }
  return requested;
}

function entriesOf(map: ConflictMap, request: WriteSetRequest): Requested {
  if (request.task !== null) return taskEntries(map, request.task);
  if (request.resourceSet !== null) return setEntries(map, request.resourceSet);
  return { ok: true, entries: request.entries, notBefore: null };
}

/** When what is asked for may be had at the earliest: the start of the resource set it names; 0: at any time. */
export function startOf(map: ConflictMap, request: WriteSetRequest | null): Micros {
  if (request === null || request.resourceSet === null || request.task !== null) return 0;
  return map.sets.get(request.resourceSet)?.notBefore ?? 0;
}

function setEntries(map: ConflictMap, name: string): Requested {
  const set = map.sets.get(name);
  if (set === undefined) {
    return refused(
      'undescribed',
      `The conflict map has no resource set ${quoted(name)}${didYouMean(name, map.sets.keys())}`,
      `Name one of its resource sets (${some(map.sets.keys())}), or list the entries.`,
    );
  }
  return { ok: true, entries: set.entries.map((entry) => fill(entry, NO_CAPTURES)), notBefore: set.notBefore };
}

function taskEntries(map: ConflictMap, call: TaskCall): Requested {
  const task = map.tasks.get(call.name);
  if (task === undefined) {
    return refused(
      'undescribed',
      `The conflict map has no task ${quoted(call.name)}${didYouMean(call.name, map.tasks.keys())}`,
      `Name one of its tasks (${some(map.tasks.keys())}), or list the entries.`,
    );
  }
  const flaw = parameterFlaw(task, call.parameters);
  if (flaw !== null)
    return refused(
      'undescribed',
      flaw,
      `Call the task ${quoted(task.name)} with exactly these parameters: ${listed(task.params)}.`,
    );
  const captures = new Map(Object.entries(call.parameters));
  return { ok: true, entries: task.entries.map((entry) => fill(entry, captures)), notBefore: null };
}

/** What is wrong with the parameters of a task; null: nothing. */
export function parameterFlaw(task: Task, parameters: Readonly<Record<string, string>>): string | null {
  for (const name of task.params) {
    if (!Object.hasOwn(parameters, name)) return `The task ${quoted(task.name)} needs the parameter ${quoted(name)}.`;
  }
  for (const [name, value] of Object.entries(parameters)) {
    if (!task.params.includes(name))
      return `The task ${quoted(task.name)} has no parameter ${quoted(name)}${didYouMean(name, task.params)}`;
    if (!task.restParams.has(name) && value.includes('/'))
      return `The parameter ${quoted(name)} of the task ${quoted(task.name)} is one segment; ${quoted(value)} has a "/" in it.`;
    const path = parseResource(value);
    if (!path.ok)
      return `The parameter ${quoted(name)} of the task ${quoted(task.name)} cannot be ${quoted(value)}: ${path.reason}.`;
  }
  return null;
}

function fill(template: EntryTemplate, bound: ReadonlyMap<string, string>): RequestedEntry {
  const made = substitute(template.resource, { bound, partial: null });
  // Compilation saw to it that every name is bound; were one not, the braces make it a resource no kind matches.
  const resource = made.kind === 'exact' ? made.resource : template.resource.text;
  return { resource, access: template.access, scope: template.scope, actions: template.actions, observedVersion: null };
}

const some = (names: Iterable<string>): string => listed([...names].slice(0, 8), 'it has none');

function refused(kind: 'undescribed' | 'limit', message: string, action: string): Requested {
  return { ok: false, refusal: refuse(kind, message, { action, who: 'runner', retryable: false }) };
}
