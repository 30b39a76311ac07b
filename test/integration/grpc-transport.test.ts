import { once } from 'node:events';
import { createServer } from 'node:net';
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { ROLES, type Role } from '../../src/auth/principal.js';
import { hashToken } from '../../src/auth/tokens.js';
import { Fault } from '../../src/domain/fault.js';
import { BadRequest, ErrorInfo } from '../../src/gen/google/rpc/error_details.js';
import { Status } from '../../src/gen/google/rpc/status.js';
import { AuditServiceClient, type Event } from '../../src/gen/writ/v1/audit_service.js';
import { FenceReason, FenceServiceClient } from '../../src/gen/writ/v1/fence_service.js';
import { AcquireWriteSetRequest, LeaseServiceClient } from '../../src/gen/writ/v1/lease_service.js';
import { RunServiceClient } from '../../src/gen/writ/v1/run_service.js';
import { Access, RefusalKind, Scope } from '../../src/gen/writ/v1/types.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics, type Metrics } from '../../src/platform/metrics.js';
import type { AcquireInput, CallContext, WritApi } from '../../src/services/api.js';
import type { EventRecord } from '../../src/storage/store.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';

/** Services of which a test gives only what it calls. */
function fakeApi(methods: Partial<WritApi>): WritApi {
  return new Proxy(methods, {
    get: (target, name) =>
      Reflect.get(target, name) ?? (() => Promise.reject(new Error(`${String(name)} is not faked`))),
  }) as WritApi;
}

const AUTHENTICATOR = createCallerAuthenticator({
  principals: ROLES.map((role) => ({ name: role, roles: [role], tokenSha256: hashToken(`token-${role}`) })),
});

