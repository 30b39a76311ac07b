import { checkFence } from '../../../src/domain/check-fence.js';
import { observes, resolveResource } from '../../../src/domain/conflict-map/index.js';
import { credentialReason, type NewCredential } from '../../../src/domain/credential.js';
import type { View } from '../../../src/domain/decide/decision.js';
import { isResourceInDoubt } from '../../../src/domain/doubt.js';
import type { FenceVerdict, ProtectedWrite } from '../../../src/domain/fence.js';
import { deniesWrites } from '../../../src/domain/freeze.js';
import { SECOND } from '../../../src/domain/time.js';
import type { Gate } from '../../../src/storage/store.js';
import { MAX_SKEW } from '../domain.js';
import type { Audited } from '../oracle/audit/audited-lease.js';
import { NAMESPACE } from './small-world.js';

/** A fence check on its way. */
export interface Check {
  readonly leaseId: string;
  /** Presented in place of the lease id. */
  readonly credential: NewCredential | null;
  readonly presenterRunId: string;
  readonly writes: readonly ProtectedWrite[];
  readonly startedAt: number;
  gate: Gate | null;
  /** What the auditor knew of the lease when the gate was read. */
  live: boolean;
  lease: Audited | undefined;
}

export function verdictOf(view: View, check: Check): FenceVerdict {
  const { map } = view.state;
  const lease = view.lease(check.leaseId);
  return checkFence(
    {
      now: view.now,
      maxClockSkew: MAX_SKEW,
      lease,
      run: lease === undefined ? undefined : view.run(lease.runId),
      pathOf: (resource) => {
        const resolved = resolveResource(map, resource);
        return resolved.ok ? resolved.resource : null;
      },
      observes: (resource) => observes(map, resource),
      ownedByCaller: () => true,
      inDoubt: (resource) => isResourceInDoubt(view.state, resource, lease),
      frozen: (resource) => deniesWrites(view.state.freezes, resource, view.now),
    },
    {
      presenterRunId: check.presenterRunId,
      writes: check.writes,
      ...(check.credential === null ? {} : { credential: credentialView(view, check.credential) }),
    },
  );
}

function credentialView(view: View, credential: NewCredential) {
  const { revocations, namespace } = view.state;
  const facts = { namespace, now: view.now, maxClockSkew: MAX_SKEW, revocations, presenter: null };
  return {
    reason: credentialReason({ ...credential, namespace: NAMESPACE }, facts),
    grants: credential.scope.grants,
    expiresAt: credential.expiresAt * SECOND,
  };
}
