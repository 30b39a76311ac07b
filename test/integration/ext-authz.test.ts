import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { createFileRegistry, type DescField, type DescMessage, fromBinary, ScalarType } from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import {
  type Client,
  credentials,
  type GrpcObject,
  loadPackageDefinition,
  Metadata,
  type ServiceClientConstructor,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { loadSync, type Options } from '@grpc/proto-loader';
import protobuf from 'protobufjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { parseRouteTable } from '../../src/route-table/index.js';
import { toldCertificate } from '../support/certificates.js';
import { as, createRun, eventually, granted, putMap, write } from '../support/coordinator.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';

/** Envoy's own contract, as it is published in the package of the official xDS client; nothing of ours is in it. */
const DEPS = join(dirname(createRequire(import.meta.url).resolve('@grpc/grpc-js-xds/package.json')), 'deps');
const PROTO = 'envoy/service/auth/v3/external_auth.proto';
const INCLUDED = ['envoy-api', 'xds', 'protoc-gen-validate', 'googleapis'].map((name) => join(DEPS, name));
const LOADING: Options = {
  includeDirs: INCLUDED,
  keepCase: true,
  longs: String,
  enums: String,
  defaults: true,
  oneofs: true,
};
const OFFICIAL = loadSync(PROTO, LOADING);

const MAP = `
version: 1
kinds:
  - { pattern: "page/{name}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
`;
const TABLE = parseRouteTable({
  version: 1,
  routes: [
    {
      method: 'PUT',
      path: '/pages/{name}',
      writes: [{ resource: 'page/{name}', action: 'replace', change_class: 'shared_document' }],
    },
    { method: 'GET', path: '/pages/{name}', reads: true },
  ],
});
const ROUTES = new Map([['svc:pages', { namespace: 'default', table: TABLE }]]);

/** An answer, as the official stub reads it. */
interface CheckResponse {
  readonly status: { readonly code: number; readonly message: string };
  readonly http_response: 'ok_response' | 'denied_response';
  readonly ok_response: { readonly headers: readonly SetHeader[]; readonly headers_to_remove: readonly string[] };
  readonly denied_response: {
    readonly status: { readonly code: string };
    readonly headers: readonly SetHeader[];
    readonly body: string;
  };
}
interface SetHeader {
  readonly header: { readonly key: string; readonly value: string };
  readonly append_action: string;
}

let database: TestDatabase;
let gateway: TestGateway;
const clients: Client[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  gateway = await startGateway(database.url, ROUTES);
  await putMap(gateway.replica.api, MAP);
});

afterAll(async () => {
  for (const client of clients) client.close();
  await gateway?.stop();
  await database?.drop();
});

/** Calls as Envoy does: with the official stub, as the principal of this token. */
function caller(address: string, token: string): (request: object) => Promise<CheckResponse> {
  const grown = loadPackageDefinition(OFFICIAL) as unknown as { envoy: { service: { auth: { v3: GrpcObject } } } };
  const Authorization = grown.envoy.service.auth.v3.Authorization as ServiceClientConstructor;
  const client = new Authorization(address, credentials.createInsecure());
  clients.push(client);
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  return (request) =>
    new Promise((resolve, reject) => {
      const done = (error: ServiceError | null, answer: CheckResponse): void =>
        error ? reject(error) : resolve(answer);
      (client as unknown as { check(r: object, m: Metadata, d: typeof done): void }).check(request, metadata, done);
    });
}

const ask = (request: object, token = 'token-svc:pages') => caller(gateway.grpc, token)(request);

function about(method: string, path: string, headers: Record<string, string> = {}, more: object = {}): object {
  const http = { id: '1', method, path, host: 'pages.example', scheme: 'https', protocol: 'HTTP/2', size: -1, headers };
  return { attributes: { request: { time: { seconds: 1, nanos: 0 }, http }, ...more } };
}

let serial = 0;
async function held(): Promise<{ name: string; lease: Lease; presented: Record<string, string> }> {
  const name = `p-${++serial}`;
  const runId = await createRun(gateway.replica.api);
  const lease = await granted(gateway.replica.api, runId, [write(`page/${name}`, 'replace')], { ttl: 120 * SECOND });
  return {
    name,
    lease,
    presented: { 'writ-lease': lease.leaseId, 'writ-fencing-token': String(lease.entries[0]?.token) },
  };
}

async function issued(lease: Lease, confirmation: { kind: 'x5t#S256'; thumbprint: string } | null = null) {
  const input = { runId: lease.runId, leaseId: lease.leaseId, audience: 'svc:pages', confirmation, requestId: '' };
  const { value } = await gateway.replica.api.issueCredential(as('runner'), input);
  return value.credential?.token ?? '';
}

const headerValue = (headers: readonly SetHeader[], key: string) =>
  headers.find(({ header }) => header.key === key)?.header.value;

