import { findBlockers as findOn } from '../domain/blockers.js';
import { pathNamed, rulesAbout } from '../domain/conflict-map/index.js';
import { type Freeze, isPastFreeze, isUnder, MAX_NAMED_FREEZES } from '../domain/freeze.js';
import type { At, CallContext, FoundBlockers } from './api.js';
import { type Deps, engineOf } from './deps.js';
import { FieldChecks } from './fields.js';

/** Blockers told in one answer. */
const MAX_BLOCKERS = 256;

/** FindBlockers: at one revision, by id and by the rules of the current map; who may see which run is decided by the transport. */
export async function findBlockers(
  deps: Deps,
  context: CallContext,
  input: { resource: string },
): Promise<At<FoundBlockers>> {
  const checks = new FieldChecks();
  if (input.resource === '') checks.reject('resource', 'is required');
  else checks.text('resource', input.resource, 2_048);
  checks.done();
  const engine = await engineOf(deps, context);
  return engine.read((view) => {
    const { map } = view.state;
    const resource = pathNamed(map, 'resource', input.resource);
    const found = findOn(view, resource, MAX_BLOCKERS);
    const mine = (runId: string): boolean => view.state.runs.get(runId)?.principal === context.principal.name;
    const own = new Set(found.blockers.filter(({ runId }) => mine(runId)).map(({ leaseId }) => leaseId));
    const isOver = (freeze: Freeze): boolean =>
      !isPastFreeze(freeze, view.now) && isUnder(freeze, { resource, scope: 'subtree' });
    const freezes = [...view.state.freezes.values()].filter(isOver).slice(0, MAX_NAMED_FREEZES);
    return { resource, ...found, own, rules: rulesAbout(map, resource), freezes };
  });
}
