import type { Server } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { TLSSocket } from 'node:tls';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { Authenticator } from '../../auth/authenticator.js';
import { type Route, requireRole, rolesForRoute } from '../../auth/roles.js';
import { Fault } from '../../domain/fault.js';
import { EXIT, endsWithin, StartError } from '../../platform/lifecycle.js';
import type { Logger } from '../../platform/log.js';
import type { Metrics } from '../../platform/metrics.js';
import type { ServerTls } from '../../platform/server-tls.js';

/** Whether the coordinator serves, and if not why. */
export interface Readiness {
  readonly ready: boolean;
  readonly reasons: readonly string[];
  /** What will be wrong soon, such as a certificate that ends; absent: nothing is known of. */
  readonly warnings?: readonly string[];
}

export interface HttpServerOptions {
  readonly ready: () => Readiness;
  readonly authenticator: Authenticator;
  readonly metrics: Metrics;
  readonly log: Logger;
}

const MAX_BODY_BYTES = 64 << 10;
const MAX_HEADER_BYTES = 16 << 10;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 5_000;

/**
 * The HTTP server: /healthz (the process runs), /readyz (it serves) and /metrics. Health is open to
 * everybody; metrics name namespaces and tell how busy they are, so they need a token.
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

/** The routes, without a socket; exported for tests. */
export function createApp(options: HttpServerOptions): App {
  const app: App = new Hono();
  const on = (route: Route, answer: (c: Context<{ Bindings: HttpBindings }>) => Response | Promise<Response>): void => {
    const [method = '', path = ''] = route.split(' ');
    app.on(method, path, async (c) => {
      const roles = rolesForRoute(route);
      if (roles !== null) {
        const certificate = certificateOf(c.env.incoming.socket);
        const caller = await options.authenticator.authenticate(c.req.header('authorization'), certificate);
        requireRole(caller, roles, route);
      }
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
  app.all('/:known{healthz|readyz|metrics}', (c) => {
    c.header('allow', 'GET, HEAD');
    return problem(c, 405, 'METHOD_NOT_ALLOWED', `${c.req.method} is not possible here`);
  });
  app.notFound((c) => problem(c, 404, 'NOT_FOUND', `nothing is served at ${c.req.path}`));
  app.onError((error, c) => {
    if (error instanceof Fault && error.faultClass === 'unauthenticated') {
      c.header('www-authenticate', 'Bearer realm="writ"');
      return problem(c, 401, error.reason, error.message);
    }
    if (error instanceof Fault && error.faultClass === 'permission_denied')
      return problem(c, 403, error.reason, error.message);
    if (error instanceof Fault && error.faultClass === 'unavailable')
      return problem(c, 503, error.reason, error.message);
    options.log.error({ err: error, path: c.req.path }, 'http request failed');
    return problem(c, 500, 'INTERNAL', 'internal error; the coordinator has logged the cause');
  });
  return app;
}

/** The client certificate of a session, if it has one that an authority of ours vouches for (DER). */
function certificateOf(socket: unknown): Uint8Array | undefined {
  return socket instanceof TLSSocket && socket.authorized ? socket.getPeerCertificate().raw : undefined;
}

const NO_STORE = { 'cache-control': 'no-store' };

const TITLES = {
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
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
