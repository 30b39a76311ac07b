import type { Ceiling } from './ceiling.js';

/** What a principal may do; enforced per call by the table in roles.ts. */
export type Role = 'admin' | 'runner' | 'target' | 'operator' | 'approver' | 'auditor';

export const ROLES: readonly Role[] = ['admin', 'runner', 'target', 'operator', 'approver', 'auditor'];

/** Who calls, as authenticated by the session; never taken from a header or a field (I1). */
export interface Principal {
  readonly name: string;
  readonly roles: ReadonlySet<Role>;
  /** What bounds the contracts of its runs (R1); absent: the coordinator's limits alone. */
  readonly ceiling?: Ceiling;
  /** SHA-256 of the session's client certificate in base64url, as `x5t#S256` of RFC 8705 has it; absent: none was shown. */
  readonly certificateThumbprint?: string;
}
