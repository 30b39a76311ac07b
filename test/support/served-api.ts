import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import type { Principal } from '../../src/auth/principal.js';
import { ROLES, type Role } from '../../src/auth/principal.js';
import type { PrincipalEntry } from '../../src/auth/principal-entry.js';
import { hashToken } from '../../src/auth/tokens.js';
import { connectWrit, type WritClient } from '../../src/clients/common/connect.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics, type Metrics } from '../../src/platform/metrics.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';
import { HttpServer } from '../../src/transports/http/server.js';
import { createRateLimiter } from '../../src/transports/rate-limit.js';
import { startReplica, type TestReplica } from './coordinator.js';
import { createTestDatabase } from './postgres.js';
import { testSignIn } from './sign-in.js';

/** Both ports of a coordinator over a real database; the name of each principal is its role, its token `token-ROLE`. */
export interface ServedApi {
  readonly replica: TestReplica;
  /** `http://host:port` */
  readonly url: string;
  readonly metrics: Metrics;
  /** Asks over HTTP; `path` begins after `/v1`. */
  ask(role: Role, request: string, options?: AskOptions): Promise<ApiAnswer>;
  client(role: Role): WritClient;
  /** Until it is given back nobody knows the principal's token. */
  revoke(role: Role): { giveBack(): void };
  /** Ends the HTTP server alone. */
  stopHttp(withinMs: number): Promise<void>;
  stop(): Promise<void>;
}

export interface AskOptions {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: whatever is answered; tests say what they expect.
  readonly json: any;
}

export async function startServedApi(env: Readonly<Record<string, string>> = {}): Promise<ServedApi> {
  const database = await createTestDatabase();
  const replica = await startReplica({ url: database.url, env });
  const entries: PrincipalEntry[] = ROLES.map((role) => ({
    name: role,
    roles: [role],
    tokenSha256: hashToken(`token-${role}`),
  }));
  const revoked = new Set<string>();
  const known = createCallerAuthenticator({ principals: entries });
  const nobody = createCallerAuthenticator({ principals: [] });
  const authenticator = {
    authenticate(authorization: string | undefined): Principal | Promise<Principal> {
      const isKnown = !revoked.has(authorization ?? '');
      return (isKnown ? known : nobody).authenticate(authorization);
    },
  };
  const { limits } = readConfig(env);
  const metrics = createMetrics();
  const log = createLogger('silent');
  const http = new HttpServer({
    ready: () => ({ ready: true, reasons: [] }),
    api: () => replica.api,
    authenticator,
    signIn: () => testSignIn(authenticator),
    blockerKey: () => Buffer.from('key'),
    limits,
    rateLimiter: createRateLimiter(0),
    metrics,
    log,
  });
  const grpc = new GrpcServer({ limits, metrics, log });
  const url = `http://${await http.listen('127.0.0.1', 0)}`;
  const endpoint = await grpc.listen('127.0.0.1', 0);
  grpc.serve({ api: replica.api, authenticator, blockerKey: Buffer.from('key') });
  const clients: WritClient[] = [];
  return {
    replica,
    url,
    metrics,
    async ask(role, request, { body, headers = {} } = {}) {
      const [method = '', path = ''] = request.split(' ');
      const response = await fetch(`${url}/v1${path}`, {
        method,
        headers: {
          authorization: `Bearer token-${role}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, json: text === '' ? null : JSON.parse(text) };
    },
    client(role) {
      const client = connectWrit({ endpoint, token: `token-${role}` });
      clients.push(client);
      return client;
    },
    revoke(role) {
      const token = `Bearer token-${role}`;
      revoked.add(token);
      return { giveBack: () => void revoked.delete(token) };
    },
    stopHttp: (withinMs) => http.stop(withinMs),
    async stop() {
      for (const client of clients) client.close();
      await Promise.all([http.stop(0), grpc.drain(0)]);
      await replica.stop();
      await database.drop();
    },
  };
}
