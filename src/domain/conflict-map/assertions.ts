import type { WriteSetRequest } from '../entry.js';
import { type ConflictMapDocument, childPath, type DocumentAssertion, type DocumentSide } from './document.js';
import { type Explanation, explainConflict } from './explain.js';
import type { ConflictMap } from './map.js';
import { didYouMean, listed, type Problems, quoted } from './problems.js';
import { parameterFlaw } from './requested.js';

/** Runs every assertion of the document against its map. */
export function checkAssertions(map: ConflictMap, document: ConflictMapDocument, problems: Problems): void {
  for (const [index, assertion] of (document.assertions ?? []).entries()) {
    const path = childPath('assertions', index);
    const a = sideOf(map, assertion.a, childPath(path, 'a'), problems);
    const b = sideOf(map, assertion.b, childPath(path, 'b'), problems);
    if (a !== null && b !== null) judge(assertion, explainConflict(map, a, b), path, problems);
  }
}

function judge(assertion: DocumentAssertion, explanation: Explanation, path: string, problems: Problems): void {
  if (explanation.conflict !== assertion.conflict)
    problems.error('assertion_failed', path, failure(assertion, explanation));
  for (const [side, refusal] of [
    ['a', explanation.refusalA],
    ['b', explanation.refusalB],
  ] as const) {
    if (refusal !== null)
      problems.warn(
        'assertion_refused',
        childPath(path, side),
        `A run that asked for this would be refused (${refusal.kind}): ${refusal.message}`,
      );
  }
}

function failure(assertion: DocumentAssertion, explanation: Explanation): string {
  if (!assertion.conflict) return `Expected no conflict, but they conflict: ${explanation.steps[0]?.message ?? ''}`;
  const sides = [explanation.entriesA, explanation.entriesB].map((entries) =>
    listed([...new Set(entries.map((entry) => entry.resource))].slice(0, 8), 'nothing'),
  );
  return `Expected a conflict, but two runs could hold both at once: one side expands to ${sides[0]}, the other to ${sides[1]}, and no lock or rule keeps them apart.`;
}

function sideOf(map: ConflictMap, side: DocumentSide, path: string, problems: Problems): WriteSetRequest | null {
  if (!isTask(side)) {
    const entries = side.entries.map((entry) => ({
      resource: entry.resource,
      access: entry.access,
      scope: entry.scope ?? ('exact' as const),
      actions: entry.actions ?? [],
      observedVersion: null,
    }));
    return { entries, task: null, resourceSet: null };
  }
  const { task: name, ...parameters } = side;
  const task = map.tasks.get(name);
  if (task === undefined) {
    problems.error(
      'unknown_task',
      childPath(path, 'task'),
      () =>
        `There is no task ${quoted(name)}${didYouMean(name, map.tasks.keys())} Known: ${listed([...map.tasks.keys()])}.`,
    );
    return null;
  }
  const flaw = parameterFlaw(task, parameters);
  if (flaw !== null) {
    problems.error('wrong_parameters', path, flaw);
    return null;
  }
  return { entries: [], task: { name, parameters }, resourceSet: null };
}

function isTask(side: DocumentSide): side is Extract<DocumentSide, { readonly task: string }> {
  return 'task' in side;
}
