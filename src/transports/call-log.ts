import type { Method } from '../auth/roles.js';
import { shortLeaseId } from '../platform/log.js';

/** What the log says about calls, whichever way they come. */

/** Calls that change what others meet and that people make: each is worth a line in the log. */
export const NOTABLE: ReadonlySet<string> = new Set<Method>([
  'LeaseService/RevokeLease',
  'LeaseService/TakeOver',
  'LeaseService/SettleInDoubt',
  'LeaseService/Freeze',
  'LeaseService/Thaw',
  'RunService/StopRun',
  'RunService/StopRuns',
  'FenceService/ReportOverride',
  'CredentialService/RevokeCredential',
  'CredentialService/RotateSigningKey',
  'CredentialService/RetireSigningKey',
  'ConflictMapService/PutConflictMap',
  'NamespaceService/CreateNamespace',
  'AuditService/ExportEvents',
]);

/** Run and lease of a request, as far as it names them; of a lease id only the part that may be logged. */
export function idsOf(request: object): Record<string, string> {
  const { namespace, runId, leaseId } = request as { namespace?: unknown; runId?: unknown; leaseId?: unknown };
  const named = (value: unknown): value is string => typeof value === 'string' && value !== '';
  return {
    ...(named(namespace) ? { namespace: namespace.slice(0, 64) } : {}),
    ...(named(runId) ? { run_id: runId.slice(0, 64) } : {}),
    ...(named(leaseId) ? { lease_id: shortLeaseId(leaseId) } : {}),
  };
}
