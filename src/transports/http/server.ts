import type { Server } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { compress } from 'hono/compress';
import type { Authenticator } from '../../auth/authenticator.js';
import type { Principal } from '../../auth/principal.js';
import { authorizeRoute, ROUTES, rolesForRoute } from '../../auth/roles.js';
import { Fault, invalidArgument } from '../../domain/fault.js';
import type { Limits } from '../../platform/config.js';
import { cannotListen, endsWithin } from '../../platform/lifecycle.js';
import type { Logger } from '../../platform/log.js';
import type { Metrics } from '../../platform/metrics.js';
import type { ServerTls } from '../../platform/server-tls.js';
import type { CallContext, WritApi } from '../../services/api.js';
import type { RateLimiter } from '../rate-limit.js';
import { requestIdOf } from '../request-id.js';
import { mountApi } from './api/index.js';
import { Streams } from './api/streams.js';
import { evaluate, evaluateAll, metadata } from './authzen.js';
import { certificateOf } from './client-certificate.js';
import { mountConsole } from './console.js';
import { fenceCheck } from './fence-check.js';
import { demandType, FORM_TYPE } from './media-type.js';
import { faultProblem, NO_STORE, problem, toldFault } from './problem.js';
import { type Remarks, RequestLog } from './request-log.js';
import type { AddRoute, HttpEnv, RouteContext } from './route.js';
import type { SignIn } from './sign-in.js';

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
  readonly api: () => WritApi;
  readonly authenticator: Authenticator;
  /** Sessions of browsers; throws a Fault `unavailable` before the coordinator has started. */
  readonly signIn: () => SignIn;
  /** Names blocking leases to those who may not know them; the same on all replicas. Throws before the start, too. */
  readonly blockerKey: () => Uint8Array;
  readonly limits: Limits;
  readonly rateLimiter: RateLimiter;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Default: 45,000. */
  readonly stalledAfterMs?: number;
}

const MAX_BODY_BYTES = 64 << 10;
/** A credential of the longest kind, and the rest of a request. */
const MAX_HEADER_BYTES = 32 << 10;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_TIMEOUT_MS = 5_000;
/**
 * A connection on which nothing goes on for so long is closed, such as one whose caller does not read its answer and has
 * it kept for them. The slowest answer begins after 20 s; streams say something every 15 s.
 */
const STALLED_AFTER_MS = 45_000;

/**
 * The HTTP server: the API below /v1, the web console and the sign-in of browsers, /healthz (the process runs), /readyz
 * (it serves), /metrics, the public keys at /.well-known/jwks.json, /oauth2/introspect, and what gateways ask: the fence
 * check for proxies and the evaluations of AuthZEN. Health, keys, metadata and the console's files are open to everybody;
 * metrics name namespaces and tell how busy they are, so they need a token.
 */
export class HttpServer {
  readonly #options: HttpServerOptions;
  readonly #streams = new Streams();
  #server: Server | undefined;
  #stopping: Promise<void> | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
  }

  /** Takes the port, in TLS or else in plain text; returns `host:port`. */
  async listen(host: string, port: number, tls: ServerTls | null = null): Promise<string> {
    const server = createServer(createApp(this.#options, this.#streams), tls);
    server.timeout = this.#options.stalledAfterMs ?? STALLED_AFTER_MS;
    this.#server = server;
    const shown = host.includes(':') ? `[${host}]` : host;
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(cannotListen(shown, port, 'HTTP', error)));
      server.listen(port, host, resolve);
    });
    return `${shown}:${(server.address() as AddressInfo).port}`;
  }

  /** Ends what goes on for as long as somebody listens; they go on elsewhere. */
  endStreams(): void {
    this.#streams.endAll(
      new Fault('unavailable', 'SHUTTING_DOWN', 'this coordinator is shutting down; open another stream'),
    );
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
    this.endStreams();
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

/**
 * Of answers that are lists, and of those from 16 KiB on: a page of a thousand leases becomes a tenth. Not of what has an
 * ETag, which would become a weak one that no If-Match takes, nor of streams, which would be held back.
 */
const squeeze = compress({ encoding: 'gzip', threshold: 16 << 10, contentTypeFilter: /^application\/json/ });

/** Who calls a route that is open to everybody. */
const ANYBODY: Principal = { name: '', roles: new Set() };

type App = Hono<HttpEnv>;

