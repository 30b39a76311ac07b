import {
  Client,
  credentials,
  type handleClientStreamingCall,
  type handleUnaryCall,
  Metadata,
  Server,
  ServerCredentials,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createGate,
  decisionOf,
  type Gate,
  grpcGate,
  grpcStatusOf,
  problem,
  writesOf,
} from '../../src/clients/target/index.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import { ErrorInfo } from '../../src/gen/google/rpc/error_details.js';
import { Status } from '../../src/gen/google/rpc/status.js';
import { as, createRun, granted, putMap, write } from '../support/coordinator.js';
import { type ServedReplica, startServedReplica } from '../support/served-replica.js';

/** The gate as an interceptor of a real gRPC server; messages are JSON, since it is not about their encoding. */

const MAP = `
version: 1
kinds:
  - { pattern: "release/{env}", owner_service: [target], actions: { promote: { access: write, concurrency: lease }, annotate: { access: write } } }
`;

const promote = { resource: 'release/{env}', action: 'promote', change_class: 'shared_pointer' };
const ROUTES = {
  version: 1,
  routes: [
    { method: 'POST', path: '/releases.v1.Releases/Promote', fields: { env: 'target.env_name' }, writes: [promote] },
    { method: 'POST', path: '/releases.v1.Releases/PromoteMany', fields: { env: 'env' }, writes: [promote] },
    {
      method: 'POST',
      path: '/releases.v1.Releases/Annotate',
      writes: [{ resource: 'release/notes', action: 'annotate', change_class: 'derived' }],
    },
    { method: 'POST', path: '/releases.v1.Releases/Get', reads: true },
    { method: 'POST', path: '/grpc.health.v1.Health/{method}', unprotected: 'says nothing and changes nothing' },
  ],
};

const serialize = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
const deserialize = (bytes: Buffer): unknown => JSON.parse(bytes.toString());
const method = (name: string, requestStream = false) => ({
  path: `/releases.v1.Releases/${name}`,
  requestStream,
  responseStream: false,
  requestSerialize: serialize,
  requestDeserialize: deserialize,
  responseSerialize: serialize,
  responseDeserialize: deserialize,
});
const SERVICE = {
  promote: method('Promote'),
  promoteMany: method('PromoteMany', true),
  annotate: method('Annotate'),
  get: method('Get'),
  undeclared: method('Undeclared'),
};

let replica: ServedReplica;
let gate: Gate;
let server: Server;
let client: Client;
let runId: string;
let lease: Lease;
const handled: unknown[] = [];

const unary: handleUnaryCall<unknown, unknown> = (call, callback) => {
  handled.push(call.request);
  const decision = decisionOf(call.metadata);
  if (decision.kind !== 'writes') return callback(null, { kind: decision.kind });
  const { runId: by, toGuard, observedVersion } = writesOf(call.request as object);
  if (observedVersion === '6')
    return callback(
      grpcStatusOf(problem({ status: 412, code: 'version_conflict', detail: 'It is at 7.', current_version: '7' })),
    );
  callback(null, { by, resources: toGuard.map(({ resource }) => resource), observedVersion });
};

/** Tells what was let in of a stream, message by message. */
const many: handleClientStreamingCall<unknown, unknown> = (call, callback) => {
  const seen: string[] = [];
  call.on('data', (message: object) => {
    handled.push(message);
    seen.push(...writesOf(message).writes.map(({ resource }) => resource));
  });
  call.on('error', () => undefined);
  call.on('end', () => callback(null, { seen, letIn: decisionOf(call.metadata).kind }));
};

beforeAll(async () => {
  replica = await startServedReplica();
  await putMap(replica.api, MAP);
  runId = await createRun(replica.api);
  const entries = [
    write('release/prod-eu', 'promote'),
    write('release/prod-us', 'promote'),
    write('release/notes', 'annotate'),
  ];
  // For all tests of the file, however long the machine takes for them.
  lease = await granted(replica.api, runId, entries, { ttl: 300 * SECOND });
  gate = createGate({ client: replica.client('target'), routes: ROUTES });
  server = new Server({
    interceptors: [
      grpcGate(gate, {
        caller: (metadata) => {
          const [run] = metadata.get('x-authenticated-run');
          return run === undefined ? {} : { runId: String(run) };
        },
      }),
    ],
  });
  server.addService(SERVICE, { promote: unary, promoteMany: many, annotate: unary, get: unary, undeclared: unary });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
});

afterAll(async () => {
  client?.close();
  server?.forceShutdown();
  await gate?.close();
  await replica?.stop();
});

function metadataOf(headers: Record<string, string>): Metadata {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  return metadata;
}

const presenting = (token = lease.entries[0]?.token) => ({
  'writ-lease': lease.leaseId,
  'writ-fencing-token': String(token),
});

type Name = keyof typeof SERVICE;

function call(name: Name, request: unknown, headers: Record<string, string> = presenting()): Promise<unknown> {
  const { path } = SERVICE[name];
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, serialize, deserialize, request, metadataOf(headers), (error, answer) =>
      error === null ? resolve(answer) : reject(error),
    );
  });
}

function stream(requests: readonly unknown[], headers: Record<string, string> = presenting()): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const sending = client.makeClientStreamRequest(
      SERVICE.promoteMany.path,
      serialize,
      deserialize,
      metadataOf(headers),
      (error, answer) => (error === null ? resolve(answer) : reject(error)),
    );
    for (const request of requests) sending.write(request);
    sending.end();
  });
}

