import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Gate } from './gate.js';
import type { GateCaller } from './gate-decision.js';
import { remember } from './gate-let-in.js';
import { withPlainOrigin } from './gate-origin.js';
import type { HeaderSource } from './gate-presented.js';
import { peerThumbprint } from './gate-tls.js';
import { PROBLEM_CONTENT_TYPE } from './problem.js';

/** A request of Express, Connect or Node itself. */
export type ExpressRequest = IncomingMessage & { readonly originalUrl?: string };

/** What of a request an Express gate cannot know by itself. */
export interface ExpressGateOptions<Q extends ExpressRequest = ExpressRequest> {
  /** Who calls, as the service found out before. */
  readonly caller?: (request: Q) => GateCaller | Promise<GateCaller>;
  /**
   * `https://releases.example.com`: how callers address the service. DPoP proofs are for that, and without it none is taken:
   * what the Host header says is the caller's own word, and so would be whom the proof was made for.
   */
  readonly origin?: string;
}

/**
 * The gate as middleware for Express and what has its form. Put it before every route, and after what finds out who
 * calls; the handler finds what was let in by `writesOf(req)`.
 *
 * @example
 * const app = express();
 * app.use(expressGate(gate));
 * app.post('/releases/:env/promote', (req, res) => res.json({ run: writesOf(req).runId }));
 */
export function expressGate<Q extends ExpressRequest = ExpressRequest>(
  gate: Gate,
  options: ExpressGateOptions<Q> = {},
) {
  const known = withPlainOrigin(options);
  return (request: Q, response: ServerResponse, next: (error?: unknown) => void): void => {
    decide(gate, known, request, response).then((letIn) => letIn && next(), next);
  };
}

async function decide<Q extends ExpressRequest>(
  gate: Gate,
  options: ExpressGateOptions<Q>,
  request: Q,
  response: ServerResponse,
): Promise<boolean> {
  const caller = await options.caller?.(request);
  // Where the middleware is mounted under a path, `url` is what is left below it.
  const path = request.originalUrl ?? request.url ?? '';
  const gone = new AbortController();
  response.once('close', () => gone.abort(new Error('the caller has gone')));
  const decision = await gate.decide({
    method: request.method ?? '',
    path,
    host: request.headers.host,
    headers: headersOf(request),
    url: options.origin === undefined ? undefined : `${options.origin}${path}`,
    caller: { certificateThumbprint: peerThumbprint(request.socket), ...caller },
    signal: gone.signal,
  });
  if (decision.allowed) {
    remember(request, decision);
    return true;
  }
  const { problem, headers, requestId } = decision;
  const named = { 'content-type': PROBLEM_CONTENT_TYPE, 'x-request-id': requestId, ...headers };
  response.writeHead(problem.status, named).end(JSON.stringify(problem));
  return false;
}

/** Of several authorizations Node's `headers` have the first, as if it were the only one. */
function headersOf({ headers, rawHeaders }: IncomingMessage): HeaderSource {
  const authorization = rawHeaders.filter((_, at) => at % 2 === 1 && /^authorization$/i.test(rawHeaders[at - 1] ?? ''));
  return authorization.length > 1 ? { ...headers, authorization } : headers;
}
