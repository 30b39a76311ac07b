import type { WritClient } from '../../clients/common/connect.js';
import { kindOf, resolveResource } from '../../domain/conflict-map/map.js';
import { type RehearsalConfig, RehearsalConfigError } from '../../rehearsal/index.js';
import { checkConflictMapText } from '../../services/conflict-map-text.js';

/**
 * Refuses a configuration that names another change class than the map: what a refusal has to say would be rehearsed by
 * the wrong one, and recorded for the kind.
 */
export async function refuseOtherClasses(writ: WritClient, { resources }: RehearsalConfig): Promise<void> {
  const { document } = await writ.conflictMap.getConflictMap({});
  const { map } = checkConflictMapText(document);
  if (map === undefined) return;
  const problems = resources.flatMap(({ resource, action, change_class: given }, index) => {
    const resolved = resolveResource(map, resource);
    const kind = resolved.ok ? kindOf(map, resolved.resource) : null;
    const changeClass = kind?.actions.get(action)?.changeClass ?? given;
    if (changeClass === given) return [];
    const message = `the conflict map says ${changeClass} for ${action} of ${kind?.pattern.text}`;
    return [{ path: `resources[${index}].change_class`, message }];
  });
  if (problems.length > 0) throw new RehearsalConfigError(problems);
}
