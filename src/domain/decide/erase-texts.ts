import { Fault } from '../fault.js';
import { hasEnded } from '../run.js';
import type { Decision } from './decision.js';

export interface EraseTextsCommand {
  readonly runId: string;
  readonly reason: string;
  readonly requestIds: readonly string[];
}

/** EraseTexts: records that the free texts of a run's events are forgotten (A3). Its record may be gone already. */
export function decideEraseTexts(decision: Decision, { runId, reason, requestIds }: EraseTextsCommand): void {
  const run = decision.run(runId);
  if (run !== undefined && !hasEnded(run))
    throw new Fault(
      'failed_precondition',
      'RUN_NOT_ENDED',
      `Run ${runId} is ${run.state}: people still need to read what it is for. Stop it, or wait for its end, then erase.`,
    );
  decision.emit({ kind: 'texts_erased', runId, reason }, { runId, requestIds });
}
