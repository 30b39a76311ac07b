import { GENESIS_HASH, hashEvent } from '../../../src/engine/hash-chain.js';
import { answered, type Call, type Checker, type Violation } from '../history.js';
import { auditOf } from './audit.js';
import { acknowledged } from './evidence.js';
import { knowledgeOf } from './knowledge.js';

/**
 * P7: each state change commits together with its event, revisions have no gaps, and each event carries the hash of the
 * one before. What was answered at a revision is in the log at it or before it; a checkpoint is of this log and no other.
 */
export const p7: Checker = (history) => [
  ...chain(history),
  ...together(history),
  ...checkpoints(history),
  ...auditOf('P7')(history),
];

const chain: Checker = ({ log }) => {
  let [revision, hash, time] = [0, GENESIS_HASH, 0];
  for (const record of log) {
    const problem =
      record.revision !== revision + 1
        ? `revision ${record.revision} follows ${revision}`
        : record.prevHash !== hash
          ? `revision ${record.revision} does not carry the hash of the one before`
          : hashEvent(record) !== record.hash
            ? `the hash of revision ${record.revision} is not its own`
            : record.time < time
              ? `revision ${record.revision} is from before the one before`
              : '';
    if (problem !== '') return [violation(problem, [], [record.revision])];
    ({ revision, hash, time } = record);
  }
  return [];
};

const together: Checker = (history) =>
  acknowledged(history).flatMap(({ call, what, revision, about }) => {
    const told = call.told !== null && 'revision' in call.told ? call.told.revision : null;
    if (revision === null || told === null || revision <= told) return [];
    return [
      violation(
        `${what} at revision ${told}, says the answer, and its event is ${revision}`,
        [call],
        [revision],
        about,
      ),
    ];
  });

const checkpoints: Checker = (history) => {
  const { mayBeLost } = knowledgeOf(history);
  if (history.log.length === 0) return [];
  return answered(history, 'checkpoint').flatMap((call) => {
    if (mayBeLost(call as Call) || call.told.revision === 0) return [];
    const at = history.log[call.told.revision - 1];
    if (at?.hash === call.told.hash) return [];
    return [
      violation(
        `a checkpoint is not of this log at revision ${call.told.revision}`,
        [call as Call],
        [call.told.revision],
      ),
    ];
  });
};

function violation(
  what: string,
  calls: readonly Call[],
  revisions: readonly number[],
  about: readonly string[] = [],
): Violation {
  return { promise: 'P7', what, calls: calls.map(({ id }) => id), revisions, about };
}
