import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client, credentials, Server as GrpcServer, Metadata, ServerCredentials, status } from '@grpc/grpc-js';
import { generateKeyPair } from 'dpop';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { WritClient } from '../../src/clients/common/connect.js';
import { type AcquireRequest, acquire } from '../../src/clients/runner/acquire.js';
import { CredentialNotIssuedError, LeaseLostError, LeaseReleasedError } from '../../src/clients/runner/errors.js';
import type { Lease } from '../../src/clients/runner/lease.js';
import type { Target } from '../../src/clients/runner/targets.js';
import { createCredentialVerifier } from '../../src/clients/target/verify-credential.js';
import { GetLeaseRequest, type GetLeaseResponse, LeaseServiceService } from '../../src/gen/writ/v1/lease_service.js';
import { eventually } from '../support/coordinator.js';
import { type CoordinatorProcess, startCoordinatorProcess } from '../support/coordinator-process.js';
import { later } from '../support/later.js';
import { newRun, SIMPLE_MAP } from '../support/workload.js';

// What the runner kit shows to targets, over real sockets, with credentials of a real coordinator.

const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

let coordinator: CoordinatorProcess;
let writ: WritClient;
/** Two services on two origins; each says what it received. */
let target: Service;
let elsewhere: Service;
const leases: Lease[] = [];

interface Service {
  readonly origin: string;
  readonly received: IncomingMessage[];
  answer: (incoming: IncomingMessage, answer: ServerResponse) => void;
  readonly server: Server;
}

