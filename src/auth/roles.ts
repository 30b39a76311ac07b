import { Fault } from '../domain/fault.js';
import { inNamespace, type Principal, ROLES, type Role } from './principal.js';

const ALL = ROLES;

/**
 * Which roles may call which RPC: the whole of the coordinator's authorisation by role, as the
 * contract's comments say it. What a role may do *inside* a call (a runner with its own runs only) is
 * decided by the services.
 */
const ROLES_BY_METHOD = {
  'LeaseService/AcquireWriteSet': ['runner'],
  'LeaseService/AmendWriteSet': ['runner'],
  'LeaseService/RenewLeases': ['runner'],
  'LeaseService/ReleaseLease': ['runner'],
  'LeaseService/RevokeLease': ['operator', 'admin'],
  'LeaseService/TakeOver': ['operator'],
  'LeaseService/GetLease': ['runner', 'operator', 'admin', 'auditor'],
  'LeaseService/ListLeases': ['runner', 'operator', 'admin', 'auditor'],
  'LeaseService/PreviewWriteSet': ['runner', 'operator', 'admin'],
  'LeaseService/Session': ['runner', 'operator', 'admin', 'auditor'],
  'LeaseService/FindBlockers': ['runner', 'operator', 'admin', 'auditor'],
  'LeaseService/ListInDoubt': ['operator', 'admin', 'auditor', 'runner', 'target'],
  'LeaseService/SettleInDoubt': ['operator', 'admin'],
  'LeaseService/Freeze': ['operator', 'admin'],
  'LeaseService/Thaw': ['operator', 'admin'],
  'LeaseService/ListFreezes': ['operator', 'admin', 'auditor', 'approver', 'runner'],

  'FenceService/CheckFence': ['target'],
  'FenceService/StreamFenceChecks': ['target'],
  'FenceService/ReportOverride': ['target'],
  'Authorization/Check': ['target'],
  'FenceService/ReportWrite': ['target'],
  'FenceService/WatchFences': ['target'],

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
  'ConflictMapService/BeginRehearsal': ['target', 'admin'],
  'ConflictMapService/RecordRehearsal': ['target', 'admin'],
  'ConflictMapService/ListRehearsals': ['target', 'admin', 'operator', 'auditor'],

  'AuditService/ListEvents': ['auditor', 'operator', 'admin'],
  'AuditService/FindIds': ['auditor', 'operator', 'admin'],
  'AuditService/ExportEvents': ['auditor', 'admin'],
  'AuditService/GetCheckpoint': ['auditor', 'operator', 'admin'],
  'AuditService/ListCheckpoints': ['auditor', 'operator', 'admin'],
  'AuditService/EraseTexts': ['admin'],
  'AuditService/CutLog': ['admin'],

  'NamespaceService/CreateNamespace': ['admin'],
  'NamespaceService/GetNamespace': ALL,
  'NamespaceService/ListNamespaces': ALL,
} as const satisfies Readonly<Record<string, readonly Role[]>>;

/** An RPC, as `Service/Method`. */
export type Method = keyof typeof ROLES_BY_METHOD;

/** Who may see which run is behind a lease, a blocker or a cycle. */
const SEES_RUNS: readonly Role[] = ['operator', 'admin', 'auditor'];

/**
 * Routes that say the same as an RPC, or belong to it: whoever may call the one may call the other. Each is about the
 * namespace that its request names; until that is known the role has to hold in any.
 */