describe('Authorization/Check of Envoy', () => {
  test('lets a granted write through, with the run in place of what it presented', async () => {
    const { name, lease, presented } = await held();
    const answer = await ask(about('PUT', `/pages/${name}?x=1`, { ...presented, 'writ-run-id': 'somebody' }));
    expect(answer).toMatchObject({ status: { code: status.OK }, http_response: 'ok_response' });
    const { headers, headers_to_remove: removed } = answer.ok_response;
    expect(headerValue(headers, 'writ-run-id')).toBe(lease.runId);
    expect(headers.every(({ append_action }) => append_action === 'OVERWRITE_IF_EXISTS_OR_ADD')).toBe(true);
    expect(removed).toEqual(expect.arrayContaining(['writ-lease', 'writ-fencing-token']));
    // The authorization is the service's own here.
    expect(removed).not.toContain('authorization');
    expect(JSON.stringify(answer)).not.toContain(presented['writ-fencing-token']);
  });

  test('I1: knows the request by its own x-request-id, in the answer and in the log', async () => {
    const { name, presented } = await held();
    const path = `/pages/${name}`;
    const passed = await ask(about('PUT', path, { ...presented, 'x-request-id': `ok-${name}` }));
    expect(headerValue(passed.ok_response.headers, 'x-request-id')).toBe(`ok-${name}`);
    const requestId = `denied-${name}`;
    const refused = await ask(about('PUT', path, { 'x-request-id': requestId }));
    expect(headerValue(refused.denied_response.headers, 'x-request-id')).toBe(requestId);
    expect(JSON.parse(refused.denied_response.body)).toMatchObject({ request_id: requestId });
    const query = { runId: '', leaseId: '', resource: '', kinds: [], afterRevision: 0, newestFirst: false };
    await eventually(
      () => gateway.replica.api.listEvents(as('auditor'), { ...query, requestId, page: { size: 10, token: '' } }),
      ({ items }) => items.some(({ body }) => body.includes('unknown_lease')),
    );
    // What cannot be recorded as it is does not stand for the request.
    const unusable = await ask(about('PUT', path, { ...presented, 'x-request-id': 'x'.repeat(129) }));
    expect(headerValue(unusable.ok_response.headers, 'x-request-id')).toMatch(/^[0-9a-f]{12}-\w+$/);
  });

  test('takes a credential, and takes it away', async () => {
    const { name, lease } = await held();
    const authorization = `Bearer ${await issued(lease)}`;
    const answer = await ask(about('PUT', `/pages/${name}`, { authorization }));
    expect(headerValue(answer.ok_response.headers, 'writ-run-id')).toBe(lease.runId);
    expect(answer.ok_response.headers_to_remove).toContain('authorization');
    const read = await ask(about('GET', `/pages/${name}`, { authorization, 'writ-run-id': 'somebody' }));
    expect(read.ok_response.headers_to_remove).toEqual(expect.arrayContaining(['authorization', 'writ-run-id']));
    const own = await ask(about('GET', `/pages/${name}`, { authorization: 'Bearer of-the-service' }));
    expect(own.ok_response.headers_to_remove).not.toContain('authorization');
  });

  test('a credential that is bound to a certificate counts for whoever showed that one to Envoy', async () => {
    const { name, lease } = await held();
    const [mine, others] = [await toldCertificate('mine'), await toldCertificate('others')];
    const authorization = `Bearer ${await issued(lease, { kind: 'x5t#S256', thumbprint: mine.thumbprint })}`;
    const with_ = (certificate: string) =>
      about('PUT', `/pages/${name}`, { authorization }, { source: { certificate } });
    expect((await ask(with_(mine.escaped))).status.code).toBe(status.OK);
    const stolen = await ask(with_(others.escaped));
    expect(JSON.parse(stolen.denied_response.body)).toMatchObject({ status: 401, code: 'binding_mismatch' });
    const none = await ask(with_(''));
    expect(JSON.parse(none.denied_response.body)).toMatchObject({ status: 401, code: 'not_bound' });
    await expect(ask(with_('rubbish'))).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
  });

  test('answers a refused client by status, headers and problem', async () => {
    const { name, lease, presented } = await held();
    const refused = async (request: object) => {
      const answer = await ask(request);
      expect(answer.http_response).toBe('denied_response');
      expect(answer.status.code).not.toBe(status.OK);
      const { status: http, headers, body } = answer.denied_response;
      expect(headerValue(headers, 'content-type')).toBe('application/problem+json');
      const problem = JSON.parse(body) as { code: string; status: number };
      expect(headerValue(headers, 'writ-reason')).toBe(problem.code);
      return [http.code, problem.status, problem.code, headerValue(headers, 'www-authenticate')];
    };
    const challenge = expect.stringMatching(/^Bearer/);
    expect(await refused(about('PUT', `/pages/${name}`))).toEqual([
      'Unauthorized',
      401,
      'credential_required',
      challenge,
    ]);
    expect(await refused(about('PUT', '/pages/other', presented))).toEqual([
      'Forbidden',
      403,
      'not_covered',
      undefined,
    ]);
    expect(await refused(about('DELETE', '/pages/x', presented))).toEqual(['Forbidden', 403, 'unrouted', undefined]);
    expect(await refused(about('PUT', '/pages/%2e%2e', presented))).toEqual([
      'BadRequest',
      400,
      'malformed_request',
      undefined,
    ]);
    const release = { runId: lease.runId, leaseId: lease.leaseId, acquireKey: null };
    await gateway.replica.api.releaseLease(as('runner'), release);
    expect(await refused(about('PUT', `/pages/${name}`, presented))).toEqual(['Conflict', 409, 'released', undefined]);
  });

  test('sees every value of a header with `encode_raw_headers`', async () => {
    const { name, presented } = await held();
    const raw = (pairs: readonly (readonly [string, string])[]) => {
      const header_map = { headers: pairs.map(([key, value]) => ({ key, raw_value: Buffer.from(value) })) };
      return { attributes: { request: { http: { method: 'PUT', path: `/pages/${name}`, host: 'h', header_map } } } };
    };
    expect((await ask(raw(Object.entries(presented)))).status.code).toBe(status.OK);
    const twice = await ask(raw([...Object.entries(presented), ['writ-lease', 'another']]));
    expect(JSON.parse(twice.denied_response.body)).toMatchObject({ status: 400, code: 'malformed_request' });
    // As Envoy joins them otherwise.
    const joined = { ...presented, 'writ-lease': `${presented['writ-lease']},another` };
    const answer = await ask(about('PUT', `/pages/${name}`, joined));
    expect(JSON.parse(answer.denied_response.body)).toMatchObject({ status: 403, code: 'unknown_lease' });
  });

  test('is for target services with routes of their own', async () => {
    const request = about('GET', '/pages/x');
    await expect(ask(request, 'rubbish')).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
    await expect(ask(request, 'token-runner')).rejects.toMatchObject({ code: status.PERMISSION_DENIED });
    await expect(ask(request, 'token-svc:other')).rejects.toMatchObject({
      code: status.PERMISSION_DENIED,
      details: expect.stringContaining('no route table'),
    });
    await expect(ask({ attributes: {} })).rejects.toMatchObject({ code: status.INVALID_ARGUMENT });
  });

  test('P8: what cannot be decided is denied to the client, as retryable', async () => {
    const other = await createTestDatabase();
    const lone = await startGateway(other.url, ROUTES);
    try {
      await lone.replica.store.close();
      const check = caller(lone.grpc, 'token-svc:pages');
      const answer = await eventually(
        () => check(about('PUT', '/pages/x')),
        (seen) => seen.status.code === status.UNAVAILABLE,
      );
      expect(answer.denied_response.status.code).toBe('ServiceUnavailable');
      expect(JSON.parse(answer.denied_response.body)).toMatchObject({ status: 503, retryable: true });
      expect(headerValue(answer.denied_response.headers, 'retry-after')).toMatch(/^\d+$/);
    } finally {
      await lone.stop().catch(() => undefined);
      await other.drop();
    }
  });
});

