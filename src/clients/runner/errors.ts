import { type Refusal, RefusalKind } from '../../gen/writ/v1/types.js';

/** The coordinator refused the write set; nothing is held. `refusal` says what stands in the way and what to do. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';

  constructor(readonly refusal: Refusal) {
    super(`${kindName(refusal.kind)}: ${refusal.message}`);
  }
}

/**
 * The run may not write any more. The work must stop; what it has sent to others may still happen, and a dead process
 * proves nothing about that.
 */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError';

  constructor(
    readonly leaseId: string,
    /**
     * - `ended`: the coordinator said so (revoked, run stopped, taken over, …);
     * - `not_renewed`: it refused to extend, and the time is up (no progress, max hold);
     * - `unreachable`: no renewal came through in time.
     */
    readonly reason: 'ended' | 'not_renewed' | 'unreachable',
    detail: string,
  ) {
    super(`lease ${leaseId.slice(0, 8)}… is lost (${reason}): ${detail}`);
  }
}

/** The stable code of a refusal, as in the contract but in lower case: `held`, `outside_contract`. */
export function kindName(kind: RefusalKind): string {
  return (RefusalKind[kind] ?? 'REFUSAL_KIND_UNSPECIFIED').replace('REFUSAL_KIND_', '').toLowerCase();
}
