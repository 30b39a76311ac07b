import type { ServerResponse } from 'node:http';
import type { Context, Env } from 'hono';
import { type NodeRequest, sendAnswer } from './conditional-http.js';
import { preconditionHeaders } from './conditional-writes.js';
import { headerOf } from './gate-presented.js';
import { answerOnce, type IdempotencyStore, type IdempotentRequest } from './idempotency.js';
import { type Answer, ProblemError, problemAnswer, responseOf } from './problem-error.js';

/** What of a request the middleware cannot know by itself. */
export interface IdempotentRoute<Request> {
  /** The route as it is declared, such as `PUT /policies/{id}`; keys of different routes are different keys. */
  readonly route: string;
  /**
   * The caller as the target has authenticated it; never from a header that anybody can set. Empty: nobody, 401. The run of
   * a gate (`writesOf(c).runId`) is empty with an override, and may be where a kind is only observed.
   */
  readonly principal: (request: Request) => string;
  /** Largest body that is read, in bytes; default 1,048,576. */
  readonly maxBodyBytes?: number;
}

const MAX_BODY_BYTES = 1_048_576;

/**
 * A hono handler that is done once per Idempotency-Key (W2). In Postgres the handler gets the connection of the
 * transaction in which its answer is kept: what it changes through it commits together with the answer, or not at all.
 *
 * @example
 * app.post(
 *   '/orders',
 *   honoIdempotent(keys, { route: 'POST /orders', principal: (c) => c.get('runId') }, async (c, client) => {
 *     const { rows } = await client.query('INSERT INTO orders (item) VALUES ($1) RETURNING id', [(await c.req.json()).item]);
 *     return c.json({ id: rows[0].id }, 201);
 *   }),
 * );
 */
export function honoIdempotent<E extends Env, Given>(
  store: IdempotencyStore<Given>,
  { route, principal, maxBodyBytes = MAX_BODY_BYTES }: IdempotentRoute<Context<E>>,
  handler: (c: Context<E>, given: Given) => Response | Promise<Response>,
): (c: Context<E>) => Promise<Response> {
  return async (c) => {
    const body = await readBody(c, maxBodyBytes);
    if (body === null) return responseOf(problemAnswer(tooLarge(maxBodyBytes).problem));
    const { headers, method } = c.req.raw;
    const url = new URL(c.req.url);
    const request: IdempotentRequest = {
      principal: principal(c),
      route,
      method,
      path: url.pathname + url.search,
      ...preconditionHeaders(headers),
      contentType: headers.get('content-type') ?? undefined,
      body,
      idempotencyKey: headers.get('idempotency-key') ?? undefined,
    };
    const made = new Map<Answer, Headers>();
    const answer = await answerOnce(store, request, async (given) => {
      const response = await handler(c, given);
      const own = await answerOf(response);
      made.set(own, response.headers);
      return own;
    });
    // The first answer as the handler made it: in a plain object several cookies would be one.
    return responseOf(answer, made.get(answer));
  };
}

/** Reads the body, bounded, and leaves it to be read again; null: too large. */
async function readBody<E extends Env>(c: Context<E>, maxBytes: number): Promise<Uint8Array | null> {
  if (Number(c.req.raw.headers.get('content-length') ?? 0) > maxBytes) return null;
  // Somebody has read it before, under a bound of their own; hono keeps it.
  if (c.req.raw.bodyUsed) return new Uint8Array(await c.req.arrayBuffer());
  if (c.req.raw.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of c.req.raw.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > maxBytes) return null;
    chunks.push(chunk);
  }
  const body = new Uint8Array(Buffer.concat(chunks));
  c.req.raw = new Request(c.req.raw, { body });
  return body;
}

function tooLarge(maxBytes: number): ProblemError {
  return new ProblemError({
    status: 413,
    code: 'body_too_large',
    detail: `The body is larger than ${maxBytes} bytes.`,
  });
}

async function answerOf(response: Response): Promise<Answer> {
  const headers = Object.fromEntries(response.headers);
  return { status: response.status, headers, body: new Uint8Array(await response.arrayBuffer()) };
}

/**
 * The same for Express and its kind. A body parser comes before it. The handler returns its answer and does not send it:
 * it is sent when it has been kept.
 *
 * @example
 * app.post(
 *   '/orders',
 *   express.json(),
 *   expressIdempotent(keys, { route: 'POST /orders', principal: (req: express.Request) => callerOf(req) }, async (req, client) => {
 *     const { rows } = await client.query('INSERT INTO orders (item) VALUES ($1) RETURNING id', [req.body.item]);
 *     return jsonAnswer(201, { id: rows[0].id });
 *   }),
 * );
 */
export function expressIdempotent<Req extends NodeRequest & { readonly originalUrl?: string }, Given>(
  store: IdempotencyStore<Given>,
  { route, principal }: Omit<IdempotentRoute<Req>, 'maxBodyBytes'>,
  handler: (req: Req, given: Given) => Answer | Promise<Answer>,
): (req: Req, res: ServerResponse, next: (error: unknown) => void) => Promise<void> {
  return async (req, res, next) => {
    try {
      const request: IdempotentRequest = {
        principal: principal(req),
        route,
        method: req.method ?? '',
        path: req.originalUrl ?? req.url ?? '',
        ...preconditionHeaders(req.headers),
        contentType: req.headers['content-type'],
        body: parsedBody(req),
        idempotencyKey: headerOf(req.headers, 'idempotency-key'),
      };
      sendAnswer(res, await answerOnce(store, request, async (given) => handler(req, given)));
    } catch (error) {
      next(error);
    }
  };
}

/** A body that nobody has parsed would leave the fingerprint without it, and two different requests would be one. */
function parsedBody(req: NodeRequest): unknown {
  // HTTP/2 needs neither header: there only the parser knows of a body.
  const sent = req.headers['transfer-encoding'] !== undefined || Number(req.headers['content-length'] ?? 0) > 0;
  if (sent && req.body === undefined)
    throw new TypeError('put a body parser before idempotency keys: the body is unread');
  // What parses forms keeps files elsewhere.
  if (/^multipart\//i.test(req.headers['content-type'] ?? ''))
    throw new TypeError('idempotency keys take no multipart bodies here: the files in it would be in no fingerprint');
  return req.body;
}