test('what we declare of Envoy’s contract is as Envoy declares it', () => {
  const published = new protobuf.Root();
  published.resolvePath = (_, target) => INCLUDED.map((dir) => join(dir, target)).find(existsSync) ?? null;
  published.loadSync(PROTO, { keepCase: true }).resolveAll();
  const descriptors = readFileSync(new URL('../../src/gen/descriptor.binpb', import.meta.url));
  const ours = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptors));
  const compared = new Set<string>();
  for (const name of ['CheckRequest', 'CheckResponse'].map((name) => `envoy.service.auth.v3.${name}`)) {
    const message = ours.getMessage(name);
    if (message === undefined) throw new Error(`we have no ${name}`);
    compare(message, published.lookupType(name), compared);
  }
  expect(compared.size).toBe(13);
});

/** Each of our fields has the number, the name and the kind of one of theirs, all the way down. */
function compare(ours: DescMessage, theirs: protobuf.Type, compared: Set<string>): void {
  if (compared.has(ours.typeName)) return;
  compared.add(ours.typeName);
  for (const field of ours.fields) {
    const other = theirs.fieldsById[field.number];
    if (other === undefined) throw new Error(`${theirs.fullName} has no field ${field.number}`);
    expect(kindOf(field), `${ours.typeName}.${field.name}`).toEqual(publishedKind(other));
    if (field.message !== undefined) compare(field.message, other.resolvedType as protobuf.Type, compared);
  }
}

/** How a field stands on the wire; an enum travels as int32. */
function kindOf(field: DescField): unknown {
  const [list, map] = [field.fieldKind === 'list', field.fieldKind === 'map'];
  const scalar = field.scalar === undefined ? undefined : ScalarType[field.scalar].toLowerCase();
  const value = field.message === undefined ? (scalar ?? 'int32') : 'message';
  return { name: field.name, list, map, value, oneof: field.oneof?.name };
}

function publishedKind(field: protobuf.Field): unknown {
  const resolved = field.resolvedType;
  const value = resolved === null ? field.type : resolved instanceof protobuf.Enum ? 'int32' : 'message';
  return { name: field.name, list: field.repeated, map: field.map, value, oneof: field.partOf?.name };
}
