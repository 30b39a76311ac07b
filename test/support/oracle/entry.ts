import type { Access, Scope } from '../../../src/domain/entry.js';

/**
 * A second opinion, slow and obvious, written from the words of the design (§4 to §6) and from nothing else: it knows
 * no lock, no mode and no index. It looks at every resource of a small universe, one after another, and asks what each
 * run may do to it. Of src it uses types only.
 */

/** What the oracle needs to know of an entry. */
export interface OracleEntry {
  readonly resource: string;
  readonly access: Access;
  readonly scope: Scope;
  readonly exclusive: boolean;
  readonly mode: 'observe' | 'enforce';
  readonly observedRefusal: string | null;
  /** Its run may not use it: a child run holds some of it. */
  readonly suspended?: boolean;
}

/** "EXACT: the resource itself; SUBTREE: the resource and all below it." */
export function covers(entry: Pick<OracleEntry, 'resource' | 'scope'>, resource: string): boolean {
  if (entry.resource === resource) return true;
  return entry.scope === 'subtree' && resource.startsWith(`${entry.resource}/`);
}

export type Use = 'stable' | 'optimistic' | 'exclusive';

/** READ is recorded and keeps nobody away; so does an entry that was only observed to be in somebody's way. */
export function useOf(entry: OracleEntry): Use | null {
  if (entry.observedRefusal !== null || entry.access === 'read') return null;
  if (entry.access === 'stable_read') return 'stable';
  return entry.exclusive ? 'exclusive' : 'optimistic';
}

/** "Optimistic writers stand side by side, never beside a leased one"; STABLE_READ: "nobody may change it meanwhile". */
export function clash(a: Use, b: Use): boolean {
  return a !== b || a === 'exclusive';
}

export const nameOf = ({ access, scope, resource }: OracleEntry): string => `${access} ${scope} ${resource}`;
