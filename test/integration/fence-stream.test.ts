import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createCallerAuthenticator } from '../../src/auth/authenticator.js';
import { ROLES } from '../../src/auth/principal.js';
import type { PrincipalEntry } from '../../src/auth/principal-entry.js';
import { hashToken } from '../../src/auth/tokens.js';
import { WritError } from '../../src/clients/common/errors.js';
import { Fault } from '../../src/domain/fault.js';
import type { Lease } from '../../src/domain/lease.js';
import { SECOND } from '../../src/domain/time.js';
import {
  CheckFenceRequest,
  FenceReason,
  FenceServiceService,
  type NumberedVerdict,
  type StreamFenceChecksRequest,
  type StreamFenceChecksResponse,
} from '../../src/gen/writ/v1/fence_service.js';
import type { Fault as WireFault } from '../../src/gen/writ/v1/types.js';
import { readConfig } from '../../src/platform/config.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { GrpcServer } from '../../src/transports/grpc/server.js';
import {
  as,
  createRun,
  eventually,
  freshKey,
  granted,
  putMap,
  startReplica,
  type TestReplica,
  write,
} from '../support/coordinator.js';
import { createTestDatabase, type TestDatabase } from '../support/postgres.js';
import { type Talking, talk } from '../support/talk.js';

/** StreamFenceChecks over a socket: what CheckFence decides, many at a time. */

const MAP = `
version: 1
kinds:
  - { pattern: "doc/{name}", actions: { replace: { access: write, concurrency: lease, change_class: shared_document } } }
  - { pattern: "pointer/{name}", actions: { set: { access: write, concurrency: lease, change_class: shared_pointer, tracked: true } } }
`;

const PRINCIPALS: PrincipalEntry[] = [
  ...ROLES.map((role) => ({ name: role, roles: [role], tokenSha256: hashToken(`token-${role}`) })),
  {
    name: 'svc:team',
    roles: [],
    namespaceRoles: { 'team-a': ['target'] as const },
    tokenSha256: hashToken('token-team'),
  },
];

let database: TestDatabase;
let replica: TestReplica;
let server: GrpcServer;
let client: Client;
let runId: string;
let lease: Lease;
let pointer: Lease;

beforeAll(async () => {
  database = await createTestDatabase();
  replica = await startReplica({ url: database.url });
  await putMap(replica.api, MAP);
  runId = await createRun(replica.api);
  // For all tests of the file, however long the machine takes for them.
  lease = await granted(replica.api, runId, [write('doc/a', 'replace')], { ttl: 300 * SECOND });
  pointer = await granted(replica.api, runId, [write('pointer/a', 'set')], { ttl: 300 * SECOND });
});

afterAll(async () => {
  await replica?.stop();
  await database?.drop();
});

beforeEach(() => listen());

async function listen(env: Record<string, string> = {}): Promise<void> {
  await unlisten();
  server = new GrpcServer({ limits: readConfig(env).limits, metrics: createMetrics(), log: createLogger('silent') });
  const address = await server.listen('127.0.0.1', 0);
  serve(PRINCIPALS);
  client = new Client(address, credentials.createInsecure());
}

async function unlisten(): Promise<void> {
  client?.close();
  await server?.drain(0);
}

afterAll(unlisten);

function serve(principals: readonly PrincipalEntry[], api = replica.api): void {
  server.serve({
    api,
    authenticator: createCallerAuthenticator({ principals: principals }),
    blockerKey: Buffer.from('key'),
  });
}

type Checks = Talking<StreamFenceChecksRequest, StreamFenceChecksResponse>;

function open(token = 'token-target'): Checks {
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  return talk(client, FenceServiceService.streamFenceChecks, metadata);
}

function check(of: Lease = lease, more: Partial<CheckFenceRequest> = {}): CheckFenceRequest {
  const [entry] = of.entries;
  if (entry === undefined) throw new Error('a lease without entries');
  const [action = ''] = entry.actions;
  return CheckFenceRequest.fromPartial({
    leaseId: of.leaseId,
    writes: [{ resource: entry.resource, action, fencingToken: BigInt(entry.token) }],
    ...more,
  });
}

