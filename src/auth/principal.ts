/** What a principal may do; enforced per call by the table in roles.ts. */
export type Role = 'admin' | 'runner' | 'target' | 'operator' | 'approver' | 'auditor';

export const ROLES: readonly Role[] = ['admin', 'runner', 'target', 'operator', 'approver', 'auditor'];

/** Who calls, as authenticated by the session; never taken from a header or a field (I1). */
export interface Principal {
  readonly name: string;
  readonly roles: ReadonlySet<Role>;
}
