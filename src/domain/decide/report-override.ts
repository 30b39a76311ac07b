import { kindOf, resolveResource } from '../conflict-map/index.js';
import { Fault } from '../fault.js';
import { overrideScope } from '../key-binding.js';
import type { ReportedOverride } from '../override.js';
import type { Decision } from './decision.js';

export interface ReportOverrideCommand extends Omit<ReportedOverride, 'notOwned'> {
  readonly fingerprint: string;
  readonly requestIds: readonly string[];
}

/**
 * ReportOverride: what a person let in at a target without the coordinator is in the log when it is back (C12), once for
 * each override and use. A target that the map does not know as the owner is recorded too, as such: it has happened.
 */
export function decideReportOverride(
  decision: Decision,
  { fingerprint, requestIds, ...report }: ReportOverrideCommand,
): { alreadyReported: boolean } {
  const scope = overrideScope(decision.actor);
  const key = JSON.stringify([report.overrideId, report.use?.useId ?? report.use?.requestId ?? null]);
  const binding = decision.key(scope, key);
  if (binding !== undefined) {
    if (binding.fingerprint !== fingerprint) throw reportedOtherwise(report);
    return { alreadyReported: true };
  }
  decision.emit({
    kind: 'key_bound',
    binding: { scope, key, use: 'report_override', fingerprint, runId: '', leaseId: '', boundAt: decision.now },
  });
  const resources = [...new Set((report.use?.writes ?? []).map(({ resource }) => pathOf(decision, resource)))];
  const notOwned = resources.filter((path) => !ownedBy(decision, path));
  const ids = [...new Set([...(report.use === null ? [] : [report.use.requestId]), ...requestIds])];
  decision.emit({ kind: 'override_reported', ...report, notOwned }, { resources, requestIds: ids });
  return { alreadyReported: false };
}

/** By the names that the target gave: the key that they make here it has never seen. */
function reportedOtherwise({ overrideId, use }: Pick<ReportedOverride, 'overrideId' | 'use'>): Fault {
  const useId = use?.useId ?? use?.requestId;
  const what = useId === undefined ? 'The override' : `The use ${JSON.stringify(useId)} of the override`;
  return new Fault(
    'already_exists',
    'IDEMPOTENCY_KEY_REUSED',
    `${what} ${JSON.stringify(overrideId)} was reported with another content. What is reported again has to be the same; another use needs a \`use_id\` of its own.`,
    { metadata: { override_id: overrideId, ...(useId === undefined ? {} : { use_id: useId }) } },
  );
}

/** The resource as the map names it; as it was reported when the map does not know it. */
function pathOf(decision: Decision, resource: string): string {
  const resolved = resolveResource(decision.state.map, resource);
  return resolved.ok ? resolved.resource : resource;
}

function ownedBy(decision: Decision, path: string): boolean {
  const owners = kindOf(decision.state.map, path)?.ownerService ?? [];
  return owners.length === 0 || owners.includes(decision.actor);
}
