import { Fault, invalidArgument } from '../domain/fault.js';
import type { MapVersion } from '../storage/store.js';
import type {
  At,
  CallContext,
  LocatedProblem,
  MapDifference,
  OnLiveConflict,
  PutMapOutcome,
  TestedMap,
} from './api.js';
import { checkDocument, getConflictMap, putConflictMap } from './conflict-map.js';
import type { Deps } from './deps.js';
import { FieldChecks } from './fields.js';

/** What one does with a map beside putting it: test it, compare it, and go back to an older one. */

/** Runs the assertions of a document; stores nothing. */
export async function testConflictMap(
  deps: Deps,
  context: CallContext,
  input: { document: string },
): Promise<TestedMap> {
  const checks = new FieldChecks();
  checkDocument(checks, input.document);
  checks.done();
  return deps.workshop.admit(context.principal.name, async () => {
    const { document, problems } = await deps.workshop.check(input.document);
    const errors = problems.filter(({ warning }) => !warning);
    const isFailed = ({ code }: LocatedProblem): boolean => code === 'assertion_failed';
    // With other errors no assertion means anything.
    const isBroken = !errors.every(isFailed);
    return {
      passed: errors.length === 0,
      assertions: document?.assertions?.length ?? (isBroken ? 0 : errors.length),
      failed: isBroken ? [] : errors,
      problems: isBroken ? errors : problems.filter(({ warning }) => warning),
    };
  });
}

/** The difference of a version and another one, or a document. */
export async function diffConflictMap(
  deps: Deps,
  context: CallContext,
  input: { fromVersion: number; toVersion: number | null; document: string | null },
): Promise<MapDifference> {
  const { fromVersion, toVersion, document } = input;
  if ((toVersion === null) === (document === null))
    throw invalidArgument([
      { field: 'to_version', description: 'give either a version or a document to compare with' },
    ]);
  const from = await versionOf(deps, context, fromVersion);
  const to = document === null ? await versionOf(deps, context, toVersion ?? 0) : { version: null, text: document };
  return deps.workshop.admit(context.principal.name, async () => {
    const lines = await deps.workshop.diff(
      { name: `version ${from.version}`, text: from.text },
      { name: to.version === null ? 'document' : `version ${to.version}`, text: to.text },
    );
    return { fromVersion: from.version, toVersion: to.version, lines };
  });
}

async function versionOf(
  deps: Deps,
  context: CallContext,
  wanted: number,
): Promise<Pick<MapVersion, 'version' | 'text'>> {
  const { value } = await getConflictMap(deps, context, { version: wanted });
  return value ?? { version: 0, text: '' };
}

/** Puts an older version again, as a new one. */
export async function rollbackConflictMap(
  deps: Deps,
  context: CallContext,
  input: { toVersion: number; expectedVersion: number; reason: string; onLiveConflict: OnLiveConflict },
): Promise<At<PutMapOutcome>> {
  const { toVersion, expectedVersion, onLiveConflict } = input;
  if (toVersion < 1)
    throw invalidArgument([{ field: 'to_version', description: 'is required: a version that was put' }]);
  const { value } = await getConflictMap(deps, context, { version: toVersion });
  if (value === null)
    throw new Fault('not_found', 'MAP_VERSION_NOT_FOUND', 'There is no conflict map yet: an admin puts the first one.');
  const reason = input.reason === '' ? `rolled back to version ${toVersion}` : input.reason;
  return putConflictMap(deps, context, { document: value.text, expectedVersion, reason, onLiveConflict });
}
