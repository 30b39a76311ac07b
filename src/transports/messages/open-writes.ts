import type { Principal } from '../../auth/principal.js';
import { seesOtherRuns } from '../../auth/roles.js';
import type { Admission } from '../../domain/admission.js';
import type * as lease from '../../gen/writ/v1/lease_service.js';
import { toOptionalTimestamp, toTimestamp } from './convert.js';

/** Writes told in one answer about one run. */
export const MAX_OPEN_WRITES = 256;
/** In lists of runs, of each. */
export const MAX_LISTED_WRITES = 8;

/** A tracked write whose outcome is not known. The lease id is a secret handle: whoever may not know it gets none. */
export function toOpenWrite(admission: Admission, showsLease = true): lease.OpenWrite {
  return {
    resource: admission.resource,
    action: admission.action,
    leaseId: showsLease ? admission.leaseId : '',
    requestId: admission.requestId,
    admittedAt: toTimestamp(admission.admittedAt),
    admissionId: admission.admissionId,
    runId: admission.runId,
    target: admission.target,
    inDoubtSince: toOptionalTimestamp(admission.inDoubtSince),
    observedVersion: admission.observedVersion ?? undefined,
    unsure: admission.unsure,
  };
}

/** As many of them as an answer holds. */
export function toOpenWrites(
  admissions: readonly Admission[],
  viewer: Principal,
  owner: string,
  most = MAX_OPEN_WRITES,
): lease.OpenWrite[] {
  const showsLease = seesOtherRuns(viewer) || viewer.name === owner;
  return admissions.slice(0, most).map((admission) => toOpenWrite(admission, showsLease));
}
