import { Fault } from '../domain/fault.js';
import { type Principal, ROLES, type Role } from './principal.js';

const ALL = ROLES;

/**
 * Which roles may call which RPC: the whole of the coordinator's authorisation by role, as the
 * contract's comments say it. What a role may do *inside* a call (a runner with its own runs only) is
 * decided by the services.
 */
const ROLES_BY_METHOD = {
  'LeaseService/AcquireWriteSet': ['runner'],
  'LeaseService/RenewLeases': ['runner'],
  'LeaseService/ReleaseLease': ['runner'],
  'LeaseService/RevokeLease': ['operator', 'admin'],
  'LeaseService/GetLease': ['runner', 'operator', 'admin', 'auditor'],
  'LeaseService/ListLeases': ['runner', 'operator', 'admin', 'auditor'],
  'LeaseService/PreviewWriteSet': ['runner', 'operator', 'admin'],
  'LeaseService/FindBlockers': ['runner', 'operator', 'admin', 'auditor'],

  'FenceService/CheckFence': ['target'],

  'CredentialService/IssueCredential': ['runner'],
  'CredentialService/IntrospectCredential': ['target', 'runner', 'operator', 'admin', 'auditor'],
  'CredentialService/RevokeCredential': ['operator', 'admin', 'runner'],
  'CredentialService/GetKeys': ALL,
  'CredentialService/ListSigningKeys': ['operator', 'admin', 'auditor'],
  'CredentialService/RotateSigningKey': ['operator', 'admin'],
  'CredentialService/RetireSigningKey': ['operator', 'admin'],

  'RunService/CreateRun': ['runner', 'operator', 'admin'],
  'RunService/GetRun': ['runner', 'operator', 'admin', 'approver', 'auditor'],
  'RunService/ListRuns': ['runner', 'operator', 'admin', 'approver', 'auditor'],
  'RunService/UpdateRunState': ['runner', 'operator'],
  'RunService/StopRun': ['operator', 'admin', 'runner'],
  'RunService/StopRuns': ['operator', 'admin'],

  'ConflictMapService/GetConflictMap': ALL,
  'ConflictMapService/PutConflictMap': ['admin'],
  'ConflictMapService/ValidateConflictMap': ['admin', 'operator', 'auditor'],
  'ConflictMapService/PreviewConflictMap': ['admin', 'operator', 'auditor'],
  'ConflictMapService/ExplainConflict': ['admin', 'operator', 'auditor', 'runner'],
  'ConflictMapService/ListConflictMapVersions': ['admin', 'operator', 'auditor'],
  'ConflictMapService/ResolveResource': ALL,
  'ConflictMapService/GetTaskMatrix': ['admin', 'operator', 'auditor'],
  'ConflictMapService/ListUnmatchedResources': ['admin', 'operator', 'auditor'],

  'AuditService/ListEvents': ['auditor', 'operator', 'admin'],
  'AuditService/ExportEvents': ['auditor', 'admin'],
  'AuditService/GetCheckpoint': ['auditor', 'operator', 'admin'],

  'NamespaceService/CreateNamespace': ['admin'],
  'NamespaceService/GetNamespace': ALL,
  'NamespaceService/ListNamespaces': ALL,
} as const satisfies Readonly<Record<string, readonly Role[]>>;

/** An RPC, as `Service/Method`. */
export type Method = keyof typeof ROLES_BY_METHOD;

/** Who may see which run is behind a lease, a blocker or a cycle. */
const SEES_RUNS: readonly Role[] = ['operator', 'admin', 'auditor'];

/** Who may read metrics. */
export const METRICS_ROLES: readonly Role[] = ['operator', 'admin', 'auditor'];

/** The roles that may call a method; undefined for a method that is not in the table: nobody may. */
export function rolesFor(method: string): readonly Role[] | undefined {
  return Object.hasOwn(ROLES_BY_METHOD, method) ? ROLES_BY_METHOD[method as Method] : undefined;
}

/** Passes when the principal may call the method; else throws a Fault that names the roles that would do. */
export function authorize(principal: Principal, method: Method): void {
  requireRole(principal, rolesFor(method) ?? [], method);
}

/** Passes when the principal has one of the roles. */
export function requireRole(principal: Principal, roles: readonly Role[], what: string): void {
  for (const role of roles) {
    if (principal.roles.has(role)) return;
  }
  throw new Fault(
    'permission_denied',
    'ROLE_REQUIRED',
    `${what} needs one of the roles ${roles.join(', ') || '(none)'}; ${principal.name} has ${[...principal.roles].join(', ')}`,
    { metadata: { required_roles: roles.join(',') } },
  );
}

/** Whether another run's id, lease and free text may be shown to the principal. */
export function seesOtherRuns(principal: Principal): boolean {
  return SEES_RUNS.some((role) => principal.roles.has(role));
}