const ask = (...checks: [number: number, check: CheckFenceRequest | undefined][]): StreamFenceChecksRequest => ({
  checks: checks.map(([number, one]) => ({ number, check: one, requestId: '', traceparent: '' })),
});

const verdicts = (heard: readonly StreamFenceChecksResponse[]): NumberedVerdict[] =>
  heard.flatMap((response) => response.verdicts);

async function answers(stream: Checks, count: number): Promise<Map<number, string>> {
  const heard = await stream.until((responses) => verdicts(responses).length >= count);
  return new Map(verdicts(heard).map(({ number, outcome }) => [number, told(outcome)]));
}

function told(outcome: NumberedVerdict['outcome']): string {
  if (outcome?.$case === 'fault') return reasonOf(outcome.value);
  const [result] = outcome?.value.results ?? [];
  return `${outcome?.value.allowed} ${(FenceReason[result?.reason ?? 0] ?? '').replace('FENCE_REASON_', '')}`;
}

function reasonOf(fault: WireFault): string {
  return `${status[fault.code]} ${WritError.fromFault(fault).reason}`;
}

describe('checks on a stream', () => {
  it('are decided as by themselves, each answered by its number', async () => {
    const stream = open();
    stream.send(ask([7, check()], [8, check(lease, { leaseId: 'nobody' })]));
    stream.send(ask([9, check(lease, { writes: [] })], [10, undefined], [11, check(pointer)]));
    stream.send(ask([12, check(pointer, { requestId: 'once' })]));
    expect(await answers(stream, 6)).toEqual(
      new Map([
        [7, 'true OK'],
        [8, 'false UNKNOWN_LEASE'],
        [9, 'INVALID_ARGUMENT INVALID_ARGUMENT'],
        [10, 'INVALID_ARGUMENT INVALID_ARGUMENT'],
        // A tracked action needs a request id, and leaves an admission before it is answered (R4).
        [11, 'INVALID_ARGUMENT INVALID_ARGUMENT'],
        [12, 'true OK'],
      ]),
    );
    const admitted = verdicts(stream.heard).find(({ number }) => number === 12)?.outcome;
    expect(admitted?.$case === 'verdict' && admitted.value.results[0]?.admissionId).toMatch(/^[0-9a-f]{32}$/);
    stream.stream.end();
    expect(await stream.ended).toBe('OK');
  });

  it('fail by themselves: one whose request id is taken fails no other of its turn', async () => {
    const stream = open();
    const tracked = (observedVersion: string) => {
      const { leaseId, writes } = check(pointer);
      return check(pointer, {
        leaseId,
        requestId: 'taken',
        writes: writes.map((one) => ({ ...one, observedVersion })),
      });
    };
    stream.send(ask([1, tracked('1')]));
    await answers(stream, 1);
    stream.send(ask([2, check()], [3, tracked('2')], [4, check()]));
    expect(await answers(stream, 4)).toEqual(
      new Map([
        [1, 'true OK'],
        [2, 'true OK'],
        [3, 'ALREADY_EXISTS REQUEST_ID_REUSED'],
        [4, 'true OK'],
      ]),
    );
    stream.stream.end();
  });

  it('leave their denials in the log', async () => {
    const stream = open();
    const requestId = `denied-on-a-stream-${freshKey()}`;
    const denied = check(lease, { requestId, presenterRunId: 'f'.repeat(32) });
    stream.send({ checks: [{ number: 1, check: denied, requestId: 'as-its-caller-has-it', traceparent: '' }] });
    stream.send({ checks: [{ number: 2, check: denied, requestId: 'ü', traceparent: '' }] });
    expect(await answers(stream, 2)).toEqual(
      new Map([
        [1, 'false WRONG_HOLDER'],
        [2, 'INVALID_ARGUMENT INVALID_ARGUMENT'],
      ]),
    );
    const events = await eventually(
      () => replica.store.listEvents('default', { requestId, limit: 10 }),
      ({ length }) => length > 0,
    );
    expect(events).toHaveLength(1);
    expect(events[0]?.requestIds).toEqual([requestId, 'as-its-caller-has-it']);
    stream.stream.end();
  });

  it('in one turn cost one read index', async () => {
    const stream = open();
    const reads: number[] = [];
    const { readGate } = replica.store;
    replica.store.readGate = (namespace) => {
      reads.push(1);
      return readGate.call(replica.store, namespace);
    };
    const many = Array.from({ length: 500 }, (_, number) => [number, check()] as [number, CheckFenceRequest]);
    stream.send(ask(...many));
    const heard = await answers(stream, 500);
    replica.store.readGate = readGate;
    expect([...new Set(heard.values())]).toEqual(['true OK']);
    // And some for the poller.
    expect(reads.length).toBeLessThan(20);
    stream.stream.end();
    await stream.ended;
  });

  it('see a release that has returned (P3)', async () => {
    const stream = open();
    for (let round = 0; round < 20; round += 1) {
      const held = await granted(replica.api, runId, [write(`doc/${freshKey()}`, 'replace')]);
      stream.send(ask([2 * round, check(held)]));
      await answers(stream, 2 * round + 1);
      await replica.api.releaseLease(as('runner'), { runId, leaseId: held.leaseId, acquireKey: null });
      stream.send(ask([2 * round + 1, check(held)]));
      const heard = await answers(stream, 2 * round + 2);
      expect([heard.get(2 * round), heard.get(2 * round + 1)]).toEqual(['true OK', 'false RELEASED']);
    }
    stream.stream.end();
  });

  it('are answered after the caller has closed its side', async () => {
    const stream = open();
    stream.send(ask([1, check()], [2, check()]));
    stream.stream.end();
    expect(await stream.ended).toBe('OK');
    expect(verdicts(stream.heard)).toHaveLength(2);
  });
});

