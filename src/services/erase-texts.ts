import { decideEraseTexts } from '../domain/decide/erase-texts.js';
import { runNotFound } from '../domain/decide/run-guard.js';
import type { At, CallContext } from './api.js';
import { type Deps, engineOf, requestIds } from './deps.js';
import { FieldChecks } from './fields.js';

/**
 * EraseTexts (A3). The event comes first: an erasure that was begun is recorded, also when it was cut short, and asking
 * again ends it.
 */
export async function eraseTexts(
  deps: Deps,
  context: CallContext,
  input: { runId: string; reason: string },
): Promise<At<{ erased: number }>> {
  const { runId, reason } = input;
  const checks = new FieldChecks();
  checks.id('run_id', runId);
  checks.text('reason', reason, 1_024, true);
  checks.done();
  const engine = await engineOf(deps, context);
  // The run's own record may be purged long before its events.
  const known = await engine.store.listEvents(engine.namespace, { runId, limit: 1 });
  if (known.length === 0) throw runNotFound(runId);
  const { revision, now } = await engine.submit(context.principal.name, (decision) =>
    decideEraseTexts(decision, { runId, reason, requestIds: requestIds(context.requestId) }),
  );
  const erased = await engine.store.eraseTextsOfRun(engine.namespace, runId, revision);
  return { value: { erased }, revision, now };
}
