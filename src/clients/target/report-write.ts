import { ReportOutcome, WriteResult } from '../../gen/writ/v1/fence_service.js';
import type { CallOptions } from '../common/channel.js';
import type { WritClient } from '../common/connect.js';

/** What became of one write. */
export interface WriteOutcome {
  /** As the check answered (`decision.writes[i].admissionId`). Absent: by lease, request id, resource and action. */
  readonly admissionId?: string;
  /** As in the check; with `admissionId` it may be left out. */
  readonly resource?: string;
  readonly action?: string;
  /** `failed`: it changed nothing, for certain. `unknown`: it cannot be told, and the write stays open. */
  readonly result: 'succeeded' | 'failed' | 'unknown';
  /** The version that the write was made from. */
  readonly observedVersion?: string;
  /** Of the resource after the write. */
  readonly newVersion?: string;
  /** Names of what was changed, no values. */
  readonly changedFields?: readonly string[];
}

/** What became of the tracked writes of one check. */
export interface WriteOutcomes {
  /** Of the check; not needed where each write names its admission. */
  readonly leaseId?: string;
  /** Of the check, in place of `leaseId`; it may have expired since. */
  readonly credential?: string;
  /** Of the check. */
  readonly requestId?: string;
  readonly writes: readonly WriteOutcome[];
  /** Why they failed, or are not known; facts only. */
  readonly detail?: string;
  /** Default: the client's. */
  readonly namespace?: string;
}

/** What the report did about a write. */
export type Reported = 'closed' | 'recorded' | 'already_known' | 'contradicts';

const RESULTS: Readonly<Record<WriteOutcome['result'], WriteResult>> = {
  succeeded: WriteResult.WRITE_RESULT_SUCCEEDED,
  failed: WriteResult.WRITE_RESULT_FAILED,
  unknown: WriteResult.WRITE_RESULT_UNKNOWN,
};

/**
 * Reports what became of the writes of one check (A1, W6), and closes the admissions of tracked actions: until then their
 * run cannot have stopped, and once its lease has ended nobody is granted what they were let in for. Repeating it is safe;
 * repeat it until it is answered. Only of untracked writes is each report in the log once more. Throws a WritError.
 *
 * @example
 * const [write] = decision.writes;
 * await reportWrite(writ, { writes: [{ admissionId: write.admissionId, result: 'succeeded', newVersion: '42' }] });
 */
export async function reportWrite(
  client: WritClient,
  outcomes: WriteOutcomes,
  options: CallOptions = {},
): Promise<readonly Reported[]> {
  const { namespace = '', leaseId = '', credential = '', requestId = '', detail = '' } = outcomes;
  const writes = outcomes.writes.map(({ result, changedFields = [], ...write }) => ({
    admissionId: '',
    resource: '',
    action: '',
    ...write,
    result: RESULTS[result],
    changedFields: [...changedFields],
  }));
  const answer = await client.fence.reportWrite({ namespace, leaseId, credential, requestId, detail, writes }, options);
  return answer.outcomes.map(
    (outcome) => ReportOutcome[outcome].replace('REPORT_OUTCOME_', '').toLowerCase() as Reported,
  );
}
