import type { Server } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { Authenticator } from '../../auth/authenticator.js';
import type { Principal } from '../../auth/principal.js';
import { authorizeRoute, type Route, rolesForRoute } from '../../auth/roles.js';
import { Fault } from '../../domain/fault.js';
import { EXIT, endsWithin, StartError } from '../../platform/lifecycle.js';
import type { Logger } from '../../platform/log.js';
import type { Metrics } from '../../platform/metrics.js';
import type { ServerTls } from '../../platform/server-tls.js';
import type { CallContext, WritApi } from '../../services/api.js';
import { type RateLimiter, RETRY_AFTER_MS } from '../rate-limit.js';

/** Whether the coordinator serves, and if not why. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  /** What will be wrong soon, such as a certificate that ends; absent: nothing is known of. */
  readonly warnings?: readonly string[];
}

export interface HttpServerOptions {
  readonly ready: () => Readiness;
  /** Throws a Fault `unavailable` before the coordinator has started. */
  readonly api: () => Pick<WritApi, 'getKeys' | 'introspectCredential'>;
  readonly authenticator: Authenticator;
  readonly rateLimiter: RateLimiter;
  readonly metrics: Metrics;
  readonly log: Logger;
}

const MAX_BODY_BYTES = 64 << 10;
const MAX_HEADER_BYTES = 16 << 10;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 5_000;

/**
 * The HTTP server: /healthz (the process runs), /readyz (it serves), /metrics, the public keys at
 * /.well-known/jwks.json and /oauth2/introspect. Health and keys are open to everybody; metrics name
 * namespaces and tell how busy they are, so they need a token.
 */
export class HttpServer {
  readonly #options: HttpServerOptions;
  #server: Server | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
  }

  /** Takes the port, in TLS or else in plain text; returns `host:port`. */
  async listen(host: string, port: number, tls: ServerTls | null = null): Promise<string> {
    const server = createServer(createApp(this.#options), tls);
    this.#server = server;
    const shown = host.includes(':') ? `[${host}]` : host;
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => reject(cannotListen(shown, port, error)));
      server.listen(port, host, resolve);
    });
    return `${shown}:${(server.address() as AddressInfo).port}`;
  }

  /** Lets requests end, then closes what is left; idempotent. */
  stop(withinMs: number): Promise<void> {
    this.#stopping ??= this.#stop(withinMs);
    return this.#stopping;
  }

  async #stop(withinMs: number): Promise<void> {
    const server = this.#server;
    if (server === undefined || !server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeIdleConnections();
    if (await endsWithin(closed, withinMs)) return;
    server.closeAllConnections();
    await closed;
  }
}

function createServer({ fetch }: App, tls: ServerTls | null): Server {
  const limits = {
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
  };
  if (tls === null) return createAdaptorServer({ fetch, serverOptions: limits }) as Server;
  const demands = { requestCert: tls.clientCerts !== 'none', rejectUnauthorized: tls.clientCerts === 'required' };
  const server = createAdaptorServer({
    fetch,
    createServer: createHttpsServer,
    serverOptions: { ...limits, ...tls.current, ...demands, handshakeTimeout: HEADERS_TIMEOUT_MS },
  }) as HttpsServer;
  tls.onChange((options) => server.setSecureContext(options));
  return server;
}

type App = Hono<{ Bindings: HttpBindings }>;
type RouteContext = Context<{ Bindings: HttpBindings }>;