const METHOD_OF_ROUTE = {
  'POST /oauth2/introspect': 'CredentialService/IntrospectCredential',
  'GET /v1/fence/check': 'FenceService/CheckFence',
  'POST /access/v1/evaluation': 'FenceService/CheckFence',
  'POST /access/v1/evaluations': 'FenceService/CheckFence',

  'GET /v1/conflict-map': 'ConflictMapService/GetConflictMap',
  'PUT /v1/conflict-map': 'ConflictMapService/PutConflictMap',
  'POST /v1/conflict-map/validate': 'ConflictMapService/ValidateConflictMap',
  'POST /v1/conflict-map/preview': 'ConflictMapService/PreviewConflictMap',
  'POST /v1/conflict-map/explain': 'ConflictMapService/ExplainConflict',
  'GET /v1/conflict-map/matrix': 'ConflictMapService/GetTaskMatrix',
  'POST /v1/conflict-map/matrix': 'ConflictMapService/GetTaskMatrix',
  'GET /v1/conflict-map/schema': 'ConflictMapService/GetConflictMap',
  'POST /v1/conflict-map/test': 'ConflictMapService/ValidateConflictMap',
  'POST /v1/conflict-map/diff': 'ConflictMapService/ListConflictMapVersions',
  'POST /v1/conflict-map/rollback': 'ConflictMapService/PutConflictMap',
  'GET /v1/conflict-map/versions': 'ConflictMapService/ListConflictMapVersions',
  'GET /v1/conflict-map/unmatched': 'ConflictMapService/ListUnmatchedResources',
  'GET /v1/resources/resolve': 'ConflictMapService/ResolveResource',
  'GET /v1/rehearsals': 'ConflictMapService/ListRehearsals',
  'POST /v1/rehearsals': 'ConflictMapService/RecordRehearsal',
  'POST /v1/rehearsals/begin': 'ConflictMapService/BeginRehearsal',

  'GET /v1/leases': 'LeaseService/ListLeases',
  'POST /v1/leases': 'LeaseService/AcquireWriteSet',
  'POST /v1/leases/preview': 'LeaseService/PreviewWriteSet',
  'POST /v1/leases/take-over': 'LeaseService/TakeOver',
  'POST /v1/leases/renew': 'LeaseService/RenewLeases',
  'POST /v1/leases/release': 'LeaseService/ReleaseLease',
  'GET /v1/leases/{leaseId}': 'LeaseService/GetLease',
  'POST /v1/leases/{leaseId}/amend': 'LeaseService/AmendWriteSet',
  'POST /v1/leases/{leaseId}/release': 'LeaseService/ReleaseLease',
  'POST /v1/leases/{leaseId}/revoke': 'LeaseService/RevokeLease',
  'GET /v1/waiters': 'LeaseService/ListLeases',
  'GET /v1/blockers': 'LeaseService/FindBlockers',
  'GET /v1/freezes': 'LeaseService/ListFreezes',
  'POST /v1/freezes': 'LeaseService/Freeze',
  'POST /v1/freezes/thaw': 'LeaseService/Thaw',
  'GET /v1/in-doubt': 'LeaseService/ListInDoubt',
  'POST /v1/in-doubt/{admissionId}/settle': 'LeaseService/SettleInDoubt',

  'GET /v1/runs': 'RunService/ListRuns',
  'POST /v1/runs': 'RunService/CreateRun',
  'POST /v1/runs/stop': 'RunService/StopRuns',
  'GET /v1/runs/{runId}': 'RunService/GetRun',
  'POST /v1/runs/{runId}/state': 'RunService/UpdateRunState',
  'POST /v1/runs/{runId}/stop': 'RunService/StopRun',
  'POST /v1/runs/{runId}/erase-texts': 'AuditService/EraseTexts',

  'POST /v1/fence/checks': 'FenceService/CheckFence',
  'POST /v1/fence/reports': 'FenceService/ReportWrite',
  'POST /v1/fence/overrides': 'FenceService/ReportOverride',
  'GET /v1/fence/changes': 'FenceService/WatchFences',

  'GET /v1/events': 'AuditService/ListEvents',
  'GET /v1/events/stream': 'AuditService/ListEvents',
  'GET /v1/events/export': 'AuditService/ExportEvents',
  'GET /v1/ids': 'AuditService/FindIds',
  'POST /v1/events/cut': 'AuditService/CutLog',
  'GET /v1/checkpoint': 'AuditService/GetCheckpoint',
  'GET /v1/checkpoints': 'AuditService/ListCheckpoints',

  'GET /v1/keys': 'CredentialService/ListSigningKeys',
  'POST /v1/keys/rotate': 'CredentialService/RotateSigningKey',
  'POST /v1/keys/{keyId}/retire': 'CredentialService/RetireSigningKey',
  'POST /v1/credentials': 'CredentialService/IssueCredential',
  'POST /v1/credentials/introspect': 'CredentialService/IntrospectCredential',
  'POST /v1/credentials/revoke': 'CredentialService/RevokeCredential',

  'GET /v1/principal': 'NamespaceService/ListNamespaces',
  'GET /v1/namespaces': 'NamespaceService/ListNamespaces',
  'POST /v1/namespaces': 'NamespaceService/CreateNamespace',
  'GET /v1/namespaces/{name}': 'NamespaceService/GetNamespace',
} as const satisfies Readonly<Record<string, Method>>;

/** Who may call the others; null: anybody, without saying who. Metrics tell of all namespaces: their role must hold everywhere. */
const ROLES_BY_OTHER_ROUTE = {
  'GET /healthz': null,
  'GET /readyz': null,
  'GET /metrics': ['operator', 'admin', 'auditor'],
  'GET /.well-known/jwks.json': null,
  'GET /.well-known/authzen-configuration': null,
  'POST /auth/session': null,
  'GET /auth/session': null,
  'DELETE /auth/session': null,
  'GET /auth/oidc/start': null,
  'GET /auth/oidc/callback': null,
  'GET /v1/openapi.json': null,
} as const satisfies Readonly<Record<string, readonly Role[] | null>>;

