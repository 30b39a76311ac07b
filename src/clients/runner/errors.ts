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

/** A write was about to be sent for a lease that its run has given back. */
export class LeaseReleasedError extends Error {
  override readonly name = 'LeaseReleasedError';

  constructor(readonly leaseId: string) {
    super(`lease ${leaseId.slice(0, 8)}… was released: nothing may be written by it any more`);
  }
}

/** The lease says nothing of a resource that was about to be written; the target would refuse it (C10). Nothing was sent. */
export class UndeclaredWriteError extends Error {
  override readonly name = 'UndeclaredWriteError';

  constructor(readonly resource: string) {
    super(`the lease does not cover a write to ${JSON.stringify(resource)}: ask for it in the write set`);
  }
}

/** A request was about to go where no declared target is; it would have shown what the run presents. Nothing was sent. */
export class UndeclaredTargetError extends Error {
  override readonly name = 'UndeclaredTargetError';

  constructor(
    /** The origin, or the audience, that no target has. */
    readonly target: string,
  ) {
    super(`${target} is no declared target of this lease: name it in \`targets\` of the request`);
  }
}

/** The coordinator gives no credential for a target. The lease is held all the same. */
export class CredentialNotIssuedError extends Error {
  override readonly name = 'CredentialNotIssuedError';
  /** Stable code: `too_short`, `audience_not_allowed`, `credentials_revoked`, `ended`, `run_ended`. */
  readonly kind: string;

  constructor(
    readonly audience: string,
    readonly refusal: Refusal,
  ) {
    super(`no credential for ${audience} (${kindName(refusal.kind)}): ${refusal.message}`);
    this.kind = kindName(refusal.kind);
  }
}

/** The stable code of a refusal, as in the contract but in lower case: `held`, `outside_contract`. */
export function kindName(kind: RefusalKind): string {
  return (RefusalKind[kind] ?? 'REFUSAL_KIND_UNSPECIFIED').replace('REFUSAL_KIND_', '').toLowerCase();
}