/** The routes, without a socket; exported for tests. */
export function createApp(options: HttpServerOptions): App {
  const app: App = new Hono();
  const on = (route: Route, answer: (c: RouteContext) => Response | Promise<Response>): void => {
    const [method = '', path = ''] = route.split(' ');
    app.on(method, path, async (c) => {
      if (rolesForRoute(route) !== null) authorizeRoute(await callerOf(c, options), route);
      return answer(c);
    });
  };
  app.use(
    bodyLimit({
      maxSize: MAX_BODY_BYTES,
      onError: (c) => problem(c, 413, 'BODY_TOO_LARGE', `a request body may have at most ${MAX_BODY_BYTES} bytes`),
    }),
  );
  on('GET /healthz', (c) => c.json({ alive: true }, 200, NO_STORE));
  on('GET /readyz', (c) => {
    const { ready, reasons, warnings = [] } = options.ready();
    const more = warnings.length === 0 ? {} : { warnings };
    if (ready) return c.json({ ready: true, ...more }, 200, NO_STORE);
    return problem(c, 503, 'NOT_READY', reasons.join('; ') || 'not ready', { reasons, ...more });
  });
  on('GET /metrics', async (c) => {
    const { contentType, text } = await options.metrics.render();
    return c.body(text, 200, { ...NO_STORE, 'content-type': contentType });
  });
  on('GET /.well-known/jwks.json', async (c) => {
    const { jwks, maxAge } = await options.api().getKeys();
    const headers = { 'cache-control': `public, max-age=${maxAge / 1e6}`, 'content-type': 'application/jwk-set+json' };
    return c.body(jwks, 200, headers);
  });
  on('POST /oauth2/introspect', async (c) => c.json(await introspect(c, options), 200, NO_STORE));
  for (const [path, allow] of METHODS_BY_PATH) {
    app.all(path, (c) => {
      c.header('allow', allow);
      return problem(c, 405, 'METHOD_NOT_ALLOWED', `${c.req.method} is not possible here`);
    });
  }
  app.notFound((c) => problem(c, 404, 'NOT_FOUND', `nothing is served at ${c.req.path}`));
  app.onError((error, c) => {
    if (error instanceof Fault && error.faultClass === 'unauthenticated') {
      c.header('www-authenticate', 'Bearer realm="writ"');
      return problem(c, 401, error.reason, error.message);
    }
    if (error instanceof Fault && error.faultClass === 'permission_denied')
      return problem(c, 403, error.reason, error.message);
    if (error instanceof Fault && error.faultClass === 'resource_exhausted') {
      c.header('retry-after', String(Math.ceil(Number(error.details.metadata?.[RETRY_AFTER_MS] ?? 1_000) / 1_000)));
      return problem(c, 429, error.reason, error.message);
    }
    if (error instanceof Fault && error.faultClass === 'invalid_argument')
      return problem(c, 400, error.reason, error.message);
    if (error instanceof Fault && error.faultClass === 'unavailable')
      return problem(c, 503, error.reason, error.message);
    options.log.error({ err: error, path: c.req.path }, 'http request failed');
    return problem(c, 500, 'INTERNAL', 'internal error; the coordinator has logged the cause');
  });
  return app;
}

const METHODS_BY_PATH = [
  ['/:known{healthz|readyz|metrics}', 'GET, HEAD'],
  ['/.well-known/jwks.json', 'GET, HEAD'],
  ['/oauth2/introspect', 'POST'],
] as const;

/** RFC 7662: a form with `token`, by an authenticated caller. */
async function introspect(c: RouteContext, options: HttpServerOptions): Promise<object> {
  const { api, rateLimiter } = options;
  const principal = await callerOf(c, options);
  rateLimiter.take(principal.name);
  const context: CallContext = {
    principal,
    namespace: '',
    requestId: '',
    deadlineMs: null,
    signal: c.req.raw.signal,
  };
  const { value } = await api().introspectCredential(context, { token: await tokenOf(c) });
  return value.active ? { active: true, ...value.claims } : { active: false };
}

/** Empty when the body is no such form, or has several. */
async function tokenOf(c: RouteContext): Promise<string> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(c.req.header('content-type') ?? '')) return '';
  const tokens = new URLSearchParams(await c.req.text()).getAll('token');
  return tokens.length === 1 ? (tokens[0] ?? '') : '';
}

/** Who calls, by token or client certificate; throws a Fault `unauthenticated`. */
async function callerOf(c: RouteContext, { authenticator }: HttpServerOptions): Promise<Principal> {
  return authenticator.authenticate(c.req.header('authorization'), certificateOf(c.env.incoming.socket));
}

/** The client certificate of a session, if it has one that an authority of ours vouches for (DER). */
function certificateOf(socket: unknown): Uint8Array | undefined {
  return socket instanceof TLSSocket && socket.authorized ? socket.getPeerCertificate().raw : undefined;
}

const NO_STORE = { 'cache-control': 'no-store' };

const TITLES = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
} as const;

/** An error as RFC 9457 has it; `reason` is the stable code. */
function problem(
  c: Context,
  status: keyof typeof TITLES,
  reason: string,
  detail: string,
  more: Readonly<Record<string, unknown>> = {},
): Response {
  const body = { type: 'about:blank', title: TITLES[status], status, detail, reason, ...more };
  return c.body(JSON.stringify(body), status, { ...NO_STORE, 'content-type': 'application/problem+json' });
}

function cannotListen(host: string, port: number, error: NodeJS.ErrnoException): StartError {
  const why = error.code === 'EADDRINUSE' ? 'the port is taken' : error.message;
  return new StartError(
    EXIT.port,
    `cannot listen on ${host}:${port} for HTTP: ${why}. WRIT_HTTP_PORT chooses the port; 0 picks a free one.`,
    error,
  );
}
