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

/** Who may call which route over HTTP; null: anybody, without saying who. Metrics tell of all namespaces: their role must hold everywhere. */
const ROLES_BY_ROUTE = {
  'GET /healthz': null,
  'GET /readyz': null,
  'GET /metrics': ['operator', 'admin', 'auditor'],
  'GET /.well-known/jwks.json': null,
  'POST /oauth2/introspect': ['target', 'runner', 'operator', 'admin', 'auditor'],
} as const satisfies Readonly<Record<string, readonly Role[] | null>>;

/** A route, as method and path. */
export type Route = keyof typeof ROLES_BY_ROUTE;

/** Every route there is. */
export const ROUTES = Object.keys(ROLES_BY_ROUTE) as readonly Route[];

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
  return ROLES_BY_ROUTE[route];
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

/** Passes when the principal may call the route; introspection is of one namespace, which the token names. */
export function authorizeRoute(principal: Principal, route: Route): void {
  if (route === 'POST /oauth2/introspect') authorize(principal, 'CredentialService/IntrospectCredential', null);
  else if (!hasOne(principal.roles, ROLES_BY_ROUTE[route] ?? [])) {
    throw roleRequired(principal, ROLES_BY_ROUTE[route] ?? [], route);
  }
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
    `${what} needs one of the roles ${roles.join(', ') || '(none)'}; ${principal.name} has ${held}`,
    { metadata: { required_roles: roles.join(',') } },
  );
}

/** Whether another run's id, lease and free text may be shown to the principal. */
export function seesOtherRuns(principal: Principal): boolean {
  return SEES_RUNS.some((role) => principal.roles.has(role));
}