function as(role: Role, more: Readonly<Record<string, string>> = {}): Metadata {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer token-${role}`);
  for (const [key, value] of Object.entries(more)) metadata.set(key, value);
  return metadata;
}

let server: GrpcServer;
let metrics: Metrics;
let log: string[];
let address: string;
const clients: Client[] = [];

async function start(api: Partial<WritApi>, env: Record<string, string> = {}): Promise<void> {
  metrics = createMetrics();
  log = [];
  const { limits } = readConfig(env);
  const logger = createLogger('debug', { write: (line) => void log.push(line) });
  server = new GrpcServer({ limits, metrics, log: logger });
  address = await server.listen('127.0.0.1', 0);
  server.serve({ api: fakeApi(api), authenticator: AUTHENTICATOR, blockerKey: Buffer.from('key') });
}

function connect<T extends Client>(
  Service: new (address: string, creds: ReturnType<typeof credentials.createInsecure>) => T,
): T {
  const client = new Service(address, credentials.createInsecure());
  clients.push(client);
  return client;
}

/** Calls and resolves with the answer; rejects with the ServiceError. */
function call<Request, Response>(
  client: Client,
  method: (
    request: Request,
    metadata: Metadata,
    options: { deadline?: number },
    done: (error: ServiceError | null, response: Response) => void,
  ) => unknown,
  request: Request,
  metadata: Metadata,
  options: { deadline?: number } = {},
): Promise<Response> {
  return new Promise((resolve, reject) => {
    method.call(client, request, metadata, options, (error, response) =>
      error === null ? resolve(response) : reject(error),
    );
  });
}

async function failure(
  work: Promise<unknown>,
): Promise<{ error: ServiceError; reason: string | undefined; violations: unknown[] }> {
  const error = await work.then(
    () => Promise.reject(new Error('it succeeded')),
    (thrown: ServiceError) => thrown,
  );
  const [bytes] = error.metadata.get('grpc-status-details-bin');
  const details = bytes === undefined ? [] : Status.decode(bytes as Buffer).details;
  const find = (type: string) => details.find(({ typeUrl }) => typeUrl.endsWith(type))?.value;
  const [info, bad] = [find('ErrorInfo'), find('BadRequest')];
  return {
    error,
    reason: info === undefined ? undefined : ErrorInfo.decode(info).reason,
    violations: bad === undefined ? [] : BadRequest.decode(bad).fieldViolations.map(({ field }) => field),
  };
}

const acquire = (more: Partial<AcquireWriteSetRequest> = {}) =>
  AcquireWriteSetRequest.fromPartial({ runId: 'r', idempotencyKey: 'k', ...more });

beforeEach(() => {
  clients.length = 0;
});

afterEach(async () => {
  for (const client of clients) client.close();
  await server.drain(0);
});

describe('a call', () => {
  it('is converted on the way in and on the way out', async () => {
    let seen: { context: CallContext; input: AcquireInput } | undefined;
    await start({
      acquireWriteSet: async (context, input) => {
        seen = { context, input };
        const refusal = {
          kind: 'held',
          message: 'held',
          resource: 'release/prod-eu',
          blockers: [
            {
              leaseId: 'a'.repeat(32),
              runId: 'run-b',
              purpose: 'secret',
              resource: 'release',
              access: 'write',
              scope: 'subtree',
              expiresAt: 1_764_428_400_123_456,
              lockDelayUntil: null,
              inDoubtSince: null,
              waiting: false,
              rule: '',
              resolver: 'release-team',
              requestedResource: 'release/prod-eu',
            },
          ],
          grantable: [],
          retryAfter: 1_500_000,
          resolution: { action: 'wait', who: 'runner', retryable: true },
          cycle: [],
          freezes: [],
        } as const;
        return { value: { kind: 'refusal', refusal }, revision: 2 ** 40, now: 0 };
      },
    });
    const client = connect(LeaseServiceClient);
    const request = acquire({
      namespace: 'team-a',
      entries: [
        {
          resource: 'release/prod-eu',
          access: Access.ACCESS_WRITE,
          scope: Scope.SCOPE_UNSPECIFIED,
          actions: ['promote'],
          observedVersion: '41',
        },
      ],
      ttl: { seconds: 30n, nanos: 1000 },
      purpose: 'promote',
    });
    const answer = await call(client, client.acquireWriteSet, request, as('runner', { 'x-request-id': 'mine' }));

    expect(seen?.input).toEqual({
      runId: 'r',
      entries: [
        { resource: 'release/prod-eu', access: 'write', scope: 'exact', actions: ['promote'], observedVersion: '41' },
      ],
      task: null,
      resourceSet: null,
      ttl: 30_000_001,
      wait: 0,
      idempotencyKey: 'k',
      purpose: 'promote',
      requestId: '',
      audiences: [],
      delegatedFrom: '',
    });
    expect(seen?.context).toMatchObject({ namespace: 'team-a', requestId: 'mine', deadlineMs: null });
    expect(seen?.context.principal).toEqual({ name: 'runner', roles: new Set(['runner']) });
    expect(answer.logRevision).toBe(2n ** 40n);
    if (answer.outcome?.$case !== 'refusal') throw new Error('expected a refusal');
    expect(answer.outcome.value).toMatchObject({
      kind: RefusalKind.REFUSAL_KIND_HELD,
      retryAfter: { seconds: 1n, nanos: 500_000_000 },
      resolution: { action: 'wait', who: 'runner', retryable: true },
    });
    const [blocker] = answer.outcome.value.blockers;
    expect(blocker).toMatchObject({
      runId: '',
      leaseId: '',
      purpose: '',
      resource: 'release',
      resolver: 'release-team',
    });
    expect(blocker?.expiresAt).toEqual({ seconds: 1_764_428_400n, nanos: 123_456_000 });
    expect(blocker?.blockerRef).toMatch(/^[0-9a-f]{16}$/);
  });

  it('carries tokens exactly, and those beyond every clock as the future', async () => {
    let tokens: number[] = [];
    await start({
      checkFence: async (_context, input) => {
        tokens = input.writes.map(({ token }) => token);
        const results = input.writes.map(
          () => ({ allowed: false, reason: 'future_token', message: 'm', observedOnly: false, hold: null }) as const,
        );
        return { value: { allowed: false, results, validFor: null, holder: null }, revision: 7, now: 0 };
      },
    });
    const client = connect(FenceServiceClient);
    const write = { resource: 'r', action: 'a', observedVersion: undefined };
    const writes = [1_764_428_400_123_456n, 2n ** 64n - 1n].map((fencingToken) => ({ ...write, fencingToken }));
    const request = { namespace: '', leaseId: 'l', presenterRunId: '', writes, requestId: '', credential: '' };
    const answer = await call(client, client.checkFence, request, as('target'));
    expect(tokens).toEqual([1_764_428_400_123_456, Number.POSITIVE_INFINITY]);
    expect(answer).toMatchObject({ allowed: false, logRevision: 7n, validFor: undefined });
    expect(answer.results.map(({ reason }) => reason)).toEqual(Array(2).fill(FenceReason.FENCE_REASON_FUTURE_TOKEN));
  });

  it('with a malformed request is refused field by field before any service sees it', async () => {
    await start({});
    const client = connect(LeaseServiceClient);
    const request = acquire({
      entries: [{ resource: 'a', access: 0, scope: 9 as Scope, actions: [] }],
      ttl: { seconds: 1n, nanos: -5 },
    });
    const { error, reason, violations } = await failure(call(client, client.acquireWriteSet, request, as('runner')));
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(reason).toBe('INVALID_ARGUMENT');
    expect(violations).toEqual(['entries[0].access', 'entries[0].scope', 'ttl']);
    const release = { namespace: '', runId: 'r', lease: undefined };
    expect((await failure(call(client, client.releaseLease, release, as('runner')))).violations).toEqual(['lease']);
    const runs = connect(RunServiceClient);
    const noEnd = {
      namespace: '',
      purpose: 'p',
      goalRevision: '',
      initiator: '',
      initiatorToken: '',
      parentRunId: '',
      allowed: [],
      escalation: [],
      idempotencyKey: 'k',
    };
    expect((await failure(call(runs, runs.createRun, noEnd, as('runner')))).violations).toEqual(['authority_ends_at']);
  });

  it('needs a token and a role', async () => {
    await start({});
    const client = connect(LeaseServiceClient);
    const anonymous = await failure(call(client, client.acquireWriteSet, acquire(), new Metadata()));
    expect([anonymous.error.code, anonymous.reason]).toEqual([status.UNAUTHENTICATED, 'UNAUTHENTICATED']);
    const unknown = new Metadata();
    unknown.set('authorization', 'Bearer nobody');
    expect((await failure(call(client, client.acquireWriteSet, acquire(), unknown))).error.code).toBe(
      status.UNAUTHENTICATED,
    );
    const target = await failure(call(client, client.acquireWriteSet, acquire(), as('target')));
    expect([target.error.code, target.reason]).toEqual([status.PERMISSION_DENIED, 'ROLE_REQUIRED']);
    expect(target.error.details).toContain('runner');
  });

  it('tells the caller the fault and the log the cause', async () => {
    let thrown: unknown = new Fault('not_found', 'RUN_NOT_FOUND', 'no run r');
    await start({ acquireWriteSet: () => Promise.reject(thrown) });
    const client = connect(LeaseServiceClient);
    const known = await failure(call(client, client.acquireWriteSet, acquire(), as('runner')));
    expect([known.error.code, known.reason, known.error.details]).toEqual([
      status.NOT_FOUND,
      'RUN_NOT_FOUND',
      'no run r',
    ]);
    thrown = new Error('relation "lease" does not exist');
    const unknown = await failure(
      call(client, client.acquireWriteSet, acquire(), as('runner', { 'x-request-id': 'abc' })),
    );
    expect(unknown.error.code).toBe(status.INTERNAL);
    expect(unknown.error.details).not.toContain('relation');
    expect(unknown.error.metadata.get('x-request-id')).toEqual(['abc']);
    const line = log.map((text) => JSON.parse(text)).find(({ level }) => level === 'error');
    expect(line).toMatchObject({
      request_id: 'abc',
      method: 'LeaseService/AcquireWriteSet',
      run_id: 'r',
      principal: 'runner',
    });
    expect(line.err.message).toContain('relation');
  });

  it('logs no token and no whole lease id', async () => {
    await start({ getLease: () => Promise.reject(new Fault('not_found', 'LEASE_NOT_FOUND', 'no such lease')) });
    const client = connect(LeaseServiceClient);
    await failure(call(client, client.getLease, { namespace: '', leaseId: '0123456789abcdef' }, as('runner')));
    expect(log.join('')).toContain('"lease_id":"01234567"');
    expect(log.join('')).not.toContain('token-runner');
    expect(log.join('')).not.toContain('0123456789');
  });

  it('gives the service its deadline, and tells it when the caller has gone', async () => {
    const inTime: { readonly context: CallContext; readonly gone: Promise<unknown> }[] = [];
    await start({
      acquireWriteSet: (context) => {
        if ((context.deadlineMs ?? 0) > 0) inTime.push({ context, gone: once(context.signal, 'abort') });
        return new Promise(() => undefined);
      },
    });
    const client = connect(LeaseServiceClient);
    // A machine that stands still may let the time pass before the call has come: then with more of it.
    for (let ms = 300; inTime.length === 0; ms *= 2) {
      const late = await failure(
        call(client, client.acquireWriteSet, acquire(), as('runner'), { deadline: Date.now() + ms }),
      );
      expect(late.error.code).toBe(status.DEADLINE_EXCEEDED);
    }
    await inTime[0]?.gone;
    // Who called gives up by a clock of its own, a moment before or after.
    expect(inTime[0]?.context.deadlineMs).toBeLessThan(100);
  });

  it('is counted', async () => {
    await start({ acquireWriteSet: () => Promise.reject(new Fault('unavailable', 'DATABASE_UNAVAILABLE', 'down')) });
    const client = connect(LeaseServiceClient);
    await failure(call(client, client.acquireWriteSet, acquire(), as('runner')));
    const { text } = await metrics.render();
    expect(text).toContain(
      'writ_rpc_duration_seconds_count{method="LeaseService/AcquireWriteSet",code="UNAVAILABLE"} 1',
    );
    expect(text).toContain('writ_rpcs_in_flight 0');
  });

  it('is limited by rate, for each principal alone', async () => {
    await start(
      { getLease: () => Promise.reject(new Fault('not_found', 'LEASE_NOT_FOUND', '')) },
      { WRIT_MAX_CALLS_PER_SECOND: '2' },
    );
    const client = connect(LeaseServiceClient);
    const get = async (role: Role) =>
      (await failure(call(client, client.getLease, { namespace: '', leaseId: 'l' }, as(role)))).reason;
    // Together, since half a second later one more may pass; and so it may be one more, or a few.
    const reasons = await Promise.all(Array.from({ length: 40 }, () => get('runner')));
    expect(await get('operator')).toBe('LEASE_NOT_FOUND');
    expect(reasons.slice(0, 2)).toEqual(['LEASE_NOT_FOUND', 'LEASE_NOT_FOUND']);
    expect(reasons.filter((reason) => reason === 'RATE_LIMITED').length).toBeGreaterThan(20);
  });

  it('that is too large is refused', async () => {
    await start({}, { WRIT_MAX_MESSAGE_BYTES: '2048' });
    const client = connect(LeaseServiceClient);
    const large = await failure(
      call(client, client.acquireWriteSet, acquire({ purpose: 'x'.repeat(8192) }), as('runner')),
    );
    expect(large.error.code).toBe(status.RESOURCE_EXHAUSTED);
  });
});

describe('an export', () => {
  const event = (revision: number, body: string): EventRecord => ({
    namespace: 'default',
    revision,
    time: 1,
    batchId: 'b',
    kind: 'k',
    bodyVersion: 1,
    actor: 'a',
    runId: '',
    leaseId: '',
    resources: [],
    requestIds: [],
    body,
    prevHash: '00'.repeat(32),
    hash: 'ff'.repeat(32),
    texts: [],
  });

  function received(client: AuditServiceClient, metadata: Metadata): Promise<Event[]> {
    const stream = client.exportEvents({ namespace: '', afterRevision: 0n }, metadata);
    const events: Event[] = [];
    stream.on('data', (part: { events: Event[] }) => events.push(...part.events));
    return new Promise((resolve, reject) => stream.on('end', () => resolve(events)).on('error', reject));
  }

  it('comes in parts that a stock client can receive', async () => {
    await start({
      async *exportEvents() {
        for (let batch = 0; batch < 3; batch += 1) {
          yield Array.from({ length: 10 }, (_, i) => event(batch * 10 + i + 1, 'x'.repeat(600_000)));
        }
      },
    });
    const events = await received(connect(AuditServiceClient), as('auditor'));
    expect(events.map(({ revision }) => Number(revision))).toEqual(Array.from({ length: 30 }, (_, i) => i + 1));
    expect(events[0]?.hash).toEqual(Buffer.alloc(32, 0xff));
  });

  it('ends with the fault that interrupts it', async () => {
    await start({
      async *exportEvents() {
        yield [event(1, '{}')];
        throw new Fault('unavailable', 'DATABASE_UNAVAILABLE', 'down');
      },
    });
    const { error, reason } = await failure(received(connect(AuditServiceClient), as('auditor')));
    expect([error.code, reason]).toEqual([status.UNAVAILABLE, 'DATABASE_UNAVAILABLE']);
    expect((await failure(received(connect(AuditServiceClient), as('operator')))).reason).toBe('ROLE_REQUIRED');
  });
});

/** The two standard services, spoken without their generated code. */
function raw(path: string, request: Uint8Array, metadata: Metadata): Promise<Buffer> {
  const client = new Client(address, credentials.createInsecure());
  clients.push(client);
  return new Promise((resolve, reject) => {
    const stream = client.makeBidiStreamRequest(
      path,
      (b: Uint8Array) => Buffer.from(b),
      (b: Buffer) => b,
      metadata,
    );
    stream.on('data', resolve).on('error', reject).write(request);
    stream.end();
  });
}

describe('health', () => {
  /** HealthCheckResponse { ServingStatus status = 1 }: SERVING = 1, NOT_SERVING = 2. */
  const check = async (service: string) => {
    const request = new BinaryWriter().uint32(10).string(service).finish();
    const reader = new BinaryReader(await raw('/grpc.health.v1.Health/Check', request, new Metadata()));
    reader.tag();
    return reader.int32();
  };

  it('is open to everybody and says whether calls are served', async () => {
    await start({});
    expect([await check(''), await check('writ.v1.FenceService')]).toEqual([2, 2]);
    server.setServing(true);
    expect([await check(''), await check('writ.v1.FenceService')]).toEqual([1, 1]);
    await expect(check('nobody')).rejects.toMatchObject({ code: status.NOT_FOUND });
  });
});

describe('reflection', () => {
  const V1 = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';

  it('lists the services and hands out their files, to callers with a token', async () => {
    await start({});
    const list = new BinaryWriter().uint32(58).string('*').finish();
    const answer = (await raw(V1, list, as('auditor'))).toString('latin1');
    for (const service of [
      'LeaseService',
      'FenceService',
      'RunService',
      'ConflictMapService',
      'AuditService',
      'NamespaceService',
    ]) {
      expect(answer).toContain(`writ.v1.${service}`);
    }
    const symbol = new BinaryWriter().uint32(34).string('writ.v1.LeaseService').finish();
    const files = (await raw(V1.replace('v1', 'v1alpha'), symbol, as('runner'))).toString('latin1');
    for (const file of ['writ/v1/lease_service.proto', 'writ/v1/types.proto', 'google/protobuf/duration.proto'])
      expect(files).toContain(file);
    await expect(raw(V1, list, new Metadata())).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
  });
});

describe('the port', () => {
  it('answers before the coordinator has started, that it is starting', async () => {
    const logger = createLogger('silent');
    server = new GrpcServer({ limits: readConfig({}).limits, metrics: createMetrics(), log: logger });
    address = await server.listen('127.0.0.1', 0);
    const client = connect(LeaseServiceClient);
    const early = await failure(call(client, client.acquireWriteSet, acquire(), as('runner')));
    expect([early.error.code, early.reason]).toEqual([status.UNAVAILABLE, 'STARTING']);
  });

  it('that is taken is named, with the variable that chooses another', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as { port: number };
    server = new GrpcServer({ limits: readConfig({}).limits, metrics: createMetrics(), log: createLogger('silent') });
    await expect(server.listen('127.0.0.1', port)).rejects.toMatchObject({
      exitCode: 3,
      message: `cannot listen on 127.0.0.1:${port} for gRPC: the port is taken. WRIT_GRPC_PORT chooses the port; 0 picks a free one.`,
    });
    other.close();
  });
});

describe('a shutdown (F26)', () => {
  it('lets calls in flight end, takes no new ones, and then is over', async () => {
    let arrived: () => void = () => undefined;
    const inFlight = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await start({
      acquireWriteSet: async () => {
        arrived();
        await released;
        throw new Fault('aborted', 'DONE', 'it ran to its end');
      },
    });
    const client = connect(LeaseServiceClient);
    const pending = failure(call(client, client.acquireWriteSet, acquire(), as('runner')));
    await inFlight;
    const drained = server.drain(20_000);
    const another = connect(LeaseServiceClient);
    const refused = await failure(call(another, another.acquireWriteSet, acquire(), as('runner')));
    expect(refused.error.code).toBe(status.UNAVAILABLE);
    release();
    expect((await pending).reason).toBe('DONE');
    await drained;
  });

  it('is not held up by health watches, reflection or idle connections', async () => {
    await start({});
    const client = new Client(address, credentials.createInsecure());
    clients.push(client);
    const watch = client.makeServerStreamRequest(
      '/grpc.health.v1.Health/Watch',
      (b: Buffer) => b,
      (b: Buffer) => b,
      Buffer.alloc(0),
      new Metadata(),
    );
    const states: number[] = [];
    watch.on('data', (bytes: Buffer) => states.push(bytes[1] ?? 0)).on('error', () => undefined);
    const watched = once(watch, 'end');
    const reflection = client.makeBidiStreamRequest(
      '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      (b: Buffer) => b,
      (b: Buffer) => b,
      as('runner'),
    );
    reflection.on('data', () => undefined).on('error', () => undefined);
    reflection.write(Buffer.from([58, 1, 42]));
    await Promise.all([once(watch, 'data'), once(reflection, 'data')]);
    server.setServing(true);
    const begun = performance.now();
    await server.drain(20_000);
    expect(performance.now() - begun).toBeLessThan(10_000);
    await watched;
    expect(states).toEqual([2, 1, 2]);
  });

  it('ends by the deadline: who still waits is told so, and may call again elsewhere', async () => {
    const aborted: boolean[] = [];
    let arrived = 0;
    let bothArrived: () => void = () => undefined;
    const inFlight = new Promise<void>((resolve) => {
      bothArrived = resolve;
    });
    const arrive = () => {
      arrived += 1;
      if (arrived === 2) bothArrived();
    };
    await start({
      acquireWriteSet: (context) => {
        context.signal.addEventListener('abort', () => aborted.push(true));
        arrive();
        return new Promise(() => undefined);
      },
      async *exportEvents(context) {
        arrive();
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
      },
    });
    const client = connect(LeaseServiceClient);
    const audit = connect(AuditServiceClient);
    const acquiring = failure(call(client, client.acquireWriteSet, acquire(), as('runner')));
    const stream = audit.exportEvents({ namespace: '', afterRevision: 0n }, as('auditor'));
    const exporting = failure(
      new Promise((resolve, reject) =>
        stream
          .on('data', () => undefined)
          .on('end', resolve)
          .on('error', reject),
      ),
    );
    await inFlight;
    const begun = performance.now();
    await server.drain(1000);
    expect(performance.now() - begun).toBeLessThan(10_000);
    for (const { error, reason } of [await acquiring, await exporting]) {
      expect([error.code, reason]).toEqual([status.UNAVAILABLE, 'SHUTTING_DOWN']);
    }
    expect(aborted).toEqual([true]);
  });
});