/** The routes, without a socket; exported for tests. */
export function createApp(options: HttpServerOptions, streams = new Streams()): App {
  const app: App = new Hono();
  const requests = new RequestLog(options);
  const on: AddRoute = (route, answer, { told, isLong = false } = {}) => {
    const [method = '', path = ''] = route.split(' ');
    const at = path.replace(/\{(\w+)\}/g, ':$1');
    if (isLong) app.on(method, at, squeeze);
    app.on(method, at, (c) => {
      const remarks: Remarks = { requestId: c.get('requestId'), caller: null, request: {} };
      return requests.observe(c, route, remarks, async () => {
        try {
          const caller = rolesForRoute(route) === null ? ANYBODY : await callerOf(c, options);
          if (caller !== ANYBODY) {
            remarks.caller = caller;
            authorizeRoute(caller, route);
            options.rateLimiter.take(caller.name);
          }
          return await answer(c, caller, remarks);
        } catch (thrown) {
          const error = isBrokenOff(c) && toldFault(thrown) === null ? brokenOff() : thrown;
          remarks.error = error;
          const answered = told === undefined ? faultProblem(c, error) : told(c, error);
          return answered ?? internal(c, remarks.requestId);
        }
      });
    });
  };
  const small = bodyLimit({
    maxSize: MAX_BODY_BYTES,
    onError: (c) => problem(c, 413, 'BODY_TOO_LARGE', `a request body may have at most ${MAX_BODY_BYTES} bytes`),
  });
  // Every answer has it, also that there is no such route: it is what a caller has to name when they ask about one.
  app.use(async (c, next) => {
    const requestId = requestIdOf(c.req.header('x-request-id'));
    c.set('requestId', requestId);
    await next();
    if (!c.res.headers.has('x-request-id')) c.header('x-request-id', requestId);
  });
  app.use((c, next) => {
    demandPlainPath(c.env.incoming.url ?? '');
    return next();
  });
  // The API reads its bodies itself, each to its own limit, once it knows who sends them.
  app.use((c, next) => (c.req.path.startsWith('/v1/') ? next() : small(c, next)));
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
  on('POST /oauth2/introspect', async (c, caller) => c.json(await introspect(c, caller, options), 200, NO_STORE));
  on('GET /v1/fence/check', (c, caller) => fenceCheck(c, caller, options.api()));
  on('POST /access/v1/evaluation', (c, caller) => evaluate(c, caller, options.api()));
  on('POST /access/v1/evaluations', (c, caller) =>
    evaluateAll(c, caller, options.api(), {
      takeMore: (calls) => options.rateLimiter.takeMore(caller.name, calls),
      tell: (error) => requests.trouble('POST /access/v1/evaluations', error),
    }),
  );
  on('POST /auth/session', (c) => options.signIn().open(c));
  on('GET /auth/session', (c) => options.signIn().show(c));
  on('DELETE /auth/session', (c) => options.signIn().close(c));
  on('GET /auth/oidc/start', (c) => options.signIn().start(c));
  on('GET /auth/oidc/callback', (c) => options.signIn().callback(c));
  on('GET /.well-known/authzen-configuration', async (c) => metadata(c, (await options.api().getKeys()).issuer));
  options.metrics.httpStreams(() => streams.size);
  mountApi(on, {
    ...options,
    streams,
    identify: (c) => callerOf(c, options),
    trouble: (route, error) => requests.trouble(route, error),
  });
  mountConsole(app);
  for (const [path, allow] of allowedByPath()) {
    app.all(path, (c) => {
      c.header('allow', allow);
      return problem(c, 405, 'METHOD_NOT_ALLOWED', `${c.req.method} is not possible here`);
    });
  }
  app.notFound((c) => problem(c, 404, 'NOT_FOUND', `nothing is served at ${c.req.path}`));
  app.onError((error, c) => {
    const told = faultProblem(c, error);
    if (told !== null) return told;
    requests.trouble('', error);
    return internal(c, '');
  });
  return app;
}

/** The caller hung up amid its body, or its chunks are none: no trouble of the coordinator's, and nobody hears of it any more. */
const isBrokenOff = ({ env: { incoming } }: RouteContext): boolean => !incoming.complete && incoming.errored !== null;

const brokenOff = (): Fault =>
  invalidArgument([{ field: 'body', description: 'broke off: the connection was closed before its end' }]);

/** What reads URLs here would take `/v1/fence/../keys` for `/v1/keys`: a proxy that let it through has judged another path. */
function demandPlainPath(target: string): void {
  if (/^[^?#]*\/(?:\.|%2e){1,2}(?:[/?#]|$)/i.test(target))
    throw invalidArgument([{ field: 'path', description: 'has a segment that is "." or ".."' }]);
}

function internal(c: Context, requestId: string): Response {
  const where = requestId === '' ? '' : ` under request id ${requestId}`;
  return problem(c, 500, 'INTERNAL', `internal error; the coordinator has logged the cause${where}`);
}

/** What each path can be asked by, as an `allow` header has it. */
function allowedByPath(): ReadonlyMap<string, string> {
  const methods = new Map<string, string[]>();
  for (const route of ROUTES) {
    const [method = '', path = ''] = route.split(' ');
    const known = methods.get(path) ?? [];
    methods.set(path, [...known, ...(method === 'GET' ? ['GET', 'HEAD'] : [method])]);
  }
  return new Map([...methods].map(([path, all]) => [path.replace(/\{(\w+)\}/g, ':$1'), all.join(', ')]));
}

/** RFC 7662: a form with `token`, by an authenticated caller. */
async function introspect(c: RouteContext, principal: Principal, { api }: HttpServerOptions): Promise<object> {
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

/** Empty when the form has none, or several. */
async function tokenOf(c: RouteContext): Promise<string> {
  demandType(c, FORM_TYPE);
  const tokens = new URLSearchParams(await c.req.text()).getAll('token');
  return tokens.length === 1 ? (tokens[0] ?? '') : '';
}

/** Who calls, by token, by the session of a browser, or by client certificate; throws a Fault `unauthenticated`. */
async function callerOf(c: RouteContext, { authenticator, signIn }: HttpServerOptions): Promise<Principal> {
  const authorization = c.req.header('authorization') ?? (await signIn().authorizationOf(c));
  return authenticator.authenticate(authorization, certificateOf(c.env.incoming.socket));
}
