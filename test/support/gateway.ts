import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import type { PrincipalEntry } from '../../src/auth/principal-entry.js';
import { hashToken } from '../../src/auth/tokens.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import type { TargetRoutes } from '../../src/services/route-tables.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';
import { HttpServer } from '../../src/transports/http/server.js';
import { createRateLimiter } from '../../src/transports/rate-limit.js';
import { startReplica, type TestReplica } from './coordinator.js';
import { testSignIn } from './sign-in.js';

/** Both ports of a coordinator over a real database, as gateways call them. */
export interface TestGateway {
  readonly replica: TestReplica;
  /** `http://host:port` */
  readonly http: string;
  /** `host:port` */
  readonly grpc: string;
  stop(): Promise<void>;
}

/** Principals by name, with the roles that hold everywhere; the token of each is `token-NAME`. */
const PRINCIPALS: PrincipalEntry[] = [
  { name: 'svc:pages', roles: ['target'] },
  { name: 'svc:other', roles: ['target'] },
  { name: 'svc:team', roles: [], namespaceRoles: { 'team-a': ['target'] } },
  { name: 'svc:stray', roles: [], namespaceRoles: { 'team-b': ['target'] } },
  { name: 'runner', roles: ['runner'] },
];

export async function startGateway(url: string, routes: ReadonlyMap<string, TargetRoutes>): Promise<TestGateway> {
  const replica = await startReplica({ url, routes: { of: (name) => routes.get(name) ?? null } });
  const log = createLogger('silent');
  const metrics = createMetrics();
  const authenticator = createCallerAuthenticator({
    principals: PRINCIPALS.map((principal) => ({ ...principal, tokenSha256: hashToken(`token-${principal.name}`) })),
  });
  const http = new HttpServer({
    ready: () => ({ ready: true, reasons: [] }),
    api: () => replica.api,
    authenticator,
    signIn: () => testSignIn(authenticator),
    blockerKey: () => Buffer.from('key'),
    limits: readConfig({}).limits,
    rateLimiter: createRateLimiter(0),
    metrics,
    log,
  });
  const grpc = new GrpcServer({ limits: readConfig({}).limits, metrics, log });
  const address = await grpc.listen('127.0.0.1', 0);
  grpc.serve({ api: replica.api, authenticator, blockerKey: Buffer.from('key') });
  return {
    replica,
    http: `http://${await http.listen('127.0.0.1', 0)}`,
    grpc: address,
    async stop() {
      await Promise.all([http.stop(0), grpc.drain(0)]);
      await replica.stop();
    },
  };
}

/** An answer with all that it says. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as JSON. */
  readonly body: Record<string, unknown>;
}

/** Sends a request with exactly these headers, also several of one name, and its path as it stands here. */
export async function send(
  url: string,
  path: string,
  headers: readonly (readonly [string, string])[],
  more: { method?: string; body?: string } = {},
): Promise<HttpAnswer> {
  const { method = 'GET', body } = more;
  const { hostname, port } = new URL(url);
  const length: [string, string][] = body === undefined ? [] : [['content-length', String(Buffer.byteLength(body))]];
  const host: [string, string][] = headers.some(([name]) => name.toLowerCase() === 'host') ? [] : [['host', hostname]];
  const all = [...host, ...headers, ...length].map(([name, value]) => [name, value]);
  const sent = request({ hostname, port, method, path, headers: all as never, agent: false });
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  sent.end(body);
  const [answer] = await answered;
  const text = Buffer.concat(await answer.toArray()).toString();
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    text,
    get body() {
      return JSON.parse(text) as Record<string, unknown>;
    },
  };
}
