import type { Admission } from '../domain/admission.js';
import { decideRevoke } from '../domain/decide/release.js';
import type { EndReason } from '../domain/lease.js';
import type { Micros } from '../domain/time.js';
import type { At, CallContext } from './api.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/** RevokeLease: ends anybody's lease or waiting request, with a reason for the log and the holder. */
export async function revokeLease(
  deps: Deps,
  context: CallContext,
  input: { leaseId: string; reason: string },
): Promise<At<{ effectiveAt: Micros; endReason: EndReason; openWrites: readonly Admission[] }>> {
  const checks = new FieldChecks();
  checks.printable('lease_id', input.leaseId, true);
  checks.text('reason', input.reason, 1_024, true);
  checks.done();
  const engine = await engineOf(deps, context);
  return engine.submit(context.principal.name, (decision) =>
    decideRevoke(decision, { ...input, requestIds: requestIds(context.requestId) }),
  );
}
