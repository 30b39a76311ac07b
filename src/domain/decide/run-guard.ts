import { Fault } from '../fault.js';
import { type Refusal, refuse } from '../refusal.js';
import { isOver, type Run } from '../run.js';
import { sentence } from '../sentence.js';
import type { Micros } from '../time.js';
import type { Decision } from './decision.js';

/** The run, if it is the caller's own; an unknown and a foreign one look the same (P4). */
export function ownRun(decision: Decision, runId: string, principal: string): Run {
  const run = decision.run(runId);
  if (run === undefined || run.principal !== principal) throw runNotFound(runId);
  return run;
}

export function runNotFound(runId: string): Fault {
  return new Fault('not_found', 'RUN_NOT_FOUND', `There is no run ${JSON.stringify(runId)} that you may use.`, {
    metadata: { run_id: runId },
  });
}

export function leaseNotFound(leaseId: string): Fault {
  return new Fault(
    'not_found',
    'LEASE_NOT_FOUND',
    'No lease that you may use has this id. Ids are compared letter by letter, lower case.',
    { metadata: { lease_id_prefix: leaseId.slice(0, 8) } },
  );
}

/** What to do when a run has ended. */
export const NEW_RUN = { action: 'Create a new run with its own contract.', who: 'runner', retryable: false };

/** Somebody stopped it on purpose: a new run of the same work at once would be the restart that a stop rules out (R4). */
const ASK_WHO_STOPPED_IT = {
  action: 'Ask an operator before this work goes on in a new run: this one was stopped on purpose.',
  who: 'operator',
  retryable: false,
};

export function runGone(): Refusal {
  return refuse('run_ended', 'The run is gone.', NEW_RUN);
}

/**
 * Why a run may not get or extend authority now; null when it may. The log keeps these messages in plain, so they have
 * nothing of what people and agents wrote about the run (A3); `withReason` adds it for the caller.
 */
export function runRefusal(run: Run, now: Micros, purpose: 'acquire' | 'renew'): Refusal | null {
  if (isOver(run)) {
    const wasStopped = (run.endsAs ?? run.state) === 'stopped';
    return refuse('run_ended', stateOf(run), wasStopped ? ASK_WHO_STOPPED_IT : NEW_RUN);
  }
  if (run.authorityEndsAt <= now) {
    return refuse('run_ended', "The end of the run's authority has passed.", {
      action: 'Create a new run with its own contract; nothing moves the end of this one.',
      who: 'runner',
      retryable: false,
    });
  }
  if (run.state === 'blocked' && purpose === 'acquire') {
    const lost = run.blockCause === 'database_changed';
    return refuse('run_blocked', stateOf(run), {
      action: lost
        ? 'Ask an operator to check what the run did and to resume it (UpdateRunState to ACTIVE).'
        : 'Resume the run (UpdateRunState to ACTIVE) when it can go on.',
      who: lost ? 'operator' : 'runner',
      retryable: false,
    });
  }
  return null;
}

function stateOf({ runId, state, stateReason }: Run): string {
  return stateReason === '' ? `The run is ${state}.` : `The run is ${state}; \`writ run get ${runId}\` tells why.`;
}

/** The refusal as its run is told it and nobody records it: with the reason of the run's state, if that is why. */
export function withReason(refusal: Refusal, run: Run): Refusal {
  const isWhy = refusal.kind === 'run_blocked' || (refusal.kind === 'run_ended' && isOver(run));
  return isWhy ? { ...refusal, message: sentence(`The run is ${run.state}`, run.stateReason) } : refusal;
}
