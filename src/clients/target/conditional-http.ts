import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context, Env } from 'hono';
import {
  type ConditionalTarget,
  type ConditionOptions,
  conditionOf,
  type WriteCondition,
} from './conditional-writes.js';
import { type Answer, ProblemError, problemAnswer, responseOf } from './problem-error.js';

/**
 * A hono handler of a conditional write (W1): 428 without a condition, 412 on a conflict, else what the handler answers.
 * The handler gets the condition, and spends it in the statement that changes.
 *
 * @example
 * app.put(
 *   '/policies/:id',
 *   honoConditional(
 *     (c) => ({ resource: `policy/${c.req.param('id')}`, changeClass: 'shared_document' }),
 *     async (c, condition) => {
 *       const { version, etag } = await inTransaction(pool, (client) => condition.change(client, { update, current }));
 *       return c.json({ version }, 200, { etag });
 *     },
 *   ),
 * );
 */
export function honoConditional<E extends Env = Env>(
  target: (c: Context<E>) => ConditionalTarget,
  handler: (c: Context<E>, condition: WriteCondition) => Response | Promise<Response>,
  options?: ConditionOptions,
): (c: Context<E>) => Promise<Response> {
  return async (c) => {
    try {
      return await handler(c, conditionOf(c.req.raw.headers, target(c), options));
    } catch (error) {
      if (error instanceof ProblemError) return responseOf(problemAnswer(error.problem));
      throw error;
    }
  };
}

/** A request of Express, or of anything else on Node's own. */
export type NodeRequest = IncomingMessage & {
  /** As a body parser left it. */
  readonly body?: unknown;
  readonly params?: unknown;
};

/**
 * The same for Express and its kind. The handler sends its answer after its transaction has committed, not inside.
 *
 * @example
 * app.put(
 *   '/policies/:id',
 *   expressConditional(
 *     (req) => ({ resource: `policy/${req.params.id}`, changeClass: 'shared_document' }),
 *     async (req, res, condition) => {
 *       const { version, etag } = await inTransaction(pool, (client) => condition.change(client, { update, current }));
 *       res.set('etag', etag).json({ version });
 *     },
 *   ),
 * );
 */
export function expressConditional<Req extends NodeRequest, Res extends ServerResponse>(
  target: (req: Req) => ConditionalTarget,
  handler: (req: Req, res: Res, condition: WriteCondition) => void | Promise<void>,
  options?: ConditionOptions,
): (req: Req, res: Res, next: (error: unknown) => void) => Promise<void> {
  return async (req, res, next) => {
    try {
      await handler(req, res, conditionOf(req.headers, target(req), options));
    } catch (error) {
      if (error instanceof ProblemError && !res.headersSent) sendAnswer(res, problemAnswer(error.problem));
      else next(error);
    }
  };
}

/** Sends an answer by Node's own means. */
export function sendAnswer(res: ServerResponse, { status, headers, body }: Answer): void {
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.end(body);
}
