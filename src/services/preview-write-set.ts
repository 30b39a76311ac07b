import { previewAcquire } from '../domain/decide/acquire.js';
import { runNotFound } from '../domain/decide/run-guard.js';
import { Fault } from '../domain/fault.js';
import { checkInput, toCommand } from './acquire-write-set.js';
import type { At, CallContext, PreviewInput, PreviewOutcome } from './api.js';
import { type Deps, engineOf, hasRole } from './deps.js';
import { previewOfTakeOver } from './take-over.js';

/** PreviewWriteSet: the same decision on an overlay that is thrown away. */
export async function previewWriteSet(
  deps: Deps,
  context: CallContext,
  { takeOver = null, ...input }: PreviewInput,
): Promise<At<PreviewOutcome>> {
  checkInput(deps, input, { withKey: false, within: 'request.' });
  const engine = await engineOf(deps, context);
  const asOperator = hasRole(context, 'operator', 'admin');
  if (takeOver !== null && !hasRole(context, 'operator'))
    throw new Fault(
      'permission_denied',
      'OPERATOR_REQUIRED',
      'Only an operator takes over, and is told whom that ends.',
    );
  return engine.read((view) => {
    const run = view.run(input.runId);
    if (run === undefined || (run.principal !== context.principal.name && !asOperator)) throw runNotFound(input.runId);
    const decision = view.preview(context.principal.name, deps.bounds);
    if (takeOver !== null) {
      const { ended, ...outcome } = previewOfTakeOver(decision, context, { ...input, ...takeOver, idempotencyKey: '' });
      return { ...outcome, wouldEnd: ended.leases };
    }
    const command = { ...toCommand(context, input), principal: run.principal };
    return { ...previewAcquire(decision, command), wouldEnd: [] };
  });
}
