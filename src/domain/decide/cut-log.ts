import type { LogCheckpoint, LostBranch } from '../event.js';
import { Fault } from '../fault.js';
import { type Micros, SECOND } from '../time.js';
import type { Decision } from './decision.js';

/**
 * Nothing younger is cut, unless an operator insists: replicas, targets and readers that were away for less go on where
 * they were.
 */
const MIN_AGE_HOURS = 24;
const MIN_AGE_OF_CUT: Micros = MIN_AGE_HOURS * 3_600 * SECOND;

export interface CutLogCommand {
  /** Of the last event that goes. */
  readonly checkpoint: LogCheckpoint;
  /** Time of that event. */
  readonly time: Micros;
  /** SHA-256 of the archive, 64 hexadecimal digits. */
  readonly archiveDigest: string;
  readonly evenYoung: boolean;
  readonly reason: string;
  /** Losses of history that the log told of so far. */
  readonly lostBranches: readonly LostBranch[];
  readonly requestIds: readonly string[];
}

/**
 * CutLog: records that the log begins after the checkpoint from now on. The identity of the database is said anew, and
 * with it every loss of history: what is decided by them is never cut.
 */
export function decideCutLog(decision: Decision, command: CutLogCommand): void {
  const { state, now } = decision;
  const { time, requestIds, ...cut } = command;
  const { revision } = cut.checkpoint;
  const age = now - time;
  if (age < MIN_AGE_OF_CUT && !cut.evenYoung)
    throw new Fault(
      'failed_precondition',
      'LOG_TOO_YOUNG',
      `Event ${revision} is less than ${MIN_AGE_HOURS} h old: who was away for a while may still need it. Cut at an earlier checkpoint, or insist (even_young).`,
    );
  const { identity } = state;
  if (identity === null) throw new Error('a log is cut in a database that is known');
  decision.emit({
    kind: 'database_identified',
    identity,
    lostHistory: false,
    why: `the log is cut after revision ${revision}`,
    continuesFrom: { revision: state.revision, hash: '' },
    localKindsFrom: state.localKindsFrom,
  });
  decision.emit({ kind: 'log_cut', firstRevision: revision + 1, ...cut }, { requestIds });
}