/** A route that goes by the roles of an RPC. */
export type MethodRoute = keyof typeof METHOD_OF_ROUTE;

/** A route, as method and path; `{…}` in it stands for one segment. */
export type Route = MethodRoute | keyof typeof ROLES_BY_OTHER_ROUTE;

/** Every route there is. */
export const ROUTES = [...Object.keys(METHOD_OF_ROUTE), ...Object.keys(ROLES_BY_OTHER_ROUTE)] as readonly Route[];

/** Those that say the same as an RPC. */
export const METHOD_ROUTES = Object.keys(METHOD_OF_ROUTE) as readonly MethodRoute[];

/** The RPC whose roles a route goes by; null: it has roles of its own, or none. */
export function methodOfRoute(route: Route): Method | null {
  return isMethodRoute(route) ? METHOD_OF_ROUTE[route] : null;
}

/** What concerns the whole installation: the role must hold everywhere. */
const EVERYWHERE: ReadonlySet<Method> = new Set<Method>([
  'CredentialService/ListSigningKeys',
  'CredentialService/RotateSigningKey',
  'CredentialService/RetireSigningKey',
]);

/** The roles that may call a method; undefined for a method that is not in the table: nobody may. */
export function rolesFor(method: string): readonly Role[] | undefined {
  return Object.hasOwn(ROLES_BY_METHOD, method) ? ROLES_BY_METHOD[method as Method] : undefined;
}

/** The roles that may call a route; null: anybody. */
export function rolesForRoute(route: Route): readonly Role[] | null {
  return isMethodRoute(route) ? ROLES_BY_METHOD[METHOD_OF_ROUTE[route]] : ROLES_BY_OTHER_ROUTE[route];
}

function isMethodRoute(route: Route): route is MethodRoute {
  return Object.hasOwn(METHOD_OF_ROUTE, route);
}

/**
 * The principal as it is in the call's namespace, when it may call the method there; else throws a Fault that names the
 * roles that would do. A call that concerns no namespace (null) needs a role in any, or everywhere where it concerns all.
 */
export function authorize(principal: Principal, method: Method, namespace: string | null): Principal {
  const roles = rolesFor(method) ?? [];
  if (namespace === null) {
    if (hasOne(principal.roles, roles)) return principal;
    const single = EVERYWHERE.has(method) ? [] : [...(principal.namespaceRoles?.values() ?? [])];
    if (single.some((held) => hasOne(held, roles))) return principal;
    throw roleRequired(principal, roles, method);
  }
  const there = inNamespace(principal, namespace);
  if (!hasOne(there.roles, roles))
    throw roleRequired(there, roles, `${method} in the namespace ${namespace.slice(0, 64)}`);
  return there;
}

/** Passes when the principal may call the route somewhere. */
export function authorizeRoute(principal: Principal, route: Route): void {
  if (isMethodRoute(route)) authorize(principal, METHOD_OF_ROUTE[route], null);
  else if (!hasOne(principal.roles, ROLES_BY_OTHER_ROUTE[route] ?? [])) {
    throw roleRequired(principal, ROLES_BY_OTHER_ROUTE[route] ?? [], route);
  }
}

/** The RPCs that the principal may call in the namespace. */
export function methodsAllowed(principal: Principal, namespace: string): Method[] {
  const there = inNamespace(principal, namespace);
  return (Object.keys(ROLES_BY_METHOD) as Method[]).filter((method) =>
    hasOne(EVERYWHERE.has(method) ? principal.roles : there.roles, ROLES_BY_METHOD[method]),
  );
}

function hasOne(held: ReadonlySet<Role>, roles: readonly Role[]): boolean {
  for (const role of roles) {
    if (held.has(role)) return true;
  }
  return false;
}

function roleRequired(principal: Principal, roles: readonly Role[], what: string): Fault {
  const held = [...principal.roles].join(', ') || 'none there';
  return new Fault(
    'permission_denied',
    'ROLE_REQUIRED',
    `${what} needs one of the roles ${roles.join(', ') || '(none)'}; ${principal.name} has ${held}. Whoever keeps the principals file can add one; otherwise call as another principal.`,
    { metadata: { required_roles: roles.join(',') } },
  );
}

/** Whether another run's id, lease and free text may be shown to the principal. */
export function seesOtherRuns(principal: Principal): boolean {
  return SEES_RUNS.some((role) => principal.roles.has(role));
}
