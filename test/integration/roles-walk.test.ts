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
import { Hono } from 'hono';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { ROLES, type Role } from '../../src/auth/principal.js';
import type { PrincipalEntry } from '../../src/auth/principal-entry.js';
import { ROUTES } from '../../src/auth/roles.js';
import { hashToken } from '../../src/auth/tokens.js';
import { Fault } from '../../src/domain/fault.js';
import * as extAuthz from '../../src/gen/envoy/service/auth/v3/external_auth.js';
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
import { mountConsole } from '../../src/transports/http/console.js';
import { createApp, HttpServer, type HttpServerOptions } from '../../src/transports/http/server.js';
import { createRateLimiter } from '../../src/transports/rate-limit.js';
import { testSignIn } from '../support/sign-in.js';

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

const MODULES = [audit, conflictMap, credential, extAuthz, fence, lease, namespace, run];

const SERVICES = MODULES.flatMap((module) => Object.entries(module))
  .filter(([name]) => /(Service|^Authorization)Service$/.test(name))
  .map(([, definition]) => definition as unknown as ServiceDefinition);

const RPCS = SERVICES.flatMap((definition) =>
  Object.entries(definition).map(([name, { path }]) => ({
    definition,
    name,
    method: path.slice(path.lastIndexOf('.') + 1),
  })),
);

const PRINCIPALS: PrincipalEntry[] = ROLES.flatMap((role) => [
  { name: role, roles: [role], tokenSha256: hashToken(`everywhere-${role}`) },
  { name: `team-${role}`, roles: [], namespaceRoles: { 'team-a': [role] }, tokenSha256: hashToken(`team-a-${role}`) },
]);

/**
 * Of the namespaces each caller is shown its own; a document that is looked over is stored nowhere; what a gateway asks
 * about is in the namespace that its routes name; and on a stream each message names its own.
 */
const ABOUT_NO_NAMESPACE = [
  'FenceService/StreamFenceChecks',
  'FenceService/WatchFences',
  'LeaseService/Session',
  'Authorization/Check',
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
    { openSession: () => ({ close: () => undefined }) },
    {
      get: (known, name) =>
        Reflect.get(known, name) ??
        (name === 'exportEvents'
          ? () => ({ [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(reached) }) })
          : () => Promise.reject(reached)),
    },
  ) as unknown as WritApi;
  grpc.serve({ api, authenticator, blockerKey: Buffer.from('key') });
  const served = {
    ...api,
    getKeys: async () => ({ jwks: '{"keys":[]}', maxAge: 300_000_000, issuer: '' }),
    introspectCredential: async () => ({ value: { active: false }, revision: 0, now: 0 }),
  };
  const overHttp = new Proxy(api, { get: (rest, name) => Reflect.get(served, name) ?? Reflect.get(rest, name) });
  httpOptions = {
    ready: () => ({ ready: true, reasons: [] }),
    api: () => overHttp,
    authenticator,
    signIn: () => testSignIn(authenticator),
    blockerKey: () => Buffer.from('key'),
    limits: readConfig({}).limits,
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
    patterns: [],
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
  for (const module of MODULES) {
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

/** Whoever signs in is nobody yet. */
const SIGN_IN = / \/auth\//;

describe('every route', () => {
  it('stands in the guide, and is served', () => {
    // Pages and files of the console are open to everybody: they hold nothing but code.
    const pages = new Hono();
    mountConsole(pages);
    const named = ({ method, path }: { method: string; path: string }): string =>
      `${method} ${path.replace(/:(\w+)/g, '{$1}')}`;
    const files = new Set(pages.routes.map(named));
    const served = createApp(httpOptions)
      .routes.filter(({ method }) => method !== 'ALL')
      .map(named)
      .filter((route) => !files.has(route));
    expect([...new Set(served)].sort()).toEqual([...ROUTES].sort());
    expect([...documented('HTTP routes').keys()].sort()).toEqual([...ROUTES].sort());
  });

  it.each(ROUTES.filter((route) => !SIGN_IN.test(route)))(
    '%s: the roles that may call it, and no other',
    async (route) => {
      const roles = documented('HTTP routes').get(route);
      const may = (role: Role): boolean => roles === 'anybody' || roles?.includes(role) === true;
      expect(await statusOf(route)).toBe(roles === 'anybody' ? 200 : 401);
      for (const role of ROLES) {
        expect(await statusOf(route, `everywhere-${role}`, 'default')).toBe(may(role) ? 200 : 403);
        const inTeamA = may(role) && !ABOUT_EVERYTHING.has(route);
        expect(await statusOf(route, `team-a-${role}`, 'team-a')).toBe(roles === 'anybody' || inTeamA ? 200 : 403);
        const elsewhere = inTeamA && (IN_NO_NAMESPACE.has(route) || !route.includes(' /v1/'));
        expect(await statusOf(route, `team-a-${role}`, 'team-b')).toBe(roles === 'anybody' || elsewhere ? 200 : 403);
      }
    },
  );
});

/** Metrics and signing keys are of all namespaces: a role in one does not do. */
const ABOUT_EVERYTHING: ReadonlySet<string> = new Set([
  'GET /metrics',
  'GET /v1/keys',
  'POST /v1/keys/rotate',
  'POST /v1/keys/{keyId}/retire',
]);

/** As ABOUT_NO_NAMESPACE; of a proxy the routes say which it is. */
const IN_NO_NAMESPACE: ReadonlySet<string> = new Set([
  'GET /v1/fence/check',
  'GET /v1/namespaces',
  'GET /v1/principal',
  'GET /v1/conflict-map/schema',
  'POST /v1/conflict-map/test',
  'POST /v1/conflict-map/validate',
  'POST /v1/credentials/introspect',
]);

/** 200 for whatever was let in: such a request is wrong in its own way, or the service was reached. */
async function statusOf(route: (typeof ROUTES)[number], token?: string, where = 'default'): Promise<number> {
  const [method = '', path = ''] = route.split(' ');
  const query = path.startsWith('/v1/') && !NAMES_NONE.has(route) ? `?namespace=${where}` : '';
  const { status } = await fetch(`http://${httpAddress}${path.replace(/\{\w+\}/, where)}${query}`, {
    method,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(method === 'GET' || !path.startsWith('/v1/') ? {} : { 'content-type': 'application/json' }),
    },
    ...(method === 'GET' || !path.startsWith('/v1/') ? {} : { body: JSON.stringify({ name: where }) }),
  });
  return [400, 409, 415, 428].includes(status) ? 200 : status;
}

/** Their path or body names it, or nothing does. */
const NAMES_NONE: ReadonlySet<string> = new Set([
  ...ABOUT_EVERYTHING,
  ...IN_NO_NAMESPACE,
  'GET /v1/openapi.json',
  'POST /v1/namespaces',
  'GET /v1/namespaces/{name}',
]);