/** The status, the stable code and the facts of a refusal. */
async function refusal(answer: Promise<unknown>) {
  const error = await answer.then(
    (value) => Promise.reject(new Error(`it was answered ${JSON.stringify(value)}`)),
    (thrown: ServiceError) => thrown,
  );
  const [bytes] = error.metadata.get('grpc-status-details-bin');
  const [info] = Status.decode(bytes as Buffer).details;
  const { reason, metadata } = ErrorInfo.decode(info?.value ?? new Uint8Array());
  return { code: status[error.code], reason, metadata, headers: error.metadata };
}

describe('the gate of a gRPC server', () => {
  it('finds the resources in the request, by the names of the contract or of generated code', async () => {
    for (const target of [{ env_name: 'prod-eu' }, { envName: 'prod-eu' }])
      expect(await call('promote', { target })).toEqual({ by: runId, resources: ['release/prod-eu'] });
  });

  it('finds the observed version in if-match, and the handler answers conflicts as it does', async () => {
    expect(await refusal(call('annotate', {}))).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'VERSION_REQUIRED',
    });
    expect(await call('annotate', {}, { ...presenting(), 'if-match': '"7"' })).toMatchObject({ observedVersion: '7' });
    expect(await refusal(call('annotate', {}, { ...presenting(), 'if-match': '"6"' }))).toMatchObject({
      code: 'ABORTED',
      reason: 'VERSION_CONFLICT',
      metadata: { current_version: '7' },
    });
  });

  it('refuses with a rich status, and reaches no handler', async () => {
    handled.length = 0;
    const undeclared = await refusal(
      call('promote', { target: { env_name: 'other' } }, { ...presenting(), 'x-request-id': 'r-1' }),
    );
    expect(undeclared).toMatchObject({
      code: 'PERMISSION_DENIED',
      reason: 'NOT_COVERED',
      metadata: {
        resource: 'release/other',
        action: 'promote',
        request_id: 'r-1',
        retryable: 'false',
        next: expect.stringMatching(/\./),
      },
    });
    const bare = await refusal(call('promote', { target: { env_name: 'prod-eu' } }, {}));
    expect(bare).toMatchObject({ code: 'UNAUTHENTICATED', reason: 'CREDENTIAL_REQUIRED' });
    expect(bare.headers.get('www-authenticate')).toEqual(['Bearer']);
    expect(await refusal(call('promote', { target: { env_name: 'prod-eu' } }, presenting(1)))).toMatchObject({
      code: 'FAILED_PRECONDITION',
      reason: 'STALE_TOKEN',
    });
    const other = { ...presenting(), 'x-authenticated-run': await createRun(replica.api) };
    expect(await refusal(call('promote', { target: { env_name: 'prod-eu' } }, other))).toMatchObject({
      reason: 'WRONG_HOLDER',
    });
    for (const request of [
      {},
      { target: {} },
      { target: 'prod-eu' },
      { target: { env_name: ['prod-eu'] } },
      { target: { env_name: 'a/b' } },
      { target: { env_name: '' } },
      [],
      null,
    ])
      expect(await refusal(call('promote', request)), JSON.stringify(request)).toMatchObject({
        code: 'INVALID_ARGUMENT',
        reason: 'MALFORMED_REQUEST',
      });
    expect(await refusal(call('undeclared', {}))).toMatchObject({ code: 'PERMISSION_DENIED', reason: 'UNROUTED' });
    expect(handled).toEqual([]);
  });

  it('takes credentials', async () => {
    const { value } = await replica.api.issueCredential(as('runner'), {
      runId,
      leaseId: lease.leaseId,
      audience: 'target',
      confirmation: null,
      requestId: '',
    });
    const headers = { authorization: `Bearer ${value.credential?.token}` };
    expect(await call('promote', { target: { env_name: 'prod-eu' } }, headers)).toMatchObject({ by: runId });
  });

  it('lets reads through', async () => {
    expect(await call('get', {}, {})).toEqual({ kind: 'reads' });
  });

  it('decides each message of a stream before the handler sees it', async () => {
    expect(await stream([{ env: 'prod-eu' }, { env: 'prod-us' }])).toEqual({
      seen: ['release/prod-eu', 'release/prod-us'],
      letIn: 'writes',
    });
    handled.length = 0;
    expect(await refusal(stream([{ env: 'prod-eu' }, { env: 'other' }, { env: 'prod-us' }]))).toMatchObject({
      reason: 'NOT_COVERED',
    });
    expect(handled).toEqual([{ env: 'prod-eu' }]);
    // Without a message there is nothing that names a resource, and an end is no way around that.
    expect(await refusal(stream([]))).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'MALFORMED_REQUEST' });
  });

  it('refuses while the coordinator cannot be reached (P8)', async () => {
    const failing = createGate({ client: replica.client('target'), routes: ROUTES, checks: { timeoutMs: 300 } });
    await replica.down();
    try {
      const decision = await failing.decide({
        method: 'POST',
        path: SERVICE.annotate.path,
        headers: { ...presenting(), 'if-match': '"7"' },
      });
      expect(decision).toMatchObject({ allowed: false, problem: { code: 'coordinator_unreachable' } });
      if (!decision.allowed) expect(grpcStatusOf(decision.problem).code).toBe(status.UNAVAILABLE);
    } finally {
      await replica.up();
      await failing.close();
    }
  });
});