async function startService(): Promise<Service> {
  const server = createServer((incoming, answer) => {
    service.received.push(incoming);
    service.answer(incoming, answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service: Service = { origin, received: [], answer: (_, answer) => void answer.end('ok'), server };
  return service;
}

beforeAll(async () => {
  coordinator = await startCoordinatorProcess();
  await coordinator
    .client('admin')
    .conflictMap.putConflictMap({ document: SIMPLE_MAP, expectedVersion: 0n, reason: 'test' });
  writ = coordinator.client('runner');
  [target, elsewhere] = [await startService(), await startService()];
});

afterAll(async () => {
  for (const service of [target, elsewhere]) {
    service?.server.closeAllConnections();
    service?.server.close();
  }
  await coordinator?.stop();
});

afterEach(async () => {
  await Promise.all(leases.splice(0).map((lease) => lease.release().catch(() => undefined)));
  for (const service of [target, elsewhere]) {
    service.received.length = 0;
    service.answer = (_, answer) => void answer.end('ok');
  }
});

let made = 0;
async function take(more: Partial<AcquireRequest> = {}, declared: Partial<Target> = {}): Promise<Lease> {
  made += 1;
  const lease = await acquire(writ, {
    runId: await newRun(writ),
    resources: [
      { resource: `item/present/${made}`, actions: ['set'] },
      { resource: `item/tree/${made}`, actions: ['set'], scope: 'subtree' },
    ],
    ttlMs: 60_000,
    targets: [{ origins: [target.origin], ...declared }],
    ...more,
  });
  leases.push(lease);
  return lease;
}

const first = (lease: Lease) => lease.entries[0]?.resource ?? '';
const header = (name: string, of = target.received.at(-1)) => of?.headers[name];

describe('a request to a target without credentials', () => {
  it('carries the lease, a token for each write in turn, a correlation id and the trace', async () => {
    const lease = await take({ traceparent: TRACE });
    const below = `${lease.entries[1]?.resource}/leaf`;
    const response = await lease.fetch(`${target.origin}/x?y=1`, {
      method: 'PUT',
      body: '{}',
      writes: [below, first(lease)],
      headers: { 'if-match': '"7"' },
    });
    expect([response.status, await response.text()]).toEqual([200, 'ok']);
    expect(header('writ-lease')).toBe(lease.id);
    expect(header('writ-fencing-token')).toBe(`${lease.token(below)},${lease.token(first(lease))}`);
    expect(header('if-match')).toBe('"7"');
    expect(header('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(header('traceparent')).toBe(TRACE);
    expect(lease.headers(first(lease))).toEqual({
      'writ-lease': lease.id,
      'writ-fencing-token': String(lease.token(first(lease))),
    });
  });

  it('has another correlation id each time, unless it is the same request sent again', async () => {
    const lease = await take();
    const ids: unknown[] = [];
    for (const requestId of [undefined, undefined, 'same', 'same']) {
      const more = requestId === undefined ? {} : { requestId };
      await lease.fetch(target.origin, { method: 'POST', writes: [first(lease)], ...more });
      ids.push(header('x-request-id'));
    }
    expect(new Set(ids.slice(0, 2)).size).toBe(2);
    expect(ids.slice(2)).toEqual(['same', 'same']);
  });

  it('that only reads shows neither lease nor token', async () => {
    const lease = await take();
    await lease.fetch(target.origin);
    expect([header('writ-lease'), header('writ-fencing-token')]).toEqual([undefined, undefined]);
  });

  it.each([
    ['to an undeclared origin', () => `${elsewhere.origin}/`, {}, 'UndeclaredTargetError'],
    ['to an origin that only looks like it', () => target.origin.replace('http://', 'http://user@'), {}, 'TypeError'],
    ['of what the lease does not cover', () => target.origin, { writes: ['item/other'] }, 'UndeclaredWriteError'],
    ['that does not say what it writes', () => target.origin, { writes: undefined }, 'TypeError'],
    ['that would follow redirects', () => target.origin, { redirect: 'follow' }, 'TypeError'],
  ])('%s is not sent', async (_, url, init, name) => {
    const lease = await take();
    const more = { method: 'PUT', writes: [first(lease)], ...init } as RequestInit;
    await expect(lease.fetch(url(), more)).rejects.toMatchObject({ name });
    expect([target.received.length, elsewhere.received.length]).toEqual([0, 0]);
  });

  it('is not taken elsewhere by a redirect: the answer is the redirect', async () => {
    target.answer = (_, answer) => void answer.writeHead(307, { location: `${elsewhere.origin}/steal` }).end();
    const lease = await take();
    const response = await lease.fetch(target.origin, { method: 'PUT', writes: [first(lease)], body: 'x' });
    expect(response.status).toBe(307);
    const refused = lease.fetch(target.origin, { method: 'PUT', writes: [first(lease)], redirect: 'error' });
    await expect(refused).rejects.toMatchObject({ name: 'TypeError' });
    expect(elsewhere.received).toHaveLength(0);
  });

  it('ends when the lease is lost, with the reason; and none is sent after that, nor after a release', async () => {
    const lease = await take();
    target.answer = () => undefined;
    const asked = lease.fetch(target.origin, { method: 'PUT', writes: [first(lease)] });
    asked.catch(() => undefined);
    await eventually(
      () => target.received.length,
      (count) => count === 1,
    );
    await coordinator.client('operator').lease.revokeLease({ leaseId: lease.id, reason: 'a test' });
    await expect(asked).rejects.toBeInstanceOf(LeaseLostError);
    await expect(lease.fetch(target.origin)).rejects.toBeInstanceOf(LeaseLostError);
    expect(() => lease.headers(first(lease))).toThrow(LeaseLostError);
    expect(target.received).toHaveLength(1);
    const released = await take();
    await released.release();
    await expect(released.fetch(target.origin)).rejects.toBeInstanceOf(LeaseReleasedError);
  });
});

const verifierOf = (more: object = {}) =>
  createCredentialVerifier({
    issuer: `http://${coordinator.http}`,
    audience: 'target',
    keys: new URL(`http://${coordinator.http}/.well-known/jwks.json`),
    ...more,
  });

describe('a request with a credential (C9)', () => {
  it('carries one for the target that declares the origin, the same until it is renewed, and no lease id', async () => {
    const lease = await take({}, { audience: 'target' });
    const verifier = verifierOf();
    const tokens: string[] = [];
    for (const resource of [first(lease), first(lease)]) {
      await lease.fetch(target.origin, { method: 'PUT', writes: [resource] });
      const [scheme, token = ''] = String(header('authorization')).split(' ');
      expect(scheme).toBe('Bearer');
      const credential = await verifier.verifyCredential(token, {});
      expect(credential.covers({ resource, action: 'set' })).toMatchObject({
        allowed: true,
        fencingToken: lease.token(resource),
      });
      tokens.push(token);
    }
    expect(tokens[1]).toBe(tokens[0]);
    expect(header('writ-lease')).toBeUndefined();
    await expect(lease.fetch(target.origin, { headers: { authorization: 'Bearer of-my-own' } })).rejects.toThrow(
      'authorization',
    );
  });

  it('has a new one before the old one ends; the lease is not extended by that', async () => {
    const lease = await take({ ttlMs: 12_000, mayRenew: () => false }, { audience: 'target' });
    const verifier = verifierOf();
    const seen = new Map<string, number>();
    await eventually(
      async () => {
        await lease.fetch(target.origin, { method: 'PUT', writes: [first(lease)] });
        const { claims } = await verifier.verifyCredential(String(header('authorization')).slice('Bearer '.length), {});
        seen.set(claims.jti, claims.exp);
        return seen.size;
      },
      (count) => count >= 2,
    );
    const { lease: record } = await coordinator.client('operator').lease.getLease({ leaseId: lease.id });
    for (const exp of seen.values()) expect(exp).toBeLessThan(Number(record?.expiresAt?.seconds));
  });

  it('is issued once, however many ask at the same time', async () => {
    const lease = await take({}, { audience: 'target' });
    await Promise.all(
      Array.from({ length: 8 }, () => lease.fetch(target.origin, { method: 'PUT', writes: [first(lease)] })),
    );
    const shown = new Set(target.received.map((incoming) => incoming.headers.authorization));
    expect([target.received.length, shown.size]).toEqual([8, 1]);
  });

  it('is not sent when none is issued: the refusal says why', async () => {
    const lease = await take({ ttlMs: 5_000 }, { audience: 'target' });
    const asked = lease.fetch(target.origin, { method: 'PUT', writes: [first(lease)] });
    await expect(asked).rejects.toBeInstanceOf(CredentialNotIssuedError);
    await expect(asked).rejects.toMatchObject({ kind: 'too_short', audience: 'target' });
    expect(target.received).toHaveLength(0);
  });

  it('proves with each request that it is its own, and answers a demand for a nonce once (RFC 9449)', async () => {
    const dpop = await generateKeyPair('ES256');
    const lease = await take({}, { audience: 'target', dpop });
    const verifier = verifierOf({ requireBinding: true, dpop: { requireNonce: true } });
    target.answer = async (incoming, answer) => {
      const token = String(incoming.headers.authorization).slice('DPoP '.length);
      const proof = { proof: String(incoming.headers.dpop), method: 'PUT', url: `${target.origin}/a` };
      await verifier.verifyCredential(token, { dpop: proof }).then(
        () => answer.end('proven'),
        (error: { reason: string }) =>
          answer.writeHead(401, { 'dpop-nonce': verifier.nonce() ?? '' }).end(error.reason),
      );
    };
    const write = () => lease.fetch(`${target.origin}/a?b=c`, { method: 'PUT', writes: [first(lease)], body: 'x' });
    expect(await (await write()).text()).toBe('proven');
    const ids = target.received.map((incoming) => incoming.headers['x-request-id']);
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(1);
    expect(await (await write()).text()).toBe('proven');
    expect(target.received).toHaveLength(3);
    // A stream was read, and is not sent a second time.
    target.answer = (_, answer) => void answer.writeHead(401, { 'dpop-nonce': 'another' }).end('once');
    const body = new Blob(['x']).stream();
    const streamed = { method: 'PUT', writes: [first(lease)], body, duplex: 'half' } as RequestInit;
    expect((await lease.fetch(`${target.origin}/a`, streamed)).status).toBe(401);
    expect(target.received).toHaveLength(4);
    // A target that goes on refusing is not asked for ever.
    target.answer = (_, answer) =>
      void answer.writeHead(401, { 'dpop-nonce': `n${target.received.length}` }).end('never');
    expect((await write()).status).toBe(401);
    expect(target.received).toHaveLength(6);
  });
});

describe('a call over gRPC', () => {
  let grpc: GrpcServer;
  let client: Client;
  let seen: Metadata[] = [];
  let hang = false;

  beforeAll(async () => {
    grpc = new GrpcServer();
    grpc.addService(
      { getLease: LeaseServiceService.getLease },
      {
        getLease: (call: { metadata: Metadata }, reply: (error: null, value: object) => void) => {
          seen.push(call.metadata);
          if (!hang) reply(null, { lease: undefined, logRevision: 7n });
        },
      },
    );
    const port = await new Promise<number>((resolve) => {
      grpc.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_, bound) => resolve(bound));
    });
    client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  });
  afterAll(() => {
    client?.close();
    grpc?.forceShutdown();
  });
  afterEach(() => {
    seen = [];
    hang = false;
  });

  const call = (lease: Lease, presented: Parameters<Lease['interceptor']>[0]) =>
    new Promise<GetLeaseResponse>((resolve, reject) => {
      client.makeUnaryRequest(
        LeaseServiceService.getLease.path,
        LeaseServiceService.getLease.requestSerialize,
        LeaseServiceService.getLease.responseDeserialize,
        GetLeaseRequest.fromPartial({ leaseId: 'x' }),
        new Metadata(),
        { interceptors: [lease.interceptor(presented)] },
        (error, value) => (error === null ? resolve(value as GetLeaseResponse) : reject(error)),
      );
    });

  it('carries lease and tokens, or the credential, and the correlation id', async () => {
    const lease = await take({ traceparent: TRACE }, { audience: 'target' });
    expect(await call(lease, { writes: [first(lease)], requestId: 'r-1' })).toMatchObject({ logRevision: 7n });
    expect(seen[0]?.getMap()).toMatchObject({
      'writ-lease': lease.id,
      'writ-fencing-token': String(lease.token(first(lease))),
      'x-request-id': 'r-1',
      traceparent: TRACE,
    });
    await call(lease, { audience: 'target', writes: [first(lease)] });
    expect(seen[1]?.get('authorization')[0]).toMatch(/^Bearer ey/);
    expect(seen[1]?.get('writ-lease')).toEqual([]);
  });

  it('is not made for an undeclared target or write, nor without the lease; and is cancelled when that is lost', async () => {
    const lease = await take();
    const refused = (presented: Parameters<Lease['interceptor']>[0]) =>
      call(lease, presented).then(
        () => 'made',
        (error: { code: number; details: string }) => `${status[error.code]}: ${error.details}`,
      );
    expect(await refused({ audience: 'unknown' })).toMatch(/^ABORTED: unknown is no declared target/);
    expect(await refused({ writes: ['item/other'] })).toMatch(/^ABORTED: the lease does not cover/);
    expect(seen).toHaveLength(0);
    hang = true;
    const hanging = refused({ writes: [first(lease)] });
    await eventually(
      () => seen.length,
      (count) => count === 1,
    );
    await coordinator.client('operator').lease.revokeLease({ leaseId: lease.id, reason: 'a test' });
    expect(await hanging).toMatch(/^ABORTED: lease .* is lost \(ended\)/);
    expect(await refused({ writes: [first(lease)] })).toMatch(/^ABORTED: lease .* is lost/);
    expect(seen).toHaveLength(1);
  });
});

describe('a holder is told with its renewals', () => {
  it('that another run waits for it, and that what it reads was granted to a writer', async () => {
    made += 1;
    const [held, input] = [`item/wanted/${made}`, `item/input/${made}`];
    const told: string[] = [];
    const lease = await take({
      resources: [
        { resource: held, actions: ['set'] },
        { resource: input, access: 'read' },
      ],
      ttlMs: 1_500,
      onAskedToYield: (resources) => told.push(`yield ${resources.join()}`),
      onInputChanged: (resource) => told.push(`changed ${resource}`),
    });
    const other = await take({ resources: [{ resource: input, actions: ['set'] }] });
    await other.release();
    await eventually(
      () => told,
      (list) => list.includes(`changed ${input}`),
    );
    const waiting = later(take({ resources: [{ resource: held, actions: ['set'] }], waitMs: 30_000 }));
    await eventually(
      () => told,
      (list) => list.includes(`yield ${held}`),
    );
    expect(told).toEqual([`changed ${input}`, `yield ${held}`]);
    await lease.release();
    expect((await waiting).token(held)).toBeGreaterThan(lease.token(held) ?? 0n);
  });
});