describe('a stream', () => {
  it('is for targets, each check in its namespace', async () => {
    expect(await open('token-runner').ended).toBe('PERMISSION_DENIED ROLE_REQUIRED');
    expect(await open('nobody').ended).toBe('UNAUTHENTICATED UNAUTHENTICATED');
    const stream = open('token-team');
    stream.send(ask([1, check()], [2, check(lease, { namespace: 'team-a' })]));
    expect(await answers(stream, 2)).toEqual(
      new Map([
        [1, 'PERMISSION_DENIED ROLE_REQUIRED'],
        [2, 'NOT_FOUND NAMESPACE_NOT_FOUND'],
      ]),
    );
    stream.stream.end();
  });

  it('ends when its caller is not known any more, also a quiet one, and decides nothing meanwhile', async () => {
    const [asking, quiet, staying] = [open(), open(), open('token-team')];
    for (const one of [asking, quiet]) {
      one.send(ask([1, check()]));
      await answers(one, 1);
    }
    staying.send(ask([1, check()]));
    await answers(staying, 1);
    serve(PRINCIPALS.filter(({ name }) => name !== 'target'));
    asking.send(ask([2, check()]));
    expect(await asking.ended).toBe('UNAUTHENTICATED UNAUTHENTICATED');
    expect(verdicts(asking.heard)).toHaveLength(1);
    expect(await quiet.ended).toBe('UNAUTHENTICATED UNAUTHENTICATED');
    serve(PRINCIPALS.map((one) => (one.name === 'svc:team' ? { ...one, name: 'svc:other' } : one)));
    staying.send(ask([2, check()]));
    expect(await staying.ended).toBe('UNAUTHENTICATED PRINCIPAL_CHANGED');
  });

  it('ends when a number is in use, or a message cannot be read', async () => {
    const twice = open();
    twice.send(ask([1, check()], [1, check()]));
    expect(await twice.ended).toBe('INVALID_ARGUMENT NUMBER_IN_USE');
    for (const [bytes, reason] of [
      ['ffffffff', 'MALFORMED_MESSAGE'],
      // A check with a namespace that is no UTF-8.
      ['0a070801120312' + '01ff', 'INVALID_ARGUMENT'],
    ] as const) {
      const metadata = new Metadata();
      metadata.set('authorization', 'Bearer token-target');
      const damaged = talk(
        client,
        { ...FenceServiceService.streamFenceChecks, requestSerialize: (b: Buffer) => b } as never,
        metadata,
      );
      damaged.send(Buffer.from(bytes, 'hex') as never);
      expect(await damaged.ended).toBe(`INVALID_ARGUMENT ${reason}`);
    }
  });

  it('takes so many unanswered checks, and answers those beyond with a fault', async () => {
    const faked: (() => void)[] = [];
    const api = new Proxy(replica.api, {
      get: (target, name) =>
        name !== 'checkFences'
          ? Reflect.get(target, name)
          : async (inputs: unknown[], hear: (index: number, outcome: unknown) => void) => {
              inputs.forEach((_input, index) =>
                faked.push(() => hear(index, { ok: false, error: new Fault('aborted', 'DONE', 'it is done') })),
              );
            },
    });
    serve(PRINCIPALS, api);
    const stream = open();
    const many = Array.from({ length: 1_030 }, (_, number) => [number, check()] as [number, CheckFenceRequest]);
    stream.send(ask(...many));
    const refused = await answers(stream, 6);
    expect([...new Set(refused.values())]).toEqual(['RESOURCE_EXHAUSTED TOO_MANY_UNANSWERED']);
    for (const done of faked) done();
    stream.stream.end();
    expect(await stream.ended).toBe('OK');
    expect(verdicts(stream.heard)).toHaveLength(1_030);
  });

  it('is held to the rate of its principal, check by check', async () => {
    await listen({ WRIT_MAX_CALLS_PER_SECOND: '10' });
    const stream = open();
    const many = Array.from({ length: 30 }, (_, number) => [number, check()] as [number, CheckFenceRequest]);
    stream.send(ask(...many));
    const heard = [...(await answers(stream, 30)).values()];
    expect(heard.filter((one) => one === 'true OK').length).toBeLessThan(15);
    expect(heard.filter((one) => one === 'RESOURCE_EXHAUSTED RATE_LIMITED').length).toBeGreaterThan(10);
    stream.stream.end();
  });

  it('goes on after a namespace that is not there, and after a caller that is cut off', async () => {
    const gone = open();
    gone.send(ask([1, check()]));
    gone.stream.cancel();
    await gone.ended;
    const stream = open();
    stream.send(ask([1, check(lease, { namespace: 'nowhere' })]));
    stream.send(ask([2, check()]));
    expect((await answers(stream, 2)).get(2)).toBe('true OK');
    stream.stream.end();
  });
});

