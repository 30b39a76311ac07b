import type { Ceiling } from '../domain/ceiling.js';

/** What a principal may do; enforced per call by the table in roles.ts. */
export type Role = 'admin' | 'runner' | 'target' | 'operator' | 'approver' | 'auditor';

export const ROLES: readonly Role[] = ['admin', 'runner', 'target', 'operator', 'approver', 'auditor'];

/** Roles that hold in one namespace, by its name. */
export type NamespaceRoles = ReadonlyMap<string, ReadonlySet<Role>>;

/** Who calls, as authenticated by the session; never taken from a header or a field (I1). */
export interface Principal {
  readonly name: string;
  /** As the authenticator has it: the roles that hold everywhere. As a service has it: the roles in the call's namespace. */
  readonly roles: ReadonlySet<Role>;
  /** Roles that hold besides in single namespaces; absent: there are none. */
  readonly namespaceRoles?: NamespaceRoles;
  /** What bounds the contracts of its runs (R1); absent: the coordinator's limits alone. */
  readonly ceiling?: Ceiling;
  /** SHA-256 of the session's client certificate in base64url, as `x5t#S256` of RFC 8705 has it; absent: none was shown. */
  readonly certificateThumbprint?: string;
}

/** The principal as it is in one namespace, with all the roles that it has there. */
export function inNamespace(principal: Principal, namespace: string): Principal {
  const more = principal.namespaceRoles?.get(namespace);
  return more === undefined ? principal : { ...principal, roles: new Set([...principal.roles, ...more]) };
}

/** The namespaces that the principal may see; null: all of them. */
export function visibleNamespaces(principal: Principal): readonly string[] | null {
  return principal.roles.size > 0 ? null : [...(principal.namespaceRoles?.keys() ?? [])].sort();
}
