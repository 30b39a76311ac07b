import type { FenceVerdict } from '../../../src/domain/fence.js';
import { SECOND } from '../../../src/domain/time.js';
import { type Audited, overAt } from '../oracle/audit/audited-lease.js';
import { mayWrite } from '../oracle/fence-check.js';
import type { Check } from './fence-check.js';
import { expectPromise } from './promise.js';
import type { World } from './world.js';

/** Whether the answer to a check was right, by the log and by what was answered before. */
export function auditVerdict(world: World, check: Check, verdict: FenceVerdict): void {
  const [write] = check.writes;
  const [result] = verdict.results;
  if (write === undefined || result === undefined) throw new Error('one write, one verdict');
  world.count(`check ${result.reason}`);
  auditCredential(world, check, result.reason);
  if (/^credential_/.test(result.reason)) return;
  const { leaseId, presenterRunId } = check;
  const enforced = result.reason === 'ok';
  if (result.reason === 'in_doubt') return;
  // The answer is that of the whole log up to now, at the time of the gate or of its last event.
  const isFrozen = world.facts.deniesWrites(write.resource, Math.max(check.gate?.now ?? 0, world.reference.time));
  if (result.reason === 'frozen') {
    expectPromise(isFrozen, `P8: a write to ${write.resource} was denied as frozen, and it is not`);
    return;
  }
  if (enforced) expectPromise(!isFrozen, `P3: a write to ${write.resource} was allowed, which is frozen for writes`);
  if (!enforced && result.allowed) {
    expectPromise(write.resource.startsWith('obs'), `C14: a write to ${write.resource} was allowed as only observed`);
    return;
  }
  const covered = (lease: Audited | undefined): boolean =>
    mayWrite(lease === undefined ? undefined : { ...lease, live: true }, presenterRunId, write);
  if (enforced) {
    expectPromise(check.live, `P3: a write was allowed on ${leaseId}, which was not live when the check was decided`);
    const ended = world.ends.get(leaseId) ?? Number.POSITIVE_INFINITY;
    expectPromise(ended >= check.startedAt, `P3: a write was allowed on ${leaseId} after its end had been answered`);
    expectPromise(
      covered(check.lease),
      `P4: a write to ${write.resource} was allowed on ${leaseId}, which does not cover it`,
    );
    return;
  }
  const now = world.facts.leases.get(leaseId);
  const live = check.live && now !== undefined && world.facts.isLive(leaseId, world.database.now + SECOND);
  const denied = live && covered(check.lease) && covered(now) && overAt(now) > world.reference.time;
  expectPromise(
    !denied,
    `P8: a write to ${write.resource} was denied as ${result.reason} although ${leaseId} covers it`,
  );
}

/** What is said of the credential itself is true. */
function auditCredential(world: World, { credential, gate, startedAt }: Check, reason: string): void {
  if (credential === null || gate === null) return;
  const end = credential.expiresAt * SECOND;
  // Later events than the gate saw may be known by the time of the answer.
  if (reason === 'credential_expired')
    expectPromise(
      end <= Math.max(world.database.now, world.reference.time),
      'P8: a credential was denied as expired before its end',
    );
  if (reason !== 'ok') return;
  expectPromise(end > gate.now, 'P10: a credential was allowed past its end');
  const revoked = world.revoked.get(credential.jti) ?? Number.POSITIVE_INFINITY;
  expectPromise(revoked >= startedAt, 'P3: a credential was allowed after its revocation had been answered');
}
