import { readFileSync } from 'node:fs';
import {
  type Client,
  credentials,
  Metadata,
  makeClientConstructor,
  type ServiceClientConstructor,
  type ServiceDefinition,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { ROLES, type Role } from '../../src/auth/principal.js';
import type { PrincipalEntry } from '../../src/auth/principal-entry.js';
import { ROUTES } from '../../src/auth/roles.js';
import { hashToken } from '../../src/auth/tokens.js';
import { Fault } from '../../src/domain/fault.js';
import * as audit from '../../src/gen/writ/v1/audit_service.js';
import * as conflictMap from '../../src/gen/writ/v1/conflict_map_service.js';
import * as credential from '../../src/gen/writ/v1/credential_service.js';
import * as fence from '../../src/gen/writ/v1/fence_service.js';
import * as lease from '../../src/gen/writ/v1/lease_service.js';
import * as namespace from '../../src/gen/writ/v1/namespace_service.js';
import * as run from '../../src/gen/writ/v1/run_service.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import type { WritApi } from '../../src/services/api.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';
import { createApp, HttpServer, type HttpServerOptions } from '../../src/transports/http/server.js';
import { createRateLimiter } from '../../src/transports/rate-limit.js';

/**
 * Every RPC of the contract and every route, called over a socket by every role, everywhere and in one namespace; what
 * is right stands in docs/api.md. An RPC or a route that is not written there fails here.
 */

/** Rows of a table of the guide: what is called, and the roles that may. */
function documented(heading: string): Map<string, readonly Role[] | 'anybody'> {
  const text = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8');
  const section = text.slice(text.indexOf(`\n## ${heading}\n`) + 1).split(/\n## /)[0] ?? '';
  const rows = [...section.matchAll(/^\| `([^`]+)` *\| ([^|]+) \|/gm)];
  return new Map<string, readonly Role[] | 'anybody'>(
    rows.map(([, what = '', roles = '']) => {
      const listed = roles.trim();
      if (listed === 'anybody') return [what, 'anybody'];
      return [what, listed === 'all' ? ROLES : (listed.split(', ') as Role[])];
    }),
  );
}

const SERVICES = [audit, conflictMap, credential, fence, lease, namespace, run]
  .flatMap((module) => Object.entries(module))
  .filter(([name]) => /ServiceService$/.test(name))
  .map(([, definition]) => definition as unknown as ServiceDefinition);

const RPCS = SERVICES.flatMap((definition) =>
  Object.entries(definition).map(([name, { path }]) => ({ definition, name, method: path.replace('/writ.v1.', '') })),
);

const PRINCIPALS: PrincipalEntry[] = ROLES.flatMap((role) => [
  { name: role, roles: [role], tokenSha256: hashToken(`everywhere-${role}`) },
  { name: `team-${role}`, roles: [], namespaceRoles: { 'team-a': [role] }, tokenSha256: hashToken(`team-a-${role}`) },
]);

/** Of the namespaces each caller is shown its own; a document that is looked over is stored nowhere. */
const ABOUT_NO_NAMESPACE = [
  'NamespaceService/ListNamespaces',
  'ConflictMapService/ValidateConflictMap',
  'CredentialService/GetKeys',
  'CredentialService/IntrospectCredential',
];

/** What concerns the whole installation; a role in one namespace does not do. */
const ABOUT_ALL_NAMESPACES = [
  'CredentialService/ListSigningKeys',
  'CredentialService/RotateSigningKey',
  'CredentialService/RetireSigningKey',
];

const authenticator = createCallerAuthenticator({ principals: PRINCIPALS });
const reached = new Fault('aborted', 'REACHED', 'the service was reached');

let grpc: GrpcServer;
let http: HttpServer;
let httpOptions: HttpServerOptions;
let grpcAddress: string;
let httpAddress: string;
const clients = new Map<ServiceDefinition, Client>();

beforeAll(async () => {
  const log = createLogger('silent');
  const metrics = createMetrics();
  grpc = new GrpcServer({ limits: readConfig({}).limits, metrics, log });
  grpcAddress = await grpc.listen('127.0.0.1', 0);
  const api = new Proxy(
    {},
    {
      get: (_, name) =>
        name === 'exportEvents'
          ? () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(reached) }) })
          : () => Promise.reject(reached),
    },
  ) as WritApi;
  grpc.serve({ api, authenticator, blockerKey: Buffer.from('key') });
  const keysAndTokens = {
    getKeys: async () => ({ jwks: '{"keys":[]}', maxAge: 300_000_000, issuer: '' }),
    introspectCredential: async () => ({ value: { active: false }, revision: 0, now: 0 }),
  } as unknown as WritApi;
  httpOptions = {
    ready: () => ({ ready: true, reasons: [] }),
    api: () => keysAndTokens,
    authenticator,
    rateLimiter: createRateLimiter(0),
    metrics,
    log,
  };
  http = new HttpServer(httpOptions);
  httpAddress = await http.listen('127.0.0.1', 0);
  for (const definition of SERVICES) {
    const Service: ServiceClientConstructor = makeClientConstructor(definition, 'any');
    clients.set(definition, new Service(grpcAddress, credentials.createInsecure()));
  }
});

afterAll(async () => {
  for (const client of clients.values()) client.close();
  await Promise.all([grpc.drain(0), http.stop(0)]);
});

/** Whether the call went past the authorisation: whatever else it is told then. */
function allowed(rpc: (typeof RPCS)[number], token: string, where: string): Promise<boolean> {
  const client = clients.get(rpc.definition);
  const method = rpc.definition[rpc.name];
  if (client === undefined || method === undefined) throw new Error('no such method');
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  // Whichever way the request has of naming a namespace.
  const request = {
    namespace: where,
    name: where,
    request: { namespace: where, entries: [] },
    entries: [],
    writes: [],
    renewals: [],
    states: [],
    allowed: [],
    escalation: [],
    kinds: [],
    document: '',
  };
  const bytes = encode(rpc.name, request);
  return new Promise((resolve, reject) => {
    const done = (error: ServiceError | null): void => {
      if (error === null) resolve(true);
      else if (error.code === status.PERMISSION_DENIED) resolve(false);
      else if (error.code === status.ABORTED || error.code === status.INVALID_ARGUMENT) resolve(true);
      else reject(error);
    };
    const serialize = (): Buffer => bytes;
    if (method.responseStream) {
      const stream = client.makeServerStreamRequest(method.path, serialize, (b) => b, {}, metadata);
      stream
        .on('data', () => undefined)
        .on('error', done)
        .on('end', () => done(null));
    } else client.makeUnaryRequest(method.path, serialize, (b) => b, {}, metadata, done);
  });
}

/** The request of a method, filled in as far as it has these fields. */
function encode(name: string, fields: object): Buffer {
  const type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Request`;
  for (const module of [audit, conflictMap, credential, fence, lease, namespace, run]) {
    const message = (
      module as unknown as Record<
        string,
        { fromPartial(f: object): unknown; encode(m: unknown): { finish(): Uint8Array } }
      >
    )[type];
    if (message !== undefined) return Buffer.from(message.encode(message.fromPartial(fields)).finish());
  }
  throw new Error(`there is no ${type}`);
}

describe('every RPC', () => {
  it('stands in the guide', () => {
    expect(RPCS.map(({ method }) => method).sort()).toEqual([...documented('Roles').keys()].sort());
  });

  it.each(RPCS)('$method: the roles that may call it, and no other', async (rpc) => {
    const roles = documented('Roles').get(rpc.method);
    const everywhere: Role[] = [];
    const inTeamA: Role[] = [];
    const elsewhere: Role[] = [];
    for (const role of ROLES) {
      if (await allowed(rpc, `everywhere-${role}`, 'default')) everywhere.push(role);
      if (await allowed(rpc, `team-a-${role}`, 'team-a')) inTeamA.push(role);
      if (await allowed(rpc, `team-a-${role}`, 'team-b')) elsewhere.push(role);
    }
    const expected = ROLES.filter((role) => (roles as readonly Role[]).includes(role));
    expect(everywhere).toEqual(expected);
    expect(inTeamA).toEqual(ABOUT_ALL_NAMESPACES.includes(rpc.method) ? [] : expected);
    expect(elsewhere).toEqual(ABOUT_NO_NAMESPACE.includes(rpc.method) ? expected : []);
  });
});

describe('every route', () => {
  it('stands in the guide, and is served', () => {
    const served = createApp(httpOptions)
      .routes.filter(({ method }) => method !== 'ALL')
      .map(({ method, path }) => `${method} ${path}`);
    expect([...new Set(served)].sort()).toEqual([...ROUTES].sort());
    expect([...documented('HTTP routes').keys()].sort()).toEqual([...ROUTES].sort());
  });

  it.each(ROUTES)('%s: the roles that may call it, and no other', async (route) => {
    const roles = documented('HTTP routes').get(route);
    const [method = '', path = ''] = route.split(' ');
    const answer = async (token?: string) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      return (await fetch(`http://${httpAddress}${path}`, { method, headers })).status;
    };
    expect(await answer()).toBe(roles === 'anybody' ? 200 : 401);
    for (const role of ROLES) {
      expect(await answer(`everywhere-${role}`)).toBe(roles === 'anybody' || roles?.includes(role) ? 200 : 403);
      // Metrics tell of all namespaces; a token that is introspected names its own.
      const anywhere = roles === 'anybody' || (path === '/oauth2/introspect' && roles?.includes(role));
      expect(await answer(`team-a-${role}`)).toBe(anywhere ? 200 : 403);
    }
  });
});
