import type { Ceiling } from '../domain/ceiling.js';
import { type NamespaceRoles, type Principal, ROLES, type Role } from './principal.js';

/** A certificate by which a principal is known: the SPIFFE id in it, or, where it has none, its subject. */
export type CertificateName = { readonly spiffeId: string } | { readonly subject: string };

/** One entry of a principals file. A principal may have several; all of them carry the same rights. */
export interface PrincipalEntry {
  readonly name: string;
  /** That hold everywhere. */
  readonly roles: readonly Role[];
  readonly namespaceRoles?: Readonly<Record<string, readonly Role[]>>;
  readonly ceiling?: Ceiling;
  /** 64 hexadecimal digits in lower case; absent: this entry brings no token. */
  readonly tokenSha256?: string;
  readonly certificates?: readonly CertificateName[];
}

/** A principals file that cannot be used, in words for the person who wrote it. */
export class PrincipalsFileError extends Error {
  override readonly name = 'PrincipalsFileError';
}

/** What a principal's name may be: it stands in the log, in headers and on screens. */
export const PRINCIPAL_NAME = /^[\x21-\x7e]{1,128}$/;

/** What the log calls the coordinator itself. */
export const RESERVED_NAME = 'system';

/** Rights as an entry, or a mapping of claims, gives them. */
export type Rights = Pick<PrincipalEntry, 'name' | 'roles' | 'namespaceRoles' | 'ceiling'>;

export function toPrincipal({ name, roles, namespaceRoles, ceiling }: Rights): Principal {
  return {
    name,
    roles: new Set(roles),
    ...(namespaceRoles === undefined ? {} : { namespaceRoles: toNamespaceRoles(namespaceRoles) }),
    ...(ceiling === undefined ? {} : { ceiling }),
  };
}

function toNamespaceRoles(given: Readonly<Record<string, readonly Role[]>>): NamespaceRoles {
  return new Map(Object.entries(given).map(([namespace, roles]) => [namespace, new Set(roles)]));
}

/** The principals of these entries by name; throws a PrincipalsFileError where two entries of one name differ. */
export function principalsOf(entries: readonly PrincipalEntry[]): Map<string, Principal> {
  const principals = new Map<string, { readonly principal: Principal; readonly rights: string }>();
  for (const entry of entries) {
    const rights = comparable(entry);
    const known = principals.get(entry.name);
    if (known === undefined) principals.set(entry.name, { principal: toPrincipal(entry), rights });
    else if (known.rights !== rights)
      throw new PrincipalsFileError(`${entry.name}: has two entries with different roles or ceilings`);
  }
  return new Map([...principals].map(([name, { principal }]) => [name, principal]));
}

/** The same text for the same rights, in whatever order they were written. */
function comparable({ roles, namespaceRoles = {}, ceiling }: PrincipalEntry): string {
  const ordered = (held: readonly Role[]): Role[] => ROLES.filter((role) => held.includes(role));
  const places = Object.entries(namespaceRoles)
    .map(([namespace, held]) => [namespace, ordered(held)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([ordered(roles), places, ceiling ?? null]);
}
