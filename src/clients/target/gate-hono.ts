import type { IncomingMessage } from 'node:http';
import type { Context, Env, MiddlewareHandler } from 'hono';
import type { Gate } from './gate.js';
import type { GateCaller } from './gate-decision.js';
import { remember } from './gate-let-in.js';
import { withPlainOrigin } from './gate-origin.js';
import { peerThumbprint } from './gate-tls.js';
import { PROBLEM_CONTENT_TYPE } from './problem.js';

/** What of a request a hono gate cannot know by itself. */
export interface HonoGateOptions<E extends Env = Env> {
  /** Who calls, as the service found out before. */
  readonly caller?: (c: Context<E>) => GateCaller | Promise<GateCaller>;
  /**
   * `https://releases.example.com`: how callers address the service. DPoP proofs are for that, and without it none is taken:
   * what the Host header says is the caller's own word, and so would be whom the proof was made for.
   */
  readonly origin?: string;
}

/**
 * The gate as hono's middleware. Put it before every route, and after what finds out who calls; the handler finds what
 * was let in by `writesOf(c)`.
 *
 * @example
 * const app = new Hono();
 * app.use(honoGate(gate));
 * app.post('/releases/:env/promote', (c) => c.json({ run: writesOf(c).runId }));
 */
export function honoGate<E extends Env = Env>(gate: Gate, options: HonoGateOptions<E> = {}): MiddlewareHandler<E> {
  const { caller: callerOf, origin } = withPlainOrigin(options);
  return async (c, next) => {
    const caller = await callerOf?.(c);
    const incoming = incomingOf(c);
    const url = new URL(c.req.url);
    const decision = await gate.decide({
      method: c.req.method,
      // As it came: on the way into a Request dot segments are resolved, and then there is nothing to refuse.
      path: incoming?.url ?? url.pathname,
      host: c.req.header('host') ?? url.host,
      headers: c.req.raw.headers,
      url: origin === undefined ? undefined : `${origin}${url.pathname}${url.search}`,
      caller: { certificateThumbprint: peerThumbprint(incoming?.socket), ...caller },
      signal: c.req.raw.signal,
    });
    if (decision.allowed) {
      remember(c, decision);
      return next();
    }
    const { problem, headers, requestId } = decision;
    return new Response(JSON.stringify(problem), {
      status: problem.status,
      headers: { 'content-type': PROBLEM_CONTENT_TYPE, 'x-request-id': requestId, ...headers },
    });
  };
}

/** The request of Node, where hono runs on it. */
function incomingOf(c: Context): IncomingMessage | undefined {
  return (c.env as { incoming?: IncomingMessage } | undefined)?.incoming;
}