describe('a caller that does not read', () => {
  it('is answered what it has asked once it reads again', async () => {
    const stream = open();
    stream.stream.pause();
    const write = {
      resource: `doc/${'x'.repeat(60)}`,
      action: 'replace',
      fencingToken: 1n,
      observedVersion: undefined,
    };
    const large = check(lease, { writes: Array.from({ length: 256 }, () => write) });
    for (let number = 0; number < 100; number += 1) stream.send(ask([number, large]));
    stream.stream.end();
    stream.stream.resume();
    expect(await stream.ended).toBe('OK');
    expect(verdicts(stream.heard)).toHaveLength(100);
  });
});

describe('a shutdown (F26)', () => {
  it('tells streams to move on, answers what was asked, looks at nothing new, and ends', async () => {
    let answer: () => void = () => undefined;
    let arrived: () => void = () => undefined;
    const hasArrived = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const api = new Proxy(replica.api, {
      get: (target, name) =>
        name !== 'checkFences'
          ? Reflect.get(target, name)
          : async (inputs: unknown[], hear: (index: number, outcome: unknown) => void) => {
              answer = () => hear(0, { ok: false, error: new Fault('aborted', 'DONE', 'it is done') });
              arrived();
              expect(inputs).toHaveLength(1);
            },
    });
    serve(PRINCIPALS, api);
    const stream = open();
    stream.send(ask([1, check()]));
    await hasArrived;
    const drained = server.drain(20_000);
    await stream.until((heard) => heard.some(({ goingAway }) => goingAway));
    stream.send(ask([2, check()]));
    expect(await answers(stream, 1)).toEqual(new Map([[2, 'UNAVAILABLE SHUTTING_DOWN']]));
    answer();
    expect(await answers(stream, 2)).toEqual(
      new Map([
        [2, 'UNAVAILABLE SHUTTING_DOWN'],
        [1, 'ABORTED DONE'],
      ]),
    );
    // The caller did not close its side; it is not waited for.
    expect(await stream.ended).toBe('OK');
    await drained;
  });
});
