import { type ConflictMap, pathNamed } from '../domain/conflict-map/index.js';
import {
  decideFreeze,
  decideThaw,
  type FreezeCommand,
  type FreezeDecision,
  type ThawDecision,
} from '../domain/decide/freezes.js';
import { type Freeze, isPastFreeze, isUnder } from '../domain/freeze.js';
import type { At, CallContext, Page, Paged } from './api.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';
import { pagesOf } from './pages.js';

const pages = pagesOf('freezes');

const MAX_PATTERN_BYTES = 1_024;

/** Freeze: nothing is granted under the pattern from its return on, whichever replica is asked. */
export async function freeze(
  deps: Deps,
  context: CallContext,
  input: Omit<FreezeCommand, 'requestIds'>,
): Promise<At<FreezeDecision>> {
  const checks = new FieldChecks();
  checkPattern(checks, input.pattern);
  checks.text('reason', input.reason, 1_024, true);
  checks.done();
  const engine = await engineOf(deps, context);
  const command = { ...input, requestIds: requestIds(context.requestId) };
  return engine.submit(context.principal.name, (decision) => decideFreeze(decision, command));
}

/** Thaw: whoever waited for it is granted in the same append. */
export async function thaw(
  deps: Deps,
  context: CallContext,
  input: { pattern: string; reason: string },
): Promise<At<ThawDecision>> {
  const checks = new FieldChecks();
  checkPattern(checks, input.pattern);
  checks.text('reason', input.reason, 1_024);
  checks.done();
  const engine = await engineOf(deps, context);
  const command = { ...input, requestIds: requestIds(context.requestId) };
  return engine.submit(context.principal.name, (decision) => decideThaw(decision, command));
}

/** ListFreezes: from memory, at a confirmed head. */
export async function listFreezes(
  deps: Deps,
  context: CallContext,
  query: { resource: string; page: Page },
): Promise<At<Paged<Freeze>>> {
  const checks = new FieldChecks();
  checks.text('resource', query.resource, 2_048);
  checks.done();
  const { size, after } = pages.asked(query.page);
  const engine = await engineOf(deps, context);
  return engine.read(({ state, now }) => {
    const over = overResource(state.map, query.resource);
    const rows = [...state.freezes.values()]
      .filter((one) => one.pattern > after && !isPastFreeze(one, now) && over(one))
      .sort((a, b) => (a.pattern < b.pattern ? -1 : 1));
    return pages.cut(rows, size, ({ pattern }) => pattern);
  });
}

function checkPattern(checks: FieldChecks, pattern: string): void {
  if (pattern === '') checks.reject('pattern', 'is required');
  else checks.text('pattern', pattern, MAX_PATTERN_BYTES);
}

/** Whether a freeze is over the resource or something below it; an empty one is below everything. */
function overResource(map: ConflictMap, text: string): (one: Freeze) => boolean {
  if (text === '') return () => true;
  const resource = pathNamed(map, 'resource', text);
  return (one) => isUnder(one, { resource, scope: 'subtree' });
}
