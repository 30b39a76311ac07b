import { GuardRefusedError } from './guard.js';
import { type Problem, problem } from './problem.js';
import { ProblemError } from './problem-error.js';

/**
 * What an error of a handler says to the caller: a ProblemError's problem, a guard's refusal as 409, the status that its
 * code has everywhere; undefined: it is no refusal, but an error of the service. In both cases nothing was changed.
 *
 * @example
 * app.onError((error, c) => {
 *   const refusal = problemOf(error, c.req.header('x-request-id'));
 *   return refusal === undefined ? c.text('internal error', 500) : responseOf(problemAnswer(refusal));
 * });
 */
export function problemOf(error: unknown, requestId?: string): Problem | undefined {
  if (error instanceof ProblemError) return error.problem;
  if (!(error instanceof GuardRefusedError)) return undefined;
  const { reason, resource, action, changeClass, resolver } = error;
  return problem({
    status: 409,
    code: reason,
    detail: `The guard refuses the fencing token for ${resource} (${reason}). Nothing was changed.`,
    resource,
    action: action === '' ? undefined : action,
    conflict_category: changeClass,
    resolver,
    next: 'Stop, and do not send this body again. Ask for a new lease, read, and decide anew.',
    request_id: requestId,
  });
}
